package jobpoll_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestANoticeDoesNotCutTheProvidersWaitShort(t *testing.T) {
	for name, script := range map[string]string{"on a pending answer": "running retry-after 1m", "on a rate limit": "429 retry-after 1m job"} {
		for _, trust := range []jobpoll.Trust{jobpoll.TrustHint, jobpoll.TrustAuthoritative} {
			t.Run(name+", "+trust.String(), func(t *testing.T) {
				r := rigOf(t, nil)
				r.prov.Add("a", script+"; at 30s running")
				r.watch("a")
				r.to(10 * time.Second)
				for i := range 3 {
					require.NoError(t, r.notify(jobpoll.Notice{
						Key: key("a"), Trust: trust, Report: jobpoll.Report{State: jobpoll.StateRunning, Progress: 0.1 * float64(i+1)},
					}))
					require.NoError(t, r.PollNow(key("a")))
					r.Clock.Jump(time.Hour)
					r.to(time.Duration(20+10*i) * time.Second)
				}
				r.to(64 * time.Second)
				assert.Equal(t, []float64{5}, r.looks("a"))
				r.to(70 * time.Second)
				assert.Equal(t, []float64{5, 65 + 3*3600}, r.looks("a")[:2], "wall time")
			})
		}
	}
}

// The provider does not know that the call was ours to cut off.
func TestALookThatAShutdownCutOffIsNotRepeatedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		var at []time.Time
		b.check = func(ctx context.Context, _ jobpoll.Job) (jobpoll.Report, error) {
			at = append(at, time.Now())
			if len(at) < 3 {
				<-ctx.Done()
				return jobpoll.Report{}, ctx.Err()
			}
			return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
		}
		b.start(func(_ *jobpoll.Config, r *jobpoll.Route) {
			r.Guidance = map[string]jobpoll.Guidance{"": {Floor: 5 * time.Second}}
		})
		k := b.watch("a")
		b.sleep(2.5)
		require.Len(t, at, 1)
		for range 2 {
			b.stop()
			b.run()
			require.NoError(t, b.PollNow(k))
			synctest.Wait()
			b.sleep(5)
		}
		b.sleep(10)
		require.Len(t, at, 3)
		for i := 1; i < len(at); i++ {
			assert.Equal(t, 5*time.Second, at[i].Sub(at[i-1]))
		}
		assert.Equal(t, 1, len(b.stops("a")))
	})
}

func TestWatchesAnewWithoutALookDoNotCutTheProvidersWaitShort(t *testing.T) {
	for _, store := range []jobpoll.Store{nil, newShakyStore(nil)} {
		r := rigOf(t, func(_ *rig, cfg *jobpoll.Config) { cfg.Store = store })
		r.prov.Add("a", "running retry-after 1m")
		r.watch("a")
		r.to(10 * time.Second)
		for i := range 4 {
			require.NoError(t, r.Abandon(t.Context(), key("a"), nil))
			if i > 1 {
				r.Clock.Settle() // the end was told
			}
			r.watch("a")
			require.NoError(t, r.PollNow(key("a")))
			r.to(time.Duration(20+10*i) * time.Second)
		}
		r.to(70 * time.Second)
		assert.Equal(t, []float64{5, 65}, r.looks("a"), "store %v", store != nil)
		r.Stop()
	}
}
