package jobpoll

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A job that is due, waits for the budget, and is moved out of the line and into
// it again by notices: what it leaves behind in the line is bounded.
func TestNoticesForADueJobDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := NewBudget("account", Limits{Total: Limit{Concurrent: 1}})
		p, err := New(Config{Budget: budget, Stop: StopRules{MaxAge: NoLimit, MaxProcessing: NoLimit, NoProgress: NoLimit, MaxQueued: NoLimit}, Routes: []Route{{Name: "r", Checker: CheckerFunc(func(context.Context, Job) (Report, error) {
			return Report{State: StateSucceeded}, nil
		})}}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- p.Run(ctx) }()
		done, err := budget.Acquire(ctx, LaneStatus)
		require.NoError(t, err)
		keys := []Key{{Route: "r", ID: "a"}, {Route: "r", ID: "b"}}
		for _, k := range keys {
			require.NoError(t, p.Watch(ctx, Job{Route: "r", ID: k.ID}))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for range 5000 {
			time.Sleep(2 * time.Second)
			synctest.Wait()
			for _, k := range keys {
				require.NoError(t, p.Notify(ctx, Notice{Key: k, Trust: TrustAuthoritative, Report: Report{State: StateRunning}}))
				require.NoError(t, p.PollNow(k))
			}
		}
		synctest.Wait()
		p.mu.Lock()
		rt := p.routes["r"]
		n := len(rt.urgent.items) + len(rt.ready.items)
		p.mu.Unlock()
		require.LessOrEqual(t, n, 4096)
		done(nil)
		time.Sleep(time.Minute)
		require.Zero(t, p.Metrics().Total.Unresolved)
		cancel()
		require.NoError(t, <-ran)
	})
}
