package main

import (
	"context"

	"k8s.io/apimachinery/pkg/util/wait"
)

// startWait is a ticker a job: its looks do not move with the lateness of the
// last one.
func startWait(m *meter) way {
	return way{admit: func(id string, first int64) {
		go func() {
			m.sleepUntil(first)
			made := m.now()
			_ = wait.PollUntilContextCancel(context.Background(), m.Interval, true, func(context.Context) (bool, error) {
				m.tick(id, made)
				return false, nil
			})
		}()
	}}
}
