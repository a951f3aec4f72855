package jobpoll

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// waitQueue is those who wait at one node in one lane, first come first. They all
// meet the same obstacles, so only the first has to be looked at.
type waitQueue struct {
	node        *Budget
	lane        Lane
	first, last *waiter
}

// waiter waits for one grant. It holds no token while it waits.
type waiter struct {
	queue      *waitQueue
	prev, next *waiter
	seq        uint64 // arrival in the tree
	ready      chan struct{}
	wake       func(grant)
	g          grant
	state      atomic.Uint32
}

// The states of a waiter. All but the step to delivered is made under the lock.
const (
	waiterWaits uint32 = iota
	waiterGranted
	waiterDelivered
	waiterLeft
)

func (t *budgetTree) add(w *waiter, b *Budget, lane Lane) {
	q := &b.lane[lane].queue
	t.seq++
	w.queue, w.seq = q, t.seq
	if q.last == nil {
		q.first, q.last = w, w
		t.busy = append(t.busy, q)
	} else {
		w.prev, q.last.next, q.last = q.last, w, w
	}
	for x := b; x != nil; x = x.parent {
		x.lane[lane].waiting++
	}
}

func (t *budgetTree) remove(w *waiter) {
	q := w.queue
	if w.prev == nil {
		q.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	if q.first == nil {
		i := slices.Index(t.busy, q)
		t.busy = slices.Delete(t.busy, i, i+1)
	}
	for x := q.node; x != nil; x = x.parent {
		x.lane[q.lane].waiting--
	}
}

// pump serves all who can go at now, then sets the timer for the next. It
// returns those to wake, for unlock.
func (t *budgetTree) pump(now time.Time) (wakes []*waiter) {
	t.next, t.event = time.Time{}, false
	for len(t.busy) > 0 {
		q := t.pick(now)
		if q == nil {
			break
		}
		w := q.first
		t.remove(w)
		w.g = t.grant(now, q.node, q.lane)
		w.state.Store(waiterGranted)
		if w.ready != nil {
			close(w.ready)
		} else {
			wakes = append(wakes, w)
		}
	}
	t.arm(now)
	return wakes
}

// due reports whether time alone lets a waiter go. Whatever else can let one go
// pumps by itself. A bucket may be ready some nanoseconds before it was said
// to be, and nobody shall slip in there.
func (t *budgetTree) due(now time.Time) bool {
	return !t.next.IsZero() && !now.Before(t.next.Add(-time.Microsecond))
}

// unlock releases the lock and tells those that were served by pump.
func (t *budgetTree) unlock(wakes []*waiter) {
	t.mu.Unlock()
	for _, w := range wakes {
		if w.state.CompareAndSwap(waiterGranted, waiterDelivered) {
			w.wake(w.g)
		}
	}
}

// pick chooses who goes next: the first to arrive of those who can go, unless
// both lanes compete for what is left in some node and it is the other's turn.
func (t *budgetTree) pick(now time.Time) *waitQueue {
	t.able, t.next, t.event = t.able[:0], time.Time{}, false
	var in [laneCount]int
	for _, q := range t.busy {
		v := q.node.check(now, q.lane)
		switch {
		case v.ok:
			t.able = append(t.able, q)
			in[q.lane]++
		case v.event:
			t.event = true
		case t.next.IsZero() || v.at.Before(t.next):
			t.next = v.at
		}
	}
	if len(t.able) == 0 {
		return nil
	}
	slices.SortFunc(t.able, func(a, b *waitQueue) int {
		if a.first.seq < b.first.seq {
			return -1
		}
		return 1
	})
	if in[LaneStatus] == 0 || in[LaneSubmit] == 0 {
		return t.able[0]
	}
	for _, q := range t.able {
		x := q.node.contested(now)
		if x == nil || x.prefers(now) == q.lane || !t.competes(x, q.lane.other()) {
			return q
		}
	}
	return t.able[0] // not reached: who competes at x is preferred there
}

// competes reports whether somebody of the lane can go at x or below.
func (t *budgetTree) competes(x *Budget, lane Lane) bool {
	for _, q := range t.able {
		if q.lane != lane {
			continue
		}
		for n := q.node; n != nil; n = n.parent {
			if n == x {
				return true
			}
		}
	}
	return false
}

// contested is the highest node from b up that has not enough left for one
// call of each lane. Only that one decides, so that two nodes can never give
// way to each other.
func (b *Budget) contested(now time.Time) *Budget {
	var found *Budget
	for x := b; x != nil; x = x.parent {
		c := x.limits.Total.Concurrent
		used := x.lane[LaneStatus].inFlight + x.lane[LaneSubmit].inFlight
		if x.total.tokens(now) < 2 || c > 0 && c-used < 2 {
			found = x
		}
	}
	return found
}

// prefers is the lane that goes first at b: the one with a reserved token;
// with both, the one that would lose a token sooner; with neither, in turn.
func (b *Budget) prefers(now time.Time) Lane {
	status, submit := &b.lane[LaneStatus].reserve, &b.lane[LaneSubmit].reserve
	has := [laneCount]bool{status.lim != nil && status.ready(now), submit.lim != nil && submit.ready(now)}
	if has[LaneStatus] != has[LaneSubmit] {
		if has[LaneStatus] {
			return LaneStatus
		}
		return LaneSubmit
	}
	if has[LaneStatus] {
		a, b := status.untilFull(now), submit.untilFull(now)
		if a < b {
			return LaneStatus
		}
		if b < a {
			return LaneSubmit
		}
	}
	return b.turn
}

// arm sets the timer for next and stops it if that is zero. One that fires too
// early does no harm. It is made anew each time: a timer must not leave the
// synctest bubble it was made in.
func (t *budgetTree) arm(now time.Time) {
	next := t.next
	if t.timer != nil {
		if !next.IsZero() && t.timerAt.After(now) && !t.timerAt.After(next) {
			return
		}
		t.timer.Stop()
		t.timer = nil
	}
	if next.IsZero() {
		return
	}
	t.timerN++
	n := t.timerN
	t.timerAt = next
	d := max(next.Sub(now), 1)
	if lag := now.Sub(t.seen); lag > 0 { // the clock has gone back: it has to catch up first
		d += min(lag, time.Second)
	}
	t.timer = t.source.Load().afterFunc(d, func() { t.fire(n) })
}

func (t *budgetTree) fire(n uint64) {
	now := t.lock()
	if n != t.timerN || t.timer == nil {
		t.mu.Unlock()
		return
	}
	t.timer = nil
	t.unlock(t.pump(t.advance(now)))
}

// want registers a standing interest in one call, first come first in the
// lane. Once the call can go out its tokens are taken and wake is called, once
// and without a lock: by whoever made it possible, also before want returns.
// cancel withdraws; a grant that was not delivered yet is given back. A wake
// that another goroutine has begun by then is not called off.
func (b *Budget) want(lane Lane, wake func(grant)) (cancel func()) {
	if b == nil {
		wake(grant{})
		return func() {}
	}
	w := &waiter{wake: wake}
	t := b.tree
	now := t.advance(t.lock())
	t.add(w, b, lane)
	t.unlock(t.pump(now))
	return func() {
		now := t.advance(t.lock())
		t.unlock(t.leave(now, w))
	}
}

// leave takes a waiter out, whether it waits or was granted in vain.
func (t *budgetTree) leave(now time.Time, w *waiter) (wakes []*waiter) {
	if w.state.CompareAndSwap(waiterWaits, waiterLeft) {
		t.remove(w)
		return t.pump(now)
	}
	if w.state.CompareAndSwap(waiterGranted, waiterLeft) {
		return t.giveBack(now, w.g)
	}
	return nil
}

// Acquire waits until one call of the lane may go out and returns done, which
// must be called with the call's error once it has ended (nil for success);
// further calls of done do nothing. Until then the call holds its slots, and
// in LaneSubmit one of Limits.Jobs: after a submission call Poller.Watch first
// and then done, or that slot is free in between.
//
// done looks for a *CheckError: one of kind ErrorRateLimited or
// ErrorConcurrency, and a transient one with a RetryAfter, makes the node and
// the lane cool down, as its Hint.Scope says (FromResponse reads such hints).
// One of kind ErrorQuota holds LaneSubmit for a minute at least.
// All other errors only end the call.
//
// Waiters of a lane are served first come first; one whose node is closed
// holds up no others. One that leaves leaves no debt. When ctx ends the error
// names the budget and what was waited for, and matches both ctx.Err() and
// context.Cause(ctx); a ctx that has ended already is granted nothing. Acquire on
// a nil *Budget does not wait.
func (b *Budget) Acquire(ctx context.Context, lane Lane) (done func(error), err error) {
	g, err := b.acquire(ctx, lane)
	if err != nil {
		return nil, err
	}
	return g.done, nil
}

func (b *Budget) acquire(ctx context.Context, lane Lane) (g grant, err error) {
	if lane >= laneCount {
		return g, fmt.Errorf("jobpoll: budget %q: no such lane: %d", b.Name(), uint8(lane))
	}
	if ctx.Err() != nil {
		return g, fmt.Errorf("jobpoll: budget %q: %s call not begun: %w", b.Name(), lane, contextError(ctx))
	}
	if b == nil {
		return g, nil
	}
	t := b.tree
	g, ok, wakes := t.try(t.lock(), b, lane)
	if ok {
		t.unlock(wakes)
		return g, nil
	}
	w := &waiter{ready: make(chan struct{})}
	t.add(w, b, lane)
	t.pump(t.last) // nobody can go, as just seen: this sets the timer
	t.unlock(wakes)

	select {
	case <-w.ready:
		if ctx.Err() == nil {
			return w.g, nil
		}
	case <-ctx.Done():
	}
	now := t.advance(t.lock())
	why := b.waitsFor(now, lane)
	t.unlock(t.leave(now, w))
	return grant{}, fmt.Errorf("jobpoll: budget %q: waited for %s: %w", b.name, why, contextError(ctx))
}
