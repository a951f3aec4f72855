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
	mono  monotonic // nil: Now is used for both

	mu      sync.Mutex
	started bool
	raw     reading
	rawWall int64 // of raw, in Unix nanoseconds
	steady  Stamp
	offset  time.Duration // wall clock minus timeline
	jumped  time.Duration // jumps, back or forward, not yet taken by the engine
}

func newTimeline(c Clock) *timeline {
	l := &timeline{clock: clockOrSystem(c)}
	l.mono, _ = l.clock.(monotonic)
	return l
}

// now reads the clock.
func (l *timeline) now() Stamp {
	now, _ := l.read()
	return now
}

// read is now, and the clock's own reading.
func (l *timeline) read() (now Stamp, raw reading) {
	raw = readClock(l.clock, l.mono)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.started {
		l.started = true
		l.raw, l.rawWall, l.steady = raw, raw.now.UnixNano(), StampOf(raw.now)
		return l.steady, raw
	}
	// With a monotonic reading in both, Sub ignores steps of the wall clock.
	run := raw.now.Sub(l.raw.now)
	if l.mono != nil {
		run = raw.mono - l.raw.mono
	}
	if run < 0 {
		run = 0
		if l.mono != nil || raw.now.Round(0).Before(l.raw.now.Round(0)) && raw.now.Sub(l.raw.now) > -time.Second {
			// A reading that was overtaken on its way here, no step back.
			return l.steady, l.raw
		}
	}
	rawWall := raw.now.UnixNano()
	wall := time.Duration(rawWall - l.rawWall)
	l.raw, l.rawWall = raw, rawWall
	l.steady = l.steady.Add(run)
	l.offset += wall - run
	if step := wall - run; step > jumpLimit || step < -jumpLimit {
		l.jumped += wall - run
	}
	return l.steady, raw
}

// latest is the clock's own last reading, without reading the clock.
func (l *timeline) latest() reading {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.raw
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
