package durations

import "math"

const (
	// fast is how many of the latest spans stand for what is new.
	fast = 8
	// slack and alarm are those of the test: a sum of log likelihood ratios,
	// less slack a job and never below zero, that strikes above alarm.
	slack = 0.1
	alarm = 8.0
)

// watch is the test for drift (a one-sided CUSUM): is the new span better told
// by the last few than by all? Where that has held for long enough, only those
// few are kept.
func (s *series) watch(v span) {
	if s.fitted.empty() || len(s.recent) < 2*fast {
		return
	}
	old := s.fitted.mass(float64(v.lo), float64(v.hi))
	latest := s.recent[len(s.recent)-fast:]
	if v.lo == v.hi {
		old = s.fitted.mass(float64(v.lo)*0.95, float64(v.hi)*1.05)
	}
	const least = 1e-3
	ratio := math.Log(max(bell(latest).mass(v)*0.9+old*0.1, least) / max(old, least))
	s.drift = max(0, s.drift+float32(min(max(ratio, -3), 3))-slack)
	s.rise++
	if s.drift == 0 {
		s.rise = 0
	}
	if s.drift > alarm {
		s.reset()
	}
}

// reset forgets what was before the sum began to rise, which is when the
// change was, but for the few that it was told by.
func (s *series) reset() {
	n := min(max(int(s.rise), fast), len(s.recent))
	n = copy(s.recent, s.recent[len(s.recent)-n:])
	s.recent = s.recent[:n]
	s.slow, s.drift, s.rise, s.fitted = histogram{}, 0, 0, curve[float32]{}
	s.resets++
}

// normal is a distribution of logarithms.
type normal struct{ mean, sd float64 }

// bell is a wide guess at what a few spans come from.
func bell(spans []span) normal {
	var n, sum, squares float64
	for _, v := range spans {
		x := v.middle()
		n, sum, squares = n+1, sum+x, squares+x*x
	}
	mean := sum / n
	return normal{mean, math.Sqrt(max(squares/n-mean*mean, 0))*1.3 + 0.05}
}

// middle is the logarithm of where a span lies, roughly.
func (s span) middle() float64 {
	lo, hi := math.Log(max(float64(s.lo), Min.Seconds())), math.Log(max(float64(s.hi), Min.Seconds()))
	if s.censored() {
		return lo + 0.7
	}
	if s.lo == 0 {
		return hi - 0.35
	}
	return (lo + hi) / 2
}

func (b normal) mass(v span) float64 {
	lo, hi := float64(v.lo), float64(v.hi)
	if v.lo == v.hi {
		lo, hi = lo*0.95, hi*1.05
	}
	return b.below(hi) - b.below(lo)
}

func (b normal) below(x float64) float64 {
	switch {
	case !(x > 0):
		return 0
	case math.IsInf(x, 1):
		return 1
	}
	return math.Erfc((b.mean-math.Log(x))/(b.sd*math.Sqrt2)) / 2
}
