package main

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// classFigures are those of the jobs of one class whose end the provider told.
type classFigures struct {
	jobs     int
	polls    float64 // for each job, as the servers counted them
	p50, p95 time.Duration
}

// figures are what one side cost and learned. Everything is counted by the
// servers, for both sides alike; only the instant at which an end was learned
// is the side's own.
type figures struct {
	classes  []classFigures
	requests int
	busiest  int     // requests within one second
	average  float64 // requests in a second
	limited  int     // requests answered with 429
	accepted int     // submissions that made a job
	ends     map[int]end
}

// job is what a server saw of one.
type seenJob struct {
	submitted time.Time
	polls     int
}

func measure(orders []order, e *ends, vendors []*vendor) figures {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := figures{ends: e.all}
	seen := make(map[string]*seenJob)
	var at []time.Time
	for _, v := range vendors {
		f.accepted += v.server.Stats().Accepted
		for _, r := range v.server.Requests() {
			at = append(at, r.At)
			if r.Status == http.StatusTooManyRequests {
				f.limited++
			}
			if r.ID == "" {
				continue
			}
			if seen[r.ID] == nil {
				seen[r.ID] = &seenJob{}
			}
			switch r.Op {
			case loopback.OpSubmit:
				seen[r.ID].submitted = r.At
			case loopback.OpStatus, loopback.OpResult:
				seen[r.ID].polls++
			}
		}
	}
	f.requests, f.busiest, f.average = len(at), busiest(at), average(at)
	for c := range classes {
		f.classes = append(f.classes, figuresOf(c, orders, e.all, seen))
	}
	return f
}

func figuresOf(c int, orders []order, all map[int]end, seen map[string]*seenJob) classFigures {
	var delays []time.Duration
	polls := 0
	for _, o := range orders {
		v, known := all[o.n]
		if o.class != c || !o.ends() || !known || !v.state.Terminal() || seen[v.id] == nil {
			continue
		}
		job := seen[v.id]
		polls += job.polls
		delays = append(delays, v.at.Sub(job.submitted.Add(o.takes)))
	}
	f := classFigures{jobs: len(delays), p50: quantile(delays, 0.5), p95: quantile(delays, 0.95)}
	if f.jobs > 0 {
		f.polls = float64(polls) / float64(f.jobs)
	}
	return f
}

// quantile is the smallest value that so large a part of them does not exceed.
func quantile(all []time.Duration, part float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max(int(math.Ceil(part*float64(len(sorted))))-1, 0)]
}

// busiest is the most that came within any one second.
func busiest(at []time.Time) int {
	slices.SortFunc(at, time.Time.Compare)
	most, from := 0, 0
	for to := range at {
		for at[to].Sub(at[from]) >= time.Second {
			from++
		}
		most = max(most, to-from+1)
	}
	return most
}

// average is how many came in a second, from the first to the last; at is in order.
func average(at []time.Time) float64 {
	if len(at) < 2 {
		return 0
	}
	return float64(len(at)) / max(at[len(at)-1].Sub(at[0]).Seconds(), 1)
}

// summary is what the table at the end shows.
type summary struct {
	plan
	took       time.Duration // on the clock
	ours, loop figures
	problems   []string // what is not accounted for
}

func sumUp(p plan, took time.Duration, ours, loop figures) summary {
	return summary{plan: p, took: took, ours: ours, loop: loop, problems: unaccounted(p.orders, ours)}
}

// unaccounted lists the jobs of which one does not know what became of them, or
// of which another end was told than that of the provider.
func unaccounted(orders []order, f figures) []string {
	var all []string
	for _, o := range orders {
		v, ok := f.ends[o.n]
		switch {
		case !ok:
			all = append(all, o.key()+" has no end")
		case v.told != 1:
			all = append(all, fmt.Sprintf("the end of %s was told %d times", o.key(), v.told))
		case o.ends() != v.state.Terminal(), o.ends() && (o.reason() == jobpoll.ReasonSucceeded) != (v.state == jobpoll.StateSucceeded):
			all = append(all, fmt.Sprintf("%s ended as %q, at the provider it did not", o.key(), v.reason))
		}
	}
	if f.accepted != len(orders) {
		all = append(all, fmt.Sprintf("%d jobs were submitted, the providers made %d", len(orders), f.accepted))
	}
	return all
}
