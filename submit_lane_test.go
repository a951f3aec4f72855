package jobpoll_test

import (
	"context"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// withLimits gives the account of the rig limits.
func withLimits(l jobpoll.Limits) func(*rig, *jobpoll.Config) {
	return func(_ *rig, c *jobpoll.Config) { c.Budget = jobpoll.NewBudget("account", l) }
}

func TestSubmissionsWaitInOrderAndSayForWhat(t *testing.T) {
	r := rigOf(t, withLimits(jobpoll.Limits{Jobs: 1}))
	_, err := submit(r, "a", polltest.Order{Script: "running; at 60s succeeded"})
	require.Nil(t, err)
	var waiting []*polltest.Submitting
	for _, c := range []string{"b", "c", "d"} {
		waiting = append(waiting, r.BeginSubmit(t.Context(), submitOf(r, c, polltest.Order{Script: "running; at 60s succeeded"})))
	}
	for i, c := range []string{"b", "c", "d"} {
		info, ok := r.Find(c)
		require.True(t, ok)
		require.NotNil(t, info.Submission)
		assert.Equal(t, jobpoll.SubmissionWaiting, info.Submission.State)
		assert.Equal(t, i+1, info.Submission.Position)
		assert.Contains(t, info.Submission.Reason, "job")
		assert.Empty(t, info.Job.ID)
	}
	assert.Equal(t, 3, r.Metrics().Total.Submissions.Waiting)
	n := 0
	for range r.Submissions() {
		n++
	}
	assert.Equal(t, 3, n)
	r.to(30 * time.Second)
	assert.GreaterOrEqual(t, len(r.looks("R-a")), 5, "looks go on")
	r.to(5 * time.Minute)
	last := time.Time{}
	for i, c := range []string{"b", "c", "d"} {
		_, err := submitted(t, waiting[i])
		require.Nil(t, err)
		at := r.prov.Sends(c)
		require.Len(t, at, 1)
		assert.True(t, at[0].After(last))
		last = at[0]
	}
	r.to(10 * time.Minute)
	r.atZero()
}

func TestASubmissionThatWaitsCanBeCancelled(t *testing.T) {
	store := newShakyStore(nil)
	r := rigOf(t, func(r *rig, c *jobpoll.Config) {
		withLimits(jobpoll.Limits{Jobs: 1})(r, c)
		c.Store = store
	})
	_, err := submit(r, "a", polltest.Order{Script: "running; at 60s succeeded"})
	require.Nil(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	b := r.BeginSubmit(ctx, submitOf(r, "b", polltest.Order{}))
	c := r.BeginSubmit(t.Context(), submitOf(r, "c", polltest.Order{}))
	cancel()
	r.Clock.Settle()
	_, e := submitted(t, b)
	require.NotNil(t, e)
	assert.Equal(t, jobpoll.SubmitNotSent, e.Meaning)
	require.ErrorIs(t, e, context.Canceled)
	info, _ := r.Find("c")
	assert.Equal(t, 1, info.Submission.Position)
	r.to(2 * time.Minute)
	_, e = submitted(t, c)
	require.Nil(t, e)
	assert.Empty(t, r.prov.Sends("b"))
	_, stored := store.Get(t.Context(), jobpoll.RecordSubmission, "b")
	require.ErrorIs(t, stored, jobpoll.ErrNotFound, "its intent is gone")
	r.to(10 * time.Minute)
	assert.Empty(t, submitOutcomes(r, "b"))
	r.atZero()
}

// B44
func TestAUsedUpQuotaHoldsSubmissionsAndNoLooks(t *testing.T) {
	r := rigOf(t, nil)
	r.prov.Add("w", "running")
	r.watch("w")
	s := submitOf(r, "c", polltest.Order{})
	s.Send = func(context.Context) (jobpoll.Sent, error) {
		return jobpoll.Sent{}, &jobpoll.CheckError{Kind: jobpoll.ErrorQuota, Status: 429}
	}
	_, err := r.Submit(t.Context(), s)
	var e *jobpoll.SubmitError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, jobpoll.SubmitRefused, e.Meaning)
	assert.Equal(t, jobpoll.ErrorQuota, e.ErrorKind)
	assert.False(t, e.RetryAt.Before(r.start.Add(time.Minute)), "%v", e.RetryAt)
	b := r.BeginSubmit(t.Context(), submitOf(r, "c", polltest.Order{}))
	r.to(50 * time.Second)
	assert.False(t, b.Returned())
	assert.Len(t, r.looks("w"), 10)
	r.to(2 * time.Minute)
	assert.True(t, b.Returned())
}

// B44(b), B52
func TestALimitThatASubmissionMeetsHoldsTheNextOne(t *testing.T) {
	for name, kind := range map[string]jobpoll.ErrorKind{"rate": jobpoll.ErrorRateLimited, "capacity": jobpoll.ErrorConcurrency} {
		r := rigOf(t, nil)
		for _, id := range ids("w", 5) {
			r.prov.Add(id, "running")
			r.watch(id)
		}
		s := submitOf(r, "c", polltest.Order{})
		sent := 0
		s.Send = func(context.Context) (jobpoll.Sent, error) {
			sent++
			return jobpoll.Sent{}, &jobpoll.CheckError{Kind: kind, Status: 429}
		}
		_, err := r.Submit(t.Context(), s)
		var e *jobpoll.SubmitError
		require.ErrorAs(t, err, &e, name)
		assert.Equal(t, kind, e.ErrorKind)
		assert.False(t, e.RetryAt.Before(r.start.Add(time.Second)), "%s: %v", name, e.RetryAt)
		b := r.BeginSubmit(t.Context(), submitOf(r, "c", polltest.Order{}))
		assert.False(t, b.Returned(), name)
		r.to(20 * time.Second)
		require.True(t, b.Returned(), name)
		assert.Equal(t, 1, sent)
		for _, id := range ids("w", 5) {
			assert.Len(t, r.looks(id), 4, "looks keep their pace")
		}
	}
}

// B53
func TestEachJobSlotIsGivenBackOnceHoweverTheSubmissionEnds(t *testing.T) {
	r := rigOf(t, func(r *rig, c *jobpoll.Config) {
		withLimits(jobpoll.Limits{Jobs: 5})(r, c)
		withFinder(5*time.Second)(r, c)
	})
	orders := []polltest.Order{
		{}, {Script: "failed"}, {Script: "running; at 9s canceled"}, {Answer: "succeeded"}, {Answer: "reset", Lost: true}, {Answer: "reset"},
		{Answer: "429"}, {Answer: "400"}, {Unsent: true}, {NoID: true}, {Answer: "panic"},
	}
	for round := range 3 {
		for i, o := range orders {
			client := ids("c", 100)[round*len(orders)+i]
			if o.ID == "" {
				o.ID = "R-" + client
			}
			_, _ = submit(r, client, o)
		}
	}
	r.Clock.Advance(10 * time.Minute)
	r.atZero()
	_, err := submit(r, "sixth", polltest.Order{})
	require.Nil(t, err)
}

// A job that may exist uses a slot until somebody knows better, or its age limit.
func TestAnAmbiguousSubmissionHoldsItsJobSlot(t *testing.T) {
	r := rigOf(t, withLimits(jobpoll.Limits{Jobs: 1}))
	_, err := submit(r, "a", polltest.Order{Answer: "reset"})
	require.NotNil(t, err)
	b := r.BeginSubmit(t.Context(), submitOf(r, "b", polltest.Order{Script: "running; at 9s succeeded"}))
	r.to(time.Minute)
	require.False(t, b.Returned())
	info, _ := r.Find("b")
	assert.Contains(t, info.Submission.Reason, "one of 1 remote jobs to end (1 held by submissions whose answer was lost: Poller.Resolve frees them)")
	require.NoError(t, r.Resolve(t.Context(), "a", ""))
	r.Clock.Settle()
	require.True(t, b.Returned())
	next := r.BeginSubmit(t.Context(), submitOf(r, "next", polltest.Order{Script: "running; at 1s succeeded"}))
	info, _ = r.Find("next")
	assert.Equal(t, `one of 1 remote jobs to end of "account"`, info.Submission.Reason)
	defer func() { assert.True(t, next.Returned()) }()
	r.to(2 * time.Minute)

	_, err = submit(r, "c", polltest.Order{Answer: "reset"})
	require.NotNil(t, err)
	b = r.BeginSubmit(t.Context(), submitOf(r, "d", polltest.Order{}))
	r.Clock.Advance(3 * time.Hour)
	require.True(t, b.Returned(), "the age limit of an unknown job is two hours")
	r.Clock.Advance(time.Hour)
	r.atZero()
}

// B54(a): after a restart fresh work goes out.
func TestSubmissionsKeepTheirReserveBesideABacklogOfLooks(t *testing.T) {
	r := rigOf(t, withLimits(jobpoll.Limits{Total: jobpoll.Limit{Rate: 5, Burst: 5, Concurrent: 10},
		Submit: jobpoll.LaneLimits{Reserve: jobpoll.Limit{Rate: 1}}, Status: jobpoll.LaneLimits{Reserve: jobpoll.Limit{Rate: 1}}}))
	for _, id := range ids("w", 200) {
		r.prov.Add(id, "running")
		r.watch(id)
	}
	r.to(6 * time.Second)
	var all []*polltest.Submitting
	for _, c := range ids("c", 5) {
		all = append(all, r.BeginSubmit(t.Context(), submitOf(r, c, polltest.Order{})))
	}
	r.to(12 * time.Second)
	for _, b := range all {
		_, err := submitted(t, b)
		require.Nil(t, err)
	}
}
