package jobpoll_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rig is a Poller under the manual clock with one scripted provider, which
// serves the route "r" unless the test says otherwise.
type rig struct {
	*polltest.Harness
	prov  *polltest.Provider
	rec   *polltest.Recorder
	t     testing.TB
	start time.Time
}

// rigOf starts one; change may alter the Config, also replace its routes.
func rigOf(t testing.TB, change func(*rig, *jobpoll.Config)) *rig {
	t.Helper()
	return rigOn(t, polltest.NewClock(time.Time{}), nil, change)
}

// rigOn is rigOf on a clock and, if not nil, a provider of an earlier one.
func rigOn(t testing.TB, clock *polltest.Clock, prov *polltest.Provider, change func(*rig, *jobpoll.Config)) *rig {
	t.Helper()
	if prov == nil {
		prov = polltest.NewProvider(clock)
	}
	r := &rig{t: t, prov: prov, rec: &polltest.Recorder{}, start: clock.Now()}
	cfg := jobpoll.Config{Clock: clock, Callbacks: r.rec.Callbacks()}
	cfg.Routes = []jobpoll.Route{r.route("r")}
	if change != nil {
		change(r, &cfg)
	}
	r.Harness = polltest.Start(t, cfg)
	return r
}

// route is a route of the rig's provider, with a look each 5 s.
func (r *rig) route(name string) jobpoll.Route {
	return jobpoll.Route{Name: name, Checker: r.prov, CheckTimeout: 10 * time.Second, Schedule: every(5 * time.Second)}
}

// every is a Schedule with one fixed delay.
func every(d time.Duration) jobpoll.Schedule {
	return jobpoll.Schedule{Delays: []time.Duration{d}, Jitter: jobpoll.NoJitter}
}

// watch watches jobs of the route "r".
func (r *rig) watch(ids ...string) {
	r.t.Helper()
	for _, id := range ids {
		require.NoError(r.t, r.Watch(r.t.Context(), jobpoll.Job{Route: "r", ID: id}))
	}
	r.Clock.Settle()
}

func key(id string) jobpoll.Key { return jobpoll.Key{Route: "r", ID: id} }

// to advances to an age of the test.
func (r *rig) to(age time.Duration) { r.t.Helper(); r.Clock.Advance(age - r.Clock.Monotonic()) }

// ages are instants as seconds since the test began.
func (r *rig) ages(at []time.Time) []float64 {
	out := make([]float64, len(at))
	for i, t := range at {
		out[i] = t.Sub(r.start).Seconds()
	}
	return out
}

// looks are the ages of the looks at a job, in seconds.
func (r *rig) looks(id string) []float64 { return r.ages(r.prov.Looks(id)) }

// notify hands a notice over and settles.
func (r *rig) notify(n jobpoll.Notice) error {
	r.t.Helper()
	err := r.Notify(r.t.Context(), n)
	r.Clock.Settle()
	return err
}

// ended asserts the reason of a job's one outcome and returns it.
func (r *rig) ended(id string, reason jobpoll.Reason) jobpoll.Outcome {
	r.t.Helper()
	var found []jobpoll.Outcome
	for _, o := range r.rec.Outcomes() {
		if o.Job.ID == id {
			found = append(found, o)
		}
	}
	require.Len(r.t, found, 1, "outcomes of %s", id)
	require.Equal(r.t, reason, found[0].Reason, "%s: %v", id, found[0].Message)
	return found[0]
}

// atZero asserts that nothing is left over.
func (r *rig) atZero() {
	r.t.Helper()
	m := r.Metrics()
	assert.Zero(r.t, m.Total.Unresolved, "unresolved")
	assert.Zero(r.t, m.Total.InFlight, "in flight")
	assert.Zero(r.t, m.Total.Backlog, "backlog")
	assert.Zero(r.t, m.Total.Failing, "failing")
	assert.Zero(r.t, m.Total.LongestStreak, "longest streak")
	assert.Zero(r.t, m.Callbacks.Undelivered, "undelivered")
	for name, b := range m.Budgets {
		assert.Zero(r.t, b.Jobs, "jobs of budget %s", name)
		assert.Zero(r.t, b.Status.InFlight+b.Submit.InFlight, "calls of budget %s", name)
		assert.Zero(r.t, b.Status.Waiting+b.Submit.Waiting, "waiters of budget %s", name)
	}
}

func ids(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s%03d", prefix, i)
	}
	return out
}

// within counts the values in [from, to).
func within(at []float64, from, to float64) int {
	n := 0
	for _, v := range at {
		if v >= from && v < to {
			n++
		}
	}
	return n
}

// requirePaced fails if in any window of time t more than burst + rate·t calls began.
func requirePaced(t testing.TB, at []time.Time, rate float64, burst int) {
	t.Helper()
	// A leaky bucket finds a breach of any window in one pass.
	level := 0.0
	for i, now := range at {
		if i > 0 {
			require.False(t, now.Before(at[i-1]), "calls out of order")
			level = max(0, level-now.Sub(at[i-1]).Seconds()*rate)
		}
		level++
		require.LessOrEqual(t, level, float64(burst)+1e-6, "call %d at %v exceeds %v/s burst %d", i, now, rate, burst)
	}
}

// shakyStore is a MemoryStore that fails or hangs when the test says so.
type shakyStore struct {
	*jobpoll.MemoryStore
	mu   sync.Mutex
	fail map[string]error // by method, or "Put <kind>"
	puts int
	wait func(context.Context) error // called by Put, if not nil
	seen func([]jobpoll.Record)      // called by Put once it has written
}

var errStoreDown = errors.New("the store is down")

// newShakyStore makes one whose records expire on c; nil: never.
func newShakyStore(c jobpoll.Clock) *shakyStore {
	if c == nil {
		c = polltest.NewClock(time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC))
	}
	return &shakyStore{MemoryStore: jobpoll.NewMemoryStore(c), fail: map[string]error{}}
}

func (s *shakyStore) set(op string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail[op] = err
}

func (s *shakyStore) onPut(wait func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wait = wait
}

func (s *shakyStore) Get(ctx context.Context, kind jobpoll.RecordKind, id string) (jobpoll.Record, error) {
	s.mu.Lock()
	err := s.fail["Get"]
	s.mu.Unlock()
	if err != nil {
		return jobpoll.Record{}, err
	}
	return s.MemoryStore.Get(ctx, kind, id)
}

func (s *shakyStore) Put(ctx context.Context, batch []jobpoll.Record) error {
	s.mu.Lock()
	err, wait := s.fail["Put"], s.wait
	for _, r := range batch {
		if e := s.fail["Put "+r.Kind.String()]; e != nil {
			err = e
		}
	}
	s.puts++
	s.mu.Unlock()
	if wait != nil {
		if e := wait(ctx); e != nil {
			return e
		}
	}
	if err != nil {
		return err
	}
	if err := s.MemoryStore.Put(ctx, batch); err != nil {
		return err
	}
	if s.seen != nil {
		s.seen(batch)
	}
	return nil
}
