package durations

import "math"

// basis is what is believed before anything was seen.
type basis struct {
	family   *curve[float32]
	mean, sd float64 // of the logarithm of what was seen; a zero sd: not known yet
}

// believe writes the part of each cell, in jobs, into base, and gives the sum.
func (f *fitter) believe(b *basis) float64 {
	clear(f.base[:f.n])
	// What nothing was seen of becomes less likely faster than what was seen
	// becomes certain.
	fading, narrow := 1+f.weight/doubt, b.narrow()
	sum := broad / (fading * (1 + narrow*(fading-1)))
	f.put(sum, b.below(&f.ages, f.n))
	if b.sd > 0 {
		w := alike / fading
		f.put(w, normal{b.mean, 1.3*b.sd + 1e-3}.below)
		sum += w
	}
	if !b.family.empty() {
		w := inherit / (1 + narrow*(f.weight/own)*(f.weight/own))
		f.put(w, func(x float64) float64 { return 1 - b.family.at(x) })
		sum += w
	}
	return sum
}

// narrow tells, from 0 to 1, whether what was seen fell into one narrow place.
func (b *basis) narrow() float64 {
	if b.sd == 0 {
		return 0
	}
	return 1 / (1 + (b.sd/slim)*(b.sd/slim))
}

// below is the distribution of the wide prior.
func (b *basis) below(ages *[cells + 1]float64, n int) func(float64) float64 {
	if b.sd == 0 {
		lo := math.Log(ages[1])
		width := math.Log(ages[n-1]) - lo
		return func(x float64) float64 {
			if x <= ages[1] {
				return 0
			}
			return min((math.Log(x)-lo)/width, 1)
		}
	}
	return normal{b.mean, broadSigma}.below
}

func (f *fitter) put(weight float64, below func(float64) float64) {
	before := 0.0
	for i := range f.n {
		next := 1.0
		if i+1 < f.n {
			next = below(f.ages[i+1])
		}
		f.base[i] += weight * max(next-before, 0)
		before = next
	}
}

// estimate finds, by expectation maximisation on the present grid, the chance
// of each cell: every span is spread over the cells that it covers, by what is
// known of them. What is believed is not part of it: most spans begin at zero,
// seen by a first look, and would lend what is believed of the time before their
// own weight.
func (f *fitter) estimate() {
	for range rounds {
		f.step()
		f.survive()
	}
}

// blend mixes what is believed into the chances, by how much is known.
func (f *fitter) blend(b *basis) {
	believed, left := f.believe(b), 1.0
	all := f.weight + believed
	for i := range f.n {
		f.alive[i] = (f.weight*f.alive[i] + believed*max(left, 0)) / all
		left -= f.base[i] / believed
	}
}

// step is one round. A span whose chance is m multiplies the cells that it
// covers by weight/m; that is summed as differences, so a span costs no more
// for covering much.
func (f *fitter) step() {
	c := curve[float64]{f.ages[:f.n], f.alive[:f.n]}
	clear(f.coef[:f.n+1])
	clear(f.tmp[:f.n])
	for _, v := range f.spans {
		i, pi := f.locate(&c, v.lo)
		if v.lo == v.hi {
			f.tmp[i] += v.weight
			continue
		}
		j, pj := f.n-1, 1.0
		if !math.IsInf(v.hi, 1) {
			j, pj = f.locate(&c, v.hi)
		}
		// The parts of the cells i and j that lie within.
		if i == j {
			f.tmp[i] += v.weight
			continue
		}
		first, last := f.part[i]*(1-pi), f.part[j]*pj
		m := first + last + max(f.alive[i+1]-f.alive[j], 0)
		if m <= 1e-300 {
			f.tmp[(i+j)/2] += v.weight
			continue
		}
		r := v.weight / m
		f.tmp[i] += first * r
		f.tmp[j] += last * r
		f.coef[i+1] += r
		f.coef[j] -= r
	}
	const least = 1e-6 // so that no cell is ruled out for ever
	r, sum := 0.0, 0.0
	for i := range f.n {
		r += f.coef[i]
		f.part[i] = f.part[i]*max(r, 0) + f.tmp[i] + least
		sum += f.part[i]
	}
	for i := range f.n {
		f.part[i] /= sum
	}
}

// locate gives the cell of x and the part of the cell below x.
func (f *fitter) locate(c *curve[float64], x float64) (int, float64) {
	last := f.n - 1
	if x >= f.ages[last] {
		return last, 1 - f.ages[last]/max(x, 1e-9)
	}
	i := c.index(x)
	return i, (x - f.ages[i]) / (f.ages[i+1] - f.ages[i])
}
