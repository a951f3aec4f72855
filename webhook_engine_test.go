package jobpoll_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
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

// webhookRig is a rig whose route "r" expects webhooks.
func webhookRig(t *testing.T, change func(*rig, *jobpoll.Config)) *rig {
	return rigOf(t, func(r *rig, c *jobpoll.Config) {
		c.Routes[0].Webhook.Mode = jobpoll.WebhookExpected
		if change != nil {
			change(r, c)
		}
	})
}

func (r *rig) watchFor(expected time.Duration, ids ...string) {
	r.t.Helper()
	for _, id := range ids {
		require.NoError(r.t, r.Watch(r.t.Context(), jobpoll.Job{Route: "r", ID: id, Expected: expected}))
	}
	r.Clock.Settle()
}

// B64(a)
func TestALostWebhookIsMadeUpForByAReconcilingLook(t *testing.T) {
	r := webhookRig(t, func(_ *rig, c *jobpoll.Config) { c.Routes[0].Webhook.Pace = 120 * time.Second })
	r.prov.Default("running; at 60s succeeded")
	r.watch("j")
	r.to(145 * time.Second)
	o := r.ended("j", jobpoll.ReasonSucceeded)
	assert.Equal(t, jobpoll.ViaPoll, o.Via)
	assert.Equal(t, 1, o.Polls)
	w := r.Metrics().Routes["r"].Webhook
	assert.EqualValues(t, 1, w.Looks)
	assert.InDelta(t, 7.0/8, w.Recent, 1e-9)
	assert.Zero(t, r.Metrics().Total.Webhook.Recent)
}

func TestAJobWhoseWebhookComesIsNotLookedAt(t *testing.T) {
	r := webhookRig(t, nil)
	r.prov.Default("running")
	r.watchFor(time.Minute, "j")
	r.to(2 * time.Minute)
	require.NoError(t, r.notify(told("j", jobpoll.StateSucceeded)))
	o := r.ended("j", jobpoll.ReasonSucceeded)
	assert.Zero(t, o.Polls)
	assert.Zero(t, r.prov.Total())
}

func TestAProgressNoticePushesTheNextLookOut(t *testing.T) {
	r := webhookRig(t, nil)
	r.prov.Default("running")
	r.watchFor(time.Minute, "told", "silent")
	for at := 170 * time.Second; at < 10*time.Minute; at += 100 * time.Second {
		r.to(at)
		n := told("told", jobpoll.StateRunning)
		n.Report.Progress = at.Minutes() / 10
		require.NoError(t, r.notify(n))
	}
	info, ok := r.Job(key("told"))
	require.True(t, ok)
	assert.InDelta(t, 0.95, info.Progress, 1e-9)
	assert.Empty(t, r.looks("told"))
	assert.Len(t, r.looks("silent"), 4, "at 3, 5, 7, 9 min")
}

func TestABrokenWebhookCostsTimeOnceAndNotForEveryJob(t *testing.T) {
	var mu sync.Mutex
	var events []jobpoll.CoverageEvent
	r := webhookRig(t, func(_ *rig, c *jobpoll.Config) {
		c.Hooks.Coverage = func(e jobpoll.CoverageEvent) { mu.Lock(); events = append(events, e); mu.Unlock() }
	})
	r.prov.Default("running; at 40s succeeded")
	r.watchFor(20*time.Second, ids("first", 3)...)
	long := ids("long", 20)
	r.watchFor(5*time.Minute, long...)
	r.to(59 * time.Second)
	require.Zero(t, r.prov.Total())
	r.to(70 * time.Second)
	for _, id := range append(long, ids("first", 3)...) {
		r.ended(id, jobpoll.ReasonSucceeded)
	}
	w := r.Metrics().Routes["r"].Webhook
	assert.GreaterOrEqual(t, w.Forwarded, uint64(20))
	assert.Zero(t, w.Recent)
	mu.Lock()
	require.NotEmpty(t, events)
	assert.Equal(t, "r", events[0].Route)
	assert.InDelta(t, 1, events[0].From, 0)
	assert.Zero(t, events[len(events)-1].To)
	mu.Unlock()

	// From now on the ordinary schedule holds: nothing more is lost.
	r.watchFor(5*time.Minute, "later")
	r.to(75 * time.Second)
	assert.Len(t, r.looks("later"), 1)

	// And back, once webhooks come again.
	for i := range 12 {
		id := fmt.Sprint("well", i)
		r.watchFor(5*time.Minute, id)
		require.NoError(t, r.notify(told(id, jobpoll.StateSucceeded)))
	}
	assert.InDelta(t, 1, r.Metrics().Routes["r"].Webhook.Recent, 1e-9)
	r.watchFor(5*time.Minute, "last")
	r.Clock.Advance(30 * time.Second)
	assert.Empty(t, r.looks("last"))
	mu.Lock()
	assert.Greater(t, events[len(events)-1].To, 0.8)
	mu.Unlock()
}

func TestWhereNoNoticeComesALearnedWebhookChangesNothing(t *testing.T) {
	looks := func(m jobpoll.WebhookMode) []float64 {
		r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
			c.Routes[0].Webhook.Mode = m
			c.Routes[0].Schedule = jobpoll.Schedule{}
		})
		r.prov.Default("running; at 100s succeeded")
		for i := range 10 {
			r.watchFor(time.Minute, fmt.Sprint(i))
			r.Clock.Advance(time.Minute)
		}
		r.to(time.Hour)
		var at []float64
		for i := range 10 {
			at = append(at, r.looks(fmt.Sprint(i))...)
		}
		r.Stop()
		return at
	}
	assert.Equal(t, looks(jobpoll.WebhookAbsent), looks(jobpoll.WebhookLearned))
}

func TestALearnedWebhookIsWaitedForOnEvidenceAlone(t *testing.T) {
	r := rigOf(t, nil)
	r.prov.Default("running")
	end := func(n int) {
		for range n {
			id := fmt.Sprint("e", len(r.rec.Outcomes()))
			r.watch(id)
			r.Clock.Advance(20 * time.Second)
			require.NoError(t, r.notify(told(id, jobpoll.StateSucceeded)))
		}
	}
	firstLook := func(id string) time.Duration {
		begun := r.Clock.Monotonic()
		r.watch(id)
		r.Clock.Advance(time.Minute)
		require.NotEmpty(t, r.looks(id))
		return time.Duration(r.looks(id)[0]*float64(time.Second)) - begun
	}
	end(19)
	require.InDelta(t, 1, r.Metrics().Routes["r"].Webhook.Recent, 0)
	assert.Equal(t, 5*time.Second, firstLook("early").Round(time.Second), "how long they take is not known yet")
	end(1)
	r.Clock.Advance(10 * time.Second)
	assert.InDelta(t, 20, firstLook("later").Seconds(), 3)
	assert.Less(t, len(r.looks("later")), 7, "and then it goes slower")
	assert.Greater(t, len(r.looks("later")), 2, "but no proof is perfect")
}

func TestEndsThatAHintLedToCountAsTold(t *testing.T) {
	r := webhookRig(t, func(_ *rig, c *jobpoll.Config) { c.Routes[0].Webhook.HintOnly = true })
	r.prov.Default("running")
	for i := range 20 {
		id := fmt.Sprint(i)
		r.prov.Add(id, "succeeded")
		r.watchFor(time.Minute, id)
		require.NoError(t, r.notify(told(id, jobpoll.StateFailed)), "signed, and not believed on this route")
		assert.Equal(t, jobpoll.ViaPoll, r.ended(id, jobpoll.ReasonSucceeded).Via)
	}
	w := r.Metrics().Routes["r"].Webhook
	assert.EqualValues(t, 20, w.Hints)
	assert.InDelta(t, 1, w.Recent, 0)
	assert.Zero(t, w.Looks)
}

func TestAProviderThatLagsBehindItsOwnHintIsAskedAgainSoon(t *testing.T) {
	r := webhookRig(t, nil)
	r.prov.Default("running; at 32s succeeded")
	r.watchFor(time.Minute, "j")
	r.to(30 * time.Second)
	hint := told("j", jobpoll.StateSucceeded)
	hint.Trust = jobpoll.TrustHint
	require.NoError(t, r.notify(hint))
	r.to(40 * time.Second)
	r.ended("j", jobpoll.ReasonSucceeded)
	assert.Equal(t, []float64{30, 35}, r.looks("j"))
}

func TestANoticeThatALookOvertookIsNotLost(t *testing.T) {
	r := webhookRig(t, nil)
	r.prov.Default("succeeded")
	for i := range 10 {
		id := fmt.Sprint(i)
		r.watchFor(time.Minute, id)
		require.NoError(t, r.PollNow(key(id)))
		r.Clock.Settle()
		r.ended(id, jobpoll.ReasonSucceeded)
		r.Clock.Advance(time.Second)
		require.NoError(t, r.notify(told(id, jobpoll.StateSucceeded)))
	}
	assert.InDelta(t, 1, r.Metrics().Routes["r"].Webhook.Recent, 1e-9)
	assert.EqualValues(t, 10, r.Metrics().Routes["r"].Webhook.Duplicates)
}

func TestMeasuredDurationsSayWhenTheWebhookIsLate(t *testing.T) {
	r := webhookRig(t, nil)
	r.prov.Default("running")
	for i := range 20 { // nothing but notices tells of them
		id := fmt.Sprint(i)
		r.watchFor(10*time.Minute, id)
		r.Clock.Advance(20 * time.Second)
		require.NoError(t, r.notify(told(id, jobpoll.StateSucceeded)))
	}
	r.Clock.Advance(10 * time.Second)
	begun := r.Clock.Monotonic()
	r.watchFor(10*time.Minute, "j")
	r.Clock.Advance(time.Minute)
	require.Len(t, r.looks("j"), 1)
	assert.InDelta(t, 20, r.looks("j")[0]-begun.Seconds(), 3, "not at 30 min")
}

// After a restart webhooks may have been refused meanwhile.
func TestARestoredJobIsLookedAtBeforeItsWebhookIsLate(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	store := jobpoll.NewMemoryStore(clock)
	expecting := func(_ *rig, c *jobpoll.Config) {
		c.Store = store
		c.Routes[0].Webhook.Mode = jobpoll.WebhookExpected
	}
	a := rigOn(t, clock, nil, expecting)
	a.prov.Default("running")
	a.watchFor(5*time.Minute, "j")
	clock.Advance(time.Minute)
	a.Stop()
	require.Zero(t, a.prov.Total())
	b := rigOn(t, clock, a.prov, expecting)
	clock.Advance(20 * time.Minute)
	assert.InDelta(t, 60, a.ages(b.prov.Starts())[0], 5)
	assert.LessOrEqual(t, b.prov.Total(), 5, "and then at the slow pace")
}

func TestADroppedEarlyNoticeMayComeAgain(t *testing.T) {
	r := rigOf(t, nil)
	n := told("j", jobpoll.StateSucceeded)
	n.EventID = "E1"
	require.NoError(t, r.notify(n))
	r.to(15 * time.Minute)
	require.Zero(t, r.Metrics().ParkedNotices)
	require.NoError(t, r.notify(n))
	assert.Equal(t, 1, r.Metrics().ParkedNotices, "its event was not used up")
	r.watch("j")
	r.ended("j", jobpoll.ReasonSucceeded)
}

func TestOneJobsEarlyNoticesAreBoundedByThemselves(t *testing.T) {
	r := rigOf(t, nil)
	for i := range 1000 {
		n := told("j", jobpoll.StateRunning)
		n.EventID = fmt.Sprint(i)
		require.NoError(t, r.Notify(t.Context(), n))
	}
	require.NoError(t, r.Notify(t.Context(), told("k", jobpoll.StateSucceeded)))
	m := r.Metrics()
	assert.Equal(t, 65, m.ParkedNotices)
	assert.EqualValues(t, 1000-64, m.Total.Webhook.EarlyDropped)
	r.watch("j", "k")
	r.ended("k", jobpoll.ReasonSucceeded)
	assert.Zero(t, r.Metrics().ParkedNotices)
}

func TestNoticesThatCanBeOfNoJobAreRefused(t *testing.T) {
	r := rigOf(t, nil)
	long := string(make([]byte, 4097))
	for _, n := range []jobpoll.Notice{
		{Key: key("\xff")}, {Key: key(long)}, {Key: jobpoll.Key{Route: "\xff", ID: "j"}},
		{Key: key("j"), ClientKey: long},
	} {
		err := r.notify(n)
		require.Error(t, err)
		require.NotErrorIs(t, err, jobpoll.ErrNotTaken, "sending it again does not help")
		assert.Less(t, len(err.Error()), 500)
	}
	assert.Zero(t, r.Metrics().Total.Webhook.Notices)
}

// B58, the replay after a restart
func TestAReplayAfterARestartIsRecognised(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	store := jobpoll.NewMemoryStore(clock)
	withStore := func(_ *rig, c *jobpoll.Config) { c.Store = store }
	a := rigOn(t, clock, nil, withStore)
	a.prov.Default("running")
	a.watch("ends", "runs", "asked")
	running, end, hint := told("runs", jobpoll.StateRunning), told("ends", jobpoll.StateSucceeded), told("asked", jobpoll.StateSucceeded)
	running.EventID, end.EventID, hint.EventID = "E1", "E2", "E3"
	hint.Trust = jobpoll.TrustHint
	for _, n := range []jobpoll.Notice{running, end, hint} {
		require.NoError(t, a.notify(n))
	}
	clock.Advance(10 * time.Second)
	a.Stop()

	b := rigOn(t, clock, a.prov, withStore)
	before := b.prov.Total()
	for _, n := range []jobpoll.Notice{running, end, hint} {
		require.NoError(t, b.notify(n))
	}
	w := b.Metrics().Total.Webhook
	assert.EqualValues(t, 3, w.Notices)
	assert.EqualValues(t, 3, w.Duplicates)
	assert.Equal(t, before, b.prov.Total(), "no look for a hint that was obeyed")
	assert.Empty(t, b.rec.Outcomes())
	b.Stop()

	c := rigOn(t, clock, a.prov, withStore) // and after another
	require.NoError(t, c.notify(running))
	assert.EqualValues(t, 1, c.Metrics().Total.Webhook.Duplicates)
}

// A job whose end another process has told, or of which nothing is left in
// memory, is known from the Store.
func TestANoticeOfAnEndThatOnlyTheStoreKnowsIsNotParked(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	store := newShakyStore(clock)
	withStore := func(_ *rig, c *jobpoll.Config) { c.Store = store }
	other := rigOn(t, clock, nil, withStore)
	other.prov.Default("succeeded")
	here, err := jobpoll.New(jobpoll.Config{Clock: clock, Store: store, Routes: []jobpoll.Route{other.route("r")}})
	require.NoError(t, err)
	other.watch("j")
	other.to(6 * time.Second)
	other.ended("j", jobpoll.ReasonSucceeded)
	require.NoError(t, here.Notify(t.Context(), told("j", jobpoll.StateSucceeded)))
	require.NoError(t, here.Notify(t.Context(), told("j", jobpoll.StateFailed)))
	w := here.Metrics().Total.Webhook
	assert.EqualValues(t, []uint64{1, 1, 0}, []uint64{w.Duplicates, w.Conflicts, w.Early})
	store.set("Get", errStoreDown)
	err = here.Notify(t.Context(), told("k", jobpoll.StateSucceeded))
	require.ErrorIs(t, err, jobpoll.ErrNotTaken)
	require.ErrorIs(t, err, errStoreDown)
}

// JOBPOLL_RACE_ROUNDS=10000 go test -race -run TestWebhookPollCancelAndShutdownRaceToOneOutcome .
func TestWebhookPollCancelAndShutdownRaceToOneOutcome(t *testing.T) {
	rounds := 300
	if n, err := strconv.Atoi(os.Getenv("JOBPOLL_RACE_ROUNDS")); err == nil {
		rounds = n
	}
	synctest.Test(t, func(t *testing.T) {
		prov := polltest.NewProvider(jobpoll.SystemClock())
		stops := make([]atomic.Int32, rounds)
		p, err := jobpoll.New(jobpoll.Config{
			Routes: []jobpoll.Route{{
				Name: "r", Checker: prov, Schedule: every(5 * time.Second),
				Webhook: jobpoll.WebhookPolicy{Mode: jobpoll.WebhookExpected, First: 5 * time.Second},
			}},
			Callbacks: jobpoll.Callbacks{OnStop: func(_ context.Context, o jobpoll.Outcome) error {
				n, _ := strconv.Atoi(o.Job.ID)
				stops[n].Add(1)
				return nil
			}},
		})
		require.NoError(t, err)
		for round := range rounds {
			id := strconv.Itoa(round)
			prov.AddAt(id, time.Now(), "succeeded slow 1ms")
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- p.Run(ctx) }()
			require.NoError(t, p.Watch(ctx, jobpoll.Job{Route: "r", ID: id}))
			time.Sleep(5*time.Second + time.Duration(round%3)*500*time.Microsecond) // before, during and after the call
			var wg sync.WaitGroup
			wg.Go(func() { assert.NoError(t, p.Notify(ctx, told(id, jobpoll.StateSucceeded))) })
			wg.Go(func() { _ = p.PollNow(key(id)) })
			wg.Go(func() { _ = p.Cancel(ctx, key(id), errors.New("not needed any more")) })
			wg.Go(func() { _ = p.Abandon(ctx, key(id), errors.New("nobody waits")) })
			wg.Go(cancel)
			wg.Wait()
			require.NoError(t, <-ended)
			ctx, cancel = context.WithCancel(t.Context())
			go func() { ended <- p.Run(ctx) }()
			synctest.Wait()
			require.EqualValues(t, 1, stops[round].Load(), "round %d", round)
			cancel()
			require.NoError(t, <-ended)
		}
		m := p.Metrics()
		assert.Zero(t, m.Total.Unresolved+m.Total.InFlight+m.Callbacks.Undelivered)
		for i := range stops {
			assert.EqualValues(t, 1, stops[i].Load(), "never again")
		}
	})
}

// What others notice while notices for unknown ids pour in.
func BenchmarkNoticeBesideAFloodOfUnknownOnes(b *testing.B) {
	p, err := jobpoll.New(jobpoll.Config{Routes: []jobpoll.Route{{Name: "r", Checker: polltest.NewProvider(jobpoll.SystemClock())}}})
	require.NoError(b, err)
	for i := range 10_000 {
		n := told(fmt.Sprint("unknown", i), jobpoll.StateSucceeded)
		require.NoError(b, p.Notify(b.Context(), n))
	}
	require.NoError(b, p.Watch(b.Context(), jobpoll.Job{Route: "r", ID: "j"}))
	n := told("j", jobpoll.StateRunning)
	for _, flood := range []int{0, 1, 10} {
		b.Run(fmt.Sprintf("%d unknown", flood), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				for k := range flood {
					u := told(strconv.Itoa(i*flood+k), jobpoll.StateSucceeded)
					u.EventID = u.Key.ID
					_ = p.Notify(b.Context(), u)
				}
				_ = p.Notify(b.Context(), n)
			}
			require.LessOrEqual(b, p.Metrics().ParkedNotices, 10_000)
		})
	}
}
