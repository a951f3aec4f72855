package polltest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var _ jobpoll.Clock = (*Clock)(nil)

var year2001 = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)

func TestTheZeroClockStandsAt2001(t *testing.T) {
	var c Clock
	assert.Equal(t, year2001, c.Now())
	assert.Equal(t, year2001, NewClock(time.Time{}).Now())
	c.Advance(time.Second)
	assert.Equal(t, year2001.Add(time.Second), c.Now())
	assert.Equal(t, "2001-01-01T00:00:01Z (+1s, 0 timers)", c.String())
}

func TestTheClockKeepsTheStartsLocationAndNoMonotonicReading(t *testing.T) {
	start := time.Now().In(time.FixedZone("here", 3600))
	c := NewClock(start)
	assert.True(t, start.Equal(c.Now()))
	assert.Equal(t, start.Round(0), c.Now())
}

func TestTimersFireInOrderEachAtItsInstant(t *testing.T) {
	c := NewClock(time.Time{})
	var got []string
	arm := func(d time.Duration, name string) {
		c.AfterFunc(d, func() { got = append(got, fmt.Sprintf("%s@%v", name, c.Now().Sub(year2001))) })
	}
	arm(3*time.Second, "c")
	arm(time.Second, "a")
	arm(2*time.Second, "b1")
	arm(2*time.Second, "b2")
	arm(10*time.Second, "later")
	c.Advance(5 * time.Second)
	assert.Equal(t, []string{"a@1s", "b1@2s", "b2@2s", "c@3s"}, got)
	assert.Equal(t, 5*time.Second, c.Monotonic())
	assert.Equal(t, 1, c.Timers())
	c.AdvanceTo(year2001.Add(10 * time.Second))
	assert.Equal(t, "later@10s", got[4])
}

func TestManyTimersFireInOrder(t *testing.T) {
	c := NewClock(time.Time{})
	const n = 100_000
	rnd := rand.New(rand.NewPCG(1, 2))
	type firing struct {
		at  time.Duration
		seq int
	}
	var got, want []firing
	var timers []jobpoll.Timer
	for i := range n {
		d := time.Duration(rnd.IntN(n/4)) * time.Millisecond
		want = append(want, firing{d, i})
		timers = append(timers, c.AfterFunc(d, func() { got = append(got, firing{c.Monotonic(), i}) }))
	}
	for i := 0; i < n; i += 3 { // removal from the middle of the heap
		require.True(t, timers[i].Stop())
	}
	want = slices.DeleteFunc(want, func(f firing) bool { return f.seq%3 == 0 })
	slices.SortStableFunc(want, func(a, b firing) int { return cmp.Compare(a.at, b.at) })
	c.Advance(time.Hour)
	require.Len(t, got, len(want))
	assert.True(t, slices.Equal(want, got))
	assert.Zero(t, c.Timers())
}

func TestATimerMayBeArmedInATimersFunction(t *testing.T) {
	c := NewClock(time.Time{})
	var got []time.Duration
	var tick jobpoll.Timer
	tick = c.AfterFunc(time.Second, func() {
		got = append(got, c.Monotonic())
		tick.Reset(time.Second)
	})
	c.Advance(3500 * time.Millisecond)
	assert.Equal(t, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, got)

	armed := false
	c.AfterFunc(0, func() { c.AfterFunc(0, func() { armed = true }) })
	assert.False(t, armed)
	c.Settle()
	assert.True(t, armed, "armed for the same instant")
}

func TestAfterFuncNeverCallsBeforeItReturns(t *testing.T) {
	c := NewClock(time.Time{})
	calls := 0
	for _, d := range []time.Duration{0, -time.Hour} {
		c.AfterFunc(d, func() { calls++; assert.Zero(t, c.Monotonic()) })
	}
	assert.Zero(t, calls)
	c.Settle()
	assert.Equal(t, 2, calls)
}

func TestStopAndResetAreThoseOfTimeTimer(t *testing.T) {
	c := NewClock(time.Time{})
	calls := 0
	timer := c.AfterFunc(time.Second, func() { calls++ })
	assert.True(t, timer.Stop())
	assert.False(t, timer.Stop(), "stopped before")
	c.Advance(2 * time.Second)
	assert.Zero(t, calls)

	assert.False(t, timer.Reset(time.Second), "was not pending")
	assert.True(t, timer.Reset(3*time.Second), "was pending")
	c.Advance(2 * time.Second)
	assert.Zero(t, calls)
	c.Advance(time.Second)
	assert.Equal(t, 1, calls)
	assert.False(t, timer.Stop(), "has fired")
	assert.False(t, timer.Reset(time.Second), "has fired")
	c.Advance(time.Second)
	assert.Equal(t, 2, calls)

	var self jobpoll.Timer
	self = c.AfterFunc(time.Second, func() { assert.False(t, self.Stop(), "it is firing") })
	c.Advance(time.Second)

	first := c.AfterFunc(time.Second, func() { calls = 10 })
	c.AfterFunc(time.Second, func() { calls = 20 })
	first.Reset(time.Second) // armed last, fires last
	c.Advance(time.Second)
	assert.Equal(t, 10, calls)
}

func TestAHugeDelayDoesNotOverflow(t *testing.T) {
	c := NewClock(time.Time{})
	c.Advance(time.Hour)
	timer := c.AfterFunc(1<<63-1, func() { t.Error("fired") })
	c.Advance(1000 * time.Hour)
	assert.True(t, timer.Stop())
}

func TestAJumpMovesTheWallOnly(t *testing.T) {
	c := NewClock(time.Time{})
	fired := false
	c.AfterFunc(time.Minute, func() { fired = true })
	c.Jump(time.Hour)
	c.Settle()
	assert.Equal(t, year2001.Add(time.Hour), c.Now())
	assert.Zero(t, c.Monotonic())
	assert.False(t, fired)
	c.Jump(-3 * time.Hour)
	assert.Equal(t, year2001.Add(-2*time.Hour), c.Now())
	c.Advance(time.Minute)
	assert.True(t, fired)
	assert.Equal(t, time.Minute, c.Monotonic())
	assert.Contains(t, c.String(), "wall set by -2h0m0s")
}

func TestASuspendWithAStandingMonotonicTimeMakesTimersLate(t *testing.T) {
	c := NewClock(time.Time{})
	var at time.Time
	c.AfterFunc(time.Minute, func() { at = c.Now() })
	c.Suspend(time.Hour, false)
	assert.Equal(t, year2001.Add(time.Hour), c.Now())
	assert.True(t, at.IsZero())
	c.Advance(time.Minute)
	assert.Equal(t, year2001.Add(time.Hour+time.Minute), at)
}

func TestASuspendWithARunningMonotonicTimeFiresAllAtItsEnd(t *testing.T) {
	c := NewClock(time.Time{})
	var got []string
	note := func(name string) func() {
		return func() { got = append(got, fmt.Sprintf("%s@%v", name, c.Monotonic())) }
	}
	c.AfterFunc(2*time.Minute, note("b"))
	var tick jobpoll.Timer
	tick = c.AfterFunc(time.Minute, func() { note("a")(); tick.Reset(time.Minute) })
	c.AfterFunc(2*time.Hour, note("later"))
	c.Suspend(time.Hour, true)
	assert.Equal(t, []string{"a@1h0m0s", "b@1h0m0s"}, got)
	assert.Equal(t, year2001.Add(time.Hour), c.Now())
}

func TestMisuseOfTheClockPanicsWithAReason(t *testing.T) {
	c := NewClock(time.Time{})
	assert.PanicsWithValue(t, "polltest: Advance(-1s): the monotonic time cannot go back; Jump sets the wall time", func() { c.Advance(-time.Second) })
	assert.Panics(t, func() { c.AdvanceTo(year2001.Add(-time.Second)) })
	assert.Panics(t, func() { c.Suspend(-time.Second, true) })
	assert.Panics(t, func() { c.AfterFunc(0, nil) })
	c.AfterFunc(time.Second, func() { c.Settle() })
	assert.PanicsWithValue(t, "polltest: Settle called in a timer's function: it would wait for itself", func() { c.Advance(time.Second) })
	c.Advance(time.Second) // the clock goes on after a panic
	assert.Equal(t, 2*time.Second, c.Monotonic())
}

func TestATimerThatIsArmedForAtOnceForEverIsReported(t *testing.T) {
	c := NewClock(time.Time{})
	var tick jobpoll.Timer
	tick = c.AfterFunc(0, func() { tick.Reset(0) })
	assert.PanicsWithValue(t, "polltest: the clock stands still: 1000000 timers in a row were armed for at once", c.Settle)
}

// B81: from several goroutines.
func TestConcurrentAdvancesTakeEffectOneAfterTheOther(t *testing.T) {
	c := NewClock(time.Time{})
	n := 0 // not guarded: the clock serialises
	var tick jobpoll.Timer
	tick = c.AfterFunc(time.Second, func() { n++; tick.Reset(time.Second) })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				c.Advance(time.Second)
			}
		})
	}
	wg.Wait()
	assert.Equal(t, 80, n)
	assert.Equal(t, 80*time.Second, c.Monotonic())
}

func TestSleepEndsAtItsInstantOrWithItsContext(t *testing.T) {
	c := NewClock(time.Time{})
	ctx, cancel := context.WithCancelCause(t.Context())
	assert.NoError(t, c.Sleep(ctx, 0))
	work, done := c.BusyContext(ctx, nil)
	slept := make(chan error)
	go func() { slept <- c.Sleep(work, time.Second) }()
	for c.Timers() == 0 {
		time.Sleep(time.Millisecond)
	}
	c.Advance(999 * time.Millisecond)
	assert.Equal(t, 1, c.Timers())
	go c.Advance(time.Millisecond)
	assert.NoError(t, <-slept)
	done()

	go func() { slept <- c.Sleep(ctx, time.Second) }()
	for c.Timers() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel(assert.AnError)
	assert.ErrorIs(t, <-slept, assert.AnError)
	assert.Zero(t, c.Timers())
	assert.ErrorIs(t, c.Sleep(ctx, time.Second), assert.AnError)
}

func BenchmarkAdvance100kTimers(b *testing.B) {
	for b.Loop() {
		c := NewClock(time.Time{})
		n := 0
		for i := range 100_000 {
			c.AfterFunc(time.Duration(i*7919%100_000)*time.Millisecond, func() { n++ })
		}
		c.Advance(time.Hour)
		if n != 100_000 {
			b.Fatal(n)
		}
	}
}
