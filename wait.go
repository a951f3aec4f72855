package jobpoll

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// endWaiter is one call of Wait.
type endWaiter struct {
	done    chan struct{}
	outcome *Outcome
	err     error // why there is no outcome, or what lies behind it
}

// end lets the waiter go. Called at most once, under the lock.
func (w *endWaiter) end(o *Outcome, err error) {
	w.outcome, w.err = o, err
	close(w.done)
}

// Wait watches a job, if it is not watched yet, and waits for its end. The
// error is nil if and only if the job succeeded; else it is a *StopError, but
// for a job that cannot be watched (see Watch).
//
// The end of ctx, or of Run (ErrShutdown), or of the lease (ErrNotOwner) ends the waiting and not the job:
// the *StopError then has ReasonNone, wraps the cause, and carries what is
// known of the job. A Wait that begins after Run has returned ends at once in
// the same way, with the job watched; one that begins before the first Run
// waits for it.
func (p *Poller) Wait(ctx context.Context, job Job) (Outcome, error) {
	w := &endWaiter{done: make(chan struct{})}
	o, err := p.watch(ctx, job, w)
	if o != nil {
		return *o, o.Err()
	}
	if err != nil {
		return Outcome{Job: job}, err
	}
	p.mu.Lock()
	over := p.over
	p.mu.Unlock()
	if over {
		p.leaveWait(job.Key(), w, ErrShutdown)
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		p.leaveWait(job.Key(), w, contextError(ctx))
	}
	if w.outcome == nil {
		return p.unfinished(job, w.err)
	}
	if w.outcome.Reason == ReasonSucceeded {
		return *w.outcome, nil
	}
	return *w.outcome, &StopError{Outcome: *w.outcome, Err: originalError(w.err)}
}

// leaveWait ends a waiter that does not wait on, unless its job has ended.
func (p *Poller) leaveWait(k Key, w *endWaiter, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.outcome != nil || w.err != nil {
		return
	}
	if p.run == nil && !p.over {
		why = fmt.Errorf("%w (Run is not running)", why)
	}
	w.end(nil, why)
	if r := p.find(k); r != nil {
		leave := func(v *endWaiter) bool { return v == w }
		r.waiters = slices.DeleteFunc(r.waiters, leave)
		if r.again != nil {
			r.again.waiters = slices.DeleteFunc(r.again.waiters, leave)
		}
	}
}

// Drain waits until no job is watched or submitted any more and every end has been
// taken by OnStop (an ambiguous submission has ended): for programs that are done when their jobs are. Jobs that are added
// meanwhile are waited for too. It returns an error when ctx ends first, or Run
// (ErrShutdown), and after Run at once where something is left. The jobs end
// while Run runs: before the first Run a Drain waits for it.
func (p *Poller) Drain(ctx context.Context) error {
	w := &endWaiter{done: make(chan struct{})}
	p.mu.Lock()
	if err := p.tenancy.refusal(); err != nil {
		p.mu.Unlock()
		return fmt.Errorf("jobpoll: Drain: %w", err)
	}
	left, over := p.jobs.Len()+p.submitsLeft(), p.over
	if left > 0 && !over {
		p.drains = append(p.drains, w)
	}
	p.mu.Unlock()
	switch {
	case left == 0:
		return nil
	case over:
		return fmt.Errorf("jobpoll: Drain: %d jobs are left: %w", left, ErrShutdown)
	}
	select {
	case <-w.done:
		if w.err == nil {
			return nil
		}
	case <-ctx.Done():
		p.mu.Lock()
		p.drains = slices.DeleteFunc(p.drains, func(v *endWaiter) bool { return v == w })
		if w.err == nil {
			w.err = contextError(ctx)
		}
		p.mu.Unlock()
	}
	p.mu.Lock()
	left = p.jobs.Len() + p.submitsLeft()
	p.mu.Unlock()
	return fmt.Errorf("jobpoll: Drain: %d jobs are left: %w", left, w.err)
}

// drained lets those go who wait for the last job, with the reason why if it
// is not gone. Called under the lock.
func (p *Poller) drained(why error) {
	for _, w := range p.drains {
		w.end(nil, why)
	}
	p.drains = nil
}

// contextError says why a context has ended: it matches both its Err and its
// cause.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	switch {
	case cause == nil: // of a context that is not of package context
		return err
	case errors.Is(cause, err):
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// unfinished is what a Wait returns that ends before its job.
func (p *Poller) unfinished(job Job, cause error) (Outcome, error) {
	now := p.line.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	o := Outcome{Job: job}
	if r := p.find(job.Key()); r != nil {
		o = *p.conclude(r, ending{via: ViaUnknown}, now)
		if r.phase != phaseEnding && r.success == nil {
			o.DetectedAt = time.Time{} // no end was
		}
	}
	return o, &StopError{Outcome: o, Err: cause}
}

// Wait watches one job to its end, with defaults for everything: no Config, no
// Route. Job.Route may be empty; it only names the job in errors. The error is
// as that of Poller.Wait. It runs on package time. The end of ctx ends it at once,
// with what is known of the job; a call under way is cancelled, and what does not
// heed that goes on in the background until it returns.
func Wait(ctx context.Context, c Checker, job Job) (Outcome, error) {
	job.Route = cmp.Or(job.Route, "job")
	p, err := New(Config{Routes: []Route{{Name: job.Route, Checker: c}}})
	if err != nil {
		return Outcome{Job: job}, err
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- p.Run(run) }()
	o, err := p.Wait(ctx, job)
	stop()
	select {
	case e := <-ended:
		if e != nil {
			err = errors.Join(err, fmt.Errorf("jobpoll: %s: %w", job.Key(), e))
		}
	case <-ctx.Done():
	}
	return o, err
}
