package polltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jobpoll/jobpoll"
)

// credential looks like a secret, so that code that clears texts of secrets can
// know it.
const credential = "sk-conformance-4f9d1c7b2e8a6053d1f7c94be26a80f3"

// elsewhereHost is a host that is not the provider's. The kit's client finds it
// on a loopback port; no resolver knows it.
const elsewhereHost = "elsewhere.invalid"

// stage is one provider on loopback, another host beside it, and an adapter that
// was made for the provider.
type stage struct {
	kit       *kit
	check     check
	provider  *site
	elsewhere *site
	meter     *meter
	target    Target
	checker   jobpoll.Checker
	looks     []uint64      // goroutines of the calls
	left      []<-chan seen // calls that did not return
	jobs      []jobpoll.Job
	closing   context.Context
	endWaits  context.CancelFunc
}

// open makes a stage. Where New is at fault, that is told, and there is no
// adapter.
func (k *kit) open(c check) (*stage, error) {
	s := &stage{kit: k, check: c}
	var err error
	if s.provider, err = serve(); err != nil {
		return nil, err
	}
	if s.elsewhere, err = serve(); err != nil {
		s.provider.close()
		return nil, err
	}
	s.closing, s.endWaits = context.WithCancel(context.Background())
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if host, _, _ := net.SplitHostPort(addr); host == elsewhereHost {
			addr = s.elsewhere.listener.Addr().String()
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	s.meter = &meter{base: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: crowd}}
	s.target = Target{URL: s.provider.base(), Client: &http.Client{Transport: s.meter}, Credential: credential}

	for n := range crowd {
		s.jobs = append(s.jobs, k.job(s.target.URL, n))
	}

	got := s.call(context.Background(), func(context.Context) (jobpoll.Report, error) {
		s.checker = k.New(s.target)
		return jobpoll.Report{}, nil
	})
	s.looks = nil // what New begins may go on
	switch {
	case got.broken():
		k.noAdapter = true
		s.fault("Adapter.New", got.String(), "an adapter")
	case s.checker == nil:
		k.noAdapter = true
		s.fault("Adapter.New", "returned nil", "an adapter")
	}
	return s, nil
}

func (s *stage) close() {
	s.endWaits()
	s.meter.base.CloseIdleConnections()
	s.provider.close()
	s.elsewhere.close()
	ctx, cancel := context.WithTimeout(context.Background(), s.kit.patience/4)
	defer cancel()
	for _, left := range s.left {
		select {
		case <-left:
		case <-ctx.Done():
			s.kit.stuck = true
		}
	}
}

// sent reports whether the adapter ever sent the credential to its provider.
func (s *stage) sent() bool {
	for _, q := range s.provider.requests() {
		if q.holds(credential) {
			return true
		}
	}
	return false
}

// job is the n-th job of the stage.
func (s *stage) job(n int) jobpoll.Job { return s.jobs[n] }

// answers makes the provider answer all requests with a.
func (s *stage) answers(a Answer) { s.answersWith(s.reply(a)) }

// answersWith makes the provider answer all requests by h.
func (s *stage) answersWith(h reply) { s.provider.setReply(h) }

// look is one look at the first job, while the provider answers a.
func (s *stage) look(a Answer) seen {
	s.answers(a)
	return s.lookAt(s.job(0))
}

// lookAt is one look at a job.
func (s *stage) lookAt(job jobpoll.Job) seen {
	return s.lookUntil(context.Background(), job)
}

func (s *stage) lookUntil(ctx context.Context, job jobpoll.Job) seen {
	return s.call(ctx, func(ctx context.Context) (jobpoll.Report, error) { return s.checker.Check(ctx, job) })
}

// seen is what a call of the adapter came to.
type seen struct {
	report   jobpoll.Report
	err      error
	text     string // of err
	panicked string
	hung     bool // it did not return after its context had ended
	late     bool // it took all the time that there was
}

// call calls the adapter. It returns also where the adapter panics or hangs.
func (s *stage) call(ctx context.Context, f func(context.Context) (jobpoll.Report, error)) seen {
	got, id := s.start(ctx, f)
	s.looks = append(s.looks, id)
	return s.await(got)
}

// calling is a call under way.
type calling struct {
	done  <-chan seen
	ended <-chan struct{} // of its context
}

// start begins a call, on a goroutine of its own.
func (s *stage) start(ctx context.Context, f func(context.Context) (jobpoll.Report, error)) (calling, uint64) {
	ctx, cancel := context.WithTimeout(ctx, s.kit.patience)
	done, id := make(chan seen, 1), make(chan uint64, 1)
	go func() {
		defer cancel()
		got := seen{panicked: "it ended its goroutine (runtime.Goexit)"}
		defer func() {
			if v := recover(); v != nil {
				got.panicked = clip(fmt.Sprint(v))
			}
			done <- got
		}()
		id <- goroutineID()
		report, err := f(ctx)
		text := ""
		if err != nil {
			text = err.Error() // the adapter's code, too
		}
		got = seen{report: report, err: err, text: text, late: errors.Is(ctx.Err(), context.DeadlineExceeded)}
	}()
	return calling{done: done, ended: ctx.Done()}, <-id
}

// await waits until a call has returned, at most for a while after its context
// has ended.
func (s *stage) await(c calling) seen {
	got := seen{hung: true}
	select {
	case got = <-c.done:
	case <-c.ended:
		grace, cancel := context.WithTimeout(context.Background(), s.kit.patience/2)
		defer cancel()
		select {
		case got = <-c.done:
		case <-grace.Done():
			s.left = append(s.left, c.done)
			s.kit.hangs++
		}
	}
	s.searchForLeaks(got)
	return got
}

// broken reports whether the call did not return as a call should.
func (g *seen) broken() bool { return g.hung || g.panicked != "" }

// kind is what the error means to the engine.
func (g *seen) kind() jobpoll.ErrorKind {
	var e *jobpoll.CheckError
	switch {
	case g.err == nil:
		return jobpoll.ErrorNone
	case permanent(g.err):
		return jobpoll.ErrorInvalid
	case errors.As(g.err, &e) && e != nil && e.Kind != jobpoll.ErrorNone:
		return e.Kind
	}
	return jobpoll.ErrorTransient
}

// hint is the provider's wait, of the report or of the error.
func (g *seen) hint() jobpoll.Hint {
	var e *jobpoll.CheckError
	if errors.As(g.err, &e) && e != nil {
		return e.Hint
	}
	return g.report.Hint
}

// String says what the adapter did.
func (g *seen) String() string {
	switch {
	case g.hung:
		return "did not return, also after its context had ended"
	case g.panicked != "":
		return "panicked: " + g.panicked
	case permanent(g.err):
		return fmt.Sprintf("returned an error that ends the watch for good: %s", clip(g.text))
	case g.err != nil:
		return fmt.Sprintf("returned an error of kind %q, with a wait of %v: %s", g.kind(), g.hint().RetryAfter, clip(g.text))
	}
	return "reported " + describe(g.report)
}

// describe is a report for people.
func describe(r jobpoll.Report) string {
	s := fmt.Sprintf("the state %q", r.State)
	if r.RawStatus != "" {
		s += fmt.Sprintf(", the word %q", clip(r.RawStatus))
	}
	if r.Failure != nil {
		s += fmt.Sprintf(", the failure %q", clip(r.Failure.String()))
	}
	return s
}

// meter sees what goes through the client.
type meter struct {
	base *http.Transport
	open atomic.Int64 // bodies that are not closed
	read atomic.Int64 // bytes of bodies
}

func (m *meter) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := m.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	m.open.Add(1)
	resp.Body = &meteredBody{ReadCloser: resp.Body, meter: m}
	return resp, nil
}

// CloseIdleConnections is found by http.Client.CloseIdleConnections.
func (m *meter) CloseIdleConnections() { m.base.CloseIdleConnections() }

type meteredBody struct {
	io.ReadCloser
	meter *meter
	once  sync.Once
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.meter.read.Add(int64(n))
	return n, err
}

func (b *meteredBody) Close() error {
	b.once.Do(func() { b.meter.open.Add(-1) })
	return b.ReadCloser.Close()
}

// site is an HTTP server on loopback that remembers what it was asked.
type site struct {
	listener net.Listener
	server   *http.Server

	mu    sync.Mutex
	reply reply
	asked []*asked
	conns int
}

// reply answers a request.
type reply func(w http.ResponseWriter, q *asked)

// serve starts a site.
func serve() (*site, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("polltest: TestChecker needs a port on loopback: %w", err)
	}
	s := &site{listener: l, reply: func(w http.ResponseWriter, _ *asked) { w.WriteHeader(http.StatusServiceUnavailable) }}
	s.server = &http.Server{
		Handler:  s,
		ErrorLog: log.New(io.Discard, "", 0),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.conns++
			}
		},
	}
	go func() { _ = s.server.Serve(l) }()
	return s, nil
}

func (s *site) base() string { return "http://" + s.listener.Addr().String() }

// close ends the server and all its connections.
func (s *site) close() { _ = s.server.Close() }

func (s *site) setReply(h reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reply = h
}

// ServeHTTP remembers the request and answers it.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const longest = 1 << 20
	body, _ := io.ReadAll(io.LimitReader(r.Body, longest))
	q := &asked{method: r.Method, url: r.URL.RequestURI(), decoded: decoded(r, body), request: r}
	q.texts = append([]string{q.url, string(body)}, q.decoded...)
	s.mu.Lock()
	s.asked = append(s.asked, q)
	h := s.reply
	s.mu.Unlock()
	h(w, q)
}

// requests are all requests so far.
func (s *site) requests() []*asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// connections is how many were made so far.
func (s *site) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

// asked is one request.
type asked struct {
	method, url string
	decoded     []string // what is in the path, the query and the body
	texts       []string // these, and URL and body as they came
	request     *http.Request
}

// holds reports whether the text is anywhere in the request.
func (q *asked) holds(text string) bool {
	if q.names(text) {
		return true
	}
	for _, values := range q.request.Header {
		for _, v := range values {
			if strings.Contains(v, text) {
				return true
			}
		}
	}
	user, password, _ := q.request.BasicAuth()
	return strings.Contains(user, text) || strings.Contains(password, text)
}

// names reports whether the text is in the path, the query or the body.
func (q *asked) names(text string) bool {
	return slices.ContainsFunc(q.texts, func(t string) bool { return strings.Contains(t, text) })
}

// String is the request for people.
func (q *asked) String() string { return q.method + " " + clip(q.url) }

// forget forgets the requests so far.
func (s *site) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = nil
}
