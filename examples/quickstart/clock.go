package main

import (
	"context"
	"time"

	"github.com/jobpoll/jobpoll"
)

// fastClock is a jobpoll.Clock that runs so many times faster than real time.
type fastClock struct {
	start time.Time
	speed time.Duration
}

func newClock(speed int) fastClock { return fastClock{start: time.Now(), speed: time.Duration(speed)} }

func (c fastClock) Now() time.Time { return c.start.Add(time.Since(c.start) * c.speed) }

func (c fastClock) AfterFunc(d time.Duration, f func()) jobpoll.Timer {
	return fastTimer{time.AfterFunc(d/c.speed, f), c.speed}
}

// since is the clock's time since the start.
func (c fastClock) since() time.Duration { return c.Now().Sub(c.start) }

// real is a time that lasts as long as d does in reality. It is for bounds of
// calls, which are no faster than calls are.
func (c fastClock) real(d time.Duration) time.Duration { return d * c.speed }

// sleep reports whether ctx lasted as long.
func (c fastClock) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d / c.speed)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

type fastTimer struct {
	*time.Timer
	speed time.Duration
}

func (t fastTimer) Reset(d time.Duration) bool { return t.Timer.Reset(d / t.speed) }
