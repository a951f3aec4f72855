package jobpoll_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What ends with a context says both that it did and why the context has ended.
func TestTheEndOfAContextMatchesItsErrorAndItsCause(t *testing.T) {
	closed := jobpoll.NewBudget("a", jobpoll.Limits{})
	done, err := closed.Acquire(t.Context(), jobpoll.LaneStatus)
	require.NoError(t, err)
	done(&jobpoll.CheckError{Kind: jobpoll.ErrorRateLimited, Hint: jobpoll.Hint{RetryAfter: time.Hour}})
	store := jobpoll.NewMemoryStore(nil)
	r := rigOf(t, nil)
	r.prov.Default("running")
	cause := errors.New("enough")
	for name, call := range map[string]func(context.Context) error{
		"Budget.Acquire": func(ctx context.Context) error { _, err := closed.Acquire(ctx, jobpoll.LaneStatus); return err },
		"Poller.Watch":   func(ctx context.Context) error { return r.Watch(ctx, jobpoll.Job{Route: "r", ID: "w"}) },
		"Poller.Wait": func(ctx context.Context) error {
			_, err := r.Poller.Wait(ctx, jobpoll.Job{Route: "r", ID: "a"})
			return err
		},
		"Poller.Drain": func(ctx context.Context) error { return r.Drain(ctx) },
		"Poller.Submit": func(ctx context.Context) error {
			_, err := r.Submit(ctx, submitOf(r, "c", polltest.Order{}))
			return err
		},
		"MemoryStore.Get":      func(ctx context.Context) error { _, err := store.Get(ctx, jobpoll.RecordJob, "a"); return err },
		"MemoryStore.Put":      func(ctx context.Context) error { return store.Put(ctx, nil) },
		"MemoryStore.Lease":    func(ctx context.Context) error { _, err := store.Lease(ctx, "me", time.Minute); return err },
		"Wait without a Route": func(ctx context.Context) error { _, err := jobpoll.Wait(ctx, r.prov, jobpoll.Job{ID: "a"}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			r.watch("pending")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(cause)
			err := call(ctx)
			require.ErrorIs(t, err, context.Canceled)
			assert.ErrorIs(t, err, cause)
		})
	}
}
