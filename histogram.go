package jobpoll

import (
	"slices"
	"time"
)

// Histogram is a distribution as counts per bucket.
type Histogram struct {
	// Bounds are the upper ends of the buckets, inclusive and rising.
	Bounds []float64 `json:"bounds"`
	// Counts has one more entry than Bounds: the last is what lies above all.
	Counts []uint64 `json:"counts"`
	// Count and Sum are the number and the sum of all values.
	Count uint64  `json:"count"`
	Sum   float64 `json:"sum"`
}

// Mean returns the average, zero for an empty histogram.
func (h Histogram) Mean() float64 {
	if h.Count == 0 {
		return 0
	}
	return h.Sum / float64(h.Count)
}

// Quantile estimates the value below which the part q (0..1) of all values
// lies, by a straight line inside its bucket; the last bound for what lies
// above all bounds, zero for an empty histogram.
func (h Histogram) Quantile(q float64) float64 {
	if h.Count == 0 || len(h.Bounds) == 0 {
		return 0
	}
	if !(q > 0) { // NaN too
		q = 0
	}
	want := min(q, 1) * float64(h.Count)
	low := 0.0
	for i, high := range h.Bounds {
		if i >= len(h.Counts) {
			break
		}
		n := float64(h.Counts[i])
		if n > 0 && want <= n {
			return low + (high-low)*want/n
		}
		want -= n
		low = high
	}
	return h.Bounds[len(h.Bounds)-1]
}

// add merges another histogram with the same bounds; the zero one takes them over.
func (h *Histogram) add(o Histogram) {
	if len(h.Counts) == 0 {
		h.Bounds = slices.Clone(o.Bounds)
		h.Counts = make([]uint64, len(o.Counts))
	}
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.Count += o.Count
	h.Sum += o.Sum
}

// The bounds of the built-in histograms; shared, never handed out.
var (
	pollBounds  = []float64{0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 256, 512, 1024}
	delayBounds = []float64{0.1, 0.25, 0.5, 1, 2, 3, 4, 5, 7.5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1800, 3600}
	lateBounds  = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
)

// tally is a histogram that is being filled.
type tally struct {
	bounds []float64
	counts []uint64
	sum    float64
}

func newTally(bounds []float64) tally {
	return tally{bounds: bounds, counts: make([]uint64, len(bounds)+1)}
}

func (t *tally) observe(v float64) {
	i := 0
	for i < len(t.bounds) && t.bounds[i] < v { // nearly all are small
		i++
	}
	t.counts[i]++
	t.sum += v
}

// observeDuration counts a duration in seconds; negative counts as zero.
func (t *tally) observeDuration(d time.Duration) {
	t.observe(float64(max(d, 0)) / float64(time.Second))
}

func (t *tally) snapshot() Histogram {
	h := Histogram{Bounds: slices.Clone(t.bounds), Counts: slices.Clone(t.counts), Sum: t.sum}
	for _, n := range t.counts {
		h.Count += n
	}
	return h
}
