package jobpoll

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var budgetEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// budgetClock is a manual clock without Monotonic: set may move it backwards.
type budgetClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*budgetTimer
	made   int
}

type budgetTimer struct {
	c  *budgetClock
	at time.Time
	f  func()
}

func newBudgetClock() *budgetClock { return &budgetClock{now: budgetEpoch} }

func (c *budgetClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *budgetClock) AfterFunc(d time.Duration, f func()) Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &budgetTimer{c: c, at: c.now.Add(d), f: f}
	c.timers = append(c.timers, t)
	c.made++
	return t
}

func (t *budgetTimer) Stop() bool {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	for i, o := range t.c.timers {
		if o == t {
			t.c.timers = append(t.c.timers[:i], t.c.timers[i+1:]...)
			return true
		}
	}
	return false
}

func (t *budgetTimer) Reset(d time.Duration) bool {
	was := t.Stop()
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	t.at = t.c.now.Add(d)
	t.c.timers = append(t.c.timers, t)
	return was
}

func (c *budgetClock) pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

func (c *budgetClock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// to moves to a second since the epoch, firing what falls due at its instant.
func (c *budgetClock) to(sec float64) {
	end := atSec(sec)
	for {
		c.mu.Lock()
		first := -1
		for i, t := range c.timers {
			if !t.at.After(end) && (first < 0 || t.at.Before(c.timers[first].at)) {
				first = i
			}
		}
		if first < 0 {
			if end.After(c.now) {
				c.now = end
			}
			c.mu.Unlock()
			return
		}
		t := c.timers[first]
		c.timers = append(c.timers[:first], c.timers[first+1:]...)
		if t.at.After(c.now) {
			c.now = t.at
		}
		c.mu.Unlock()
		t.f()
	}
}

// atSec is that many seconds since the epoch.
func atSec(sec float64) time.Time {
	return budgetEpoch.Add(time.Duration(sec * float64(time.Second)))
}

func secOf(t time.Time) float64 { return t.Sub(budgetEpoch).Seconds() }

// caseLimits are the settings of the cases: 5/s, burst 5, 10 in flight, 1/s
// reserved for each lane.
func caseLimits() Limits {
	var l Limits
	l.Total = Limit{Rate: 5, Burst: 5, Concurrent: 10}
	l.Submit.Reserve.Rate = 1
	l.Status.Reserve.Rate = 1
	return l
}

func budgetOn(t *testing.T, c Clock, l Limits) *Budget {
	t.Helper()
	b := NewBudget("account", l)
	require.NoError(t, b.bind(c))
	return b
}

// rateLimit is a 429 with a Retry-After of that many seconds, 0 for none.
func rateLimit(sec float64) error {
	return &CheckError{Kind: ErrorRateLimited, Hint: Hint{RetryAfter: time.Duration(sec * float64(time.Second))}}
}

// budgetSimCall is what a simulated call did.
type budgetSimCall struct {
	node       *Budget
	lane       Lane
	start, end float64
}

// budgetSim lets simulated calls wait on budgets.
type budgetSim struct {
	clock *budgetClock
	calls []budgetSimCall
	peak  int
	now   int
}

// one lets a call wait; it takes that long and answers with err. then is
// called after it ended.
func (s *budgetSim) one(b *Budget, lane Lane, takes float64, answer func(start float64) error, then func()) (cancel func()) {
	return b.want(lane, func(g grant) {
		start := secOf(s.clock.Now())
		s.now++
		s.peak = max(s.peak, s.now)
		i := len(s.calls)
		s.calls = append(s.calls, budgetSimCall{node: b, lane: lane, start: start, end: -1})
		s.clock.AfterFunc(time.Duration(takes*float64(time.Second)), func() {
			s.now--
			s.calls[i].end = secOf(s.clock.Now())
			var err error
			if answer != nil {
				err = answer(start)
			}
			g.done(err)
			if then != nil {
				then()
			}
		})
	})
}

// starts counts the starts in [from, to).
func (s *budgetSim) starts(from, to float64, match func(budgetSimCall) bool) int {
	n := 0
	for _, c := range s.calls {
		if c.start >= from && c.start < to && (match == nil || match(c)) {
			n++
		}
	}
	return n
}

func inLane(l Lane) func(budgetSimCall) bool {
	return func(c budgetSimCall) bool { return c.lane == l }
}

// most is the largest number of starts in any window of w seconds after from.
func (s *budgetSim) most(from, w float64) int {
	most := 0
	for _, c := range s.calls {
		if c.start >= from {
			most = max(most, s.starts(c.start, c.start+w, nil))
		}
	}
	return most
}

// requireBudgetIdle checks that nothing is left of what was going on.
func requireBudgetIdle(t *testing.T, b *Budget) {
	t.Helper()
	b.walk(func(n *Budget) {
		m := n.snapshot()
		require.Zero(t, m.Status.InFlight+m.Submit.InFlight, "%s: in flight", n.Name())
		require.Zero(t, m.Status.Waiting+m.Submit.Waiting, "%s: waiting", n.Name())
	})
	b.tree.mu.Lock()
	defer b.tree.mu.Unlock()
	require.Nil(t, b.tree.timer, "a timer at rest")
	require.Empty(t, b.tree.busy)
}

// tryAcquire is tryNow at a steady time of the tree.
func (b *Budget) tryAcquire(now time.Time, lane Lane) (g grant, ok bool) {
	if b == nil {
		return grant{}, true
	}
	b.tree.mu.Lock()
	g, ok, wakes := b.tree.try(now, b, lane)
	b.tree.unlock(wakes)
	return g, ok
}

// now is the steady time of the tree.
func (b *Budget) now() time.Time {
	if b == nil {
		return time.Now()
	}
	defer b.tree.mu.Unlock()
	return b.tree.lock()
}

// closedUntil is when a lane opens by the time of the tree, zero if it is open.
func (b *Budget) closedUntil(lane Lane) time.Time {
	if b == nil {
		return time.Time{}
	}
	left := b.closedFor(lane, b.tree.source.Load().read())
	if left == 0 {
		return time.Time{}
	}
	return b.now().Add(left)
}
