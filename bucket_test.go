package jobpoll

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBucketStepByStep(t *testing.T) {
	type step struct {
		at   float64
		op   string // take; back: one that was taken at 0; late: one that was taken at 0.25
		ok   bool
		wait time.Duration // before the op
	}
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		rate  float64
		burst int
		steps []step
	}{
		{"no limit", 0, 0, []step{{0, "take", true, 0}, {0, "take", true, 0}, {0, "back", true, 0}, {0, "take", true, 0}}},
		{"a burst, then the rate", 10, 2, []step{
			{0, "take", true, 0}, {0, "take", true, 0}, {0, "take", false, 100 * ms},
			{0.05, "take", false, 50 * ms}, {0.1, "take", true, 0}, {0.1, "take", false, 100 * ms},
			{5, "take", true, 0}, {5, "take", true, 0}, {5, "take", false, 100 * ms}}},
		{"a token given back can be taken at once", 1, 1, []step{
			{0, "take", true, 0}, {0.25, "back", true, 750 * ms}, {0.25, "take", true, 0}, {0.25, "take", false, time.Second}}},
		{"giving back never exceeds the burst", 1, 1, []step{
			{0, "take", true, 0}, {0.5, "back", true, 500 * ms}, {0.5, "back", true, 0}, {1.5, "take", true, 0}, {1.5, "take", false, time.Second}}},
		// golang/go#56924: one of several is given back.
		{"the whole token comes back although others came too", 1, 3, []step{
			{0, "take", true, 0}, {0, "take", true, 0}, {0, "take", true, 0},
			{0.5, "back", true, 500 * ms}, {0.5, "take", true, 0}, {0.5, "take", false, 500 * ms}, {1, "take", true, 0}}},
		{"a token that a later one has passed is lost", 1, 1, []step{
			{0, "take", true, 0}, {1, "take", true, 0}, {1, "back", true, time.Second}, {1, "late", true, time.Second}, {1, "take", false, time.Second}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b tokenBucket
			b.set(time.Time{}, c.rate, c.burst)
			for i, s := range c.steps {
				now := atSec(s.at)
				assert.InDelta(t, s.wait, b.wait(now), 10, "step %d: wait", i)
				switch s.op {
				case "back":
					b.giveBack(now, atSec(0))
					continue
				case "late":
					b.giveBack(now, atSec(0.25))
					continue
				}
				assert.Equal(t, s.ok, b.ready(now), "step %d: ready", i)
				assert.Equal(t, s.ok, b.take(now), "step %d: take", i)
				if !s.ok {
					later := b.readyAt(now)
					assert.True(t, b.ready(later), "step %d: not ready at readyAt", i)
				}
			}
		})
	}
}

func TestBucketChangesLiveWithoutAGift(t *testing.T) {
	var b tokenBucket
	b.set(atSec(0), 1, 1)
	require.True(t, b.take(atSec(0)))
	b.set(atSec(0.5), 10, 10) // half a token was there
	assert.InDelta(t, 0.5, b.tokens(atSec(0.5)), 1e-6)
	assert.Equal(t, 50*time.Millisecond, b.wait(atSec(0.5)).Round(time.Microsecond))
	b.set(atSec(2), 10, 2)
	assert.InDelta(t, 2, b.tokens(atSec(2)), 1e-6)
	assert.True(t, b.take(atSec(2)))
	b.set(atSec(3), 10, 5)
	b.giveBack(atSec(3), atSec(2)) // it has refilled by then
	assert.InDelta(t, 2, b.tokens(atSec(3)), 1e-6)
	b.set(atSec(3), 0, 0)
	assert.True(t, b.take(atSec(3)))
	assert.Equal(t, math.Inf(1), b.tokens(atSec(3)))
}

func TestBucketHasNoOverflow(t *testing.T) {
	for _, rate := range []float64{1e-300, 1e-12, 1e-3, 1e3, 1e12, 1e300} {
		var b tokenBucket
		b.set(time.Time{}, rate, 1)
		require.True(t, b.take(atSec(0)))
		assert.GreaterOrEqual(t, b.wait(atSec(0)), time.Duration(0))
		assert.False(t, b.readyAt(atSec(0)).Before(atSec(0)), "rate %g", rate)
		b.giveBack(atSec(1), atSec(0))
		assert.LessOrEqual(t, b.tokens(atSec(1)), 1.0)
		assert.True(t, b.take(atSec(1)) || rate < 1e-9, "rate %g", rate)
	}
}
