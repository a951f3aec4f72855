package jobpoll

import (
	"context"
	"sync"
	"time"
)

// runState is one Run under way.
type runState struct {
	work     context.Context // of calls and callbacks: ends after the grace
	cancel   context.CancelCauseFunc
	store    context.Context // of the store: outlasts work, so that what was done is also written
	endStore context.CancelCauseFunc
	wg       sync.WaitGroup
	draining bool // guarded by Poller.mu
}

func (r *runState) open() bool { return !r.draining }

// Run does the work until ctx ends: it restores what the Store has (unless
// Restore was called), looks, and tells. It returns nil when ctx has ended and
// all its goroutines have. Jobs that are not done stay, and go on with the
// next Run; calls under way are given ShutdownGrace and then cancelled, which
// counts as no answer. Callbacks not yet made are made by the next Run, or
// after a restart from the Store.
//
// Run may be called again after it returned, not twice at once (ErrRunning).
// It returns an error if the Store cannot be read at the start, or if calls do
// not honour their context and do not return.
func (p *Poller) Run(ctx context.Context) error {
	p.mu.Lock()
	if p.run != nil {
		p.mu.Unlock()
		return ErrRunning
	}
	run := &runState{}
	run.work, run.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	run.store, run.endStore = context.WithCancelCause(context.WithoutCancel(ctx))
	p.run, p.over = run, false
	p.mu.Unlock()
	defer run.cancel(nil)
	defer run.endStore(nil)

	wake := p.waker.open()
	p.waker.kick()
	if err := p.restoreOnce(ctx); err != nil && ctx.Err() == nil {
		p.stopRun(run)
		return err
	}
	p.serveLeft()
	timer := p.line.clock.AfterFunc(heartbeat, p.waker.kick)
	defer timer.Stop()
	for ctx.Err() == nil {
		got, idle := p.waker.take()
		next := p.tick(got)
		if next < 0 {
			timer.Stop()
		} else {
			timer.Reset(next)
		}
		idle()
		select {
		case <-ctx.Done():
		case <-wake:
		}
	}
	timer.Stop()
	return p.shutDown(run)
}

// serveLeft takes up the callbacks that an earlier Run left.
func (p *Poller) serveLeft() {
	now, _ := p.lock()
	for s := int32(0); s < p.jobs.End(); s++ {
		r := p.jobs.Get(s)
		if r == nil {
			continue
		}
		if r.update != nil || r.phase == phaseEnding {
			if _, planned := p.due.At(r.slot); r.phase == phaseEnding && planned {
				p.due.Set(r.slot, int64(now)) // do not wait for its next try
				continue
			}
			p.serve(r)
		}
	}
	p.unlock()
}

// tickBatch bounds the work of one hold of the lock.
const tickBatch = 512

// maxDraws is how many random numbers are drawn ahead of a hold of the lock.
const maxDraws = 64

// tick does all work that is due and says how long it may sleep; less than
// zero for ever.
func (p *Poller) tick(got []routeGrant) time.Duration {
	for {
		now := p.line.now()
		for len(p.draws) < maxDraws { // user code: before the lock
			p.draws = append(p.draws, p.rand())
		}
		p.mu.Lock()
		for _, g := range got {
			if g.rt.want == g.w {
				g.rt.want = nil
			}
			g.rt.grants = append(g.rt.grants, g.g)
		}
		got = nil
		if j := p.line.takeJump(); j != 0 {
			p.jump(j, now)
		}
		more := p.popDue(now)
		p.dispatch(now)
		more = more || len(p.draws) == 0
		next := p.sleep(now)
		p.unlock()
		if !more {
			return next
		}
	}
}

// draw gives a random number that was drawn before the lock was taken. Only
// the loop of Run calls it, and leaves off when there are none left.
func (p *Poller) draw() float64 {
	d := p.draws[len(p.draws)-1]
	p.draws = p.draws[:len(p.draws)-1]
	return d
}

// popDue takes up to a batch of due records; true if there are more.
func (p *Poller) popDue(now Stamp) bool {
	for range tickBatch {
		slot, at, ok := p.due.Peek()
		if !ok || at > int64(now) {
			return false
		}
		if len(p.draws) == 0 {
			return true
		}
		p.due.Pop()
		r := p.jobs.Get(slot)
		if r == nil {
			continue
		}
		switch r.phase {
		case phaseWaiting:
			p.becomeDue(r, now)
		case phaseCalling:
			p.timeOut(r, now)
		case phaseEnding:
			p.serve(r)
		}
	}
	return true
}

// becomeDue puts a record in the line for a call.
func (p *Poller) becomeDue(r *record, now Stamp) {
	rt := r.route
	switch {
	case r.cause == CauseParked, p.closedUntil(rt, now) > now:
		p.dueWhileClosed(r, now)
	case rt.auth.state == authHeld && p.authOver(r, now):
		p.finish(r, ending{reason: ReasonAuth, via: ViaLocal}, now)
	case rt.auth.state == authHeld && rt.waiting > 0:
		// One probe at a time.
		p.keepBack(r)
		p.schedule(r, step{at: now.Add(authProbe), cause: CauseAuth}, now)
	default:
		r.to(phaseReady)
		if r.next == callFetch {
			rt.outputs.push(r.handle())
		} else {
			rt.ready.push(r.handle())
		}
	}
}

func (p *Poller) authOver(r *record, now Stamp) bool {
	// A job that came later has the whole grace too.
	return r.rules.AuthGrace != NoLimit && now.Sub(later(r.route.auth.since, r.submitted)) >= r.rules.AuthGrace
}

// dueWhileClosed asks the core about a record that is due on a closed route:
// it waits, is parked, or stops.
func (p *Poller) dueWhileClosed(r *record, now Stamp) {
	r.to(phaseWaiting)
	if r.route.auth.held() {
		if p.authOver(r, now) {
			p.finish(r, ending{reason: ReasonAuth, via: ViaLocal}, now)
			return
		}
		p.keepBack(r)
	}
	d := p.decide(r, now, p.draw())
	if d.stop != ReasonNone {
		p.finish(r, ending{reason: d.stop, via: ViaLocal, unfinished: r.track.GoodAt}, now)
		return
	}
	p.schedule(r, d, now)
}

// jump takes a step of the wall clock, or a suspend, in. After one forward
// every waiting job is looked at soon, as far as its floors and the budget
// allow; one back changes nothing, waits are on the timeline.
func (p *Poller) jump(by time.Duration, now Stamp) {
	p.meters.clockJumps.Add(1)
	for s := int32(0); by > 0 && s < p.jobs.End(); s++ {
		r := p.jobs.Get(s)
		if r == nil || r.phase != phaseWaiting {
			continue
		}
		at := later(later(now, r.floor()), r.planned.Add(-by))
		if at < r.planned {
			r.planned, r.cause = at, CauseWake
			p.due.Set(r.slot, int64(at))
		}
	}
	e := JumpEvent{By: by, At: toWall(now, p.line.shift())}
	p.after = append(p.after, func() {
		p.log.Warn("the wall clock jumped or the machine was suspended", "by", by)
		if f := p.hooks.ClockJumped; f != nil {
			p.hook("ClockJumped", Key{}, func() { f(e) })
		}
	})
}

// sleep is how long nothing will be due.
func (p *Poller) sleep(now Stamp) time.Duration {
	next := never
	if _, at, ok := p.due.Peek(); ok {
		next = max(time.Duration(at-int64(now)), 0)
		next = min(next, heartbeat)
	}
	next = min(next, p.holds.expire(now, p.giveJobSlot))
	next = min(next, p.flushSoon(now))
	if len(p.early.list) > 0 {
		p.dropEarly(p.early.expire(now))
	}
	if len(p.early.list) > 0 {
		next = min(next, p.early.next().Sub(now))
	}
	if p.jobs.Len() > 0 {
		next = min(next, heartbeat)
	}
	if next == never {
		return -1
	}
	return next
}
