package durations

import "math"

// logGrid starts with ages evenly spaced in the logarithm, around all ends seen.
func (f *fitter) logGrid() {
	lo, hi := math.Inf(1), 0.0
	for _, v := range f.spans {
		hi = max(hi, v.lo)
		if !math.IsInf(v.hi, 1) {
			hi = max(hi, v.hi)
		}
		if v.lo > 0 {
			lo = min(lo, v.lo)
		} else {
			lo = min(lo, v.hi/4)
		}
	}
	hi = min(max(hi, Min.Seconds())*16, 2*Max.Seconds())
	lo = min(max(lo/8, 1e-3), hi/64)
	f.n = f.cells
	f.ages[0] = 0
	step := math.Pow(hi/lo, 1/float64(f.cells-2))
	for i, x := 1, lo; i < f.cells; i++ {
		f.ages[i] = x
		x *= step
	}
}

// uniform starts with even chances in the logarithm.
func (f *fitter) uniform() {
	for i := range f.n {
		f.part[i] = 1 / float64(f.n)
	}
	f.survive()
}

// place puts the ages where looks will be: even steps of the integral of
// √(density·survival), mixed with even steps of the chance and of the
// logarithm.
func (f *fitter) place(b *basis) {
	seen, n := f.coef[:f.n], f.n-1 // cells with an end
	copy(seen, f.alive[:f.n])
	f.blend(b)
	var total float64
	for i := range n {
		ends := f.alive[i] - f.alive[i+1]
		f.tmp[i] = math.Sqrt(ends * (f.alive[i] + f.alive[i+1]) / 2 * (f.ages[i+1] - f.ages[i]))
		total += f.tmp[i]
	}
	whole, least := 1-f.alive[n], f.ages[1]
	span := math.Log(f.ages[n] / least)
	for i := range n {
		wide := math.Log(max(f.ages[i+1], least)/max(f.ages[i], least)) / span
		f.tmp[i] = 0.65*f.tmp[i]/total + 0.15*(f.alive[i]-f.alive[i+1])/whole + 0.2*wide
	}
	copy(f.alive[:f.n], seen)
	f.recut()
}

// recut moves the ages so that each cell has an even part of the shares in tmp,
// and keeps the chances.
func (f *fitter) recut() {
	n := f.n - 1
	ages, alive := f.old[:f.n], f.coef[:f.n]
	copy(ages, f.ages[:f.n])
	copy(alive, f.alive[:f.n])
	step, sum, at := 1/float64(f.cells-1), 0.0, 1
	for i := range n {
		for at < f.cells-1 && float64(at)*step <= sum+f.tmp[i] {
			part := (float64(at)*step - sum) / f.tmp[i]
			f.ages[at] = ages[i] + part*(ages[i+1]-ages[i])
			f.alive[at] = alive[i] + part*(alive[i+1]-alive[i])
			at++
		}
		sum += f.tmp[i]
	}
	for ; at < f.cells-1; at++ { // rounding
		f.ages[at] = f.ages[at-1] + (ages[n]-f.ages[at-1])/2
		f.alive[at] = alive[n]
	}
	f.ages[f.cells-1], f.alive[f.cells-1] = ages[n], alive[n]
	f.n = f.cells
	for i := range n {
		f.part[i] = max(f.alive[i]-f.alive[i+1], 0)
	}
	f.part[n] = f.alive[n]
}

// survive makes alive of part.
func (f *fitter) survive() {
	left := 1.0
	for i := range f.n {
		f.alive[i] = max(left, 0)
		left -= f.part[i]
	}
}

// center gives mean and deviation of the logarithm, by the quartiles.
func (f *fitter) center() (mean, sd float64) {
	c := curve[float64]{f.ages[:f.n], f.alive[:f.n]}
	q := func(p float64) float64 { return math.Log(max(c.quantile(p), 1e-3)) }
	return q(0.5), max((q(0.75)-q(0.25))/1.349, 1e-4)
}

// smooth blurs the chances over a kernel in the logarithm, twice over a box,
// as wide as befits the number of jobs.
func (f *fitter) smooth(sd float64) {
	h := bandwidth * sd * math.Pow(max(f.weight, 1), -0.2) * math.Sqrt(1.5)
	y, sum := f.base[:f.n], f.coef[:f.n]
	y[0] = math.Inf(-1)
	for i := 1; i < f.n; i++ {
		y[i] = math.Log(f.ages[i])
	}
	for range 2 {
		sum[1] = 0
		for i := 2; i < f.n; i++ {
			sum[i] = sum[i-1] + (f.alive[i-1]+f.alive[i])/2*(y[i]-y[i-1])
		}
		lo, hi := 1, 1
		for i := 1; i < f.n; i++ {
			a, left := f.integral(y, sum, y[i]-h, lo)
			b, right := f.integral(y, sum, y[i]+h, hi)
			lo, hi = left, right
			f.tmp[i] = (b - a) / (2 * h)
		}
		copy(f.alive[1:f.n], f.tmp[1:f.n])
	}
}

// integral is that of the chances up to x on the logarithmic axis; i is where
// the search begins, at or below x.
func (f *fitter) integral(y, sum []float64, x float64, i int) (float64, int) {
	last := f.n - 1
	if x <= y[1] {
		return x - y[1], 1
	}
	for i < last && y[i+1] <= x {
		i++
	}
	if i == last {
		return sum[last] + f.alive[last]*(x-y[last]), i
	}
	d := x - y[i]
	s := f.alive[i] + d/(y[i+1]-y[i])*(f.alive[i+1]-f.alive[i])
	return sum[i] + (f.alive[i]+s)/2*d, i
}

// clean drops ages too close to be told apart in half precision, and makes sure
// that the chances never rise.
func (f *fitter) clean() {
	n := 1
	f.alive[0] = 1
	for i := 1; i < f.n; i++ {
		if f.ages[i] < f.ages[n-1]*(1+1e-6)+1e-5 {
			continue
		}
		f.ages[n], f.alive[n] = f.ages[i], min(max(f.alive[i], 0), f.alive[n-1])
		n++
	}
	f.n = n
}
