package jobpoll

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// shutdownPatience is how long Run waits for calls that do not honour their
// context, after it has cancelled them.
const shutdownPatience = 10 * time.Second

// stopRun ends a term before its first look.
func (p *Poller) stopRun(run *runState, final bool) {
	p.mu.Lock()
	run.draining = true
	p.restWorkers(true)
	p.holdSubmissions(run)
	p.unlock()
	run.cancel(ErrShutdown)
	run.endStore(ErrShutdown)
	run.wg.Wait()
	p.releaseLease(run)
	p.leaveRun(ErrShutdown, final)
}

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

func (p *Poller) shutDown(run *runState) error {
	done := p.close(run)
	if p.grace <= 0 || !p.ends(done, p.grace) {
		run.canceled = p.line.now()
		run.cancel(ErrShutdown)
	}
	err := p.drain(run, done)
	patience := shutdownPatience
	if run.work.Err() != nil { // some of it is used up
		patience = max(patience-p.line.now().Sub(run.canceled), time.Second)
	}
	if e := p.lastFlush(run, patience); e != nil {
		err = errors.Join(err, e)
	}
	if err == nil { // else something may still be at work: let it lapse
		p.releaseLease(run)
	}
	p.leaveRun(ErrShutdown, true)
	return err
}

// errDeposed is what cuts off the work of an owner that has lost the lease.
var errDeposed = fmt.Errorf("%w: %w", ErrShutdown, ErrNotOwner)

// giveUp ends a term whose lease another has: at once, and nothing is written
// any more.
func (p *Poller) giveUp(run *runState) error {
	done := p.close(run)
	run.canceled = p.line.now()
	run.cancel(errDeposed)
	run.endStore(errDeposed)
	err := p.drain(run, done)
	p.leaveRun(errDeposed, err != nil)
	p.standBy()
	return err
}

// close lets nothing new start; what it returns is closed once all that was
// under way has ended.
func (p *Poller) close(run *runState) <-chan struct{} {
	p.mu.Lock()
	run.draining = true
	p.restWorkers(true)
	p.backToWaiting()
	p.holdSubmissions(run)
	p.unlock()
	done := make(chan struct{})
	go func() {
		run.wg.Wait()
		close(done)
	}()
	return done
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
// wait for ever for the store.
func (p *Poller) lastFlush(run *runState, patience time.Duration) error {
	if p.store == nil {
		return nil
	}
	p.mu.Lock()
	for _, r := range p.jobs.hot {
		if r != nil && r.phase == phaseEnding {
			r.stale = false
			p.touch(r)
		}
	}
	p.mu.Unlock()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(run.work))
	defer cancel(nil)
	late, done := make(chan struct{}), make(chan struct{})
	timer := p.line.clock.AfterFunc(patience, func() { cancel(errTimeout) })
	defer timer.Stop()
	// One that honours its context has a second to return.
	last := p.line.clock.AfterFunc(patience+time.Second, func() { close(late) })
	defer last.Stop()
	go func() {
		defer close(done)
		p.flush(ctx, true)
	}()
	select {
	case <-done:
	case <-late:
		select {
		case <-done:
		default:
			return fmt.Errorf("jobpoll: Run: the store has not returned after %v", patience)
		}
	}
	return nil
}

// ends reports whether done is closed within d.
func (p *Poller) ends(done <-chan struct{}, d time.Duration) bool {
	late := make(chan struct{})
	var once sync.Once
	t := p.line.clock.AfterFunc(d, func() { once.Do(func() { close(late) }) })
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-late:
	}
	select {
	case <-done: // both at once
		return true
	default:
		return false
	}
}

// drain waits for what is under way and was cancelled.
func (p *Poller) drain(run *runState, done <-chan struct{}) error {
	if run.work.Err() == nil { // all has ended within the grace
		return nil
	}
	patience := p.line.clock.AfterFunc(shutdownPatience/2, func() { run.endStore(ErrShutdown) })
	defer patience.Stop()
	if p.ends(done, shutdownPatience) {
		return nil
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
	return errors.Join(append([]error{errors.New("jobpoll: Run: user code does not honour its context")}, stuck...)...)
}
