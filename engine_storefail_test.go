package jobpoll_test

import (
	"context"
	"errors"
	"iter"
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

func TestFailingStoreStopsNoPollingAndNothingIsToldUnstored(t *testing.T) {
	store := newShakyStore(nil)
	var failures atomic.Int64
	r := onStore(t, store, nil, func(_ *rig, c *jobpoll.Config) {
		c.Hooks.StoreFailed = func(e jobpoll.StoreEvent) {
			assert.ErrorIs(t, e.Err, errStoreDown)
			failures.Add(1)
		}
	})
	r.prov.Default("running")
	r.prov.Add("ends", "running; at 14s succeeded")
	r.watch("ends", "runs")
	store.set("Put", errStoreDown)
	err := r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "refused"})
	require.ErrorIs(t, err, errStoreDown)
	_, ok := r.Job(key("refused"))
	assert.False(t, ok)
	store.set("Get", errStoreDown)
	require.ErrorIs(t, r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "refused"}), errStoreDown)
	store.set("Get", nil)

	r.to(31 * time.Second)
	assert.Len(t, r.looks("runs"), 6, "polling goes on")
	assert.Empty(t, r.rec.Outcomes(), "nothing is told that was not stored")
	info, ok := r.Job(key("ends"))
	require.True(t, ok)
	require.NotNil(t, info.Outcome)
	assert.False(t, info.Delivered)
	assert.Equal(t, 1, r.Metrics().Callbacks.Undelivered)
	assert.EqualValues(t, failures.Load(), r.Metrics().StoreErrors)
	assert.Greater(t, failures.Load(), int64(5))

	store.set("Put", nil)
	r.to(65 * time.Second)
	r.ended("ends", jobpoll.ReasonSucceeded)
	r.Stop()
	_, data := storedRecord(t, store, key("runs"))
	assert.EqualValues(t, len(r.looks("runs")), data["polls"], "what was behind is written")
}

func TestDeliveryThatCannotBeStoredIsNotToldAgain(t *testing.T) {
	store := newShakyStore(nil)
	r := onStore(t, store, nil, nil)
	r.prov.Add("j", "succeeded")
	r.watch("j")
	store.seen = func(batch []jobpoll.Record) {
		if strings.Contains(string(batch[0].Data), `"outcome"`) {
			store.set("Put", errStoreDown) // from the delivery on
		}
	}
	r.to(time.Minute)
	r.ended("j", jobpoll.ReasonSucceeded)
	assert.Equal(t, 1, r.Metrics().Callbacks.Undelivered)
	store.set("Put", nil)
	r.to(10 * time.Minute)
	r.ended("j", jobpoll.ReasonSucceeded)
	r.atZero()
}

func TestFlushThatFailedIsTriedAgain(t *testing.T) {
	store := newShakyStore(nil)
	r := onStore(t, store, nil, func(_ *rig, c *jobpoll.Config) { c.Routes[0].Schedule = every(time.Hour) })
	r.prov.Default("running")
	r.watch("j")
	store.set("Put", errStoreDown) // before the look, which is made at once
	require.NoError(t, r.PollNow(key("j")))
	r.to(30 * time.Second)
	_, data := storedRecord(t, store, key("j"))
	require.Nil(t, data["polls"])
	store.set("Put", nil)
	r.to(40 * time.Second)
	_, data = storedRecord(t, store, key("j"))
	assert.EqualValues(t, 1, data["polls"], "long before the next look")
	puts := store.puts
	r.to(30 * time.Minute)
	assert.Equal(t, puts, store.puts, "an idle engine writes nothing")
}

func TestSlowStoreDelaysNoLook(t *testing.T) {
	store := newShakyStore(nil)
	r := onStore(t, store, nil, nil)
	r.prov.Default("running")
	r.prov.Add("ends", "running; at 9s succeeded")
	r.watch("ends", "runs")
	store.onPut(func(ctx context.Context) error { return r.Clock.Sleep(ctx, 20*time.Second) })
	require.NoError(t, r.Notify(t.Context(), told("runs", jobpoll.StateRunning)), "a job that is watched needs no store")
	r.to(24 * time.Second)
	assert.GreaterOrEqual(t, len(r.looks("runs")), 4)
	assert.Empty(t, r.rec.Outcomes())
	r.to(2 * time.Minute)
	r.ended("ends", jobpoll.ReasonSucceeded)
	assert.GreaterOrEqual(t, len(r.looks("runs")), 23)
	store.onPut(nil)
}

// A flush under way never overwrites the end of a job.
func TestSlowFlushDoesNotOverwriteAnEnd(t *testing.T) {
	store := newShakyStore(nil)
	r := onStore(t, store, nil, nil)
	r.prov.Add("j", "running; at 11s succeeded")
	r.watch("j")
	var slow atomic.Bool
	store.onPut(func(ctx context.Context) error {
		if slow.CompareAndSwap(false, true) { // the first: a flush
			return r.Clock.Sleep(ctx, 30*time.Second)
		}
		return nil
	})
	r.to(20 * time.Second)
	require.True(t, slow.Load())
	assert.Empty(t, r.rec.Outcomes(), "the end waits for the write under way")
	r.to(2 * time.Minute)
	r.ended("j", jobpoll.ReasonSucceeded)
	_, data := storedRecord(t, store, key("j"))
	assert.NotNil(t, data["outcome"])
	assert.Equal(t, true, data["told"])
	b := onStore(t, store, r, nil)
	b.Clock.Advance(time.Minute)
	assert.Empty(t, b.rec.Outcomes())
}

// Two calls for one job write it one after the other.
func TestConcurrentWatchesOfOneJobStoreItOnce(t *testing.T) {
	store := newShakyStore(nil)
	var first atomic.Bool
	store.onPut(func(context.Context) error {
		if first.CompareAndSwap(false, true) {
			time.Sleep(10 * time.Second)
		}
		return nil
	})
	var writes atomic.Int64
	store.seen = func([]jobpoll.Record) { writes.Add(1) }
	synctest.Test(t, func(t *testing.T) {
		prov := polltest.NewProvider(bubbleClock{})
		p, err := jobpoll.New(jobpoll.Config{Store: store, Routes: []jobpoll.Route{{Name: "r", Checker: prov}}})
		require.NoError(t, err)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { assert.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "j"})) })
		}
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			time.Sleep(time.Millisecond)
			assert.ErrorIs(t, p.Watch(ctx, jobpoll.Job{Route: "r", ID: "j"}), context.DeadlineExceeded)
		})
		wg.Wait()
		assert.EqualValues(t, 1, writes.Load())
		assert.EqualValues(t, 1, p.Metrics().Total.Watched)
	})
}

func TestClientKeyIsTakenWhileItsJobIsBeingStored(t *testing.T) {
	store := newShakyStore(nil)
	var slow atomic.Bool
	slow.Store(true)
	store.onPut(func(context.Context) error {
		if slow.CompareAndSwap(true, false) {
			time.Sleep(10 * time.Second)
		}
		return nil
	})
	synctest.Test(t, func(t *testing.T) {
		prov := polltest.NewProvider(bubbleClock{})
		p, err := jobpoll.New(jobpoll.Config{Store: store, Routes: []jobpoll.Route{{Name: "r", Checker: prov}}})
		require.NoError(t, err)
		watched := make(chan error)
		go func() { watched <- p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "slow", ClientKey: "c"}) }()
		time.Sleep(time.Second)
		require.ErrorIs(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "fast", ClientKey: "c"}), jobpoll.ErrDuplicateKey)
		require.NoError(t, <-watched)
		assert.Equal(t, 1, store.Len(), "a job that is not watched is not restored either")
	})
}

func TestRunReturnsWhenTheStoreCannotBeRead(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	p, err := jobpoll.New(jobpoll.Config{Clock: clock, Store: brokenLoad{newShakyStore(nil)}})
	require.NoError(t, err)
	require.ErrorIs(t, p.Run(t.Context()), errStoreDown)
	require.ErrorIs(t, p.Run(t.Context()), errStoreDown, "it may be tried again")
	assert.Zero(t, clock.Timers())
}

type brokenLoad struct{ *shakyStore }

func (brokenLoad) Load(context.Context) iter.Seq2[jobpoll.Record, error] {
	return func(yield func(jobpoll.Record, error) bool) { yield(jobpoll.Record{}, errStoreDown) }
}

func TestStoreThatHangsDoesNotKeepRunFromReturning(t *testing.T) {
	store := newShakyStore(nil)
	synctest.Test(t, func(t *testing.T) {
		prov := polltest.NewProvider(bubbleClock{})
		prov.Default("running")
		p, err := jobpoll.New(jobpoll.Config{Store: store, Routes: []jobpoll.Route{{Name: "r", Checker: prov, Schedule: every(time.Second)}}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()
		require.NoError(t, p.Watch(ctx, jobpoll.Job{Route: "r", ID: "j"}))
		store.onPut(func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
		time.Sleep(time.Minute)
		assert.GreaterOrEqual(t, prov.Total(), 59)
		start := time.Now()
		cancel()
		err = <-ended
		require.NoError(t, err, "it honours its context")
		assert.LessOrEqual(t, time.Since(start), 20*time.Second)
		store.onPut(nil)
	})
}

func TestStorePanicIsContained(t *testing.T) {
	store := newShakyStore(nil)
	r := onStore(t, store, nil, nil)
	r.prov.Default("running")
	r.watch("j")
	store.onPut(func(context.Context) error { panic(errors.New("driver")) })
	r.to(12 * time.Second)
	assert.Positive(t, r.Metrics().Panics)
	assert.Len(t, r.looks("j"), 2)
	store.onPut(nil)
}
