package jobpoll

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// budgetTree is what the nodes share.
type budgetTree struct {
	mu    sync.Mutex
	root  *Budget
	clock Clock                // nil: not bound
	mono  func() time.Duration // nil: the clock has none
	base  time.Time            // the time at mono 0
	used  bool                 // times are kept: the clock is fixed
	last  time.Time            // never runs backwards
	raw   time.Time            // the last reading of a clock without mono
	shift time.Duration        // by how much such a clock was set back

	cooled  atomic.Bool // some node may be closed
	coolest time.Time   // until then at most

	busy    []*waitQueue // those with waiters
	seq     uint64
	free    *budgetCall // spare ones
	spare   int
	able    []*waitQueue // scratch of pump
	next    time.Time    // when time alone lets the first waiter go; zero: never
	event   bool         // some waiter needs a call or a job to end
	timer   Timer
	timerAt time.Time
	timerN  uint64
}

// bind makes the tree live on c. It may be called again with the same clock.
func (b *Budget) bind(c Clock) error {
	if b == nil {
		return nil
	}
	c = clockOrSystem(c)
	t := b.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.clock
	if old == nil && t.used {
		old = systemClock{}
	}
	if old != nil && !sameClock(old, c) {
		return fmt.Errorf("jobpoll: budget %q: already used with another clock", t.root.name)
	}
	if t.clock == nil {
		t.clock, t.raw = c, time.Time{}
		if m, ok := c.(interface{ Monotonic() time.Duration }); ok {
			t.mono = m.Monotonic
			t.base = c.Now().Round(0).Add(-m.Monotonic())
		}
	}
	return nil
}

// sameClock compares without a panic. Values that Go cannot compare are taken
// for the same if their types are: a Poller binds one clock many times.
func sameClock(a, b Clock) (same bool) {
	defer func() {
		if recover() != nil {
			same = reflect.TypeOf(a) == reflect.TypeOf(b)
		}
	}()
	return a == b
}

// read is the clock's steady time. Clocks are read under the lock: a reading
// from before it could be older than one that was used already (golang/go#71360).
func (t *budgetTree) read() time.Time {
	if t.mono != nil {
		return t.base.Add(t.mono())
	}
	return t.steady(clockOrSystem(t.clock).Now())
}

// at is the steady time of a reading from just now. Others may have brought a
// later one already.
func (t *budgetTree) at(raw time.Time) time.Time {
	switch {
	case t.mono != nil:
		return t.read()
	case raw.After(t.raw):
		t.raw = raw
		return t.shifted(raw)
	case t.raw.Sub(raw) > jumpLimit:
		return t.steady(raw)
	}
	return t.last
}

// steady makes a steady time of a reading of the clock.
func (t *budgetTree) steady(raw time.Time) time.Time {
	if back := t.raw.Sub(raw); back > jumpLimit {
		// It was set back, or this is the next synctest bubble: go on from
		// here, rather than stand still until it has caught up.
		t.shift += back
	}
	t.raw = raw
	return t.shifted(raw)
}

func (t *budgetTree) shifted(raw time.Time) time.Time {
	if t.shift == 0 { // nearly always, and this is asked for every call
		return raw
	}
	return raw.Add(t.shift)
}

// advance is the time to act on: never before an earlier one.
func (t *budgetTree) advance(now time.Time) time.Time {
	t.used = true
	if now.Before(t.last) {
		return t.last
	}
	t.last = now
	return now
}

// peek is the same for looking only; it does not fix the clock.
func (t *budgetTree) peek() time.Time {
	now := t.read()
	if now.Before(t.last) {
		return t.last
	}
	return now
}

// now is the steady time of the tree: what closedUntil gives.
func (b *Budget) now() time.Time {
	if b == nil {
		return systemClock{}.Now()
	}
	b.tree.mu.Lock()
	defer b.tree.mu.Unlock()
	return b.tree.peek()
}

// wall turns a steady time into wall time.
func (t *budgetTree) wall(now, at time.Time) time.Time {
	return clockOrSystem(t.clock).Now().Add(at.Sub(now)).Round(0).UTC()
}
