package provider

import (
	"time"

	"github.com/jobpoll/jobpoll"
)

// systemClock is package time.
type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) jobpoll.Timer { return time.AfterFunc(d, f) }
