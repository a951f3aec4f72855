package jobpoll_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// deaf is a Checker that does not return for some jobs, whatever their context
// says, until it is let go.
type deaf struct {
	mu    sync.Mutex
	is    func(id string) bool
	until chan struct{}
	calls int
	stuck int
}

func (d *deaf) Check(_ context.Context, j jobpoll.Job) (jobpoll.Report, error) {
	d.mu.Lock()
	d.calls++
	stuck := d.is(j.ID)
	if stuck {
		d.stuck++
	}
	until := d.until
	d.mu.Unlock()
	if stuck {
		<-until
		return jobpoll.Report{State: jobpoll.StateRunning}, nil
	}
	return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
}

// As many calls as there are workers never return: the others go on once those
// have timed out, a hook and a metric tell of it, and the goroutines are bounded.
func TestCallsThatNeverReturnLeaveTheWorkersToOthers(t *testing.T) {
	const workers, stuck, others = 64, 64, 500
	inBubble(t, func(t *testing.T, b *synced) {
		d := &deaf{is: func(id string) bool { return id[0] == 's' }, until: make(chan struct{})}
		b.check = d.Check
		var timeouts atomic.Int64
		b.start(func(cfg *jobpoll.Config, r *jobpoll.Route) {
			cfg.Workers = workers
			cfg.Hooks.Looked = func(e jobpoll.LookEvent) {
				if e.Err != nil {
					timeouts.Add(1)
				}
			}
			r.CheckTimeout = 10 * time.Second
			r.Stop.MaxErrors, r.Stop.MaxAge = jobpoll.NoCount, jobpoll.NoLimit
		})
		before := runtime.NumGoroutine()
		for i := range stuck {
			require.NoError(t, b.Watch(t.Context(), jobOf(fmt.Sprint("s", i))))
		}
		b.sleep(3)
		for i := range others {
			require.NoError(t, b.Watch(t.Context(), jobOf(fmt.Sprint("o", i))))
		}
		b.sleep(4)
		m := b.Metrics().Total
		assert.Equal(t, workers, m.InFlight)
		assert.Zero(t, m.Hung)
		assert.Equal(t, others, m.Backlog.Jobs)
		b.sleep(10) // past the timeout
		m = b.Metrics().Total
		assert.EqualValues(t, others, m.Stops[jobpoll.ReasonSucceeded], "the others are looked at")
		assert.Equal(t, stuck, m.Hung)
		assert.Equal(t, stuck, b.Metrics().Routes["r"].Hung)
		assert.EqualValues(t, stuck, timeouts.Load())
		b.sleep(3600)
		m = b.Metrics().Total
		assert.Equal(t, stuck, m.Hung, "no second call for a job whose call has not returned")
		assert.LessOrEqual(t, runtime.NumGoroutine(), before+stuck+workers+8)
		close(d.until)
		synctest.Wait()
		assert.Zero(t, b.Metrics().Total.Hung)
		d.mu.Lock()
		d.is = func(string) bool { return false }
		d.mu.Unlock()
		b.sleep(3600)
		m = b.Metrics().Total
		assert.Zero(t, m.Unresolved, "and then they go on")
		assert.Zero(t, m.InFlight)
	})
}

// A call whose job was abandoned holds its goroutine too: they are bounded as
// those that timed out are.
func TestAbandonedCallsThatNeverReturnAreBounded(t *testing.T) {
	const workers = 4
	inBubble(t, func(t *testing.T, b *synced) {
		d := &deaf{is: func(string) bool { return true }, until: make(chan struct{})}
		b.check = d.Check
		b.start(func(cfg *jobpoll.Config, r *jobpoll.Route) {
			cfg.Workers = workers
			r.CheckTimeout = time.Hour
		})
		for i := range 100 {
			id := fmt.Sprint("a", i)
			require.NoError(t, b.Watch(t.Context(), jobOf(id)))
			b.sleep(5)
			require.NoError(t, b.Abandon(t.Context(), jobOf(id).Key(), errors.New("enough")))
		}
		synctest.Wait()
		d.mu.Lock()
		stuck := d.stuck
		d.mu.Unlock()
		assert.LessOrEqual(t, stuck, 9*workers, "goroutines that do not return")
		m := b.Metrics()
		assert.Equal(t, stuck, m.Total.Hung)
		assert.Zero(t, m.Total.InFlight)
		assert.EqualValues(t, 100, m.Total.Stops[jobpoll.ReasonAbandoned])
		close(d.until)
		synctest.Wait()
		assert.Zero(t, b.Metrics().Total.Hung)
	})
}

// Calls that outlive their Run: the next Run goes on without them, and what
// they bring in the end does no harm.
func TestCallsThatOutliveTheirRun(t *testing.T) {
	const jobs = 40
	inBubble(t, func(t *testing.T, b *synced) {
		d := &deaf{is: func(string) bool { return true }, until: make(chan struct{})}
		b.check = d.Check
		b.make(func(cfg *jobpoll.Config, r *jobpoll.Route) {
			cfg.Workers = jobs
			r.CheckTimeout = 20 * time.Second
			r.Stop.MaxErrors, r.Stop.MaxAge = jobpoll.NoCount, jobpoll.NoLimit
		})
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- b.Run(ctx) }()
		for i := range jobs {
			require.NoError(t, b.Watch(t.Context(), jobOf(fmt.Sprint("s", i))))
		}
		b.sleep(5)
		require.Equal(t, jobs, b.Metrics().Total.InFlight)
		cancel()
		require.ErrorContains(t, <-ran, "has not returned")
		d.mu.Lock()
		old := d.until
		d.is, d.until = func(id string) bool { return id == "s0" }, make(chan struct{})
		d.mu.Unlock()

		b.run()
		for i := range 20 {
			require.NoError(t, b.Watch(t.Context(), jobOf(fmt.Sprint("o", i))))
		}
		b.sleep(60)
		m := b.Metrics().Total
		assert.EqualValues(t, 20, m.Stops[jobpoll.ReasonSucceeded])
		assert.Equal(t, jobs, m.Hung)
		close(old) // those of the first Run
		synctest.Wait()
		assert.Zero(t, b.Metrics().Total.Hung)
		b.sleep(1800)
		m = b.Metrics().Total
		assert.EqualValues(t, 20+jobs-1, m.Stops[jobpoll.ReasonSucceeded])
		assert.Equal(t, 1, m.Hung)
		close(d.until)
		d.mu.Lock()
		d.is = func(string) bool { return false }
		d.mu.Unlock()
		b.sleep(1800)
		m = b.Metrics().Total
		assert.Zero(t, m.Unresolved)
		assert.Zero(t, m.Hung)
		assert.Zero(t, m.InFlight)
	})
}
