package main

import (
	"time"

	"github.com/jobpoll/jobpoll"
)

// fastClock runs many times as fast as the real one, and tells the same time in
// each process.
type fastClock struct {
	Epoch time.Time // when it began
	Speed int
}

func (c fastClock) Now() time.Time {
	return c.Epoch.Add(time.Since(c.Epoch) * time.Duration(c.Speed)).UTC()
}

func (c fastClock) AfterFunc(d time.Duration, f func()) jobpoll.Timer {
	return fastTimer{time.AfterFunc(c.real(d), f), c}
}

// real is how long d lasts on the real clock.
func (c fastClock) real(d time.Duration) time.Duration { return d / time.Duration(c.Speed) }

type fastTimer struct {
	*time.Timer
	clock fastClock
}

func (t fastTimer) Reset(d time.Duration) bool { return t.Timer.Reset(t.clock.real(d)) }
