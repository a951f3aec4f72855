package jobpoll

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAcquireKeepsRateAndSlots(t *testing.T) {
	b := NewBudget("account", Limits{Total: Limit{Rate: 10, Burst: 2, Concurrent: 3}}) // outside the bubble
	r := b.Child("route", Limits{})
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var now, peak, n atomic.Int64
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				done, err := r.Acquire(t.Context(), Lane(i%2))
				if !assert.NoError(t, err) {
					return
				}
				peak.Store(max(peak.Load(), now.Add(1)))
				time.Sleep(100 * time.Millisecond)
				now.Add(-1)
				n.Add(1)
				done(nil)
				done(nil) // once more is nothing
			})
		}
		wg.Wait()
		assert.EqualValues(t, 60, n.Load())
		assert.LessOrEqual(t, peak.Load(), int64(3))
		assert.InDelta(t, 5.9, time.Since(start).Seconds(), 0.2)
		requireBudgetIdle(t, b)
	})
}

func TestAcquireServesInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget("account", Limits{Total: Limit{Rate: 1, Burst: 1}})
		order := make(chan int, 10)
		for i := range 10 {
			go func() {
				done, err := b.Acquire(t.Context(), LaneStatus)
				if assert.NoError(t, err) {
					order <- i
					done(nil)
				}
			}()
			synctest.Wait()
		}
		for i := range 10 {
			assert.Equal(t, i, <-order)
		}
		synctest.Wait()
		requireBudgetIdle(t, b)
	})
}

func TestAcquireEndsWithItsContextAndSaysWhatItWaitedFor(t *testing.T) {
	stop := errors.New("enough")
	for _, c := range []struct {
		name    string
		limits  Limits
		before  func(b *Budget)
		message string
	}{
		{"total rate", Limits{Total: Limit{Rate: 0.01}}, nil, `jobpoll: budget "account/p": waited for the total rate of "account": context canceled: enough`},
		{"lane rate", Limits{Submit: LaneLimits{Limit: Limit{Rate: 0.01}}}, nil, `jobpoll: budget "account/p": waited for the submit rate of "account": context canceled: enough`},
		{"slots", Limits{Total: Limit{Concurrent: 1}}, nil, `jobpoll: budget "account/p": waited for one of 1 concurrent calls to end of "account": context canceled: enough`},
		{"lane slots", Limits{Submit: LaneLimits{Limit: Limit{Concurrent: 1}}}, nil, `jobpoll: budget "account/p": waited for one of 1 concurrent submit calls to end of "account": context canceled: enough`},
		{"jobs", Limits{Jobs: 2}, func(b *Budget) { b.jobStarted() }, `jobpoll: budget "account/p": waited for one of 2 remote jobs to end of "account": context canceled: enough`},
		{"cool-down", Limits{}, func(b *Budget) {
			g, _ := b.tryAcquire(b.now(), LaneSubmit)
			g.done(rateLimit(3600))
		}, `jobpoll: budget "account/p": waited for the end of the submit lane's cool-down at 2000-01-01T01:00:00Z: context canceled: enough`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := NewBudget("account", c.limits).Child("p", Limits{})
				g, _ := b.tryAcquire(b.now(), LaneSubmit)
				if c.before != nil {
					c.before(b)
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(stop) })
				start := time.Now()
				done, err := b.Acquire(ctx, LaneSubmit)
				assert.Nil(t, done)
				require.ErrorIs(t, err, stop)
				require.ErrorIs(t, err, context.Canceled)
				assert.EqualError(t, err, c.message)
				assert.Equal(t, time.Second, time.Since(start))
				g.done(nil)
				requireBudgetIdle(t, b.root())
			})
		})
	}
}

func TestAcquireGrantsNothingToAContextThatHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("gone")
	cancel(cause)
	b := NewBudget("account", Limits{Total: Limit{Rate: 1}})
	for _, n := range []*Budget{b, nil} {
		done, err := n.Acquire(ctx, LaneSubmit)
		assert.Nil(t, done)
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, err, context.Canceled)
	}
	_, err := b.Acquire(ctx, LaneSubmit)
	assert.EqualError(t, err, `jobpoll: budget "account": submit call not begun: context canceled: gone`)
	assert.Zero(t, b.snapshot().Submit.Granted)
	_, err = b.Acquire(t.Context(), 7)
	assert.EqualError(t, err, `jobpoll: budget "account": no such lane: 7`)
}

// lateContext has ended, but its Done tells so too late.
type lateContext struct {
	context.Context
	ended atomic.Bool
}

func (c *lateContext) Done() <-chan struct{} { return nil }

func (c *lateContext) Err() error {
	if c.ended.Load() {
		return context.Canceled
	}
	return nil
}

func TestGrantThatComesWithTheEndOfTheContextIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget("account", Limits{Total: Limit{Concurrent: 1}})
		first, err := b.Acquire(t.Context(), LaneStatus)
		require.NoError(t, err)
		ctx := &lateContext{Context: t.Context()}
		go func() {
			done, err := b.Acquire(ctx, LaneStatus)
			assert.Nil(t, done)
			assert.Error(t, err)
		}()
		synctest.Wait()
		ctx.ended.Store(true)
		first(nil)
		synctest.Wait()
		requireBudgetIdle(t, b)
		assert.EqualValues(t, 1, b.snapshot().Status.Granted)
	})
}

// B51 with real waiters: all but the last leave.
func TestCanceledAcquireFreesItsPlaceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget("account", Limits{Total: Limit{Rate: 1, Burst: 1}})
		done, err := b.Acquire(t.Context(), LaneStatus)
		require.NoError(t, err)
		done(nil)
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		for range 99 {
			go func() {
				_, err := b.Acquire(ctx, LaneStatus)
				assert.ErrorIs(t, err, context.Canceled)
			}()
		}
		synctest.Wait()
		time.AfterFunc(500*time.Millisecond, cancel)
		done, err = b.Acquire(t.Context(), LaneStatus)
		require.NoError(t, err)
		assert.InDelta(t, 1, time.Since(start).Seconds(), 1e-6)
		done(nil)
		requireBudgetIdle(t, b)
	})
}

func TestSetLimitsWakesAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget("account", Limits{Total: Limit{Rate: 1e-6, Burst: 1}})
		start := time.Now()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				done, err := b.Acquire(t.Context(), LaneStatus)
				if assert.NoError(t, err) {
					done(nil)
				}
			})
		}
		synctest.Wait()
		assert.Equal(t, 4, b.snapshot().Status.Waiting)
		time.Sleep(time.Second)
		b.SetLimits(Limits{})
		wg.Wait()
		assert.Equal(t, time.Second, time.Since(start))
		requireBudgetIdle(t, b)
	})
}

func TestBudgetWorksInOneBubbleAfterTheOther(t *testing.T) {
	b := NewBudget("account", Limits{Total: Limit{Rate: 1, Burst: 1}})
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			for range 3 {
				done, err := b.Acquire(t.Context(), LaneStatus)
				require.NoError(t, err)
				done(nil)
			}
			requireBudgetIdle(t, b)
		})
	}
}

func TestWakeMayCallBack(t *testing.T) {
	c := newBudgetClock()
	b := budgetOn(t, c, Limits{Total: Limit{Rate: 1, Burst: 1}})
	n := 0
	var again func(g grant)
	again = func(g grant) {
		n++
		b.snapshot()
		b.Child("x", Limits{})
		_, ok := b.tryAcquire(b.now(), LaneStatus)
		assert.False(t, ok)
		g.done(nil)
		if n < 5 {
			b.want(LaneStatus, again)
		}
	}
	b.want(LaneStatus, again)
	c.to(10)
	assert.Equal(t, 5, n)
	requireBudgetIdle(t, b)
}

// A grant that was made but not yet told can still be withdrawn, whole.
func TestWithdrawingAnUndeliveredGrantGivesItBack(t *testing.T) {
	b := budgetOn(t, newBudgetClock(), Limits{Total: Limit{Rate: 1, Burst: 2, Concurrent: 2}})
	g1, _ := b.tryAcquire(b.now(), LaneStatus)
	g2, _ := b.tryAcquire(b.now(), LaneStatus)
	b.SetLimits(Limits{Total: Limit{Concurrent: 2}})
	told := 0
	var cancelB func()
	b.want(LaneStatus, func(grant) { told++; cancelB() }) // served first, withdraws the second
	cancelB = b.want(LaneStatus, func(grant) { t.Error("told after it was withdrawn") })
	b.SetLimits(Limits{Total: Limit{Concurrent: 4}})
	assert.Equal(t, 1, told)
	m := b.snapshot().Status
	assert.Equal(t, 3, m.InFlight)
	assert.EqualValues(t, 3, m.Granted)
	g1.done(nil)
	g2.done(nil)
}

// Everything at once, for the race detector: whatever happens, nothing is left.
func TestBudgetUnderConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := NewBudget("account", Limits{})
		nodes := []*Budget{root, root.Child("a", Limits{}), root.Child("b", Limits{})}
		nodes = append(nodes, nodes[1].Child("r", Limits{}), nodes[2].Child("r", Limits{}))
		var wg sync.WaitGroup
		for w := range 16 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(w), 1))
				for range 300 {
					disturb(t.Context(), r, nodes[r.IntN(len(nodes))])
				}
			})
		}
		wg.Wait()
		synctest.Wait() // for wakes that the timer makes
		requireBudgetIdle(t, root)
		assert.Zero(t, root.snapshot().Jobs)
		assert.Positive(t, root.snapshot().Submit.Granted)
	})
}

func disturb(ctx context.Context, r *rand.Rand, b *Budget) {
	lane := Lane(r.IntN(2))
	switch r.IntN(9) {
	case 0:
		b.root().SetLimits(Limits{Total: Limit{Rate: 1e3 + 1e4*r.Float64(), Burst: 1 + r.IntN(50), Concurrent: 3 + r.IntN(10)},
			Submit: LaneLimits{Reserve: Limit{Rate: 1e2}}, Jobs: r.IntN(3) * 10})
	case 1:
		b.snapshot()
		b.faults()
		b.closedUntil(lane)
	case 2:
		b.jobStarted()
		time.Sleep(time.Duration(r.IntN(1000)) * time.Microsecond)
		b.jobEnded()
	case 3:
		if g, ok := b.tryAcquire(b.now(), lane); ok {
			g.giveBack()
		}
	case 4:
		b.want(lane, func(g grant) { g.done(nil) })()
	case 5, 6:
		ctx, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(2000))*time.Microsecond)
		defer cancel()
		if done, err := b.Acquire(ctx, lane); err == nil {
			time.Sleep(time.Duration(r.IntN(500)) * time.Microsecond)
			done(errors.New("fault"))
			done(nil)
		}
	case 7:
		cancel := b.want(lane, func(g grant) { time.AfterFunc(time.Millisecond, func() { g.done(nil) }) })
		time.Sleep(time.Duration(r.IntN(2000)) * time.Microsecond)
		cancel()
		time.Sleep(time.Millisecond)
	case 8:
		if g, ok := b.tryAcquire(b.now(), lane); ok {
			g.done(&CheckError{Kind: ErrorTransient, Hint: Hint{RetryAfter: time.Millisecond, Scope: Scope(r.IntN(4))}})
		}
	}
}
