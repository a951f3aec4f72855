package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

// plan is what is going to be shown.
type plan struct {
	options
	orders   []order
	patience time.Duration
}

// demonstrate runs both sides until each job has an end on each, or ctx ends.
func demonstrate(ctx context.Context, p plan, s *screen) (summary, error) {
	clock := newClock(p.speed)
	ours, err := startVendors(p.providers, p.orders, clock)
	if err != nil {
		return summary{}, err
	}
	defer closeAll(ours)
	theirs, err := startVendors(p.providers, p.orders, clock)
	if err != nil {
		return summary{}, err
	}
	defer closeAll(theirs)

	b := newBoard(p, clock)
	loop := &loop{clock: clock, vendors: theirs, patience: p.patience, ends: newEnds(len(p.orders))}
	b.watch(ours, loop)
	ends := newEnds(len(p.orders))
	poller, err := newPoller(ours, p, clock, ends, b)
	if err != nil {
		return summary{}, err
	}

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	var ran, submitted error
	all.Go(func() {
		if ran = poller.Run(ctx); ran != nil {
			stop(ran)
		}
	})
	all.Go(func() {
		if submitted = poller.submitAll(ctx, p.orders); submitted != nil {
			stop(submitted)
		}
	})
	all.Go(func() { loop.run(ctx, p.orders) })
	shown := make(chan struct{})
	over := make(chan struct{})
	go func() {
		defer close(shown)
		s.show(b, over)
	}()
	for _, done := range []<-chan struct{}{ends.done, loop.ends.done} {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	cause := context.Cause(ctx)
	took := clock.since()
	stop(nil)
	all.Wait()
	close(over)
	<-shown
	if cause != nil {
		return summary{}, errors.Join(ran, submitted)
	}
	return sumUp(p, took, measure(p.orders, ends, ours), measure(p.orders, loop.ends, theirs)), nil
}
