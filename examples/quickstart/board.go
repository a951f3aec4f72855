package main

import (
	"fmt"
	"strings"
	"sync"

	"github.com/jobpoll/jobpoll"
)

// board is what there is to see while it runs. Methods may be called from
// several goroutines at once.
type board struct {
	plan  plan
	clock fastClock

	mu      sync.Mutex
	vendors []*vendor
	loop    *loop
	jobs    []boardJob // by number, from 1 on
	events  []string
}

type boardJob struct {
	submitted bool
	state     jobpoll.State
	reason    jobpoll.Reason // ReasonNone while it is watched
}

func newBoard(p plan, clock fastClock) *board {
	return &board{plan: p, clock: clock, jobs: make([]boardJob, len(p.orders)+1)}
}

// watch tells where calls are counted.
func (b *board) watch(vendors []*vendor, l *loop) { b.vendors, b.loop = vendors, l }

func (b *board) class(n int) string { return classes[b.plan.orders[n-1].class].name }

// set notes the state of a job; what comes after its end changes nothing.
func (b *board) set(n int, s jobpoll.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j := &b.jobs[n]; j.reason == jobpoll.ReasonNone {
		j.submitted, j.state = true, max(j.state, s)
	}
}

func (b *board) stop(n int, r jobpoll.Reason) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.jobs[n].submitted, b.jobs[n].reason = true, r
}

func (b *board) event(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, fmt.Sprintf("%5s  %s", minutes(b.clock.since()), fmt.Sprintf(format, args...)))
}

// eventsFrom returns the events from the nth on.
func (b *board) eventsFrom(n int) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.events[min(n, len(b.events)):]...)
}

// tally counts the jobs of a class by where they are.
type tally struct {
	name                                      string
	jobs, queued, running, succeeded, stopped int
}

// view is the board at an instant.
type view struct {
	at                   string
	speed                int
	providers            string
	classes              []tally
	requests, limited    int
	loopEnds, loopAsks   int
	loopLimited, allJobs int
	events               []string // the latest
}

const latestEvents = 6

func (b *board) view() view {
	v := view{at: minutes(b.clock.since()), speed: b.plan.speed, providers: strings.Join(b.plan.providers, ", "), allJobs: len(b.plan.orders)}
	v.requests, v.limited = asked(b.vendors)
	v.loopAsks, v.loopLimited = asked(b.loop.vendors)
	v.loopEnds = b.loop.ends.count()
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range classes {
		t := tally{name: classes[c].name}
		for _, o := range b.plan.orders {
			if o.class == c {
				t.add(b.jobs[o.n])
			}
		}
		v.classes = append(v.classes, t)
	}
	v.events = append(v.events, b.events[max(len(b.events)-latestEvents, 0):]...)
	return v
}

func (t *tally) add(j boardJob) {
	t.jobs++
	switch {
	case j.reason == jobpoll.ReasonSucceeded:
		t.succeeded++
	case j.reason != jobpoll.ReasonNone:
		t.stopped++
	case j.state == jobpoll.StateRunning:
		t.running++
	case j.submitted:
		t.queued++
	}
}

// asked counts the requests that providers got and those that they refused.
func asked(all []*vendor) (requests, limited int) {
	for _, v := range all {
		s := v.server.Stats()
		requests += s.Requests
		limited += s.RateLimited + int(v.refused.Load())
	}
	return requests, limited
}
