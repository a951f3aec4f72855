package jobpoll

import (
	"errors"
	"time"
)

// grant is the leave for one call. The zero grant, that of a nil *Budget, is
// unlimited. It is a small value; the call behind it is reused once it is done.
type grant struct {
	tree *budgetTree
	call *budgetCall
	gen  uint64
}

// budgetCall is a call that was granted.
type budgetCall struct {
	node     *Budget
	lane     Lane
	at       time.Time
	reserved uint64      // by depth: took a reserved token there
	paced    uint64      // took one of the pace
	gen      uint64      // goes up when it is done: older grants mean nothing
	next     *budgetCall // in the list of spare ones
}

// maxSpare bounds the memory that a burst of calls leaves behind.
const maxSpare = 256

// grant takes the tokens and the slots for a call that check has let pass.
func (t *budgetTree) grant(now time.Time, b *Budget, lane Lane) grant {
	c := t.free
	if c == nil {
		c = &budgetCall{}
	} else {
		t.free, c.next = c.next, nil
		t.spare--
	}
	c.node, c.lane = b, lane
	t.enter(c, now)
	return grant{tree: t, call: c, gen: c.gen}
}

// enter takes the tokens and the slots of a call.
func (t *budgetTree) enter(c *budgetCall, now time.Time) {
	lane := c.lane
	c.at, c.reserved, c.paced = now, 0, 0
	for x := c.node; x != nil; x = x.parent {
		ln := &x.lane[lane]
		if !x.unlimited {
			ln.own.take(now)
			x.total.take(now)
		}
		if ln.reserve.lim != nil && ln.reserve.take(now) {
			c.reserved |= 1 << x.depth
		} else {
			x.turn = lane.other()
		}
		if ln.cool.m > 0 && ln.pace.take(now) {
			c.paced |= 1 << x.depth
		}
		ln.observed.add(now)
		ln.granted++
	}
	t.takeSlots(c)
}

func (t *budgetTree) takeSlots(c *budgetCall) {
	for x := c.node; x != nil; x = x.parent {
		x.lane[c.lane].inFlight++
	}
}

func (t *budgetTree) leaveSlots(c *budgetCall) {
	for x := c.node; x != nil; x = x.parent {
		x.lane[c.lane].inFlight--
	}
}

// closing is what an answer has closed.
type closing struct {
	node  *Budget // nil: nothing
	lane  Lane
	scope Scope
	kind  ErrorKind
	left  time.Duration // how long for
}

// done is answer for those who need not know what it has closed.
func (g grant) done(err error) { _ = g.answer(err) }

// answer ends the call with its answer: it frees the slots and lets a rate limit
// cool the node. Only the first answer or giveBack of a grant counts.
func (g grant) answer(err error) (c closing) {
	if g.tree == nil {
		return c
	}
	s := readBudgetSignal(err)
	t := g.tree
	t.mu.Lock()
	now := t.last
	if len(t.busy) > 0 || s.kind > coolGood { // a good answer with nobody waiting needs no clock
		t.mu.Unlock()
		now = t.advance(t.lock())
	}
	if g.call.gen != g.gen {
		t.mu.Unlock()
		return c
	}
	b, lane, at := g.call.node, g.call.lane, g.call.at
	t.end(g.call)
	c, changed := b.answered(now, lane, at, s)
	if changed || t.event || t.due(now) {
		t.unlock(t.pump(now))
		return c
	}
	t.mu.Unlock()
	return c
}

// giveBack ends a call that was not made: its tokens return too.
func (g grant) giveBack() {
	if g.tree == nil {
		return
	}
	now := g.tree.advance(g.tree.lock())
	g.tree.unlock(g.tree.giveBack(now, g))
}

func (t *budgetTree) giveBack(now time.Time, g grant) (wakes []*waiter) {
	c := g.call
	if c.gen != g.gen {
		return nil
	}
	for x := c.node; x != nil; x = x.parent {
		ln := &x.lane[c.lane]
		ln.own.giveBack(now, c.at)
		x.total.giveBack(now, c.at)
		if c.reserved&(1<<x.depth) != 0 {
			ln.reserve.giveBack(now, c.at)
		}
		if c.paced&(1<<x.depth) != 0 {
			ln.pace.giveBack(now, c.at)
		}
		ln.granted--
	}
	t.end(c)
	return t.pump(now)
}

// end frees the slots of a call and the call itself.
func (t *budgetTree) end(c *budgetCall) {
	t.leaveSlots(c)
	c.gen++
	c.node = nil
	if t.spare < maxSpare {
		c.next, t.free = t.free, c
		t.spare++
	}
}

// again ends a call with a good answer and grants the next one of the same node
// and lane in its place, where nothing speaks against that: nobody waits, and
// nothing cools down. raw is a reading of the clock from just now. Without ok
// the call has not ended.
func (g grant) again(raw reading) (next grant, ok bool) {
	if g.tree == nil {
		return g, true
	}
	t, c := g.tree, g.call
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.gen != g.gen || len(t.busy) > 0 {
		return grant{}, false
	}
	for x := c.node; x != nil; x = x.parent {
		if cool := &x.lane[c.lane].cool; cool.m > 0 || cool.n > 0 {
			return grant{}, false // it has to hear of the good answer
		}
	}
	now := t.advance(t.take(raw))
	t.leaveSlots(c)
	if !c.node.check(now, c.lane).ok { // limits may have been lowered
		t.takeSlots(c)
		return grant{}, false
	}
	c.gen++
	t.enter(c, now)
	return grant{tree: t, call: c, gen: c.gen}, true
}

// tryNow takes a grant for one call, or says no; raw is a reading of the clock
// from just now. It registers nothing. Those who wait and can go are served
// first, so that nobody is overtaken and the other lane keeps its claims.
func (b *Budget) tryNow(raw reading, lane Lane) (g grant, ok bool) {
	if b == nil {
		return grant{}, true
	}
	t := b.tree
	t.mu.Lock()
	g, ok, wakes := t.try(t.take(raw), b, lane)
	t.unlock(wakes)
	return g, ok
}

func (t *budgetTree) try(now time.Time, b *Budget, lane Lane) (g grant, ok bool, wakes []*waiter) {
	now = t.advance(now)
	if t.due(now) {
		wakes = t.pump(now)
	}
	if b.check(now, lane).ok {
		g, ok = t.grant(now, b, lane), true
	}
	return g, ok, wakes
}

// answered takes the answer to a call of node b into the cool-downs. It gives
// what it has closed, and whether it changed any.
func (b *Budget) answered(now time.Time, lane Lane, granted time.Time, s budgetSignal) (c closing, changed bool) {
	if s.limited {
		for x := b; x != nil; x = x.parent {
			x.lane[lane].rateLimited++
		}
	}
	if s.quota && lane != LaneSubmit {
		s.kind = coolNeutral // it ends that job's watch, and says nothing of other looks
	}
	e := coolEvent{kind: s.kind, granted: granted, hint: s.hint}
	switch {
	case s.kind == coolNeutral:
	case s.kind == coolGood:
		for x := b; x != nil; x = x.parent {
			if ln := &x.lane[lane]; ln.cool.m > 0 || ln.cool.n > 0 {
				ln.cool = ln.cool.observe(now, e)
				changed = true
			}
		}
	default:
		x := b
		if s.scope == ScopeAccount {
			x = b.tree.root
		}
		ln := &x.lane[lane]
		e.observed = ln.observed.at(now)
		ln.cool = ln.cool.observe(now, e)
		changed = true
		if u := ln.cool.until; u.After(b.tree.coolest) {
			b.tree.coolest = u
		}
		b.tree.cooled.Store(true)
		c = closing{node: x, lane: lane, scope: s.scope, kind: s.error, left: ln.cool.until.Sub(now)}
	}
	return c, changed
}

// budgetSignal is what an answer means to a budget.
type budgetSignal struct {
	kind    coolKind
	error   ErrorKind
	scope   Scope
	hint    time.Duration
	limited bool // counts as a rate limit
	quota   bool // used up: holds submissions
}

// quotaHold is how long a used-up quota holds submissions at least, before one
// may try again.
const quotaHold = time.Minute

// readBudgetSignal looks for a *CheckError. It calls methods of the user's error, so
// never under the lock.
func readBudgetSignal(err error) budgetSignal {
	if err == nil {
		return budgetSignal{kind: coolGood}
	}
	var c *CheckError
	if !errors.As(err, &c) || c == nil {
		return budgetSignal{}
	}
	s := budgetSignal{error: c.Kind, scope: c.Hint.Scope, hint: c.Hint.RetryAfter}
	switch c.Kind {
	case ErrorRateLimited:
		s.kind, s.limited = coolLimited, true
	case ErrorConcurrency:
		s.kind, s.limited = coolCapacity, true
	case ErrorQuota:
		s.kind, s.quota, s.hint = coolLimited, true, max(s.hint, quotaHold)
	case ErrorNone, ErrorTransient:
		if s.error = ErrorTransient; s.hint > 0 {
			s.kind = coolBusy
		}
	}
	if s.scope == ScopeJob {
		s.kind = coolNeutral
	}
	return s
}
