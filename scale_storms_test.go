package jobpoll_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gale is a randomised load: a provider that misbehaves and users who interfere,
// with everything scaled by unit, so that it runs on the real clock too.
type gale struct {
	d       *dice
	unit    time.Duration // a "second"
	jobs    int
	workers int
	budget  jobpoll.Limits
	deaf    bool // some calls do not honour their context

	p       *jobpoll.Poller
	mu      sync.Mutex
	busy    map[string]int
	told    map[string]int
	looks   map[string]int
	faults  []string
	calm    atomic.Bool
	release chan struct{} // lets the deaf calls go
}

func (g *gale) fault(format string, args ...any) {
	if len(g.faults) < 10 {
		g.faults = append(g.faults, fmt.Sprintf(format, args...))
	}
}

func (g *gale) Check(ctx context.Context, j jobpoll.Job) (jobpoll.Report, error) {
	id := j.Key().String()
	g.mu.Lock()
	if g.busy[id]++; g.busy[id] > 1 && !g.deaf {
		g.fault("%s: two calls at once", id)
	}
	g.looks[id]++
	looks := g.looks[id]
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.busy[id]--
	}()
	if g.calm.Load() {
		return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
	}
	switch g.d.n(40) {
	case 0:
		return jobpoll.Report{}, &jobpoll.CheckError{Kind: jobpoll.ErrorRateLimited, Hint: jobpoll.Hint{RetryAfter: g.d.upTo(3000) * g.unit / time.Second}}
	case 1:
		return jobpoll.Report{}, errors.New("a fault")
	case 2:
		runtime.Goexit()
	case 3:
		panic("in Check")
	case 4: // too long, but it honours its context
		<-ctx.Done()
		return jobpoll.Report{}, ctx.Err()
	case 5:
		if g.deaf {
			<-g.release
		}
	case 6, 7, 8, 9:
		return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
	case 10: // holds the route back for a minute, whatever the unit
		if g.unit == time.Second {
			return jobpoll.Report{}, &jobpoll.CheckError{Kind: jobpoll.ErrorAuth}
		}
	case 11, 12, 13:
		select {
		case <-time.After(g.unit / 10 * time.Duration(g.d.n(10))):
		case <-ctx.Done():
			return jobpoll.Report{}, ctx.Err()
		}
	}
	return jobpoll.Report{State: jobpoll.StateRunning, RawStatus: fmt.Sprint("w", looks), Progress: float64(min(looks, 99)) / 100}, nil
}

func (g *gale) onUpdate(_ context.Context, u jobpoll.Update) {
	switch g.d.n(200) {
	case 0:
		panic("in OnUpdate")
	case 1:
		runtime.Goexit()
	case 2:
		time.Sleep(g.unit)
	}
}

func (g *gale) onStop(_ context.Context, o jobpoll.Outcome) error {
	if !g.calm.Load() {
		switch g.d.n(100) {
		case 0:
			panic("in OnStop")
		case 1:
			runtime.Goexit()
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.told[o.Job.Key().String()]++
	return nil
}

func (g *gale) job(n int) jobpoll.Job {
	j := jobpoll.Job{Route: fmt.Sprint("r", n%3), ID: fmt.Sprintf("job-%05d", n), Profile: fmt.Sprint("p", n%7)}
	if n%4 == 0 {
		j.ClientKey = "client-" + j.ID
	}
	return j
}

func (g *gale) make(t *testing.T) {
	g.busy, g.told, g.looks, g.release = map[string]int{}, map[string]int{}, map[string]int{}, make(chan struct{})
	account := jobpoll.NewBudget("account", g.budget)
	shared := account.Child("shared", jobpoll.Limits{})
	cfg := jobpoll.Config{Budget: account, Workers: g.workers, Callbacks: jobpoll.Callbacks{OnUpdate: g.onUpdate, OnStop: g.onStop}}
	cfg.Hooks.Looked = func(jobpoll.LookEvent) {
		switch g.d.n(500) {
		case 0:
			panic("in a hook")
		case 1:
			if onTheEngine() {
				runtime.Goexit()
			}
		}
	}
	for i := range 3 {
		r := jobpoll.Route{Name: fmt.Sprint("r", i), Checker: g, CheckTimeout: 2 * g.unit,
			Schedule: jobpoll.Schedule{Delays: []time.Duration{g.unit / 2, g.unit}, MinDelay: g.unit / 10},
			Stop:     jobpoll.StopRules{MaxErrors: jobpoll.NoCount, MaxAge: jobpoll.NoLimit, AuthGrace: jobpoll.NoLimit}}
		if i < 2 {
			r.Budget = shared
		}
		cfg.Routes = append(cfg.Routes, r)
	}
	p, err := jobpoll.New(cfg)
	require.NoError(t, err)
	g.p = p
}

// meddle does as users do until ctx ends.
func (g *gale) meddle(ctx context.Context) {
	for ctx.Err() == nil {
		k := g.job(g.d.n(g.jobs)).Key()
		switch g.d.n(12) {
		case 0:
			if g.d.n(4) == 0 {
				_ = g.p.Abandon(ctx, k, errors.New("enough"))
			}
		case 1, 2, 3:
			_ = g.p.PollNow(k)
		case 4, 5:
			_ = g.p.Notify(ctx, jobpoll.Notice{Key: k, Report: jobpoll.Report{State: jobpoll.StateRunning}})
		case 6:
			_ = g.p.Notify(ctx, jobpoll.Notice{Key: k, Trust: jobpoll.TrustAuthoritative, Report: jobpoll.Report{State: jobpoll.State(1 + g.d.n(2))}})
		case 7:
			if g.d.n(4) == 0 {
				_ = g.p.Notify(ctx, jobpoll.Notice{Key: k, Trust: jobpoll.TrustAuthoritative, Report: jobpoll.Report{State: jobpoll.StateSucceeded}})
			}
		case 8:
			g.p.Metrics()
		case 9:
			g.p.Job(k)
			g.p.Find("client-" + k.ID)
		case 10:
			for range g.p.Jobs() {
				if g.d.n(50) == 0 {
					break
				}
			}
		case 11:
			short, end := context.WithTimeout(ctx, g.unit/5)
			for range g.p.Follow(short, k) {
				if g.d.n(3) == 0 {
					break
				}
			}
			end()
		}
		time.Sleep(g.unit / 1000 * time.Duration(g.d.n(100)))
	}
}

// blow lets it all loose for some units, then all behave and what is left ends.
func (g *gale) blow(t *testing.T, units, calmUnits int) {
	ctx, stop := context.WithCancel(t.Context())
	var users, runs sync.WaitGroup
	for i := range g.jobs {
		users.Go(func() {
			time.Sleep(time.Duration(g.d.n(units/2*1000)) * g.unit / 1000)
			if err := g.p.Watch(t.Context(), g.job(i)); err != nil {
				g.mu.Lock()
				g.fault("watch: %v", err)
				g.mu.Unlock()
			}
		})
	}
	for range 8 {
		users.Go(func() { g.meddle(ctx) })
	}
	runs.Go(func() {
		for ctx.Err() == nil {
			short, end := context.WithTimeout(ctx, time.Duration(units)*g.unit/4+g.unit*time.Duration(g.d.n(units)/3))
			_ = g.p.Run(short)
			end()
			time.Sleep(g.unit / 10 * time.Duration(g.d.n(10)))
		}
	})
	time.Sleep(time.Duration(units) * g.unit)
	stop()
	g.calm.Store(true)
	close(g.release)
	users.Wait()
	runs.Wait()
	last, end := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- g.p.Run(last) }()
	for range calmUnits {
		if m := g.p.Metrics(); m.Total.Unresolved == 0 && m.Callbacks.Undelivered == 0 && m.Total.Hung == 0 {
			break
		}
		time.Sleep(g.unit)
	}
	m := g.p.Metrics()
	end()
	require.NoError(t, <-ran)
	g.mu.Lock()
	defer g.mu.Unlock()
	assert.Empty(t, g.faults)
	assert.Len(t, g.told, g.jobs, "each job has ended")
	for id, n := range g.told {
		assert.Equal(t, 1, n, "%s ended", id)
	}
	for id, n := range g.busy {
		assert.Zero(t, n, "calls of %s", id)
	}
	assert.EqualValues(t, g.jobs, m.Total.Watched)
	assert.Zero(t, m.Total.Unresolved)
	assert.Zero(t, m.Total.InFlight)
	assert.Zero(t, m.Total.Hung)
	assert.Zero(t, m.Total.Backlog)
	assert.Zero(t, m.Total.Failing)
	assert.Zero(t, m.Callbacks.Undelivered)
	for name, b := range m.Budgets {
		assert.Zero(t, b.Status.InFlight+b.Status.Waiting, name)
	}
	for j := range g.p.Jobs() {
		t.Errorf("a job is left: %s %v, next look in %v because of %v, %d errors: %s", j.Job.Key(), j.State, time.Until(j.NextPollAt), j.Cause, j.Errors, j.Message)
	}
}

var gales = map[string]*gale{
	"one worker":           {workers: 1},
	"two workers, tight":   {workers: 2, budget: jobpoll.Limits{Total: jobpoll.Limit{Rate: 30, Burst: 3, Concurrent: 2}}},
	"many workers, wide":   {workers: 1024, budget: jobpoll.Limits{Total: jobpoll.Limit{Rate: 1e6, Burst: 1e6}}},
	"many workers, narrow": {workers: 1024, budget: jobpoll.Limits{Total: jobpoll.Limit{Rate: 50, Burst: 5, Concurrent: 4}}},
	"no limits, deaf":      {workers: 32, deaf: true},
	"three at a time":      {workers: 7, budget: jobpoll.Limits{Total: jobpoll.Limit{Concurrent: 3}}, deaf: true},
}

// galeSeeds is how many seeds each gale is tried with.
const galeSeeds = 2

func TestEachJobOfAGaleEndsOnce(t *testing.T) {
	for name, g := range gales {
		for seed := range uint64(scaled(galeSeeds, 1)) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := gale{workers: g.workers, budget: g.budget, deaf: g.deaf, d: newDice(seed), unit: time.Second, jobs: scaled(120, 60)}
					g.make(t)
					g.blow(t, 60, 20_000)
				})
			})
		}
	}
}

// The same on the real clock, where a lost wake-up shows that a bubble hides.
func TestEachJobOfAGaleEndsOnceOnTheRealClock(t *testing.T) {
	for name, g := range gales {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gale{workers: g.workers, budget: g.budget, deaf: g.deaf, d: newDice(rand.Uint64()), unit: 20 * time.Millisecond, jobs: 60}
			g.budget.Total.Rate *= 50
			g.make(t)
			g.blow(t, 40, 1500)
		})
	}
}
