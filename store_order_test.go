package jobpoll_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slowStore is a store of which some writes take their time, and can fail.
type slowStore struct {
	*jobpoll.MemoryStore
	mu   sync.Mutex
	slow func(jobpoll.Record) (time.Duration, error)
	puts []jobpoll.Record // in the order in which they took effect
}

func (s *slowStore) Put(ctx context.Context, batch []jobpoll.Record) error {
	s.mu.Lock()
	slow := s.slow
	s.mu.Unlock()
	var wait time.Duration
	var err error
	for _, r := range batch {
		if slow != nil && r.Kind == jobpoll.RecordJob && r.Data != nil {
			d, e := slow(r)
			wait, err = max(wait, d), errors.Join(err, e)
		}
	}
	time.Sleep(wait)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.puts = append(s.puts, batch...)
	s.mu.Unlock()
	return s.MemoryStore.Put(ctx, batch)
}

func (s *slowStore) delay(f func(jobpoll.Record) (time.Duration, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow = f
}

// stored is the part of a stored job that these tests look at.
type stored struct {
	Outcome *jobpoll.Outcome `json:"outcome"`
	Told    bool             `json:"told"`
}

func (s *slowStore) holds(t *testing.T, id string) stored {
	t.Helper()
	rec, err := s.Get(t.Context(), jobpoll.RecordJob, "1:r/"+id)
	require.NoError(t, err)
	var v stored
	require.NoError(t, json.Unmarshal(rec.Data, &v))
	return v
}

func (s *slowStore) revisions(t *testing.T, id string) {
	t.Helper()
	last := uint64(0)
	for _, r := range s.puts {
		if r.ID == "1:r/"+id {
			assert.Equal(t, last+1, r.Rev, "revisions reach the store in order, without a gap")
			last = r.Rev
		}
	}
}

// A write of the pacing that is slow must not land on top of the outcome.
func TestAnOldStateIsNeverWrittenOverANewOne(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = states(jobpoll.StateRunning, 12*time.Second, jobpoll.Report{State: jobpoll.StateSucceeded})
		s := &slowStore{MemoryStore: jobpoll.NewMemoryStore(nil)}
		b.start(func(cfg *jobpoll.Config, r *jobpoll.Route) { cfg.Store, r.Schedule.Delays = s, secs(2) })
		b.watch("a")
		b.sleep(9)
		s.delay(func(r jobpoll.Record) (time.Duration, error) {
			var v stored
			_ = json.Unmarshal(r.Data, &v)
			if v.Outcome == nil {
				return 60 * time.Second, nil
			}
			return 0, nil
		})
		b.sleep(120)
		assert.Len(t, b.stops("a"), 1)
		assert.True(t, s.holds(t, "a").Told)
		s.revisions(t, "a")
	})
}

func TestTwoWatchesOfOneJobStoreItOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = states(jobpoll.StateRunning, time.Minute, jobpoll.Report{State: jobpoll.StateSucceeded})
		s := &slowStore{MemoryStore: jobpoll.NewMemoryStore(nil)}
		b.start(func(cfg *jobpoll.Config, _ *jobpoll.Route) { cfg.Store = s })
		var n atomic.Int64
		s.delay(func(jobpoll.Record) (time.Duration, error) { return time.Duration(10*n.Add(1)) * time.Second, nil })
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { assert.NoError(t, b.Watch(t.Context(), jobOf("a"))) })
		}
		other := make(chan error, 1)
		b.sleep(1)
		job := jobpoll.Job{Route: "r", ID: "k1", ClientKey: "mine"}
		go func() { other <- b.Watch(t.Context(), job) }()
		b.sleep(1)
		job.ID = "k2"
		require.ErrorIs(t, b.Watch(t.Context(), job), jobpoll.ErrDuplicateKey, "taken while it is being stored")
		wg.Wait()
		s.delay(nil)
		b.sleep(200)
		require.NoError(t, <-other)
		assert.Len(t, b.stops("a"), 1)
		assert.True(t, s.holds(t, "a").Told)
		s.revisions(t, "a")
	})
}

func TestAWatchThatCannotBeStoredIsNoWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = states(jobpoll.StateRunning, time.Hour, jobpoll.Report{})
		b.callbacks.OnStop = func(context.Context, jobpoll.Outcome) error { time.Sleep(20 * time.Second); return nil }
		s := &slowStore{MemoryStore: jobpoll.NewMemoryStore(nil)}
		b.start(func(cfg *jobpoll.Config, _ *jobpoll.Route) { cfg.Store = s })
		down := errors.New("disk full")
		s.delay(func(jobpoll.Record) (time.Duration, error) { return time.Second, down })
		job := jobpoll.Job{Route: "r", ID: "a", ClientKey: "mine"}
		require.ErrorIs(t, b.Watch(t.Context(), job), down)
		_, ok := b.Job(job.Key())
		assert.False(t, ok)
		_, ok = b.Find("mine")
		assert.False(t, ok)
		s.delay(nil)
		require.NoError(t, b.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "b", ClientKey: "mine"}), "the key is free")

		// The same for one that is to be watched anew: both callers are told.
		b.watch("c")
		b.sleep(3)
		require.NoError(t, b.Abandon(t.Context(), jobOf("c").Key(), nil))
		b.sleep(1)
		s.delay(func(jobpoll.Record) (time.Duration, error) { return 3 * time.Second, down })
		errs := make(chan error, 2)
		for range 2 {
			go func() { _, err := b.Wait(t.Context(), jobOf("c")); errs <- err }()
		}
		for range 2 {
			require.ErrorIs(t, <-errs, down)
		}
		s.delay(nil)
		b.sleep(60)
		assert.Len(t, b.stops("c"), 1)
		assert.True(t, b.info("c").Delivered)
		assert.True(t, s.holds(t, "c").Told)
	})
}

// hangingStore hangs in Put until its context ends.
type hangingStore struct {
	*jobpoll.MemoryStore
	hang atomic.Bool
}

func (s *hangingStore) Put(ctx context.Context, batch []jobpoll.Record) error {
	if s.hang.Load() {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return s.MemoryStore.Put(ctx, batch)
}

func TestAStoreThatHangsAtShutdownDoesNotHoldUpRun(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = states(jobpoll.StateRunning, time.Hour, jobpoll.Report{})
		s := &hangingStore{MemoryStore: jobpoll.NewMemoryStore(nil)}
		b.start(func(cfg *jobpoll.Config, r *jobpoll.Route) { cfg.Store = s })
		b.watch("a")
		s.hang.Store(true)
		b.sleep(3)
		began := time.Now()
		b.cancel()
		require.NoError(t, <-b.ran)
		b.cancel = nil
		assert.LessOrEqual(t, time.Since(began), 10*time.Second)
	})
}
