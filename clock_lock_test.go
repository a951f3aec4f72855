package jobpoll_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// callingClock asks Budget and Poller whenever it is read: it hangs where that
// is under a lock of theirs.
type callingClock struct {
	*polltest.Clock
	ask func()
	in  atomic.Bool
}

func (c *callingClock) call() {
	if c.ask != nil && c.in.CompareAndSwap(false, true) {
		defer c.in.Store(false)
		c.ask()
	}
}

func (c *callingClock) Now() time.Time {
	c.call()
	return c.Clock.Now()
}

func (c *callingClock) Monotonic() time.Duration {
	c.call()
	return c.Clock.Monotonic()
}

// nowOnly has no Monotonic.
type nowOnly struct{ jobpoll.Clock }

func TestClocksAreReadUnderNoLock(t *testing.T) {
	limits := jobpoll.Limits{Total: jobpoll.Limit{Rate: 2, Burst: 2, Concurrent: 3}, Jobs: 3}
	for name, plain := range map[string]bool{"with a monotonic clock": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			clock := &callingClock{Clock: polltest.NewClock(time.Time{})}
			cfg := jobpoll.Config{Clock: clock, Budget: jobpoll.NewBudget("a", limits), Store: jobpoll.NewMemoryStore(clock.Clock)}
			if plain {
				cfg.Clock = nowOnly{clock}
			}
			prov := polltest.NewProvider(clock.Clock)
			prov.Default("at 3s 429 retry-after 20s once; at 4s 429 once; at 40s succeeded")
			cfg.Routes = []jobpoll.Route{{Name: "r", Checker: prov, Schedule: every(time.Second)}}
			p, err := jobpoll.New(cfg)
			require.NoError(t, err)
			var asked atomic.Int64
			clock.ask = func() {
				asked.Add(1)
				_ = cfg.Budget.Limits()
				_ = p.Health()
				_, _ = p.Job(jobpoll.Key{Route: "r", ID: "a"})
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- p.Run(ctx) }()
			step := func(f func()) { // what hangs here hangs under a lock
				t.Helper()
				done := make(chan struct{})
				go func() { defer close(done); f() }()
				select {
				case <-done:
				case <-time.After(20 * time.Second):
					require.FailNow(t, "the clock was read under a lock")
				}
			}
			for _, id := range ids("j", 4) {
				step(func() { assert.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id})) })
			}
			leave, left := context.WithCancel(t.Context())
			defer left()
			for i := range 60 {
				step(func() {
					clock.Advance(time.Second)
					_, _ = p.Metrics(), p.Submissions()
					if i == 10 {
						go func() {
							_, _ = p.Submit(leave, jobpoll.Submission{Job: jobpoll.Job{Route: "r", ClientKey: "c"}, Send: func(context.Context) (jobpoll.Sent, error) {
								return jobpoll.Sent{}, &jobpoll.CheckError{Kind: jobpoll.ErrorRateLimited}
							}})
						}()
					}
					if i == 20 {
						left()
						cfg.Budget.SetLimits(limits)
					}
					wait, done := context.WithCancel(t.Context())
					go done()
					if call, err := cfg.Budget.Acquire(wait, jobpoll.Lane(i%2)); err == nil {
						call(errors.New("a fault"))
					}
					done()
				})
			}
			step(func() { cancel(); assert.NoError(t, <-ended) })
			assert.Greater(t, asked.Load(), int64(100))
		})
	}
}
