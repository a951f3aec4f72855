package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// Dist is a known distribution of durations, in seconds.
type Dist interface {
	// Quantile gives the duration below which the part u of the jobs lies,
	// for u from 0 to less than 1.
	Quantile(u float64) float64
	// CDF gives the part of the jobs that take at most x.
	CDF(x float64) float64
}

// Draw gives the duration of one job.
func Draw(d Dist, r *rand.Rand) float64 { return d.Quantile(r.Float64()) }

// Even gives n durations that stand for the whole distribution: the middle of
// each of n parts of the same weight, in an order without a pattern.
func Even(d Dist, n int, r *rand.Rand) []float64 {
	all := make([]float64, n)
	for i, k := range r.Perm(n) {
		all[i] = d.Quantile((float64(k) + 0.5) / float64(n))
	}
	return all
}

// Lognormal is the lognormal distribution of a median, in seconds, and a sigma.
type Lognormal struct{ Median, Sigma float64 }

// Quantile implements Dist.
func (l Lognormal) Quantile(u float64) float64 {
	return l.Median * math.Exp(l.Sigma*math.Sqrt2*math.Erfinv(2*u-1))
}

// CDF implements Dist.
func (l Lognormal) CDF(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return math.Erfc(-math.Log(x/l.Median)/(l.Sigma*math.Sqrt2)) / 2
}

// Knots is a distribution of which some quantiles are known; between them the
// logarithm of the duration is linear in the quantile.
type Knots struct{ u, logX []float64 }

// NewKnots makes a distribution from rising quantiles: the part u[i] of the
// jobs takes at most x[i] seconds. Before the first and after the last the
// slope beside them goes on, so that the longest duration is finite.
func NewKnots(u, x []float64) (Knots, error) {
	if len(u) != len(x) || len(u) < 2 {
		return Knots{}, fmt.Errorf("%d quantiles of %d durations", len(u), len(x))
	}
	k := Knots{u: slices.Clone(u), logX: make([]float64, len(x))}
	for i := range x {
		if !(x[i] > 0) || math.IsInf(x[i], 0) || i > 0 && x[i] < x[i-1] {
			return Knots{}, fmt.Errorf("quantile %v is %v s: durations must be positive and rise", u[i], x[i])
		}
		if !(u[i] >= 0 && u[i] <= 1) || i > 0 && u[i] <= u[i-1] {
			return Knots{}, fmt.Errorf("%v is no quantile that may stand here", u[i])
		}
		k.logX[i] = math.Log(x[i])
	}
	return k, nil
}

// Quantile implements Dist.
func (k Knots) Quantile(u float64) float64 {
	i := min(max(sort.SearchFloat64s(k.u, u), 1), len(k.u)-1)
	part := (u - k.u[i-1]) / (k.u[i] - k.u[i-1])
	return math.Exp(k.logX[i-1] + part*(k.logX[i]-k.logX[i-1]))
}

// CDF implements Dist.
func (k Knots) CDF(x float64) float64 {
	if x <= 0 {
		return 0
	}
	l := math.Log(x)
	// The last knot at or before x counts, so that a step is taken whole.
	i := sort.Search(len(k.logX), func(i int) bool { return k.logX[i] > l })
	i = min(max(i, 1), len(k.u)-1)
	rise := k.logX[i] - k.logX[i-1]
	if rise == 0 {
		if l < k.logX[i] {
			return 0
		}
		return 1
	}
	return min(max(k.u[i-1]+(l-k.logX[i-1])/rise*(k.u[i]-k.u[i-1]), 0), 1)
}

// Queued is work that in a share of the cases first waits, exponentially
// distributed, in a queue.
func Queued(work Dist, share, wait float64) Dist {
	const parts, points = 400, 3000
	waits := make([]float64, parts)
	for i := range waits {
		waits[i] = -wait * math.Log1p(-(float64(i)+0.5)/parts)
	}
	first, last := work.Quantile(1e-7), work.Quantile(1-1e-6)+16*wait
	var k Knots
	for i := range points {
		x := first * math.Pow(last/first, float64(i)/(points-1))
		late := 0.0
		for _, w := range waits {
			late += work.CDF(x - w)
		}
		u := (1-share)*work.CDF(x) + share*late/parts
		if n := len(k.u); n > 0 && u <= k.u[n-1] {
			continue // past all that the sum can tell
		}
		k.u, k.logX = append(k.u, u), append(k.logX, math.Log(x))
	}
	return k
}

// Scaled is a distribution with every duration times By.
type Scaled struct {
	Dist
	By float64
}

// Quantile implements Dist.
func (s Scaled) Quantile(u float64) float64 { return s.By * s.Dist.Quantile(u) }

// CDF implements Dist.
func (s Scaled) CDF(x float64) float64 { return s.Dist.CDF(x / s.By) }

// Sample is the distribution of durations that were measured.
type Sample struct{ sorted []float64 }

// NewSample makes the distribution of some durations, at least one.
func NewSample(seconds []float64) Sample {
	s := slices.Clone(seconds)
	slices.Sort(s)
	return Sample{s}
}

// Quantile implements Dist.
func (s Sample) Quantile(u float64) float64 {
	n := len(s.sorted)
	return s.sorted[min(max(int(math.Ceil(u*float64(n)))-1, 0), n-1)]
}

// CDF implements Dist.
func (s Sample) CDF(x float64) float64 {
	n := sort.Search(len(s.sorted), func(i int) bool { return s.sorted[i] > x })
	return float64(n) / float64(len(s.sorted))
}
