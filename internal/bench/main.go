// Command bench lets several ways to look at many jobs do the same work, each
// in a process of its own, and prints what they cost, with ratios. README.md
// says how to read it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"
)

func main() {
	if text := os.Getenv(orderEnv); text != "" {
		exitOn(obey(text))
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s, err := parse(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		os.Exit(2) // the flag package has said why
	}
	exitOn(s.run(ctx, os.Stdout, os.Stderr))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (s settings) run(ctx context.Context, out, progress io.Writer) error {
	switch s.Mode {
	case "soak":
		return s.runSoak(ctx, out)
	case "scale":
		return s.runScale(ctx, out, progress)
	}
	l := s.steadyLoad(s.Jobs)
	columns := steadyColumns
	switch s.Mode {
	case "burst":
		l, columns = s.burstLoad(), burstColumns
	case "peak":
		columns = peakColumns
	}
	all, err := s.compare(ctx, l, progress)
	if err != nil {
		return err
	}
	if s.asJSON {
		return s.writeJSON(out, all)
	}
	s.writeHead(out)
	writeFigures(out, columns, all)
	writeRatios(out, columns, all, s.of)
	if s.Mode == "burst" {
		writeCalls(out, all)
	}
	writeNotes(out, all)
	return nil
}

// leadFor is ample time to admit the jobs, but no more than an interval: see
// admitBatches.
func leadFor(jobs int) time.Duration {
	return 200*time.Millisecond + time.Duration(jobs)*20*time.Microsecond
}

func (s settings) steadyLoad(jobs int) load {
	interval := time.Duration(float64(jobs) / s.Rate * float64(time.Second))
	return load{Jobs: jobs, Interval: interval, Lead: min(leadFor(jobs), interval), Garbage: s.Garbage}
}

// burstLoad has an interval that no burst outlasts.
func (s settings) burstLoad() load {
	return load{
		Jobs: s.Jobs, Interval: 30 * time.Minute, Lead: leadFor(s.Jobs), Together: true,
		Takes: time.Millisecond, Workers: 64, Garbage: s.Garbage,
	}
}

// compare lets all contenders do the same work, in turn, as often as there are
// runs. Each run begins with another one.
func (s settings) compare(ctx context.Context, l load, progress io.Writer) ([]runs, error) {
	var all []runs
	for _, c := range s.chosen {
		if why := c.unfit(l); why != "" {
			fmt.Fprintln(progress, "left out:", why)
			continue
		}
		all = append(all, runs{contender: c})
	}
	for run := range s.Runs {
		for i := range all {
			c := &all[(i+run)%len(all)]
			fmt.Fprintf(progress, "run %d of %d: %s, %d jobs\n", run+1, s.Runs, c.name, l.Jobs)
			r, err := s.measure(ctx, c.contender, l)
			if err != nil {
				return nil, err
			}
			c.results = append(c.results, r)
		}
	}
	return all, nil
}

func (s settings) measure(ctx context.Context, c contender, l load) (result, error) {
	o := order{Contender: c.name, Load: l, Warm: s.Warm, Duration: s.Duration, Burst: s.Mode == "burst", Peak: s.Mode == "peak"}
	if s.profile != "" {
		o.CPUProfile = filepath.Join(s.profile, c.name+".pprof")
	}
	if o.Peak {
		return s.climb(ctx, c, o)
	}
	if o.Warm == 0 {
		o.Warm = max(l.Interval, 2*time.Second)
	}
	return inChild(ctx, o)
}

// climb asks a contender for ever more looks a second, until it falls far short,
// and gives the result with the most. One in which jobs were forgotten is none:
// an overworked scheduler may run a few goroutines again and again.
func (s settings) climb(ctx context.Context, c contender, o order) (best result, err error) {
	best.Contender, best.Jobs = c.name, s.Jobs
	for rate := 50_000.0; ; rate *= 2 {
		s.Rate = rate
		o.Load = s.steadyLoad(s.Jobs)
		o.Load.Lead = leadFor(s.Jobs)
		if c.unfit(o.Load) != "" {
			return best, nil
		}
		if s.Warm == 0 {
			o.Warm = max(2*o.Load.Interval, 2*time.Second)
		}
		r, err := inChild(ctx, o)
		if err != nil {
			return best, err
		}
		if r.LooksPerS > best.LooksPerS && r.Unseen == 0 {
			best = r
		}
		if r.LooksPerS < rate*0.7 {
			return best, nil
		}
	}
}

// runScale shows how CPU a look grows with the number of jobs.
func (s settings) runScale(ctx context.Context, out, progress io.Writer) error {
	sizes := []int{10_000, 100_000, 1_000_000}
	var bySize [][]runs
	for _, jobs := range sizes {
		all, err := s.compare(ctx, s.steadyLoad(jobs), progress)
		if err != nil {
			return err
		}
		bySize = append(bySize, all)
	}
	if s.asJSON {
		return s.writeJSON(out, bySize...)
	}
	s.writeHead(out)
	writeScale(out, sizes, bySize)
	for _, all := range bySize {
		writeNotes(out, all)
	}
	return nil
}

func (s settings) writeHead(out io.Writer) {
	what := fmt.Sprintf("%d jobs, %.0f looks a second", s.Jobs, s.Rate)
	switch s.Mode {
	case "burst":
		what = fmt.Sprintf("%d jobs due in one instant, checks of 1 ms, 64 workers where there are workers", s.Jobs)
	case "peak":
		what = fmt.Sprintf("%d jobs, as many looks as each can do", s.Jobs)
	case "scale":
		what = fmt.Sprintf("%.0f looks a second", s.Rate)
	}
	if s.Garbage > 0 {
		what += fmt.Sprintf(", %d bytes of garbage a check", s.Garbage)
	}
	fmt.Fprintf(out, "%s; medians of %d runs of %v; %s, %s/%s, %d cores\n\n", what, s.Runs, s.Duration,
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
}

// mostStall, in ms, is how late an idle process may be on a quiet machine.
const mostStall = 50

// writeNotes tells what makes figures doubtful.
func writeNotes(out io.Writer, all []runs) {
	for _, r := range all {
		for n, res := range r.results {
			if res.Overran {
				fmt.Fprintf(out, "note: %s, run %d: the admission lasted into the first looks, whose CPU is in it\n", r.name, n+1)
			}
			if res.StallMs > mostStall {
				fmt.Fprintf(out, "note: %s, run %d: the machine stood still for %.0f ms, or was too busy\n", r.name, n+1, res.StallMs)
			}
			if res.Unseen > 0 {
				fmt.Fprintf(out, "note: %s, run %d: %d of %d jobs were not looked at\n", r.name, n+1, res.Unseen, res.Jobs)
			}
		}
	}
}

func (s settings) writeJSON(out io.Writer, sets ...[]runs) error {
	doc := struct {
		Settings settings `json:"settings"`
		Go       string   `json:"go"`
		OS       string   `json:"os"`
		Arch     string   `json:"arch"`
		Cores    int      `json:"cores"`
		Results  []result `json:"results"`
	}{Settings: s, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.GOMAXPROCS(0)}
	for _, all := range sets {
		for _, r := range all {
			doc.Results = append(doc.Results, r.results...)
		}
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "\t")
	return enc.Encode(doc)
}
