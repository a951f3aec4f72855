package provider

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

// What may come instead of an answer. Each is a transient error that says what
// came, for each adapter alike; none takes memory without bound.

// typed answers a body of a content type.
func typed(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}
}

// page answers a page of HTML, as firewalls and proxies do.
func page(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "Text/HTML; charset=UTF-8")
		w.WriteHeader(status)
		fmt.Fprint(w, "<html>Attention required")
	}
}

var hostileAnswers = []struct {
	name   string
	serve  http.HandlerFunc
	status int
	says   []string
}{
	{"a page under 200", typed("text/html; charset=utf-8", "<html>welcome</html>"), 200, []string{"an HTML page"}},
	{"a page that says it is JSON", typed("application/json", "<!doctype html><p>hi"), 200, []string{"an HTML page"}},
	{"a page under 502", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(502)
		fmt.Fprint(w, "<html>")
	}, 502, []string{"an HTML page"}},
	{"a page under 400", page(400), 400, []string{"an HTML page"}},
	{"a page under 403", page(403), 403, []string{"an HTML page"}},
	{"a page under 405", page(405), 405, []string{"an HTML page"}},
	{"a page under 451", page(451), 451, []string{"an HTML page"}},
	{"nothing", typed("application/json", ""), 200, []string{"it is empty"}},
	{"white space", typed("application/json", " \r\n\t "), 200, []string{"it is empty"}},
	{"204", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, 204, []string{"No Content"}},
	{"half of it", typed("application/json", `{"stat`), 200, []string{"unexpected end", `{"stat`}},
	{"less than announced", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"status":"processing",`)
	}, 200, []string{"broke off after 23 bytes"}},
	{"10 MB of JSON", typed("application/json", `{"status":"processing","logs":"`+strings.Repeat("x", 10<<20)+`"}`), 200, []string{"longer than Config.MaxBody, 8388608 bytes"}},
	{"deep nesting", typed("application/json", `{"status":"processing","logs":`+strings.Repeat("[", 1<<20)), 200, []string{"depth"}},
	{"a picture", typed("image/png", "\x89PNG"), 200, []string{`content type "image/png"`}},
	{"XML", typed("application/xml", "<a/>"), 200, []string{`content type "application/xml"`}},
	{"gzip garbage", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "\x1f\x8b\x08garbage that is no stream")
	}, 200, []string{"broke off"}},
	{"a bomb of gzip", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		z := gzip.NewWriter(w)
		zeros := make([]byte, 1<<20)
		for range 12 {
			_, _ = z.Write(zeros)
		}
		_ = z.Close()
	}, 200, []string{"longer than Config.MaxBody"}},
	{"an encoding of its own", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "xx")
	}, 200, []string{`encoding "br"`}},
	{"an error under 200", typed("application/json", `{"error":{"code":"InternalServerError"}}`), 200, []string{"without a status", "InternalServerError"}},
	{"null", typed("application/json", "null"), 200, []string{"without a status"}},
	{"a list", typed("application/json", "[1,2]"), 200, []string{"array"}},
	{"a word", typed("application/json", `"processing"`), 200, []string{"string"}},
	{"two answers", typed("application/json", `{"status":"processing"}{}`), 200, []string{"after top-level value"}},
	{"a loop of redirects", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
	}, 0, []string{"too many redirects"}},
	{"a redirect without a place", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(302) }, 302, nil},
	{"a hang-up", func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		_ = conn.Close()
	}, 0, []string{"EOF"}},
	{"no HTTP", func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH\r\n")
		_ = conn.Close()
	}, 0, nil},
	{"a bomb of headers", func(w http.ResponseWriter, _ *http.Request) {
		for i := range 1000 {
			w.Header().Set(fmt.Sprint("X-Bomb-", i), strings.Repeat("x", 1000))
		}
	}, 0, []string{"header"}},
	{"an unknown status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(799) }, 799, nil},
}

func TestNothingThatComesInsteadOfAnAnswerFailsAJob(t *testing.T) {
	for _, c := range hostileAnswers {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(c.serve)
			t.Cleanup(server.Close)
			for _, name := range alikeAdapters() {
				a := newAdapterFor(t, name, Config{BaseURL: server.URL, Credentials: Secret(kitKey)})
				rep, err := a.Check(t.Context(), jobpoll.Job{Route: "r", ID: "x", Ref: refFor(name)})
				var ce *jobpoll.CheckError
				require.ErrorAs(t, err, &ce, name)
				require.Equal(t, jobpoll.ErrorTransient, ce.Kind, "%s: %v", name, err)
				require.Equal(t, c.status, ce.Status, "%s: %v", name, err)
				require.Equal(t, jobpoll.StateUnknown, rep.State)
				require.Less(t, len(err.Error()), 1000)
				for _, s := range c.says {
					require.Contains(t, err.Error(), s, name)
				}
			}
		})
	}
}

// refFor is a reference that the adapter of that name needs.
func refFor(name string) string {
	if name == "fal" {
		return "own/app"
	}
	return families[name].ref
}

func TestALongBodyIsHeldToItsBound(t *testing.T) {
	c := kitServer(t, typed("application/json", `"`+strings.Repeat("x", 64<<20)+`"`), func(cfg *Config) { cfg.MaxBody = 1 << 20 })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ans, err := c.Get(t.Context(), "/", &struct{}{})
	runtime.ReadMemStats(&after)
	require.Error(t, err)
	require.LessOrEqual(t, len(ans.Body), 1<<20)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20), "what was allocated on the way, the server's part too")
}

// A body that comes byte by byte without end is left when the time is over, on
// the clock.
func TestABodyWithoutEndIsLeftWhenTheTimeIsOver(t *testing.T) {
	for name, status := range map[string]int{"of a success": 200, "of an error": 500} {
		t.Run(name, func(t *testing.T) {
			clock := polltest.NewClock(time.Time{})
			reading := make(chan struct{}, 1)
			c := kitServer(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, `{"a":"x`)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}, func(cfg *Config) {
				cfg.Clock, cfg.Timeout = clock, 10*time.Second
				cfg.HTTP = &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
					resp, err := http.DefaultTransport.RoundTrip(r)
					if err == nil {
						resp.Body = &tellingBody{ReadCloser: resp.Body, reading: reading}
					}
					return resp, err
				})}
			})
			failed := make(chan error, 1)
			go func() {
				_, err := c.Get(t.Context(), "/", &struct{}{})
				failed <- err
			}()
			<-reading
			clock.Advance(9 * time.Second)
			select {
			case err := <-failed:
				t.Fatalf("given up before its time: %v", err)
			default:
			}
			clock.Advance(time.Second)
			err := <-failed
			var ce *jobpoll.CheckError
			require.ErrorAs(t, err, &ce)
			require.Equal(t, jobpoll.ErrorTransient, ce.Kind)
			require.Equal(t, status, ce.Status)
			if status == 200 {
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Contains(t, err.Error(), "Config.Timeout")
			}
			require.Zero(t, clock.Timers())
		})
	}
}

// tellingBody tells when it is read.
type tellingBody struct {
	io.ReadCloser
	reading chan<- struct{}
}

func (b *tellingBody) Read(p []byte) (int, error) {
	select {
	case b.reading <- struct{}{}:
	default:
	}
	return b.ReadCloser.Read(p)
}

func TestTheCallersContextEndsACall(t *testing.T) {
	entered := make(chan struct{})
	c := kitServer(t, func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	}, func(cfg *Config) { cfg.Timeout = -1 })
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the caller has left")
	go func() {
		<-entered
		cancel(why)
	}()
	_, err := c.Get(ctx, "/", nil)
	require.ErrorIs(t, err, why)
	var ce *jobpoll.CheckError
	require.ErrorAs(t, err, &ce)
}

// The credential stays on its host, whatever an answer or a reference names.
func TestTheCredentialDoesNotReachAnotherHost(t *testing.T) {
	var stolen atomic.Int32
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stolen.Add(1)
		fmt.Fprint(w, `{"status":"succeeded","output":"evil"}`)
	}))
	t.Cleanup(evil.Close)
	for _, code := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, evil.URL+r.URL.Path, code)
		}))
		t.Cleanup(server.Close)
		for _, name := range alikeAdapters() {
			a := newAdapterFor(t, name, Config{BaseURL: server.URL, Credentials: Secret(kitKey), Hosts: []string{strings.TrimPrefix(evil.URL, "http://")}})
			_, err := a.Check(t.Context(), jobpoll.Job{ID: "x", Ref: refFor(name)})
			require.ErrorIs(t, err, ErrForeignHost, name)
			_, _, err = a.Submit(t.Context(), Order{Model: "a/b"})
			require.ErrorIs(t, err, ErrAmbiguous, name)
		}
	}
	for _, name := range []string{"fal", "replicate"} { // by Job.Ref
		a := newAdapterFor(t, name, Config{BaseURL: "http://127.0.0.1:1", Credentials: Secret(kitKey)})
		_, err := a.Check(t.Context(), jobpoll.Job{ID: "x", Ref: evil.URL + "/x"})
		require.ErrorIs(t, err, ErrForeignHost, name)
	}
	require.Zero(t, stolen.Load())
}

func TestRedirectsOnTheSameHostAreFollowedForALook(t *testing.T) {
	var posts atomic.Int32
	r, err := NewReplicate(Config{Credentials: Secret(kitKey), BaseURL: redirecting(t, &posts)})
	require.NoError(t, err)
	rep, err := r.Check(t.Context(), jobpoll.Job{ID: "x"})
	require.NoError(t, err)
	require.Equal(t, jobpoll.StateRunning, rep.State)
	require.ErrorIs(t, func() error { _, _, err := r.Submit(t.Context(), Order{Model: "a/b"}); return err }(), ErrAmbiguous)
	require.EqualValues(t, 1, posts.Load())
}

// redirecting serves a provider that has moved to another path.
func redirecting(t *testing.T, posts *atomic.Int32) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts.Add(1)
		}
		if !strings.HasPrefix(r.URL.Path, "/new") {
			http.Redirect(w, r, "/new"+r.URL.Path, http.StatusPermanentRedirect)
			return
		}
		if r.Header.Get("Authorization") != "Bearer "+kitKey {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"id":"x","status":"processing"}`)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestWhichURLsOfAnswersAreTaken(t *testing.T) {
	c, err := NewClient(Config{BaseURL: "https://api.example/v1/", Hosts: []string{"CDN.example", "alt.example:8443"}})
	require.NoError(t, err)
	for _, u := range []string{
		"https://api.example/x", "https://API.example:443/x?y=1", "https://cdn.example/x", "https://alt.example:8443/x", "https://api.example./x",
	} {
		require.Equal(t, u, c.Ref(u), u)
	}
	for _, u := range []string{
		"", "/x", "api.example/x", "//api.example/x", "http://api.example/x", "https://api.example:444/x", "https://alt.example/x",
		"https://api.example.evil.example/x", "https://evil.example/api.example", "https://api.example@evil.example/", "https://u:p@api.example/",
		"https://api.example/a/../b", "https://api.example/a/%2e%2e/b", "ftp://api.example/x", "https://api.example/x#f", "https://api.example/\x00",
		"javascript://api.example/x", "https:///x", "https://api.example/" + strings.Repeat("x", maxURL),
	} {
		require.Empty(t, c.Ref(u), u)
	}
	require.Equal(t, "https://api.example/v1/a%2Fb/%3F", c.URL("a/b", "?"))
}

func TestNoRedirectLeavesHTTPS(t *testing.T) {
	req := func(method, u string) *http.Request {
		r, err := http.NewRequest(method, u, nil)
		require.NoError(t, err)
		return r
	}
	for _, c := range []struct {
		from, to string
		ok       bool
	}{
		{"https://h/a", "https://h/b", true},
		{"https://h/a", "https://h:443/b", true},
		{"http://h/a", "https://h/b", true},
		{"https://h/a", "http://h/b", false},
		{"https://h/a", "https://h:8443/b", false},
		{"https://h/a", "https://sub.h/b", false},
		{"https://h/a", "https://u:p@h/b", false},
		{"https://h/a", "file:///etc/hosts", false},
	} {
		err := checkRedirect(req("GET", c.to), []*http.Request{req("GET", c.from)})
		if c.ok {
			require.NoError(t, err, "%s to %s", c.from, c.to)
		} else {
			require.ErrorIs(t, err, ErrForeignHost, "%s to %s", c.from, c.to)
		}
	}
	require.ErrorIs(t, checkRedirect(req("GET", "https://h/b"), []*http.Request{req("PUT", "https://h/a")}), http.ErrUseLastResponse)
}
