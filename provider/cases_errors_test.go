package provider

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

// B41: pages, empty and cut bodies, a reset: four faults that pass.
func TestFaultsOnTheWayPass(t *testing.T) {
	g := newCaseRig(t, "replicate", func(w http.ResponseWriter, _ *http.Request, n int) {
		switch n {
		case 1:
			w.Header().Set("Content-Type", "text/html")
			says(w, 502, "<html><h1>502 Bad Gateway</h1>")
		case 2:
			says(w, 200, "")
		case 3:
			says(w, 200, `{"stat`)
		case 4:
			// Some bytes first: without any, net/http asks again by itself.
			conn, _, _ := w.(http.Hijacker).Hijack()
			_, _ = conn.Write([]byte("HTTP/1.1 200 O"))
			_ = conn.Close()
		default:
			says(w, 200, done)
		}
	})
	g.watch("a")
	g.run(600)
	o := g.ended("a")
	require.Equal(t, jobpoll.ReasonSucceeded, o.Reason)
	require.Equal(t, 5, o.Polls)
	require.EqualValues(t, 4, g.Metrics().Total.LookErrors[jobpoll.ErrorTransient])
	d := gaps(g.looks("a"))
	require.Len(t, d, 4)
	for i := 1; i < len(d); i++ {
		require.Greater(t, d[i], d[i-1], "the waits grow")
	}
}

// B42: a refusal ends the watch with what the provider said.
func TestARefusalIsNoTimeout(t *testing.T) {
	for status, body := range map[int]string{403: `{"detail":"not for you"}`, 400: `{"detail":"invalid id"}`} {
		g := newCaseRig(t, "replicate", func(w http.ResponseWriter, _ *http.Request, _ int) { says(w, status, body) })
		g.watch("a")
		g.run(600)
		o := g.ended("a")
		require.Equal(t, jobpoll.ReasonInvalid, o.Reason)
		require.LessOrEqual(t, len(g.looks("a")), 2)
		require.Contains(t, o.Message, fmt.Sprint("HTTP ", status))
		require.Contains(t, o.Message, body[len(`{"detail":"`):len(body)-2])
	}
	// The same of Atlas Cloud, which answers 400 also for a job that is too young.
	g := newCaseRig(t, "atlas", func(w http.ResponseWriter, _ *http.Request, _ int) { says(w, 400, `{"code":400,"msg":"invalid id"}`) })
	g.watch("a", func(j *jobpoll.Job) { j.SubmittedAt = g.start.Add(-time.Minute) })
	g.run(600)
	require.Equal(t, jobpoll.ReasonInvalid, g.ended("a").Reason)
	require.Len(t, g.looks("a"), 1)
}

// B45(a): rate limits do not use up the budget of faults.
func TestRateLimitsAreNoFaults(t *testing.T) {
	g := newCaseRig(t, "replicate", func(w http.ResponseWriter, _ *http.Request, n int) {
		if n <= 15 {
			w.Header().Set("Retry-After", "5")
			says(w, 429, `{}`)
			return
		}
		says(w, 200, done)
	}, longLife)
	g.watch("a")
	g.run(3600)
	require.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
	require.Len(t, g.looks("a"), 16)
}

func longLife(cfg *jobpoll.Config, _ *jobpoll.Route) { cfg.Stop.MaxAge = 24 * time.Hour }

// B45(b): a good answer clears the row of faults.
func TestAGoodAnswerClearsTheRowOfFaults(t *testing.T) {
	g := newCaseRig(t, "replicate", func(w http.ResponseWriter, _ *http.Request, n int) {
		switch n {
		case 10:
			says(w, 200, runs)
		case 20:
			says(w, 200, done)
		default:
			says(w, 503, "")
		}
	}, longLife)
	g.watch("a")
	g.run(7200)
	require.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
	require.Len(t, g.looks("a"), 20)
}

// B45(c): faults without end are the provider's, not the job's.
func TestAProviderThatStaysAwayIsUnreachable(t *testing.T) {
	g := newCaseRig(t, "replicate", func(w http.ResponseWriter, _ *http.Request, _ int) { says(w, 503, "maintenance") }, longLife)
	g.watch("a")
	g.run(20)
	require.Positive(t, g.Metrics().Total.LongestStreak)
	g.run(7200)
	o := g.ended("a")
	require.Equal(t, jobpoll.ReasonUnreachable, o.Reason)
	require.Len(t, g.looks("a"), 10)
	require.Contains(t, o.Message, "maintenance")
}

// B46: a call that never returns is given up, and holds nobody up.
func TestACallThatNeverReturnsHoldsNobodyUp(t *testing.T) {
	g := newCaseRig(t, "replicate", func(w http.ResponseWriter, r *http.Request, _ int) {
		if caseID(r.URL.Path) == "j1" {
			<-r.Context().Done()
			return
		}
		says(w, 200, runs)
	}, func(_ *jobpoll.Config, r *jobpoll.Route) { r.CheckTimeout = 10 * time.Second })
	deadline := g.start.Add(2 * time.Minute)
	for i := 1; i <= 20; i++ {
		g.watch(fmt.Sprint("j", i), func(j *jobpoll.Job) { j.Deadline = deadline })
	}
	g.run(100)
	hung := g.looks("j1")
	require.GreaterOrEqual(t, len(hung), 2)
	require.GreaterOrEqual(t, hung[1]-hung[0], 10.0)
	require.NotZero(t, g.Metrics().Total.LookErrors[jobpoll.ErrorTransient])
	for i := 2; i <= 20; i++ {
		for _, d := range gaps(g.looks(fmt.Sprint("j", i))) {
			require.LessOrEqual(t, d, 24.1)
		}
	}
	g.run(300)
	require.Equal(t, jobpoll.ReasonDeadline, g.ended("j1").Reason)
}

// B47: one 429 cools its route for all jobs, and no other route.
func TestOneRateLimitCoolsTheRoute(t *testing.T) {
	other, err := NewAtlas(Config{BaseURL: "http://127.0.0.1:1", Credentials: Secret(kitKey)})
	require.NoError(t, err)
	refused := false
	g := newCaseRig(t, "replicate", func(w http.ResponseWriter, r *http.Request, _ int) {
		if caseID(r.URL.Path) == "j1" && !refused {
			refused = true
			says(w, 429, `{"detail":"Request was throttled. Your rate limit resets in ~30s."}`)
			return
		}
		says(w, 200, runs)
	}, func(cfg *jobpoll.Config, _ *jobpoll.Route) {
		cfg.Routes = append(cfg.Routes, jobpoll.Route{Name: "b", Checker: other, Stop: jobpoll.StopRules{MaxErrors: jobpoll.NoCount}})
	})
	g.watch("j1", func(j *jobpoll.Job) { j.NotBefore = g.start.Add(5 * time.Second) })
	for i := 2; i <= 50; i++ {
		g.watch(fmt.Sprint("j", i), func(j *jobpoll.Job) { j.NotBefore = g.start.Add(6 * time.Second) })
	}
	for i := range 5 {
		require.NoError(t, g.Watch(t.Context(), jobpoll.Job{Route: "b", ID: fmt.Sprint(i), Expected: 20 * time.Second}))
	}
	g.run(12)
	g.watch("j51")
	g.run(34)
	first := g.looks("j1")[0]
	require.Len(t, g.looks("j1"), 1)
	for i := 2; i <= 51; i++ {
		for _, at := range g.looks(fmt.Sprint("j", i)) {
			require.False(t, at > first && at < first+30, "j%d at %v", i, at)
		}
	}
	require.GreaterOrEqual(t, g.Metrics().Routes["b"].Looks, uint64(15), "the other route goes on")
	g.run(120)
	require.Greater(t, len(g.looks("j50")), 0)
}

// B48: after a cool-down calls leave paced, not together.
func TestAfterACoolDownCallsLeavePaced(t *testing.T) {
	limits := jobpoll.Limits{Total: jobpoll.Limit{Rate: 5, Burst: 5, Concurrent: 10}}
	refused := false
	g := newCaseRig(t, "replicate", func(w http.ResponseWriter, _ *http.Request, _ int) {
		if !refused {
			refused = true
			w.Header().Set("Retry-After", "30")
			says(w, 429, `{}`)
			return
		}
		says(w, 200, done)
	}, func(_ *jobpoll.Config, r *jobpoll.Route) { r.Budget = jobpoll.NewBudget("account", limits) })
	g.watch("j1", func(j *jobpoll.Job) { j.NotBefore = g.start.Add(5 * time.Second) })
	for i := 2; i <= 50; i++ {
		g.watch(fmt.Sprint("j", i), func(j *jobpoll.Job) { j.NotBefore = g.start.Add(6 * time.Second) })
	}
	g.run(60)
	require.Len(t, g.seen.Outcomes(), 50)
	var after []float64
	for _, r := range g.requests[1:] {
		require.GreaterOrEqual(t, r.at, 35.0)
		after = append(after, r.at)
	}
	for i := range after {
		n := 0
		for _, at := range after[i:] {
			if at-after[i] < 1 {
				n++
			}
		}
		require.LessOrEqual(t, n, 10, "in the second from %v", after[i])
	}
	require.LessOrEqual(t, g.most, 10)
}
