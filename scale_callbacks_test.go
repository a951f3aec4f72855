package jobpoll_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// OnStop blocks for a minute for two thousand jobs: the ends of others are told
// meanwhile, and the goroutines are bounded.
func TestCallbacksThatBlockDoNotKeepOthersFromBeingTold(t *testing.T) {
	const slow, others = 2000, 3000
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
		}
		b.callbacks.OnStop = func(_ context.Context, o jobpoll.Outcome) error {
			if o.Job.ID[0] == 's' {
				time.Sleep(time.Minute)
			}
			return nil
		}
		b.start(nil)
		before := runtime.NumGoroutine()
		for i := range slow {
			require.NoError(t, b.Watch(t.Context(), jobOf(fmt.Sprint("s", i))))
		}
		b.sleep(5)
		require.Equal(t, slow, b.Metrics().Callbacks.Undelivered, "the metric shows it")
		for i := range others {
			require.NoError(t, b.Watch(t.Context(), jobOf(fmt.Sprint("o", i))))
		}
		b.sleep(10)
		m := b.Metrics()
		assert.EqualValues(t, slow+others, m.Total.Stops[jobpoll.ReasonSucceeded])
		assert.Equal(t, slow, m.Callbacks.Undelivered)
		assert.LessOrEqual(t, runtime.NumGoroutine(), before+2*slow+1024)
		b.sleep(120)
		assert.Zero(t, b.Metrics().Callbacks.Undelivered)
	})
}
