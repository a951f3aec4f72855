package jobpoll_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// runUntil starts Run in a bubble and returns how to end it.
func runUntil(t *testing.T, p *jobpoll.Poller) (stop func() time.Duration) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	synctest.Wait()
	return func() time.Duration {
		start := time.Now()
		cancel()
		require.NoError(t, <-ended)
		return time.Since(start)
	}
}

// B74
func TestShutdownTakesNoTimeAndFailsNoJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newShakyStore(nil)
		prov := polltest.NewProvider(bubbleClock{})
		prov.Default("running; at 60s running slow 9s")
		prov.Add("hinted", "429 retry-after 3600s job")
		rec := &polltest.Recorder{}
		cfg := jobpoll.Config{Store: store, Callbacks: rec.Callbacks(), Budget: jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Concurrent: 5}}),
			Routes: []jobpoll.Route{{Name: "r", Checker: prov, Schedule: every(30 * time.Second)}}}
		p, err := jobpoll.New(cfg)
		require.NoError(t, err)
		stop := runUntil(t, p)
		for _, id := range append(ids("j", 99), "hinted") {
			require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id}))
		}
		time.Sleep(62 * time.Second)
		require.Equal(t, 5, prov.InFlight())
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		cancelled := make(chan error)
		go func() { _, err := p.Wait(ctx, jobpoll.Job{Route: "r", ID: "hinted"}); cancelled <- err }()
		atEnd := make(chan error)
		go func() { _, err := p.Wait(t.Context(), jobpoll.Job{Route: "r", ID: "j001"}); atEnd <- err }()
		synctest.Wait()
		cancel()
		err = <-cancelled
		require.ErrorIs(t, err, context.Canceled)
		var stopped *jobpoll.StopError
		require.ErrorAs(t, err, &stopped)
		assert.Equal(t, jobpoll.ReasonNone, stopped.Outcome.Reason)
		assert.Zero(t, stop(), "calls under way are cancelled")
		require.ErrorIs(t, <-atEnd, jobpoll.ErrShutdown)
		assert.Zero(t, time.Since(start))
		assert.Zero(t, prov.InFlight())
		assert.Empty(t, rec.Outcomes(), "no job has failed")
		m := p.Metrics()
		assert.Equal(t, 100, m.Total.Unresolved)
		assert.Zero(t, m.Total.InFlight)
		assert.Zero(t, m.Total.Backlog)
		assert.Zero(t, m.Total.Failing, "a shutdown is no failed look")
		assert.Zero(t, m.StoreErrors)
		assert.Zero(t, m.Budgets["account"].Status.InFlight)
		assert.Zero(t, m.Budgets["account"].Status.Waiting)
		info, _ := p.Job(key("j001"))
		assert.LessOrEqual(t, info.Polls, 2)

		// The jobs go on with another Poller on the same store.
		cfg.Budget = nil
		q, err := jobpoll.New(cfg)
		require.NoError(t, err)
		prov.Default("succeeded")
		for _, id := range ids("j", 99) {
			prov.Add(id, "succeeded")
		}
		stop = runUntil(t, q)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Len(t, rec.Outcomes(), 99, "the hinted one still waits")
		stop()
	})
}

func TestGraceLetsCallsFinish(t *testing.T) {
	for _, took := range []time.Duration{4 * time.Second, 20 * time.Second} {
		t.Run(took.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				prov := polltest.NewProvider(bubbleClock{})
				prov.Default("succeeded slow " + took.String())
				p, err := jobpoll.New(jobpoll.Config{ShutdownGrace: 10 * time.Second, Routes: []jobpoll.Route{{Name: "r", Checker: prov, Schedule: every(time.Second)}}})
				require.NoError(t, err)
				stop := runUntil(t, p)
				require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "j"}))
				time.Sleep(2 * time.Second)
				lasted := stop()
				info, _ := p.Job(key("j"))
				if took < 10*time.Second {
					assert.Equal(t, 3*time.Second, lasted)
					require.NotNil(t, info.Outcome)
				} else {
					assert.Equal(t, 10*time.Second, lasted)
					require.Nil(t, info.Outcome)
				}
			})
		})
	}
}

func TestRunAgainAfterRunButNotTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prov := polltest.NewProvider(bubbleClock{})
		prov.AddAt("j", time.Now(), "running; at 100s succeeded")
		rec := &polltest.Recorder{}
		p, err := jobpoll.New(jobpoll.Config{Callbacks: rec.Callbacks(), Routes: []jobpoll.Route{{Name: "r", Checker: prov, Schedule: every(10 * time.Second)}}})
		require.NoError(t, err)
		require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "j"}))
		time.Sleep(15 * time.Second)
		assert.Zero(t, prov.Total(), "nothing happens before Run")
		for range 3 {
			stop := runUntil(t, p)
			require.ErrorIs(t, p.Run(t.Context()), jobpoll.ErrRunning)
			time.Sleep(25 * time.Second)
			stop()
			n := prov.Total()
			time.Sleep(15 * time.Second)
			assert.Equal(t, n, prov.Total(), "nor after it")
		}
		stop := runUntil(t, p)
		synctest.Wait()
		assert.Len(t, rec.Outcomes(), 1)
		stop()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, p.Run(ctx), "a context that has ended already")
	})
}

func TestRunNamesCodeThatDoesNotHonourItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p, err := jobpoll.New(jobpoll.Config{
			Callbacks: jobpoll.Callbacks{OnStop: func(context.Context, jobpoll.Outcome) error { <-release; return nil }},
			Routes: []jobpoll.Route{{Name: "r", Schedule: every(time.Second), Checker: jobpoll.CheckerFunc(func(_ context.Context, j jobpoll.Job) (jobpoll.Report, error) {
				if j.ID == "deaf" {
					<-release
				}
				return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
			})}},
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "deaf"}))
		require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "callback"}))
		time.Sleep(5 * time.Second)
		start := time.Now()
		cancel()
		err = <-ended
		assert.Equal(t, 10*time.Second, time.Since(start))
		require.ErrorContains(t, err, "r/deaf")
		require.ErrorContains(t, err, "r/callback")
		close(release)
		synctest.Wait()
	})
}

// A callback that outlived its Run is not called a second time beside itself
// by the next one, which takes the job up once it has returned.
func TestCallbackThatOutlivesRunIsNotDoubled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var now, most, calls atomic.Int64
		prov := polltest.NewProvider(bubbleClock{})
		prov.Default("succeeded")
		p, err := jobpoll.New(jobpoll.Config{
			Routes: []jobpoll.Route{{Name: "r", Checker: prov, Schedule: every(time.Second)}},
			Callbacks: jobpoll.Callbacks{OnStop: func(context.Context, jobpoll.Outcome) error {
				most.Store(max(most.Load(), now.Add(1)))
				defer now.Add(-1)
				if calls.Add(1) == 1 {
					<-release
					return errors.New("cut off")
				}
				return nil
			}},
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "j"}))
		time.Sleep(5 * time.Second)
		cancel()
		require.Error(t, <-ended)
		stop := runUntil(t, p)
		time.Sleep(time.Minute)
		assert.EqualValues(t, 1, calls.Load())
		close(release)
		time.Sleep(10 * time.Second)
		assert.EqualValues(t, 2, calls.Load())
		assert.EqualValues(t, 1, most.Load())
		info, _ := p.Job(key("j"))
		assert.True(t, info.Delivered)
		stop()
	})
}

// B73 in part: after any mix of ends nothing is left, without time passing.
func TestEndsLeaveNoTimerAndNoGoroutine(t *testing.T) {
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
		c.Stop.MaxAge = time.Hour
		c.Routes[0].Checker = c.Routes[0].Checker.(*polltest.Provider)
	})
	idle := r.Clock.Timers()
	for i, id := range ids("j", 1000) {
		r.prov.Add(id, []string{"succeeded", "failed", "canceled", "410", "running"}[i%5])
	}
	r.watch(ids("j", 1000)...)
	r.to(5 * time.Second)
	for _, id := range ids("j", 1000) {
		_ = r.Abandon(t.Context(), key(id), nil)
	}
	r.Clock.Settle()
	r.Clock.Settle()
	assert.Len(t, r.rec.Outcomes(), 1000)
	assert.LessOrEqual(t, r.Clock.Timers(), idle+1, "one timer, whatever has been watched")
	assert.Zero(t, r.Metrics().Total.Unresolved)
}

// Everything at once, under the race detector.
func TestCancelAndAllElseRacing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prov := polltest.NewProvider(bubbleClock{})
		prov.Default("queued; at 20s running 10% slow 1s; at 60s running 50%; at 90s succeeded slow 2s")
		store := newShakyStore(nil)
		stops := map[string]int{}
		var mu sync.Mutex
		p, err := jobpoll.New(jobpoll.Config{
			Store: store, Budget: jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 50, Burst: 10, Concurrent: 20}, Jobs: 1000}),
			Routes: []jobpoll.Route{{Name: "r", Checker: prov, Schedule: every(3 * time.Second)}},
			Callbacks: jobpoll.Callbacks{
				OnUpdate: func(context.Context, jobpoll.Update) {},
				OnStop: func(_ context.Context, o jobpoll.Outcome) error {
					if rand.IntN(4) == 0 {
						return errors.New("again")
					}
					mu.Lock()
					stops[o.Job.ID]++
					mu.Unlock()
					return nil
				},
			},
		})
		require.NoError(t, err)
		const n = 200
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(1, uint64(w)))
				for range 1500 {
					id := fmt.Sprintf("j%03d", r.IntN(n))
					ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
					switch r.IntN(9) {
					case 0:
						_, _ = p.Wait(ctx, jobpoll.Job{Route: "r", ID: id})
					case 1:
						_ = p.PollNow(key(id))
					case 2:
						if r.IntN(20) == 0 {
							_ = p.Abandon(ctx, key(id), nil)
						}
					case 3:
						_ = p.Cancel(ctx, key(id), nil)
					case 4:
						_ = p.Notify(ctx, told(id, jobpoll.State(r.IntN(4))))
					case 5:
						for range p.Follow(ctx, key(id)) {
						}
					case 6:
						_ = p.Metrics()
						for range p.Jobs() {
						}
					case 7:
						_, _ = p.Job(key(id))
					case 8:
						time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
					}
					cancel()
				}
			})
		}
		over := make(chan struct{})
		go func() { wg.Wait(); close(over) }()
		for run := true; run; {
			stop := runUntil(t, p)
			time.Sleep(7 * time.Second)
			stop()
			select {
			case <-over:
				run = false
			default:
			}
		}
		for k := range p.Jobs() {
			_ = p.Notify(t.Context(), told(k.Job.ID, jobpoll.StateSucceeded))
		}
		stop := runUntil(t, p)
		time.Sleep(30 * time.Minute)
		m := p.Metrics()
		assert.Zero(t, m.Total.Unresolved)
		assert.Zero(t, m.Total.InFlight)
		assert.Zero(t, m.Total.Backlog)
		assert.Zero(t, m.Callbacks.Undelivered)
		ends := uint64(0)
		for _, v := range m.Total.Stops {
			ends += v
		}
		assert.Equal(t, m.Total.Watched+m.Total.Restored, ends)
		mu.Lock()
		told := 0
		for _, v := range stops {
			told += v
		}
		mu.Unlock()
		assert.EqualValues(t, ends, told, "each watch was told once")
		stop()
	})
}
