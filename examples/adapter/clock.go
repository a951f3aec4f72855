package main

import (
	"time"

	"github.com/jobpoll/jobpoll"
)

// fastClock is a jobpoll.Clock that runs so many times faster than real time,
// for people who do not want to wait for a demonstration.
type fastClock struct {
	start time.Time
	speed time.Duration
}

func (c fastClock) Now() time.Time { return c.start.Add(time.Since(c.start) * c.speed) }

func (c fastClock) AfterFunc(d time.Duration, f func()) jobpoll.Timer {
	return fastTimer{time.AfterFunc(d/c.speed, f), c.speed}
}

type fastTimer struct {
	*time.Timer
	speed time.Duration
}

func (t fastTimer) Reset(d time.Duration) bool { return t.Timer.Reset(d / t.speed) }
