package jobpoll

import (
	"context"
	"errors"
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
	switch err := p.cancelRemote(ctx, &run.crew, rt, job); {
	case err == nil:
		return "ok"
	case errors.Is(err, errTimeout):
		return errTimeout.Error()
	default:
		return scrubErr(err)
	}
}

// Cancel asks the provider to cancel the job, through the Checker's Canceler, and
// goes on watching: the job may still succeed, and its end is told as the provider
// tells it; where the provider does not know the job any more it is ReasonCanceled.
// A look follows at once, also where the cancellation was refused as of a job that
// has ended. The cause is for the log alone. The call is charged to the route's
// budget. It returns ErrUnknownJob, ErrNoCanceler, the end of ctx, or the provider's
// refusal. A call that lasts longer than CheckTimeout is given up, also if the
// Canceler does not heed its context, and the error matches
// context.DeadlineExceeded.
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
	if err := p.cancelRemote(ctx, &crew{}, rt, job); err != nil {
		if tooLate(err) {
			_ = p.PollNow(k)
		}
		return &cancelError{k, err}
	}
	p.log.Info("job cancelled at the provider's", "job", k.String(), "cause", scrubErr(cause))
	now, _ := p.lock()
	if r := p.find(k); r != nil && r.phase != phaseEnding {
		r.canceled = true
		p.touch(r)
		p.poke(r, CauseNow, now) // it may have ended meanwhile
	}
	p.unlock()
	p.waker.kick()
	return nil
}

// tooLate reports whether a cancellation was refused as it is of a job that has
// ended, by most providers.
func tooLate(err error) bool {
	var ce *CheckError
	if !errors.As(readError(err), &ce) {
		return false
	}
	return ce.Kind == ErrorInvalid || ce.Kind == ErrorNoSuchJob
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

// cancelRemote makes the call, as one of the crew. It waits for the budget until
// ctx ends, and for the answer no longer than CheckTimeout.
func (p *Poller) cancelRemote(ctx context.Context, crew *crew, rt *route, job Job) error {
	g, err := rt.budget.acquire(ctx, LaneStatus)
	if err != nil {
		return err
	}
	call, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := p.line.clock.AfterFunc(rt.CheckTimeout, func() { cancel(errTimeout) })
	defer timer.Stop()
	timed := timedContext{call}
	result := make(chan error, 1)
	crew.enter()
	go func() {
		defer crew.leave()
		err := errGoexit // until it has returned
		defer func() { result <- err }()
		err = p.guard(job.Key(), "Cancel", func() error { return rt.canceler.Cancel(timed, job) })
	}()
	select {
	case err = <-result:
	case <-call.Done():
		err = contextError(timed)
	}
	read := readError(err)
	rt.meter.refused(read)
	p.answered(rt, job.Key(), g, read)
	return err
}
