package sim

import (
	"math"
	"slices"
)

// Looks are the ages, in seconds and rising, at which a policy looks.
type Looks []float64

// Optimum gives the looks of which price·looks + delay is the least on average
// where the distribution is known. It weighs every pair of candidates, so that
// it is slow, simple, and independent of the planner that it judges: with S
// the part of the jobs that takes longer, going from a look at x to the next
// at y costs S(x)·(price + y - x), and the cheapest way to the end is wanted.
//
// A look only needs to be where jobs end: moved down to the last end before
// it, it learns the same sooner. So the candidates are quantiles.
func Optimum(d Dist, price float64) Looks {
	x := candidates(d, price)
	n := len(x)
	left := make([]float64, n) // S
	for i := range x {
		left[i] = 1 - d.CDF(x[i])
	}
	rest, next := make([]float64, n), make([]int, n)
	from := func(age, s float64, after int) (cost float64, to int) {
		cost = math.Inf(1)
		for j := after; j < n; j++ {
			step := s * (price + x[j] - age)
			if step >= cost {
				break // later ones only cost more
			}
			if step += rest[j]; step < cost {
				cost, to = step, j
			}
		}
		return cost, to
	}
	for i := n - 2; i >= 0; i-- {
		rest[i], next[i] = from(x[i], left[i], i+1)
	}
	_, i := from(0, 1, 0)
	looks := Looks{x[i]}
	for i < n-1 {
		i = next[i]
		looks = append(looks, x[i])
	}
	return looks
}

// candidates gives the quantiles, closer at the far end, and where they lie
// further apart than the looks will, ages between them.
func candidates(d Dist, price float64) []float64 {
	const parts, within = 900, 16
	if s, ok := d.(Sample); ok && len(s.sorted) <= 2*parts {
		return slices.Compact(slices.Clone(s.sorted))
	}
	var x []float64
	for i := range parts {
		x = append(x, d.Quantile((float64(i)+0.5)/parts))
	}
	for beyond := 0.5 / parts; beyond > 1e-7; beyond *= 0.8 {
		x = append(x, d.Quantile(1-beyond))
	}
	slices.Sort(x)
	x = slices.Compact(x)
	all := []float64{x[0]}
	for i := 1; i < len(x); i++ {
		a, b := x[i-1], x[i]
		ending := (d.CDF(b) - d.CDF(a)) / (b - a)
		gap := math.Sqrt(2 * price * (1 - d.CDF(a)) / ending) // the best, where looks are many
		n := math.Ceil(min(within*(b-a)/gap, 1000))
		for k := 1.0; k < n; k++ {
			all = append(all, a+(b-a)*k/n)
		}
		all = append(all, b)
	}
	return all
}

// Mean gives the looks per job and the delay, in seconds, that a schedule
// takes on average where jobs are so distributed.
func (l Looks) Mean(d Dist) (looks, delay float64) {
	const parts = 2000
	for i := range parts {
		t := d.Quantile((float64(i) + 0.5) / parts)
		n, late := l.play(t)
		looks += float64(n)
		delay += late
	}
	return looks / parts, delay / parts
}

// play gives the looks at a job and how late the last was.
func (l Looks) play(takes float64) (n int, late float64) {
	k, found := slices.BinarySearch(l, takes)
	if found || k < len(l) {
		return k + 1, l[k] - takes
	}
	gap := l.lastGap()
	more := math.Ceil((takes - l[len(l)-1]) / gap)
	return len(l) + int(more), l[len(l)-1] + more*gap - takes
}

// lastGap is how the looks go on beyond their end, where hardly a job comes.
func (l Looks) lastGap() float64 {
	if n := len(l); n > 1 {
		return l[n-1] - l[n-2]
	}
	return l[0]
}

// Share is a part of all jobs, and how they are distributed.
type Share struct {
	Part float64
	Dist Dist
}

// Bound is a delay, in seconds a job on average, that no policy can stay below
// which has so many looks a job: with a price on each look the constraint is
// gone and each job is on its own, and the cost of that optimum, less the
// price of the looks that one has, is below the delay of any policy, for every
// price. The best price is returned too.
func Bound(jobs []Share, looks float64) (delay, price float64) {
	at := func(p float64) float64 {
		sum := 0.0
		for _, j := range jobs {
			n, d := Optimum(j.Dist, p).Mean(j.Dist)
			sum += j.Part * (p*n + d)
		}
		return sum - p*looks
	}
	// It is concave in the price: a search by thirds, in the logarithm.
	lo, hi := math.Log(0.02), math.Log(1e3)
	for range 18 {
		a, b := lo+(hi-lo)/3, hi-(hi-lo)/3
		if at(math.Exp(a)) < at(math.Exp(b)) {
			lo = a
		} else {
			hi = b
		}
	}
	price = math.Exp((lo + hi) / 2)
	return at(price), price
}
