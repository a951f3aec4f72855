package plan

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func floats(v []float64) []float32 {
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(x)
	}
	return out
}

// lawOf makes a survival curve of n ages, by random drops.
func lawOf(r *rand.Rand, n int) (ages, alive []float64) {
	ages, alive = make([]float64, n), make([]float64, n)
	alive[0] = 1
	for i := 1; i < n; i++ {
		ages[i] = ages[i-1] + 0.01 + r.ExpFloat64()*10
		alive[i] = alive[i-1]
		if r.IntN(3) > 0 {
			alive[i] *= r.Float64()
		}
	}
	return ages, alive
}

// costOf is what a choice of next looks costs, from the first age on.
func costOf(ages, alive []float64, cost, after float64, next func(i int) int) (sum float64) {
	i := 0
	for i < len(ages)-1 {
		j := next(i)
		sum += alive[i] * (cost + ages[j] - ages[i])
		i = j
	}
	return sum + alive[i]*after
}

func TestNoChoiceOfLooksIsCheaper(t *testing.T) {
	var s Solver
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 2 + r.IntN(9)
		ages, alive := lawOf(r, n)
		cost, after := math.Exp(r.NormFloat64()*2), r.Float64()*10
		next := make([]uint16, n)
		s.Solve(ages, alive, cost, after, next)
		got := costOf(ages, alive, cost, after, func(i int) int { return int(next[i]) })
		best := math.Inf(1)
		for set := range 1 << (n - 2) { // which of the inner ages are looked at
			best = min(best, costOf(ages, alive, cost, after, func(i int) int {
				for j := i + 1; j < n-1; j++ {
					if set>>(j-1)&1 == 1 {
						return j
					}
				}
				return n - 1
			}))
		}
		require.InDelta(t, best, got, 1e-9*(1+best), "seed %d", seed)
	}
}

// exponential gives a Table whose looks are known: equal gaps d that solve
// (e^(hd)-1)/h - d = c.
func exponential(mean, cost, maxDelay float64) *Table {
	ages, alive := []float64{0}, []float64{1}
	for i := 1; i < 250; i++ {
		x := mean * 8 * float64(i) / 249
		ages, alive = append(ages, x), append(alive, math.Exp(-x/mean))
	}
	return Build(floats(ages), floats(alive), cost, maxDelay)
}

func TestMemorylessJobsAreLookedAtEvenly(t *testing.T) {
	table := exponential(60, 2, 0)
	age := 0.0
	for range 8 {
		next, gap := table.Look(age, 1)
		assert.InDelta(t, 14.85, next-age, 0.5)
		assert.InDelta(t, 14.85, gap, 0.7)
		age = next + 0.3 // a bit late
	}
	// At c = 8 the same equation gives 28.9 s.
	next, _ := table.Look(0, 4)
	assert.InDelta(t, 28.9, next, 1.4, "between two levels")
	next, _ = table.Look(0, 2)
	assert.InDelta(t, 20.8, next, 1.2, "between two levels")
}

func TestLooksIncreaseFromAnyAgeAtAnyPrice(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		ages, alive := lawOf(r, 2+r.IntN(250))
		cost := math.Exp(r.NormFloat64() * 3)
		table := Build(floats(ages), floats(alive), cost, []float64{0, 1, 30}[r.IntN(3)])
		require.NotNil(t, table)
		require.True(t, table.Valid())
		last := ages[len(ages)-1]
		before := 0.0
		for i := range 300 {
			age := last * 1.5 * float64(i) / 300
			for _, price := range []float64{0, 1, 1.7, 4, 300, 1e9, math.Inf(1), math.NaN()} {
				next, gap := table.Look(age, price)
				require.Greater(t, next, age, "seed %d at %v for %v", seed, age, price)
				require.GreaterOrEqual(t, gap, 0.0)
				require.False(t, math.IsNaN(next) || math.IsInf(next, 0) || math.IsNaN(gap))
			}
			if table.MaxDelay == 0 && age < last {
				next, _ := table.Look(age, 1)
				require.GreaterOrEqual(t, next, before-1e-3, "a later look is followed by a later one")
				before = next
			}
		}
		age, looks := 0.0, 0
		for age < 2*last && looks < 1e6 {
			age, _ = table.Look(age, 1)
			looks++
		}
		require.Less(t, looks, int(1e6), "seed %d: at %v of %v, cost %v, %v", seed, age, last, cost, table.MaxDelay)
	}
}

func TestMaxDelayHoldsButForOneInAHundred(t *testing.T) {
	table := exponential(60, 100, 5)
	next, _ := table.Look(0, 1)
	// The gap may be longer by the time in which 1 % end.
	assert.LessOrEqual(t, next*1.1, 5+60*0.0101+0.2)
	assert.Greater(t, next, 4.5)
	next, gap := table.Look(1e4, 1)
	assert.LessOrEqual(t, next-1e4, 5.0)
	assert.LessOrEqual(t, gap, 5.0)

	// Nothing ends before 100 s: that is no time to look.
	ages, alive := []float64{0, 50, 100, 110, 120, 200}, []float64{1, 1, 1, 0.5, 0, 0}
	late := Build(floats(ages), floats(alive), 1, 5)
	next, _ = late.Look(0, 1)
	assert.Greater(t, next, 90.0)
}

func TestWorthIsTheDelayThatHasAccrued(t *testing.T) {
	const mean = 60.0
	table := exponential(mean, 2, 0)
	for _, s := range []float64{1, 10, 30} {
		want := s - mean*(1-math.Exp(-s/mean)) // ∫ (1 - e^(-ht)) dt
		assert.InDelta(t, want, table.Worth(20, 20+s), 0.02*want+0.01)
	}
	assert.Zero(t, table.Worth(20, 20))
	assert.Zero(t, table.Worth(20, 10))
	assert.Zero(t, table.Worth(20, math.NaN()))
	prev := 0.0
	for s := range 5000 {
		w := table.Worth(20, 20+float64(s))
		require.GreaterOrEqual(t, w, prev)
		require.LessOrEqual(t, w, float64(s))
		prev = w
	}
	done := Build([]float32{0, 1, 2}, []float32{1, 0, 0}, 1, 0)
	assert.Greater(t, done.Worth(100, 110), 0.0, "longer than anything seen")
}

func TestNoTableOfWhatIsNoDistribution(t *testing.T) {
	nan := math.NaN()
	for name, v := range map[string]struct {
		ages, alive    []float64
		cost, maxDelay float64
	}{
		"nothing":         {},
		"one age":         {[]float64{0}, []float64{1}, 1, 0},
		"no cost":         {[]float64{0, 1}, []float64{1, 0}, 0, 0},
		"NaN cost":        {[]float64{0, 1}, []float64{1, 0}, nan, 0},
		"infinite cost":   {[]float64{0, 1}, []float64{1, 0}, math.Inf(1), 0},
		"not from zero":   {[]float64{1, 2}, []float64{1, 0}, 1, 0},
		"falling ages":    {[]float64{0, 2, 1}, []float64{1, 1, 0}, 1, 0},
		"rising chances":  {[]float64{0, 1, 2}, []float64{0.5, 0.6, 0}, 1, 0},
		"NaN chance":      {[]float64{0, 1}, []float64{1, nan}, 1, 0},
		"NaN age":         {[]float64{0, nan}, []float64{1, 0}, 1, 0},
		"infinite age":    {[]float64{0, math.Inf(1)}, []float64{1, 0}, 1, 0},
		"unequal lengths": {[]float64{0, 1}, []float64{1}, 1, 0},
		"too close":       {[]float64{0, 1e9, 1e9 + 1e-3}, []float64{1, 1, 0}, 1, 0},
	} {
		assert.Nil(t, Build(floats(v.ages), floats(v.alive), v.cost, v.maxDelay), name)
	}
	assert.NotNil(t, Build([]float32{0, 1}, []float32{1, 0}, 1, nan), "no latency to keep")
}

func TestADamagedTableIsNotValid(t *testing.T) {
	whole := func() *Set { return &Set{Age: exponential(60, 2, 0), Told: Guess{Errors: exponential(60, 2, 0)}} }
	b, err := json.Marshal(whole())
	require.NoError(t, err)
	var back Set
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, whole(), &back)
	require.True(t, back.Valid())
	for i, damage := range []func(*Table){
		func(t *Table) { t.Ages = t.Ages[1:] },
		func(t *Table) { t.Ages = nil },
		func(t *Table) { t.Ages[3] = 0 },
		func(t *Table) { t.Alive[3] = 2 },
		func(t *Table) { t.Area[3] = -1 },
		func(t *Table) { t.Cost = 0 },
		func(t *Table) { t.MaxDelay = -1 },
		func(t *Table) { t.Area = t.Area[1:] },
		func(t *Table) { t.Next = t.Next[1:] },
		func(t *Table) { t.level(2)[5] = 65535 },
		func(t *Table) { t.level(0)[5] = 5 * fine },
	} {
		s := whole()
		damage(s.Told.Errors)
		require.False(t, s.Valid(), "damage %d", i)
	}
	require.False(t, new(Set).Valid())
}

func TestAnEstimateIsPlannedInItsOwnScale(t *testing.T) {
	// The actual time left is 0.9 to 1.3 of what was told, evenly.
	ages, alive := []float64{0}, []float64{1}
	for i := range 200 {
		x := 0.9 + 0.4*float64(i)/199
		ages, alive = append(ages, x*Unit), append(alive, 1-float64(i)/199)
	}
	g := Guess{Errors: BuildGuess(floats(ages), floats(alive), 2)}
	for _, left := range []float64{0.01, 5, 30, 120, 900, 1e5} {
		delay, gap := g.Look(left, 1)
		assert.True(t, delay >= 0.9*left*0.5 && delay < 1.5*left+1, "%v after %v", delay, left)
		assert.GreaterOrEqual(t, gap, 0.0)
	}
	near, _ := g.Look(5, 1) // 2 s of spread are worth one look at the end
	assert.InDelta(t, 6.5, near, 0.5)
	far, _ := g.Look(900, 1) // 360 s are worth several
	assert.InDelta(t, 846, far, 15)
}

func TestLookingUpDoesNotAllocate(t *testing.T) {
	table := exponential(60, 2, 7)
	assert.Zero(t, testing.AllocsPerRun(100, func() { table.Look(33, 2.5); table.Worth(20, 30) }))
}

func BenchmarkBuild(b *testing.B) {
	ages, alive := lawOf(rand.New(rand.NewPCG(1, 1)), 160)
	b.ReportAllocs()
	for b.Loop() {
		Build(floats(ages), floats(alive), 2, 0)
	}
}

func BenchmarkLook(b *testing.B) {
	table, ages := exponential(60, 2, 0), slices.Repeat([]float64{1, 20, 47, 100}, 4)
	i := 0
	for b.Loop() {
		table.Look(ages[i&15], 1)
		i++
	}
}

func BenchmarkWorth(b *testing.B) {
	table := exponential(60, 2, 0)
	for b.Loop() {
		table.Worth(33, 40)
	}
}
