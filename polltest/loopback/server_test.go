package loopback_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// started is a server that ends with the test.
func started(t *testing.T, cfg loopback.Config) *loopback.Server {
	t.Helper()
	s := loopback.Start(cfg)
	t.Cleanup(s.Close)
	return s
}

// client has connections of its own, which end with the test.
func client(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// do sends a request; a body that is not empty is JSON.
func do(t *testing.T, c *http.Client, method, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(b)
}

// field reads a member of an object.
func field(t *testing.T, body string, path ...string) any {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal([]byte(body), &v), body)
	for _, name := range path {
		object, ok := v.(map[string]any)
		require.True(t, ok, body)
		v = object[name]
	}
	return v
}

// replicateChecker looks at predictions over HTTP.
func replicateChecker(c *http.Client, server *loopback.Server, clock jobpoll.Clock) jobpoll.Checker {
	states := map[string]jobpoll.State{
		"starting": jobpoll.StateQueued, "processing": jobpoll.StateRunning, "succeeded": jobpoll.StateSucceeded,
		"failed": jobpoll.StateFailed, "canceled": jobpoll.StateCanceled, "aborted": jobpoll.StateExpired,
	}
	return jobpoll.CheckerFunc(func(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL()+"/v1/predictions/"+job.ID, nil)
		if err != nil {
			return jobpoll.Report{}, err
		}
		resp, err := c.Do(req)
		if err != nil {
			return jobpoll.Report{}, err
		}
		defer resp.Body.Close()
		hint, err := jobpoll.FromResponse(resp, clock.Now())
		if err != nil {
			return jobpoll.Report{}, err
		}
		var p struct {
			Status string          `json:"status"`
			Output json.RawMessage `json:"output"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&p); err != nil {
			return jobpoll.Report{}, err
		}
		return jobpoll.Report{State: states[p.Status], RawStatus: p.Status, Output: p.Output, Hint: hint}, nil
	})
}

func TestAPollerOverHTTPIsTheSameEachTimeOnAManualClock(t *testing.T) {
	play := func() string {
		clock := polltest.NewClock(time.Time{})
		server := started(t, loopback.Config{
			Wire: loopback.Replicate(), Clock: clock, Latency: 300 * time.Millisecond,
			Status: loopback.RateLimit{PerSecond: 0.5},
		})
		c := client(t)
		var seen polltest.Recorder
		h := polltest.Start(t, jobpoll.Config{
			Clock:     clock,
			Routes:    []jobpoll.Route{{Name: "replicate", Checker: replicateChecker(c, server, clock), CheckTimeout: 5 * time.Second}},
			Callbacks: seen.Callbacks(),
		})
		for i := range 4 {
			id := fmt.Sprintf("job%d", i)
			server.Add(id, fmt.Sprintf("queued; at 4s running slow 700ms; at 9s hang once; at 20s broken cut once; at %ds succeeded", 20+i))
			require.NoError(t, h.Watch(t.Context(), jobpoll.Job{Route: "replicate", ID: id}))
			h.Clock.Advance(900 * time.Millisecond) // of looks at one instant, any may meet the limit
		}
		h.Clock.Advance(5 * time.Minute)
		h.Stop()
		assert.Positive(t, server.Stats().RateLimited)
		assert.Positive(t, server.Stats().Faults)

		var b strings.Builder
		for i := range 4 {
			id := fmt.Sprintf("job%d", i)
			o, ok := seen.Outcome(jobpoll.Key{Route: "replicate", ID: id})
			require.True(t, ok, id)
			require.Equal(t, jobpoll.ReasonSucceeded, o.Reason, id)
			fmt.Fprintln(&b, id, o.DetectedAt, o.Polls, server.Looks(id))
		}
		return b.String()
	}
	first := play()
	for range 2 {
		assert.Equal(t, first, play())
	}
}

func TestASubmittedPredictionRunsItsScript(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	server := started(t, loopback.Config{
		Wire: loopback.Replicate(), Clock: clock, Credential: "right",
		Script: func(_ int, body json.RawMessage) string {
			assert.JSONEq(t, `{"input":{"prompt":"x"}}`, string(body))
			return `queued; at 8s running 20%; at 40s succeeded output "https://files.example/a.mp4"`
		},
	})
	c := client(t)
	resp, body := do(t, c, "POST", server.URL()+"/v1/models/o/n/predictions", `{"input":{"prompt":"x"}}`, "Authorization", "Bearer right")
	require.Equal(t, http.StatusCreated, resp.StatusCode, body)
	url := field(t, body, "urls", "get").(string)
	assert.Equal(t, "starting", field(t, body, "status"))

	clock.Advance(8 * time.Second)
	_, body = do(t, c, "GET", url, "", "Authorization", "Bearer right")
	assert.Equal(t, "processing", field(t, body, "status"))
	clock.Advance(32 * time.Second)
	_, body = do(t, c, "GET", url, "", "Authorization", "Bearer right")
	assert.Equal(t, "succeeded", field(t, body, "status"))
	assert.Equal(t, "https://files.example/a.mp4", field(t, body, "output"))
	assert.Equal(t, 32.0, field(t, body, "metrics", "predict_time"))
}

// A deadline that no Duration can tell is none.
func TestALongDeadlineEndsNoJob(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	clock.Advance(time.Second)
	server := started(t, loopback.Config{
		Wire: loopback.Replicate(), Clock: clock, Script: func(int, json.RawMessage) string { return "queued" },
	})
	for value, want := range map[string]string{"2562047h47m16s": "starting", "9223372036": "starting", "-5": "starting", "soon": "starting", "1": "aborted"} {
		_, body := do(t, client(t), "POST", server.URL()+"/v1/predictions", "{}", "Cancel-After", value)
		var p struct{ ID string }
		require.NoError(t, json.Unmarshal([]byte(body), &p))
		clock.Advance(time.Second)
		_, body = do(t, client(t), "GET", server.URL()+"/v1/predictions/"+p.ID, "")
		require.Contains(t, body, `"status":"`+want+`"`, value)
	}
}
