package jobpoll

import (
	"sync/atomic"
	"time"
)

// Clock is the time that a Poller and its budgets live on. A nil Clock in
// Config means package time, which also makes a Poller work inside a
// testing/synctest bubble. polltest.Clock is a manual one for tests.
//
// Both methods may be called from several goroutines at once. AfterFunc must
// not call f before it returns, nor while it holds a lock of its own. It and
// the methods of a Timer may be called under a lock of the Poller or of a
// Budget, and must call neither; Now and Monotonic never are.
//
// A clock whose Now can be set (a simulated wall clock) should also have the
// method
//
//	Monotonic() time.Duration
//
// that never jumps: the Poller then measures ages and waits on it and takes a
// difference between the two for a clock step or a suspended machine. Without
// it, Now is used for both; readings of package time carry a monotonic part.
type Clock interface {
	Now() time.Time
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is what AfterFunc returns; *time.Timer is one.
type Timer interface {
	// Stop prevents f from being called; false if it was called or stopped before.
	Stop() bool
	// Reset makes f be called after d from now; true if the timer was pending.
	Reset(d time.Duration) bool
}

// SystemClock is package time as a Clock: what a nil Clock means.
func SystemClock() Clock { return systemClock{} }

type systemClock struct{}

func (systemClock) Now() time.Time                            { return time.Now() }
func (systemClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// alarm wakes one of those who receive from its channel. Of package time it is a
// ticker: that needs no goroutine in between, and where the same wait comes
// again and again it goes on by itself, which spares the runtime to wake the
// thread that sleeps for all timers. A ticker is set under Poller.mu, by whoever
// has a reason; another alarm without it, by the loop alone.
type alarm struct {
	rings  <-chan time.Time // nil: it calls a function instead
	ticker *time.Ticker
	every  time.Duration
	timer  Timer
}

// newAlarm makes an alarm that is set for a heartbeat; ring is called where it
// has no channel.
func newAlarm(c Clock, ring func()) *alarm {
	if c == (systemClock{}) {
		t := time.NewTicker(heartbeat)
		return &alarm{rings: t.C, ticker: t, every: heartbeat}
	}
	return &alarm{timer: c.AfterFunc(heartbeat, ring)}
}

// shortestAlarm keeps a ticker from running hot until somebody sets it anew.
const shortestAlarm = 100 * time.Microsecond

// set makes the alarm ring in d at the latest, or after shortestAlarm; never if
// d is less than zero.
func (a *alarm) set(d time.Duration) {
	switch {
	case d < 0 && a.ticker == nil:
		a.timer.Stop()
	case d < 0:
		a.every = 0
		a.ticker.Stop()
	case a.ticker == nil:
		a.timer.Reset(d)
	case max(d, shortestAlarm) != a.every:
		a.every = max(d, shortestAlarm)
		a.ticker.Reset(a.every)
	}
}

// clockOrSystem makes a nil Clock mean package time.
func clockOrSystem(c Clock) Clock {
	if c == nil {
		return systemClock{}
	}
	return c
}

// monotonic is a clock that says how much time has passed.
type monotonic interface{ Monotonic() time.Duration }

// reading is what a clock tells. Clocks are the user's code, so they are read
// before a lock is taken.
type reading struct {
	now    time.Time
	mono   time.Duration // of a clock that is monotonic
	number uint64
}

// readings numbers the readings: one that was made after another was taken over
// has a number no lower than that.
var readings atomic.Uint64

func readClock(c Clock, m monotonic) reading {
	r := reading{number: readings.Load()}
	if r.now = c.Now(); m != nil {
		r.mono = m.Monotonic()
	}
	return r
}

// clockSource is a clock as a budget reads it; nil is package time.
type clockSource struct {
	clock Clock
	mono  monotonic // nil: the clock has none
	base  time.Time // the time at mono 0
}

func newClockSource(c Clock) *clockSource {
	s := &clockSource{clock: c}
	if s.mono, _ = c.(monotonic); s.mono != nil {
		r := s.read()
		s.base = r.now.Round(0).Add(-r.mono)
	}
	return s
}

func (s *clockSource) read() reading {
	if s == nil {
		return readClock(systemClock{}, nil)
	}
	return readClock(s.clock, s.mono)
}

// afterFunc sets a timer.
func (s *clockSource) afterFunc(d time.Duration, f func()) Timer {
	if s == nil {
		return systemClock{}.AfterFunc(d, f)
	}
	return s.clock.AfterFunc(d, f)
}

// jumpLimit is the difference between wall clock and timeline, within one
// reading, from which on it is a clock step or a suspend and no drift.
const jumpLimit = 5 * time.Second
