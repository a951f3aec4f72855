package provider

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

// caseRig is a Poller on a manual clock and an adapter that calls a scripted
// server over HTTP.
type caseRig struct {
	*polltest.Harness
	t       testing.TB
	adapter adapter
	url     string
	clock   *polltest.Clock
	start   time.Time
	seen    polltest.Recorder

	mu       sync.Mutex
	requests []caseRequest
	flying   int
	most     int
}

// caseRequest is one request that came.
type caseRequest struct {
	at     float64 // seconds since the start
	method string
	path   string
	id     string
}

// caseScript answers the n-th request (from 1) for a job's path.
type caseScript func(w http.ResponseWriter, r *http.Request, n int)

// newCaseRig serves script as the provider of that name and runs a Poller with
// one route of that name. change may change its configuration.
func newCaseRig(t testing.TB, name string, script caseScript, change ...func(*jobpoll.Config, *jobpoll.Route)) *caseRig {
	t.Helper()
	g := &caseRig{t: t, clock: polltest.NewClock(time.Time{})}
	g.start = g.clock.Now()
	server := httptest.NewServer(g.serve(script))
	t.Cleanup(server.Close)
	g.url = server.URL
	g.adapter = newAdapterFor(t, name, Config{BaseURL: server.URL, Credentials: Secret(kitKey), Clock: g.clock})
	route := jobpoll.Route{Name: name, Checker: g.adapter}
	cfg := jobpoll.Config{Clock: g.clock, Callbacks: g.seen.Callbacks()}
	for _, f := range change {
		f(&cfg, &route)
	}
	cfg.Routes = append([]jobpoll.Route{route}, cfg.Routes...)
	g.Harness = polltest.Start(t, cfg)
	return g
}

func (g *caseRig) serve(script caseScript) http.HandlerFunc {
	counts := map[string]int{}
	return func(w http.ResponseWriter, r *http.Request) {
		id := caseID(r.URL.Path)
		g.mu.Lock()
		g.requests = append(g.requests, caseRequest{g.clock.Now().Sub(g.start).Seconds(), r.Method, r.URL.Path, id})
		key := r.Method + r.URL.Path
		counts[key]++
		n := counts[key]
		g.flying++
		g.most = max(g.most, g.flying)
		g.mu.Unlock()
		defer func() {
			g.mu.Lock()
			g.flying--
			g.mu.Unlock()
		}()
		w.Header()["Date"] = nil // it would be real time
		w.Header().Set("Content-Type", "application/json")
		script(w, r, n)
	}
}

// caseID is the job of a path: the last segment but "status".
func caseID(path string) string {
	path = strings.TrimSuffix(path, "/status")
	return path[strings.LastIndexByte(path, '/')+1:]
}

// watch watches a job of the route, submitted now.
func (g *caseRig) watch(id string, change ...func(*jobpoll.Job)) jobpoll.Job {
	g.t.Helper()
	job := jobpoll.Job{Route: g.route(), ID: id, Ref: refFor(g.route()), Expected: time.Minute, SubmittedAt: g.clock.Now()}
	for _, f := range change {
		f(&job)
	}
	require.NoError(g.t, g.Watch(g.t.Context(), job))
	return job
}

// route is the name of the first route.
func (g *caseRig) route() string {
	switch g.adapter.(type) {
	case *Fal:
		return "fal"
	case *Replicate:
		return "replicate"
	}
	return "atlas"
}

// run advances the clock to so many seconds after the start.
func (g *caseRig) run(seconds float64) {
	g.t.Helper()
	to := g.start.Add(time.Duration(seconds * float64(time.Second)))
	g.clock.Advance(to.Sub(g.clock.Now()))
}

// ended gives the outcome of a job.
func (g *caseRig) ended(id string) jobpoll.Outcome {
	g.t.Helper()
	o, ok := g.seen.Outcome(jobpoll.Key{Route: g.route(), ID: id})
	require.True(g.t, ok, "%s has not ended", id)
	return o
}

// looks are the instants of the requests for a job.
func (g *caseRig) looks(id string) []float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	var at []float64
	for _, r := range g.requests {
		if r.id == id {
			at = append(at, r.at)
		}
	}
	return at
}

// count is how many requests have a method.
func (g *caseRig) count(method string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, r := range g.requests {
		if r.method == method {
			n++
		}
	}
	return n
}

// gaps are the differences between instants.
func gaps(at []float64) []float64 {
	var d []float64
	for i := 1; i < len(at); i++ {
		d = append(d, at[i]-at[i-1])
	}
	return d
}

// Answers of Replicate.
const (
	runs = `{"id":"a","status":"processing"}`
	done = `{"id":"a","status":"succeeded","output":"u"}`
)

// says answers a status and a body.
func says(w http.ResponseWriter, status int, body string) {
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}
