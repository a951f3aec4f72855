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

	perOctave = 8
	bins      = 1 + 170
	// prior is what every bin weighs before anything was seen in it, in jobs:
	// one job over all bins. It keeps a bin that was never hit from staying at
	// nothing for ever, and is not part of any count.
	prior = 1.0 / bins
)

// edge returns the right end of bin i in seconds.
func edge(i int) float64 { return Min.Seconds() * math.Exp2(float64(i)/perOctave) }

// position places s seconds on the axis of bins: bin i is (i-1, i] for i > 0.
// What is at most Min lies, evenly, in (-1, 0].
func position(s float64) float64 {
	s = min(max(s, 0), Max.Seconds())
	if s <= Min.Seconds() {
		return s/Min.Seconds() - 1
	}
	return min(math.Log2(s/Min.Seconds())*perOctave, bins-1)
}

// binOf returns the bin of a position.
func binOf(x float64) int { return min(max(int(math.Ceil(x)), 0), bins-1) }

// histogram keeps mass only for the stretch of bins that was seen: a profile
// spans a few octaves, not all of them.
type histogram struct {
	base int // the bin of mass[0]
	mass []float32
}

// cover makes the bins from..to addressable.
func (h *histogram) cover(from, to int) {
	if len(h.mass) == 0 {
		h.base, h.mass = from, make([]float32, to-from+1)
		return
	}
	last := h.base + len(h.mass) - 1
	if from >= h.base && to <= last {
		return
	}
	from, to = min(from, h.base), max(to, last)
	wider := make([]float32, to-from+1)
	copy(wider[h.base-from:], h.mass)
	h.base, h.mass = from, wider
}

// total is the sum of all mass.
func (h *histogram) total() (sum float64) {
	for _, m := range h.mass {
		sum += float64(m)
	}
	return sum
}

// decay makes all that was seen count less.
func (h *histogram) decay(by float32) {
	for i := range h.mass {
		h.mass[i] *= by
	}
}

// add spreads weight over a span, in proportion to a density: one step of
// expectation maximisation. Without one the density is that of the bins.
func (h *histogram) add(s span, weight float64, density *curve[float32]) {
	hi := float64(s.hi)
	if s.censored() {
		hi = Max.Seconds()
	}
	x, y := position(float64(s.lo)), position(hi)
	first, last := binOf(x), binOf(y)
	if float64(first) == x && first < last {
		first++ // the left end is open: nothing of that bin is inside
	}
	h.cover(first, last)
	mass := h.mass[first-h.base : last-h.base+1]
	if len(mass) == 1 {
		mass[0] += float32(weight)
		return
	}
	share := func(i int) float64 { // how much of the bin lies inside, as weight
		right := float64(first + i)
		part := min(y, right) - max(x, right-1)
		if density.empty() {
			return (float64(mass[i]) + prior) * part
		}
		left := 0.0
		if first+i > 0 {
			left = edge(first + i - 1)
		}
		return density.mass(max(left, float64(s.lo)), min(edge(first+i), hi)) + 1e-6*part
	}
	var sum float64
	for i := range mass {
		sum += share(i)
	}
	scale := weight / sum
	shares := make([]float64, len(mass))
	for i := range mass {
		shares[i] = share(i)
	}
	for i := range mass {
		mass[i] += float32(shares[i] * scale)
	}
}
