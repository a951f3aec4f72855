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

// B25
func TestAJobThatIsNotVisibleYetIsNotLost(t *testing.T) {
	g := newRigOnly(t)
	l := &lookups{g: g, answers: []func() (jobpoll.Finding, error){absent}}
	g.run(func(_ *jobpoll.Config, r *jobpoll.Route) { r.Reconciler = l })
	g.watch("a", "404; at 7s queued; at 60s running; at 70s succeeded")
	g.to(200)
	assert.Equal(t, []float64{2, 4, 8}, g.looks("a")[:3])
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
	assert.EqualValues(t, 2, g.Metrics().Routes["r"].LookErrors[jobpoll.ErrorNoSuchJob])
	assert.Empty(t, l.at, "nobody was asked")
}

func absent() (jobpoll.Finding, error)  { return jobpoll.Finding{State: jobpoll.FindingAbsent}, nil }
func unknown() (jobpoll.Finding, error) { return jobpoll.Finding{}, nil }
func present() (jobpoll.Finding, error) {
	return jobpoll.Finding{State: jobpoll.FindingPresent, Ref: "moved"}, nil
}

func lost(t *testing.T, script string, answers ...func() (jobpoll.Finding, error)) (*trial, *lookups) {
	g := newRigOnly(t)
	l := &lookups{g: g, answers: answers}
	g.run(func(_ *jobpoll.Config, r *jobpoll.Route) {
		if len(answers) > 0 {
			r.Reconciler = l
		}
	})
	g.watch("a", script)
	return g, l
}

// B28(a)
func TestAJobThatIsReallyGoneStopsWithAdviceAndNoSubmission(t *testing.T) {
	g, l := lost(t, "404", absent)
	g.to(1800)
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonLost, o.Reason)
	assert.Equal(t, jobpoll.ViaLookup, o.Via)
	assert.Equal(t, jobpoll.AdviceSafe, o.Resubmit)
	assert.Equal(t, "a", o.Job.ID)
	assert.GreaterOrEqual(t, g.after(o), 30.0)
	assert.LessOrEqual(t, g.after(o), 120.0)
	require.Len(t, l.asked, 1)
	assert.Equal(t, "a", l.asked[0].Job.ID)
	assert.GreaterOrEqual(t, l.asked[0].Misses, 3)
	assert.Equal(t, o.Polls, len(g.Looks("a"))+1)
}

func TestGraceForAnUnknownJobIsByTimeAndByCount(t *testing.T) {
	g, _ := lost(t, "404")
	g.to(30)
	assert.Empty(t, g.Outcomes(), "three looks, but no 30 s")
	g.to(120)
	assert.GreaterOrEqual(t, g.after(g.ended("a")), 32.0)

	g = newRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) { r.Schedule.Delays = secs(100) })
	g.watch("a", "404")
	g.to(170)
	assert.Empty(t, g.Outcomes(), "30 s, but no three looks")
	g.to(600)
	assert.Len(t, g.Looks("a"), 3)
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonLost, o.Reason)
	assert.Equal(t, jobpoll.AdviceDoNotResubmit, o.Resubmit, "nobody knows")
}

func TestOneAnswerEndsTheRowOfMisses(t *testing.T) {
	g, _ := lost(t, "running; at 5s 404 x2; at 100s 404 x2; at 400s 404 x2")
	g.to(1000)
	g.pending("a")
}

func TestALookUpThatFindsTheJobKeepsItWatched(t *testing.T) {
	g, l := lost(t, "404; at 40s running; at 100s succeeded", present)
	g.to(60)
	require.Len(t, l.at, 1)
	assert.Equal(t, "moved", g.pending("a").Job.Ref)
	g.to(300)
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
}

func TestALookUpMayTellTheEnd(t *testing.T) {
	g, _ := lost(t, "404", func() (jobpoll.Finding, error) {
		return jobpoll.Finding{State: jobpoll.FindingPresent, Report: jobpoll.Report{State: jobpoll.StateFailed, RawStatus: "dead"}}, nil
	})
	g.to(300)
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonFailed, o.Reason)
	assert.Equal(t, jobpoll.ViaLookup, o.Via)
}

func TestALookUpThatKnowsNothingGivesNoAdvice(t *testing.T) {
	g, _ := lost(t, "404", unknown)
	g.to(300)
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonLost, o.Reason)
	assert.Equal(t, jobpoll.AdviceDoNotResubmit, o.Resubmit)
}

func TestALookUpThatFailsIsMadeAgainAFewTimes(t *testing.T) {
	fails := func() (jobpoll.Finding, error) { return jobpoll.Finding{}, errors.New("list is down") }
	g, l := lost(t, "404", fails, fails, absent)
	g.to(600)
	assert.Len(t, l.at, 3)
	assert.Equal(t, jobpoll.AdviceSafe, g.ended("a").Resubmit)

	g, l = lost(t, "404", fails)
	g.to(1800)
	assert.Len(t, l.at, 4)
	for _, d := range gaps(l.at) {
		assert.GreaterOrEqual(t, d, 2.0)
	}
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonLost, o.Reason)
	assert.Equal(t, jobpoll.AdviceDoNotResubmit, o.Resubmit)
	assert.Contains(t, o.Message, "list is down")
}

func TestALookUpThatPanicsIsContained(t *testing.T) {
	g, l := lost(t, "404", func() (jobpoll.Finding, error) { panic("look-up") }, absent)
	g.to(600)
	assert.Len(t, l.at, 2)
	assert.Equal(t, jobpoll.ReasonLost, g.ended("a").Reason)
	assert.Len(t, g.panics, 1)
}

// Where the status route never knows a job that the list does, this ends.
func TestLookUpsThatContradictTheLooksAreBounded(t *testing.T) {
	g, l := lost(t, "404", present)
	g.to(1800)
	assert.Len(t, l.at, 4)
	assert.Equal(t, jobpoll.ReasonLost, g.ended("a").Reason)
}

func TestAGoneJobStopsAtOnce(t *testing.T) {
	g, l := lost(t, "running; at 5s 410", absent)
	g.to(60)
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonResultExpired, o.Reason)
	assert.Empty(t, l.at)
	assert.Equal(t, 6.0, g.after(o))
	assert.False(t, o.Reason.Resumable())
}

func TestTheCheckerItselfMayBeTheReconcilerThroughUnwrap(t *testing.T) {
	g := newRigOnly(t)
	l := &lookups{g: g, answers: []func() (jobpoll.Finding, error){absent}}
	g.run(func(_ *jobpoll.Config, r *jobpoll.Route) {
		r.Checker = wrapped{struct {
			jobpoll.Checker
			jobpoll.Reconciler
		}{g.Provider, l}}
	})
	g.watch("a", "404")
	g.to(300)
	assert.Equal(t, jobpoll.AdviceSafe, g.ended("a").Resubmit)
	assert.Equal(t, time.Duration(0), g.ended("a").DetectionDelay)
}

// wrapped hides the abilities of a Checker behind Unwrap.
type wrapped struct{ inner jobpoll.Checker }

func (w wrapped) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	return w.inner.Check(ctx, job)
}
func (w wrapped) Unwrap() jobpoll.Checker { return w.inner }
