package jobpoll

import (
	"errors"
	"time"
)

// activate puts a route among those that have something to do, unless it waits
// for its budget.
func (p *Poller) activate(rt *route) {
	if !rt.active && rt.want == nil {
		rt.active = true
		p.active = append(p.active, rt)
	}
}

// nextCall starts a call for a due record: the routes take turns.
func (p *Poller) nextCall(w *worker, now Stamp) *lookCall {
	if now >= p.tenancy.until && p.bar(now) || p.manyHooks() {
		return nil
	}
	if len(p.active) == 0 {
		p.popDue(now)
	}
	for len(p.active) > 0 {
		if p.turn >= len(p.active) {
			p.turn = 0
		}
		rt := p.active[p.turn]
		c, more := p.nextOf(rt, w, now)
		if more {
			p.turn++
			return c
		}
		rt.active = false
		p.active = append(p.active[:p.turn], p.active[p.turn+1:]...)
		if c != nil {
			return c
		}
	}
	return nil
}

// maxHung bounds the goroutines that calls hold which have timed out and do not
// return, for each route, and those that hooks hold after looks, in multiples of the
// workers.
const maxHung = 8

// manyHooks reports whether so many workers are calling hooks that no look begins
// before one of them has returned. Called under the lock.
func (p *Poller) manyHooks() bool { return p.inHooks >= maxHung*p.workers }

var errHung = errors.New("too many calls that timed out have not returned; a Checker must honour its context")

// nextOf starts a call for the first due record of a route, nil if there can be
// none now; more tells that the route may have others.
func (p *Poller) nextOf(rt *route, w *worker, now Stamp) (c *lookCall, more bool) {
	for {
		h, l, queue := p.nextReady(rt)
		if l == nil {
			rt.scarce.enough(now)
			p.leaveBudget(rt)
			return nil, false
		}
		if !p.canDraw() {
			p.kick = true // the loop goes on
			return nil, true
		}
		if (len(rt.grants) > 0 || rt.auth.held()) && p.closedUntil(rt, now) > now {
			// The route closed while it waited: the core says what follows.
			queue.pop()
			p.dueWhileClosed(p.jobs.open(h.slot, l), now)
			continue
		}
		if stuck, why := p.stuckOn(rt, l); why != nil {
			queue.pop()
			r := p.jobs.open(h.slot, l)
			r.to(phaseWaiting)
			rt.meter.lookJoined(0)
			p.answer(r, stuck, &Report{}, &CheckError{Kind: ErrorTransient, Err: why}, now, p.draw())
			continue
		}
		if p.inFlight >= p.workers {
			p.leaveBudget(rt) // others can use it meanwhile
			return nil, true
		}
		g, ok := w.grantFor(rt)
		if !ok && p.closedUntil(rt, now) > now {
			queue.pop()
			p.dueWhileClosed(p.jobs.open(h.slot, l), now)
			continue
		}
		if !ok {
			rt.scarce.short(now)
			p.wantGrant(rt)
			return nil, false
		}
		if rt.scarce.on && queue == &rt.ready {
			rt.scarce.looked(rt.batch.calls(rt.waiting, now), patience*rt.Schedule.pollCost(), now)
			h, l = p.choose(rt, h, l, now)
		}
		queue.pop()
		if rt.auth.state == authHeld {
			rt.auth.probeAt = now.Add(authProbe)
		}
		if c = w.spare; c == nil {
			c = &lookCall{}
		}
		w.spare = nil
		p.startCall(p.jobs.open(h.slot, l), c, g, now)
		if c.kind == callCheck && rt.batch.takes(h, now) {
			p.fillBatch(c, now)
		}
		return c, true
	}
}

// stuckOn tells why no call can be made for a due record, if none can, and
// gives a call in whose place the failure is taken.
func (p *Poller) stuckOn(rt *route, l *line) (*lookCall, error) {
	if l.hot != 0 {
		if c := p.jobs.hot[l.hot-1].stuck; c != nil {
			return c, errStuck
		}
	}
	if rt.hung >= maxHung*p.workers {
		return &lookCall{route: rt, renewed: rt.auth.renewed}, errHung
	}
	return nil, nil
}

// nextReady is the first record that is due, and the queue that it stands in;
// nil if there is none. Outputs of finished jobs and looks that somebody asked
// for go first.
func (p *Poller) nextReady(rt *route) (handle, *line, *fifo) {
	for _, queue := range [...]*fifo{&rt.urgent, &rt.ready} {
		for {
			h, ok := queue.peek()
			if !ok {
				break
			}
			if l := p.jobs.lines.Get(h.slot); l != nil && l.gen == h.gen {
				if ph, _ := p.jobs.waits(l); ph == phaseReady {
					return h, l, queue
				}
			}
			queue.pop() // it went another way
		}
	}
	return handle{}, nil, nil
}

// grantFor gets a grant of the budget for a call, if there is one now.
func (w *worker) grantFor(rt *route) (grant, bool) {
	p, last := w.p, w.last
	w.last = grant{}
	if last.call != nil {
		if rt.budget == last.call.node && len(rt.grants) == 0 {
			if g, ok := last.again(p.reading); ok {
				return g, true
			}
		}
		last.done(nil)
	}
	if n := len(rt.grants); n > 0 {
		g := rt.grants[n-1]
		rt.grants = rt.grants[:n-1]
		return g, true
	}
	return rt.budget.tryNow(p.reading, LaneStatus)
}

// wantGrant leaves word that a grant is wanted.
func (p *Poller) wantGrant(rt *route) {
	if rt.want != nil {
		return
	}
	w := &want{}
	rt.want = w
	// The budget may call back at once, so it is asked without the lock.
	p.after = append(p.after, func() {
		cancel := rt.budget.want(LaneStatus, func(g grant) { p.waker.granted(routeGrant{rt, w, g}) })
		p.mu.Lock()
		w.cancel = cancel
		dropped := w.dropped
		p.mu.Unlock()
		if dropped {
			cancel()
		}
	})
}

// lookAtClosed takes up the routes whose budget has closed while they wait for
// it: the core says what follows for their jobs. It does so once in a while,
// and when there is reason to.
func (p *Poller) lookAtClosed(now Stamp, every time.Duration) {
	if now.Sub(p.lookedAtClosed) < every {
		return
	}
	p.lookedAtClosed = now
	for _, rt := range p.order {
		if rt.want != nil && p.closedUntil(rt, now) > now {
			p.leaveWant(rt)
			p.activate(rt)
		}
	}
}

// leaveBudget gives back what a route cannot use now.
func (p *Poller) leaveBudget(rt *route) {
	p.leaveWant(rt)
	for _, g := range rt.grants {
		p.after = append(p.after, func() { g.giveBack() })
	}
	rt.grants = rt.grants[:0]
}

// fifo is a queue of records.
type fifo struct {
	items []handle
	head  int
}

func (f *fifo) push(h handle) { f.items = append(f.items, h) }

func (f *fifo) peek() (handle, bool) {
	if f.head == len(f.items) {
		return handle{}, false
	}
	return f.items[f.head], true
}

func (f *fifo) pop() {
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
		if cap(f.items) > 1024 {
			f.items = nil
		}
	} else if f.head > 1024 && f.head > len(f.items)/2 {
		f.items = append([]handle(nil), f.items[f.head:]...)
		f.head = 0
	}
}

// putBack makes records the first of the queue again.
func (f *fifo) putBack(hs []handle) {
	switch n := len(hs); {
	case n == 0:
	case n <= f.head:
		f.head -= n
		copy(f.items[f.head:], hs)
	default:
		f.items, f.head = append(hs, f.items[f.head:]...), 0
	}
}
