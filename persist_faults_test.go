package jobpoll_test

import (
	"context"
	"encoding/json"
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

// faultRun is one life of three jobs on a store of which one call goes wrong.
type faultRun struct {
	t     *testing.T
	clock *polltest.Clock
	inner *jobpoll.MemoryStore
	store *polltest.FaultyStore
	prov  *polltest.Provider

	mu   sync.Mutex
	told map[string]int
}

// onStop checks that what is told has been stored.
func (f *faultRun) onStop(ctx context.Context, o jobpoll.Outcome) error {
	rec, err := f.inner.Get(context.WithoutCancel(ctx), jobpoll.RecordJob, "1:r/"+o.Job.ID)
	assert.NoError(f.t, err)
	var v stored
	assert.NoError(f.t, json.Unmarshal(rec.Data, &v))
	assert.NotNil(f.t, v.Outcome, "%s is told before it is stored", o.Job.ID)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told[o.Job.ID]++
	return nil
}

func (f *faultRun) count(id string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.told[id]
}

// poller runs one, trying again while the store does not let it begin.
func (f *faultRun) poller() (*jobpoll.Poller, func() error) {
	p, err := jobpoll.New(jobpoll.Config{
		Clock: f.clock, Store: f.store, Owner: "me", Rand: func() float64 { return 0.5 },
		Routes:    []jobpoll.Route{{Name: "r", Checker: f.prov, Schedule: every(5 * time.Second)}},
		Callbacks: jobpoll.Callbacks{OnStop: f.onStop},
	})
	require.NoError(f.t, err)
	for range 3 {
		end := polltest.Run(f.clock, p)
		f.clock.Advance(30 * time.Second) // as long as a call of the store may take
		if p.Health().Running {
			return p, end
		}
		require.Error(f.t, end())
	}
	require.Fail(f.t, "Run does not begin")
	return nil, nil
}

// watch watches a job until that is acknowledged.
func (f *faultRun) watch(p *jobpoll.Poller, id string) {
	for range 3 {
		// On the clock, so that a store that hangs ends.
		ctx, cancel := context.WithCancelCause(f.t.Context())
		timer := f.clock.AfterFunc(time.Second, func() { cancel(context.DeadlineExceeded) })
		done := make(chan error, 1)
		go func() { done <- p.Watch(ctx, jobpoll.Job{Route: "r", ID: id}) }()
		var err error
		for waiting := true; waiting; {
			select {
			case err = <-done:
				waiting = false
			case <-time.After(5 * time.Millisecond):
				f.clock.Advance(time.Second)
			}
		}
		timer.Stop()
		cancel(nil)
		if err == nil {
			return
		}
	}
	require.Fail(f.t, "not watched")
}

// live runs the jobs to their ends and gives how many calls the store had.
func (f *faultRun) live() int {
	f.prov.Add("a", "running; at 8s succeeded")
	f.prov.Add("b", `running; at 13s failed filtered "no"`)
	f.prov.Add("c", "running; at 1h succeeded")
	p, end := f.poller()
	for _, id := range []string{"a", "b", "c"} {
		f.watch(p, id)
	}
	f.clock.Advance(8 * time.Minute)
	f.store.Plan(nil) // the fault is over, and it heals by itself
	f.clock.Advance(6 * time.Minute)
	assert.Positive(f.t, f.count("a"))
	assert.Positive(f.t, f.count("b"))
	assert.Zero(f.t, f.count("c"))
	h := p.Health().Store
	assert.False(f.t, h.Failing, "%v", h.Err)
	assert.Zero(f.t, p.Metrics().Callbacks.Undelivered)
	require.NoError(f.t, end())
	return len(f.store.Calls())
}

func newFaultRun(t *testing.T) *faultRun {
	clock := polltest.NewClock(time.Time{})
	clock.Report(t)
	inner := jobpoll.NewMemoryStore(clock)
	return &faultRun{t: t, clock: clock, inner: inner, store: polltest.NewFaultyStore(inner, clock), prov: polltest.NewProvider(clock), told: map[string]int{}}
}

// The promises of the store hold wherever one call of it goes wrong.
func TestAFaultInAnyCallOfTheStoreLosesNothing(t *testing.T) {
	calls := newFaultRun(t).live()
	require.Greater(t, calls, 20)
	// Renewals and flushes of the long rest are all alike.
	calls = min(calls, 24)
	faults := map[string]polltest.StoreFault{
		"error":                  {Err: errStoreDown},
		"error after the commit": {After: errStoreDown},
		"delay":                  {Delay: 50 * time.Second},
		"panic":                  {Panic: errors.New("driver")},
		"hang":                   {Hang: true},
	}
	for name, fault := range faults {
		for n := 1; n <= calls; n++ {
			t.Run(fmt.Sprintf("%s in call %d", name, n), func(t *testing.T) {
				f := newFaultRun(t)
				var hit polltest.StoreCall
				f.store.Plan(func(c polltest.StoreCall) polltest.StoreFault {
					if c.N == n {
						hit = c
						return fault
					}
					return polltest.StoreFault{}
				})
				f.live()
				once := f.count("a") == 1 && f.count("b") == 1
				assert.True(t, once, "told %v; the fault was in %s", f.told, hit.Op)
				looks := f.prov.Total()

				// The next process tells nothing again, and has the rest.
				p, end := f.poller()
				f.clock.Advance(20 * time.Second)
				assert.Equal(t, once, f.count("a") == 1 && f.count("b") == 1)
				assert.Greater(t, f.prov.Total(), looks)
				info, ok := p.Job(key("c"))
				assert.True(t, ok)
				assert.Greater(t, info.Polls, 100, "its memory goes on")
				require.NoError(t, end())
			})
		}
	}
}

// A store that is gone for long: everything goes on when it is back.
func TestAStoreThatIsGoneForAWhileHealsByItself(t *testing.T) {
	f := newFaultRun(t)
	var changes []jobpoll.StoreHealth
	var mu sync.Mutex
	p, err := jobpoll.New(jobpoll.Config{
		Clock: f.clock, Store: f.store, Owner: "me", Rand: func() float64 { return 0.5 },
		Routes:    []jobpoll.Route{{Name: "r", Checker: f.prov, Schedule: every(5 * time.Second)}},
		Callbacks: jobpoll.Callbacks{OnStop: f.onStop},
		Hooks: jobpoll.Hooks{StoreChanged: func(h jobpoll.StoreHealth) {
			mu.Lock()
			defer mu.Unlock()
			changes = append(changes, h)
		}},
	})
	require.NoError(t, err)
	end := polltest.Run(f.clock, p)
	f.prov.Default("running")
	f.prov.Add("a", "running; at 30s succeeded")
	for _, id := range []string{"a", "b", "c"} {
		require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id}))
	}
	f.clock.Advance(20 * time.Second)
	h := p.Health()
	assert.True(t, h.Running && h.Owner && !h.Store.Failing)
	assert.LessOrEqual(t, h.Store.Age, 5*time.Second)

	f.store.Plan(func(polltest.StoreCall) polltest.StoreFault { return polltest.StoreFault{Err: errStoreDown} })
	gone := f.clock.Now()
	looks := f.prov.Total()
	f.clock.Advance(10 * time.Minute)
	assert.Greater(t, f.prov.Total(), looks+2*100, "polling goes on")
	assert.Zero(t, f.count("a"), "nothing is told that is not stored")
	require.ErrorIs(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "d"}), errStoreDown)
	require.ErrorIs(t, p.Notify(t.Context(), jobpoll.Notice{Key: key("e"), Report: jobpoll.Report{State: jobpoll.StateSucceeded}}), jobpoll.ErrNotTaken)
	h = p.Health()
	assert.True(t, h.Store.Failing)
	require.ErrorIs(t, h.Store.Err, errStoreDown)
	body, err := json.Marshal(h)
	require.NoError(t, err)
	require.Contains(t, string(body), `"message":"`+errStoreDown.Error()+`"`, "a health check says why")
	assert.WithinDuration(t, gone, h.Store.Since, 11*time.Second)
	assert.InDelta(t, 3, h.Store.Behind, 1, "two jobs, the end of a third, and how long it took")
	assert.InDelta(t, (10 * time.Minute).Seconds(), h.Store.Age.Seconds(), 20)

	f.store.Plan(nil)
	f.clock.Advance(20 * time.Second)
	assert.Equal(t, 1, f.count("a"), "at once, not at the end of a backoff of minutes")
	h = p.Health()
	assert.False(t, h.Store.Failing)
	assert.Empty(t, h.Store.Message)
	assert.LessOrEqual(t, h.Store.Age, 5*time.Second)
	require.NoError(t, end())
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, changes, 2)
	assert.True(t, changes[0].Failing)
	require.ErrorIs(t, changes[0].Err, errStoreDown)
	assert.False(t, changes[1].Failing)
	assert.NoError(t, changes[1].Err)
}

// A record that the store never takes does not keep the others from being written.
func TestARecordThatTheStoreRefusesHoldsUpNoOther(t *testing.T) {
	f := newFaultRun(t)
	f.prov.Default("running")
	p, end := f.poller()
	for _, id := range ids("j", 40) {
		require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id}))
	}
	f.store.Plan(func(c polltest.StoreCall) polltest.StoreFault {
		for _, rec := range c.Batch {
			if rec.ID == "1:r/j007" {
				return polltest.StoreFault{Err: errors.New("too large")}
			}
		}
		return polltest.StoreFault{}
	})
	f.clock.Advance(5 * time.Minute)
	for _, id := range ids("j", 40) {
		if id == "j007" {
			continue
		}
		_, data := storedRecord(t, f.inner, key(id))
		polls, _ := data["polls"].(float64)
		assert.Greater(t, polls, 20.0, id)
	}
	require.NoError(t, end())
}

// Writes per look and per job, as promised.
func TestPacingCostsFewWrites(t *testing.T) {
	f := newFaultRun(t)
	f.prov.Default("running")
	p, end := f.poller()
	const jobs = 100
	for i, id := range ids("j", jobs) {
		f.prov.Add(id, fmt.Sprintf("running; at %dm succeeded", 5+i%3))
		require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id}))
		f.clock.Advance(50 * time.Millisecond)
	}
	f.clock.Advance(4 * time.Minute)
	m := p.Metrics()
	assert.LessOrEqual(t, float64(m.Store.Pacing), 0.1*float64(m.Total.Looks), "pacing, a look")
	f.clock.Advance(5 * time.Minute)
	m = p.Metrics()
	require.EqualValues(t, jobs, m.Total.Stops[jobpoll.ReasonSucceeded])
	assert.LessOrEqual(t, m.Store.LifeRecords, uint64(4*jobs), "steps of life, a job")
	assert.Equal(t, m.Store.Life, m.Store.LifeRecords)
	t.Logf("%.4f writes of pacing a look (%.2f records), %.2f of life a job", float64(m.Store.Pacing)/float64(m.Total.Looks),
		float64(m.Store.PacingRecords)/float64(m.Total.Looks), float64(m.Store.Life)/jobs)
	require.NoError(t, end())
}
