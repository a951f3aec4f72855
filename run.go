package jobpoll

import (
	"context"
	"errors"
	"time"
)

// runState is one term of Run: all of it, but where other owners of the Store
// come in between.
type runState struct {
	work     context.Context // of calls and callbacks: ends after the grace
	cancel   context.CancelCauseFunc
	store    context.Context // of the store: outlasts work, so that what was done is also written
	endStore context.CancelCauseFunc
	crew     crew

	// Guarded by Poller.mu.
	draining bool
	barred   bool   // not the owner, or not surely
	lost     bool   // another is
	alarm    *alarm // nil until the store has been read
}

// open reports whether something new may start. Called under the lock.
func (r *runState) open() bool { return !r.draining && !r.barred }

// Run does the work until ctx ends: it restores what the Store has (unless
// Restore was called), looks, and tells. It returns nil when ctx has ended and
// all its goroutines have. Jobs that are not done stay, and go on with the
// next Run; calls under way are given ShutdownGrace and then cancelled, which
// counts as no answer. Callbacks not yet made are made by the next Run, or
// after a restart from the Store.
//
// Where the Store is a Leaser, Run first takes its lease and waits while another
// Poller has it. Meanwhile this one knows no jobs and takes none over: Watch,
// Wait, Submit, Notify and Restore return an error that matches ErrNotOwner. Run
// takes over within 4/3 of Config.LeaseTTL after the last renewal of an owner
// that died, and within a third of it after one that ended well. It ends its
// looks and callbacks when another has taken the lease, forgets the jobs, which
// are the other's now, and waits again.
//
// Run may be called again after it returned, not twice at once (ErrRunning).
// It returns an error if the Store cannot be read, or its lease cannot be asked
// for, at the start, or if calls do not honour their context and do not return.
func (p *Poller) Run(ctx context.Context) error {
	p.mu.Lock()
	if p.running {
		p.mu.Unlock()
		return ErrRunning
	}
	p.running, p.over = true, false
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.running, p.tenancy.standby = false, false
		p.tenancy.change()
		p.mu.Unlock()
	}()
	err := errNextTerm
	idle := noBusy
	for first := true; err == errNextTerm; first = false {
		idle, err = p.runTerm(ctx, first, idle)
	}
	idle()
	return err
}

// errNextTerm is what runTerm returns when Run goes on.
var errNextTerm = errors.New("the next term")

// runTerm is Run as long as this Poller is the owner of its Store. See await for
// woken.
func (p *Poller) runTerm(ctx context.Context, first bool, woken func()) (idle func(), err error) {
	run := &runState{barred: p.tenancy.leaser != nil}
	run.work, run.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	run.store, run.endStore = context.WithCancelCause(context.WithoutCancel(ctx))
	p.mu.Lock()
	p.run = run
	p.attachSubmissions(run)
	p.mu.Unlock()
	defer run.cancel(nil)
	defer run.endStore(nil)

	woken, err = p.awaitLease(ctx, !first, woken)
	if err != nil || p.tenancy.leaser != nil && ctx.Err() != nil {
		return p.stopRun(run, true, woken), err
	}
	work, idle := p.busyContext(ctx, func() string { return "restoring" })
	woken()
	p.serveLeft() // first: what is restored is served at once, and would be served twice
	if err := p.restoreOnce(work); err != nil && ctx.Err() == nil {
		if first {
			return p.stopRun(run, true, idle), err
		}
		idle = p.stopRun(run, false, idle) // the Store has gone again: from the start
		return p.rest(ctx, idle), errNextTerm
	}
	p.replanSoon()
	wake := p.waker.open()
	p.waker.kick()
	idle()
	alarm := newAlarm(p.line.clock, p.waker.kick)
	defer p.setAlarm(alarm, -1) // again, since who still works may have set it
	p.mu.Lock()
	run.alarm = alarm
	p.mu.Unlock()
	for ctx.Err() == nil && !p.lostLease(run) {
		got, idle := p.waker.take()
		p.tick(run, got)
		idle()
		select { // it is an idle worker that hears the alarm, if there is something to hear
		case <-ctx.Done():
		case <-wake:
		}
	}
	p.setAlarm(alarm, -1)
	idle = p.busy(endName)
	p.waker.close() // nobody hears it any more
	p.waker.swallow()
	if !p.lostLease(run) {
		return p.shutDown(run, idle)
	}
	if idle, err = p.giveUp(run, idle); err == nil {
		err = errNextTerm
	}
	return idle, err
}

// serveLeft takes up the callbacks that an earlier Run left.
func (p *Poller) serveLeft() {
	now, _ := p.lock()
	for _, r := range p.jobs.hot {
		if r == nil || r.update == nil && r.phase != phaseEnding {
			continue
		}
		if _, planned := p.retries.At(r.slot); r.phase == phaseEnding && planned {
			p.retries.Set(r.slot, int64(now)) // do not wait for its next try
			continue
		}
		p.serve(r)
	}
	p.unlock()
}

// tickBatch bounds the work of one hold of the lock.
const tickBatch = 512

// Where the random numbers are the user's code, so many are drawn ahead of a
// hold of the lock.
const (
	maxDraws    = 64
	workerDraws = 4
)

// drawAhead draws random numbers for a hold of the lock that is to come. It
// draws none where they may be drawn under it.
func (p *Poller) drawAhead(n int) []float64 {
	if p.ownRand {
		return nil
	}
	some := make([]float64, n)
	for i := range some {
		some[i] = p.rand()
	}
	return some
}

func (p *Poller) canDraw() bool { return p.ownRand || len(p.draws) > 0 }

// draw gives a random number under the lock, where canDraw.
func (p *Poller) draw() float64 {
	if p.ownRand {
		return p.rand()
	}
	d := p.draws[0]
	p.draws = p.draws[1:]
	return d
}

// tick does all work that is due and sets the alarm.
func (p *Poller) tick(run *runState, got []routeGrant) {
	for {
		now, raw := p.line.read()
		some := p.drawAhead(maxDraws)
		p.mu.Lock()
		p.reading = raw
		if len(p.draws) < maxDraws {
			p.draws = append(p.draws, some...)
		}
		for _, g := range got {
			if g.rt.want == g.w {
				g.rt.want = nil
			}
			g.rt.grants = append(g.rt.grants, g.g)
			p.activate(g.rt)
		}
		got = nil
		more := p.doDue(now)
		p.wakeWorker(now)
		p.listen()
		next := p.sleep(now)
		if run.alarm.ticker != nil {
			run.alarm.set(next)
		}
		p.unlock()
		if run.alarm.ticker == nil { // the clock is the user's code
			run.alarm.set(next)
		}
		if !more {
			return
		}
	}
}

// setAlarm sets an alarm of package time under the lock, and any other without.
func (p *Poller) setAlarm(a *alarm, d time.Duration) {
	if a.ticker != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	a.set(d)
}

// doDue does a batch of what is due; true if there is more.
func (p *Poller) doDue(now Stamp) bool {
	if j := p.line.takeJump(); j != 0 {
		p.jump(j, now)
	}
	more := p.goOnJumping(now)
	p.settleCoverage(now)
	more = p.bringForward(now) || more
	more = p.timeOutCalls(now) || more
	more = p.popDue(now) || more
	p.popRetries(now)
	p.lookAtClosed(now, time.Second)
	if now.Sub(p.rested) >= heartbeat {
		p.rested = now
		p.restWorkers(false)
	}
	return more || !p.canDraw()
}

// shortestSleep is how long the loop sleeps at least, where Config.Coalesce lets
// it: a timer of the runtime is late by as much.
const shortestSleep = time.Millisecond

// sleep is how long nothing will be due.
func (p *Poller) sleep(now Stamp) time.Duration {
	next := never
	if _, l, at := p.peekDue(); l != nil {
		next = max(at.Sub(now), 0)
	}
	if _, at, ok := p.retries.Peek(); ok {
		next = min(next, max(Stamp(at).Sub(now), 0))
	}
	for _, rt := range p.order {
		if c := rt.calls.first; c != nil {
			next = min(next, max(c.deadline.Sub(now), 0))
		}
		next = min(next, rt.webhooks.cover.next(now))
	}
	next = min(next, p.holds.expire(now, p.giveJobSlot))
	next = min(next, p.flushSoon(now))
	next = min(next, p.renewSoon(now))
	next = min(next, p.tendSubmissions(now))
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
		p.sleepUntil = lastStamp
		return -1
	}
	next = max(next, min(p.coalesce, shortestSleep))
	p.sleepUntil = now.Add(next)
	return next
}

// wakeBy makes sure that somebody is awake at an instant. Called under the
// lock.
func (p *Poller) wakeBy(at Stamp) {
	if at >= p.sleepUntil {
		return
	}
	p.sleepUntil = at
	wait := at.Sub(p.line.last())
	if wait > 0 && p.run != nil && p.run.open() && p.run.alarm != nil && p.run.alarm.ticker != nil {
		p.run.alarm.set(wait)
	} else {
		p.kick = true // unlock wakes the loop
	}
}
