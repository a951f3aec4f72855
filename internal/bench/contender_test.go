package main

import (
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// earliest is by how much a contender may advance a look, to put some together.
const earliest = 6.0 // ms

// measured lets all contenders work at once, which says nothing of speed.
func measured(t *testing.T, o order) map[string]result {
	t.Helper()
	all := map[string]result{}
	var mu sync.Mutex
	var children sync.WaitGroup
	for _, c := range contenders {
		order := o
		order.Contender = c.name
		children.Go(func() {
			r, err := inChild(t.Context(), order)
			mu.Lock()
			defer mu.Unlock()
			if assert.NoError(t, err) {
				all[c.name] = r
			}
		})
	}
	children.Wait()
	require.Len(t, all, len(contenders))
	return all
}

func TestEveryContenderLooksAtEveryJobAndNeverEarly(t *testing.T) {
	t.Parallel()
	for name, r := range measured(t, order{
		Warm: 1500 * time.Millisecond, Duration: 1500 * time.Millisecond,
		Load: load{Jobs: 500, Interval: time.Second, Lead: 400 * time.Millisecond, Garbage: 512},
	}) {
		t.Run(name, func(t *testing.T) {
			assert.Zero(t, r.Unseen)
			assert.Less(t, r.EarlyMs, earliest)
			assert.Positive(t, r.LooksPerS)
			assert.LessOrEqual(t, r.LooksPerS, 600.0)
			assert.Positive(t, r.Goroutines)
			for what, v := range map[string]float64{"B/job": r.BytesPerJob, "ns/look": r.LookNs, "GC": r.GCMs} {
				assert.Positive(t, v, what)
			}
			assert.LessOrEqual(t, r.LateP50Ms, r.LateP99Ms)
			assert.LessOrEqual(t, r.LateP99Ms, r.LateMaxMs)
		})
	}
}

func TestEveryContenderWorksOffABurst(t *testing.T) {
	t.Parallel()
	for name, r := range measured(t, order{Duration: 5 * time.Second, Load: settings{Jobs: 2000}.burstLoad(), Burst: true}) {
		t.Run(name, func(t *testing.T) {
			require.NotNil(t, r.Burst)
			assert.Equal(t, 1.0, r.Burst.Done)
			assert.Positive(t, r.Burst.Goroutines)
			assert.Positive(t, r.Burst.TickerMaxMs)
			if name == "jobpoll" {
				for _, call := range []string{"Watch", "Notify", endingCall, "PollNow", "Job", "Metrics"} {
					assert.Positive(t, r.Burst.Calls[call].Count, call)
				}
			}
		})
	}
}

func TestAContenderIsLeftOutOfWorkThatIsNotForIt(t *testing.T) {
	c, err := contenderNamed("azcore")
	require.NoError(t, err)
	assert.Empty(t, c.unfit(load{Jobs: 10_000, Interval: time.Second}))
	assert.NotEmpty(t, c.unfit(load{Jobs: 10_001, Interval: time.Second}))
	assert.NotEmpty(t, c.unfit(load{Jobs: 10, Interval: time.Millisecond}))
	all, err := settings{Runs: 1, chosen: []contender{c}}.compare(t.Context(), load{Jobs: 20_000, Interval: time.Second}, io.Discard)
	require.NoError(t, err)
	assert.Empty(t, all)
}

func TestTheErrorOfAChildIsTold(t *testing.T) {
	_, err := inChild(t.Context(), order{Contender: "nobody"})
	require.ErrorContains(t, err, `no contender "nobody"`)
}
