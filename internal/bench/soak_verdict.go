package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jobpoll/jobpoll"
)

// sample is what was seen at one instant of the soak.
type sample struct {
	At         time.Duration `json:"at"`
	Bytes      int64         `json:"bytes"`      // heap and stacks, after collection
	Goroutines int           `json:"goroutines"` // the least of the period: a machine that stalls makes many for a moment
	Peak       int           `json:"peak"`
	Alive      int           `json:"alive"`
	Waiting    int           `json:"waiting"` // looks that are due
	Lag        time.Duration `json:"lag"`
	Calls      uint64        `json:"calls"` // granted so far, in both lanes
	Ended      int64         `json:"ended"`
}

// observe takes samples until the time of the soak is over.
func (s *soak) observe(ctx context.Context, said func(sample)) []sample {
	period := max(s.lasts/60, 50*time.Millisecond)
	var all []sample
	for time.Since(s.begin) < s.lasts && ctx.Err() == nil {
		goroutines, peak := someGoroutines(period, period/20)
		collect()
		m := s.poller.Metrics()
		b := m.Budgets[s.budget.Name()]
		at := sample{
			At: time.Since(s.begin), Bytes: memoryUsed(), Goroutines: goroutines, Peak: peak, Alive: m.Total.Unresolved,
			Waiting: m.Total.Backlog.Jobs, Lag: m.Total.Backlog.Lag, Calls: b.Status.Granted + b.Submit.Granted, Ended: s.ledger.ended.Load(),
		}
		all = append(all, at)
		said(at)
	}
	return all
}

// verdict is what came of a soak.
type verdict struct {
	samples []sample
	metrics jobpoll.Metrics
	leaked  int // goroutines that were left
	faults  faults
}

// judgeCourse adds a fault for what was not flat or bounded on the way.
func (s *soak) judgeCourse(v *verdict) {
	warm := slices.DeleteFunc(slices.Clone(v.samples), func(x sample) bool { return x.At < s.warm() })
	if len(warm) < 4 {
		v.faults.add("only %d samples were taken after the first %v: the machine is too busy, or the soak too short", len(warm), s.warm())
		return
	}
	part := len(warm) / 4
	first, last := warm[:part], warm[len(warm)-part:]

	bytes := func(all []sample) float64 { return medianOf(all, func(x sample) float64 { return float64(x.Bytes) }) }
	if b, e := bytes(first), bytes(last); e > b*1.1+soakSlack {
		v.faults.add("memory is not flat: %.1f MB, then %.1f MB", b/1e6, e/1e6)
	}
	if n := medianOf(last, func(x sample) float64 { return float64(x.Goroutines) }); n > mostSoakGoroutines {
		v.faults.add("goroutines are not few: %.0f", n)
	}
	for _, x := range warm {
		if x.Lag > s.lagBound() {
			v.faults.add("after %v the first of %d due looks was %v late, at most %v is right", x.At.Round(time.Second), x.Waiting, x.Lag, s.lagBound())
		}
		if x.Alive > s.jobs {
			v.faults.add("after %v %d jobs lived, not %d", x.At.Round(time.Second), x.Alive, s.jobs)
		}
	}
	calls := soakCalls(s.jobs, s.longest)
	if r := v.rate(warm); r > calls*1.02 || r < calls*0.7 {
		v.faults.add("%.0f calls a second went out where the budget has %.0f and more are wanted", r, calls)
	}
}

const (
	// soakSlack is what may come beside the jobs: ids of events, for one, are
	// kept up to a number that a short soak does not reach.
	soakSlack = 16 << 20
	// mostSoakGoroutines are the workers of a Config without Workers, all of which a
	// slow machine may keep busy, and some around them. A goroutine that one job in a
	// hundred leaves would be more.
	mostSoakGoroutines = 1024 + 100
)

// lagBound is twice the time in which the looks' part of the budget goes round
// all jobs.
func (s *soak) lagBound() time.Duration {
	looks := soakCalls(s.jobs, s.longest) * 2 / 3
	return time.Duration(2 * float64(s.jobs) / looks * float64(time.Second))
}

func (v *verdict) rate(warm []sample) float64 {
	a, b := warm[0], warm[len(warm)-1]
	return float64(b.Calls-a.Calls) / (b.At - a.At).Seconds()
}

func medianOf(all []sample, of func(sample) float64) float64 {
	var values []float64
	for _, x := range all {
		values = append(values, of(x))
	}
	return median(values)
}

// judgeEnd compares what the Poller counted with what was done, after all has
// ended.
func (s *soak) judgeEnd(v *verdict) {
	m := &v.metrics
	var stops uint64
	for _, n := range m.Total.Stops {
		stops += n
	}
	b := m.Budgets[s.budget.Name()]
	started := s.ledger.started.Load()
	for _, c := range []struct {
		what      string
		got, want int64
	}{
		{"jobs watched", int64(m.Total.Watched), started},
		{"stops", int64(stops), started},
		{"ends taken by OnStop", s.ledger.ended.Load(), started},
		{"calls of OnStop that succeeded", int64(m.Callbacks.Stops - m.Callbacks.StopFailures), started},
		{"jobs left", int64(m.Total.Unresolved), 0},
		{"looks under way", int64(m.Total.InFlight), 0},
		{"looks that wait", int64(m.Total.Backlog.Jobs), 0},
		{"ends not taken", int64(m.Callbacks.Undelivered), 0},
		{"notices parked", int64(m.ParkedNotices), 0},
		{"failing jobs", int64(m.Total.Failing), 0},
		{"panics", int64(m.Panics), 0},
		{"calls under way in the budget", int64(b.Status.InFlight + b.Submit.InFlight), 0},
		{"calls that wait in the budget", int64(b.Status.Waiting + b.Submit.Waiting), 0},
	} {
		if c.got != c.want {
			v.faults.add("%s: %d, not %d", c.what, c.got, c.want)
		}
	}
	if v.leaked > 2 {
		v.faults.add("%d goroutines were left", v.leaked)
	}
}

// runSoak is the mode -soak.
func (s settings) runSoak(ctx context.Context, out io.Writer) error {
	soak := newSoak(s.Jobs, s.soakLife, s.soak)
	var last time.Duration
	v, err := soak.live(ctx, func(x sample) {
		if s.asJSON || x.At-last < s.soak/20 {
			return
		}
		last = x.At
		fmt.Fprintf(out, "%8v %8d alive %9d ended %7d due, lag %-8v %7.1f MB %4d to %d goroutines\n", x.At.Round(100*time.Millisecond),
			x.Alive, x.Ended, x.Waiting, x.Lag.Round(time.Millisecond), float64(x.Bytes)/1e6, x.Goroutines, x.Peak)
	})
	soak.judgeCourse(&v)
	if s.asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "\t")
		if err := enc.Encode(map[string]any{"samples": v.samples, "metrics": v.metrics, "faults": v.faults.first}); err != nil {
			return err
		}
	} else {
		soak.tell(out, v)
	}
	switch {
	case err != nil:
		return err
	case v.faults.count > 0:
		return fmt.Errorf("the soak found %d faults", v.faults.count)
	}
	return nil
}

func (s *soak) tell(out io.Writer, v verdict) {
	m := v.metrics
	fmt.Fprintf(out, "\n%d jobs, all accounted for but for what follows; %d looks, %d failed; lateness p50 %.1f s, p99 %.1f s\n",
		s.ledger.started.Load(), m.Total.Looks, m.Total.LookErrors[jobpoll.ErrorTransient]+m.Total.LookErrors[jobpoll.ErrorInvalid],
		m.Total.Lateness.Quantile(0.5), m.Total.Lateness.Quantile(0.99))
	for f, n := range s.ledger.byFate {
		fmt.Fprintf(out, "%10d %s\n", n, fateNames[f])
	}
	for _, f := range v.faults.first {
		fmt.Fprintln(out, "fault:", f)
	}
	if more := v.faults.count - len(v.faults.first); more > 0 {
		fmt.Fprintln(out, "fault: and", more, "more")
	}
}
