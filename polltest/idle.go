package polltest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Real times. They bound waiting for the machine, never what a test observes.
const (
	defaultLimit = 5 * time.Second       // then work under way is reported
	firstPause   = 2 * time.Millisecond  // without any event, before a look at the goroutines
	longestPause = 50 * time.Millisecond // between such looks
)

// idleTracker knows the work under way. It is part of Clock and guarded by its
// mutex.
type idleTracker struct {
	tb     testing.TB
	limit  time.Duration // real time without an event, then report; 0: defaultLimit
	items  map[*item]struct{}
	begun  uint64 // how many items ever began
	events uint64 // grows whenever something changes that settle looks at
	looks  []look // scratch of settle
}

// item is one piece of work under way.
type item struct {
	clock *Clock
	seq   uint64
	what  func() string
	ctx   context.Context // nil where it cannot wait on the clock

	// Guarded by the clock's mutex.
	ended      bool
	reported   bool                  // reported once already: not waited for any more
	asked      bool                  // its context was asked for Done: it may be waiting for that
	parked     bool                  // found to wait for its context the last time
	goroutines []uint64              // that began it or asked for Done
	asleep     map[*sleeper]struct{} // in Sleep
	awake      bool                  // one of several sleepers woke and did not go to sleep again
}

// sleeper is one Sleep under way.
type sleeper struct {
	ctx  context.Context
	work *item // nil: not known
}

type itemKey struct{ clock *Clock }

// itemContext tells when somebody may be about to wait for it.
type itemContext struct {
	context.Context
	work *item
}

func (x *itemContext) Done() <-chan struct{} {
	x.work.ask(goroutineID())
	return x.Context.Done()
}

func (x *itemContext) Value(key any) any {
	if key == (itemKey{x.work.clock}) {
		return x.work
	}
	return x.Context.Value(key)
}

// Busy announces work under way: until done is called, Advance waits for it.
// what names the work in a report; it is called only for that. done may be
// called from any goroutine, and more than once.
//
// Work that may itself wait on the clock needs BusyContext.
func (c *Clock) Busy(what func() string) (done func()) {
	return c.track(&item{what: what})
}

// BusyContext announces work that may wait on the clock. Call it on the
// goroutine that does the work and hand the returned context to it as it is.
// Until done is called, Advance waits for the work, but not
//
//   - while it is in Sleep with that context or one made from it, or
//   - while its goroutine, and every goroutine it started, waits in a receive,
//     a select or on a sync.WaitGroup, after having asked that context for its
//     Done channel. Then it waits for the context, which an event on the clock
//     will end, or for the test. Advance needs some milliseconds of real time
//     to see that. It knows a wait for the network from that, and waits for
//     it, unless a handler of an HTTP server in this process waits likewise.
//
// When the context has ended, Advance waits for the work again in any case.
func (c *Clock) BusyContext(ctx context.Context, what func() string) (busy context.Context, done func()) {
	it := &item{what: what, ctx: ctx, goroutines: []uint64{goroutineID()}}
	done = c.track(it)
	return &itemContext{Context: ctx, work: it}, done
}

func (c *Clock) track(it *item) (done func()) {
	if it.what == nil {
		it.what = func() string { return "unnamed work" }
	}
	it.clock = c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.items == nil {
		c.items = make(map[*item]struct{})
	}
	it.seq = c.begun
	c.begun++
	c.items[it] = struct{}{}
	c.event()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !it.ended {
			it.ended = true
			delete(c.items, it)
			c.event()
		}
	}
}

// ask notes that the goroutine may be about to wait for the context.
func (it *item) ask(goroutine uint64) {
	c := it.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if it.ended {
		return
	}
	if !slices.Contains(it.goroutines, goroutine) {
		it.goroutines = append(it.goroutines, goroutine)
	}
	if !it.asked {
		it.asked = true
		c.event()
	}
}

// fallAsleep and wake begin and end a Sleep; c.mu is held.
func (c *Clock) fallAsleep(s *sleeper) {
	if s.work == nil || s.work.ended {
		return
	}
	if s.work.asleep == nil {
		s.work.asleep = make(map[*sleeper]struct{})
	}
	s.work.asleep[s] = struct{}{}
	s.work.awake = false
	c.event()
}

func (c *Clock) wake(s *sleeper) {
	if s.work == nil {
		return
	}
	delete(s.work.asleep, s)
	s.work.awake = true
	s.work.parked = false
	c.event()
}

// event tells a settle under way to look again; c.mu is held.
func (c *Clock) event() {
	c.events++
	c.broadcast()
}

func (c *Clock) broadcast() {
	if c.cond != nil {
		c.cond.Broadcast()
	}
}

// wait is cond.Wait; c.mu is held.
func (c *Clock) wait() {
	if c.cond == nil {
		c.cond = sync.NewCond(&c.mu)
	}
	c.cond.Wait()
}

// await waits until there was an event after the given one, for d of real time
// at most, and reports whether there was.
func (c *Clock) await(seen uint64, d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	over := false
	alarm := time.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		over = true
		c.broadcast()
	})
	defer alarm.Stop()
	for c.events == seen && !over {
		c.wait()
	}
	return c.events != seen
}

func (c *Clock) eventCount() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events
}

func (c *Clock) begunCount() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun
}

// look is what settle sees of one item.
type look struct {
	*item
	asked, parked bool
	goroutines    []uint64
	sleeping      []context.Context // not empty: it is in Sleep with all of these
}

// waits reports whether the item surely waits on the clock (yes), or may do so
// and has to be looked at closely (maybe). No lock is held.
func (l *look) waits() (yes, maybe bool) {
	if len(l.sleeping) > 0 {
		for _, ctx := range l.sleeping {
			if ctx.Err() != nil {
				return false, false // about to leave Sleep
			}
		}
		return true, false
	}
	return false, l.asked && l.ctx.Err() == nil
}

// survey returns what there is to wait for, oldest first, and the number of
// events up to then. The answer is valid until the next call.
func (c *Clock) survey() (looks []look, seen uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	looks = c.looks[:0]
	for it := range c.items {
		if it.reported {
			continue
		}
		l := look{item: it, asked: it.asked, parked: it.parked, goroutines: it.goroutines}
		if !it.awake {
			for s := range it.asleep {
				l.sleeping = append(l.sleeping, s.ctx)
			}
		}
		looks = append(looks, l)
	}
	slices.SortFunc(looks, func(a, b look) int { return cmp.Compare(a.seq, b.seq) })
	c.looks = looks
	return looks, c.events
}

// settle returns when no work is under way that does not wait on the clock.
// Its caller holds begin, and no lock.
//
// Items that end and begin, and Sleeps, are events: as long as there is work
// that surely does not wait on the clock, settle waits for the next event. Is
// there only work that may be waiting for its context, then settle looks at
// its goroutines: after a pause without an event, and once more after another.
// An item that was found waiting in the settle before needs one look only: if
// anything had woken it, it would not be waiting any more.
func (c *Clock) settle() {
	var (
		waited time.Duration // real time without an event
		pause  = firstPause
		quiet  bool // there was a pause without an event
		calm   int  // looks in a row that found all waiting
	)
	for {
		looks, seen := c.survey()
		working, known := false, true
		suspects := looks[:0]
		for _, l := range looks {
			yes, maybe := l.waits()
			switch {
			case yes:
			case maybe:
				suspects = append(suspects, l)
				known = known && l.parked
			default:
				working = true
			}
		}

		wait := c.realLimit() - waited
		switch {
		case working:
		case len(suspects) == 0:
			if c.eventCount() == seen {
				return
			}
			continue
		default:
			wait = min(wait, pause)
			if !known && !quiet {
				break
			}
			waiting, network := c.allParked(suspects)
			if !waiting {
				calm = 0
				c.markParked(suspects, false)
				pause = min(2*pause, longestPause)
				break
			}
			calm++
			need := 2
			if network {
				need = 4 // bytes under way show in no goroutine
			} else if known {
				need = 1
			}
			if calm >= need && c.eventCount() == seen {
				c.markParked(suspects, !network)
				return
			}
		}

		if c.await(seen, max(wait, 0)) {
			waited, pause, quiet, calm = 0, firstPause, false, 0
			continue
		}
		quiet = true
		if waited += wait; waited >= c.realLimit() {
			c.reportBusy()
			return
		}
	}
}

func (c *Clock) realLimit() time.Duration {
	return cmp.Or(c.limit, defaultLimit)
}

func (c *Clock) markParked(looks []look, parked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range looks {
		l.item.parked = parked
	}
}

// reportBusy fails the test and names all work that does not wait on the
// clock. It is not waited for again.
func (c *Clock) reportBusy() {
	looks, _ := c.survey()
	goroutines := allGoroutines()
	var names []string
	var stacks strings.Builder
	for _, l := range looks {
		if yes, _ := l.waits(); yes {
			continue
		}
		c.mu.Lock()
		l.reported = true
		c.mu.Unlock()
		name := l.what()
		for _, id := range l.goroutines {
			if g, ok := goroutines[id]; ok {
				name += fmt.Sprintf(" (goroutine in %s)", g.state)
				stacks.WriteString("\n\n" + g.text)
				break
			}
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return // it ended in this moment
	}
	c.fail(fmt.Sprintf("polltest: after %v of real time still busy: %s; a check must wait on the clock (Clock.Sleep, its context) or return%s",
		c.realLimit(), strings.Join(names, ", "), stacks.String()))
}

// fail reports to the test, or panics where there is none.
func (c *Clock) fail(text string) {
	c.mu.Lock()
	tb := c.tb
	c.mu.Unlock()
	if tb == nil {
		panic(text)
	}
	tb.Helper()
	tb.Fatal(text)
}
