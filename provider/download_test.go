package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

// The Output of a job is got with the credentials of the adapter.
func TestAVideoIsGotWithTheCredentials(t *testing.T) {
	for name, header := range map[string]http.Header{"openai": nil, "stability": {"accept": {"video/*"}}} {
		g := newWireRig(t, name, `running; at 20s succeeded`)
		c := g.adapter.Client()
		get := func(url string) (string, error) {
			var b bytes.Buffer
			n, err := c.Download(t.Context(), Request{URL: url, Header: header}, &b)
			require.EqualValues(t, b.Len(), n)
			return b.String(), err
		}
		at := map[string]string{"openai": "/v1/videos/" + g.job.ID + "/content", "stability": "/v2beta/image-to-video/result/" + g.job.ID}[name]
		got, err := get(at)
		require.Error(t, err, "it is not done")
		require.Empty(t, got)
		require.Equal(t, map[string]jobpoll.ErrorKind{"openai": jobpoll.ErrorNoSuchJob, "stability": jobpoll.ErrorTransient}[name], kindOf(err), "%v", err)

		o := g.end(time.Minute)
		var url string
		require.NoError(t, json.Unmarshal(o.Report.Output, &url))
		got, err = get(url)
		require.NoError(t, err)
		require.Contains(t, got, map[string]string{"openai": "the video " + g.job.ID, "stability": "ftypmp42"}[name])
		require.NotContains(t, got, "{", "the bytes, and no JSON")

		_, err = get(url + "none")
		require.Equal(t, jobpoll.ErrorNoSuchJob, kindOf(err), "%v", err)
		g.server.SetCredential("another")
		_, err = get(url)
		require.Equal(t, jobpoll.ErrorAuth, kindOf(err), "%v", err)
		require.NotContains(t, err.Error(), kitKey)
	}
}

// Gemini's URI has a query, and redirects on its own host.
func TestAVideoOfGeminisIsGotWithTheKey(t *testing.T) {
	video := strings.Repeat("a frame", 100_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Goog-Api-Key") != kitKey || r.Header.Get("Accept") != "*/*" || r.URL.Query().Get("alt") != "media" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		switch r.URL.Path {
		case "/v1beta/files/f1:download":
			http.Redirect(w, r, "/download"+r.URL.RequestURI(), http.StatusFound)
		case "/download/v1beta/files/f1:download":
			_, _ = io.WriteString(w, video)
		}
	}))
	defer server.Close()
	veo, err := NewGeminiVeo(Config{BaseURL: server.URL + "/v1beta", Credentials: Secret(kitKey), MaxBody: 10})
	require.NoError(t, err)
	var b strings.Builder
	n, err := veo.Client().Download(t.Context(), Request{URL: server.URL + "/v1beta/files/f1:download?alt=media"}, &b)
	require.NoError(t, err)
	require.Equal(t, video, b.String(), "MaxBody does not bound it")
	require.EqualValues(t, len(video), n)
}

// failing is a writer that takes so much.
type failing struct{ left int }

var errDiskFull = errors.New("the disk is full")

func (f *failing) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errDiskFull
	}
	return len(b), nil
}

func TestWhatIsNoWholeFileIsAnError(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s came to another host", r.URL) }))
	defer other.Close()
	foreign := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	c := kitServer(t, func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		switch r.URL.Path {
		case "/gone":
			says(w, http.StatusNotFound, `{"error":"`+kitKey+` knows no such file"}`)
		case "/slow-down":
			header.Set("Retry-After", "7")
			says(w, http.StatusTooManyRequests, `{}`)
		case "/foreign":
			http.Redirect(w, r, foreign+"/file?"+kitKey, http.StatusFound)
		case "/around":
			http.Redirect(w, r, "/around", http.StatusFound)
		case "/early":
			says(w, http.StatusAccepted, `{"status":"in-progress"}`)
		case "/page":
			header.Set("Content-Type", "text/html")
			says(w, http.StatusOK, `<html>`+kitKey+`</html>`)
		case "/packed":
			header.Set("Content-Encoding", "br")
			says(w, http.StatusOK, "packed")
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/cut":
			header.Set("Content-Length", "100000")
			says(w, http.StatusOK, strings.Repeat("x", 70_000))
		case "/chunks":
			says(w, http.StatusOK, strings.Repeat("x", 70_000))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		default:
			says(w, http.StatusOK, strings.Repeat("x", 70_000))
		}
	})
	for path, want := range map[string]struct {
		kind     jobpoll.ErrorKind
		written  int64
		contains string
		matches  error
	}{
		"/gone":              {jobpoll.ErrorNoSuchJob, 0, "404", nil},
		"/slow-down":         {jobpoll.ErrorRateLimited, 0, "429", nil},
		"/foreign":           {jobpoll.ErrorTransient, 0, "a redirect to " + foreign, ErrForeignHost},
		"/around":            {jobpoll.ErrorTransient, 0, "", ErrRedirects},
		"/early":             {jobpoll.ErrorTransient, 0, "no file: the status 202: {\"status\":\"in-progress\"}", nil},
		"/page":              {jobpoll.ErrorTransient, 0, "no file: an HTML page", nil},
		"/packed":            {jobpoll.ErrorTransient, 0, "no file: an encoding", nil},
		"/empty":             {jobpoll.ErrorTransient, 0, "no file: the status 204", nil},
		"/cut":               {jobpoll.ErrorTransient, 70_000, "broke off after 70000 bytes", io.ErrUnexpectedEOF},
		"/chunks":            {jobpoll.ErrorTransient, 70_000, "broke off after 70000 bytes", io.ErrUnexpectedEOF},
		foreign + "/file":    {jobpoll.ErrorInvalid, 0, "localhost", ErrForeignHost},
		"no path":            {jobpoll.ErrorInvalid, 0, "", nil},
		"/../" + "elsewhere": {jobpoll.ErrorInvalid, 0, "", nil},
	} {
		var b bytes.Buffer
		n, err := c.Download(t.Context(), Request{URL: path}, &b)
		require.Error(t, err, path)
		require.Equal(t, want.kind, kindOf(err), "%s: %v", path, err)
		require.Equal(t, want.written, n, path)
		require.EqualValues(t, n, b.Len(), path)
		require.ErrorContains(t, err, want.contains, path)
		require.True(t, strings.HasPrefix(err.Error(), "jobpoll: "), "%v", err)
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), kitKey, path)
		if want.matches != nil {
			require.ErrorIs(t, err, want.matches, path)
		}
	}
	var ce *jobpoll.CheckError
	_, err := c.Download(t.Context(), Request{URL: "/slow-down"}, io.Discard)
	require.ErrorAs(t, err, &ce)
	require.Equal(t, 7*time.Second, ce.Hint.RetryAfter)

	n, err := c.Download(t.Context(), Request{URL: "/file"}, &failing{left: 50_000})
	require.ErrorIs(t, err, errDiskFull)
	require.Equal(t, jobpoll.ErrorNone, kindOf(err), "it is no fault of the provider's")
	require.Positive(t, n)
	require.ErrorContains(t, err, fmt.Sprintf("jobpoll: the file could not be written after %d bytes", n))

	for _, r := range []Request{{URL: "/file", Method: http.MethodPost}, {URL: "/file", Body: struct{}{}}} {
		_, err = c.Download(t.Context(), r, io.Discard)
		require.Equal(t, jobpoll.ErrorInvalid, kindOf(err), "%v", err)
	}
	_, err = c.Download(t.Context(), Request{URL: "/file"}, nil)
	require.Equal(t, jobpoll.ErrorInvalid, kindOf(err), "%v", err)
}

// A transfer may take longer than Config.Timeout, as long as something comes.
func TestADownloadEndsWhereNothingComes(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	more := make(chan bool) // false: no more
	came := make(chan string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for <-more {
			_, _ = io.WriteString(w, "part")
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	c, err := NewClient(Config{BaseURL: server.URL, Clock: clock, Timeout: 10 * time.Second})
	require.NoError(t, err)
	type result struct {
		n   int64
		err error
	}
	begin := func(ctx context.Context) chan result {
		ended := make(chan result, 1)
		go func() {
			n, err := c.Download(ctx, Request{URL: "/file"}, writerFunc(func(b []byte) (int, error) {
				came <- string(b)
				return len(b), nil
			}))
			ended <- result{n, err}
		}()
		return ended
	}
	ended := begin(t.Context())
	for range 5 {
		more <- true
		require.Equal(t, "part", <-came)
		awaitTimers(t, clock, 1)
		clock.Advance(9 * time.Second)
	}
	more <- false
	clock.Advance(10 * time.Second)
	got := <-ended
	require.EqualValues(t, 20, got.n)
	require.Equal(t, jobpoll.ErrorTransient, kindOf(got.err))
	require.ErrorIs(t, got.err, context.DeadlineExceeded)
	require.ErrorContains(t, got.err, "broke off after 20 bytes")
	require.ErrorContains(t, got.err, "Config.Timeout")
	require.Zero(t, clock.Timers(), "a timer is left")

	// Nor does an answer that does not begin hold it up, nor a caller who leaves.
	ended = begin(t.Context())
	more <- false
	awaitTimers(t, clock, 1)
	clock.Advance(10 * time.Second)
	require.ErrorIs(t, (<-ended).err, context.DeadlineExceeded)

	ctx, leave := context.WithCancel(t.Context())
	ended = begin(ctx)
	more <- true
	<-came
	leave()
	got = <-ended
	require.ErrorIs(t, got.err, context.Canceled)
	require.ErrorContains(t, got.err, "after 4 bytes")
	more <- false
}

// awaitTimers waits until so many timers are armed.
func awaitTimers(t *testing.T, clock *polltest.Clock, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return clock.Timers() == n }, 10*time.Second, time.Millisecond)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// The credentials of a Download are those of any call.
func TestADownloadWithoutCredentialsMakesNoCall(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	c, err := NewClient(Config{BaseURL: "http://" + l.Addr().String(), Credentials: func(context.Context) (string, error) { return "", nil }})
	require.NoError(t, err)
	_, err = c.Download(t.Context(), Request{URL: "/file"}, io.Discard)
	require.Equal(t, jobpoll.ErrorAuth, kindOf(err), "%v", err)
}

// Of the headers that the Client sets Accept alone is the caller's.
func TestOnlyAnAcceptOfTheCallersWins(t *testing.T) {
	var got http.Header
	c := kitServer(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		says(w, http.StatusOK, `{}`)
	})
	for _, accept := range []http.Header{{"Accept": {"video/*"}}, {"accept": {"video/*"}}} {
		accept["User-Agent"], accept["Content-Type"], accept["Authorization"] = []string{"x"}, []string{"x"}, []string{"x"}
		_, err := c.Do(t.Context(), Request{URL: "/x", Header: accept, Body: struct{}{}}, nil)
		require.NoError(t, err)
		require.Equal(t, []string{"video/*"}, got["Accept"])
		require.Equal(t, "jobpoll", got.Get("User-Agent"))
		require.Equal(t, "application/json", got.Get("Content-Type"))
		require.Equal(t, "Bearer "+kitKey, got.Get("Authorization"))
	}
	_, err := c.Do(t.Context(), Request{URL: "/x", Header: http.Header{"Accept": {}}}, nil)
	require.NoError(t, err)
	require.Equal(t, "application/json", got.Get("Accept"))
}
