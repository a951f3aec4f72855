// Package plan decides when looking at a job is worth its price, given how
// long such jobs take. It is pure: tables of numbers in, tables of numbers out.
package plan

// Solver finds the looks of least cost. It keeps its scratch space between
// calls; the zero Solver is ready. It is not safe for concurrent use.
type Solver struct {
	value []float64
	hull  []int32
}

// Solve writes into next[i] which of the ages to look at after a look at
// ages[i] that found the job unfinished: the exact minimum of
//
//	cost·(number of looks) + delay of the detection
//
// over all ways to choose looks among the ages. ages rise strictly; alive[i],
// which never rises, is the chance that a job takes longer than ages[i]; after
// is what is still to be paid, for a job that is unfinished at the last age.
// next of the last age is its own index. At most 65,536 ages.
//
// A look at x that is followed by one at y > x costs alive(x)·(cost + y - x),
// up to a constant, so what is to come costs
//
//	V(x) = alive(x)·(cost - x) + min over y > x of [alive(x)·y + V(y)]
//
// The bracket is a line of slope y and intercept V(y), asked at alive(x). Going
// down in x the slopes fall and the questions rise, so one lower envelope
// answers all in O(n).
func (s *Solver) Solve(ages, alive []float64, cost, after float64, next []uint16) {
	n := len(ages)
	if n == 0 {
		return
	}
	if cap(s.value) < n {
		s.value, s.hull = make([]float64, n), make([]int32, n)
	}
	v, hull := s.value[:n], s.hull[:n]
	next[n-1] = uint16(n - 1)
	v[n-1] = alive[n-1] * after
	first, last := 0, -1 // the lines of the envelope are hull[first..last]
	for i := n - 2; i >= 0; i-- {
		y := int32(i + 1)
		for last > first && covered(ages, v, hull[last-1], hull[last], y) {
			last--
		}
		last++
		hull[last] = y
		q := alive[i]
		for first < last && q*ages[hull[first+1]]+v[hull[first+1]] <= q*ages[hull[first]]+v[hull[first]] {
			first++
		}
		best := hull[first]
		next[i] = uint16(best)
		v[i] = q*(cost-ages[i]) + q*ages[best] + v[best]
	}
}

// covered reports whether line b, between a of greater and c of smaller slope,
// is nowhere below both.
func covered(slope, v []float64, a, b, c int32) bool {
	return (v[c]-v[a])*(slope[a]-slope[b]) <= (v[b]-v[a])*(slope[a]-slope[c])
}
