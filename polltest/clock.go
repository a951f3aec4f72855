package polltest

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
)

// stormLimit is how many timers in a row may be armed for the instant at which
// they are armed before Advance says that time will never go on.
const stormLimit = 1_000_000

// Clock is a manual clock: its time stands still until the test moves it.
//
// It keeps two times. The monotonic one only runs forward, by Advance, and
// timers live on it. The wall time, Now, runs along with it and can be set
// besides, by Jump.
//
// Advance fires what is due in order, each timer at its own instant, and
// before it goes on from one to the next, and before it returns, it waits
// until all work is done that the last one set off. Work is what a Poller
// does, and what was announced with Busy or BusyContext. Work that itself
// waits on the clock counts as done for now: it waits in Sleep, or for its
// context, whose time limit is a timer of this clock.
//
// The zero Clock is ready to use, with the time of NewClock(time.Time{}). A
// Clock must not be copied. All methods may be called from several goroutines
// at once, also from a timer's function and from work under way, but for those
// that move the monotonic time (Advance, AdvanceTo, Settle and Suspend): from
// a timer's function they panic, and in work that Advance waits for they would
// wait for themselves.
type Clock struct {
	mu    sync.Mutex
	cond  *sync.Cond // on mu: stepping ended, or events grew; made on first use
	start time.Time  // wall time at mono 0 without jumps
	mono  time.Duration
	shift time.Duration // sum of all jumps
	heap  timerHeap
	armed uint64 // how many times a timer was armed

	stepping bool   // somebody moves the clock
	stepper  uint64 // on this goroutine

	idleTracker
}

// NewClock returns a clock that stands at start, in start's location. The zero
// start means 2001-01-01 00:00 UTC.
func NewClock(start time.Time) *Clock {
	return &Clock{start: start.Round(0)} // Round strips a monotonic reading
}

// Now returns the wall time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Time {
	if c.start.IsZero() {
		c.start = time.Date(2001, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	return c.start.Add(c.mono).Add(c.shift)
}

// Monotonic returns how far the clock has been advanced. It never jumps.
func (c *Clock) Monotonic() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mono
}

// Timers returns how many timers are pending, Sleeps under way included.
func (c *Clock) Timers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.heap)
}

// AfterFunc makes f be called when the clock has been advanced by d; with d of
// zero or less by the next Advance or Settle. Of timers due at one instant the
// one that was armed first fires first.
//
// f is called on the goroutine that advances the clock. It may use the clock
// (arm timers, stop them, read it, Jump), but must neither move its time nor
// wait for it to move.
func (c *Clock) AfterFunc(d time.Duration, f func()) jobpoll.Timer {
	if f == nil {
		panic("polltest: AfterFunc with a nil function")
	}
	t := &timer{clock: c, f: f}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arm(t, d)
	return t
}

// Sleep returns nil when the clock has been advanced by d, or the cause of ctx
// when ctx ends before that. It is how a Checker takes time in a test: with
// the context that the Checker got (or one made from it) its work counts as
// idle meanwhile, and Advance waits for it again from the instant at which the
// sleep is over.
//
// One context stands for one piece of work. Where a Checker starts goroutines
// that each wait on the clock, give each a context of its own by BusyContext.
// A goroutine with a plain context may sleep too, but Advance does not wait
// for what it does afterwards.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	ended := ctx.Done() // asked for first, so that BusyContext sees it
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	work, _ := ctx.Value(itemKey{c}).(*item)
	s := &sleeper{ctx: ctx, work: work}
	woken := make(chan struct{})
	t := &timer{clock: c, f: func() {
		c.mu.Lock()
		c.wake(s)
		c.mu.Unlock()
		close(woken)
	}}
	c.mu.Lock()
	c.arm(t, d)
	c.fallAsleep(s)
	c.mu.Unlock()

	select {
	case <-woken:
		return nil
	case <-ended:
	}
	if !t.Stop() {
		<-woken // it fired at the same instant
		return nil
	}
	c.mu.Lock()
	c.wake(s)
	c.mu.Unlock()
	return context.Cause(ctx)
}

// Advance moves the clock on by d. It fires every timer that becomes due on
// the way, at the instant at which it is due, those included that are armed
// meanwhile; and it returns when all work is done that this set off, or waits
// on the clock. See Report for what happens if that work does not end.
//
// Calls from several goroutines take effect one after the other. A negative d
// panics: only the wall time can go back, see Jump.
func (c *Clock) Advance(d time.Duration) {
	if d < 0 {
		panic(fmt.Sprintf("polltest: Advance(%v): the monotonic time cannot go back; Jump sets the wall time", d))
	}
	c.begin("Advance")
	defer c.end()
	c.advance(d)
}

// AdvanceTo is Advance to the instant at which Now is t. It panics if that has
// passed already.
func (c *Clock) AdvanceTo(t time.Time) {
	c.begin("AdvanceTo")
	defer c.end()
	now := c.Now()
	d := t.Sub(now)
	if d < 0 {
		panic(fmt.Sprintf("polltest: AdvanceTo(%v): it is %v already; Jump sets the wall time", t, now))
	}
	c.advance(d)
}

// Settle is Advance(0): it fires what is due now, and returns when all work is
// done or waits on the clock.
func (c *Clock) Settle() {
	c.begin("Settle")
	defer c.end()
	c.advance(0)
}

// Jump sets the wall time forward by d, or back for a negative d, as an
// operator or NTP does. The monotonic time stands and no timer fires. Use
// Settle or Advance to see what comes of it.
func (c *Clock) Jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shift += d
}

// Suspend is a machine that sleeps for d. The wall time goes on by d. Where
// monotonicRuns, as on Windows, so does the monotonic time, in one step: all
// timers that became due meanwhile fire when it is over, in order, all at that
// same instant. Otherwise, as on Linux, timers are late by d on the wall.
// Suspend returns when all work that this set off is done or waits on the
// clock. A negative d panics.
func (c *Clock) Suspend(d time.Duration, monotonicRuns bool) {
	if d < 0 {
		panic(fmt.Sprintf("polltest: Suspend(%v): no machine sleeps for less than nothing", d))
	}
	c.begin("Suspend")
	defer c.end()
	c.settle()
	c.mu.Lock()
	if monotonicRuns {
		c.mono = after(c.mono, d)
	} else {
		c.shift += d
	}
	c.mu.Unlock()
	c.advance(0)
}

// Report makes the clock fail the test t, by Fatalf, where it would panic
// otherwise: when for 5 s of real time some work neither ends nor waits on the
// clock. Each such piece of work is named. Start does this for you; it holds
// until t ends.
func (c *Clock) Report(t testing.TB) {
	c.mu.Lock()
	before := c.tb
	c.tb = t
	c.mu.Unlock()
	t.Cleanup(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.tb = before
	})
}

// begin waits until nobody else moves the clock, and end lets the next one. A
// sync.Cond rather than a held mutex, so that waiting for it is "durable" in a
// testing/synctest bubble.
func (c *Clock) begin(method string) {
	me := goroutineID()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stepping && c.stepper == me {
		panic("polltest: " + method + " called in a timer's function: it would wait for itself")
	}
	for c.stepping {
		c.wait()
	}
	c.stepping, c.stepper = true, me
}

func (c *Clock) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stepping = false
	c.broadcast()
}

// advance is Advance for who holds begin.
func (c *Clock) advance(d time.Duration) {
	c.settle()
	c.mu.Lock()
	target := after(c.mono, d)
	storm := 0
	for len(c.heap) > 0 && c.heap[0].at <= target {
		e := c.pop()
		c.mono = max(c.mono, e.at)
		if e.timer.prompt {
			storm++
		} else {
			storm = 0
		}
		c.mu.Unlock()
		e.timer.f()
		if storm == stormLimit {
			c.fail(fmt.Sprintf("polltest: the clock stands still: %d timers in a row were armed for at once", storm))
			return
		}
		c.mu.Lock()
		if len(c.items) > 0 {
			c.mu.Unlock()
			c.settle()
			c.mu.Lock()
		}
	}
	c.mono = target
	c.mu.Unlock()
}

// next returns how long it is to the next timer.
func (c *Clock) next() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.heap) == 0 {
		return 0, false
	}
	return max(c.heap[0].at-c.mono, 0), true
}

// after is now + d without overflow.
func after(now, d time.Duration) time.Duration {
	if d > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + d
}

// String tells both times and the number of timers.
func (c *Clock) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%s (+%v", c.now().Format(time.RFC3339Nano), c.mono)
	if c.shift != 0 {
		fmt.Fprintf(&b, ", wall set by %v", c.shift)
	}
	fmt.Fprintf(&b, ", %d timers)", len(c.heap))
	return b.String()
}
