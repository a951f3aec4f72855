package jobpoll

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestHistogramBoundsAreInclusiveAndTheLastCountIsOverflow(t *testing.T) {
	h := newTally([]float64{1, 2, 4})
	for _, v := range []float64{0, 1, 1.5, 2, 4, 4.1, 100} {
		h.observe(v)
	}
	s := h.snapshot()
	assert.Equal(t, []float64{1, 2, 4}, s.Bounds)
	assert.Equal(t, []uint64{2, 2, 1, 2}, s.Counts)
	assert.EqualValues(t, 7, s.Count)
	assert.InDelta(t, 112.6, s.Sum, 1e-9)
	assert.InDelta(t, 112.6/7, s.Mean(), 1e-9)
}

func TestHistogramQuantiles(t *testing.T) {
	h := Histogram{Bounds: []float64{10, 20, 40}, Counts: []uint64{10, 10, 0, 0}, Count: 20, Sum: 200}
	for _, c := range []struct{ q, want float64 }{
		{0, 0}, {0.25, 5}, {0.5, 10}, {0.75, 15}, {1, 20}, {-1, 0}, {2, 20}, {math.NaN(), 0},
	} {
		assert.InDelta(t, c.want, h.Quantile(c.q), 1e-9, "q=%v", c.q)
	}
	over := Histogram{Bounds: []float64{10, 20}, Counts: []uint64{0, 0, 3}, Count: 3, Sum: 900}
	assert.InDelta(t, 20, over.Quantile(0.5), 1e-9, "no more is known than: above the last bound")
}

func TestEmptyHistogramHasNoNaN(t *testing.T) {
	assert.Zero(t, Histogram{}.Mean())
	assert.Zero(t, Histogram{}.Quantile(0.5))
}

func TestNegativeDurationCountsAsZero(t *testing.T) {
	h := newTally(lateBounds)
	h.observeDuration(-time.Hour)
	h.observeDuration(math.MaxInt64)
	s := h.snapshot()
	assert.EqualValues(t, 1, s.Counts[0])
	assert.EqualValues(t, 1, s.Counts[len(lateBounds)])
}

func TestBuiltInBoundsRise(t *testing.T) {
	for _, bounds := range [][]float64{pollBounds, delayBounds, lateBounds} {
		for i := 1; i < len(bounds); i++ {
			assert.Greater(t, bounds[i], bounds[i-1])
		}
	}
}
