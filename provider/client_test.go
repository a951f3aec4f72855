package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

const kitKey = "kit-key-0123456789"

// kitServer serves h, and gives a Client for it.
func kitServer(t testing.TB, h http.HandlerFunc, change ...func(*Config)) *Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	cfg := Config{BaseURL: server.URL, Credentials: Secret(kitKey)}
	for _, f := range change {
		f(&cfg)
	}
	c, err := NewClient(cfg)
	require.NoError(t, err)
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

func TestAConfigTellsAllItsFaults(t *testing.T) {
	_, err := NewClient(Config{BaseURL: "https://user:hunter2@h", Hosts: []string{"https://h/x", ""}, MaxBody: -1, Header: "X Key", Scheme: "a\nb"})
	require.Error(t, err)
	for _, s := range []string{"BaseURL: it holds a user", `Hosts: "https://h/x"`, `Hosts: ""`, "MaxBody -1", `Header "X Key"`, "Scheme"} {
		require.Contains(t, err.Error(), s)
	}
	require.NotContains(t, err.Error(), "hunter2")
	for _, base := range []string{"", "h", "ftp://h", "https://", "https://h?x=1", "https://h#f", "https://h\x7f"} {
		_, err := NewClient(Config{BaseURL: base})
		require.Error(t, err, base)
	}
	for _, name := range adapterNames {
		var err error
		switch name {
		case "fal":
			_, err = NewFal(Config{})
		case "replicate":
			_, err = NewReplicate(Config{})
		case "atlas":
			_, err = NewAtlas(Config{})
		}
		require.ErrorContains(t, err, "Credentials", name)
		require.NotNil(t, newAdapterFor(t, name, Config{Credentials: Secret("k")}))
	}
}

func TestTheHeadersOfARequest(t *testing.T) {
	var got http.Header
	h := func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		fmt.Fprint(w, `{}`)
	}
	for _, c := range []struct{ header, scheme, name, want string }{
		{"", "", "Authorization", "Bearer " + kitKey},
		{"", "Key", "Authorization", "Key " + kitKey},
		{"x-api-key", "", "X-Api-Key", kitKey},
		{"X-Auth", "Token", "X-Auth", "Token " + kitKey},
	} {
		client := kitServer(t, h, func(cfg *Config) { cfg.Header, cfg.Scheme, cfg.UserAgent = c.header, c.scheme, "me/1" })
		_, err := client.Do(t.Context(), Request{URL: "/x", Header: http.Header{"x-more": {"1"}, c.name: {"stolen"}}}, &struct{}{})
		require.NoError(t, err)
		assert.Equal(t, c.want, got.Get(c.name))
		assert.Equal(t, "me/1", got.Get("User-Agent"))
		assert.Equal(t, "application/json", got.Get("Accept"))
		assert.Equal(t, "1", got.Get("X-More"))
	}
}

func TestTheCallersClientStaysAsItIs(t *testing.T) {
	var trips atomic.Int32
	own := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		trips.Add(1)
		return http.DefaultTransport.RoundTrip(r)
	})}
	client := kitServer(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{}`) }, func(cfg *Config) { cfg.HTTP = own })
	_, err := client.Get(t.Context(), "/", &struct{}{})
	require.NoError(t, err)
	require.EqualValues(t, 1, trips.Load(), "its transport is used")
	require.Nil(t, own.CheckRedirect)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestFiftyChecksUseOneConnection(t *testing.T) {
	var opened atomic.Int32
	n := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n++; n % 4 { // whatever the answer is
		case 0:
			http.Error(w, strings.Repeat("x", 10<<10), http.StatusBadGateway)
		case 1:
			w.WriteHeader(http.StatusNotFound)
		case 2:
			fmt.Fprint(w, "no json")
		default:
			fmt.Fprint(w, `{"id":"a","status":"processing"}`)
		}
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	r, err := NewReplicate(Config{BaseURL: server.URL, Credentials: Secret(kitKey)})
	require.NoError(t, err)
	for range 50 {
		_, _ = r.Check(t.Context(), jobpoll.Job{ID: "a"})
	}
	require.Equal(t, 50, n)
	require.EqualValues(t, 1, opened.Load())
}

func TestNoTextHoldsTheSecret(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/refused":
			http.Error(w, "I do not like "+r.Header.Get("Authorization")+" nor "+kitKey, http.StatusForbidden)
		case "/edge": // cut in two by the bound of an excerpt
			http.Error(w, strings.Repeat("y", 190)+" "+kitKey, http.StatusBadRequest)
		case "/html":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, kitKey)
		case "/type":
			w.Header().Set("Content-Type", "image/"+kitKey)
			fmt.Fprint(w, kitKey)
		case "/redirect":
			http.Redirect(w, r, "http://user:"+kitKey+"@other.example/?key="+kitKey, http.StatusFound)
		case "/hangup":
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.Close()
		default:
			fmt.Fprintf(w, `{"status":"%s"`, kitKey)
		}
	}
	c := kitServer(t, echo)
	for _, path := range []string{"/refused", "/edge", "/html", "/type", "/redirect", "/hangup?key=" + kitKey, "/cut", "http://x:" + kitKey + "@h/"} {
		ans, err := c.Get(t.Context(), path, &struct{}{})
		require.Error(t, err, path)
		for _, text := range []string{err.Error(), fmt.Sprintf("%v %+v", err, err), string(ans.Body)} {
			require.NotContains(t, text, kitKey, path)
			require.NotContains(t, text, kitKey[:10], path)
		}
	}
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%v %+v %s %#v", c, c, c, c), fmt.Sprintf("%+v %#v", c.vault.last(), *c.vault.last())} {
		require.NotContains(t, text, kitKey)
	}
	require.Contains(t, c.String(), c.prefix)
}

func TestCredentialsThatAreNotThereMakeNoCall(t *testing.T) {
	for name, source := range map[string]Credentials{
		"an error":     func(context.Context) (string, error) { return "", errors.New("the vault is sealed") },
		"empty":        func(context.Context) (string, error) { return "", nil },
		"a line break": Secret("a\r\nX-Evil: 1"),
	} {
		called := false
		c := kitServer(t, func(http.ResponseWriter, *http.Request) { called = true }, func(cfg *Config) { cfg.Credentials = source })
		_, err := c.Get(t.Context(), "/", nil)
		var ce *jobpoll.CheckError
		require.ErrorAs(t, err, &ce, name)
		require.Equal(t, jobpoll.ErrorAuth, ce.Kind, name)
		require.False(t, called, name)
		require.NotContains(t, err.Error(), "X-Evil")
	}
}

func TestCredentialsAreAskedOnceForManyCalls(t *testing.T) {
	var asked atomic.Int32
	release := make(chan struct{})
	c := kitServer(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{}`) }, func(cfg *Config) {
		cfg.Credentials = func(context.Context) (string, error) {
			<-release
			return fmt.Sprintf("secret-%d", asked.Add(1)), nil
		}
	})
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			_, err := c.Get(t.Context(), "/", nil)
			assert.NoError(t, err)
		})
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	_, err := c.Get(gone, "/", nil) // waits for nobody
	require.ErrorIs(t, err, context.Canceled)
	var ce *jobpoll.CheckError
	require.ErrorAs(t, err, &ce)
	require.Equal(t, jobpoll.ErrorTransient, ce.Kind, "the credentials are not to blame")
	close(release)
	calls.Wait()
	require.EqualValues(t, 1, asked.Load())
	require.NoError(t, c.Refresh(t.Context()))
	require.EqualValues(t, 2, asked.Load())

	// Those that come while one is under way share its answer.
	old := c.vault.last()
	require.NoError(t, c.Refresh(t.Context()))
	require.NoError(t, c.vault.renew(t.Context(), old))
	require.EqualValues(t, 3, asked.Load())
}

func TestARefreshThatFailsKeepsTheOldSecret(t *testing.T) {
	n := 0
	c := kitServer(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{}`) }, func(cfg *Config) {
		cfg.Credentials = func(context.Context) (string, error) {
			if n++; n > 1 {
				return "", errors.New("no longer: " + kitKey)
			}
			return kitKey, nil
		}
	})
	_, err := c.Get(t.Context(), "/", nil)
	require.NoError(t, err)
	err = c.Refresh(t.Context())
	require.ErrorContains(t, err, "no longer: …")
	_, err = c.Get(t.Context(), "/", nil)
	require.NoError(t, err)
	none := kitServer(t, nil, func(cfg *Config) { cfg.Credentials = nil })
	require.Error(t, none.Refresh(t.Context()))
}

// What the caller knows of answers is added to what the adapter knows.
func TestTheCallersExplanationFollowsThatOfTheAdapter(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		says(w, 429, `{"detail":"resets in ~30s"}`)
	}))
	t.Cleanup(server.Close)
	r, err := NewReplicate(Config{BaseURL: server.URL, Credentials: Secret(kitKey), Explain: func(_ Answer, e *jobpoll.CheckError) {
		e.Hint.RetryAfter *= 2
	}})
	require.NoError(t, err)
	_, err = r.Check(t.Context(), jobpoll.Job{ID: "a"})
	var ce *jobpoll.CheckError
	require.ErrorAs(t, err, &ce)
	require.Equal(t, time.Minute, ce.Hint.RetryAfter)
}

// A POST is sent once, also where net/http would send it again by itself: the
// connection that it was sent on is closed without an answer.
func TestASubmissionIsSentOnce(t *testing.T) {
	var posts atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `{}`)
			return
		}
		posts.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, _ := w.(http.Hijacker).Hijack()
		_ = conn.Close()
	}))
	t.Cleanup(server.Close)
	r, err := NewReplicate(Config{BaseURL: server.URL, Credentials: Secret(kitKey)})
	require.NoError(t, err)
	_, err = r.c.Get(t.Context(), "/", nil) // a connection that is used again
	require.NoError(t, err)
	_, _, err = r.Submit(t.Context(), Order{Model: "a/b", Header: http.Header{"Idempotency-Key": {"mine"}}})
	require.ErrorIs(t, err, ErrAmbiguous)
	require.EqualValues(t, 1, posts.Load())
}

func TestASubmissionThatCannotLeaveIsNotAmbiguous(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	r, err := NewReplicate(Config{BaseURL: "http://" + l.Addr().String(), Credentials: Secret(kitKey)})
	require.NoError(t, err)
	_, _, err = r.Submit(t.Context(), Order{Model: "a/b"})
	var ce *jobpoll.CheckError
	require.ErrorAs(t, err, &ce)
	require.Equal(t, jobpoll.ErrorTransient, ce.Kind)
	require.NotErrorIs(t, err, ErrAmbiguous)
}

// Prefer: wait holds the call open: it is no hang.
func TestACallThatIsHeldOpenMayTakeThatLong(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	entered, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-release
		fmt.Fprint(w, `{"id":"a","status":"succeeded","output":"u"}`)
	}))
	t.Cleanup(server.Close)
	r, err := NewReplicate(Config{BaseURL: server.URL, Credentials: Secret(kitKey), Clock: clock, Timeout: 10 * time.Second})
	require.NoError(t, err)
	begun := clock.Now()
	done := make(chan error, 1)
	var job jobpoll.Job
	go func() {
		var err error
		job, _, err = r.Submit(t.Context(), Order{Model: "a/b", Header: http.Header{"Prefer": {"wait"}}})
		done <- err
	}()
	<-entered
	clock.Advance(69 * time.Second)
	close(release)
	require.NoError(t, <-done)
	require.Equal(t, begun, job.SubmittedAt, "it was taken when the call began")

	for value, want := range map[string]time.Duration{"": 0, "wait": time.Minute, "wait=5": 5 * time.Second, "wait = 90": time.Minute, "wait=-1": time.Minute, "respond-async": 0} {
		require.Equal(t, want, preferredWait(http.Header{"Prefer": {value}}), value)
	}
}
