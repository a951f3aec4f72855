package jobpoll_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// B29
func TestAnAbortedJobStopsOnThatLookWithItsWord(t *testing.T) {
	g := newRig(t, nil)
	g.watch("a", `running; at 5s canceled "aborted"`)
	k := g.watch("b", "running")
	g.to(6)
	require.NoError(t, g.Abandon(t.Context(), k, nil))
	g.to(60)
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonCanceled, o.Reason)
	assert.Equal(t, "aborted", o.Report.RawStatus)
	assert.Equal(t, 6.0, g.after(o))
	assert.NotEqual(t, o.Reason, g.ended("b").Reason)
}

// B30(a)
func TestAnUnknownWordKeepsTheJobWatched(t *testing.T) {
	g := newRig(t, nil)
	g.watch("a", `"NOT_START"; at 10s running "in_progress"; at 15s succeeded "completed"`)
	g.to(60)
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonSucceeded, o.Reason)
	assert.Equal(t, 4, o.Polls)
	assert.Len(t, g.words, 1)
}

// B30(b)
func TestAnUnknownWordForEverStopsAfterItsOwnBound(t *testing.T) {
	g := newRig(t, nil)
	k := g.watch("a", `"incomplete"`)
	g.to(1800)
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonUnknownStatus, o.Reason)
	assert.Equal(t, "incomplete", o.Report.RawStatus)
	assert.GreaterOrEqual(t, g.after(o), 600.0)
	assert.LessOrEqual(t, g.after(o), 700.0)
	require.Len(t, g.words, 1, "told once by the hook")
	assert.Equal(t, "incomplete", g.words[0].Word)
	assert.Len(t, g.Updates(k), 1, "and once by OnUpdate")
	assert.EqualValues(t, 1, g.Metrics().Routes["r"].UnknownWords["incomplete"])
}

// B32
func TestQueuedAndThrottledJobsAreLookedAtSlowlyAndAlone(t *testing.T) {
	g := newRig(t, nil)
	g.watch("a", `queued; at 20s queued "THROTTLED"; at 150s running "RUNNING"; at 170s succeeded`)
	g.watch("b", "running")
	g.to(300)
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
	for i, d := range gaps(g.looks("a")) {
		if g.looks("a")[i] < 150 {
			assert.GreaterOrEqual(t, d, 24.0)
		}
	}
	assert.Equal(t, []float64{2, 6, 14, 30, 62, 122}, g.looks("b")[:6], "its own pace")
	assert.Zero(t, g.Metrics().Routes["r"].RateLimited)
}

// B34
func TestAFailureKeepsTheProvidersReason(t *testing.T) {
	g := newRigOnly(t)
	var looks atomic.Int32
	g.run(func(_ *jobpoll.Config, r *jobpoll.Route) {
		r.Checker = jobpoll.CheckerFunc(func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			looks.Add(1)
			return jobpoll.Report{State: jobpoll.StateFailed, RawStatus: "failed",
				Failure: &jobpoll.Failure{Kind: jobpoll.FailureRejected, Code: "moderation", Message: "a hand with six fingers"}}, nil
		})
	})
	g.watch("a", "")
	g.to(60)
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonFailed, o.Reason)
	assert.Equal(t, jobpoll.Failure{Kind: jobpoll.FailureRejected, Code: "moderation", Message: "a hand with six fingers"}, *o.Report.Failure)
	assert.Contains(t, o.Err().Error(), "moderation")
	assert.Equal(t, jobpoll.AdviceDoNotResubmit, o.Resubmit)
	assert.EqualValues(t, 1, looks.Load())
}

// B35(a)
func TestDoneWithoutOutputIsConfirmedOnce(t *testing.T) {
	g := newRig(t, nil)
	g.watch("a", "running; at 5s failed no-output")
	g.watch("b", `running; at 5s failed no-output; at 7s succeeded output {"url":"u"}`)
	g.to(60)
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonFailed, o.Reason)
	assert.Equal(t, jobpoll.FailureNoOutput, o.Report.Failure.Kind)
	assert.Equal(t, []float64{2, 6, 8}, g.looks("a"))
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("b").Reason)
}

// B35(b)
func TestAFilteredResultFailsOnThatLook(t *testing.T) {
	g := newRig(t, nil)
	g.watch("a", `running; at 5s failed filtered "1 of 1"`)
	g.to(60)
	o := g.ended("a")
	assert.Equal(t, jobpoll.FailureFiltered, o.Report.Failure.Kind)
	assert.Equal(t, []float64{2, 6}, g.looks("a"))
}

// B35(c)
func TestAPassingFaultInA200IsTransient(t *testing.T) {
	g := newRig(t, nil)
	g.watch("a", `error "InternalServerError" once; at 5s running; at 20s succeeded`)
	g.to(60)
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
}

// B36
func TestOnlyAJobThatStopsAdvancingIsStuck(t *testing.T) {
	script := ""
	for m := 2; m < 40; m += 2 {
		script += "at " + (time.Duration(m) * time.Minute).String() + " running " + percent(m*5/2) + "; "
	}
	g := newRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) {
		r.Stop.NoProgress, r.Stop.MaxAge, r.Schedule.Delays = 5*time.Minute, time.Hour, secs(20)
	})
	g.watch("a", "running 1%; "+script+"at 40m succeeded")
	g.watch("b", "running 10%; at 2m running 20%")
	g.to(3700)
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
	o := g.ended("b")
	assert.Equal(t, jobpoll.ReasonNoProgress, o.Reason)
	assert.InDelta(t, 7*60, g.after(o), 20)
}

func percent(n int) string { return string(rune('0'+n/10)) + string(rune('0'+n%10)) + "%" }

// B38
func TestTheScheduleKnowsTheExpectedDuration(t *testing.T) {
	for _, tc := range []struct {
		expected, done, seen float64
	}{{600, 610, 620}, {80, 77.4, 87.4}, {80, 300, 360}} {
		g := newRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) {
			*r = jobpoll.Route{Name: "r", Schedule: jobpoll.Schedule{Jitter: jobpoll.NoJitter, NearEnd: 5 * time.Second}}
		})
		g.watchJob(jobpoll.Job{Route: "r", ID: "a", Expected: secs(tc.expected)[0]}, "running; at "+secs(tc.done)[0].String()+" succeeded")
		g.to(900)
		o := g.ended("a")
		assert.LessOrEqual(t, g.after(o), tc.seen)
		assert.LessOrEqual(t, o.Polls, 40)
		assert.GreaterOrEqual(t, o.DetectionDelay, time.Duration(0))
		for _, d := range gaps(g.looks("a")) {
			assert.LessOrEqual(t, d, 60.0)
		}
		g.Stop()
	}
}
