package durations

import (
	"math"
	"time"
)

// The bins: bin 0 holds (0, Min], bin i holds (edge(i-1), edge(i)], evenly
// spaced in the logarithm.
const (
	// Min and Max bound what is told apart: a quarter of a second and a bit
	// more than a week. Anything outside counts in the first or last bin.
	Min = 250 * time.Millisecond
	Max = 623_487 * time.Second

	perOctave = 16
	bins      = 1 + 340
	// prior is what every bin weighs before anything was seen in it, in jobs:
	// one job over all bins. It spreads the first interval evenly in the
	// logarithm, keeps a bin that was never hit from staying at nothing for
	// ever, and is not part of any count.
	prior = 1.0 / bins
)

// edge returns the right end of bin i in seconds.
func edge(i int) float64 { return Min.Seconds() * math.Exp2(float64(i)/perOctave) }

// position places d on the axis of bins: bin i is (i-1, i] for i > 0. What is
// at most Min lies, evenly, in (-1, 0].
func position(d time.Duration) float64 {
	s := min(max(d, 0), Max).Seconds()
	if s <= Min.Seconds() {
		return s/Min.Seconds() - 1
	}
	return min(math.Log2(s/Min.Seconds())*perOctave, bins-1)
}

// at is the inverse of position, in time.
func at(x float64) time.Duration {
	if x <= 0 {
		return time.Duration((x + 1) * float64(Min))
	}
	return time.Duration(edge(0) * math.Exp2(x/perOctave) * float64(time.Second))
}

// binOf returns the bin of a position.
func binOf(x float64) int { return min(max(int(math.Ceil(x)), 0), bins-1) }

// histogram keeps mass only for the stretch of bins that was seen: a profile
// spans a few octaves, not all of them.
type histogram struct {
	base  int // the bin of mass[0]
	mass  []float64
	total float64
}

// cover makes the bins from..to addressable.
func (h *histogram) cover(from, to int) {
	if len(h.mass) == 0 {
		h.base, h.mass = from, make([]float64, to-from+1)
		return
	}
	last := h.base + len(h.mass) - 1
	if from >= h.base && to <= last {
		return
	}
	from, to = min(from, h.base), max(to, last)
	wider := make([]float64, to-from+1)
	copy(wider[h.base-from:], h.mass)
	h.base, h.mass = from, wider
}

// add spreads one job over (lo, hi]: one step of expectation maximisation, in
// proportion to the density so far.
func (h *histogram) add(lo, hi time.Duration) {
	x, y := position(lo), position(hi)
	first, last := binOf(x), binOf(y)
	if float64(first) == x && first < last {
		first++ // the left end is open: nothing of that bin is inside
	}
	h.cover(first, last)
	h.total++
	mass := h.mass[first-h.base : last-h.base+1]
	if len(mass) == 1 {
		mass[0]++
		return
	}
	share := func(i int) float64 { // how much of the bin lies inside
		right := float64(first + i)
		return min(y, right) - max(x, right-1)
	}
	var sum float64
	for i, m := range mass {
		sum += (m + prior) * share(i)
	}
	for i, m := range mass {
		mass[i] += (m + prior) * share(i) / sum
	}
}

// quantile returns the duration below which the part q of the jobs lies; zero
// for an empty histogram.
func (h *histogram) quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	if !(q > 0) { // NaN too
		q = 0
	}
	want := min(q, 1) * h.total
	end := 0.0
	for i, m := range h.mass {
		if m == 0 {
			continue
		}
		right := float64(h.base + i)
		end = right
		if want <= m {
			return at(right - 1 + want/m)
		}
		want -= m
	}
	return at(end) // rounding left a crumb
}
