package jobpoll

import (
	"context"
	"fmt"
	"time"
)

// cancelTimeout bounds the call of CancelRemote.
const cancelTimeout = 5 * time.Second

// stoppedForTime are the reasons after which the remote job may run on unwanted.
func stoppedForTime(r Reason) bool {
	switch r {
	case ReasonDeadline, ReasonQueueLimit, ReasonProcessingLimit, ReasonNoProgress:
		return true
	}
	return false
}

// cancelBounded asks the provider to cancel, for a bounded time on the
// injected clock, also if the Canceler does not honour its context.
func (p *Poller) cancelBounded(ctx context.Context, run *runState, rt *route, job Job) string {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := p.line.clock.AfterFunc(cancelTimeout, func() { cancel(errTimeout) })
	defer timer.Stop()
	result := make(chan error, 1)
	run.crew.enter()
	go func() {
		defer run.crew.leave()
		result <- p.cancelRemote(timedContext{ctx}, rt, job)
	}()
	select {
	case err := <-result:
		if err == nil {
			return "ok"
		}
		return scrubErr(err)
	case <-ctx.Done():
		return scrubErr(context.Cause(ctx))
	}
}

// Cancel asks the provider to cancel the job, through the Checker's Canceler,
// and goes on watching: the job may still succeed, and its end is told as the
// provider tells it. The call is charged to the route's budget. It returns
// ErrUnknownJob, ErrNoCanceler, the end of ctx, or the provider's refusal.
func (p *Poller) Cancel(ctx context.Context, k Key, cause error) error {
	p.mu.Lock()
	r := p.find(k)
	if r == nil || r.phase == phaseEnding {
		p.mu.Unlock()
		return fmt.Errorf("jobpoll: %s: %w", k, ErrUnknownJob)
	}
	rt, job := r.route, r.job
	p.mu.Unlock()
	if rt.canceler == nil {
		return fmt.Errorf("jobpoll: %s: %w", k, ErrNoCanceler)
	}
	if err := p.cancelRemote(ctx, rt, job); err != nil {
		return &cancelError{k, err}
	}
	p.log.Info("job cancelled at the provider's", "job", k.String(), "cause", scrubErr(cause))
	_ = p.PollNow(k) // it may have ended meanwhile
	return nil
}

// cancelError is the error of a Canceler, with a text that can be logged.
type cancelError struct {
	key Key
	err error
}

func (e *cancelError) Error() string {
	return "jobpoll: " + e.key.String() + ": cancel: " + scrubErr(e.err)
}

func (e *cancelError) Unwrap() error { return e.err }

func (p *Poller) cancelRemote(ctx context.Context, rt *route, job Job) (err error) {
	g, err := rt.budget.acquire(ctx, LaneStatus)
	if err != nil {
		return err
	}
	err = errGoexit // until it has returned
	defer func() {
		read := readError(err)
		rt.meter.refused(read)
		p.answered(rt, job.Key(), g, read)
	}()
	return p.guard(job.Key(), "Cancel", func() error { return rt.canceler.Cancel(ctx, job) })
}
