package jobpoll_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bubbleClock is package time for a Provider inside a synctest bubble.
type bubbleClock struct{}

func (bubbleClock) Now() time.Time { return time.Now() }
func (bubbleClock) AfterFunc(d time.Duration, f func()) jobpoll.Timer {
	return time.AfterFunc(d, f)
}

// bubble runs a Poller on package time inside a synctest bubble. body gets the
// start; after it Run is ended, and the bubble checks that nothing is left.
func bubble(t *testing.T, cfg func(*polltest.Provider) jobpoll.Config, body func(t *testing.T, p *jobpoll.Poller, prov *polltest.Provider, start time.Time)) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		prov := polltest.NewProvider(bubbleClock{})
		p, err := jobpoll.New(cfg(prov))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()
		synctest.Wait()
		body(t, p, prov, start)
		cancel()
		require.NoError(t, <-ended)
	})
}

// submissions are calls of the user's own in LaneSubmit.
type submissions struct {
	mu   sync.Mutex
	sent []time.Duration
}

func (s *submissions) start(t *testing.T, b *jobpoll.Budget, n int, start time.Time, took time.Duration) {
	for range n {
		go func() {
			done, err := b.Acquire(t.Context(), jobpoll.LaneSubmit)
			if !assert.NoError(t, err) {
				return
			}
			s.mu.Lock()
			s.sent = append(s.sent, time.Since(start))
			s.mu.Unlock()
			time.Sleep(took)
			done(nil)
		}()
	}
}

func (s *submissions) ages() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Duration(nil), s.sent...)
}

func accountBudget() *jobpoll.Budget {
	return jobpoll.NewBudget("account", jobpoll.Limits{
		Total:  jobpoll.Limit{Rate: 5, Burst: 5, Concurrent: 10},
		Status: jobpoll.LaneLimits{Reserve: jobpoll.Limit{Rate: 1}},
		Submit: jobpoll.LaneLimits{Reserve: jobpoll.Limit{Rate: 1}},
	})
}

// storedJobs is a store with n unresolved jobs of the route "r", left by a
// Poller that looked at each once and was shut down.
func storedJobs(t testing.TB, n int) (*jobpoll.MemoryStore, *polltest.Clock) {
	clock := polltest.NewClock(time.Time{})
	store := jobpoll.NewMemoryStore(clock)
	r := rigOn(t, clock, nil, func(_ *rig, c *jobpoll.Config) { c.Store = store })
	r.prov.Default("running")
	r.watch(ids("old", n)...)
	r.Clock.Advance(6 * time.Second)
	r.Stop()
	require.Equal(t, n, store.Len())
	return store, clock
}

// B54(a), B68(b)
func TestRestartBacklogDoesNotHoldUpSubmissions(t *testing.T) {
	old, clock := storedJobs(t, 500)
	synctest.Test(t, func(t *testing.T) {
		// The jobs come over into the bubble as a snapshot, as from a file.
		store := jobpoll.NewMemoryStore(nil)
		for rec, err := range old.Load(t.Context()) {
			require.NoError(t, err)
			require.NoError(t, store.Put(t.Context(), []jobpoll.Record{rec}))
		}
		time.Sleep(time.Until(clock.Now().Add(time.Hour))) // all overdue
		budget := accountBudget()
		prov := polltest.NewProvider(bubbleClock{})
		prov.Default("running")
		p, err := jobpoll.New(jobpoll.Config{Budget: budget, Store: store, Routes: []jobpoll.Route{{Name: "r", Checker: prov, Schedule: every(10 * time.Minute)}}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		start := time.Now()
		go func() { ended <- p.Run(ctx) }()
		time.Sleep(time.Second)
		var subs submissions
		subs.start(t, budget, 5, start, 100*time.Millisecond)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		assert.Len(t, subs.ages(), 5, "all sent by t=7")
		time.Sleep(120 * time.Second)
		assert.Equal(t, 500, prov.Total())
		at := prov.Starts()
		assert.GreaterOrEqual(t, at[499].Sub(at[0]), 99*time.Second, "spread")
		requirePaced(t, at, 5, 5)
		assert.Zero(t, prov.Limited())
		cancel()
		require.NoError(t, <-ended)
	})
}

// B54(b)
func TestHungStatusCallsLeaveASlotToASubmission(t *testing.T) {
	budget := accountBudget()
	bubble(t, func(prov *polltest.Provider) jobpoll.Config {
		prov.Default("running slow 10s")
		return jobpoll.Config{Budget: budget, Routes: []jobpoll.Route{{Name: "r", Checker: prov, Schedule: every(time.Second)}}}
	}, func(t *testing.T, p *jobpoll.Poller, prov *polltest.Provider, start time.Time) {
		for _, id := range ids("j", 20) {
			require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id}))
		}
		time.Sleep(5 * time.Second)
		require.Equal(t, 9, prov.InFlight(), "one slot is the submissions'")
		var subs submissions
		subs.start(t, budget, 1, time.Now(), 0)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Len(t, subs.ages(), 1)
	})
}

// B54(c)
func TestStatusLaneUsesTheWholeRateWhileNobodySubmits(t *testing.T) {
	budget := accountBudget()
	bubble(t, func(prov *polltest.Provider) jobpoll.Config {
		prov.Default("running; at 1s succeeded")
		return jobpoll.Config{Budget: budget, Routes: []jobpoll.Route{{Name: "r", Checker: prov, Schedule: every(2 * time.Second)}}}
	}, func(t *testing.T, p *jobpoll.Poller, prov *polltest.Provider, start time.Time) {
		for _, id := range ids("j", 50) {
			require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id}))
		}
		time.Sleep(2*time.Second + 9*time.Second + time.Millisecond)
		synctest.Wait()
		assert.Equal(t, 50, prov.Total(), "5 at once, then 5/s")
		requirePaced(t, prov.Starts(), 5, 5)
	})
}

// B54(d)
func TestReservesLeaveNoIdleSlotWhileItsLaneWaits(t *testing.T) {
	budget := jobpoll.NewBudget("account", jobpoll.Limits{
		Total:  jobpoll.Limit{Concurrent: 4},
		Status: jobpoll.LaneLimits{Reserve: jobpoll.Limit{Concurrent: 2}},
		Submit: jobpoll.LaneLimits{Reserve: jobpoll.Limit{Concurrent: 2}},
	})
	bubble(t, func(prov *polltest.Provider) jobpoll.Config {
		prov.Default("running slow 20s")
		return jobpoll.Config{Budget: budget, Routes: []jobpoll.Route{{Name: "r", Checker: prov, Schedule: every(time.Second)}}}
	}, func(t *testing.T, p *jobpoll.Poller, prov *polltest.Provider, start time.Time) {
		require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "long"}))
		time.Sleep(2 * time.Second)
		var subs submissions
		subs.start(t, budget, 3, time.Now(), 5*time.Second)
		synctest.Wait()
		assert.Len(t, subs.ages(), 2)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		assert.Len(t, subs.ages(), 3)
		time.Sleep(6 * time.Second)
	})
}

// B53 (without submissions of the library)
func TestJobSlotsAreFreedExactlyOnceByEveryEnd(t *testing.T) {
	budget := jobpoll.NewBudget("account", jobpoll.Limits{Jobs: 5})
	inUse := func(p *jobpoll.Poller) int { return p.Metrics().Budgets["account"].Jobs }
	bubble(t, func(prov *polltest.Provider) jobpoll.Config {
		prov.Default("running")
		prov.Add("succeeds", "running; at 3s succeeded")
		prov.Add("fails", "running; at 3s failed")
		prov.Add("canceled", "queued; at 3s canceled")
		prov.Add("twice", "running; at 100s succeeded")
		prov.Add("panics", "running; at 3s succeeded")
		panicked := false
		return jobpoll.Config{
			Budget: budget, Stop: jobpoll.StopRules{MaxAge: 10 * time.Minute},
			Routes: []jobpoll.Route{{Name: "r", Checker: prov, Schedule: every(2 * time.Second)}},
			Callbacks: jobpoll.Callbacks{OnStop: func(_ context.Context, o jobpoll.Outcome) error {
				if o.Job.ID == "panics" && !panicked {
					panicked = true
					panic("user's fault")
				}
				return nil
			}},
		}
	}, func(t *testing.T, p *jobpoll.Poller, _ *polltest.Provider, start time.Time) {
		for _, id := range []string{"succeeds", "fails", "canceled", "twice", "panics", "age limit"} {
			require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id}), "Watch never waits")
			require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id}), "again: the same stream")
		}
		assert.Equal(t, 6, inUse(p), "Watch may exceed the limit")
		var subs submissions
		subs.start(t, budget, 1, start, 0)
		synctest.Wait()
		assert.Empty(t, subs.ages(), "a submission waits while the account is full")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Len(t, subs.ages(), 1, "slots were freed")
		assert.Equal(t, 2, inUse(p))
		end := jobpoll.Notice{Key: key("twice"), Report: jobpoll.Report{State: jobpoll.StateSucceeded}, Trust: jobpoll.TrustAuthoritative}
		for range 3 {
			require.NoError(t, p.Notify(t.Context(), end))
		}
		synctest.Wait()
		assert.Equal(t, 1, inUse(p))
		time.Sleep(11 * time.Minute)
		assert.Equal(t, 0, inUse(p), "the age limit frees the last")
		assert.EqualValues(t, 1, p.Metrics().Total.Stops[jobpoll.ReasonDeadline])
		assert.EqualValues(t, 1, p.Metrics().Panics)
	})
}

func TestJobSlotOutlivesAnEarlyStopUntilTheAgeLimit(t *testing.T) {
	budget := jobpoll.NewBudget("account", jobpoll.Limits{Jobs: 2})
	inUse := func(p *jobpoll.Poller) int { return p.Metrics().Budgets["account"].Jobs }
	bubble(t, func(prov *polltest.Provider) jobpoll.Config {
		prov.Default("running")
		return jobpoll.Config{Budget: budget, Stop: jobpoll.StopRules{MaxAge: 10 * time.Minute},
			Routes: []jobpoll.Route{{Name: "r", Checker: prov, Schedule: every(5 * time.Second)}}}
	}, func(t *testing.T, p *jobpoll.Poller, _ *polltest.Provider, start time.Time) {
		for _, id := range []string{"waits", "late", "hinted", "again"} {
			require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id}))
		}
		time.Sleep(time.Minute)
		for _, id := range []string{"waits", "late", "hinted", "again"} {
			require.NoError(t, p.Abandon(t.Context(), key(id), errors.New("user left")))
		}
		synctest.Wait()
		assert.Equal(t, 4, inUse(p), "the remote jobs may still run")
		late := jobpoll.Notice{Key: key("late"), Report: jobpoll.Report{State: jobpoll.StateFailed}, Trust: jobpoll.TrustAuthoritative}
		require.NoError(t, p.Notify(t.Context(), late))
		assert.Equal(t, 3, inUse(p), "a late end frees the slot")
		late.Key, late.Trust = key("hinted"), jobpoll.TrustHint
		require.NoError(t, p.Notify(t.Context(), late))
		assert.Equal(t, 3, inUse(p), "a hint proves nothing")
		late.Trust = jobpoll.TrustAuthoritative
		require.NoError(t, p.Notify(t.Context(), late))
		assert.Equal(t, 2, inUse(p), "also after a hint of the same")
		require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "again", SubmittedAt: start}))
		assert.Equal(t, 2, inUse(p), "watched anew, it is still one job")
		var subs submissions
		subs.start(t, budget, 1, start, 0)
		time.Sleep(8*time.Minute + 50*time.Second)
		synctest.Wait()
		assert.Empty(t, subs.ages())
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Len(t, subs.ages(), 1)
		assert.InDelta(t, 600, subs.ages()[0].Seconds(), 0.1, "at the age limit, not with the next look")
		assert.Equal(t, 0, inUse(p))
	})
}

func TestManyHoldsEndEachAtItsTime(t *testing.T) {
	budget := jobpoll.NewBudget("account", jobpoll.Limits{Jobs: 1})
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) { c.Budget = budget })
	n := 3000
	for i := range n {
		require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: fmt.Sprint(i), SubmittedAt: r.start.Add(-time.Duration(i) * time.Second)}))
	}
	for i := range n {
		require.NoError(t, r.Abandon(t.Context(), key(fmt.Sprint(i)), nil))
	}
	r.Clock.Settle()
	assert.Equal(t, n, r.Metrics().Budgets["account"].Jobs)
	r.to(2*time.Hour - 1000*time.Second)
	assert.InDelta(t, 1000, r.Metrics().Budgets["account"].Jobs, 1)
	r.to(2 * time.Hour)
	r.atZero()
}
