package jobpoll_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// leaseHouse is a store, a clock and a provider that several Pollers share.
type leaseHouse struct {
	t     *testing.T
	clock *polltest.Clock
	store *jobpoll.MemoryStore
	prov  *polltest.Provider
	mu    sync.Mutex
	by    []string // who looked, in order
	told  []string // who told what
	owner []string // who became the owner, or not
}

func newLeaseHouse(t *testing.T) *leaseHouse {
	clock := polltest.NewClock(time.Time{})
	return &leaseHouse{t: t, clock: clock, store: jobpoll.NewMemoryStore(clock), prov: polltest.NewProvider(clock)}
}

func (h *leaseHouse) note(list *[]string, what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*list = append(*list, what)
}

// seen gives a list and forgets it.
func (h *leaseHouse) seen(list *[]string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := *list
	*list = nil
	return all
}

// enters starts a Poller, with a connection to the store that can be faulty.
func (h *leaseHouse) enters(name string, change func(*jobpoll.Config)) (leasePoller, *polltest.FaultyStore) {
	h.t.Helper()
	store := polltest.NewFaultyStore(h.store, h.clock)
	check := jobpoll.CheckerFunc(func(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
		h.note(&h.by, name)
		return h.prov.Check(ctx, job)
	})
	cfg := jobpoll.Config{
		Clock: h.clock, Store: store, Owner: name,
		Routes: []jobpoll.Route{{Name: "r", Checker: check, Schedule: every(5 * time.Second)}},
		Callbacks: jobpoll.Callbacks{OnStop: func(_ context.Context, o jobpoll.Outcome) error {
			h.note(&h.told, name+" "+o.Job.ID+" "+o.Reason.String())
			return nil
		}},
		Hooks: jobpoll.Hooks{OwnerChanged: func(e jobpoll.OwnerEvent) {
			assert.Equal(h.t, name, e.Name)
			what := " waits"
			if e.Owner {
				what = " owns"
			}
			h.note(&h.owner, name+what)
		}},
	}
	if change != nil {
		change(&cfg)
	}
	cfg.Rand = func() float64 { return 0.5 }
	p, err := jobpoll.New(cfg)
	require.NoError(h.t, err)
	end := polltest.Run(h.clock, p)
	stop := sync.OnceFunc(func() { require.NoError(h.t, end()) })
	h.t.Cleanup(stop)
	return leasePoller{p, stop}, store
}

type leasePoller struct {
	*jobpoll.Poller
	Stop func()
}

func (h *leaseHouse) after(d time.Duration) { h.t.Helper(); h.clock.Advance(d) }

// only asserts who has looked since it was last asked, and that somebody has.
func (h *leaseHouse) only(name string) {
	h.t.Helper()
	by := h.seen(&h.by)
	require.NotEmpty(h.t, by)
	for _, who := range by {
		require.Equal(h.t, name, who)
	}
}

func TestOneOfTwoPollersOwnsTheStoreAndTheOtherTakesOver(t *testing.T) {
	h := newLeaseHouse(t)
	h.prov.Default("running")
	h.prov.Add("early", "running; at 12s succeeded")
	h.prov.Add("late", "running; at 70s succeeded")
	a, _ := h.enters("a", nil)
	b, _ := h.enters("b", nil)
	assert.Equal(t, []string{"a owns", "b waits"}, h.seen(&h.owner))
	assert.True(t, a.Health().Owner)
	assert.Equal(t, jobpoll.Health{Running: true}, b.Health())
	for _, id := range []string{"early", "late"} {
		require.NoError(t, a.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id}))
	}

	// The one that waits takes nothing over.
	job := jobpoll.Job{Route: "r", ID: "early"}
	require.ErrorIs(t, b.Watch(t.Context(), job), jobpoll.ErrNotOwner)
	_, err := b.Wait(t.Context(), job)
	require.ErrorIs(t, err, jobpoll.ErrNotOwner)
	err = b.Notify(t.Context(), told("early", jobpoll.StateSucceeded))
	require.ErrorIs(t, err, jobpoll.ErrNotOwner)
	require.ErrorIs(t, err, jobpoll.ErrNotTaken)
	_, err = b.Restore(t.Context())
	require.ErrorIs(t, err, jobpoll.ErrNotOwner)
	require.ErrorIs(t, b.Drain(t.Context()), jobpoll.ErrNotOwner)
	require.ErrorIs(t, b.PollNow(job.Key()), jobpoll.ErrUnknownJob)
	require.ErrorIs(t, b.Run(t.Context()), jobpoll.ErrRunning, "waiting is running")

	h.after(50 * time.Second) // more than the lease: it is renewed
	h.only("a")
	assert.Equal(t, []string{"a early succeeded"}, h.seen(&h.told))
	a.Stop()
	h.after(jobpoll.DefaultLeaseTTL / 3)
	assert.Equal(t, []string{"b owns"}, h.seen(&h.owner), "at once after one that ended well")
	h.after(time.Minute)
	h.only("b")
	assert.Equal(t, []string{"b late succeeded"}, h.seen(&h.told))
	err = b.Watch(t.Context(), job)
	require.ErrorIs(t, err, jobpoll.ErrResolved)
	assert.Zero(t, b.Metrics().Total.Unresolved)
}

func TestAnOwnerThatDiedIsReplacedOnceItsLeaseHasLapsed(t *testing.T) {
	h := newLeaseHouse(t)
	h.prov.Default("running")
	_, err := h.store.Lease(t.Context(), "dead", jobpoll.DefaultLeaseTTL)
	require.NoError(t, err)
	dead := jobpoll.Record{Kind: jobpoll.RecordJob, ID: "1:r/x", Route: "r", Rev: 1, Data: jobData("")}
	require.NoError(t, h.store.Put(t.Context(), []jobpoll.Record{dead}))
	b, _ := h.enters("b", nil)
	h.after(jobpoll.DefaultLeaseTTL - time.Second)
	assert.Empty(t, h.seen(&h.by))
	h.after(jobpoll.DefaultLeaseTTL/3 + time.Second)
	assert.Equal(t, []string{"b waits", "b owns"}, h.seen(&h.owner))
	h.after(10 * time.Second)
	h.only("b")
	assert.EqualValues(t, 1, b.Metrics().Total.Restored)
}

func TestAnOwnerOfTheSameNameGoesOnAtOnce(t *testing.T) {
	h := newLeaseHouse(t)
	h.prov.Default("running")
	_, err := h.store.Lease(t.Context(), "b", time.Hour)
	require.NoError(t, err)
	b, _ := h.enters("b", nil)
	require.True(t, b.Health().Owner)
}

func TestWithoutALeaseNobodyIsWaitedFor(t *testing.T) {
	h := newLeaseHouse(t)
	_, err := h.store.Lease(t.Context(), "dead", time.Hour)
	require.NoError(t, err)
	b, store := h.enters("b", func(c *jobpoll.Config) { c.LeaseTTL = -1 })
	require.True(t, b.Health().Owner)
	require.NoError(t, b.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "j"}))
	for _, c := range store.Calls() {
		assert.NotEqual(t, "Lease", c.Op)
		for _, rec := range c.Batch {
			assert.Zero(t, rec.Fence)
		}
	}
}

// An owner that the store does not hear of goes on polling, since most likely
// nobody reaches the store, but tells nothing that another could tell too.
func TestAnOwnerThatIsCutOffTellsNothingAndStepsBackWhenItHears(t *testing.T) {
	h := newLeaseHouse(t)
	h.prov.Add("j", "running; at 100s succeeded")
	refuse := true
	a, cut := h.enters("a", func(c *jobpoll.Config) {
		stop := c.Callbacks.OnStop
		c.Callbacks.OnStop = func(ctx context.Context, o jobpoll.Outcome) error {
			if o.Job.ID == "refused" && refuse {
				h.note(&h.told, "a refused")
				return errors.New("not now")
			}
			return stop(ctx, o)
		}
	})
	h.prov.Add("refused", "succeeded")
	require.NoError(t, a.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "j"}))
	require.NoError(t, a.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "refused"}))
	h.after(6 * time.Second)
	assert.NotEmpty(t, h.seen(&h.told))
	waited := make(chan error, 1)
	go func() { _, err := a.Wait(t.Context(), jobpoll.Job{Route: "r", ID: "j"}); waited <- err }()
	cut.Plan(func(polltest.StoreCall) polltest.StoreFault { return polltest.StoreFault{Err: errStoreDown} })
	h.after(20 * time.Second)
	assert.NotEmpty(t, h.seen(&h.told), "the lease is still good")
	refuse = false
	h.after(15 * time.Second)
	h.seen(&h.told)
	h.seen(&h.by)
	h.after(4 * time.Minute)
	h.only("a") // polling goes on
	assert.Empty(t, h.seen(&h.told), "but nothing is told")
	assert.True(t, a.Health().Store.Failing)

	b, _ := h.enters("b", nil)
	h.after(time.Minute)
	slices.Sort(h.told)
	assert.Equal(t, []string{"b j succeeded", "b refused succeeded"}, h.seen(&h.told))
	cut.Plan(nil)
	h.after(10 * time.Minute) // it hears of it when it tries to write, or to renew
	assert.Equal(t, []string{"a owns", "b owns", "a waits"}, h.seen(&h.owner))
	assert.Empty(t, h.seen(&h.told), "each is told once")
	assert.False(t, a.Health().Store.Failing)
	require.ErrorIs(t, <-waited, jobpoll.ErrNotOwner)
	assert.Zero(t, a.Metrics().Total.Unresolved)
	assert.Zero(t, a.Metrics().Callbacks.Undelivered)
	for name, m := range a.Metrics().Budgets {
		assert.Zero(t, m.Jobs, name)
	}
	b.Stop()
	h.after(time.Minute)
	assert.Equal(t, []string{"a owns"}, h.seen(&h.owner))
	_, err := a.Wait(t.Context(), jobpoll.Job{Route: "r", ID: "j"})
	require.NoError(t, err, "it knows what the other did")
}

func TestAWriteOfAnOwnerThatWasReplacedIsRefusedAndEndsItsTerm(t *testing.T) {
	h := newLeaseHouse(t)
	h.prov.Default("running")
	h.prov.Add("ends", "running; at 41s succeeded")
	a, store := h.enters("a", nil)
	require.NoError(t, a.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "ends"}))
	store.Plan(func(c polltest.StoreCall) polltest.StoreFault {
		switch {
		case c.Op == "Lease":
			return polltest.StoreFault{Err: errStoreDown}
		case c.Op == "Put" && !strings.Contains(string(c.Batch[0].Data), "outcome"):
			return polltest.StoreFault{Err: errStoreDown} // only the end gets through
		}
		return polltest.StoreFault{}
	})
	h.after(40 * time.Second)
	other, err := h.store.Lease(t.Context(), "other", time.Hour)
	require.NoError(t, err)
	before, err := h.store.Get(t.Context(), jobpoll.RecordJob, "1:r/ends")
	require.NoError(t, err)
	h.after(20 * time.Second)
	after, err := h.store.Get(t.Context(), jobpoll.RecordJob, "1:r/ends")
	require.NoError(t, err)
	assert.Equal(t, before, after, "nothing is written over the new owner's")
	assert.Empty(t, h.seen(&h.told))
	assert.False(t, a.Health().Owner)
	h.seen(&h.by)
	h.after(time.Minute)
	assert.Empty(t, h.seen(&h.by), "nor is it polled any more")
	store.Plan(nil)
	_, err = h.store.Lease(t.Context(), "other", 0)
	require.NoError(t, err)
	h.after(20 * time.Second)
	assert.Equal(t, []string{"a ends succeeded"}, h.seen(&h.told), "told by whoever has the lease")
	got, err := h.store.Lease(t.Context(), "a", time.Minute)
	require.NoError(t, err)
	assert.Greater(t, got, other)
}

// A process that was suspended does not look before it knows that it may.
func TestAnOwnerThatWasSuspendedAsksBeforeItLooks(t *testing.T) {
	for _, monotonicRuns := range []bool{true, false} {
		h := newLeaseHouse(t)
		h.prov.Default("running")
		a, store := h.enters("a", nil)
		require.NoError(t, a.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "j"}))
		h.after(7 * time.Second)
		h.only("a")
		var gone sync.Once
		store.Plan(func(c polltest.StoreCall) polltest.StoreFault {
			if c.Op == "Lease" {
				gone.Do(func() { // while it was away
					_, err := h.store.Lease(t.Context(), "a", 0)
					assert.NoError(t, err)
					_, err = h.store.Lease(t.Context(), "other", time.Hour)
					assert.NoError(t, err)
				})
			}
			return polltest.StoreFault{}
		})
		h.clock.Suspend(5*time.Minute, monotonicRuns)
		h.after(time.Minute)
		assert.Empty(t, h.seen(&h.by), "monotonic time runs: %v", monotonicRuns)
		assert.False(t, a.Health().Owner)
	}
}

func TestAJobWatchedBeforeRunIsTakenFromWhoeverHadItMeanwhile(t *testing.T) {
	h := newLeaseHouse(t)
	h.prov.Default("running")
	h.prov.Add("done", "running; at 12s succeeded")
	mine := func() *jobpoll.Poller {
		p, err := jobpoll.New(jobpoll.Config{Clock: h.clock, Store: h.store, Owner: "late",
			Routes:    []jobpoll.Route{{Name: "r", Checker: h.prov, Schedule: every(5 * time.Second)}},
			Callbacks: jobpoll.Callbacks{OnStop: func(context.Context, jobpoll.Outcome) error { h.note(&h.told, "late"); return nil }}})
		require.NoError(t, err)
		return p
	}()
	done, runs := jobpoll.Job{Route: "r", ID: "done"}, jobpoll.Job{Route: "r", ID: "runs"}
	require.NoError(t, mine.Watch(t.Context(), done))
	require.NoError(t, mine.Watch(t.Context(), runs))
	waited := make(chan error, 1)
	go func() { _, err := mine.Wait(t.Context(), done); waited <- err }()
	a, _ := h.enters("a", nil)
	h.after(20 * time.Second)
	assert.Equal(t, []string{"a done succeeded"}, h.seen(&h.told))
	a.Stop()
	end := polltest.Run(h.clock, mine)
	require.NoError(t, <-waited)
	h.after(10 * time.Second)
	assert.Empty(t, h.seen(&h.told), "not told again")
	info, ok := mine.Job(runs.Key())
	require.True(t, ok)
	assert.GreaterOrEqual(t, info.Polls, 5, "the count goes on")
	require.NoError(t, end())
}

func TestRunDoesNotBeginWithALeaseThatCannotBeAskedFor(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	store := polltest.NewFaultyStore(jobpoll.NewMemoryStore(clock), clock)
	store.Plan(func(c polltest.StoreCall) polltest.StoreFault { return polltest.StoreFault{Err: errStoreDown} })
	p, err := jobpoll.New(jobpoll.Config{Clock: clock, Store: store})
	require.NoError(t, err)
	require.ErrorIs(t, p.Run(t.Context()), errStoreDown)
	assert.Zero(t, clock.Timers())
	store.Plan(nil)
	end := polltest.Run(clock, p)
	assert.True(t, p.Health().Owner)
	require.NoError(t, end())
}

func TestAStandbyEndsWithItsContext(t *testing.T) {
	h := newLeaseHouse(t)
	_, err := h.store.Lease(t.Context(), "other", time.Hour)
	require.NoError(t, err)
	b, _ := h.enters("b", nil)
	h.after(time.Minute)
	b.Stop()
	_, err = h.store.Lease(t.Context(), "b", time.Hour)
	require.ErrorIs(t, err, jobpoll.ErrNotOwner, "what it never had it does not release")
}
