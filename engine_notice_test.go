package jobpoll_test

import (
	"context"
	"fmt"
	"slices"
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

// told is an authoritative notice of the route "r".
func told(id string, s jobpoll.State) jobpoll.Notice {
	return jobpoll.Notice{Key: key(id), Report: jobpoll.Report{State: s}, Trust: jobpoll.TrustAuthoritative}
}

// B60
func TestCopiesOfANoticeAndAPollEndAJobOnce(t *testing.T) {
	rounds := 1000
	if testing.Short() {
		rounds = 200
	}
	bubble(t, func(prov *polltest.Provider) jobpoll.Config {
		return jobpoll.Config{
			Routes: []jobpoll.Route{{Name: "r", Checker: prov, Schedule: every(5 * time.Second)}},
		}
	}, func(t *testing.T, p *jobpoll.Poller, prov *polltest.Provider, start time.Time) {
		for round := range rounds {
			id := fmt.Sprint(round)
			prov.AddAt(id, time.Now(), "succeeded")
			require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id}))
			time.Sleep(5*time.Second - time.Duration(round%2)) // the poll goes out at this instant, or an instant later
			var wg sync.WaitGroup
			e1 := told(id, jobpoll.StateSucceeded)
			e1.EventID = "E" + id
			for range 20 {
				wg.Go(func() { assert.NoError(t, p.Notify(t.Context(), e1)) })
			}
			wg.Wait()
			synctest.Wait()
		}
		m := p.Metrics()
		assert.EqualValues(t, rounds, m.Total.Stops[jobpoll.ReasonSucceeded])
		assert.EqualValues(t, rounds, m.Total.PollsPerCompletion.Count)
		assert.EqualValues(t, 20*rounds, m.Total.Webhook.Notices)
		w := m.Total.Webhook
		assert.EqualValues(t, w.Notices, w.Applied+w.Duplicates, "%+v", w)
		assert.Zero(t, m.Total.InFlight)
		assert.Zero(t, m.Total.Backlog)
		assert.Zero(t, m.Callbacks.Undelivered)
	})
}

func TestOneTerminalCallbackHoweverManyTellTheEnd(t *testing.T) {
	var stops atomic.Int64
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
		c.Callbacks = jobpoll.Callbacks{OnStop: func(context.Context, jobpoll.Outcome) error { stops.Add(1); return nil }}
	})
	r.prov.Add("j", "running; at 4s succeeded slow 2s")
	r.watch("j")
	r.to(6 * time.Second) // a look is under way
	require.Equal(t, 1, r.prov.InFlight())
	require.NoError(t, r.notify(told("j", jobpoll.StateSucceeded)))
	assert.EqualValues(t, 1, stops.Load())
	r.to(20 * time.Second)
	assert.EqualValues(t, 1, stops.Load())
	assert.Equal(t, 1, r.prov.Total(), "the look under way was dropped and no other planned")
	r.atZero()
}

// B61
func TestFirstEndStaysWhateverComesLater(t *testing.T) {
	var mu sync.Mutex
	var kinds []jobpoll.NoticeKind
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
		c.Hooks.Noticed = func(e jobpoll.NoticeEvent) { mu.Lock(); kinds = append(kinds, e.Kind); mu.Unlock() }
	})
	r.prov.Default("running")
	r.watch("j")
	r.to(60 * time.Second)
	require.NoError(t, r.notify(told("j", jobpoll.StateSucceeded)))
	r.to(62 * time.Second)
	late := told("j", jobpoll.StateRunning)
	late.Report.Progress, late.At = 0.5, r.start.Add(50*time.Second)
	require.NoError(t, r.notify(late))
	r.to(70 * time.Second)
	require.NoError(t, r.notify(told("j", jobpoll.StateFailed)))
	r.ended("j", jobpoll.ReasonSucceeded)
	info, ok := r.Job(key("j"))
	require.True(t, ok)
	assert.Equal(t, jobpoll.StateSucceeded, info.State)
	mu.Lock()
	assert.Equal(t, []jobpoll.NoticeKind{jobpoll.NoticeApplied, jobpoll.NoticeStale, jobpoll.NoticeConflict}, kinds)
	mu.Unlock()
	w := r.Metrics().Total.Webhook
	assert.EqualValues(t, 1, w.Stale)
	assert.EqualValues(t, 1, w.Conflicts)
	assert.EqualValues(t, 1, w.Ends)
	assert.InDelta(t, 1, w.Coverage, 0)
}

// B62
func TestNoticesAreKnownByTheirEvent(t *testing.T) {
	r := rigOf(t, nil)
	r.prov.Default("running")
	r.watch("j")
	e1, e2 := told("j", jobpoll.StateRunning), told("j", jobpoll.StateSucceeded)
	e1.EventID, e2.EventID = "E1", "E2"
	require.NoError(t, r.notify(e1))
	require.NoError(t, r.notify(e2))
	require.NoError(t, r.notify(e2))
	require.NoError(t, r.notify(e1))
	r.ended("j", jobpoll.ReasonSucceeded)
	w := r.Metrics().Total.Webhook
	assert.EqualValues(t, 2, w.Applied)
	assert.EqualValues(t, 2, w.Duplicates)
	other := told("k", jobpoll.StateRunning)
	other.Key.Route, other.EventID = "nowhere", "E1"
	require.ErrorIs(t, r.Notify(t.Context(), other), jobpoll.ErrUnknownRoute)
}

// B63, first run
func TestEarlyNoticeIsAppliedAtWatch(t *testing.T) {
	for _, stored := range []bool{false, true} {
		t.Run(fmt.Sprintf("stored %v", stored), func(t *testing.T) {
			store := newShakyStore(nil)
			r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
				if stored {
					c.Store = store
				}
			})
			r.Clock.Advance(300 * time.Millisecond)
			n := told("j", jobpoll.StateSucceeded)
			n.EventID = "E1"
			require.NoError(t, r.notify(n))
			require.NoError(t, r.notify(n), "a repeat while it waits")
			byClient := told("", jobpoll.StateFailed)
			byClient.ClientKey = "mine"
			require.NoError(t, r.notify(byClient))
			assert.Equal(t, 2, r.Metrics().ParkedNotices)
			if stored {
				assert.Equal(t, 2, store.Len())
			}
			r.Clock.Advance(500 * time.Millisecond)
			r.watch("j")
			o := r.ended("j", jobpoll.ReasonSucceeded)
			assert.Zero(t, o.Polls, "success without a poll")
			assert.Equal(t, jobpoll.ViaWebhook, o.Via)
			require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "k", ClientKey: "mine"}))
			r.Clock.Settle()
			assert.Equal(t, jobpoll.ViaWebhook, r.ended("k", jobpoll.ReasonFailed).Via)
			m := r.Metrics()
			assert.Zero(t, m.ParkedNotices)
			assert.EqualValues(t, 2, m.Total.Webhook.Early)
			assert.EqualValues(t, 2, m.Total.Webhook.Applied)
			assert.EqualValues(t, 1, m.Total.Webhook.Duplicates)
			r.Clock.Advance(10 * time.Second)
			if stored {
				assert.Equal(t, 2, store.Len(), "the notices are gone from the store, the outcomes are there")
			}
		})
	}
}

// B63, third run
func TestParkedNoticesAreBoundedAndExpire(t *testing.T) {
	r := rigOf(t, nil)
	const notices = 25_000
	for i := range notices {
		n := told(fmt.Sprint(i), jobpoll.StateSucceeded)
		n.EventID = n.Key.ID
		require.NoError(t, r.Notify(t.Context(), n))
	}
	m := r.Metrics()
	assert.Equal(t, 10_000, m.ParkedNotices)
	assert.EqualValues(t, notices-10_000, m.Total.Webhook.EarlyDropped, "the oldest went")
	r.watch("24999", "0")
	r.ended("24999", jobpoll.ReasonSucceeded)
	info, ok := r.Job(key("0"))
	require.True(t, ok)
	assert.Nil(t, info.Outcome)
	r.prov.Default("running")
	r.to(15 * time.Minute)
	m = r.Metrics()
	assert.Zero(t, m.ParkedNotices, "they do not wait for ever")
	assert.EqualValues(t, notices-1, m.Total.Webhook.EarlyDropped)

	// Large ones are bounded by their size.
	big := told("", jobpoll.StateSucceeded)
	big.Report.Output = append(append([]byte{'"'}, make([]byte, 1<<20)...), '"')
	for i := range big.Report.Output[1 : 1<<20+1] {
		big.Report.Output[1+i] = 'x'
	}
	for i := range 40 {
		big.Key.ID = fmt.Sprint("big", i)
		require.NoError(t, r.Notify(t.Context(), big))
	}
	assert.LessOrEqual(t, r.Metrics().ParkedNotices, 16)
}

// B64(b)
func TestHintMakesALookAndTheLookIsBelieved(t *testing.T) {
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) { c.Routes[0].Schedule = every(2 * time.Minute) })
	r.prov.Default("running")
	r.prov.Add("done", "succeeded")
	r.watch("done", "runs")
	r.to(30 * time.Second)
	hint := told("done", jobpoll.StateFailed) // payload error: the sender knows no better
	hint.Trust = jobpoll.TrustHint
	require.NoError(t, r.notify(hint))
	o := r.ended("done", jobpoll.ReasonSucceeded)
	assert.Equal(t, jobpoll.ViaPoll, o.Via)
	assert.Equal(t, []float64{30}, r.looks("done"), "at once")
	unknown := told("runs", jobpoll.StateUnknown)
	require.NoError(t, r.notify(unknown), "a word that means nothing is a hint, whoever says it")
	assert.Equal(t, []float64{30}, r.looks("runs"))
	require.NoError(t, r.notify(unknown))
	r.to(31 * time.Second)
	assert.Equal(t, []float64{30, 31}, r.looks("runs"), "the least gap holds")
	assert.EqualValues(t, 3, r.Metrics().Total.Webhook.Hints)
}

func TestProgressNoticesOnlyMoveForward(t *testing.T) {
	r := rigOf(t, nil)
	r.prov.Default("running 50%")
	r.watch("j")
	r.to(6 * time.Second)
	say := func(s jobpoll.State, progress float64, at time.Duration) {
		n := told("j", s)
		n.Report.Progress = progress
		if at > 0 {
			n.At = r.start.Add(at)
		}
		require.NoError(t, r.notify(n))
	}
	say(jobpoll.StateQueued, 0, 0)                 // stale: behind
	say(jobpoll.StateRunning, 0.3, 0)              // stale: lower
	say(jobpoll.StateRunning, 0.9, 2*time.Second)  // stale: older
	say(jobpoll.StateRunning, 0.7, 6*time.Second)  // forward
	say(jobpoll.StateRunning, 0.65, 6*time.Second) // stale
	info, _ := r.Job(key("j"))
	assert.InDelta(t, 0.7, info.Progress, 1e-9)
	w := r.Metrics().Total.Webhook
	assert.EqualValues(t, 4, w.Stale)
	assert.EqualValues(t, 1, w.Applied)
}

// B20
func TestLateEndIsToldOnceAndFreesTheSlot(t *testing.T) {
	var mu sync.Mutex
	var late []jobpoll.LateEvent
	store := newShakyStore(nil)
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
		c.Store = store
		c.Budget = jobpoll.NewBudget("account", jobpoll.Limits{Jobs: 10})
		c.Stop.MaxAge = 3 * time.Minute
		c.Stop.MaxErrors = 1
		c.Hooks.Late = func(e jobpoll.LateEvent) { mu.Lock(); late = append(late, e); mu.Unlock() }
	})
	r.prov.Default("running")
	r.prov.Add("lost", "error")
	r.watch("j", "lost")
	r.to(4 * time.Minute)
	o := r.ended("j", jobpoll.ReasonDeadline)
	assert.False(t, o.State.Terminal())
	assert.True(t, o.Reason.Resumable())
	require.Error(t, o.Err())
	assert.Equal(t, jobpoll.AdviceDoNotResubmit, o.Resubmit)
	r.to(241 * time.Second)
	for range 3 {
		require.NoError(t, r.notify(told("j", jobpoll.StateSucceeded)))
	}
	mu.Lock()
	require.Len(t, late, 1)
	assert.Equal(t, jobpoll.StateSucceeded, late[0].State)
	assert.Equal(t, jobpoll.ReasonDeadline, late[0].Outcome.Reason)
	mu.Unlock()
	r.ended("j", jobpoll.ReasonDeadline)
	r.watch("j") // resume by the remote id
	require.NoError(t, r.notify(told("j", jobpoll.StateSucceeded)))
	assert.Len(t, r.rec.Outcomes(), 3)
	assert.Zero(t, r.Metrics().Budgets["account"].Jobs)
}

// A late end that comes while the stop is still being delivered is not told
// again after it.
func TestLateEndBeforeDeliveryIsToldOnce(t *testing.T) {
	var late atomic.Int64
	var fail atomic.Bool
	fail.Store(true)
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
		c.Hooks.Late = func(jobpoll.LateEvent) { late.Add(1) }
		c.Callbacks.OnStop = func(context.Context, jobpoll.Outcome) error {
			if fail.Load() {
				return errStoreDown
			}
			return nil
		}
	})
	r.prov.Default("running")
	r.watch("j")
	require.NoError(t, r.Abandon(t.Context(), key("j"), nil))
	r.Clock.Settle()
	require.NoError(t, r.notify(told("j", jobpoll.StateFailed)))
	assert.EqualValues(t, 1, late.Load())
	fail.Store(false)
	r.to(time.Minute)
	require.NoError(t, r.notify(told("j", jobpoll.StateFailed)))
	assert.EqualValues(t, 1, late.Load())
}

func TestNoticesBeforeAndAfterRun(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	rec := &polltest.Recorder{}
	prov := polltest.NewProvider(clock)
	prov.Default("running")
	p, err := jobpoll.New(jobpoll.Config{Clock: clock, Callbacks: rec.Callbacks(), Routes: []jobpoll.Route{{Name: "r", Checker: prov}}})
	require.NoError(t, err)
	require.Error(t, p.Notify(t.Context(), jobpoll.Notice{}), "names no job")
	require.ErrorIs(t, p.Notify(t.Context(), jobpoll.Notice{ClientKey: "nobody's"}), jobpoll.ErrUnknownRoute)
	require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "before"}))
	require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "after", ClientKey: "c"}))
	require.NoError(t, p.Notify(t.Context(), told("before", jobpoll.StateSucceeded)))
	run := func() {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()
		require.Eventually(t, func() bool { clock.Settle(); return p.Metrics().Callbacks.Undelivered == 0 }, 5*time.Second, time.Millisecond)
		cancel()
		require.NoError(t, <-ended)
	}
	run()
	require.Len(t, rec.Outcomes(), 1)
	n := told("", jobpoll.StateCanceled)
	n.ClientKey = "c"
	require.NoError(t, p.Notify(t.Context(), n), "by its ClientKey")
	info, ok := p.Find("c")
	require.True(t, ok)
	require.NotNil(t, info.Outcome)
	assert.False(t, info.Delivered)
	run()
	require.Len(t, rec.Outcomes(), 2)
	assert.Equal(t, jobpoll.ReasonCanceled, rec.Outcomes()[1].Reason)
	assert.Zero(t, clock.Timers())
}

func TestNoticeThatCannotBeStoredIsRefused(t *testing.T) {
	store := newShakyStore(nil)
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) { c.Store = store })
	first := told("j", jobpoll.StateRunning)
	first.Report.Progress = 0.5
	require.NoError(t, r.notify(first))
	store.set("Put", errStoreDown)
	n := told("j", jobpoll.StateSucceeded)
	n.EventID = "E1"
	err := r.notify(n)
	require.ErrorIs(t, err, jobpoll.ErrNotTaken)
	require.ErrorIs(t, err, errStoreDown)
	assert.Equal(t, 1, r.Metrics().ParkedNotices, "the one before stays")
	store.set("Put", nil)
	require.NoError(t, r.notify(n), "the sender tries again: no duplicate")
	assert.Equal(t, 2, r.Metrics().ParkedNotices)
	r.watch("j")
	r.ended("j", jobpoll.ReasonSucceeded)
	assert.EqualValues(t, 1, r.Metrics().StoreErrors)
}

func TestParkedNoticesSurviveARestart(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	store := jobpoll.NewMemoryStore(clock)
	a := rigOn(t, clock, nil, func(_ *rig, c *jobpoll.Config) { c.Store = store })
	running := told("j", jobpoll.StateRunning)
	running.Report.Progress = 0.5
	require.NoError(t, a.notify(told("j", jobpoll.StateSucceeded)))
	require.NoError(t, a.notify(running))
	byClient := told("", jobpoll.StateFailed)
	byClient.ClientKey = "mine"
	require.NoError(t, a.notify(byClient))
	a.Stop()
	b := rigOn(t, clock, a.prov, func(_ *rig, c *jobpoll.Config) { c.Store = store })
	assert.Equal(t, 3, b.Metrics().ParkedNotices)
	b.watch("j")
	b.ended("j", jobpoll.ReasonSucceeded)
	require.NoError(t, b.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "k", ClientKey: "mine"}))
	b.Clock.Settle()
	b.ended("k", jobpoll.ReasonFailed)
}

// fetching is a provider whose output takes a second call.
type fetching struct {
	jobpoll.Checker
	fetch func(context.Context, jobpoll.Job) (jobpoll.Report, error)
}

func (f fetching) Fetch(ctx context.Context, job jobpoll.Job, _ jobpoll.Report) (jobpoll.Report, error) {
	return f.fetch(ctx, job)
}

func TestNoticesDoNotHoldUpTheFetchOfAnOutput(t *testing.T) {
	var fetched []time.Time
	r := rigOf(t, func(r *rig, c *jobpoll.Config) {
		c.Routes[0].Checker = fetching{r.prov, func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			fetched = append(fetched, r.Clock.Now())
			if len(fetched) == 1 {
				return jobpoll.Report{}, errStoreDown
			}
			return jobpoll.Report{Output: []byte(`{"url":"u"}`)}, nil
		}}
	})
	r.prov.Default("succeeded")
	r.watch("j")
	r.to(5 * time.Second)
	require.Len(t, fetched, 1, "failed, to be tried again")
	require.NoError(t, r.notify(told("j", jobpoll.StateRunning)))
	require.NoError(t, r.notify(told("j", jobpoll.StateFailed)))
	r.to(11 * time.Second)
	o := r.ended("j", jobpoll.ReasonSucceeded)
	assert.JSONEq(t, `{"url":"u"}`, string(o.Report.Output))
	w := r.Metrics().Total.Webhook
	assert.EqualValues(t, []uint64{1, 1, 0}, []uint64{w.Stale, w.Conflicts, w.Applied})
	assert.True(t, slices.IsSortedFunc(fetched, time.Time.Compare))
}
