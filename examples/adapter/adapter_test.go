package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

// asked remembers when a handler was asked, on the clock of the test.
type asked struct {
	http.Handler
	now func() time.Time

	mu sync.Mutex
	at []time.Time
}

func (a *asked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.at = append(a.at, a.now())
	a.mu.Unlock()
	a.Handler.ServeHTTP(w, r)
}

// start runs a Poller on a manual clock against p over real HTTP.
func start(t *testing.T, p *provider, seen *polltest.Recorder) (*polltest.Harness, *asked) {
	t.Helper()
	clock := polltest.NewClock(time.Time{})
	p.now = clock.Now
	a := &asked{Handler: p, now: clock.Now}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	h := polltest.Start(t, jobpoll.Config{
		Clock:     clock,
		Routes:    []jobpoll.Route{{Name: "render", Checker: renderer{client: http.DefaultClient, base: server.URL, now: clock.Now}}},
		Callbacks: seen.Callbacks(),
	})
	return h, a
}

func TestTheAdapterIsAsACheckerShouldBe(t *testing.T) {
	require.NoError(t, polltest.TestChecker(polltest.Adapter{
		New: func(p polltest.Target) jobpoll.Checker {
			return renderer{client: p.Client, base: p.URL, now: time.Now}
		},
		Pending: polltest.Answer{
			Body: `{"status":"rendering","percent":40,"place":2}`,
			Want: jobpoll.Report{State: jobpoll.StateRunning, RawStatus: "rendering", Progress: 0.4, QueuePosition: 2},
		},
		Succeeded: polltest.Answer{
			Body: `{"status":"done","percent":100,"result":{"url":"https://cdn.example/{id}.mp4"}}`,
			Want: jobpoll.Report{RawStatus: "done", Output: json.RawMessage(`{"url":"https://cdn.example/{id}.mp4"}`)},
		},
		Failed: polltest.Answer{
			Body: `{"status":"failed","code":"crashed","error":"the renderer crashed"}`,
			Want: jobpoll.Report{RawStatus: "failed", Failure: &jobpoll.Failure{Kind: jobpoll.FailureFault, Code: "crashed", Message: "crashed"}},
		},
		Filtered: &polltest.Answer{Body: `{"status":"failed","code":"held_back","error":"held back"}`, Want: jobpoll.Report{RawStatus: "failed"}},
		NoOutput: &polltest.Answer{Body: `{"status":"done","result":null}`, Want: jobpoll.Report{RawStatus: "done"}},
		Logf:     t.Logf,
	}))
}

func TestAJobIsFollowedToItsResult(t *testing.T) {
	var seen polltest.Recorder
	p := &provider{render: 100 * time.Second}
	h, a := start(t, p, &seen)
	job := jobpoll.Job{Route: "render", ID: p.submit(), Expected: 90 * time.Second}
	require.NoError(t, h.Watch(t.Context(), job))
	h.Clock.Advance(3 * time.Minute)

	o, ok := seen.Outcome(job.Key())
	require.True(t, ok, "the end was not told")
	require.NoError(t, o.Err())
	require.JSONEq(t, `{"url":"https://cdn.example/render-1.mp4"}`, string(o.Report.Output))
	require.LessOrEqual(t, o.DetectionDelay, 24*time.Second, "the cap of its bucket is 20 s, its jitter a fifth")
	require.Len(t, a.at, o.Polls)
	states := []jobpoll.State{}
	for _, u := range seen.Updates(job.Key()) {
		states = append(states, u.State)
	}
	require.Contains(t, states, jobpoll.StateQueued)
	require.Contains(t, states, jobpoll.StateRunning)
}

func TestNobodyAsksWhileTheProviderWantsToBeLeftAlone(t *testing.T) {
	var seen polltest.Recorder
	p := &provider{render: 100 * time.Second, busyAt: 40 * time.Second, wait: 20 * time.Second}
	h, a := start(t, p, &seen)
	begun := h.Clock.Now()
	for range 5 {
		require.NoError(t, h.Watch(t.Context(), jobpoll.Job{Route: "render", ID: p.submit(), Expected: 90 * time.Second}))
	}
	h.Clock.Advance(10 * time.Minute)

	require.Len(t, seen.Outcomes(), 5)
	for _, o := range seen.Outcomes() {
		require.NoError(t, o.Err())
	}
	require.NotZero(t, h.Metrics().Total.RateLimited)
	var refused time.Time
	for _, at := range a.at {
		if refused.IsZero() && at.Sub(begun) >= p.busyAt {
			refused = at // the first look that is refused cools the route for all
			continue
		}
		require.False(t, at.After(refused) && at.Before(refused.Add(p.wait)), "asked %v after the refusal", at.Sub(refused))
	}
}

func TestAJobThatTheProviderDoesNotKnowIsGivenUpAfterAGrace(t *testing.T) {
	var seen polltest.Recorder
	h, _ := start(t, &provider{}, &seen)
	job := jobpoll.Job{Route: "render", ID: "never-submitted", Expected: 90 * time.Second}
	require.NoError(t, h.Watch(t.Context(), job))
	h.Clock.Advance(5 * time.Minute)

	o, ok := seen.Outcome(job.Key())
	require.True(t, ok)
	require.ErrorIs(t, o.Err(), jobpoll.ReasonLost)
	require.GreaterOrEqual(t, o.Polls, jobpoll.DefaultMissingLooks)
}

func TestTheDemonstrationRuns(t *testing.T) {
	var out strings.Builder
	clock := fastClock{start: time.Now(), speed: 60}
	require.NoError(t, demonstrate(t.Context(), clock, &locked{w: &out}))
	require.Contains(t, out.String(), "rate limited")
	require.Contains(t, out.String(), "Wait returned https://cdn.example/render-2.mp4")
}

// locked lets several goroutines write.
type locked struct {
	mu sync.Mutex
	w  *strings.Builder
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
