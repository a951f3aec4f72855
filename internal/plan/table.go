package plan

import (
	"math"
	"sync"
)

const (
	// MaxAges bounds a Table.
	MaxAges = 256
	// fine is into how many steps the time between two ages is cut to find the
	// best looks.
	fine = 8
	// Levels is how many prices a Table is solved for: 1, 4, and 256 times its cost.
	// Gaps grow with the root of the price, and between two levels they are
	// interpolated by it. It is seldom that a look is more than 4 times as dear.
	Levels  = 3
	dearest = 256
	// stride is of how many ages the Area is kept once; it is summed up from
	// there.
	stride = 8
	// spread is the jitter of a look, as part of the gap before it.
	spread = 0.1
	// late is the chance of a job that waits longer than MaxDelay which a gap
	// may take.
	late = 0.01
)

// roots are the roots of the prices.
var roots = [Levels]float64{1, 2, 16}

// Table is the optimal schedule of one distribution: for each of its ages the
// age of the next look. It is plain data and immutable once built, so it is
// safe for concurrent use.
//
// A Table may be made in units of its own (an age of 1 being a told time left,
// say); the price then carries the scale.
type Table struct {
	// Cost is the price of one look, in units of Ages.
	Cost float64 `json:"cost"`
	// MaxDelay is the latency that no gap may exceed but with a chance of 1 %.
	// Zero: none.
	MaxDelay float64 `json:"max_delay,omitempty"`
	// Ages rise strictly from zero. Alive is the chance to take longer, Area
	// its integral up to every eighth age.
	Ages  []float32 `json:"ages"`
	Alive []float32 `json:"alive"`
	Area  []float32 `json:"areas"`
	// Next has, level after level of the price, for each age that of the next
	// look, counted in eighths of the way from one age to the next.
	Next []uint16 `json:"levels"`
}

// Build solves a distribution: alive[i] is the chance to take longer than
// ages[i]. ages must rise strictly from zero, at most MaxAges of them, and
// alive must not rise. The Table keeps both. It gives nil for anything else, and for a cost that is
// no positive number.
func Build(ages, alive []float32, cost, maxDelay float64) *Table {
	n := len(ages)
	if n < 2 || n > MaxAges || len(alive) != n || !(cost > 0) || math.IsInf(cost, 0) || !proper(ages, alive) {
		return nil
	}
	t := &Table{Cost: cost, Ages: ages, Alive: alive}
	if maxDelay > 0 {
		t.MaxDelay = maxDelay
	}
	t.Area = make([]float32, (n-1)/stride+1)
	area := 0.0
	for i := range n {
		if i%stride == 0 {
			t.Area[i/stride] = float32(area)
		}
		if i < n-1 {
			area += t.between(i)
		}
	}
	w := workshops.Get().(*workshop)
	defer workshops.Put(w)
	w.cut(ages, alive)
	t.Next = make([]uint16, Levels*n)
	for level := range Levels {
		c := cost * roots[level] * roots[level]
		w.solver.Solve(w.ages, w.alive, c, c+2*math.Sqrt(c*float64(ages[n-1])), w.next)
		next := t.level(level)
		for i := range next {
			next[i] = w.next[i*fine]
		}
	}
	return t
}

// level is the part of Next for a level of the price.
func (t *Table) level(i int) []uint16 {
	n := len(t.Ages)
	return t.Next[i*n : (i+1)*n]
}

// between is the area between the ages i and i+1.
func (t *Table) between(i int) float64 {
	return float64((t.Alive[i] + t.Alive[i+1]) / 2 * (t.Ages[i+1] - t.Ages[i]))
}

// area is the integral of Alive up to the age i.
func (t *Table) area(i int) float64 {
	k := i / stride
	sum := float64(t.Area[k])
	for k *= stride; k < i; k++ {
		sum += t.between(k)
	}
	return sum
}

// workshop is the scratch space of Build.
type workshop struct {
	solver      Solver
	ages, alive []float64
	next        []uint16
}

var workshops = sync.Pool{New: func() any { return new(workshop) }}

// cut lists the ages and the steps between them.
func (w *workshop) cut(ages, alive []float32) {
	n := (len(ages)-1)*fine + 1
	if cap(w.ages) < n {
		w.ages, w.alive, w.next = make([]float64, n), make([]float64, n), make([]uint16, n)
	}
	w.ages, w.alive, w.next = w.ages[:n], w.alive[:n], w.next[:n]
	for i := range len(ages) - 1 {
		a, s := float64(ages[i]), float64(alive[i])
		age, drop := float64(ages[i+1])-a, float64(alive[i+1])-s
		for j := range fine {
			part := float64(j) / fine
			w.ages[i*fine+j], w.alive[i*fine+j] = a+part*age, s+part*drop
		}
	}
	w.ages[n-1], w.alive[n-1] = float64(ages[len(ages)-1]), float64(alive[len(alive)-1])
}

func proper(ages, alive []float32) bool {
	if ages[0] != 0 {
		return false
	}
	for i := range ages {
		if !(alive[i] >= 0 && alive[i] <= 1) || math.IsInf(float64(ages[i]), 0) {
			return false
		}
		if i > 0 && !(ages[i] > ages[i-1] && alive[i] <= alive[i-1]) {
			return false
		}
	}
	return true
}

// Valid reports whether a Table that was read from outside can be used.
func (t *Table) Valid() bool {
	n := len(t.Ages)
	if n < 2 || n > MaxAges || len(t.Alive) != n || len(t.Area) != (n-1)/stride+1 || len(t.Next) != Levels*n || !(t.Cost > 0) || math.IsInf(t.Cost, 0) || !(t.MaxDelay >= 0) || t.Ages[0] != 0 {
		return false
	}
	for i := range n {
		if !(t.Alive[i] >= 0 && t.Alive[i] <= 1) || math.IsInf(float64(t.Ages[i]), 0) {
			return false
		}
		if i > 0 && !(t.Ages[i] > t.Ages[i-1] && t.Alive[i] <= t.Alive[i-1]) {
			return false
		}
	}
	for k, a := range t.Area {
		if !(a >= 0 && a <= t.Ages[k*stride]*1.001) || k > 0 && a < t.Area[k-1] {
			return false
		}
	}
	for k, j := range t.Next {
		if i := k % n; int(j) > (n-1)*fine || int(j) <= i*fine && i < n-1 {
			return false
		}
	}
	return true
}

// Look gives the age of the next look after one at age, which may be any
// number that is not negative, and the gap that is planned after it. price is
// how many times dearer than Cost a look is: 1 to 256, anything else counts as
// the nearer of the two, NaN as 1.
func (t *Table) Look(age, price float64) (next, gap float64) {
	if !(price > 1) { // NaN too
		price = 1
	}
	price = min(price, dearest)
	if t.Beyond(age) {
		next = age + t.tail(age, price)
		return next, t.tail(next, price)
	}
	i := t.index(age)
	part := float64((float32(age) - t.Ages[i]) / (t.Ages[i+1] - t.Ages[i]))
	if price == 1 {
		next, gap = t.at(0, i, part)
	} else {
		level, between := levels(price)
		next, gap = t.at(level, i, part)
		if between > 0 {
			n, g := t.at(level+1, i, part)
			next, gap = next+between*(n-next), gap+between*(g-gap)
		}
	}
	if t.MaxDelay > 0 {
		if latest := t.latest(i, age); next > latest {
			next = age + (latest-age)/(1+spread) // so that jitter stays within
		}
	}
	return next, gap
}

// Beyond reports whether age lies beyond all that was planned for.
func (t *Table) Beyond(age float64) bool { return age >= float64(t.Ages[len(t.Ages)-1]) }

// levels gives the level of a price and how far it is to the next, by the root.
func levels(price float64) (level int, between float64) {
	gap := math.Sqrt(price)
	for level < Levels-2 && gap >= roots[level+1] {
		level++
	}
	return level, (gap - roots[level]) / (roots[level+1] - roots[level])
}

// at gives the look after one at the given part of the way from the age i to
// the next, and the gap after it.
func (t *Table) at(level, i int, part float64) (next, gap float64) {
	table := t.level(level)
	x := t.follow(table, i, part)
	next = t.ageOf(x)
	k := int(x / fine)
	if k >= len(table)-1 {
		return next, t.tail(next, 1)
	}
	return next, t.ageOf(t.follow(table, k, x/fine-float64(k))) - next
}

// follow interpolates between the looks that follow the ages i and i+1. On the
// way to the last age, which none follows, the gap stays as it is.
func (t *Table) follow(table []uint16, i int, part float64) float64 {
	a, b := float64(table[i]), float64(table[i+1])
	if i+2 == len(table) {
		b = a + fine
	}
	return a + part*(b-a)
}

// ageOf is the age of a place in Next.
func (t *Table) ageOf(x float64) float64 {
	i := int(x / fine)
	i = min(i, len(t.Ages)-2) // what is beyond lies in steps of the last
	a := float64(t.Ages[i])
	return a + (x/fine-float64(i))*(float64(t.Ages[i+1])-a)
}

// tail is the gap where nothing is known, but that the job takes longer than
// anything seen: the rule that costs at most twice what the best one for a
// known bound does, whatever the duration.
func (t *Table) tail(age, price float64) float64 {
	gap := 2 * math.Sqrt(t.Cost*price*max(age, t.Cost))
	if t.MaxDelay > 0 {
		gap = min(gap, t.MaxDelay)
	}
	return gap
}

// latest is the last age at which a look after one at age keeps MaxDelay.
func (t *Table) latest(i int, age float64) float64 {
	least := float32((1 - late) * t.alive(age))
	for i+1 < len(t.Alive)-1 && t.Alive[i+1] >= least {
		i++
	}
	return max(float64(t.Ages[i]), age) + t.MaxDelay
}

// index gives the i for which Ages[i] <= age < Ages[i+1].
func (t *Table) index(age float64) int {
	a := float32(age)
	lo, hi := 0, len(t.Ages)-1
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) >> 1); t.Ages[mid] <= a {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// alive is the chance to take longer than age.
func (t *Table) alive(age float64) float64 {
	s, _ := t.curve(age)
	return s
}

// curve gives the chance to take longer than age and its integral. Beyond the
// last age the chance falls with the root of the age, which is the law that
// fits the gaps of the tail.
func (t *Table) curve(age float64) (alive, area float64) {
	last := len(t.Ages) - 1
	if end := float64(t.Ages[last]); age >= end {
		root := math.Sqrt(end / age)
		s := float64(t.Alive[last])
		return s * root, t.area(last) + 2*s*end*(1/root-1)
	}
	i := t.index(age)
	a, b := float64(t.Ages[i]), float64(t.Ages[i+1])
	sa, sb := float64(t.Alive[i]), float64(t.Alive[i+1])
	part := (age - a) / (b - a)
	s := sa + part*(sb-sa)
	return s, t.area(i) + (sa+s)/2*(age-a)
}

// Worth is the delay that can be expected to have accrued by now, for a job
// that was seen unfinished at age last: what a look now would put an end to.
// Among jobs that are due the one of greatest Worth goes first.
func (t *Table) Worth(last, now float64) float64 {
	if !(now > last) {
		return 0
	}
	last = max(last, 0)
	s, a := t.curve(last)
	if s <= 0 { // longer than anything seen
		return (now - last) * (1 - math.Sqrt(max(last, t.Cost)/max(now, t.Cost)))
	}
	_, b := t.curve(now)
	return max((now-last)-(b-a)/s, 0)
}
