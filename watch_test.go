package jobpoll_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWatchRefusesWhatCannotBeWatched(t *testing.T) {
	g := newRig(t, nil)
	ctx := t.Context()
	for want, job := range map[string]jobpoll.Job{
		"Job.ID is empty":                   {Route: "r"},
		"Job.Route is empty":                {ID: "a"},
		"jobpoll: x/a: no such":             {Route: "x", ID: "a"},
		"Job.ID is not valid UTF-8":         {Route: "r", ID: "\xff"},
		"Job.ClientKey is not valid UTF-8":  {Route: "r", ID: "a", ClientKey: "\xff"},
		"Job.Ref is not valid UTF-8":        {Route: "r", ID: "a", Ref: "\xff"},
		"Job.Deadline is in the year 10000": {Route: "r", ID: "a", Deadline: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		err := g.Watch(ctx, job)
		require.ErrorContains(t, err, want)
		assert.True(t, strings.HasPrefix(err.Error(), "jobpoll: "), err.Error())
		_, err = g.Wait(ctx, job)
		require.ErrorContains(t, err, want)
	}
	require.ErrorIs(t, g.Watch(ctx, jobpoll.Job{Route: "x", ID: "a"}), jobpoll.ErrUnknownRoute)
	done, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("went home"))
	err := g.Watch(done, jobOf("a"))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "went home")
	for range g.Jobs() {
		t.Error("something is watched")
	}
}

func TestTheSameJobTwiceIsOneStream(t *testing.T) {
	g := newRig(t, nil)
	job := jobpoll.Job{Route: "r", ID: "a", ClientKey: "mine", Profile: "first"}
	g.watchJob(job, "running; at 5s succeeded")
	job.Profile, job.Deadline, job.ClientKey = "second", g.start.Add(time.Second), "other"
	g.watchJob(job, "")
	g.to(3)
	assert.Equal(t, "first", g.pending("a").Job.Profile, "the second call changes nothing")
	g.to(60)
	assert.Equal(t, []float64{2, 6}, g.looks("a"))
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
	assert.EqualValues(t, 1, g.Metrics().Routes["r"].Watched)
}

func TestAClientKeyBelongsToOneJob(t *testing.T) {
	g := newRig(t, nil)
	k := g.watchJob(jobpoll.Job{Route: "r", ID: "a", ClientKey: "mine"}, "running")
	err := g.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "b", ClientKey: "mine"})
	require.ErrorIs(t, err, jobpoll.ErrDuplicateKey)
	assert.Contains(t, err.Error(), "r/a")
	i, ok := g.Find("mine")
	require.True(t, ok)
	assert.Equal(t, "a", i.Job.ID)
	_, ok = g.Find("yours")
	assert.False(t, ok)

	require.NoError(t, g.Abandon(t.Context(), k, nil))
	g.to(1)
	i, ok = g.Find("mine")
	require.True(t, ok, "also after its end")
	assert.True(t, i.Delivered)
	require.ErrorIs(t, g.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "b", ClientKey: "mine"}), jobpoll.ErrDuplicateKey)

	// Watched anew without its key, it gives it up.
	g.watch("a", "running")
	_, ok = g.Find("mine")
	assert.False(t, ok)
	g.watchJob(jobpoll.Job{Route: "r", ID: "b", ClientKey: "mine"}, "running")
}

func TestAResolvedJobIsNotWatchedAgain(t *testing.T) {
	for _, stored := range []bool{false, true} {
		g := newRigOnly(t)
		store := jobpoll.NewMemoryStore(g.Clock)
		g.run(func(cfg *jobpoll.Config, _ *jobpoll.Route) {
			if stored {
				cfg.Store = store
			}
		})
		g.watch("a", `succeeded output {"url":"u?a=1&b=2"}`)
		g.watch("b", "failed")
		g.to(10)
		for _, p := range []*jobpoll.Poller{g.Poller, another(t, g, store)} {
			if p == nil || p != g.Poller && !stored {
				continue
			}
			err := p.Watch(t.Context(), jobOf("b"))
			require.ErrorIs(t, err, jobpoll.ErrResolved)
			var resolved *jobpoll.ResolvedError
			require.ErrorAs(t, err, &resolved)
			assert.Equal(t, jobpoll.ReasonFailed, resolved.Outcome.Reason)
			assert.Equal(t, "jobpoll: r/b: already resolved: failed", err.Error())

			o, err := p.Wait(t.Context(), jobOf("a"))
			require.NoError(t, err)
			assert.Equal(t, `{"url":"u?a=1&b=2"}`, string(o.Report.Output))
			_, err = p.Wait(t.Context(), jobOf("b"))
			require.ErrorIs(t, err, jobpoll.ReasonFailed)
		}
		assert.Len(t, g.Outcomes(), 2)
		g.Stop()
	}
}

// another is a second Poller on the same store, as after a restart.
func another(t *testing.T, g *trial, store jobpoll.Store) *jobpoll.Poller {
	t.Helper()
	p, err := jobpoll.New(jobpoll.Config{Clock: g.Clock, Store: store, Routes: []jobpoll.Route{caseRoute(g.Provider)}})
	require.NoError(t, err)
	return p
}

func TestAResumableStopIsWatchedAnew(t *testing.T) {
	for _, stored := range []bool{false, true} {
		g := newRigOnly(t)
		store := jobpoll.NewMemoryStore(g.Clock)
		g.run(func(cfg *jobpoll.Config, _ *jobpoll.Route) {
			if stored {
				cfg.Store = store
			}
		})
		k := g.watch("a", "running; at 30s succeeded")
		g.to(7)
		require.NoError(t, g.Abandon(t.Context(), k, errors.New("not now")))
		g.to(10)
		o := g.ended("a")
		assert.Equal(t, jobpoll.ReasonAbandoned, o.Reason)
		assert.Equal(t, "not now", o.Message)
		g.watch("a", "")
		g.to(100)
		require.Len(t, g.Outcomes(), 2)
		assert.Equal(t, jobpoll.ReasonSucceeded, g.Outcomes()[1].Reason)
		if stored {
			rec, err := store.Get(t.Context(), jobpoll.RecordJob, "1:r/a")
			require.NoError(t, err)
			assert.Greater(t, rec.Rev, uint64(4), "revisions go on")
		}
		g.Stop()
	}
}

// A service that wants to go on after a limit does so where it learns of it.
func TestWatchFromOnStopGoesOn(t *testing.T) {
	for _, stored := range []bool{false, true} {
		var again *trial
		g := newRigOnly(t)
		again = g
		store := jobpoll.NewMemoryStore(g.Clock)
		g.run(func(cfg *jobpoll.Config, r *jobpoll.Route) {
			if stored {
				cfg.Store = store
			}
			r.Stop.MaxAge = 20 * time.Second
			r.Callbacks.OnStop = func(ctx context.Context, o jobpoll.Outcome) error {
				_ = again.OnStop(ctx, o)
				if o.Reason.Resumable() {
					job := o.Job
					job.SubmittedAt = time.Time{}
					return again.Watch(ctx, job)
				}
				return nil
			}
		})
		g.watchJob(jobpoll.Job{Route: "r", ID: "a", ClientKey: "mine"}, "running; at 50s succeeded")
		g.to(200)
		var reasons []jobpoll.Reason
		for _, o := range g.Outcomes() {
			reasons = append(reasons, o.Reason)
			assert.Equal(t, "mine", o.Job.ClientKey)
		}
		assert.Equal(t, []jobpoll.Reason{jobpoll.ReasonDeadline, jobpoll.ReasonDeadline, jobpoll.ReasonSucceeded}, reasons)
		assert.Zero(t, g.Metrics().Total.Unresolved)
		assert.Zero(t, g.Metrics().Callbacks.Undelivered)
		for _, d := range gaps(g.looks("a")) {
			assert.GreaterOrEqual(t, d, 1.0, "never under the least gap")
		}
		g.Stop()
	}
}

// With the deadline still past this goes round, but at the pace of looks.
func TestWatchFromOnStopWithAnOldDeadlineIsNoHotLoop(t *testing.T) {
	var g *trial
	g = newRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) {
		r.Callbacks.OnStop = func(ctx context.Context, o jobpoll.Outcome) error {
			_ = g.OnStop(ctx, o)
			return g.Watch(ctx, o.Job)
		}
	})
	job := jobOf("a")
	job.Deadline = g.start.Add(5 * time.Second)
	g.watchJob(job, "running; at 15s 429 retry-after 20s")
	g.to(100)
	for _, d := range gaps(g.looks("a")) {
		assert.GreaterOrEqual(t, d, 1.0)
	}
	assert.LessOrEqual(t, len(g.Outcomes()), len(g.Looks("a"))+2)
	for i, at := range g.looks("a") {
		if i > 0 && at > 35 {
			assert.GreaterOrEqual(t, at-g.looks("a")[i-1], 20.0, "nor under the provider's wait")
		}
	}
}

func TestARenewedWatchSurvivesARestartBeforeTheEndWasTold(t *testing.T) {
	g := newRigOnly(t)
	store := jobpoll.NewMemoryStore(g.Clock)
	fails := func(context.Context, jobpoll.Outcome) error { return errors.New("down") }
	g.run(func(cfg *jobpoll.Config, r *jobpoll.Route) {
		cfg.Store = store
		r.Callbacks.OnStop = fails
	})
	k := g.watch("a", "running; at 30s succeeded")
	g.to(3)
	require.NoError(t, g.Abandon(t.Context(), k, nil))
	g.to(4)
	require.NoError(t, g.Watch(t.Context(), jobOf("a")))
	require.NoError(t, g.Watch(t.Context(), jobOf("a")), "the same one")
	g.Stop()

	next := newRigOnly(t)
	next.Harness.Clock, next.Provider = g.Clock, g.Provider
	next.run(func(cfg *jobpoll.Config, _ *jobpoll.Route) { cfg.Store = store })
	g.Clock.Advance(2 * time.Minute)
	var reasons []jobpoll.Reason
	for _, o := range next.Outcomes() {
		reasons = append(reasons, o.Reason)
	}
	assert.Equal(t, []jobpoll.Reason{jobpoll.ReasonAbandoned, jobpoll.ReasonSucceeded}, reasons)
}

func TestWatchBeforeDuringAndAfterRun(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
		}
		b.make(nil)
		b.watch("before")
		b.sleep(60)
		assert.Zero(t, b.info("before").Polls)
		b.run()
		require.ErrorIs(t, b.Run(t.Context()), jobpoll.ErrRunning)
		b.sleep(1)
		assert.Len(t, b.stops("before"), 1)
		b.watch("during")
		b.sleep(3)
		assert.Len(t, b.stops("during"), 1)
		b.stop()
		b.watch("after")
		b.sleep(60)
		assert.Empty(t, b.stops("after"))
		b.run()
		b.sleep(1)
		assert.Len(t, b.stops("after"), 1)
		assert.Len(t, b.outcomes, 3)
	})
}

func TestJobsGoesOverAllAndMayCallBack(t *testing.T) {
	g := newRig(t, nil)
	for i := range 300 {
		g.watch(jobID(i), "running")
	}
	seen := map[string]bool{}
	for i := range g.Jobs() {
		seen[i.Job.ID] = true
		if len(seen)%2 == 0 {
			require.NoError(t, g.Abandon(t.Context(), i.Job.Key(), nil))
		}
	}
	assert.Len(t, seen, 300)
	n := 0
	for range g.Jobs() {
		if n++; n == 10 {
			break
		}
	}
	g.to(1)
	n = 0
	for range g.Jobs() {
		n++
	}
	assert.Equal(t, 150, n)
}

func TestJobInfoTellsWhereAJobStands(t *testing.T) {
	g := newRig(t, nil)
	_, ok := g.Job(jobOf("a").Key())
	assert.False(t, ok)
	g.watch("a", `queued pos 4; at 20s running "BUSY" 30%; at 60s 503 x2; at 65s hang`)
	i := g.pending("a")
	assert.Equal(t, jobpoll.CauseFirst, i.Cause)
	assert.Equal(t, g.start.Add(2*time.Second), i.NextPollAt)
	assert.Zero(t, i.Polls)
	g.to(3)
	i = g.pending("a")
	assert.Equal(t, jobpoll.StateQueued, i.State)
	assert.Equal(t, 4, i.QueuePosition)
	assert.Equal(t, jobpoll.CauseQueued, i.Cause)
	assert.Equal(t, g.start.Add(32*time.Second), i.NextPollAt)
	g.to(33)
	i = g.pending("a")
	assert.Equal(t, "BUSY", i.RawStatus)
	assert.InDelta(t, 0.3, i.Progress, 1e-9)
	assert.Equal(t, 2, i.Polls)
	g.to(62.5)
	i = g.pending("a")
	assert.Equal(t, 1, i.Errors)
	assert.Equal(t, jobpoll.ErrorTransient, i.ErrorKind)
	assert.Equal(t, jobpoll.CauseError, i.Cause)
	g.to(70)
	i = g.pending("a")
	assert.True(t, i.InFlight)
	assert.True(t, i.NextPollAt.IsZero())
}
