package jobpoll_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func heapNow() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// scaled is n, or less where the test shall be short or the race detector
// makes memory and time grow.
func scaled(n, short int) int {
	if testing.Short() || raceEnabled {
		return short
	}
	return n
}

// B84(a)
func TestMovingADueTimeLeavesNothingBehind(t *testing.T) {
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) { c.Routes[0].Schedule = every(6 * time.Hour) })
	r.prov.Default("running")
	r.watch("j")
	moves := scaled(100_000, 5000)
	move := func() { // by a notice, which plans the next look anew
		n := told("j", jobpoll.StateRunning)
		require.NoError(t, r.Notify(t.Context(), n))
	}
	for range 100 {
		move()
	}
	r.Clock.Settle()
	timers, before := r.Clock.Timers(), heapNow()
	for range moves {
		move()
	}
	r.Clock.Settle()
	assert.Equal(t, timers, r.Clock.Timers())
	after := heapNow()
	assert.Less(t, int64(after)-int64(before), int64(256<<10), "heap grew by %d", int64(after)-int64(before))
}

// B84(b)
func TestIdleJobsCostLittleAndNoGoroutine(t *testing.T) {
	n := scaled(100_000, 20_000)
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
		c.Routes[0].Schedule = every(6 * time.Hour)
		c.Stop.MaxAge = jobpoll.NoLimit
	})
	r.prov.Default("running")
	r.watch("warm")
	goroutines, before := runtime.NumGoroutine(), heapNow()
	for i := range n {
		// An id and a reference as long as they are in life.
		job := jobpoll.Job{Route: "r", ID: fmt.Sprintf("b1946ac9-2492-4d23-87aa-%012d", i), Profile: "gen-4/720p/5s"}
		require.NoError(t, r.Watch(t.Context(), job))
	}
	r.Clock.Settle()
	after := heapNow()
	bytes := float64(after-before) / float64(n)
	t.Logf("%.0f bytes a waiting job, ids of 37 bytes included (%d jobs)", bytes, n)
	assert.LessOrEqual(t, bytes, 2048.0)
	assert.LessOrEqual(t, runtime.NumGoroutine(), goroutines+2)
	assert.LessOrEqual(t, r.Clock.Timers(), 2)
	start := time.Now()
	r.watch("one more")
	require.NoError(t, r.Abandon(t.Context(), key("one more"), nil))
	r.Clock.Settle()
	r.ended("one more", jobpoll.ReasonAbandoned)
	t.Logf("watch and end of one among them: %v", time.Since(start))
}

// B85, scaled: the engine alone, as fast as it goes.
func TestNothingIsKeptOfFinishedJobs(t *testing.T) {
	total, alive := scaled(100_000, 20_000), 100
	var done atomic.Int64
	free := make(chan struct{}, alive)
	first := make(map[string]bool, alive) // jobs that had their error
	lock := make(chan struct{}, 1)
	p, err := jobpoll.New(jobpoll.Config{
		Routes: []jobpoll.Route{{Name: "r", Schedule: jobpoll.Schedule{Delays: []time.Duration{time.Nanosecond}, MinDelay: time.Nanosecond, Jitter: jobpoll.NoJitter},
			Checker: jobpoll.CheckerFunc(func(_ context.Context, j jobpoll.Job) (jobpoll.Report, error) {
				lock <- struct{}{}
				had := first[j.ID]
				first[j.ID] = true
				<-lock
				if !had {
					return jobpoll.Report{}, errStoreDown
				}
				return jobpoll.Report{State: jobpoll.StateSucceeded, Output: []byte(`{"url":"https://cdn.example/a.mp4"}`)}, nil
			})}},
		Callbacks: jobpoll.Callbacks{OnStop: func(_ context.Context, o jobpoll.Outcome) error {
			lock <- struct{}{}
			delete(first, o.Job.ID)
			<-lock
			done.Add(1)
			<-free
			return nil
		}},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	var before uint64
	for i := range total {
		free <- struct{}{}
		id := fmt.Sprintf("job-%09d", i)
		n := told(id, jobpoll.StateRunning)
		n.EventID = "event-" + id
		if i%2 == 0 {
			require.NoError(t, p.Notify(ctx, n)) // early
		}
		require.NoError(t, p.Watch(ctx, jobpoll.Job{Route: "r", ID: id, ClientKey: "c" + id}))
		if i%2 == 1 {
			require.NoError(t, p.Notify(ctx, n))
		}
		if i == total/10 {
			before = heapNow()
		}
	}
	for range alive { // the last ones
		free <- struct{}{}
	}
	after := heapNow()
	m := p.Metrics()
	assert.EqualValues(t, total, done.Load())
	assert.Zero(t, m.ParkedNotices)
	assert.Zero(t, m.Total.Unresolved)
	// The ids of events are kept up to a bound that a short run does not reach.
	slack := uint64(2 << 20)
	if total/10 < 65_536 {
		slack += uint64(min(total, 65_536)) * 160
	}
	t.Logf("heap %d KiB after %d jobs, %d KiB after %d", before>>10, total/10, after>>10, total)
	assert.LessOrEqual(t, after, before+before/10+slack)
	cancel()
	require.NoError(t, <-ended)
}
