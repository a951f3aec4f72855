package durations

import "math"

const (
	// keep is how many of the latest spans stay as they were seen. They are
	// spread anew with each fit, by what is known then; older ones are spread
	// once, over the bins of the histogram.
	keep = 48
	// memory is after how many jobs one counts 1/e of a new one.
	memory = 200
)

// series is one duration of one profile: the latest spans, and a decayed
// histogram of those before. Its zero value is empty.
type series struct {
	count  uint64 // jobs that ended
	recent []span // the oldest first
	slow   histogram
	drift  float32 // the sum of the test for drift
	rise   uint32  // for how many jobs it has been above zero
	resets uint32  // how often it has struck
	since  int32   // what was seen since the latest fit

	fitted  curve[float32] // the latest fit
	told    quantiles      // of what was seen, as of then, without any prior
	taken   int32          // since, when this was cloned
	anew    bool           // fitted is of the clone itself
	blended bool           // fitted is that of the latest plan
}

// quantiles are the 10th, 50th, 90th and 99th percentile.
type quantiles [4]float32

var percentiles = [4]float64{0.10, 0.50, 0.90, 0.99}

var fade = math.Exp(-1.0 / memory)

// add takes a span in.
func (s *series) add(v span) {
	s.watch(v)
	s.slow.decay(float32(fade))
	if len(s.recent) == keep {
		s.slow.add(s.recent[0], math.Pow(fade, keep), &s.fitted)
	}
	s.push(v)
}

// addBrief takes a span in, in place of what is older than the latest.
func (s *series) addBrief(v span) {
	s.watch(v)
	s.push(v)
}

// push makes a span the latest.
func (s *series) push(v span) {
	switch n := len(s.recent); {
	case n == keep:
		copy(s.recent, s.recent[1:])
		s.recent = s.recent[:keep-1]
	case n == cap(s.recent):
		s.recent = append(make([]span, 0, min(max(2*n, 6), keep)), s.recent...)
	}
	s.recent = append(s.recent, v)
	if !v.censored() {
		s.count++
	}
	s.since = min(s.since+1, math.MaxInt32-1)
}

// weight is the number of jobs known, each by what it still counts.
func (s *series) weight() float64 {
	n := len(s.recent)
	return s.slow.total() + (1-math.Pow(fade, float64(n)))/(1-fade)
}

// curve is the distribution as of the latest tenth of what is known.
func (s *series) curve(cells int) *curve[float32] {
	if s.count == 0 {
		return nil
	}
	if s.fitted.empty() || s.since >= max(1, int32(s.weight()/10)) {
		s.fit(nil, cells)
	}
	return &s.fitted
}

// chance is the part of those that take longer than after which end within
// the span, by the latest fit; negative while too little is known.
func (s *series) chance(v span, after float64) float64 {
	if s.count < Enough || s.fitted.empty() {
		return -1
	}
	c := &s.fitted
	if v.lo == v.hi { // about there
		v.lo, v.hi = v.lo*0.98, v.hi*1.02
	}
	rest := c.at(after)
	if rest <= 0 {
		return 0
	}
	return min(max(c.mass(max(float64(v.lo), after), float64(v.hi))/rest, 0), 1)
}
