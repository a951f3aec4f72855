package durations

import (
	"math"
	"time"
)

// curve is a distribution: the chance to take longer than each of some ages,
// which rise from zero, straight in between. Beyond the last age the chance
// falls with the root of the age.
type curve struct {
	ages, alive []float64
}

func (c *curve) empty() bool { return c == nil || len(c.ages) == 0 }

// at is the chance to take longer than x.
func (c *curve) at(x float64) float64 {
	last := len(c.ages) - 1
	switch {
	case !(x > 0):
		return 1
	case math.IsInf(x, 1):
		return 0
	case x >= c.ages[last]:
		return c.alive[last] * math.Sqrt(c.ages[last]/x)
	}
	i := c.index(x)
	part := (x - c.ages[i]) / (c.ages[i+1] - c.ages[i])
	return c.alive[i] + part*(c.alive[i+1]-c.alive[i])
}

// index gives the i for which ages[i] <= x < ages[i+1], for x below the last.
func (c *curve) index(x float64) int {
	lo, hi := 0, len(c.ages)-1
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) >> 1); c.ages[mid] <= x {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// mass is the chance to end in (lo, hi].
func (c *curve) mass(lo, hi float64) float64 { return c.at(lo) - c.at(hi) }

// quantile is the age by which the part q has ended.
func (c *curve) quantile(q float64) float64 {
	if c.empty() {
		return 0
	}
	if !(q > 0) { // NaN too
		q = 0
	}
	want := 1 - min(q, 1)
	last := len(c.ages) - 1
	if c.alive[last] > want {
		return c.ages[last]
	}
	lo, hi := 0, last // alive[lo] > want >= alive[hi]
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) >> 1); c.alive[mid] > want {
			lo = mid
		} else {
			hi = mid
		}
	}
	drop := c.alive[lo] - c.alive[hi]
	if drop <= 0 {
		return c.ages[lo]
	}
	return c.ages[lo] + (c.alive[lo]-want)/drop*(c.ages[hi]-c.ages[lo])
}

func durationOf(s float64) time.Duration { return time.Duration(min(s, Max.Seconds()) * 1e9) }
