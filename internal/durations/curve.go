package durations

import (
	"math"
	"time"
)

// curve is a distribution: the chance to take longer than each of some ages,
// which rise from zero, straight in between. Beyond the last age the chance
// falls with the root of the age.
type curve[F float32 | float64] struct {
	ages, alive []F
}

func (c *curve[F]) empty() bool { return c == nil || len(c.ages) == 0 }

// at is the chance to take longer than x.
func (c *curve[F]) at(x float64) float64 {
	last := len(c.ages) - 1
	switch {
	case !(x > 0):
		return 1
	case math.IsInf(x, 1):
		return 0
	case x >= float64(c.ages[last]):
		return float64(c.alive[last]) * math.Sqrt(float64(c.ages[last])/x)
	}
	i := c.index(x)
	a, b := float64(c.ages[i]), float64(c.ages[i+1])
	s, t := float64(c.alive[i]), float64(c.alive[i+1])
	return s + (x-a)/(b-a)*(t-s)
}

// index gives the i for which ages[i] <= x < ages[i+1], for x below the last.
func (c *curve[F]) index(x float64) int {
	lo, hi := 0, len(c.ages)-1
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) >> 1); float64(c.ages[mid]) <= x {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// mass is the chance to end in (lo, hi].
func (c *curve[F]) mass(lo, hi float64) float64 { return c.at(lo) - c.at(hi) }

// quantile is the age by which the part q has ended.
func (c *curve[F]) quantile(q float64) float64 {
	if c.empty() {
		return 0
	}
	if !(q > 0) { // NaN too
		q = 0
	}
	want := F(1 - min(q, 1))
	last := len(c.ages) - 1
	if c.alive[last] > want {
		return float64(c.ages[last])
	}
	lo, hi := 0, last // alive[lo] > want >= alive[hi]
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) >> 1); c.alive[mid] > want {
			lo = mid
		} else {
			hi = mid
		}
	}
	part := F(0)
	if drop := c.alive[lo] - c.alive[hi]; drop > 0 {
		part = (c.alive[lo] - want) / drop
	}
	return float64(c.ages[lo] + part*(c.ages[hi]-c.ages[lo]))
}

// probe is an age shortly before almost all end, by as much as they spread; zero
// where they spread enough that looks fall among them.
func (s *series) probe() float64 {
	early, late := s.fitted.quantile(0.1), s.fitted.quantile(0.9)
	if wide := late - early; wide <= few*early {
		return early - wide
	}
	return 0
}

func durationOf(s float64) time.Duration { return time.Duration(min(s, Max.Seconds()) * 1e9) }
