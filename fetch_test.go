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

// twoCalls is a provider whose outputs take a second call.
type twoCalls struct {
	jobpoll.Checker
	g       *trial
	answers []func() (jobpoll.Report, error)
	at      []float64
	asked   []jobpoll.Report
}

func (f *twoCalls) Fetch(_ context.Context, _ jobpoll.Job, done jobpoll.Report) (jobpoll.Report, error) {
	f.at = append(f.at, f.g.Clock.Now().Sub(f.g.start).Seconds())
	f.asked = append(f.asked, done)
	return f.answers[min(len(f.at), len(f.answers))-1]()
}

func output() (jobpoll.Report, error) {
	return jobpoll.Report{Output: []byte(`{"url": "https://cdn.example/a.mp4?x=1&y=2"}`), ResultExpiresAt: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}, nil
}

func fails503() (jobpoll.Report, error) {
	return jobpoll.Report{}, &jobpoll.CheckError{Kind: jobpoll.ErrorTransient, Status: 503}
}

func fetchRig(t *testing.T, change func(*jobpoll.Config, *jobpoll.Route), answers ...func() (jobpoll.Report, error)) (*trial, *twoCalls) {
	g := newRigOnly(t)
	f := &twoCalls{Checker: g.Provider, g: g, answers: answers}
	g.run(func(cfg *jobpoll.Config, r *jobpoll.Route) {
		r.Checker = wrapped{f}
		if change != nil {
			change(cfg, r)
		}
	})
	return g, f
}

func TestTheOutputComesByASecondCall(t *testing.T) {
	g, f := fetchRig(t, nil, output)
	g.watch("a", `running; at 5s succeeded "DONE"`)
	g.watch("b", `running; at 5s succeeded output {"url":"inline"}`)
	g.to(20)
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonSucceeded, o.Reason)
	assert.Equal(t, `{"url":"https://cdn.example/a.mp4?x=1&y=2"}`, string(o.Report.Output))
	assert.Equal(t, "DONE", o.Report.RawStatus)
	assert.False(t, o.Report.ResultExpiresAt.IsZero())
	assert.Equal(t, []float64{2, 6}, g.looks("a"))
	assert.Equal(t, []float64{6}, f.at, "once, and not for b")
	assert.Equal(t, "DONE", f.asked[0].RawStatus)
	assert.Equal(t, 3, o.Polls, "a call of its own")
}

func TestAFetchIsTriedAgainWithoutAnotherLook(t *testing.T) {
	g, f := fetchRig(t, nil, fails503, fails503, func() (jobpoll.Report, error) { panic("decode") }, output)
	g.watch("a", "running; at 5s succeeded")
	g.to(60)
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
	assert.Equal(t, []float64{2, 6}, g.looks("a"))
	assert.Equal(t, []float64{6, 8, 12, 20}, f.at)
	assert.Len(t, g.panics, 1)
}

func TestAFetchThatNeverWorksIsToldAsASuccessThatIsUnreachable(t *testing.T) {
	g, f := fetchRig(t, nil, fails503)
	g.watch("a", "running; at 5s succeeded")
	g.to(1790)
	o := g.ended("a")
	assert.Len(t, f.at, 10)
	assert.Equal(t, []float64{2, 6}, g.looks("a"))
	assert.Equal(t, jobpoll.ReasonUnreachable, o.Reason)
	assert.Equal(t, jobpoll.StateSucceeded, o.State, "what the provider said last")
	require.Error(t, o.Err())
	assert.Equal(t, jobpoll.AdviceDoNotResubmit, o.Resubmit)
	assert.True(t, o.Reason.Resumable())
}

func TestAFetchThatFindsNothingNeverAdvisesToSubmitAgain(t *testing.T) {
	g := newRigOnly(t)
	f := &twoCalls{Checker: g.Provider, g: g, answers: []func() (jobpoll.Report, error){func() (jobpoll.Report, error) {
		return jobpoll.Report{}, &jobpoll.CheckError{Kind: jobpoll.ErrorNoSuchJob, Status: 404}
	}}}
	l := &lookups{g: g, answers: []func() (jobpoll.Finding, error){absent}}
	g.run(func(_ *jobpoll.Config, r *jobpoll.Route) { r.Checker, r.Reconciler = f, l })
	g.watch("a", "succeeded")
	g.to(1000)
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonUnreachable, o.Reason)
	assert.Equal(t, jobpoll.StateSucceeded, o.State)
	assert.True(t, o.Reason.Resumable())
	assert.Equal(t, jobpoll.AdviceDoNotResubmit, o.Resubmit)
	assert.Empty(t, l.at)
}

func TestAFetchMayCorrectTheEnd(t *testing.T) {
	g, _ := fetchRig(t, nil, func() (jobpoll.Report, error) {
		return jobpoll.Report{State: jobpoll.StateFailed, Failure: &jobpoll.Failure{Kind: jobpoll.FailureFiltered}}, nil
	})
	g.watch("a", "succeeded")
	g.to(10)
	assert.Equal(t, jobpoll.ReasonFailed, g.ended("a").Reason)
}

func TestAFetchIsChargedToTheBudget(t *testing.T) {
	g, f := fetchRig(t, func(cfg *jobpoll.Config, _ *jobpoll.Route) {
		cfg.Budget = jobpoll.NewBudget("acc", jobpoll.Limits{Total: jobpoll.Limit{Rate: 0.1, Burst: 1}})
	}, output)
	g.watch("a", "succeeded")
	g.to(30)
	require.Len(t, f.at, 1)
	assert.Equal(t, []float64{2}, g.looks("a"))
	assert.GreaterOrEqual(t, f.at[0], 12.0)
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
}

func TestAPermanentFetchErrorStops(t *testing.T) {
	g, f := fetchRig(t, nil, func() (jobpoll.Report, error) {
		return jobpoll.Report{}, &jobpoll.CheckError{Kind: jobpoll.ErrorGone, Err: errors.New("the file was deleted")}
	})
	g.watch("a", "succeeded")
	g.to(10)
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonResultExpired, o.Reason)
	assert.Equal(t, jobpoll.StateSucceeded, o.State)
	assert.Len(t, f.at, 1)
}

func TestBadAnswersBeforeTheEndDoNotCountAgainstItsOutput(t *testing.T) {
	limited := func() (jobpoll.Report, error) {
		return jobpoll.Report{}, &jobpoll.CheckError{Kind: jobpoll.ErrorRateLimited}
	}
	for name, tc := range map[string]struct {
		script string
		fetch  func() (jobpoll.Report, error)
	}{
		"errors":        {"503; at 5m succeeded", fails503},
		"misses":        {"404; at 29s succeeded", limited},
		"unknown words": {`"WHAT"; at 10m succeeded`, limited},
	} {
		t.Run(name, func(t *testing.T) {
			g, f := fetchRig(t, nil, tc.fetch, tc.fetch, tc.fetch, output)
			g.watch("a", tc.script)
			g.to(1700)
			o := g.ended("a")
			assert.Equal(t, jobpoll.ReasonSucceeded, o.Reason)
			assert.Len(t, f.at, 4)
			assert.Zero(t, g.Metrics().Total.Failing)
			assert.Zero(t, g.Metrics().Total.LongestStreak)
		})
	}
}

func TestTheOutputOfAJobThatALookUpFoundIsFetched(t *testing.T) {
	g := newRigOnly(t)
	f := &twoCalls{Checker: g.Provider, g: g, answers: []func() (jobpoll.Report, error){func() (jobpoll.Report, error) {
		return jobpoll.Report{}, &jobpoll.CheckError{Kind: jobpoll.ErrorRateLimited}
	}, output}}
	l := &lookups{g: g, answers: []func() (jobpoll.Finding, error){func() (jobpoll.Finding, error) {
		return jobpoll.Finding{State: jobpoll.FindingPresent, Report: jobpoll.Report{State: jobpoll.StateSucceeded}}, nil
	}}}
	g.run(func(_ *jobpoll.Config, r *jobpoll.Route) { r.Checker, r.Reconciler = f, l })
	g.watch("a", "404")
	g.to(300)
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonSucceeded, o.Reason)
	assert.NotEmpty(t, o.Report.Output)
	assert.Len(t, f.at, 2)
}

func TestANoticeOfTheEndDoesNotCutTheProvidersWaitShort(t *testing.T) {
	g, f := fetchRig(t, nil, output)
	g.watch("a", "running retry-after 60s")
	g.to(10)
	require.Equal(t, []float64{2}, g.looks("a"))
	require.NoError(t, g.Notify(t.Context(), jobpoll.Notice{
		Key: jobOf("a").Key(), Trust: jobpoll.TrustAuthoritative, Report: jobpoll.Report{State: jobpoll.StateSucceeded},
	}))
	g.to(61)
	assert.Empty(t, f.at)
	g.to(100)
	assert.Equal(t, []float64{62}, f.at)
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
}

func TestAFetchThatIsHeldUpForEverEnds(t *testing.T) {
	for name, answer := range map[string]func() (jobpoll.Report, error){
		"rate limited": func() (jobpoll.Report, error) {
			return jobpoll.Report{}, &jobpoll.CheckError{Kind: jobpoll.ErrorRateLimited, Hint: jobpoll.Hint{RetryAfter: 30 * time.Second}}
		},
		"pending": func() (jobpoll.Report, error) { return jobpoll.Report{State: jobpoll.StateRunning}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			g := newRigOnly(t)
			f := &twoCalls{Checker: g.Provider, g: g, answers: []func() (jobpoll.Report, error){answer}}
			g.run(func(_ *jobpoll.Config, r *jobpoll.Route) { r.Checker = f })
			g.watch("a", "running; at 20s succeeded")
			info, _ := g.Job(jobOf("a").Key())
			assert.NotEqual(t, jobpoll.StateSucceeded, info.State)
			g.to(200)
			info, _ = g.Job(jobOf("a").Key())
			assert.Equal(t, jobpoll.StateSucceeded, info.State, "known before its output is")
			g.to(3 * 3600)
			o := g.ended("a")
			assert.Equal(t, jobpoll.StateSucceeded, o.State)
			assert.True(t, o.Reason.Resumable(), o.Reason)
		})
	}
}
