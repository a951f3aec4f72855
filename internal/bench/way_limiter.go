package main

import (
	"context"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/time/rate"
)

// startLimiter is startBackoff with one wide limit that all jobs share.
func startLimiter(m *meter) way {
	limiter := rate.NewLimiter(rate.Limit(wide), wide)
	return way{admit: func(id string, first int64) {
		go func() {
			m.sleepUntil(first)
			ctx := context.Background()
			_ = backoff.Retry(func() error {
				if err := limiter.Wait(ctx); err != nil {
					return backoff.Permanent(err)
				}
				m.look(id)
				return errPending
			}, backoff.WithContext(constantly(m.Interval), ctx))
		}()
	}}
}
