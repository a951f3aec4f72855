package provider

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

// canned answers each request with the same.
type canned struct {
	status int
	header http.Header
	body   []byte
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: c.status, Header: c.header.Clone(), Body: io.NopCloser(bytes.NewReader(c.body)), ContentLength: int64(len(c.body)), Request: r}, nil
}

// cannedAdapter is the adapter of that name on answers of c.
func cannedAdapter(t testing.TB, name string, c *canned) adapter {
	return newAdapterFor(t, name, Config{BaseURL: "https://api.example", Credentials: Secret(kitKey), HTTP: &http.Client{Transport: c}})
}

// sane requires what holds of every report, whatever the provider says.
func sane(t *testing.T, rep jobpoll.Report, err error) {
	t.Helper()
	if err != nil {
		var ce *jobpoll.CheckError
		require.ErrorAs(t, err, &ce)
		require.GreaterOrEqual(t, ce.Hint.RetryAfter, time.Duration(0))
		require.LessOrEqual(t, ce.Hint.RetryAfter, jobpoll.MaxRetryAfter)
		require.NotContains(t, err.Error(), kitKey)
		require.Less(t, len(err.Error()), 4000)
		return
	}
	require.LessOrEqual(t, rep.State, jobpoll.StateExpired)
	require.GreaterOrEqual(t, rep.QueuePosition, 0)
	require.GreaterOrEqual(t, rep.Progress, 0.0)
	require.GreaterOrEqual(t, rep.Hint.RetryAfter, time.Duration(0))
	if rep.State == jobpoll.StateFailed {
		require.NotNil(t, rep.Failure)
	}
	if rep.State == jobpoll.StateUnknown || !rep.State.Terminal() {
		require.Nil(t, rep.Failure)
	}
	if rep.State != jobpoll.StateSucceeded {
		require.Nil(t, rep.Output, "%s", rep.State)
	}
	if f := rep.Failure; f != nil {
		require.LessOrEqual(t, len(f.Code), maxText)
		require.LessOrEqual(t, len(f.Message), maxText)
		require.LessOrEqual(t, f.Kind, jobpoll.FailureNoOutput)
		require.NotContains(t, f.Message+f.Code, kitKey)
	}
}

// fuzzAdapter feeds an adapter with answers, the fixtures first.
func fuzzAdapter(f *testing.F, name string) {
	for _, file := range fixtureFiles(f, name) {
		for _, x := range readFixture(f, file, "https://api.example").exchanges {
			f.Add(x.status, x.header.Get("Content-Type"), "", []byte(x.body))
		}
	}
	f.Add(200, "application/json", "7", []byte(`{"status":"`+kitKey+`","queue_position":9223372036854775807}`))
	f.Add(429, "", "-1", []byte(`{"detail":"resets in ~9223372036854775807s"}`))
	f.Fuzz(func(t *testing.T, status int, contentType, retryAfter string, body []byte) {
		header := http.Header{"Content-Type": {contentType}, "Retry-After": {retryAfter}}
		a := cannedAdapter(t, name, &canned{status, header, body})
		ctx := context.Background()
		job := jobpoll.Job{Route: "r", ID: "x", Ref: refFor(name)}
		rep, err := a.Check(ctx, job)
		sane(t, rep, err)
		sent, rep, err := a.Submit(ctx, Order{Model: "own/app"})
		sane(t, rep, err)
		require.Equal(t, err == nil, sent.ID != "")
		if fetcher, ok := a.(jobpoll.Fetcher); ok {
			rep, err := fetcher.Fetch(ctx, job, jobpoll.Report{State: jobpoll.StateSucceeded})
			sane(t, rep, err)
		}
		if canceler, ok := a.(jobpoll.Canceler); ok {
			if err := canceler.Cancel(ctx, job); err != nil {
				sane(t, jobpoll.Report{}, err)
			}
		}
		if reconciler, ok := a.(jobpoll.Reconciler); ok {
			found, err := reconciler.Lookup(ctx, jobpoll.Lost{Job: job})
			sane(t, found.Report, err)
			require.NotEqual(t, jobpoll.FindingAbsent, found.State)
		}
	})
}

func FuzzFal(f *testing.F) { fuzzAdapter(f, "fal") }

func FuzzReplicate(f *testing.F) { fuzzAdapter(f, "replicate") }

func FuzzAtlas(f *testing.F) { fuzzAdapter(f, "atlas") }

func FuzzText(f *testing.F) {
	for _, s := range []string{`null`, `"a"`, `{"a":[1]}`, `1e400`, `"2026-01-02T03:04:05Z"`, `1700000000`, `1700000000000`, `[null,"",[]]`, `"\ud800"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var text Text
		require.NoError(t, text.UnmarshalJSON(raw))
		require.LessOrEqual(t, len(text), maxText)
		if at := text.Time(); !at.IsZero() {
			_, err := at.MarshalText()
			require.NoError(t, err)
		}
		HasOutput(raw)
		flags(raw)
		require.LessOrEqual(t, len(replicateCode(string(raw))), 8)
		require.GreaterOrEqual(t, resetsIn(string(raw)), time.Duration(0))
	})
}

// The files that the fuzz targets begin with are there.
func TestTheSeedsAreThere(t *testing.T) {
	for _, name := range adapterNames {
		for _, file := range fixtureFiles(t, name) {
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Positive(t, info.Size())
		}
	}
}
