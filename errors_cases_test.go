package jobpoll_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// B39(a)
func TestOneErrorAfterAnAdvanceWaitsTheBase(t *testing.T) {
	g, c := httpRig(t, nil)
	var answers []httpAnswer
	for range 6 {
		answers = append(answers, httpAnswer{code: 503})
	}
	c.says("a", append(answers, running, httpAnswer{code: 503}, running)...)
	g.watch("a", "")
	g.to(400)
	at := gaps(g.since(c.looks("a")))
	assert.Equal(t, []float64{2, 4, 8, 16, 32, 60}, at[:6])
	assert.Equal(t, 2.0, at[7], "the base again")
}

// B39(b)
func TestASlowErrorIsNoSignOfHealth(t *testing.T) {
	g, c := httpRig(t, nil)
	c.says("a", httpAnswer{code: 503, slow: 9 * time.Second})
	g.watch("a", "")
	g.to(120)
	at := gaps(g.since(c.looks("a")))
	require.GreaterOrEqual(t, len(at), 4)
	for i, wait := range []float64{2, 4, 8, 16} {
		assert.Equal(t, 9+wait, at[i])
	}
}

// B40
func TestPendingAnswersAreNoErrors(t *testing.T) {
	g, c := httpRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) { r.Schedule.Delays = secs(2, 5) })
	var answers []httpAnswer
	for range 50 {
		answers = append(answers, running)
	}
	c.says("a", append(answers, httpAnswer{code: 503}, running)...)
	g.watch("a", "")
	for len(c.looks("a")) < 51 {
		g.Clock.Advance(time.Second)
	}
	i := g.pending("a")
	assert.Equal(t, 1, i.Errors)
	assert.Equal(t, 2*time.Second, i.NextPollAt.Sub(i.LastPollAt))
}

// B41
func TestTransientDropsDoNotFailAJob(t *testing.T) {
	g, c := httpRig(t, nil)
	answers := []func() (jobpoll.Report, error){
		func() (jobpoll.Report, error) { return jobpoll.Report{}, errors.New("unexpected end of JSON input") },
		func() (jobpoll.Report, error) { return jobpoll.Report{}, errors.New("read: connection reset by peer") },
	}
	c.says("a", httpAnswer{code: 502, header: map[string][]string{"Content-Type": {"text/html"}}},
		httpAnswer{code: 200, header: map[string][]string{"Content-Type": {"text/html"}}}, httpAnswer{code: 204}, httpAnswer{code: 500}, succeeded)
	g.watch("a", "")
	g.to(200)
	assert.Equal(t, []float64{2, 4, 8, 16}, gaps(g.since(c.looks("a"))))
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
	assert.Equal(t, 5, g.ended("a").Polls)
	g.Stop()

	n := 0
	g = newRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) {
		r.Checker = jobpoll.CheckerFunc(func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			if n++; n <= len(answers) {
				return answers[n-1]()
			}
			return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
		})
	})
	g.watch("a", "")
	g.to(200)
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
}

// B42
func TestAPermanentRefusalStopsWithStatusAndExcerpt(t *testing.T) {
	for _, tc := range []struct {
		code int
		kind jobpoll.ErrorKind
	}{{403, jobpoll.ErrorPolicy}, {400, jobpoll.ErrorInvalid}} {
		g, c := httpRig(t, nil)
		c.says("a", httpAnswer{code: tc.code})
		g.watch("a", "")
		g.to(60)
		o := g.ended("a")
		assert.Equal(t, jobpoll.ReasonInvalid, o.Reason)
		assert.Equal(t, tc.kind, o.ErrorKind)
		assert.Contains(t, o.Message, fmt.Sprint(tc.code))
		assert.Contains(t, o.Message, `"error":"no"`)
		assert.LessOrEqual(t, o.Polls, 2)
		assert.True(t, o.Reason.Resumable())
		g.Stop()
	}
}

// B45(a), (b)
func TestRateLimitsAndGoodAnswersDoNotUseUpTheErrorBudget(t *testing.T) {
	g, c := httpRig(t, nil)
	var a, b []httpAnswer
	for range 15 {
		a = append(a, httpAnswer{code: 429, header: asks("5")})
	}
	for range 2 {
		for range 9 {
			b = append(b, httpAnswer{code: 503})
		}
		b = append(b, running)
	}
	c.says("a", append(a, succeeded)...)
	g.watch("a", "")
	g.to(1799)
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
	assert.Len(t, c.looks("a"), 16)
	g.Stop()

	g, c = httpRig(t, nil)
	c.says("b", append(b, succeeded)...)
	g.watch("b", "")
	g.to(1799)
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("b").Reason)
}

// B45(c)
func TestAnUnreachableProviderStopsTheWatchNotTheJob(t *testing.T) {
	g, c := httpRig(t, nil)
	c.says("a", httpAnswer{code: 503})
	g.watch("a", "")
	g.to(190)
	m := g.Metrics().Routes["r"]
	assert.Equal(t, 1, m.Failing)
	assert.GreaterOrEqual(t, m.LongestStreak, 5)
	g.to(900)
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonUnreachable, o.Reason)
	assert.Len(t, c.looks("a"), 10)
	assert.Contains(t, o.Message, "503")
	assert.NotEqual(t, jobpoll.StateFailed, o.State)
	assert.Zero(t, g.Metrics().Routes["r"].Failing)
}

// B46
func TestACallThatNeverReturnsIsGivenUp(t *testing.T) {
	g := newRig(t, func(cfg *jobpoll.Config, r *jobpoll.Route) {
		cfg.Workers, r.Stop.MaxErrors, r.Stop.MaxAge = 2, jobpoll.NoCount, 5*time.Minute
		r.Schedule.Delays = secs(5)
	})
	g.watch("j1", "hang")
	for i := 2; i <= 20; i++ {
		g.watch(fmt.Sprintf("j%d", i), "running")
	}
	g.to(15)
	assert.Equal(t, jobpoll.ErrorTransient, g.pending("j1").ErrorKind)
	assert.Contains(t, g.pending("j1").Message, "timed out after 10s")
	assert.False(t, g.pending("j1").NextPollAt.IsZero())
	g.to(400)
	for i := 2; i <= 20; i++ {
		for n, at := range g.looks(fmt.Sprintf("j%d", i)) {
			assert.Equal(t, float64(5*(n+1)), at)
		}
	}
	assert.Equal(t, jobpoll.ReasonDeadline, g.ended("j1").Reason)
	assert.LessOrEqual(t, g.after(g.ended("j1")), 400.0)
}

func TestACallThatIgnoresItsContextHoldsUpNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		hung := make(chan struct{})
		b.check = func(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
			if job.ID == "hung" {
				<-hung
			}
			return jobpoll.Report{State: jobpoll.StateRunning}, nil
		}
		b.start(func(cfg *jobpoll.Config, r *jobpoll.Route) { cfg.Workers, r.Stop.MaxErrors = 1, 4 })
		b.watch("hung")
		b.watch("other")
		b.sleep(13)
		assert.Equal(t, 1, b.info("hung").Errors)
		assert.Positive(t, b.info("other").Polls)
		b.sleep(60)
		assert.Equal(t, 1, b.info("hung").Polls, "never two calls at once")
		assert.Equal(t, jobpoll.ReasonUnreachable, b.ended("hung").Reason)
		assert.Contains(t, b.ended("hung").Message, "has still not returned")
		b.watch("late")
		close(hung)
		b.sleep(5)
		assert.Positive(t, b.info("late").Polls)
	})
}

func TestRunReturnsWithAnErrorWhereACallIgnoresItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		hung := make(chan struct{})
		b.check = func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			<-hung
			return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
		}
		b.start(nil)
		b.watch("a")
		b.sleep(3)
		b.cancel()
		began := time.Now()
		err := <-b.ran
		require.Error(t, err)
		assert.Equal(t, 10*time.Second, time.Since(began))
		assert.Contains(t, err.Error(), "jobpoll: r/a: a call has not returned")
		// It goes on with the next Run, and never twice at once.
		b.run()
		b.sleep(30)
		assert.Equal(t, 1, b.info("a").Polls)
		close(hung)
		b.sleep(120)
		assert.Equal(t, jobpoll.ReasonSucceeded, b.ended("a").Reason)
		b.stop()
	})
}

func TestAPermanentErrorStopsTheJob(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		reason jobpoll.Reason
	}{
		"plain":   {backoff.Permanent(errors.New("no such model")), jobpoll.ReasonInvalid},
		"wrapped": {fmt.Errorf("look: %w", backoff.Permanent(errors.New("no such model"))), jobpoll.ReasonInvalid},
		"inside": {&jobpoll.CheckError{Kind: jobpoll.ErrorNoSuchJob, Err: backoff.Permanent(errors.New("no such model"))},
			jobpoll.ReasonLost},
		"outside": {backoff.Permanent(&jobpoll.CheckError{Kind: jobpoll.ErrorAuth, Err: errors.New("no such model")}), jobpoll.ReasonAuth},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) {
				r.Checker = jobpoll.CheckerFunc(func(context.Context, jobpoll.Job) (jobpoll.Report, error) { return jobpoll.Report{}, tc.err })
			})
			g.watch("a", "")
			g.to(100)
			o := g.ended("a")
			assert.Equal(t, tc.reason, o.Reason)
			assert.Equal(t, 1, o.Polls)
			assert.True(t, strings.Contains(o.Message, "no such model"), o.Message)
		})
	}
}
