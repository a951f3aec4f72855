package jobpoll_test

import (
	"context"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/require"
)

// intentRig is a Poller over a store that outlives it, and what it told.
type intentRig struct {
	*polltest.Harness
	seen *polltest.Recorder
}

func intentStart(t *testing.T, clock *polltest.Clock, store jobpoll.Store) intentRig {
	provider := polltest.NewProvider(clock)
	provider.Default("queued; at 20s succeeded")
	seen := &polltest.Recorder{}
	return intentRig{polltest.Start(t, jobpoll.Config{
		Clock: clock, Store: store, Routes: []jobpoll.Route{{Name: "fal", Checker: provider}}, Callbacks: seen.Callbacks(),
	}), seen}
}

func (r intentRig) submit(t *testing.T, key string) {
	t.Helper()
	sent := 0
	job, err := r.Submit(t.Context(), jobpoll.Submission{
		Job:  jobpoll.Job{Route: "fal", ClientKey: key},
		Send: func(context.Context) (jobpoll.Sent, error) { sent++; return jobpoll.Sent{ID: "remote"}, nil },
	})
	require.NoError(t, err)
	require.Equal(t, "remote", job.ID)
	require.Equal(t, 1, sent)
	r.Clock.Advance(time.Minute)
	o, ok := r.seen.Outcome(jobpoll.Key{Route: "fal", ID: "remote"})
	require.True(t, ok)
	require.Equal(t, jobpoll.ReasonSucceeded, o.Reason)
	require.Equal(t, key, o.Job.ClientKey)
}

func intentPut(t *testing.T, store jobpoll.Store, job jobpoll.Job, now time.Time) {
	t.Helper()
	rec, err := jobpoll.Intent(job, now)
	require.NoError(t, err)
	require.NoError(t, store.Put(t.Context(), []jobpoll.Record{rec}))
}

func TestAnIntentOnRecordWaitsForItsSubmit(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	store := jobpoll.NewMemoryStore(clock)
	rig := intentStart(t, clock, store)
	intentPut(t, store, jobpoll.Job{Route: "fal", ClientKey: "order-1"}, clock.Now())
	rig.submit(t, "order-1")
	require.Len(t, rig.seen.Outcomes(), 1)
}

func TestAnIntentThatWasNeverSubmittedIsToldAsNotSent(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	store := jobpoll.NewMemoryStore(clock)
	intentPut(t, store, jobpoll.Job{Route: "fal", ClientKey: "order-1"}, clock.Now())
	rig := intentStart(t, clock, store)
	rig.Clock.Advance(time.Minute)
	require.Len(t, rig.seen.Outcomes(), 1)
	o := rig.seen.Outcomes()[0]
	require.Equal(t, jobpoll.ReasonNotSent, o.Reason)
	require.Equal(t, "order-1", o.Job.ClientKey)
	rig.submit(t, "order-1")
}

func TestAJobOnRecordIsWatchedWhetherOrNotWatchWasCalled(t *testing.T) {
	for _, watch := range []bool{false, true} {
		clock := polltest.NewClock(time.Time{})
		store := jobpoll.NewMemoryStore(clock)
		job := jobpoll.Job{Route: "fal", ID: "remote", ClientKey: "order-1"}
		intentPut(t, store, job, clock.Now())
		rig := intentStart(t, clock, store)
		if watch {
			require.NoError(t, rig.Watch(t.Context(), job))
		}
		rig.Clock.Advance(time.Minute)
		require.Len(t, rig.seen.Outcomes(), 1)
		require.Equal(t, jobpoll.ReasonSucceeded, rig.seen.Outcomes()[0].Reason)
	}
}

func TestAnIntentOfNothingIsRefused(t *testing.T) {
	for job, want := range map[jobpoll.Job]string{
		{Route: "fal"}:             "ClientKey is empty",
		{ClientKey: "a"}:           "Route is empty",
		{ID: "remote"}:             "Route is empty",
		{Route: "fal", ID: "\xff"}: "not valid UTF-8",
	} {
		_, err := jobpoll.Intent(job, time.Time{})
		require.ErrorContains(t, err, want)
	}
}
