package loopback_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// The wait of a 429 is read as at least what it takes, and never as a second
// more; a request after exactly that wait is granted.
func TestEachRetryFormIsReadAsTheRightWait(t *testing.T) {
	const wait = 6500 * time.Millisecond
	tests := []struct {
		name string
		form loopback.RetryForm
		want time.Duration
	}{
		{"seconds", loopback.RetrySeconds, 7 * time.Second},
		{"fraction", loopback.RetryFraction, wait},
		{"date", loopback.RetryDate, 7 * time.Second},
		{"date of RFC 850", loopback.RetryDateRFC850, 7 * time.Second},
		{"date of C", loopback.RetryDateANSI, 7 * time.Second},
		{"milliseconds", loopback.RetryMillis, wait},
		{"reset in seconds", loopback.RetryResetSeconds, 7 * time.Second},
		{"reset as Unix time", loopback.RetryResetUnix, 7 * time.Second},
		{"reset as Unix milliseconds", loopback.RetryResetUnixMs, wait},
		{"reset as duration", loopback.RetryResetDuration, wait},
		{"RateLimit field", loopback.RetryRateLimit, 7 * time.Second},
		{"text only", loopback.RetryText, 0},
		{"none", loopback.RetryNone, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clock := polltest.NewClock(time.Time{})
			server := started(t, loopback.Config{
				Wire: loopback.Replicate(), Clock: clock, Retry: tt.form,
				Status: loopback.RateLimit{PerSecond: 1 / wait.Seconds()},
			})
			server.Add("job", "running")
			clock.Jump(400 * 24 * time.Hour) // dates are the server's, not those of this machine
			c := client(t)
			url := server.URL() + "/v1/predictions/job"
			resp, _ := do(t, c, "GET", url, "")
			require.Equal(t, http.StatusOK, resp.StatusCode)

			resp, body := do(t, c, "GET", url, "")
			require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
			hint, err := jobpoll.FromResponse(resp, clock.Now())
			require.Error(t, err)
			assert.False(t, hint.Malformed)
			assert.Equal(t, tt.want, hint.RetryAfter)
			if tt.form == loopback.RetryNone {
				assert.NotContains(t, body, "resets in")
			} else {
				assert.Contains(t, body, "resets in ~7s")
			}

			clock.Advance(wait - time.Millisecond)
			resp, _ = do(t, c, "GET", url, "")
			assert.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
			clock.Advance(time.Millisecond)
			resp, _ = do(t, c, "GET", url, "")
			assert.Equal(t, http.StatusOK, resp.StatusCode)
			assert.Equal(t, 2, server.Stats().RateLimited)
		})
	}
}

// The two limits are of two accounts of requests, and the total is over both.
func TestStatusAndSubmissionsHaveLimitsOfTheirOwn(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	server := started(t, loopback.Config{
		Wire: loopback.Replicate(), Clock: clock,
		Submit: loopback.RateLimit{PerSecond: 1, Burst: 1}, Status: loopback.RateLimit{PerSecond: 1, Burst: 3},
		Total: loopback.RateLimit{PerSecond: 0.001, Burst: 4},
	})
	server.Add("job", "running")
	c := client(t)
	ask := func(method, path, body string) int {
		resp, _ := do(t, c, method, server.URL()+path, body)
		return resp.StatusCode
	}
	submit := func() int { return ask("POST", "/v1/predictions", `{"input":{}}`) }
	look := func() int { return ask("GET", "/v1/predictions/job", "") }
	assert.Equal(t, []int{201, 429}, []int{submit(), submit()})
	assert.Equal(t, []int{200, 200, 200, 429}, []int{look(), look(), look(), look()})
	clock.Advance(time.Minute)
	assert.Equal(t, []int{429, 429}, []int{submit(), look()}, "of the total there is nothing left")
}

// A job holds its slot until its script ends.
func TestJobsBeyondTheLimitAreRefusedUntilOneEnds(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	server := started(t, loopback.Config{
		Wire: loopback.Replicate(), Clock: clock, MaxJobs: 2,
		Script: func(int, json.RawMessage) string { return "running; at 10s failed" },
	})
	c := client(t)
	submit := func() int {
		resp, _ := do(t, c, "POST", server.URL()+"/v1/predictions", `{"input":{}}`)
		return resp.StatusCode
	}
	assert.Equal(t, []int{201, 201, 429}, []int{submit(), submit(), submit()})
	clock.Advance(10*time.Second - 1)
	assert.Equal(t, 429, submit())
	clock.Advance(1)
	assert.Equal(t, []int{201, 201, 429}, []int{submit(), submit(), submit()})
	do(t, c, "POST", server.URL()+"/v1/predictions/"+server.Jobs()[3]+"/cancel", "")
	assert.Equal(t, 201, submit(), "a canceled job gives its slot back")
	assert.Equal(t, 3, server.Stats().TooManyJobs)
}
