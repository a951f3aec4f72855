package jobpoll

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// cohorts counts jobs by the instant of their birth, so that the ages of a
// million jobs are read from a few thousand counts. The young are told apart
// by the second, those older than an hour by the minute, those older than a
// day by the hour.
type cohorts struct {
	jobs   int
	counts [3]map[int64]int // by the cohort's first second
	// Births before until[i] are in no level up to i. Both only grow, and are
	// whole steps of the next level, so a birth finds its cohort again.
	until [2]int64
}

var (
	cohortStep = [3]int64{1, 60, 3600}
	cohortKeep = [2]int64{3600, 86400}
)

// cohort is a number of jobs that were born in or soon after a second.
type cohort struct {
	start int64
	jobs  int
}

func newCohorts() cohorts {
	c := cohorts{until: [2]int64{math.MinInt64, math.MinInt64}}
	for i := range c.counts {
		c.counts[i] = make(map[int64]int)
	}
	return c
}

func stepDown(v, step int64) int64 {
	d := v - v%step
	if d > v { // below zero
		d -= step
	}
	return d
}

func (c *cohorts) find(second int64) (level int, start int64) {
	for level < len(c.until) && second < c.until[level] {
		level++
	}
	return level, stepDown(second, cohortStep[level])
}

func (c *cohorts) add(born time.Time) {
	level, start := c.find(born.Unix())
	c.counts[level][start]++
	c.jobs++
}

// remove takes out a job that was added with the same birth.
func (c *cohorts) remove(born time.Time) {
	level, start := c.find(born.Unix())
	switch n := c.counts[level][start]; {
	case n > 1:
		c.counts[level][start] = n - 1
	case n == 1:
		delete(c.counts[level], start)
	default:
		return // never added
	}
	c.jobs--
}

// compact moves the older cohorts into coarser ones.
func (c *cohorts) compact(now time.Time) {
	for i := range c.until {
		c.until[i] = max(c.until[i], stepDown(now.Unix()-cohortKeep[i], cohortStep[i+1]))
	}
	for i := range c.until {
		for start, n := range c.counts[i] {
			if start < c.until[i] {
				level, coarse := c.find(start)
				c.counts[level][coarse] += n
				delete(c.counts[i], start)
			}
		}
	}
}

// list appends all cohorts to dst, in no order.
func (c *cohorts) list(dst []cohort) []cohort {
	for _, level := range c.counts {
		for start, n := range level {
			dst = append(dst, cohort{start, n})
		}
	}
	return dst
}

// ages reads the ages from cohorts of one or several routes; it sorts them.
func ages(all []cohort, now time.Time) AgeMetrics {
	total := 0
	for _, c := range all {
		total += c.jobs
	}
	if total == 0 {
		return AgeMetrics{}
	}
	slices.SortFunc(all, func(a, b cohort) int { return cmp.Compare(b.start, a.start) }) // youngest first
	age := func(c cohort) time.Duration { return max(now.Sub(time.Unix(c.start, 0)), 0) }
	// quantile is the least age that percent of all jobs do not exceed.
	quantile := func(percent int) time.Duration {
		rank := (total*percent + 99) / 100
		for _, c := range all {
			if rank -= c.jobs; rank <= 0 {
				return age(c)
			}
		}
		return age(all[len(all)-1])
	}
	return AgeMetrics{Oldest: age(all[len(all)-1]), P50: quantile(50), P95: quantile(95)}
}
