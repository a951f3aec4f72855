package jobpoll_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// climbing answers with a progress that rises by a tenth every ten seconds,
// and then succeeds.
func climbing() func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
	start := time.Now()
	return func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
		if n := int(time.Since(start) / (10 * time.Second)); n < 10 {
			return jobpoll.Report{State: jobpoll.StateRunning, Progress: float64(n) / 10}, nil
		}
		return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
	}
}

func fiveSeconds(_ *jobpoll.Config, r *jobpoll.Route) { r.Schedule.Delays = secs(5) }

func TestFollowYieldsEachChangeAndLastTheOutcome(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = climbing()
		b.start(fiveSeconds)
		k := b.watch("a")
		var seen []jobpoll.Update
		for u := range b.Follow(t.Context(), k) {
			seen = append(seen, u)
		}
		require.Len(t, seen, 12)
		assert.Equal(t, jobpoll.StateUnknown, seen[0].State, "what was known at first")
		for i, u := range seen {
			assert.Equal(t, "a", u.Job.ID)
			if i > 0 {
				assert.GreaterOrEqual(t, u.Progress, seen[i-1].Progress)
				assert.True(t, u.At.After(seen[i-1].At))
			}
			assert.Equal(t, i == len(seen)-1, u.Outcome != nil)
		}
		assert.Equal(t, jobpoll.ReasonSucceeded, seen[11].Outcome.Reason)

		n := 0
		for u := range b.Follow(t.Context(), k) {
			n++
			assert.NotNil(t, u.Outcome, "a job that has ended")
		}
		assert.Equal(t, 1, n)
	})
}

func TestASlowReaderSeesTheLatestAndHoldsUpNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = climbing()
		b.start(fiveSeconds)
		k := b.watch("a")
		b.watch("b")
		var seen []float64
		var last *jobpoll.Outcome
		for u := range b.Follow(t.Context(), k) {
			seen = append(seen, u.Progress)
			last = u.Outcome
			time.Sleep(47 * time.Second)
		}
		require.NotNil(t, last)
		require.Len(t, seen, 4)
		assert.Equal(t, []float64{0, 0.4, 0.9}, seen[:3])
		assert.Equal(t, b.ended("b").Polls, b.ended("a").Polls)
		assert.Equal(t, b.ended("b").DetectedAt, b.ended("a").DetectedAt)
	})
}

func TestFollowEndsWithBreakContextAndUnknownJob(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = climbing()
		b.start(fiveSeconds)
		for range b.Follow(t.Context(), jobpoll.Key{Route: "r", ID: "nobody"}) {
			t.Error("yields for a job that is not known")
		}
		k := b.watch("a")
		for range b.Follow(t.Context(), k) {
			break
		}
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		var seen int
		for range b.Follow(ctx, k) {
			seen++
		}
		assert.Equal(t, 3, seen)
		assert.Nil(t, b.info("a").Outcome)

		// Several at once, of which one stops in the middle.
		var wg sync.WaitGroup
		ends := make(chan jobpoll.Reason, 10)
		for i := range 10 {
			wg.Go(func() {
				for u := range b.Follow(t.Context(), k) {
					if i == 3 && u.Progress > 0.5 {
						return
					}
					if u.Outcome != nil {
						ends <- u.Outcome.Reason
					}
				}
			})
		}
		wg.Wait()
		assert.Len(t, ends, 9)
	})
}

// What Follow tells of an end has been stored, as all that is told of it.
func TestFollowTellsAnEndOnlyOnceItIsStored(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = states(jobpoll.StateRunning, 0, jobpoll.Report{State: jobpoll.StateSucceeded})
		store := &failingStore{MemoryStore: jobpoll.NewMemoryStore(nil)}
		b.start(func(cfg *jobpoll.Config, _ *jobpoll.Route) { cfg.Store = store })
		k := b.watch("a")
		store.down(true)
		ends := make(chan time.Time, 2)
		follow := func() {
			for u := range b.Follow(t.Context(), k) {
				if u.Outcome != nil {
					ends <- time.Now()
				}
			}
		}
		go follow()
		b.sleep(10)
		go follow()
		b.sleep(20)
		assert.Empty(t, ends)
		assert.Empty(t, b.stops("a"))
		store.down(false)
		b.sleep(30)
		assert.Len(t, ends, 2)
		assert.Len(t, b.stops("a"), 1)
	})
}

// failingStore is a store that can be out of order.
type failingStore struct {
	*jobpoll.MemoryStore
	mu  sync.Mutex
	off bool
}

func (s *failingStore) down(off bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = off
}

func (s *failingStore) Put(ctx context.Context, batch []jobpoll.Record) error {
	s.mu.Lock()
	off := s.off
	s.mu.Unlock()
	if off {
		return context.DeadlineExceeded
	}
	return s.MemoryStore.Put(ctx, batch)
}

func TestFollowEndsWithRun(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = climbing()
		b.start(fiveSeconds)
		k := b.watch("a")
		done := make(chan int, 1)
		go func() {
			n := 0
			for range b.Follow(t.Context(), k) {
				n++
			}
			done <- n
		}()
		b.sleep(33)
		b.stop()
		synctest.Wait()
		require.Len(t, done, 1)
		assert.Positive(t, <-done)

		var last []jobpoll.Update
		for u := range b.Follow(t.Context(), k) { // what is known, and no waiting
			last = append(last, u)
		}
		require.Len(t, last, 1)
		assert.Nil(t, last[0].Outcome)
		b.run()
		synctest.Wait()
		for u := range b.Follow(t.Context(), k) {
			last = append(last, u)
		}
		assert.NotNil(t, last[len(last)-1].Outcome, "the next Run has the end")
	})
}
