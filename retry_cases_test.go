package jobpoll_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// httpRig is a trial whose adapter reads HTTP answers.
func httpRig(t *testing.T, change func(*jobpoll.Config, *jobpoll.Route)) (*trial, *httpChecker) {
	g := newRigOnly(t)
	c := newHTTPChecker(g.Clock)
	g.run(func(cfg *jobpoll.Config, r *jobpoll.Route) {
		r.Checker = c
		if change != nil {
			change(cfg, r)
		}
	})
	return g, c
}

var (
	running   = httpAnswer{code: 200, state: jobpoll.StateRunning}
	succeeded = httpAnswer{code: 200, state: jobpoll.StateSucceeded}
)

// B01
func TestARetryAfterDateHoldsInAllThreeForms(t *testing.T) {
	for _, date := range []string{"Thu, 01 Jan 2026 00:01:30 GMT", "Thursday, 01-Jan-26 00:01:30 GMT", "Thu Jan  1 00:01:30 2026"} {
		t.Run(date, func(t *testing.T) {
			g, c := httpRig(t, nil)
			c.says("a", httpAnswer{code: 429, header: asks(date)}, succeeded)
			g.watch("a", "")
			g.watch("b", "") // on the same route, due at the same time
			g.to(200)
			require.Len(t, c.looks("a"), 2)
			second := g.since(c.looks("a"))[1]
			assert.GreaterOrEqual(t, second, 90.0)
			assert.LessOrEqual(t, second, 90.0+60*0.2+1)
			for _, at := range g.since(c.looks("b")) {
				assert.True(t, at <= 2 || at >= 90, "a look at %v on a closed route", at)
			}
		})
	}
}

// B02
func TestARetryAfterOnAPendingAnswerIsInSeconds(t *testing.T) {
	g, c := httpRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) { r.Schedule.Delays = secs(10, 2) })
	c.says("a", httpAnswer{code: 200, state: jobpoll.StateRunning, header: asks("30")}, succeeded)
	g.watch("a", "")
	g.to(100)
	looks := g.since(c.looks("a"))
	require.Len(t, looks, 2)
	assert.Equal(t, 10.0, looks[0])
	assert.GreaterOrEqual(t, looks[1], 40.0)
	assert.LessOrEqual(t, looks[1], 40+10*0.2)
}

// B03
func TestARetryAfterThatIsGarbageIsIgnored(t *testing.T) {
	for _, tc := range []struct {
		name, id  string
		values    []string
		least     float64
		malformed uint64
	}{
		{"a fraction", "f", []string{"0.493"}, 4, 0},
		{"negative", "n", []string{"-5"}, 4, 1},
		{"nan", "n", []string{"nan"}, 4, 1},
		{"inf", "n", []string{"inf"}, 4, 1},
		{"minus inf", "n", []string{"-inf"}, 4, 1},
		{"exponent", "n", []string{"1e9"}, 4, 1},
		{"plus", "n", []string{"+5"}, 4, 1},
		{"superscript", "n", []string{"²"}, 4, 1},
		{"empty", "n", []string{""}, 4, 1},
		{"a word", "n", []string{"soon"}, 4, 1},
		{"a list", "n", []string{"5, 10"}, 4, 1},
		{"spaces", "n", []string{" 30 "}, 30, 0},
		{"two headers", "n", []string{"7", "20"}, 20, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, c := httpRig(t, nil)
			// The first rate limit has a backoff of 2 s, the second one of 4 s.
			c.says("a", httpAnswer{code: 429}, httpAnswer{code: 429, header: asks(tc.values...)}, succeeded)
			g.watch("a", "")
			g.to(5)
			g.watch("b", "") // no good answer of it comes between the two limits
			g.to(120)
			looks := g.since(c.looks("a"))
			require.Len(t, looks, 3)
			require.Less(t, looks[1], 5.0)
			require.NotEmpty(t, c.looks("b"))
			assert.GreaterOrEqual(t, looks[2]-looks[1], tc.least)
			assert.LessOrEqual(t, looks[2]-looks[1], tc.least*1.2+1)
			for _, at := range g.since(c.looks("b")) {
				assert.False(t, at > looks[1] && at < looks[1]+tc.least, "a look at %v on a closed route", at)
			}
			assert.Equal(t, tc.malformed, g.Metrics().Routes["r"].MalformedHints)
			assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
		})
	}
}

// B04
func TestAnAbsurdRetryAfterNeverFiresEarly(t *testing.T) {
	for _, v := range []string{"9223372036", "9223372037", "9999999999", "99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		t.Run(v, func(t *testing.T) {
			g, c := httpRig(t, func(cfg *jobpoll.Config, r *jobpoll.Route) {
				cfg.Rand = func() float64 { return 0.999999 }
				r.Schedule.Jitter = 0.2
			})
			c.says("a", httpAnswer{code: 429, header: asks(v)}, succeeded)
			g.watch("a", "")
			g.to(1799)
			assert.Len(t, c.looks("a"), 1)
			assert.Empty(t, g.Outcomes())
			g.to(1800)
			o := g.ended("a")
			assert.Equal(t, jobpoll.ReasonRateLimited, o.Reason)
			assert.Equal(t, jobpoll.ErrorRateLimited, o.ErrorKind)
			assert.Equal(t, "a", o.Job.ID)
			assert.Contains(t, o.Err().Error(), "r/a")
			assert.True(t, o.RetryAt.After(o.DetectedAt))
			assert.Len(t, c.looks("a"), 1)
		})
	}
}

// B05
func TestAHintBindsTheNextLookOnly(t *testing.T) {
	g, c := httpRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) { r.Schedule.Delays = secs(5) })
	c.says("a", httpAnswer{code: 200, state: jobpoll.StateRunning, header: asks("1")},
		httpAnswer{code: 200, state: jobpoll.StateRunning, header: asks("20")}, running)
	g.watch("a", "")
	g.to(60)
	at := gaps(g.since(c.looks("a")))
	require.GreaterOrEqual(t, len(at), 4)
	assert.Equal(t, 5.0, at[0])
	assert.GreaterOrEqual(t, at[1], 20.0)
	assert.LessOrEqual(t, at[1], 21.0)
	assert.Equal(t, []float64{5, 5}, at[2:4])
}

// B06(b)
func TestEveryKindOfAnswerMayAskToWait(t *testing.T) {
	for _, a := range []httpAnswer{
		{code: 200, state: jobpoll.StateRunning}, {code: 202, state: jobpoll.StateQueued}, {code: 404}, {code: 429}, {code: 503},
	} {
		t.Run(fmt.Sprint(a.code), func(t *testing.T) {
			g, c := httpRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) { r.Schedule.Queued = 2 * time.Second })
			a.header = asks("15")
			c.says("a", a, running)
			g.watch("a", "")
			g.watch("b", "")
			g.to(40)
			looks := g.since(c.looks("a"))
			require.GreaterOrEqual(t, len(looks), 2)
			assert.GreaterOrEqual(t, looks[1]-looks[0], 15.0)
			assert.LessOrEqual(t, looks[1]-looks[0], 15+2*0.2+1)
			// 429 and 503 speak for the route, the others for that job alone.
			others := 0
			for _, at := range g.since(c.looks("b")) {
				if at > looks[0] && at < looks[0]+15 {
					others++
				}
			}
			assert.Equal(t, a.code >= 429, others == 0)
		})
	}
}

// lookups is a Reconciler that answers with what it was given, in turn.
type lookups struct {
	g       *trial
	answers []func() (jobpoll.Finding, error)
	at      []float64
	asked   []jobpoll.Lost
}

func (l *lookups) Lookup(_ context.Context, lost jobpoll.Lost) (jobpoll.Finding, error) {
	l.at = append(l.at, l.g.Clock.Now().Sub(l.g.start).Seconds())
	l.asked = append(l.asked, lost)
	return l.answers[min(len(l.at), len(l.answers))-1]()
}

// B06(b)
func TestTheAnswerOfALookUpMayAskToWait(t *testing.T) {
	for name, answer := range map[string]func() (jobpoll.Finding, error){
		"found": func() (jobpoll.Finding, error) {
			return jobpoll.Finding{State: jobpoll.FindingPresent, Report: jobpoll.Report{Hint: jobpoll.Hint{RetryAfter: 90 * time.Second}}}, nil
		},
		"refused": func() (jobpoll.Finding, error) {
			return jobpoll.Finding{}, &jobpoll.CheckError{Kind: jobpoll.ErrorTransient, Hint: jobpoll.Hint{RetryAfter: 90 * time.Second, Scope: jobpoll.ScopeJob}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRigOnly(t)
			l := &lookups{g: g, answers: []func() (jobpoll.Finding, error){answer, func() (jobpoll.Finding, error) {
				return jobpoll.Finding{State: jobpoll.FindingPresent}, nil
			}}}
			g.run(func(_ *jobpoll.Config, r *jobpoll.Route) { r.Reconciler = l })
			g.watch("a", "404; at 50s running")
			g.to(600)
			require.NotEmpty(t, l.at)
			next := 0.0
			for _, at := range append(g.looks("a"), l.at...) {
				if at > l.at[0] && (next == 0 || at < next) {
					next = at
				}
			}
			assert.GreaterOrEqual(t, next-l.at[0], 90.0)
			assert.LessOrEqual(t, next-l.at[0], 120.0)
			assert.Empty(t, g.Outcomes())
		})
	}
}

// B07(a)
func TestAWaitThatOutlastsTheLimitStopsAtTheLimit(t *testing.T) {
	g, c := httpRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) {
		r.Schedule.Delays, r.Stop.MaxAge = secs(60), 15*time.Minute
	})
	c.says("a", httpAnswer{code: 429, header: asks("1800")})
	g.watch("a", "")
	g.to(899)
	assert.Empty(t, g.Outcomes())
	g.to(900)
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonRateLimited, o.Reason)
	assert.Equal(t, g.start.Add(1860*time.Second), o.RetryAt)
	assert.Len(t, c.looks("a"), 1)
	assert.Contains(t, o.Err().Error(), "2026-01-01T00:31:00Z")
	assert.Equal(t, jobpoll.AdviceDoNotResubmit, o.Resubmit)
}

// B07(c), (d)
func TestALongRetryAfterIsObeyedAndNeverShortened(t *testing.T) {
	before := 0.0
	for _, ask := range []int{0, 1, 2, 3, 5, 59, 60, 61, 600, 3600, 86_399, 1_000_000} {
		g, c := httpRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) { r.Stop.MaxAge = jobpoll.NoLimit })
		c.says("a", httpAnswer{code: 429, header: asks(fmt.Sprint(ask))}, succeeded)
		g.watch("a", "")
		g.to(float64(ask) + 100)
		at := gaps(g.since(c.looks("a")))
		require.Len(t, at, 1)
		assert.GreaterOrEqual(t, at[0], float64(ask))
		assert.GreaterOrEqual(t, at[0], before, "the wait fell as the Retry-After rose to %d", ask)
		before = at[0]
		g.Stop()
	}
}

// B08
func TestADatePastLeavesOurOwnBackoff(t *testing.T) {
	g, c := httpRig(t, nil)
	past := httpAnswer{code: 429, header: asks("Wed, 31 Dec 2025 23:59:00 GMT")}
	c.says("a", httpAnswer{code: 429}, httpAnswer{code: 429}, httpAnswer{code: 429}, past, succeeded)
	g.watch("a", "")
	g.to(120)
	at := gaps(g.since(c.looks("a")))
	require.Len(t, at, 4)
	assert.GreaterOrEqual(t, at[3], 12.8)
	assert.LessOrEqual(t, at[3], 16*1.2)
}

// B10
func TestJitterNeverGoesUnderAWait(t *testing.T) {
	for _, draw := range []float64{0, 0.5, 0.9999999} {
		g, c := httpRig(t, func(cfg *jobpoll.Config, r *jobpoll.Route) {
			cfg.Rand = func() float64 { return draw }
			r.Schedule.Jitter = 0.2
		})
		for i := range 100 {
			id := fmt.Sprint(i)
			c.says(id, httpAnswer{code: 200, state: jobpoll.StateRunning, header: asks("30")}, succeeded)
			g.watch(id, "")
		}
		g.to(60)
		for i := range 100 {
			at := gaps(g.since(c.looks(fmt.Sprint(i))))
			require.Len(t, at, 1)
			assert.GreaterOrEqual(t, at[0], 30.0)
			assert.LessOrEqual(t, at[0], 30+2*0.2)
		}
		// 7200 s outlasts the limit of 30 min, whatever the draw.
		c.says("long", httpAnswer{code: 200, state: jobpoll.StateRunning, header: asks("7200")})
		g.watch("long", "")
		g.to(60 + 1800)
		assert.Equal(t, jobpoll.ReasonRateLimited, g.ended("long").Reason)
		assert.Len(t, c.looks("long"), 1)
		g.Stop()
	}
}
