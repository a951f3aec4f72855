package jobpoll_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stored reads a job's record.
func storedRecord(t testing.TB, s jobpoll.Store, k jobpoll.Key) (jobpoll.Record, map[string]any) {
	t.Helper()
	rec, err := s.Get(t.Context(), jobpoll.RecordJob, fmt.Sprintf("%d:%s/%s", len(k.Route), k.Route, k.ID))
	require.NoError(t, err)
	var data map[string]any
	require.NoError(t, json.Unmarshal(rec.Data, &data))
	return rec, data
}

// onStore is a rig on a store, which may follow another one as after a restart.
func onStore(t testing.TB, store jobpoll.Store, before *rig, change func(*rig, *jobpoll.Config)) *rig {
	t.Helper()
	clock, prov := polltest.NewClock(time.Time{}), (*polltest.Provider)(nil)
	if before != nil {
		before.Stop()
		clock, prov = before.Clock, before.prov
	}
	r := rigOn(t, clock, prov, func(r *rig, c *jobpoll.Config) {
		c.Store = store
		if change != nil {
			change(r, c)
		}
	})
	if before != nil {
		r.start = before.start
	}
	return r
}

func TestJobIsStoredBeforeWatchReturnsAndItsEndBeforeOnStop(t *testing.T) {
	store := newShakyStore(nil)
	var order []string
	var mu sync.Mutex
	note := func(s string) { mu.Lock(); order = append(order, s); mu.Unlock() }
	store.seen = func(batch []jobpoll.Record) {
		for _, rec := range batch {
			switch {
			case strings.Contains(string(rec.Data), `"told":true`):
				note("stored as told")
			case strings.Contains(string(rec.Data), `"outcome"`):
				note("stored outcome")
			}
		}
	}
	r := onStore(t, store, nil, func(_ *rig, c *jobpoll.Config) {
		c.Hooks.Stopped = func(jobpoll.StopEvent) { note("Stopped") }
		c.Callbacks.OnStop = func(context.Context, jobpoll.Outcome) error { note("OnStop"); return nil }
	})
	r.prov.Add("j", "running; at 20s succeeded output {\"a\":1}")
	require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "j", ClientKey: "c", Ref: "ref", Profile: "p"}))
	rec, data := storedRecord(t, store, key("j"))
	assert.Equal(t, "r", rec.Route)
	assert.Positive(t, rec.Rev)
	assert.True(t, rec.ExpiresAt.IsZero())
	assert.Equal(t, "c", data["job"].(map[string]any)["client_key"])
	r.to(12 * time.Second)
	rec, data = storedRecord(t, store, key("j"))
	assert.Greater(t, rec.Rev, uint64(1), "the pacing follows")
	assert.EqualValues(t, 2, data["polls"])
	r.to(21 * time.Second)
	mu.Lock()
	assert.Equal(t, []string{"stored outcome", "Stopped", "OnStop", "stored as told"}, order)
	mu.Unlock()
	rec, _ = storedRecord(t, store, key("j"))
	assert.Equal(t, rec.UpdatedAt.Add(30*24*time.Hour), rec.ExpiresAt)
	err := r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "j"})
	require.ErrorIs(t, err, jobpoll.ErrResolved)
}

func TestEndIsToldAcrossRestartsUntilTakenAndThenNeverAgain(t *testing.T) {
	store := newShakyStore(nil)
	var calls []jobpoll.Outcome
	var mu sync.Mutex
	var fail atomic.Bool
	fail.Store(true)
	onStop := func(_ *rig, c *jobpoll.Config) {
		c.Callbacks.OnStop = func(_ context.Context, o jobpoll.Outcome) error {
			mu.Lock()
			calls = append(calls, o)
			mu.Unlock()
			if fail.Load() {
				return errors.New("queue is down")
			}
			return nil
		}
	}
	a := onStore(t, store, nil, onStop)
	a.prov.Add("j", `running; at 4s failed filtered "no" output {"x":[1,2]}`)
	a.watch("j")
	a.to(13 * time.Second) // at 5, 6, 8, 12
	require.Len(t, calls, 4)
	b := onStore(t, store, a, onStop)
	assert.Len(t, calls, 5)
	assert.Equal(t, 1, b.Metrics().Callbacks.Undelivered)
	assert.Zero(t, b.Metrics().Total.Unresolved)
	c := onStore(t, store, b, onStop)
	assert.Len(t, calls, 6)
	fail.Store(false)
	c.Clock.Advance(5 * time.Minute)
	require.Len(t, calls, 7)
	for _, o := range calls {
		want, got := calls[0], o
		assert.Equal(t, want, got, "the same outcome each time, to the byte")
	}
	d := onStore(t, store, c, onStop)
	d.Clock.Advance(time.Hour)
	assert.Len(t, calls, 7)
	assert.Equal(t, 1, d.prov.Total())
	_, err := d.Wait(t.Context(), jobpoll.Job{Route: "r", ID: "j"})
	require.ErrorIs(t, err, jobpoll.ReasonFailed, "a stored outcome")
}

// A callback that has returned nil while Run ends is not called again.
func TestDeliveryIsStoredAlsoWhileRunEnds(t *testing.T) {
	store := newShakyStore(nil)
	var calls atomic.Int64
	inCallback := make(chan struct{})
	onStop := func(_ *rig, c *jobpoll.Config) {
		c.Callbacks.OnStop = func(ctx context.Context, _ jobpoll.Outcome) error {
			if calls.Add(1) == 1 {
				close(inCallback)
				<-ctx.Done() // ends with Run
			}
			return nil
		}
	}
	a := onStore(t, store, nil, onStop)
	a.prov.Add("j", "succeeded")
	a.watch("j")
	a.to(5 * time.Second)
	<-inCallback
	b := onStore(t, store, a, onStop)
	b.Clock.Advance(time.Hour)
	assert.EqualValues(t, 1, calls.Load())
	assert.Zero(t, b.Metrics().Callbacks.Undelivered)
}

// An end that came with the last breath of Run is not lost either.
func TestEndDuringTheGraceIsStored(t *testing.T) {
	store := newShakyStore(nil)
	a := onStore(t, store, nil, func(_ *rig, c *jobpoll.Config) { c.ShutdownGrace = 30 * time.Second })
	a.prov.Add("j", "succeeded slow 3s")
	a.watch("j")
	a.to(6 * time.Second)
	a.Stop()
	_, data := storedRecord(t, store, key("j"))
	require.NotNil(t, data["outcome"])
	b := onStore(t, store, a, nil)
	b.ended("j", jobpoll.ReasonSucceeded)
	assert.Equal(t, 1, b.prov.Total())
}

// B67(a), as far as hints of the job go
func TestRestartKeepsPacingErrorsAndLimits(t *testing.T) {
	store := newShakyStore(nil)
	rules := func(_ *rig, c *jobpoll.Config) {
		c.Stop.MaxAge = 30 * time.Minute
		c.Routes[0].Schedule = jobpoll.Schedule{Unknown: jobpoll.Bucket{First: jobpoll.Span{Min: 2 * time.Second, Max: 2 * time.Second}, Later: jobpoll.Span{Min: time.Minute, Max: time.Minute}}, Jitter: jobpoll.NoJitter}
	}
	a := onStore(t, store, nil, rules)
	a.prov.Add("j", "running; at 1s 503; at 60s 503 retry-after 70s job once; at 131s 503 once; at 132s running")
	a.watch("j")
	a.to(100 * time.Second)
	at := a.looks("j")
	last := at[len(at)-1]
	require.Less(t, last, 80.0)
	info, _ := a.Job(key("j"))
	errs := info.Errors
	require.GreaterOrEqual(t, errs, 3)
	a.to(110 * time.Second)
	b := onStore(t, store, a, rules)
	info, ok := b.Job(key("j"))
	require.True(t, ok)
	assert.Equal(t, errs, info.Errors)
	assert.Equal(t, errs, b.Metrics().Total.LongestStreak, "the streak is visible after a restart too")
	b.to(time.Duration(last)*time.Second + 69*time.Second)
	assert.Len(t, b.looks("j"), len(at), "no poll before the wait is over")
	b.to(31 * time.Minute)
	o := b.ended("j", jobpoll.ReasonDeadline)
	assert.InDelta(t, 1800, o.DetectedAt.Sub(b.start).Seconds(), 1, "the limit counts from the submission")
	assert.Equal(t, len(b.looks("j")), o.Polls, "the count goes on")
	assert.EqualValues(t, 1, b.Metrics().Total.Restored)
}

// B67(b)
func TestRestartKeepsTheLimitOfTheDispatch(t *testing.T) {
	store := newShakyStore(nil)
	limit := func(d time.Duration) func(*rig, *jobpoll.Config) {
		return func(_ *rig, c *jobpoll.Config) { c.Stop.MaxAge = d; c.Routes[0].Schedule = every(time.Minute) }
	}
	a := onStore(t, store, nil, limit(time.Hour))
	a.prov.Default("running")
	a.watch("j")
	a.to(30 * time.Minute)
	b := onStore(t, store, a, limit(10*time.Minute))
	b.watch("new")
	b.to(59 * time.Minute)
	b.ended("new", jobpoll.ReasonDeadline)
	assert.Len(t, b.rec.Outcomes(), 1)
	b.to(61 * time.Minute)
	b.ended("j", jobpoll.ReasonDeadline)
}

// B68(a)
func TestRestoreTakesUpWhatIsUnresolvedOnly(t *testing.T) {
	store := newShakyStore(nil)
	a := onStore(t, store, nil, nil)
	a.prov.Default("running")
	a.prov.Add("done", "succeeded")
	a.watch("done", "j1", "j2", "j3")
	a.to(8 * time.Second)
	a.ended("done", jobpoll.ReasonSucceeded)
	a.Stop()
	clock := a.Clock
	b := &rig{t: t, prov: polltest.NewProvider(clock), rec: &polltest.Recorder{}, start: a.start}
	b.prov.Default("running")
	p, err := jobpoll.New(jobpoll.Config{Clock: clock, Store: store, Callbacks: b.rec.Callbacks(), Routes: []jobpoll.Route{b.route("r")}})
	require.NoError(t, err)
	n, err := p.Restore(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, n)
	n, err = p.Restore(t.Context())
	require.NoError(t, err)
	assert.Zero(t, n, "again changes nothing")
	a2 := onStore(t, store, a, nil)
	a2.Clock.Advance(12 * time.Second)
	assert.Len(t, a2.looks("done"), 1, "neither polled")
	assert.Empty(t, a2.rec.Outcomes(), "nor told again")
	for _, id := range []string{"j1", "j2", "j3"} {
		assert.Greater(t, len(a2.looks(id)), 1, id)
	}
	info, ok := a2.Job(key("done"))
	require.True(t, ok)
	assert.True(t, info.Delivered)
}

// B68(b)
func TestRestartSpreadsOverdueJobsMostOverdueFirst(t *testing.T) {
	store := newShakyStore(nil)
	a := onStore(t, store, nil, func(_ *rig, c *jobpoll.Config) { c.Routes[0].Schedule = every(10 * time.Minute) })
	a.prov.Default("running")
	for _, id := range ids("j", 500) {
		a.watch(id)
		a.Clock.Advance(time.Second)
	}
	b := onStore(t, store, a, func(_ *rig, c *jobpoll.Config) {
		c.Budget = jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 5, Burst: 5}})
		c.Routes[0].Schedule = every(10 * time.Minute)
	})
	b.Stop()
	b.Clock.Advance(2 * time.Hour)
	b.prov.RateLimit(5, 5, 10*time.Second)
	began := b.Clock.Now()
	c := onStore(t, store, b, func(_ *rig, c *jobpoll.Config) {
		c.Budget = jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 5, Burst: 5}})
		c.Stop.MaxAge = 24 * time.Hour
		c.Routes[0].Schedule = every(10 * time.Minute)
	})
	c.Clock.Advance(130 * time.Second)
	var firsts []time.Time
	for _, id := range ids("j", 500) {
		at := c.prov.Looks(id)
		require.NotEmpty(t, at, id)
		firsts = append(firsts, at[0])
	}
	assert.True(t, slices.IsSortedFunc(firsts, time.Time.Compare), "most overdue first")
	assert.GreaterOrEqual(t, firsts[499].Sub(began), 99*time.Second)
	requirePaced(t, c.prov.Starts(), 5, 5)
	assert.Zero(t, c.prov.Limited(), "no 429 caused by ourselves")
}

// B71
func TestWatchingTheSameJobManyTimesIsOneStream(t *testing.T) {
	store := jobpoll.NewMemoryStore(nil)
	synctest.Test(t, func(t *testing.T) {
		prov := polltest.NewProvider(bubbleClock{})
		prov.AddAt("j", time.Now(), "running; at 10s 429 retry-after 6h once job; at 7h succeeded")
		rec := &polltest.Recorder{}
		poller := func() (*jobpoll.Poller, func()) {
			p, err := jobpoll.New(jobpoll.Config{Store: store, Callbacks: rec.Callbacks(), Stop: jobpoll.StopRules{MaxAge: 24 * time.Hour},
				Routes: []jobpoll.Route{{Name: "r", Checker: prov, Schedule: every(10 * time.Second)}}})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- p.Run(ctx) }()
			return p, func() { cancel(); require.NoError(t, <-ended) }
		}
		var waiters sync.WaitGroup
		wait := func(p *jobpoll.Poller) {
			waiters.Go(func() {
				o, err := p.Wait(t.Context(), jobpoll.Job{Route: "r", ID: "j"})
				assert.NoError(t, err)
				assert.Equal(t, jobpoll.ReasonSucceeded, o.Reason)
			})
		}
		p, stop := poller()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { assert.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "j"})) })
		}
		wg.Wait()
		time.Sleep(5 * time.Second)
		stop()
		p, stop = poller()
		require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "j"}))
		wait(p)
		time.Sleep(time.Hour)
		require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "j"}), "while it waits 6 h")
		require.NoError(t, p.PollNow(key("j")))
		wait(p)
		time.Sleep(4*time.Hour + 59*time.Minute)
		assert.Equal(t, 1, prov.Total(), "one stream: one look in six hours")
		time.Sleep(time.Hour + 2*time.Minute)
		waiters.Wait()
		assert.Len(t, rec.Outcomes(), 1)
		assert.EqualValues(t, 1, p.Metrics().Total.Restored+p.Metrics().Total.Watched)
		stop()
	})
}

func TestWatchBeforeRunGoesOnWithTheStoredMemory(t *testing.T) {
	store := newShakyStore(nil)
	a := onStore(t, store, nil, nil)
	a.prov.Default("running 40%")
	a.watch("j")
	a.to(22 * time.Second)
	a.Stop()
	p, err := jobpoll.New(jobpoll.Config{Clock: a.Clock, Store: store, Routes: []jobpoll.Route{a.route("r")}})
	require.NoError(t, err)
	require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "j"}))
	info, ok := p.Job(key("j"))
	require.True(t, ok)
	assert.Equal(t, 4, info.Polls)
	assert.InDelta(t, 0.4, info.Progress, 1e-9)
	n, err := p.Restore(t.Context())
	require.NoError(t, err)
	assert.Zero(t, n)
	assert.EqualValues(t, 1, p.Metrics().Total.Restored)
}

func TestWaitOutlastingTheLimitIsNotLookedAtAfterARestart(t *testing.T) {
	store := newShakyStore(nil)
	limit := func(_ *rig, c *jobpoll.Config) { c.Stop.MaxAge = 30 * time.Minute }
	a := onStore(t, store, nil, limit)
	a.prov.Add("j", "429 retry-after 3600s job")
	a.prov.Add("k", "429 retry-after 3600s job")
	a.watch("j", "k")
	a.to(time.Minute)
	b := onStore(t, store, a, limit)
	b.to(10 * time.Minute)
	assert.Equal(t, []float64{5}, b.looks("j"), "parked also after a restart")
	b.Stop()
	b.Clock.Advance(25 * time.Minute)
	c := onStore(t, store, b, limit)
	c.ended("j", jobpoll.ReasonRateLimited)
	c.ended("k", jobpoll.ReasonRateLimited)
	c.Clock.Advance(time.Hour)
	assert.Equal(t, []float64{5}, c.looks("j"))
	c.atZero()
}

func TestRecordsOfRoutesAddedLaterWaitForThem(t *testing.T) {
	store := newShakyStore(nil)
	a := onStore(t, store, nil, nil)
	a.prov.Default("running")
	a.watch("j")
	b := onStore(t, store, a, func(_ *rig, c *jobpoll.Config) { c.Routes = nil })
	_, ok := b.Job(key("j"))
	require.False(t, ok)
	require.NoError(t, b.AddRoute(b.route("r")))
	b.Clock.Advance(10 * time.Second)
	assert.NotEmpty(t, b.looks("j"))
}

func TestBadRecordsAreReportedAndLeaveTheOthersAlone(t *testing.T) {
	store := newShakyStore(nil)
	a := onStore(t, store, nil, nil)
	a.prov.Default("running")
	a.watch("good")
	a.Stop()
	put := func(kind jobpoll.RecordKind, id, data string) {
		require.NoError(t, store.Put(t.Context(), []jobpoll.Record{{Kind: kind, ID: id, Route: "r", Data: []byte(data)}}))
	}
	put(jobpoll.RecordJob, "torn", `{"v":1,"job":{"Rou`)
	put(jobpoll.RecordJob, "newer", `{"v":99,"job":{"route":"r","id":"newer"}}`)
	put(jobpoll.RecordJob, "foreign", `{"hello":1}`)
	put(jobpoll.RecordNotice, "torn", `x`)
	put(jobpoll.RecordProfile, "other", `{}`)
	var failed []error
	var mu sync.Mutex
	b := onStore(t, store, a, func(_ *rig, c *jobpoll.Config) {
		c.Hooks.StoreFailed = func(e jobpoll.StoreEvent) { mu.Lock(); failed = append(failed, e.Err); mu.Unlock() }
	})
	b.Clock.Advance(10 * time.Second)
	assert.NotEmpty(t, b.looks("good"))
	mu.Lock()
	assert.Len(t, failed, 5)
	mu.Unlock()
	assert.EqualValues(t, 5, b.Metrics().StoreErrors)
	b.Stop()
	assert.Equal(t, 6, store.Len(), "left where they are")
	p, err := jobpoll.New(jobpoll.Config{Clock: b.Clock, Store: store, Routes: []jobpoll.Route{b.route("r")}})
	require.NoError(t, err)
	n, err := p.Restore(t.Context())
	assert.Equal(t, 1, n)
	require.ErrorContains(t, err, "newer")
	require.ErrorContains(t, err, "version 99")
}

func TestWatchAnewGoesOnCountingRevisions(t *testing.T) {
	store := newShakyStore(nil)
	a := onStore(t, store, nil, nil)
	a.prov.Default("running")
	a.watch("j")
	a.to(12 * time.Second)
	require.NoError(t, a.Abandon(t.Context(), key("j"), nil))
	a.Clock.Settle()
	before, _ := storedRecord(t, store, key("j"))
	b := onStore(t, store, a, nil)
	b.watch("j")
	after, data := storedRecord(t, store, key("j"))
	assert.Greater(t, after.Rev, before.Rev)
	assert.Nil(t, data["outcome"])
	assert.True(t, after.ExpiresAt.IsZero())
}

// The end of the watch before is only in the store yet.
func TestWatchAnewBeforeRunGoesOnCountingRevisions(t *testing.T) {
	store := newShakyStore(nil)
	a := onStore(t, store, nil, nil)
	a.prov.Default("running")
	a.watch("j")
	a.to(12 * time.Second)
	require.NoError(t, a.Abandon(t.Context(), key("j"), nil))
	a.Clock.Settle()
	a.Stop()
	before, _ := storedRecord(t, store, key("j"))
	p, err := jobpoll.New(jobpoll.Config{Clock: a.Clock, Store: store, Routes: []jobpoll.Route{a.route("r")}})
	require.NoError(t, err)
	require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "j"}))
	after, data := storedRecord(t, store, key("j"))
	assert.Greater(t, after.Rev, before.Rev)
	assert.Nil(t, data["outcome"])
}
