package sim

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// brute is the least cost of all ways to look at some of the ends, which
// includes the last.
func brute(ends []float64, price float64) float64 {
	best, n := math.Inf(1), len(ends)
	for set := range 1 << (n - 1) {
		set |= 1 << (n - 1)
		cost := 0.0
		for i := range n {
			looks := 0
			for k := range n {
				if set&(1<<k) == 0 {
					continue
				}
				if looks++; ends[k] >= ends[i] {
					cost += price*float64(looks) + ends[k] - ends[i]
					break
				}
			}
		}
		best = min(best, cost/float64(n))
	}
	return best
}

func TestOptimumIsTheBestOfAllSchedules(t *testing.T) {
	r := Random(5)
	for range 200 {
		ends := make([]float64, 1+r.IntN(9))
		for i := range ends {
			ends[i] = 0.1 + 100*r.Float64()
			if i > 0 && r.IntN(4) == 0 {
				ends[i] = ends[i-1]
			}
		}
		d := NewSample(ends)
		price := math.Exp(6*r.Float64() - 2)
		var seen []Seen
		for _, x := range ends {
			n, late := Optimum(d, price).play(x)
			seen = append(seen, Seen{n, late})
		}
		require.InEpsilon(t, brute(d.sorted, price), Cost(seen, price), 1e-9, "%v at %v", d.sorted, price)
	}
}

// exponential has the same chance to end in every second.
type exponential struct{ mean float64 }

func (e exponential) Quantile(u float64) float64 { return -e.mean * math.Log1p(-u) }
func (e exponential) CDF(x float64) float64      { return -math.Expm1(-max(x, 0) / e.mean) }

func TestOptimumOfTheExponentialIsTheKnownPeriod(t *testing.T) {
	looks := Optimum(exponential{60}, 2)
	for i := range 10 {
		gap := looks[i]
		if i > 0 {
			gap -= looks[i-1]
		}
		assert.InDelta(t, 14.85, gap, 0.8, "(e^(hd) - 1)/h - d = c")
	}
}

func TestOptimumKeepsTheRecurrenceOfBarlowHunterAndProschan(t *testing.T) {
	d, c := Lognormal{55, 0.6}, 2.0
	looks := Optimum(d, c)
	for k := 1; k < 8; k++ {
		x := looks[k]
		density := (d.CDF(x+0.01) - d.CDF(x-0.01)) / 0.02
		want := (d.CDF(x)-d.CDF(looks[k-1]))/density - c
		assert.InDelta(t, want, looks[k+1]-x, 0.6, "after %.1f s", x)
	}
}

func TestMeanOfTheOptimumIsKnown(t *testing.T) {
	for _, w := range []struct {
		d           Dist
		looks, late float64
	}{{Lognormal{12, 0.25}, 2, 1.5}, {Lognormal{55, 0.6}, 4, 7.1}, {Lognormal{240, 0.25}, 3, 18.8}} {
		// The price at which so many looks are best.
		lo, hi := 0.01, 1000.0
		for range 40 {
			mid := math.Sqrt(lo * hi)
			if n, _ := Optimum(w.d, mid).Mean(w.d); n > w.looks {
				lo = mid
			} else {
				hi = mid
			}
		}
		_, late := Optimum(w.d, hi).Mean(w.d)
		assert.InEpsilon(t, w.late, late, 0.05, "%v at %v looks", w.d, w.looks)
	}
}

func TestBoundIsThatOfTheRelaxation(t *testing.T) {
	var shares []Share
	for _, p := range Mixed().Profiles {
		shares = append(shares, Share{p.Weight, p.Dist})
	}
	for _, w := range []struct{ looks, delay, price float64 }{{2, 6.23, 4.31}, {5, 2.11, 0.46}} {
		delay, price := Bound(shares, w.looks)
		assert.InEpsilon(t, w.delay, delay, 0.03)
		assert.InEpsilon(t, w.price, price, 0.1)
	}
}

func TestLooksGoOnBeyondTheirEnd(t *testing.T) {
	n, late := Looks{10, 30}.play(85)
	assert.Equal(t, 5, n)
	assert.InDelta(t, 5, late, 1e-9)
	n, late = Looks{10}.play(25)
	assert.Equal(t, 3, n)
	assert.InDelta(t, 5, late, 1e-9)
	n, late = Looks{10, 30}.play(30)
	assert.Equal(t, 2, n)
	assert.Zero(t, late)
}
