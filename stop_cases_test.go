package jobpoll_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bare is a route with the defaults of the library.
func bare(_ *jobpoll.Config, r *jobpoll.Route) { *r = jobpoll.Route{Name: "r"} }

// B18
func TestAWedgedJobStopsAtAFiniteDefault(t *testing.T) {
	g := newRig(t, bare)
	g.watch("a", `running "processing"`)
	g.to((2 * time.Hour).Seconds() - 1)
	assert.Empty(t, g.Outcomes())
	g.to((2 * time.Hour).Seconds() + 1)
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonDeadline, o.Reason)
	assert.Equal(t, jobpoll.StateRunning, o.State)
	assert.Equal(t, "processing", o.Report.RawStatus)
	assert.Equal(t, "a", o.Job.ID)
	assert.True(t, o.Reason.Resumable())
}

// B18
func TestTheDefaultLimitFollowsTheExpectedDuration(t *testing.T) {
	g := newRig(t, bare)
	g.watchJob(jobpoll.Job{Route: "r", ID: "a", Expected: 4 * time.Minute}, "running; at 404s succeeded")
	g.to(500)
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
}

// B19
func TestEachStopKeepsTheHandleOfTheJob(t *testing.T) {
	scripts := map[string]struct {
		script string
		reason jobpoll.Reason
		kind   jobpoll.ErrorKind
		state  jobpoll.State
	}{
		"succeeded": {`running; at 5s succeeded "DONE"`, jobpoll.ReasonSucceeded, jobpoll.ErrorNone, jobpoll.StateSucceeded},
		"failed":    {`running; at 5s failed "BAD" fault "boom"`, jobpoll.ReasonFailed, jobpoll.ErrorNone, jobpoll.StateFailed},
		"canceled":  {`running; at 5s canceled`, jobpoll.ReasonCanceled, jobpoll.ErrorNone, jobpoll.StateCanceled},
		"expired":   {`running; at 5s expired`, jobpoll.ReasonExpired, jobpoll.ErrorNone, jobpoll.StateExpired},
		"limit":     {`running`, jobpoll.ReasonDeadline, jobpoll.ErrorNone, jobpoll.StateRunning},
		"dead":      {`running; at 5s 503`, jobpoll.ReasonUnreachable, jobpoll.ErrorTransient, jobpoll.StateRunning},
		"limited":   {`running; at 5s 429 retry-after 3h job`, jobpoll.ReasonRateLimited, jobpoll.ErrorRateLimited, jobpoll.StateRunning},
		"auth":      {`running; at 5s 401`, jobpoll.ReasonAuth, jobpoll.ErrorAuth, jobpoll.StateRunning},
		"invalid":   {`running; at 5s 400 "bad id"`, jobpoll.ReasonInvalid, jobpoll.ErrorInvalid, jobpoll.StateRunning},
		"quota":     {`running; at 5s 402`, jobpoll.ReasonQuota, jobpoll.ErrorQuota, jobpoll.StateRunning},
		"gone":      {`running; at 5s 410`, jobpoll.ReasonResultExpired, jobpoll.ErrorGone, jobpoll.StateRunning},
		"lost":      {`running; at 5s 404`, jobpoll.ReasonLost, jobpoll.ErrorNoSuchJob, jobpoll.StateRunning},
		"word":      {`running; at 5s "IN_LIMBO"`, jobpoll.ReasonUnknownStatus, jobpoll.ErrorNone, jobpoll.StateUnknown},
		"queue":     {`queued`, jobpoll.ReasonQueueLimit, jobpoll.ErrorNone, jobpoll.StateQueued},
		"slow":      {`running; at 5s running 10%; at 8s running 20%; at 12s running 30%`, jobpoll.ReasonNoProgress, jobpoll.ErrorNone, jobpoll.StateRunning},
		"left":      {`running`, jobpoll.ReasonAbandoned, jobpoll.ErrorNone, jobpoll.StateRunning},
	}
	for name, tc := range scripts {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) {
				r.Stop.MaxQueued, r.Stop.NoProgress = 10*time.Minute, 15*time.Minute
			})
			k := g.watchJob(jobpoll.Job{Route: "r", ID: "id-1", ClientKey: "mine"}, tc.script)
			g.to(20)
			if tc.reason == jobpoll.ReasonAbandoned {
				require.NoError(t, g.Abandon(t.Context(), k, errors.New("no longer wanted")))
			}
			g.to(3600)
			o := g.ended("id-1")
			assert.Equal(t, tc.reason, o.Reason)
			assert.Equal(t, tc.kind, o.ErrorKind)
			assert.Equal(t, tc.state, o.State)
			assert.Equal(t, jobpoll.Key{Route: "r", ID: "id-1"}, o.Job.Key())
			assert.Equal(t, "mine", o.Job.ClientKey)
			assert.NotEmpty(t, o.Report.RawStatus)
			assert.Equal(t, len(g.Looks("id-1")), o.Polls)
			assert.Equal(t, g.Looks("id-1")[0], o.FirstPollAt)
			assert.Equal(t, g.Looks("id-1")[o.Polls-1], o.LastPollAt)
			assert.False(t, o.DetectedAt.Before(o.LastPollAt))
			if tc.kind != jobpoll.ErrorNone {
				assert.NotEmpty(t, o.Message)
			}
			if tc.reason != jobpoll.ReasonSucceeded {
				var stop *jobpoll.StopError
				require.ErrorAs(t, o.Err(), &stop)
				require.ErrorIs(t, o.Err(), tc.reason)
				assert.Contains(t, o.Err().Error(), "jobpoll: r/id-1: ")
			}
		})
	}
}

// B20
func TestALateResultAfterAStopIsToldOnceAndTheJobCanBeResumed(t *testing.T) {
	g := newRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) { r.Stop.MaxAge = 180 * time.Second })
	k := g.watch("a", "running; at 240s succeeded")
	g.to(240)
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonDeadline, o.Reason)
	assert.Equal(t, 180.0, g.after(o))
	assert.Contains(t, o.Err().Error(), "watch the same id to resume, do not submit it again")
	g.to(241)
	n := jobpoll.Notice{Key: k, EventID: "e1", Trust: jobpoll.TrustAuthoritative, Report: jobpoll.Report{State: jobpoll.StateSucceeded}}
	for range 3 {
		require.NoError(t, g.Notify(t.Context(), n))
		n.EventID += "x"
	}
	require.Len(t, g.late, 1)
	assert.Equal(t, jobpoll.StateSucceeded, g.late[0].State)
	assert.Equal(t, jobpoll.ReasonDeadline, g.late[0].Outcome.Reason)
	assert.Len(t, g.Outcomes(), 1, "the outcome stays")

	require.NoError(t, g.Watch(t.Context(), jobOf("a")), "resumable")
	g.to(300)
	all := g.Outcomes()
	require.Len(t, all, 2)
	assert.Equal(t, jobpoll.ReasonSucceeded, all[1].Reason)
}

// B21(a)
func TestTheTimeOfTheCallsCountsTowardsTheLimit(t *testing.T) {
	g := newRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) {
		r.Schedule.Delays, r.Stop.MaxAge, r.CheckTimeout = secs(5), 60*time.Second, 20*time.Second
	})
	g.watch("a", "slow 10s running")
	g.to(100)
	assert.Equal(t, []float64{5, 20, 35, 50}, g.looks("a"))
	at := g.after(g.ended("a"))
	assert.GreaterOrEqual(t, at, 60.0)
	assert.LessOrEqual(t, at, 70.0)
}

// B21(b)
func TestTheLastLookIsMovedToTheLimit(t *testing.T) {
	g := newRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) {
		r.Schedule.Delays, r.Stop.MaxAge = secs(16), 60*time.Second
	})
	g.watch("a", "running; at 58s succeeded")
	g.to(100)
	assert.Equal(t, []float64{16, 32, 48, 60}, g.looks("a"))
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
}

// B23
func TestPollNowLooksOnceAtOnce(t *testing.T) {
	g := newRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) {
		r.Schedule.Delays, r.Stop.MaxAge = secs(2), 5*time.Second
	})
	k := g.watch("a", "running")
	require.NoError(t, g.PollNow(k))
	g.to(30)
	assert.Equal(t, []float64{0, 2, 4, 5}, g.looks("a"))
	assert.Equal(t, jobpoll.ReasonDeadline, g.ended("a").Reason)
	assert.Equal(t, 5.0, g.after(g.ended("a")))
}

// B24
func TestQueueAndProcessingHaveLimitsOfTheirOwn(t *testing.T) {
	for _, tc := range []struct {
		script string
		reason jobpoll.Reason
		at     float64
	}{
		{"queued; at 40m running; at 48m succeeded", jobpoll.ReasonSucceeded, 48 * 60},
		{"queued; at 40m running", jobpoll.ReasonProcessingLimit, 50 * 60},
		{"queued", jobpoll.ReasonQueueLimit, 60 * 60},
	} {
		g := newRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) {
			r.Stop.MaxAge, r.Stop.MaxQueued, r.Stop.MaxProcessing = jobpoll.NoLimit, time.Hour, 10*time.Minute
		})
		g.watch("a", tc.script)
		g.to(2 * 3600)
		o := g.ended("a")
		assert.Equal(t, tc.reason, o.Reason)
		assert.InDelta(t, tc.at, g.after(o), 60)
		g.Stop()
	}
}

func TestTimesOfAJobInAnyForm(t *testing.T) {
	local := time.FixedZone("far", 14*3600)
	for name, tc := range map[string]struct {
		change func(j *jobpoll.Job, now time.Time)
		looks  []float64
		reason jobpoll.Reason
	}{
		"a future start counts as now": {func(j *jobpoll.Job, now time.Time) { j.SubmittedAt = now.Add(24 * time.Hour) },
			[]float64{2, 6, 14}, jobpoll.ReasonNone},
		"a start long past is looked at once": {func(j *jobpoll.Job, now time.Time) { j.SubmittedAt = time.Date(1, 2, 3, 0, 0, 0, 0, time.UTC) },
			[]float64{0}, jobpoll.ReasonDeadline},
		"a deadline past is looked at once": {func(j *jobpoll.Job, now time.Time) { j.Deadline = now.Add(-time.Hour).In(local) },
			[]float64{0}, jobpoll.ReasonDeadline},
		"a deadline to come": {func(j *jobpoll.Job, now time.Time) { j.Deadline = now.Add(7 * time.Second) },
			[]float64{2, 6, 7}, jobpoll.ReasonDeadline},
		"the first look not before": {func(j *jobpoll.Job, now time.Time) { j.NotBefore = now.Add(9 * time.Second).In(local) },
			[]float64{9, 13}, jobpoll.ReasonNone},
		"not before a time past": {func(j *jobpoll.Job, now time.Time) { j.NotBefore = now.Add(-time.Hour) },
			[]float64{2, 6, 14}, jobpoll.ReasonNone},
		"not before a time after the deadline": {func(j *jobpoll.Job, now time.Time) { j.NotBefore, j.Deadline = now.Add(9*time.Second), now.Add(-1) },
			[]float64{9}, jobpoll.ReasonDeadline},
		"a negative estimate counts as none": {func(j *jobpoll.Job, now time.Time) { j.Expected = -time.Hour },
			[]float64{2, 6, 14}, jobpoll.ReasonNone},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, nil)
			job := jobOf("a")
			tc.change(&job, g.Clock.Now())
			g.watchJob(job, "running")
			g.to(20)
			assert.Equal(t, tc.looks, g.looks("a"))
			if tc.reason == jobpoll.ReasonNone {
				i := g.pending("a")
				assert.False(t, i.Job.SubmittedAt.IsZero())
			} else {
				assert.Equal(t, tc.reason, g.ended("a").Reason)
			}
		})
	}
}

// A reading of package time carries a monotonic part and a location; what
// comes back is plain and comparable.
func TestTimesOfAJobComeBackAsPlainUTC(t *testing.T) {
	g := newRig(t, nil)
	job := jobOf("a")
	job.SubmittedAt = time.Now()
	g.watchJob(job, "running")
	got := g.pending("a").Job
	assert.Equal(t, job.SubmittedAt.Round(0).UTC(), got.SubmittedAt)
}

// B74
func TestAnEndedWaitAndAShutdownTakeNoTimeAndFailNothing(t *testing.T) {
	g := newRigOnly(t)
	store := jobpoll.NewMemoryStore(g.Clock)
	g.run(func(cfg *jobpoll.Config, _ *jobpoll.Route) { cfg.Store = store })
	for i := range 100 {
		script := "running"
		switch {
		case i == 0:
			script = "429 retry-after 1h job"
		case i <= 5:
			script = "running; at 3s hang"
		}
		g.watch(jobID(i), script)
	}
	g.to(12)
	require.Equal(t, 5, g.InFlight())
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() { _, err := g.Wait(ctx, jobOf(jobID(50))); waited <- err }()
	cancel()
	err := <-waited
	require.ErrorIs(t, err, context.Canceled)
	now := g.Clock.Monotonic()
	g.Stop()
	assert.Equal(t, now, g.Clock.Monotonic())
	assert.Empty(t, g.Outcomes())
	assert.Zero(t, g.Clock.Timers())
	for i := range 100 {
		g.pending(jobID(i))
	}

	next := newRigOnly(t)
	next.Harness.Clock = g.Clock
	p, err := jobpoll.New(jobpoll.Config{Clock: g.Clock, Store: store, Routes: []jobpoll.Route{caseRoute(g.Provider)}})
	require.NoError(t, err)
	n, err := p.Restore(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 100, n)
}

func jobID(i int) string { return string(rune('a'+i/26)) + string(rune('a'+i%26)) }

// B73
func TestEndedJobsLeaveNoTimerAndNoGoroutine(t *testing.T) {
	g := newRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) { r.Stop.MaxAge = time.Hour })
	timers, busy := g.Clock.Timers(), goroutines()
	for i := range 1000 {
		g.watch(jobID(i%600)+jobID(i/600), "running; at 4s "+[]string{"succeeded", "failed", "canceled"}[i%3])
	}
	g.to(6)
	assert.Len(t, g.Outcomes(), 1000)
	assert.LessOrEqual(t, g.Clock.Timers(), timers+1)
	eventually(t, func() bool { return goroutines() <= busy }, "goroutines are left")
	for range g.Jobs() {
		t.Error("a job is left")
		break
	}
	assert.Zero(t, g.Metrics().Total.Unresolved)
	assert.Zero(t, g.Metrics().Total.InFlight)
}
