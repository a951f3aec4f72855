package durations

import (
	"sync"
)

const (
	// cells is how many ages a fit has. They lie where looks will: their
	// density follows the root of density × survival, as that of the best looks
	// does, with the rest over the tails.
	cells = 160
	// runningCells and errorCells are those of durations from the start of running
	// and of the errors of estimates.
	runningCells = 80
	errorCells   = 56
	// broad is the weight of the prior, in jobs: lognormal around what was seen.
	broad = 2.0
	// alike is the weight of a lognormal as wide as what was seen, in jobs.
	alike = 8.0
	// doubt is after how many jobs the prior has lost half its weight.
	doubt = 10.0
	// broadSigma is its spread.
	broadSigma = 1.0
	// inherit is the weight of the family in a profile, in jobs.
	inherit = 5.0
	// own is after how many jobs of its own the family has lost half of that; it
	// goes on to fall faster than what was seen becomes certain.
	own = 20.0
	// slim is the deviation of the logarithm below which a profile has almost no
	// spread.
	slim = 0.05
	// few is the part of a duration within which nearly all must end so that
	// looks fall behind them only.
	few = 0.1
	// bandwidth of the kernel, in deviations of the logarithm at one job.
	bandwidth = 0.9
	// rounds of expectation maximisation for each grid.
	rounds = 6
)

// fitter is the scratch space of a fit. The grid is the ages; part[i] is the
// chance to end in (ages[i], ages[i+1]], the last one beyond all ages.
type fitter struct {
	ages, alive, part, base, coef, tmp, old [cells + 1]float64
	n                                       int // of ages
	cells                                   int // how many there shall be
	spans                                   []weighted
	weight                                  float64
}

type weighted struct {
	lo, hi, weight float64
}

var fitters = sync.Pool{New: func() any { return new(fitter) }}

// fit finds the distribution that the spans come from, in at most so many cells,
// blended with a wide prior and the family's by how much is known, and keeps it.
func (s *series) fit(prior *curve[float32], cells int) {
	f := fitters.Get().(*fitter)
	defer fitters.Put(f)
	f.cells = cells
	f.load(s)
	f.logGrid()
	b := basis{family: prior}
	f.uniform()
	for range 3 {
		f.estimate()
		b.mean, b.sd = f.center()
		f.place(&b)
	}
	f.estimate()
	seen := curve[float64]{f.ages[:f.n], f.alive[:f.n]}
	for i, q := range percentiles {
		s.told[i] = float32(seen.quantile(q))
	}
	f.smooth(b.sd)
	f.blend(&b)
	f.clean()
	s.fitted = curve[float32]{narrow(f.ages[:f.n]), narrow(f.alive[:f.n])}
	s.since, s.anew, s.blended = 0, true, false
}

// load lists what was seen: the latest spans as they are, older ones as bins.
func (f *fitter) load(s *series) {
	f.spans, f.weight = f.spans[:0], 0
	w := 1.0
	for i := len(s.recent) - 1; i >= 0; i-- {
		v := s.recent[i]
		f.spans = append(f.spans, weighted{float64(v.lo), float64(v.hi), w})
		f.weight += w
		w *= fade
	}
	for i, m := range s.slow.mass {
		if m <= 0 {
			continue
		}
		bin, left := s.slow.base+i, 0.0
		if bin > 0 {
			left = edge(bin - 1)
		}
		f.spans = append(f.spans, weighted{left, edge(bin), float64(m)})
		f.weight += float64(m)
	}
}

func narrow(v []float64) []float32 {
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(x)
	}
	return out
}
