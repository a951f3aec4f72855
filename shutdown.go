package jobpoll

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// shutdownPatience is how long Run waits for calls that do not honour their
// context, after it has cancelled them.
const shutdownPatience = 10 * time.Second

// stopRun ends a term before its first look. See await for idle.
func (p *Poller) stopRun(run *runState, final bool, idle func()) (woken func()) {
	p.mu.Lock()
	run.draining = true
	p.restWorkers(true)
	p.holdSubmissions(run)
	p.unlock()
	run.cancel(ErrShutdown)
	run.endStore(ErrShutdown)
	over := p.whenOver(&run.crew)
	idle()
	idle = p.releaseLease(run, <-over)
	p.leaveRun(ErrShutdown, final)
	return idle
}

// whenOver gives what is sent once all of a crew have left: a function that tells
// a test clock that whoever received it has gone on to wait for something else.
func (p *Poller) whenOver(c *crew) <-chan func() {
	over := make(chan func(), 1)
	c.whenEmpty(func() { over <- p.busy(endName) })
	return over
}

func endName() string { return "the end of Run" }

// leaveRun lets the waiters go and makes room for the next term or Run.
func (p *Poller) leaveRun(why error, final bool) {
	p.mu.Lock()
	p.run, p.over = nil, final
	p.drained(why)
	p.leaveSubmissions()
	for _, rt := range p.order {
		p.leaveBudget(rt)
		if a := &rt.auth; a.state == authRefreshing {
			a.state = authGood
		}
	}
	for _, r := range p.jobs.hot {
		if r == nil {
			continue
		}
		p.jobs.touch(r)
		for _, w := range r.waiters {
			w.end(nil, why)
		}
		r.waiters = nil
		for _, f := range r.followers {
			f.over()
		}
		r.followers = nil
		if r.again != nil {
			for _, w := range r.again.waiters {
				w.end(nil, why)
			}
			r.again.waiters = nil
		}
	}
	// A callback that has not returned keeps its record: no second one for it.
	for _, h := range p.toServe {
		if r := p.get(h); r != nil {
			r.served = false
		}
	}
	p.toServe = nil
	p.unlock()
	p.waker.close()
	p.waker.swallow()
}

// shutDown ends the last term. See await for idle.
func (p *Poller) shutDown(run *runState, idle func()) (woken func(), err error) {
	over := p.close(run)
	ended := false
	if p.grace > 0 {
		ended, idle = p.await(over, p.grace, idle)
	}
	patience := shutdownPatience
	if !ended {
		run.cancel(ErrShutdown)
		canceled := p.line.now()
		idle, err = p.drain(run, over, idle)
		patience = max(patience-p.line.now().Sub(canceled), time.Second) // some of it is used up
	}
	idle, e := p.lastFlush(run, patience, idle)
	if err = errors.Join(err, e); err == nil { // else something may still be at work: let it lapse
		idle = p.releaseLease(run, idle)
	}
	p.leaveRun(ErrShutdown, true)
	return idle, err
}

// errDeposed is what cuts off the work of an owner that has lost the lease.
var errDeposed = fmt.Errorf("%w: %w", ErrShutdown, ErrNotOwner)

// giveUp ends a term whose lease another has: at once, and nothing is written
// any more. See await for idle.
func (p *Poller) giveUp(run *runState, idle func()) (woken func(), err error) {
	over := p.close(run)
	run.cancel(errDeposed)
	run.endStore(errDeposed)
	idle, err = p.drain(run, over, idle)
	p.leaveRun(errDeposed, err != nil)
	p.standBy()
	return idle, err
}

// close lets nothing new start. See whenOver for what it returns.
func (p *Poller) close(run *runState) <-chan func() {
	p.mu.Lock()
	run.draining = true
	p.restWorkers(true)
	p.backToWaiting()
	p.holdSubmissions(run)
	p.unlock()
	return p.whenOver(&run.crew)
}

// backToWaiting takes the jobs that are due out of the lines for a call.
func (p *Poller) backToWaiting() {
	for _, rt := range p.order {
		for {
			h, l, queue := p.nextReady(rt)
			if l == nil {
				break
			}
			queue.pop()
			_, planned := p.jobs.waits(l)
			if l.hot != 0 {
				p.jobs.hot[l.hot-1].to(phaseWaiting)
			} else {
				l.phase = phaseWaiting
				rt.waiting--
			}
			p.plan(h.slot, planned)
		}
		rt.active = false
	}
	p.active = nil
}

// lastFlush writes what is left, also ends that were not told, and does not
// wait for ever for the store. See await for idle.
func (p *Poller) lastFlush(run *runState, patience time.Duration, idle func()) (woken func(), err error) {
	if p.store == nil {
		return idle, nil
	}
	p.mu.Lock()
	for _, r := range p.jobs.hot {
		if r != nil && r.phase == phaseEnding {
			r.stale = false
			p.touch(r)
		}
	}
	var crew crew
	p.background(&crew, context.WithoutCancel(run.work), func() string { return "the last writes to the store" }, func(ctx context.Context) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		timer := p.line.clock.AfterFunc(patience, func() { cancel(errTimeout) })
		defer timer.Stop()
		p.flush(ctx, true)
	})
	p.mu.Unlock()
	// One that honours its context has a second to return.
	ended, idle := p.await(p.whenOver(&crew), patience+time.Second, idle)
	if !ended {
		return idle, fmt.Errorf("jobpoll: Run: the store has not returned after %v", patience)
	}
	return idle, nil
}

// await waits for what whenOver gave, but no longer than for d. idle ends what the
// test clock knows of the caller's work, and what is returned, that of going on.
func (p *Poller) await(over <-chan func(), d time.Duration, idle func()) (ended bool, woken func()) {
	late := make(chan func(), 1)
	timer := p.line.clock.AfterFunc(d, func() { late <- p.busy(endName) })
	idle()
	select {
	case woken = <-over:
		if !timer.Stop() {
			(<-late)()
		}
		return true, woken
	case woken = <-late:
	}
	select {
	case also := <-over: // both at once
		also()
		return true, woken
	default:
		return false, woken
	}
}

// drain waits for what is under way and was cancelled. See await for idle.
func (p *Poller) drain(run *runState, over <-chan func(), idle func()) (woken func(), err error) {
	patience := p.line.clock.AfterFunc(shutdownPatience/2, func() { run.endStore(ErrShutdown) })
	defer patience.Stop()
	ended, idle := p.await(over, shutdownPatience, idle)
	if ended {
		return idle, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var stuck []error
	for _, r := range p.jobs.hot {
		if r != nil && len(stuck) < 8 && (r.call != nil || r.stuck != nil || r.served) {
			what := "a callback"
			if r.call != nil || r.stuck != nil {
				what = "a call"
			}
			stuck = append(stuck, fmt.Errorf("jobpoll: %s: %s has not returned %v after its context ended", r.job.Key(), what, shutdownPatience))
		}
	}
	return idle, errors.Join(append([]error{errors.New("jobpoll: Run: user code does not honour its context")}, stuck...)...)
}
