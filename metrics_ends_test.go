package jobpoll_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/require"
)

// Whoever waits until nothing is unresolved or undelivered must not miss a job
// that goes from one to the other while the metrics are read.
func TestAJobThatEndsIsNeverInNeitherCount(t *testing.T) {
	tell := make(chan struct{})
	p, err := jobpoll.New(jobpoll.Config{
		Routes: []jobpoll.Route{{Name: "r", Checker: jobpoll.CheckerFunc(func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			return jobpoll.Report{State: jobpoll.StateRunning}, nil
		})}},
		Callbacks: jobpoll.Callbacks{OnStop: func(context.Context, jobpoll.Outcome) error { <-tell; return nil }},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	for i := range 3000 {
		key := jobpoll.Key{Route: "r", ID: strconv.Itoa(i)}
		require.NoError(t, p.Watch(ctx, jobpoll.Job{Route: "r", ID: key.ID}))
		notified := make(chan error, 1)
		go func() {
			notified <- p.Notify(ctx, jobpoll.Notice{Key: key, Trust: jobpoll.TrustAuthoritative, Report: jobpoll.Report{State: jobpoll.StateFailed}})
		}()
		for {
			if m := p.Metrics(); m.Total.Unresolved == 0 {
				require.Equal(t, 1, m.Callbacks.Undelivered)
				break
			}
		}
		require.NoError(t, <-notified)
		tell <- struct{}{}
		for p.Metrics().Callbacks.Undelivered > 0 {
		}
	}
	cancel()
	require.NoError(t, <-ran)
}
