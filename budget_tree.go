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
	source atomic.Pointer[clockSource] // nil: not bound

	mu     sync.Mutex
	root   *Budget
	used   bool          // times are kept: the clock is fixed
	last   time.Time     // never runs backwards
	recent reading       // of this hold of the lock, or an earlier one
	seen   time.Time     // the same as a steady time, but it may run backwards
	raw    time.Time     // the latest reading of a clock without Monotonic
	number uint64        // its number
	shift  time.Duration // by how much such a clock was set back

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
	made := newClockSource(c)
	t := b.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	var old Clock
	if s := t.source.Load(); s != nil {
		old = s.clock
	} else if t.used {
		old = systemClock{}
	}
	if old != nil && !sameClock(old, c) {
		return fmt.Errorf("jobpoll: budget %q: already used with another clock", t.root.name)
	}
	if t.source.Load() == nil {
		t.raw = time.Time{}
		t.source.Store(made)
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

// lock reads the clock, which is the user's code, and then takes the lock. now is
// for looking only: it does not fix the clock, as advance does.
func (t *budgetTree) lock() (now time.Time) {
	for {
		s := t.source.Load()
		r := s.read()
		t.mu.Lock()
		if t.source.Load() == s {
			return t.take(r)
		}
		t.mu.Unlock() // it was bound meanwhile
	}
}

// take makes a steady time of a reading of the clock that was made before the
// lock was taken. Others may have brought a later one already (golang/go#71360).
func (t *budgetTree) take(r reading) (now time.Time) {
	t.recent = r
	if s := t.source.Load(); s != nil && s.mono != nil {
		t.seen = s.base.Add(r.mono)
		return laterTime(t.seen, t.last)
	}
	if back := t.raw.Sub(r.now); back < 0 || back > 0 && r.number >= t.number { // else it was overtaken
		if back > jumpLimit {
			// It was set back, or this is the next synctest bubble: go on from
			// here, rather than stand still until it has caught up.
			t.shift += back
		}
		t.raw, t.number = r.now, readings.Add(1)
	}
	t.seen = t.shifted(t.raw)
	return laterTime(t.seen, t.last)
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

func laterTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// wall turns a steady time into wall time, where now is of this hold of the lock.
func (t *budgetTree) wall(now, at time.Time) time.Time {
	return t.recent.now.Add(at.Sub(now)).Round(0).UTC()
}
