package jobpoll

import (
	"slices"
	"time"
)

// worker is a goroutine that makes calls, one after the other. There are as
// many as there are calls to be made at once: one that starts a call wakes
// another if there is more to do, and one that finds nothing to do goes idle.
type worker struct {
	p    *Poller
	run  *runState
	wake chan struct{} // nil until it is idle for the first time; closed when it has to go

	state  workerState
	waking bool      // woken, and has not yet looked around
	rested bool      // it has to go
	hooks  bool      // it calls hooks, and counts for Poller.inHooks
	busy   func()    // ends what the test clock knows of it
	call   *lookCall // to be made, or under way
	spare  *lookCall // for the next one
	answer answered
	last   grant // of a call that went well, not yet ended for the budget
}

type workerState uint8

const (
	workerLooks workerState = iota // for something to do
	workerRings                    // the alarm has gone off
	workerHas                      // a call to make
	workerCalls
	workerIdles
	workerGoes
)

func (w *worker) name() string {
	if c := w.call; c != nil {
		return c.name()
	}
	return "a worker of Run"
}

// wakeWorker wakes a worker if there is something to do and none is on its way
// already. Called under the lock.
func (p *Poller) wakeWorker(now Stamp) {
	if p.run == nil || !p.run.open() || p.waking || len(p.active) == 0 || p.inFlight >= p.workers || p.manyHooks() {
		return
	}
	if p.tracker != nil {
		p.startAll(now)
		return
	}
	p.waking = true
	if n := len(p.idlers) - 1; n >= 0 {
		w := p.idlers[n]
		p.idlers[n] = nil
		p.idlers = p.idlers[:n]
		p.leastIdle = min(p.leastIdle, n)
		w.waking = true
		w.wake <- struct{}{} // it has room: see leaveIdle
		return
	}
	w := &worker{p: p, run: p.run, waking: true, busy: noBusy}
	p.run.crew.enter()
	go w.work()
}

// startAll starts all calls that can be made, each on a worker of its own,
// before any of them can have an answer: so that a test sees the same each time.
func (p *Poller) startAll(now Stamp) {
	for {
		w := &worker{p: p, run: p.run, state: workerHas}
		if w.call = p.nextCall(w, now); w.call == nil {
			return
		}
		w.busy = p.busy(w.name)
		p.run.crew.enter()
		go w.work()
	}
}

// work is a worker's goroutine. User code can end it, a failed require for one:
// then the worker goes on in another.
func (w *worker) work() {
	returned := false
	defer func() {
		if !returned {
			go w.work() // it has the place of this one in the crew
			return
		}
		w.run.crew.leave()
		w.busy()
	}()
	for {
		switch w.state {
		case workerLooks, workerRings:
			now, raw := w.p.line.read()
			w.goOn(nil, now, raw)
		case workerHas:
			w.state = workerCalls
			w.answer = answered{}
			w.answer.call = w.call
			w.perform(w.call)
			w.take()
		case workerCalls: // it has ended the goroutine
			w.answer.err = &CheckError{Kind: ErrorTransient, Err: errGoexit}
			w.take()
		case workerIdles:
			select {
			case _, ok := <-w.wake:
				if !ok {
					returned = true
					return
				}
				w.state = workerLooks
			case <-w.run.alarm.rings:
				w.state = workerRings
			}
		case workerGoes:
			returned = true
			return
		}
	}
}

// perform makes a call.
func (w *worker) perform(c *lookCall) {
	defer c.ctx.release()
	if w.p.tracker == nil {
		w.p.invoke(c.ctx, c, &w.answer)
		return
	}
	// It may wait on the clock, as a worker may not.
	ctx, idle := w.p.busyContext(c.ctx, c.name)
	w.busy()
	defer func() {
		w.busy = w.p.busy(w.name)
		idle()
	}()
	w.p.invoke(ctx, c, &w.answer)
}

// take takes the answer of a call in, and gets the next.
func (w *worker) take() {
	now, raw := w.p.line.read()
	a := &w.answer
	w.p.hand(a)
	w.state = workerLooks     // whatever the hook does
	defer w.goOn(a, now, raw) // also where it ends the goroutine
	w.p.tellAnswer(a, now)
}

// goOn is what a worker does under the lock: all under one hold of it.
func (w *worker) goOn(a *answered, now Stamp, raw reading) {
	p := w.p
	further := a.further()
	draw, some := p.rand(), p.drawAhead(workerDraws+further)
	p.mu.Lock()
	if p.reading = raw; len(p.draws) < maxDraws+further {
		p.draws = append(p.draws, some...)
	}
	w.call = nil
	if w.hooks {
		w.hooks = false
		p.inHooks--
	}
	if a != nil {
		w.spare = nil
		a.call.cooled = a.closed.node != nil
		if p.takeIn(a, now, draw) {
			w.spare = a.call
		}
		if a.closed.node != nil { // also where nobody waits for the answer any more
			e := p.coolEvent(a.call.route, a.call.job.Key(), a.closed, now)
			p.after = append(p.after, func() { p.tellCooled(e) })
		}
		if a.open && w.spare != nil {
			w.last = a.call.grant
		} else if a.open { // it was given up meanwhile
			defer a.call.grant.done(nil)
		}
	}
	if w.waking {
		w.waking, p.waking = false, false
	}
	w.leaveIdle()
	goes := w.rested || p.run != w.run || !w.run.open() || p.tracker != nil // startAll makes others
	if w.state == workerRings && p.run == w.run && w.run.open() {
		p.kick = p.doDue(now) || p.kick // the loop goes on with more than a batch
		w.run.alarm.set(p.sleep(now))
	}
	// Hooks may take their time: no call waits for them, or begins at a time that is over.
	hooks := p.hooked && (len(p.after) > 0 || a != nil && p.hooks.Looked != nil)
	if !goes && !hooks {
		w.call = p.nextCall(w, now)
	}
	switch {
	case hooks:
		w.state, w.hooks = workerLooks, true
		p.inHooks++
	case w.call != nil:
		w.state = workerHas
	case !goes:
		if w.state = workerIdles; w.wake == nil {
			w.wake = make(chan struct{}, 1)
		}
		p.idlers = append(p.idlers, w)
	default:
		w.state = workerGoes
	}
	if w.state == workerIdles {
		defer w.busy()
	}
	p.listen()
	if hooks && a != nil {
		// What is due is seen to right afterwards, as a rule.
		if len(p.active) > 0 && p.tracker == nil {
			p.wakeBy(now.Add(quickPatience)) // if not, whoever hears the alarm does
		}
	} else if w.call != nil && len(p.active) > 0 && w.call.route.quick.Load() {
		p.wakeBy(now.Add(quickPatience)) // it will be back soon; if not, whoever hears the alarm goes on
	} else {
		p.wakeWorker(now)
	}
	last := w.last
	w.last = grant{}
	if last.call != nil {
		defer last.done(nil) // whatever the hooks do
	}
	p.unlock()
}

// leaveIdle takes a worker that was idle out of the idle ones, and what woke it.
func (w *worker) leaveIdle() {
	p := w.p
	if w.state == workerRings {
		if i := slices.Index(p.idlers, w); i >= 0 {
			p.idlers = slices.Delete(p.idlers, i, i+1)
			p.leastIdle = min(p.leastIdle, len(p.idlers))
		}
		select { // it may have been woken at the same time
		case <-w.wake:
		default:
		}
	}
}

// listen makes sure that a worker hears the alarm: one that can make calls at
// once. Called under the lock.
func (p *Poller) listen() {
	if len(p.idlers) > 0 || p.run == nil || !p.run.open() || p.run.alarm == nil || p.run.alarm.rings == nil {
		return
	}
	w := &worker{p: p, run: p.run, state: workerIdles, busy: noBusy, wake: make(chan struct{}, 1)}
	p.idlers = append(p.idlers, w)
	p.run.crew.enter()
	go w.work()
}

// quickCall is how long a call may take to be one after which the same worker
// can as well make the next: waking another costs more.
const quickCall = 50 * time.Microsecond

// quickPatience is how long others wait for a call that is not quick after all.
const quickPatience = time.Millisecond

// lasted takes in how long a call took.
func (rt *route) lasted(d time.Duration) {
	rt.looked++
	rt.took += (d - rt.took) / 16
	if quick := rt.looked >= 64 && rt.took < quickCall; quick != rt.quick.Load() {
		rt.quick.Store(quick)
	}
}

// restWorkers ends the workers that there has been no use for since it was last
// called. Called under the lock.
func (p *Poller) restWorkers(all bool) {
	n := max(min(p.leastIdle, len(p.idlers)-1), 0)
	if all {
		n = len(p.idlers)
	}
	for i, w := range p.idlers[:n] {
		w.rested = true
		close(w.wake)
		p.idlers[i] = nil
	}
	p.idlers = append(p.idlers[:0], p.idlers[n:]...)
	p.leastIdle = len(p.idlers)
}
