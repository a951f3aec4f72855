package jobpoll_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheSameKeyIsTheSameJob(t *testing.T) {
	r := rigOf(t, nil)
	slow := polltest.Order{Answer: "queued slow 10s", Script: "running; at 60s succeeded"}
	a := r.BeginSubmit(t.Context(), submitOf(r, "c", slow))
	b := r.BeginSubmit(t.Context(), submitOf(r, "c", slow))
	assert.Equal(t, jobpoll.SubmissionSending, submissionState(r, "c"))
	r.to(11 * time.Second)
	first, err := submitted(t, a)
	require.Nil(t, err)
	second, err := submitted(t, b)
	require.Nil(t, err)
	assert.Equal(t, first, second)
	third, err := submit(r, "c", polltest.Order{ID: "other"})
	require.Nil(t, err)
	assert.Equal(t, first, third)
	assert.Len(t, r.prov.Sends("c"), 1)
	r.to(5 * time.Minute)
	require.Len(t, submitOutcomes(r, "c"), 1)
	_, err = submit(r, "c", polltest.Order{ID: "other"})
	require.NotNil(t, err)
	require.ErrorIs(t, err, jobpoll.ErrResolved)
	var resolved *jobpoll.ResolvedError
	require.ErrorAs(t, err, &resolved)
	assert.Equal(t, first.ID, resolved.Outcome.Job.ID)
	assert.Len(t, r.prov.Sends("c"), 1)
}

func TestAKeyOfAnotherRouteIsRefused(t *testing.T) {
	r := rigOf(t, func(r *rig, c *jobpoll.Config) { c.Routes = append(c.Routes, r.route("q")) })
	_, err := submit(r, "c", polltest.Order{})
	require.Nil(t, err)
	s := submitOf(r, "c", polltest.Order{})
	s.Job.Route = "q"
	_, e := r.Submit(t.Context(), s)
	require.ErrorIs(t, e, jobpoll.ErrDuplicateKey)
	assert.Len(t, r.prov.Sends("c"), 1)
}

func TestAJobThatWeStoppedWatchingIsWatchedAnewBySubmit(t *testing.T) {
	r := rigOf(t, nil)
	job, err := submit(r, "c", polltest.Order{Script: "running; at 60s succeeded"})
	require.Nil(t, err)
	require.NoError(t, r.Abandon(t.Context(), job.Key(), nil))
	r.Clock.Settle()
	again, err := submit(r, "c", polltest.Order{})
	require.Nil(t, err)
	assert.Equal(t, job.ID, again.ID)
	assert.Len(t, r.prov.Sends("c"), 1)
	r.to(2 * time.Minute)
	told := submitOutcomes(r, "c")
	require.Len(t, told, 2)
	assert.Equal(t, jobpoll.ReasonSucceeded, told[1].Reason)
}

func TestTheEndOfACallersContextEndsNoSubmissionThatHasBegun(t *testing.T) {
	r := rigOf(t, nil)
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), ctxKey{}, "seen"))
	s := submitOf(r, "c", polltest.Order{})
	inner := s.Send
	s.Send = func(ctx context.Context) (jobpoll.Sent, error) {
		assert.Equal(t, "seen", ctx.Value(ctxKey{}))
		if err := r.Clock.Sleep(ctx, 10*time.Second); err != nil {
			return jobpoll.Sent{}, err
		}
		return inner(ctx)
	}
	b := r.BeginSubmit(ctx, s)
	r.to(5 * time.Second)
	cancel()
	r.Clock.Settle()
	_, err := submitted(t, b)
	require.NotNil(t, err)
	assert.Equal(t, jobpoll.SubmitUnderWay, err.Meaning)
	assert.False(t, err.Safe())
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, jobpoll.ErrAmbiguous)
	r.to(time.Minute)
	r.ended("R-c", jobpoll.ReasonSucceeded)
	assert.Len(t, r.prov.Sends("c"), 1)
}

type ctxKey struct{}

// A submission that comes to nothing when nobody waits is told to OnStop.
func TestOnStopIsToldOfWhatNobodyWaitsFor(t *testing.T) {
	r := rigOf(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	b := r.BeginSubmit(ctx, submitOf(r, "c", polltest.Order{Answer: "400 slow 10s"}))
	cancel()
	r.to(20 * time.Second)
	require.True(t, b.Returned())
	told := submitOutcomes(r, "c")
	require.Len(t, told, 1)
	assert.Equal(t, jobpoll.ReasonNotSent, told[0].Reason)
	assert.Equal(t, jobpoll.AdviceSafe, told[0].Resubmit)
	assert.Equal(t, jobpoll.ErrorInvalid, told[0].ErrorKind)
	assert.Equal(t, jobpoll.ViaSubmit, told[0].Via)
	_, known := r.Find("c")
	assert.False(t, known)
	r.atZero()
}

// OnStop is called until it takes the outcome, and may submit again itself.
func TestOnStopMaySubmitAgainUnderTheSameKey(t *testing.T) {
	var r *rig
	var calls atomic.Int32
	r = rigOf(t, func(_ *rig, c *jobpoll.Config) {
		c.Callbacks.OnStop = func(ctx context.Context, o jobpoll.Outcome) error {
			if o.Reason != jobpoll.ReasonNotSent {
				return nil
			}
			if calls.Add(1) == 1 {
				return errStoreDown
			}
			_, err := r.Submit(ctx, submitOf(r, "c", polltest.Order{}))
			return err
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	r.BeginSubmit(ctx, submitOf(r, "c", polltest.Order{Answer: "400 slow 10s"}))
	cancel()
	r.to(30 * time.Second)
	assert.EqualValues(t, 2, calls.Load())
	info, ok := r.Find("c")
	require.True(t, ok)
	assert.Equal(t, "R-c", info.Job.ID)
	r.to(3 * time.Minute)
	assert.EqualValues(t, 2, calls.Load())
	r.atZero()
}

func TestAPersonResolvesAnAmbiguousSubmission(t *testing.T) {
	r := rigOf(t, nil)
	require.ErrorIs(t, r.Resolve(t.Context(), "c", "x"), jobpoll.ErrUnknownJob)
	_, err := submit(r, "c", polltest.Order{Answer: "reset", Lost: true})
	require.NotNil(t, err)
	require.Error(t, r.Resolve(t.Context(), "c", "\xff"))
	require.NoError(t, r.Resolve(t.Context(), "c", "R-c"))
	require.NoError(t, r.Resolve(t.Context(), "c", "R-c"), "the same again")
	require.ErrorIs(t, r.Resolve(t.Context(), "c", "other"), jobpoll.ErrNotAmbiguous)
	require.ErrorIs(t, r.Resolve(t.Context(), "c", ""), jobpoll.ErrNotAmbiguous)
	r.to(time.Minute)
	told := submitOutcomes(r, "c")
	require.Len(t, told, 2)
	assert.Equal(t, jobpoll.ReasonAmbiguous, told[0].Reason)
	assert.Equal(t, jobpoll.ReasonSucceeded, told[1].Reason)

	_, err = submit(r, "d", polltest.Order{Answer: "reset"})
	require.NotNil(t, err)
	require.NoError(t, r.Resolve(t.Context(), "d", ""))
	job, err := submit(r, "d", polltest.Order{})
	require.Nil(t, err)
	assert.Equal(t, "R-d", job.ID)
	assert.EqualValues(t, 2, r.Metrics().Total.Submissions.Resolved)
	r.to(3 * time.Minute)
	r.atZero()
}

func TestASubmissionThatIsLookedForMayBeResolved(t *testing.T) {
	r := rigOf(t, withFinder(time.Hour))
	a := r.BeginSubmit(t.Context(), submitOf(r, "a", polltest.Order{Answer: "reset", Lost: true}))
	b := r.BeginSubmit(t.Context(), submitOf(r, "b", polltest.Order{Answer: "reset"}))
	r.to(5 * time.Second)
	require.NoError(t, r.Resolve(t.Context(), "a", "R-a"))
	require.NoError(t, r.Resolve(t.Context(), "b", ""))
	r.Clock.Settle()
	job, err := submitted(t, a)
	require.Nil(t, err)
	assert.Equal(t, "R-a", job.ID)
	_, err = submitted(t, b)
	require.NotNil(t, err)
	assert.Equal(t, jobpoll.SubmitAbsent, err.Meaning)
	r.to(2 * time.Minute)
	assert.Empty(t, submitOutcomes(r, "b"))
	r.ended("R-a", jobpoll.ReasonSucceeded)
	r.atZero()
}

func TestAWatchOfTheJobResolvesItsSubmission(t *testing.T) {
	r := rigOf(t, nil)
	_, err := submit(r, "c", polltest.Order{Answer: "reset", Lost: true})
	require.NotNil(t, err)
	require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "R-c", ClientKey: "c"}))
	r.to(time.Minute)
	r.ended("R-c", jobpoll.ReasonSucceeded)
	assert.Zero(t, r.Metrics().Total.Submissions.Open)
	r.atZero()
}

func TestANoticeWithTheKeyAdoptsASubmission(t *testing.T) {
	for name, n := range map[string]jobpoll.Notice{
		"signed": {Trust: jobpoll.TrustAuthoritative, Report: jobpoll.Report{State: jobpoll.StateSucceeded}},
		"hint":   {Report: jobpoll.Report{State: jobpoll.StateRunning}},
	} {
		for _, state := range []string{"in doubt", "ambiguous", "sending"} {
			r := rigOf(t, func(r *rig, c *jobpoll.Config) {
				if state == "in doubt" {
					withFinder(time.Hour)(r, c)
				}
			})
			o := polltest.Order{Answer: "reset", Lost: true, Script: "running; at 20s succeeded"}
			if state == "sending" {
				o.Answer = "reset slow 10s"
			}
			b := r.BeginSubmit(t.Context(), submitOf(r, "c", o))
			r.to(3 * time.Second)
			n.Key, n.ClientKey = key("R-c"), "c"
			require.NoError(t, r.notify(n))
			r.to(2 * time.Minute)
			job, err := submitted(t, b)
			if state != "ambiguous" {
				require.Nil(t, err, "%s %s", name, state)
				assert.Equal(t, "R-c", job.ID)
			}
			told := submitOutcomes(r, "c")
			require.NotEmpty(t, told, "%s %s", name, state)
			end := told[len(told)-1]
			assert.Equal(t, jobpoll.ReasonSucceeded, end.Reason, "%s %s", name, state)
			if name == "signed" {
				assert.Equal(t, jobpoll.ViaWebhook, end.Via)
			}
			assert.Len(t, r.prov.Sends("c"), 1)
			r.atZero()
		}
	}
}

// An unsigned notice may name anything.
func TestANoticeThatNamesNoJobOfTheProviderAdoptsNothing(t *testing.T) {
	r := rigOf(t, nil)
	_, err := submit(r, "c", polltest.Order{Answer: "reset", Lost: true})
	require.NotNil(t, err)
	require.NoError(t, r.notify(jobpoll.Notice{Key: key("forged"), ClientKey: "c"}))
	r.to(time.Minute)
	assert.Equal(t, jobpoll.SubmissionAmbiguous, submissionState(r, "c"))
	assert.Len(t, r.looks("forged"), 1)
}

func TestWordOfTheJobKeepsItFromBeingTakenForAbsent(t *testing.T) {
	r := rigOf(t, withFinder(time.Hour))
	b := r.BeginSubmit(t.Context(), submitOf(r, "c", polltest.Order{Answer: "reset", Lost: true}))
	r.to(3 * time.Second)
	require.NoError(t, r.notify(jobpoll.Notice{Key: jobpoll.Key{Route: "r"}, ClientKey: "c", Trust: jobpoll.TrustAuthoritative, Report: jobpoll.Report{State: jobpoll.StateRunning}}))
	r.to(time.Minute)
	_, err := submitted(t, b)
	require.NotNil(t, err)
	assert.Equal(t, jobpoll.SubmitAmbiguous, err.Meaning)
}

func TestTheProviderMayGiveOneIDForTwoKeys(t *testing.T) {
	r := rigOf(t, nil)
	a, err := submit(r, "a", polltest.Order{ID: "same"})
	require.Nil(t, err)
	b, err := submit(r, "b", polltest.Order{ID: "same"})
	require.Nil(t, err)
	assert.Equal(t, a.ID, b.ID)
	info, ok := r.Find("b")
	require.True(t, ok)
	assert.Equal(t, "same", info.Job.ID)
	r.to(time.Minute)
	require.Len(t, r.rec.Outcomes(), 1)
	r.atZero()
}

// All at once, over and over: each key is sent at most once while it may exist.
func TestManySubmissionsNoticesAndAnswersAtOnce(t *testing.T) {
	r := rigOf(t, withFinder(0))
	var all sync.WaitGroup
	for i, c := range ids("c", 40) {
		o := polltest.Order{ID: "R-" + c, Lost: true, Script: "running; at 5s succeeded"}
		o.Answer = []string{"queued", "reset", "502", "queued slow 2s"}[i%4]
		for range 3 {
			all.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				if i%5 == 0 {
					cancel()
				}
				_, _ = r.Submit(ctx, submitOf(r, c, o))
				cancel()
			})
		}
		all.Go(func() {
			_ = r.Notify(t.Context(), jobpoll.Notice{Key: key("R-" + c), ClientKey: c, Trust: jobpoll.TrustAuthoritative})
		})
		all.Go(func() { _ = r.Resolve(t.Context(), c, "R-"+c) })
		all.Go(func() {
			r.Find(c)
			for range r.Submissions() {
				r.Metrics()
			}
		})
	}
	over := make(chan struct{})
	go func() { defer close(over); all.Wait() }()
	for done := false; !done; {
		r.Clock.Advance(time.Second)
		select {
		case <-over:
			done = true
		default:
		}
	}
	r.Clock.Advance(5 * time.Minute)
	for _, c := range ids("c", 40) {
		require.LessOrEqual(t, len(r.prov.Sends(c)), 1, c)
		require.Len(t, submitOutcomes(r, c), len(r.prov.Sends(c)), c)
	}
	r.atZero()
}

func TestASubmissionWhoseDeadlineHasPassedIsNotSent(t *testing.T) {
	r := rigOf(t, withLimits(jobpoll.Limits{Jobs: 1}))
	_, err := submit(r, "a", polltest.Order{Script: "running; at 60s succeeded"})
	require.Nil(t, err)
	s := submitOf(r, "b", polltest.Order{})
	s.Job.Deadline = r.start.Add(30 * time.Second)
	b := r.BeginSubmit(t.Context(), s)
	r.to(2 * time.Minute)
	_, err = submitted(t, b)
	require.NotNil(t, err)
	assert.Equal(t, jobpoll.SubmitNotSent, err.Meaning)
	assert.Empty(t, r.prov.Sends("b"))
	r.atZero()
}

func TestAKeyThatIsBeingSubmittedIsNoOtherJobs(t *testing.T) {
	r := rigOf(t, nil)
	b := r.BeginSubmit(t.Context(), submitOf(r, "c", polltest.Order{Answer: "queued slow 5s"}))
	require.ErrorIs(t, r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "x", ClientKey: "c"}), jobpoll.ErrDuplicateKey)
	r.to(6 * time.Second)
	_, err := submitted(t, b)
	require.Nil(t, err)
}

func TestDrainWaitsForSubmissions(t *testing.T) {
	r := rigOf(t, nil)
	r.BeginSubmit(t.Context(), submitOf(r, "c", polltest.Order{Answer: "queued slow 5s"}))
	drained := make(chan error, 1)
	go func() { drained <- r.Drain(t.Context()) }()
	r.to(10 * time.Second)
	assert.Empty(t, drained)
	r.to(2 * time.Minute)
	require.NoError(t, <-drained)
	_, err := submit(r, "d", polltest.Order{Answer: "reset"})
	require.NotNil(t, err)
	r.Clock.Settle()
	require.NoError(t, r.Drain(t.Context()), "an ambiguous one has ended")
}

// Errors of the user's own, and hooks and callbacks that call back.
func TestUsersCodeMayCallBackFromEverywhere(t *testing.T) {
	var r *rig
	touch := func() {
		r.Find("c")
		for range r.Submissions() {
			r.Metrics()
		}
	}
	r = rigOf(t, func(_ *rig, c *jobpoll.Config) {
		c.Hooks.Submitted = func(jobpoll.SubmitEvent) { touch() }
		c.Routes[0].Reconciler = lookUpFunc(func(context.Context, jobpoll.Lost) (jobpoll.Finding, error) {
			touch()
			return jobpoll.Finding{}, reentrant{touch}
		})
		c.Routes[0].Stop.MaxErrors = 3
		c.Callbacks.OnStop = func(context.Context, jobpoll.Outcome) error { touch(); return nil }
	})
	s := submitOf(r, "c", polltest.Order{})
	s.Send = func(context.Context) (jobpoll.Sent, error) { touch(); return jobpoll.Sent{}, reentrant{touch} }
	b := r.BeginSubmit(t.Context(), s)
	r.to(5 * time.Minute)
	_, err := submitted(t, b)
	require.NotNil(t, err)
	assert.Contains(t, err.Error(), "reentrant")
	s.Job.ClientKey = "d"
	s.Send = func(context.Context) (jobpoll.Sent, error) {
		return jobpoll.Sent{}, &jobpoll.CheckError{Kind: jobpoll.ErrorInvalid, Err: reentrant{touch}}
	}
	_, e := r.Submit(t.Context(), s)
	require.ErrorContains(t, e, "reentrant")
	s.Job.ClientKey = "e"
	ctx, cancel := context.WithCancelCause(t.Context())
	s.Send = func(ctx context.Context) (jobpoll.Sent, error) {
		cancel(reentrant{touch})
		_ = r.Clock.Sleep(ctx, time.Second)
		return jobpoll.Sent{}, &jobpoll.CheckError{Kind: jobpoll.ErrorInvalid, Err: reentrant{touch}}
	}
	b = r.BeginSubmit(ctx, s)
	r.Clock.Advance(time.Minute)
	_, e = b.Result()
	require.ErrorContains(t, e, "reentrant")
}

// reentrant is an error that calls into the Poller when it is printed.
type reentrant struct{ call func() }

func (e reentrant) Error() string { e.call(); return "reentrant" }
