package main

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"
)

var errPending = errors.New("not done yet")

// constantly is an exponential backoff that does not grow: first = cap.
func constantly(interval time.Duration) backoff.BackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(interval), backoff.WithMaxInterval(interval),
		backoff.WithRandomizationFactor(0), backoff.WithMaxElapsedTime(0))
}

// startBackoff retries until the job is done.
func startBackoff(m *meter) way {
	return way{admit: func(id string, first int64) {
		go func() {
			m.sleepUntil(first)
			_ = backoff.Retry(func() error {
				m.look(id)
				return errPending
			}, backoff.WithContext(constantly(m.Interval), context.Background()))
		}()
	}}
}
