package provider

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

// postServer counts the POSTs that begin to come, answers GETs, and leaves the
// rest of a POST to post, after which it resets the connection.
func postServer(t *testing.T, posts *atomic.Int32, post func(net.Conn, *bufio.Reader)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	serve := func(conn net.Conn) {
		defer conn.Close()
		in := bufio.NewReader(conn)
		for {
			begin, err := in.Peek(4)
			if err != nil {
				return
			}
			if string(begin) == "POST" {
				posts.Add(1)
				post(conn, in)
				_ = conn.(*net.TCPConn).SetLinger(0)
				return
			}
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return "http://" + l.Addr().String()
}

// Wherever the connection breaks, in the request or in its answer, on a new
// connection or on a kept one, a submission goes out once and may have been taken.
func TestASubmissionGoesOutOnceWhereverTheExchangeBreaks(t *testing.T) {
	const answer = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 32\r\n\r\n" + `{"id":"a","status":"processing"}`
	var posts atomic.Int32
	var toRead, toWrite atomic.Int32 // bytes; none to read: all
	base := postServer(t, &posts, func(conn net.Conn, in *bufio.Reader) {
		if n := toRead.Load(); n > 0 {
			_, _ = io.CopyN(io.Discard, in, int64(n))
			return
		}
		if r, err := http.ReadRequest(in); err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		_, _ = io.WriteString(conn, answer[:toWrite.Load()])
	})
	once := func(kept bool, read, written int) {
		toRead.Store(int32(read))
		toWrite.Store(int32(written))
		c, err := NewReplicate(Config{BaseURL: base, Credentials: Secret(kitKey)})
		require.NoError(t, err)
		defer c.c.http.CloseIdleConnections()
		begin := func() {
			if kept {
				_, err := c.c.Get(t.Context(), "/", nil)
				require.NoError(t, err)
			}
			posts.Store(0)
		}
		begin()
		_, _, err = c.Submit(t.Context(), Order{Model: "a/b", Input: 1, Header: http.Header{"Idempotency-Key": {"mine"}}})
		require.ErrorIs(t, err, ErrAmbiguous, "read %d, written %d, kept %v", read, written, kept)
		require.EqualValues(t, 1, posts.Load(), "read %d, written %d, kept %v", read, written, kept)
		begin()
		_, err = c.c.Post(t.Context(), Request{URL: "/x", Header: http.Header{"idempotency-key": {"mine"}, "X-Idempotency-Key": {"mine"}}}, nil)
		if written < len(answer)-32 { // whose body Post does not need here
			require.ErrorIs(t, err, ErrAmbiguous)
		}
		require.EqualValues(t, 1, posts.Load(), "without a body: read %d, written %d, kept %v", read, written, kept)
	}
	for _, kept := range []bool{false, true} {
		for read := 4; read < 150; read += 7 {
			once(kept, read, 0)
		}
		for written := range len(answer) {
			once(kept, 0, written)
		}
	}
}

// Over HTTP/2 a server that goes away, or refuses the stream, gets no second one.
func TestASubmissionGoesOutOnceOverHTTP2(t *testing.T) {
	var posts atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `{}`)
			return
		}
		posts.Add(1)
		assert.Equal(t, 2, r.ProtoMajor)
		assert.Equal(t, "mine", r.Header.Get("Idempotency-Key"))
		panic(http.ErrAbortHandler) // RST_STREAM
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	c, err := NewReplicate(Config{BaseURL: server.URL, Credentials: Secret(kitKey), HTTP: server.Client()})
	require.NoError(t, err)
	_, err = c.c.Get(t.Context(), "/", nil)
	require.NoError(t, err)
	_, _, err = c.Submit(t.Context(), Order{Model: "a/b", Header: http.Header{"Idempotency-Key": {"mine"}}})
	require.ErrorIs(t, err, ErrAmbiguous)
	require.EqualValues(t, 1, posts.Load())
}

// A redirect of any kind, and a refusal, is the answer to a submission.
func TestASubmissionGoesOutOnceWhateverTheAnswer(t *testing.T) {
	for _, status := range []int{300, 301, 302, 303, 304, 307, 308, 401, 407, 408, 421, 425, 429, 500, 502, 503, 504} {
		for _, name := range alikeAdapters() {
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				w.Header().Set("Location", "/elsewhere")
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(status)
			}))
			a := newAdapterFor(t, name, Config{BaseURL: server.URL, Credentials: Secret(kitKey)})
			_, _, err := a.Submit(t.Context(), Order{Model: "a/b", Header: http.Header{"Idempotency-Key": {"mine"}}})
			require.Error(t, err)
			require.Equal(t, status < 400 || status >= 500 || status == 408, errors.Is(err, ErrAmbiguous), "%s %d: %v", name, status, err)
			require.EqualValues(t, 1, requests.Load(), "%s %d", name, status)
			server.Close()
		}
	}
}

// What never left is not ambiguous: a person would have to look for it.
func TestASubmissionThatIsNotSentIsNotAmbiguous(t *testing.T) {
	var requests atomic.Int32
	c := kitServer(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		fmt.Fprint(w, `{}`)
	})
	_, err := c.Get(t.Context(), "/", nil) // so that there is a credential
	require.NoError(t, err)
	over, leave := context.WithCancel(t.Context())
	leave()
	for name, post := range map[string]func() error{
		"a context that has ended": func() error {
			_, err := c.Post(over, Request{URL: "/x", Body: 1}, nil)
			require.ErrorIs(t, err, context.Canceled)
			return err
		},
		"a header with a line break": func() error {
			_, err := c.Post(t.Context(), Request{URL: "/x", Body: 1, Header: http.Header{"X-A": {"ok", "secret\nX-B: 1"}}}, nil)
			require.NotContains(t, err.Error(), "secret")
			return err
		},
		"a header with a space": func() error {
			_, err := c.Post(t.Context(), Request{URL: "/x", Body: 1, Header: http.Header{"X A": {"b"}}}, nil)
			return err
		},
		"a header without a name": func() error {
			_, err := c.Post(t.Context(), Request{URL: "/x", Body: 1, Header: http.Header{"": {"b"}}}, nil)
			return err
		},
		"a body that is no JSON": func() error {
			_, err := c.Post(t.Context(), Request{URL: "/x", Body: math.NaN()}, nil)
			return err
		},
		"another host": func() error {
			_, err := c.Post(t.Context(), Request{URL: "http://other.example/x", Body: 1}, nil)
			return err
		},
	} {
		err := post()
		var ce *jobpoll.CheckError
		require.ErrorAs(t, err, &ce, name)
		require.NotErrorIs(t, err, ErrAmbiguous, name)
		if !strings.Contains(name, "context") {
			require.Equal(t, jobpoll.ErrorInvalid, ce.Kind, name)
		}
	}
	require.EqualValues(t, 1, requests.Load())
}

// Nor is what found no way to the provider.
func TestASubmissionThatFindsNoWayIsNotAmbiguous(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	proxy := &url.URL{Scheme: "http", Host: closed.Addr().String()}
	for name, transport := range map[string]*http.Transport{
		"a proxy that is away":            {Proxy: http.ProxyURL(proxy)},
		"a certificate of nobody's":       {},
		"a certificate of another's name": {TLSClientConfig: &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "other.invalid"}},
		"a name that is none":             {DialContext: (&net.Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }}}).DialContext},
	} {
		base := server.URL
		if name == "a name that is none" {
			base = "https://provider.invalid"
		}
		c, err := NewClient(Config{BaseURL: base, Credentials: Secret(kitKey), HTTP: &http.Client{Transport: transport}})
		require.NoError(t, err)
		_, err = c.Post(t.Context(), Request{URL: "/x", Body: 1}, nil)
		var ce *jobpoll.CheckError
		require.ErrorAs(t, err, &ce, name)
		require.Equal(t, jobpoll.ErrorTransient, ce.Kind, name)
		require.NotErrorIs(t, err, ErrAmbiguous, name)
	}
	require.Zero(t, requests.Load())
}

func TestALongTimeoutIsNotOverAtOnce(t *testing.T) {
	c := kitServer(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{}`) }, func(cfg *Config) { cfg.Timeout = math.MaxInt64 })
	_, err := c.Do(t.Context(), Request{URL: "/", Hold: time.Hour}, nil)
	require.NoError(t, err)
}
