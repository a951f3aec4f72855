package jobpoll

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A Rand of the user's is asked ahead of each hold of the lock; what is not
// used must not pile up.
func TestRandomNumbersDrawnAheadDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		p, err := New(Config{
			Workers: 1, Rand: func() float64 { return 0.5 },
			Routes: []Route{{Name: "r", Schedule: Schedule{Delays: []time.Duration{time.Second}},
				Checker: CheckerFunc(func(context.Context, Job) (Report, error) { looks++; return Report{State: StateRunning}, nil })}},
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- p.Run(ctx) }()
		for i := range 50 {
			require.NoError(t, p.Watch(ctx, Job{Route: "r", ID: fmt.Sprint(i)}))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Greater(t, looks, 2000)
		p.mu.Lock()
		kept := len(p.draws)
		p.mu.Unlock()
		require.LessOrEqual(t, kept, 2*maxDraws)
		cancel()
		require.NoError(t, <-ran)
	})
}
