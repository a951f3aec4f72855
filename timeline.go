package jobpoll

import (
	"context"
	"sync"
	"time"
)

// heartbeat is the longest sleep while jobs are watched: a suspended machine
// does not wake timers, so somebody has to look at the wall clock.
const heartbeat = 20 * time.Second

// timeline is the engine's time: it starts at the wall clock and then runs
// with the monotonic one, so that ages and waits survive clock steps. All
// instants inside the engine are on it; what is stored or told is wall time.
type timeline struct {
	clock Clock
	mono  interface{ Monotonic() time.Duration } // nil: Now is used for both

	mu      sync.Mutex
	started bool
	raw     time.Time
	rawWall int64 // of raw, in Unix nanoseconds
	rawMono time.Duration
	steady  Stamp
	offset  time.Duration // wall clock minus timeline
	jumped  time.Duration // jumps, back or forward, not yet taken by the engine
}

func newTimeline(c Clock) *timeline {
	l := &timeline{clock: clockOrSystem(c)}
	l.mono, _ = l.clock.(interface{ Monotonic() time.Duration })
	return l
}

// now reads the clock.
func (l *timeline) now() Stamp {
	now, _ := l.read()
	return now
}

// read is now, and the clock's own reading.
func (l *timeline) read() (now Stamp, raw time.Time) {
	// The clock is the user's code: it is read before the lock is taken.
	raw = l.clock.Now()
	var m time.Duration
	if l.mono != nil {
		m = l.mono.Monotonic()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.started {
		l.started = true
		l.raw, l.rawWall, l.rawMono, l.steady = raw, raw.UnixNano(), m, StampOf(raw)
		return l.steady, raw
	}
	// With a monotonic reading in both, Sub ignores steps of the wall clock.
	run := raw.Sub(l.raw)
	if l.mono != nil {
		run = m - l.rawMono
	}
	if run < 0 {
		run = 0
		if l.mono != nil || raw.Round(0).Before(l.raw.Round(0)) && raw.Sub(l.raw) > -time.Second {
			// A reading that was overtaken on its way here, no step back.
			return l.steady, raw
		}
	}
	rawWall := raw.UnixNano()
	wall := time.Duration(rawWall - l.rawWall)
	l.raw, l.rawWall, l.rawMono = raw, rawWall, m
	l.steady = l.steady.Add(run)
	l.offset += wall - run
	if step := wall - run; step > jumpLimit || step < -jumpLimit {
		l.jumped += wall - run
	}
	return l.steady, raw
}

// last is the last reading, without reading the clock.
func (l *timeline) last() Stamp {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.steady
}

// takeJump gives the sum of the jumps since it was last called.
func (l *timeline) takeJump() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	j := l.jumped
	l.jumped = 0
	return j
}

// shift gives wall clock minus timeline.
func (l *timeline) shift() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.offset
}

// toWall and toSteady carry an instant over; zero stays zero.
func toWall(s Stamp, shift time.Duration) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return s.Add(shift).Time()
}

func toSteady(t time.Time, shift time.Duration) Stamp {
	if s := StampOf(t); s != 0 {
		return s.Add(-shift)
	}
	return 0
}

// busyClock is what a manual clock for tests offers so that it can tell when
// all that it set off is done.
type busyClock interface {
	Busy(what func() string) (done func())
	BusyContext(ctx context.Context, what func() string) (context.Context, func())
}

func noBusy() {}

// busy marks work as under way until the returned function is called.
func (p *Poller) busy(what func() string) func() {
	if p.tracker == nil {
		return noBusy
	}
	return p.tracker.Busy(what)
}

func (p *Poller) busyContext(ctx context.Context, what func() string) (context.Context, func()) {
	if p.tracker == nil {
		return ctx, noBusy
	}
	return p.tracker.BusyContext(ctx, what)
}
