package loopback

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

// DefaultScript is the script of submitted jobs where Config.Script is nil.
const DefaultScript = `queued; at 2s running 20% eta 8s; at 6s running 60% eta 4s; at 10s succeeded`

const (
	defaultPageSize = 100
	maxRequestBody  = 10 << 20
)

// Config says how a Server behaves. Only Wire is needed.
type Config struct {
	// Wire is the shape in which the server speaks: Fal(), Runway() and the other
	// functions that return one, or your own.
	Wire Wire
	// Clock is the time of the server; nil: package time. Jobs run on its
	// monotonic time where there is one, Date headers and time stamps on Now.
	Clock jobpoll.Clock
	// Script chooses the script of a submitted job, which begins with the
	// submission: n counts accepted submissions from 1 on, body is the request's. Of a
	// form it is a JSON object: of each field the text ("seed":"7"), of each file what
	// is told of it ("image":{"name":"cat.png","type":"image/png","size":1042}).
	// A script that ParseScript does not read is answered with 500 and the error.
	// nil, or an empty text: DefaultScript. It is called without a lock held,
	// possibly from several goroutines at once.
	Script func(n int, body json.RawMessage) string
	// Fault, if not nil, says for each request, whose body it can read, how its
	// answer is broken; n counts the requests from 1 on. It is called without a
	// lock held, possibly from several goroutines at once.
	Fault func(n int, r *http.Request) Fault

	// Credential is the key or token that requests have to carry, without the
	// provider's scheme ("Bearer", "Key"); empty: any, or none. Server.SetCredential
	// changes it.
	Credential string
	// Authorize, if not nil, says instead of Credential whether a credential that was
	// sent is right at that time of Clock, when the request came: so can tokens be
	// checked, which run out. A request without one is refused, and Authorize not
	// asked. KlingKeys is one. It is called without a lock held, possibly from several
	// goroutines at once.
	Authorize func(credential string, now time.Time) bool
	// NotVisible is how long a submitted job is answered as not known; zero: not
	// at all.
	NotVisible time.Duration
	// Latency is how long each request is under way before it is looked at: a
	// submission makes its job after it, and none where the client has left
	// before. Fault.Slow is the time after that, when the job exists.
	Latency time.Duration

	// Total limits all requests, Status all but submissions, and Submit these.
	// A request that one of them refuses is answered with 429 and counts for
	// none of them.
	Total, Status, Submit RateLimit
	// Retry is the form in which waits are told: those of the rate limits, and
	// of "retry-after" in scripts.
	Retry RetryForm
	// MaxJobs is how many jobs may be unfinished at once; zero: any number. What
	// comes of more is up to the Wire: fal lets them wait in its queue, others
	// refuse them with 429.
	MaxJobs int

	// IgnoreCancel makes jobs go on although their cancellation was accepted.
	IgnoreCancel bool
	// PageSize is how many jobs a page of a list has; zero: 100.
	PageSize int
	// Duplicate gives the key by which a submission is a repetition of an earlier
	// one, which only Stats.Duplicates tells; an empty key: it is none. nil: path
	// and body.
	Duplicate func(r *http.Request, body json.RawMessage) string
	// RedirectHost is the host and port that polltest.FaultRedirect points to;
	// empty: "localhost" and the server's own port, so that the server sees what
	// a client sends there.
	RedirectHost string
}

// Server is a scripted provider. It is an http.Handler, and listens by itself
// when it was made by Start. Methods may be called from several goroutines at
// once.
type Server struct {
	cfg    Config
	clock  jobpoll.Clock
	begun  time.Time       // of elapsed, where the clock has no monotonic time
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	url    string       // empty: not made by Start
	http   *http.Server // nil: likewise
	served chan struct{}

	mu         sync.Mutex
	credential string
	jobs       map[string]*job
	own        map[string]*job // by Call.OwnID; nil: of a submission under way
	order      []*job          // by submission, or Add
	active     []*job          // that hold one of MaxJobs
	waiting    []*job          // for one
	accepting  int             // submissions that have a slot and no job yet
	accepted   int
	total      bucket
	status     bucket
	submit     bucket
	records
}

// New returns a Server that does not listen: a handler for a server of the
// caller's, who should call Close before closing that. It panics without a
// Config.Wire.
func New(cfg Config) *Server {
	if cfg.Wire == nil {
		panic("loopback: Config.Wire is nil: take one, as Fal()")
	}
	if cfg.Clock == nil {
		cfg.Clock = jobpoll.SystemClock()
	}
	if cfg.PageSize <= 0 {
		cfg.PageSize = defaultPageSize
	}
	s := &Server{
		cfg:        cfg,
		clock:      cfg.Clock,
		begun:      cfg.Clock.Now(),
		credential: cfg.Credential,
		jobs:       make(map[string]*job),
		own:        make(map[string]*job),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	now := s.elapsed()
	s.total, s.status, s.submit = newBucket(cfg.Total, now), newBucket(cfg.Status, now), newBucket(cfg.Submit, now)
	s.records.seen = make(map[string]bool)
	return s
}

// Start returns a Server that listens on a free port of 127.0.0.1 until Close.
// It panics without a Config.Wire, and where it cannot listen.
func Start(cfg Config) *Server {
	s := New(cfg)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic("loopback: cannot listen: " + err.Error())
	}
	s.url = "http://" + l.Addr().String()
	s.http = &http.Server{Handler: s, ConnState: s.countConnection}
	s.served = make(chan struct{})
	go func() {
		defer close(s.served)
		_ = s.http.Serve(l) // ends with ErrServerClosed
	}()
	return s
}

// URL is where the server listens, "http://127.0.0.1:1234"; empty for one that
// New made.
func (s *Server) URL() string { return s.url }

// Close ends requests under way, those that hang included, without an answer,
// and then listening. It does not wait for Config.Script and Config.Fault to
// return, nor does anything wait for the Clock any more. It may be called again.
func (s *Server) Close() {
	s.cancel()
	if s.http != nil {
		_ = s.http.Close()
		<-s.served
	}
}

// SetCredential changes what Config.Credential said, as when a token is
// revoked. With Config.Authorize it changes nothing.
func (s *Server) SetCredential(credential string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.credential = credential
}

// Add adds a job that was submitted just now in another way, or gives the job a
// new script. It is visible at once and holds none of Config.MaxJobs. Add panics
// where polltest.ParseScript has an error.
func (s *Server) Add(id, script string) { s.AddAt(id, s.clock.Now(), script) }

// AddAt is Add with a job that was, or will be, submitted at start.
func (s *Server) AddAt(id string, start time.Time, script string) {
	parsed, err := polltest.ParseScript(script)
	if err != nil {
		panic(err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.elapsed() + start.Sub(s.clock.Now())
	j := newJob(id, parsed, at, start)
	if s.jobs[id] == nil {
		s.order = append(s.order, j)
	} else {
		for i := range s.order {
			if s.order[i].id == id {
				s.order[i] = j
			}
		}
	}
	s.jobs[id] = j
}

// elapsed is the monotonic time.
func (s *Server) elapsed() time.Duration {
	if m, ok := s.clock.(interface{ Monotonic() time.Duration }); ok {
		return m.Monotonic()
	}
	return s.clock.Now().Sub(s.begun)
}

// busy makes a clock that knows of work under way wait for a request, but not
// while that sleeps. Call done in the end.
func (s *Server) busy(r *http.Request) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(s.ctx, cancel)
	work := func() {}
	if c, ok := s.clock.(interface {
		BusyContext(context.Context, func() string) (context.Context, func())
	}); ok {
		ctx, work = c.BusyContext(ctx, func() string { return "loopback: " + r.Method + " " + r.URL.Path })
	}
	return ctx, func() {
		work()
		stop()
		cancel()
	}
}

// sleep waits on the clock, and reports whether the request is still wanted.
func (s *Server) sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	if c, ok := s.clock.(interface {
		Sleep(context.Context, time.Duration) error
	}); ok {
		return c.Sleep(ctx, d) == nil
	}
	over := make(chan struct{})
	timer := s.clock.AfterFunc(d, func() { close(over) })
	defer timer.Stop()
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}
