package main

import (
	"context"
	"sync"
	"time"

	"github.com/jobpoll/jobpoll"
)

const every = 5 * time.Second

// loop is what everybody writes first: for each job a goroutine that sleeps
// five seconds and asks, until there is an end or patience is over. An error is
// a reason to sleep and ask again.
type loop struct {
	clock    fastClock
	vendors  []*vendor
	patience time.Duration
	ends     *ends
}

// run returns when all orders have an end, or ctx has.
func (l *loop) run(ctx context.Context, orders []order) {
	var jobs sync.WaitGroup
	for _, o := range orders {
		jobs.Go(func() { l.one(ctx, o) })
	}
	jobs.Wait()
}

func (l *loop) one(ctx context.Context, o order) {
	if !l.clock.sleep(ctx, o.arrives-l.clock.since()) {
		return
	}
	a := of(l.vendors, o).adapter
	job, _, err := a.Submit(ctx, o.submission())
	for err != nil {
		if !l.clock.sleep(ctx, every) {
			return
		}
		job, _, err = a.Submit(ctx, o.submission())
	}
	for looks := 1; l.clock.sleep(ctx, every); looks++ {
		rep, err := ask(ctx, a, job)
		now := l.clock.Now()
		switch {
		case err == nil && rep.State.Terminal():
			l.ends.tell(o.n, end{id: job.ID, at: now, state: rep.State, reason: rep.State.String(), looks: looks})
			return
		case now.Sub(job.SubmittedAt) >= l.patience:
			l.ends.tell(o.n, end{id: job.ID, at: now, state: rep.State, reason: "gave up", looks: looks})
			return
		}
	}
}

// ask is one look, and the result where that takes a call of its own.
func ask(ctx context.Context, a jobpoll.Checker, job jobpoll.Job) (jobpoll.Report, error) {
	rep, err := a.Check(ctx, job)
	f, fetches := a.(jobpoll.Fetcher)
	if err != nil || rep.State != jobpoll.StateSucceeded || !fetches {
		return rep, err
	}
	return f.Fetch(ctx, job, rep)
}
