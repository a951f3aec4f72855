package jobpoll_test

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/require"
)

// The test settings of the acceptance cases: backoff 2 s doubled to 60 s,
// queued 30 s, least gap 1 s, call limit 10 s, ten errors in a row, grace of
// 30 s and three looks for unknown jobs, job limit 30 min.
func caseRoute(c jobpoll.Checker) jobpoll.Route {
	return jobpoll.Route{
		Name: "r", Checker: c, CheckTimeout: 10 * time.Second,
		Schedule: jobpoll.Schedule{
			Delays: secs(2, 4, 8, 16, 32, 60), Queued: 30 * time.Second, Jitter: jobpoll.NoJitter,
		},
		Stop: jobpoll.StopRules{MaxAge: 30 * time.Minute, MaxErrors: 10, MissingGrace: 30 * time.Second, MissingLooks: 3},
	}
}

func secs(s ...float64) []time.Duration {
	d := make([]time.Duration, len(s))
	for i, v := range s {
		d[i] = time.Duration(v * float64(time.Second))
	}
	return d
}

// trial is a Poller of one route "r" on a manual clock, its scripted provider
// and what it told.
type trial struct {
	*polltest.Harness
	polltest.Recorder
	*polltest.Provider
	t     testing.TB
	start time.Time

	mu     sync.Mutex
	panics []jobpoll.PanicEvent
	late   []jobpoll.LateEvent
	words  []jobpoll.WordEvent
}

// newRig starts one. change may alter the configuration; where it leaves the
// Checker nil it is the scripted provider.
func newRig(t testing.TB, change func(*jobpoll.Config, *jobpoll.Route)) *trial {
	t.Helper()
	g := newRigOnly(t)
	g.run(change)
	return g
}

func newRigOnly(t testing.TB) *trial {
	clock := polltest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return &trial{t: t, Provider: polltest.NewProvider(clock), start: clock.Now(), Harness: &polltest.Harness{Clock: clock}}
}

func (g *trial) run(change func(*jobpoll.Config, *jobpoll.Route)) {
	g.t.Helper()
	cfg := jobpoll.Config{Clock: g.Clock, Callbacks: g.Callbacks(), Hooks: jobpoll.Hooks{
		Panicked: func(e jobpoll.PanicEvent) { g.note(func() { g.panics = append(g.panics, e) }) },
		Late:     func(e jobpoll.LateEvent) { g.note(func() { g.late = append(g.late, e) }) },
		UnknownWord: func(e jobpoll.WordEvent) {
			g.note(func() { g.words = append(g.words, e) })
		},
	}}
	r := caseRoute(nil)
	if change != nil {
		change(&cfg, &r)
	}
	if r.Checker == nil {
		r.Checker = g.Provider
	}
	cfg.Routes = append(cfg.Routes, r)
	g.Harness = polltest.Start(g.t, cfg)
}

func (g *trial) note(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

func jobOf(id string) jobpoll.Job { return jobpoll.Job{Route: "r", ID: id} }

// watch watches a job of the script, which begins now.
func (g *trial) watch(id, script string) jobpoll.Key {
	g.t.Helper()
	return g.watchJob(jobOf(id), script)
}

func (g *trial) watchJob(job jobpoll.Job, script string) jobpoll.Key {
	g.t.Helper()
	if script != "" {
		g.Add(job.ID, script)
	}
	require.NoError(g.t, g.Watch(g.t.Context(), job))
	g.Clock.Settle()
	return job.Key()
}

// to moves the clock to so many seconds after the start.
func (g *trial) to(seconds float64) {
	g.t.Helper()
	g.Clock.AdvanceTo(g.start.Add(secs(seconds)[0]))
}

// looks tells when a job was looked at, in seconds after the start.
func (g *trial) looks(id string) []float64 { return g.since(g.Looks(id)) }

func (g *trial) since(at []time.Time) []float64 {
	s := make([]float64, len(at))
	for i, v := range at {
		s[i] = v.Sub(g.start).Seconds()
	}
	return s
}

// gaps are the differences between neighbours.
func gaps(at []float64) []float64 {
	if len(at) == 0 {
		return nil
	}
	g := make([]float64, 0, len(at)-1)
	for i := 1; i < len(at); i++ {
		g = append(g, at[i]-at[i-1])
	}
	return g
}

// ended gives the only outcome of a job.
func (g *trial) ended(id string) jobpoll.Outcome {
	g.t.Helper()
	var found []jobpoll.Outcome
	for _, o := range g.Outcomes() {
		if o.Job.ID == id {
			found = append(found, o)
		}
	}
	require.Len(g.t, found, 1, "outcomes of %s", id)
	return found[0]
}

func (g *trial) pending(id string) jobpoll.JobInfo {
	g.t.Helper()
	i, ok := g.Job(jobOf(id).Key())
	require.True(g.t, ok)
	require.Nil(g.t, i.Outcome)
	return i
}

func (g *trial) after(o jobpoll.Outcome) float64 { return o.DetectedAt.Sub(g.start).Seconds() }

// httpAnswer is what a provider over HTTP says at one look.
type httpAnswer struct {
	code   int
	header map[string][]string
	state  jobpoll.State // of a 2xx; Unknown with code 200 is a body that cannot be decoded
	slow   time.Duration
}

// httpChecker is an adapter as one would write it on FromResponse. Its answers
// come one after the other; the last one repeats.
type httpChecker struct {
	clock *polltest.Clock

	mu      sync.Mutex
	answers map[string][]httpAnswer
	at      map[string][]time.Time
	all     []time.Time
}

func newHTTPChecker(c *polltest.Clock) *httpChecker {
	return &httpChecker{clock: c, answers: map[string][]httpAnswer{}, at: map[string][]time.Time{}}
}

func (c *httpChecker) says(id string, a ...httpAnswer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[id] = a
}

func (c *httpChecker) looks(id string) []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]time.Time(nil), c.at[id]...)
}

func (c *httpChecker) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	c.mu.Lock()
	now := c.clock.Now()
	c.at[job.ID] = append(c.at[job.ID], now)
	c.all = append(c.all, now)
	a := httpAnswer{code: 200, state: jobpoll.StateRunning}
	if list := c.answers[job.ID]; len(list) > 0 {
		a = list[0]
		if len(list) > 1 {
			c.answers[job.ID] = list[1:]
		}
	}
	c.mu.Unlock()
	if a.slow > 0 {
		if err := c.clock.Sleep(ctx, a.slow); err != nil {
			return jobpoll.Report{}, err
		}
	}
	header := http.Header{}
	for k, v := range a.header {
		header[http.CanonicalHeaderKey(k)] = v
	}
	resp := &http.Response{StatusCode: a.code, Header: header, Body: io.NopCloser(strings.NewReader(`{"error":"no"}`))}
	hint, err := jobpoll.FromResponse(resp, c.clock.Now())
	if err != nil {
		return jobpoll.Report{}, err
	}
	return jobpoll.Report{State: a.state, RawStatus: a.state.String(), Hint: hint}, nil
}

// asks is a Retry-After header, or several.
func asks(v ...string) map[string][]string { return map[string][]string{"Retry-After": v} }

func goroutines() int { return runtime.NumGoroutine() }

// eventually waits for what other goroutines of the process are about to do.
func eventually(t testing.TB, ok func() bool, what string) {
	t.Helper()
	for range 5000 {
		if ok() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error(what)
}
