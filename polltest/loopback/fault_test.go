package loopback_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// met is what a client meets of a broken answer.
type met struct {
	resp *http.Response
	err  error // of the request
	body []byte
	read error // of the body
}

func meet(t *testing.T, c *http.Client, url string) met {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer secret")
	m := met{}
	if m.resp, m.err = c.Do(req); m.err != nil {
		return m
	}
	defer m.resp.Body.Close()
	m.body, m.read = io.ReadAll(io.LimitReader(m.resp.Body, 16<<20))
	return m
}

func TestAClientMeetsEachFault(t *testing.T) {
	right := `"status":"processing"`
	want := map[polltest.Fault]func(*testing.T, met){
		polltest.FaultReset: func(t *testing.T, m met) { assert.ErrorIs(t, m.read, syscall.ECONNRESET) },
		polltest.FaultHang: func(t *testing.T, m met) {
			var timeout *url.Error
			require.ErrorAs(t, m.err, &timeout)
			assert.True(t, timeout.Timeout())
		},
		polltest.FaultHTML: func(t *testing.T, m met) {
			assert.Equal(t, http.StatusBadGateway, m.resp.StatusCode)
			assert.Equal(t, "text/html", m.resp.Header.Get("Content-Type"))
			assert.Contains(t, string(m.body), "<title>502 Bad Gateway</title>")
		},
		polltest.FaultCut: func(t *testing.T, m met) {
			assert.Equal(t, http.StatusOK, m.resp.StatusCode)
			assert.ErrorIs(t, m.read, io.ErrUnexpectedEOF)
			assert.NotEmpty(t, m.body)
			assert.False(t, json.Valid(m.body))
		},
		polltest.FaultGzip: func(t *testing.T, m met) { assert.ErrorContains(t, m.read, "gzip: invalid header") },
		polltest.FaultEndless: func(t *testing.T, m met) {
			assert.Equal(t, http.StatusOK, m.resp.StatusCode)
			assert.Len(t, m.body, 16<<20)
		},
		polltest.FaultRedirect: func(t *testing.T, m met) {
			assert.Equal(t, http.StatusFound, m.resp.StatusCode)
			assert.True(t, strings.HasPrefix(m.resp.Header.Get("Location"), "http://other.example.test/v1/predictions/"))
		},
		polltest.FaultRedirectLoop: func(t *testing.T, m met) {
			assert.Equal(t, http.StatusFound, m.resp.StatusCode)
			assert.Equal(t, m.resp.Request.URL.Path, m.resp.Header.Get("Location"))
		},
		polltest.FaultType: func(t *testing.T, m met) {
			assert.Equal(t, "text/plain; charset=utf-8", m.resp.Header.Get("Content-Type"))
			assert.Contains(t, string(m.body), right)
		},
		polltest.FaultEmpty: func(t *testing.T, m met) {
			assert.Equal(t, http.StatusOK, m.resp.StatusCode)
			assert.Empty(t, m.body)
		},
		polltest.FaultHuge: func(t *testing.T, m met) {
			assert.Greater(t, len(m.body), 10<<20)
			assert.True(t, json.Valid(m.body))
			assert.Contains(t, string(m.body[10<<20:]), right)
		},
		polltest.FaultNested: func(t *testing.T, m met) {
			assert.Contains(t, string(m.body), strings.Repeat("[", 100_000))
			assert.Contains(t, string(m.body), right)
			var v any
			assert.ErrorContains(t, json.Unmarshal(m.body, &v), "max depth")
		},
		polltest.FaultInside: func(t *testing.T, m met) {
			assert.Equal(t, http.StatusOK, m.resp.StatusCode)
			assert.JSONEq(t, `{"detail":"Internal Server Error","status":500}`, string(m.body))
		},
	}
	for _, fault := range polltest.Faults() {
		t.Run(string(fault), func(t *testing.T) {
			server := started(t, loopback.Config{Wire: loopback.Replicate(), RedirectHost: "other.example.test"})
			server.Add("scripted", "running; at 0s broken "+string(fault)+" once")
			c := client(t)
			c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			if fault == polltest.FaultHang {
				c.Timeout = 50 * time.Millisecond
			}
			want[fault](t, meet(t, c, server.URL()+"/v1/predictions/scripted"))
			assert.Equal(t, 1, server.Stats().Faults)
			assert.True(t, server.Requests()[0].Faulty)

			c.Timeout = 0
			after := meet(t, c, server.URL()+"/v1/predictions/scripted") // "once"
			require.NoError(t, after.err)
			require.NoError(t, after.read)
			assert.Contains(t, string(after.body), right)
			assert.Equal(t, 2, server.Stats().Requests, "a client repeats no request by itself")
		})
	}
}

func TestAFaultOfARequestLeavesItsEffectOrNot(t *testing.T) {
	faults := map[int]loopback.Fault{
		1: {Kind: polltest.FaultReset},
		2: {Kind: polltest.FaultReset, Before: true},
		3: {Status: 503, RetryAfter: 4 * time.Second},
		4: {Status: 500, Before: true},
	}
	server := started(t, loopback.Config{
		Wire: loopback.Replicate(),
		Fault: func(n int, r *http.Request) loopback.Fault {
			body, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			assert.JSONEq(t, `{"input":{}}`, string(body))
			return faults[n]
		},
	})
	c := client(t)
	jobs := 0
	for n := 1; n <= 5; n++ {
		req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL()+"/v1/predictions", strings.NewReader(`{"input":{}}`))
		require.NoError(t, err)
		resp, err := c.Do(req)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, resp.Body.Close())
		if faults[n].Kind == polltest.FaultReset {
			require.ErrorIs(t, err, syscall.ECONNRESET)
		} else {
			require.NoError(t, err)
			if want := faults[n].Status; want != 0 {
				assert.Equal(t, want, resp.StatusCode)
			}
			if n == 3 {
				assert.Equal(t, "4", resp.Header.Get("Retry-After"))
			}
		}
		if !faults[n].Before {
			jobs++
		}
		assert.Len(t, server.Jobs(), jobs, n)
	}
	stats := server.Stats()
	assert.Equal(t, 5, stats.Submits)
	assert.Equal(t, 3, stats.Accepted)
	assert.Equal(t, 2, stats.Duplicates)
}

// A client that follows a redirect to another host must not take its credential
// along; net/http does not.
func TestARedirectShowsWhetherTheCredentialIsTakenAlong(t *testing.T) {
	server := started(t, loopback.Config{Wire: loopback.Replicate(), Credential: "secret"})
	server.Add("job", "running; at 0s broken redirect once")
	m := meet(t, client(t), server.URL()+"/v1/predictions/job")
	require.NoError(t, m.err)
	assert.Equal(t, http.StatusUnauthorized, m.resp.StatusCode)
	requests := server.Requests()
	require.Len(t, requests, 2)
	assert.Equal(t, loopback.SeenRight, requests[0].Credential)
	assert.Equal(t, loopback.SeenNone, requests[1].Credential)
	assert.True(t, strings.HasPrefix(requests[1].Host, "localhost:"))

	server.Add("job", "broken redirect-loop")
	m = meet(t, client(t), server.URL()+"/v1/predictions/job")
	var failed *url.Error
	require.True(t, errors.As(m.err, &failed))
	assert.ErrorContains(t, m.err, "stopped after 10 redirects")
}

func TestAServerClosesWithRequestsThatHang(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	for name, script := range map[string]string{
		"a hang": "hang", "an answer that waits on the clock": "running slow 1h", "an endless body": "broken endless",
	} {
		t.Run(name, func(t *testing.T) {
			server := loopback.Start(loopback.Config{Wire: loopback.Replicate(), Clock: clock})
			server.Add("job", script)
			ended := make(chan error, 1)
			c := client(t)
			go func() {
				resp, err := c.Get(server.URL() + "/v1/predictions/job")
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				ended <- err
			}()
			require.Eventually(t, func() bool { return len(server.Looks("job")) == 1 }, 5*time.Second, time.Millisecond)
			server.Close()
			server.Close()
			require.Error(t, <-ended)
			_, err := c.Get(server.URL())
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
		})
	}
	assert.Eventually(t, func() bool { return clock.Timers() == 0 }, 5*time.Second, time.Millisecond)
}

// Under a server of somebody else Close ends what hangs as well.
func TestAHandlerIsClosedUnderAnotherServer(t *testing.T) {
	server := loopback.New(loopback.Config{Wire: loopback.Atlas()})
	server.Add("job", "hang")
	ended := make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		req, _ := http.NewRequest(http.MethodGet, "/api/v1/model/prediction/job", http.NoBody)
		server.ServeHTTP(nopWriter{}, req)
	}()
	require.Eventually(t, func() bool { return len(server.Looks("job")) == 1 }, 5*time.Second, time.Millisecond)
	server.Close()
	assert.Equal(t, http.ErrAbortHandler, <-ended)
	assert.Empty(t, server.URL())
}

type nopWriter struct{}

func (nopWriter) Header() http.Header         { return http.Header{} }
func (nopWriter) Write(b []byte) (int, error) { return len(b), nil }
func (nopWriter) WriteHeader(int)             {}
