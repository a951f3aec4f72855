package jobpoll_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dice is a source of chance for many goroutines.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newDice(seed uint64) *dice { return &dice{r: rand.New(rand.NewPCG(seed, 1))} }

func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

// upTo is a time of up to so many milliseconds, so fine that two seldom fall on
// one instant.
func (d *dice) upTo(ms int) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(d.r.Int64N(int64(ms) * int64(time.Millisecond)))
}

// stormStore fails, waits, panics, and shows what it holds more than once.
type stormStore struct {
	*jobpoll.MemoryStore
	d    *dice
	calm bool // guarded by d.mu
}

func (s *stormStore) weather(ctx context.Context) error {
	s.d.mu.Lock()
	calm := s.calm
	s.d.mu.Unlock()
	if calm {
		return nil
	}
	switch s.d.n(12) {
	case 0:
		return errStoreDown
	case 1:
		panic("in the store")
	case 2:
		select {
		case <-time.After(s.d.upTo(3000)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (s *stormStore) Get(ctx context.Context, k jobpoll.RecordKind, id string) (jobpoll.Record, error) {
	if err := s.weather(ctx); err != nil {
		return jobpoll.Record{}, err
	}
	return s.MemoryStore.Get(ctx, k, id)
}

func (s *stormStore) Put(ctx context.Context, batch []jobpoll.Record) error {
	if err := s.weather(ctx); err != nil {
		return err
	}
	return s.MemoryStore.Put(ctx, batch)
}

func (s *stormStore) Load(ctx context.Context) iter.Seq2[jobpoll.Record, error] {
	return func(yield func(jobpoll.Record, error) bool) {
		for rec, err := range s.MemoryStore.Load(ctx) {
			if e := s.weather(ctx); e != nil {
				yield(jobpoll.Record{}, e)
				return
			}
			for range 1 + s.d.n(2) {
				if !yield(rec, err) {
					return
				}
			}
		}
	}
}

// stormy is a provider and a set of callbacks that do all that they may not.
type stormy struct {
	d   *dice
	gap time.Duration

	mu      sync.Mutex
	p       *jobpoll.Poller
	last    map[string]time.Time // the last look
	asked   map[string]time.Time // the provider's word
	floor   map[string]time.Time // once the engine has it
	busy    map[string]int
	told    map[string]int // OnStop that returned nil
	telling map[string]int
	faults  []string
	calm    bool
}

func (s *stormy) fault(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

func (s *stormy) Check(ctx context.Context, job jobpoll.Job) (rep jobpoll.Report, err error) {
	now := time.Now()
	s.mu.Lock()
	id, calm := job.ID, s.calm
	if s.busy[id]++; s.busy[id] > 1 {
		s.fault("%s: two calls at once", id)
	}
	if f := s.floor[id]; now.Before(f) {
		s.fault("%s: a look %v before the provider's wait is over", id, f.Sub(now))
	}
	if l, ok := s.last[id]; ok && now.Sub(l) < s.gap {
		s.fault("%s: two looks %v apart", id, now.Sub(l))
	}
	delete(s.floor, id)
	delete(s.asked, id)
	s.last[id] = now
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.busy[id]--
		if w := rep.Hint.RetryAfter; w > 0 && ctx.Err() == nil {
			s.asked[id] = time.Now().Add(w)
		}
	}()
	if calm {
		return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
	}
	wait := time.Duration(s.d.n(5)) * s.d.upTo(400)
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return jobpoll.Report{}, context.Cause(ctx)
	}
	switch s.d.n(16) {
	case 0:
		return rep, errors.New("a plain error")
	case 1:
		panic("in Check")
	case 2:
		return rep, &jobpoll.CheckError{Kind: jobpoll.ErrorRateLimited}
	case 3:
		return rep, &jobpoll.CheckError{Kind: jobpoll.ErrorNoSuchJob}
	case 4:
		runtime.Goexit()
	case 5, 6:
		return jobpoll.Report{State: jobpoll.StateRunning, Hint: jobpoll.Hint{RetryAfter: time.Duration(s.d.n(9)) * time.Second}}, nil
	case 7:
		return jobpoll.Report{State: jobpoll.StateFailed}, nil
	case 8:
		return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
	case 9:
		return rep, &jobpoll.CheckError{Kind: jobpoll.ErrorAuth}
	}
	return jobpoll.Report{State: jobpoll.StateRunning, Progress: float64(s.d.n(100)) / 100, RawStatus: fmt.Sprint("word", s.d.n(9))}, nil
}

func (s *stormy) Cancel(context.Context, jobpoll.Job) error {
	if s.d.n(3) == 0 {
		panic("in Cancel")
	}
	return nil
}

func (s *stormy) Refresh(context.Context) error { return []error{nil, errStoreDown}[s.d.n(2)] }

func (s *stormy) onUpdate(ctx context.Context, u jobpoll.Update) {
	switch s.d.n(8) {
	case 0:
		panic("in OnUpdate")
	case 1:
		runtime.Goexit()
	case 2:
		_ = s.p.Abandon(ctx, u.Job.Key(), nil)
	case 3:
		short, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		_, _ = s.p.Wait(short, u.Job)
	}
}

func (s *stormy) onStop(ctx context.Context, o jobpoll.Outcome) error {
	id := o.Job.ID
	s.mu.Lock()
	if s.telling[id]++; s.telling[id] > 1 {
		s.fault("%s: two OnStop at once", id)
	}
	calm := s.calm
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.telling[id]--
	}()
	if !calm {
		switch s.d.n(6) {
		case 0:
			panic("in OnStop")
		case 1:
			runtime.Goexit()
		case 2:
			return errors.New("not taken")
		case 3:
			_ = s.p.Run(ctx) // is refused
			_ = s.p.PollNow(o.Job.Key())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[o.Job.ID+"@"+o.DetectedAt.String()]++
	return nil
}

// Everything at once on few jobs, with a store, callbacks and a provider that
// misbehave, over several Runs. What must hold: one call and one OnStop of a
// job at a time, no look before a floor, each end told, and nothing left over.
func TestNothingIsLeftOfAStorm(t *testing.T) {
	for seed := range 3 {
		for _, withStore := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d store %v", seed, withStore), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { storm(t, uint64(seed), withStore) })
			})
		}
	}
}

func storm(t *testing.T, seed uint64, withStore bool) {
	d := newDice(seed)
	s := &stormy{d: d, gap: time.Second, last: map[string]time.Time{}, floor: map[string]time.Time{}, asked: map[string]time.Time{}, busy: map[string]int{},
		told: map[string]int{}, telling: map[string]int{}}
	store := &stormStore{MemoryStore: jobpoll.NewMemoryStore(nil), d: d}
	account := jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 4, Burst: 3, Concurrent: 3}, Jobs: 5})
	cfg := jobpoll.Config{
		Budget: account, Workers: 3, Callbacks: jobpoll.Callbacks{OnUpdate: s.onUpdate, OnStop: s.onStop},
		Rand: func() float64 { return []float64{math.NaN(), -1, 1, math.Inf(1), 0, 1e300, 0.3}[d.n(7)] },
		Routes: []jobpoll.Route{{
			Name: "r", Checker: s, CheckTimeout: time.Second, Schedule: jobpoll.Schedule{Delays: secs(1, 3), MinDelay: s.gap},
			Stop: jobpoll.StopRules{MaxAge: time.Minute, AuthGrace: 2 * time.Minute, CancelRemote: true},
		}},
	}
	cfg.Hooks.Looked = func(e jobpoll.LookEvent) {
		s.mu.Lock()
		if at, ok := s.asked[e.Job.ID]; ok && e.Kind == jobpoll.ErrorNone {
			s.floor[e.Job.ID] = at
		}
		s.mu.Unlock()
		if d.n(20) == 0 {
			panic("in a hook")
		}
		s.p.Metrics()
	}
	if withStore {
		cfg.Store = store
	}
	p, err := jobpoll.New(cfg)
	require.NoError(t, err)
	s.p = p

	ctx, stop := context.WithCancel(t.Context())
	var all, runs sync.WaitGroup
	acts := []func(context.Context, jobpoll.Job){
		func(ctx context.Context, j jobpoll.Job) { _ = p.Watch(ctx, j) },
		func(ctx context.Context, j jobpoll.Job) {
			if d.n(2) == 0 {
				j.ClientKey = "client " + j.ID
			}
			_, _ = p.Wait(ctx, j)
		},
		func(ctx context.Context, j jobpoll.Job) {
			for range p.Follow(ctx, j.Key()) {
				if d.n(5) == 0 {
					return
				}
			}
		},
		func(_ context.Context, j jobpoll.Job) { _ = p.PollNow(j.Key()) },
		func(_ context.Context, j jobpoll.Job) { _ = p.PollNow(j.Key()) },
		func(ctx context.Context, j jobpoll.Job) {
			n := jobpoll.Notice{Key: j.Key(), Trust: jobpoll.Trust(d.n(2)), Report: jobpoll.Report{State: jobpoll.State(d.n(7))}}
			if d.n(2) == 0 {
				n.EventID = fmt.Sprint(d.n(20))
			}
			_ = p.Notify(ctx, n)
		},
		func(ctx context.Context, j jobpoll.Job) { _ = p.Abandon(ctx, j.Key(), errors.New("enough")) },
		func(ctx context.Context, j jobpoll.Job) { _ = p.Cancel(ctx, j.Key(), nil) },
		func(ctx context.Context, _ jobpoll.Job) { _, _ = p.Restore(ctx) },
		func(context.Context, jobpoll.Job) {
			_ = p.AddRoute(jobpoll.Route{Name: fmt.Sprint("x", d.n(5)), Checker: s})
			for range p.Jobs() {
			}
			for range p.Profiles() {
			}
			p.Metrics()
		},
		func(context.Context, jobpoll.Job) {
			account.SetLimits(jobpoll.Limits{Total: jobpoll.Limit{Rate: 1 + float64(d.n(5)), Burst: d.n(4), Concurrent: d.n(4)},
				Submit: jobpoll.LaneLimits{Reserve: jobpoll.Limit{Rate: float64(d.n(2))}}, Jobs: 1 + d.n(5)})
		},
		func(ctx context.Context, _ jobpoll.Job) {
			if done, err := account.Acquire(ctx, jobpoll.Lane(d.n(2))); err == nil {
				time.Sleep(d.upTo(500))
				done(&jobpoll.CheckError{Kind: jobpoll.ErrorKind(d.n(6))})
				done(nil)
			}
		},
	}
	for range 10 {
		all.Go(func() {
			for ctx.Err() == nil {
				short, end := context.WithTimeout(ctx, d.upTo(3000))
				acts[d.n(len(acts))](short, jobOf(fmt.Sprint("j", d.n(4))))
				end()
				time.Sleep(d.upTo(700))
			}
		})
	}
	runs.Go(func() { // several Runs, one after the other and now and then two at once
		for ctx.Err() == nil {
			short, end := context.WithTimeout(ctx, d.upTo(40_000))
			_ = p.Run(short)
			end()
			time.Sleep(d.upTo(1000))
		}
	})
	time.Sleep(4 * time.Minute)
	stop()
	all.Wait()
	runs.Wait()

	// Now all behave: what is left ends.
	s.mu.Lock()
	s.calm = true
	s.mu.Unlock()
	d.mu.Lock()
	store.calm = true
	d.mu.Unlock()
	account.SetLimits(jobpoll.Limits{})
	last, end := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- p.Run(last) }()
	time.Sleep(3 * time.Hour)
	m := p.Metrics()
	end()
	require.NoError(t, <-ran)

	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Empty(t, s.faults)
	assert.NotEmpty(t, s.told)
	for k, n := range s.told {
		assert.Equal(t, 1, n, k)
	}
	for id, n := range s.telling {
		assert.Zero(t, n, id)
	}
	var stops uint64
	for _, n := range m.Total.Stops {
		stops += n
	}
	assert.Zero(t, m.Total.Unresolved)
	assert.Zero(t, m.Total.InFlight)
	assert.Zero(t, m.Total.Backlog)
	assert.Zero(t, m.Total.Failing)
	assert.Zero(t, m.Callbacks.Undelivered)
	assert.Zero(t, m.ParkedNotices)
	assert.Equal(t, m.Total.Watched+m.Total.Restored, stops)
	assert.Len(t, s.told, int(stops))
	for name, b := range m.Budgets {
		assert.Zero(t, b.Jobs, name)
		assert.Zero(t, b.Status.InFlight+b.Submit.InFlight+b.Status.Waiting+b.Submit.Waiting, name)
	}
}
