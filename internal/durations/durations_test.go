package durations

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func within(t *testing.T, want, got time.Duration, ratio float64, msg ...any) {
	t.Helper()
	r := float64(got) / float64(want)
	assert.True(t, r <= ratio && r >= 1/ratio, "want %v, got %v (%v)", want, got, msg)
}

// seen makes a series of spans, in seconds.
func seen(spans ...span) *series {
	s := new(series)
	for _, v := range spans {
		s.add(v)
	}
	return s
}

func many(n int, v span) []span { return slices.Repeat([]span{v}, n) }

func (s *series) quantileOf(q float64) time.Duration { return durationOf(s.curve(cells).quantile(q)) }

func TestQuantilesOfPointsAreNearTheTruth(t *testing.T) {
	for _, median := range []float64{1, 3, 45, 600, 20_000} {
		r := rand.New(rand.NewPCG(7, uint64(median)))
		s := new(series)
		var truth []time.Duration
		for range 2000 {
			d := median * math.Exp(r.NormFloat64()*0.5)
			truth = append(truth, time.Duration(d*1e9))
			s.add(span{float32(d), float32(d)})
		}
		slices.Sort(truth)
		for q, ratio := range map[float64]float64{0.1: 1.2, 0.5: 1.12, 0.9: 1.2, 0.99: 1.6} {
			within(t, truth[int(q*2000)-1], s.quantileOf(q), ratio, median, q)
		}
	}
}

func TestEveryPointLandsInItsOwnBin(t *testing.T) {
	assert.LessOrEqual(t, Max.Seconds(), edge(bins-1)+1)
	for i := 1; i < bins-1; i++ {
		assert.Equal(t, i, binOf(position(edge(i)*0.999)), "%v", edge(i))
	}
	assert.Equal(t, 0, binOf(position(Min.Seconds())))
	assert.Equal(t, 0, binOf(position(0)))
	assert.Equal(t, bins-1, binOf(position(Max.Seconds())))
}

// What is told of a span is spread over it alone, whatever is believed.
func TestNoMassLeavesTheSpan(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	density := seen(many(50, span{20, 40})...).curve(cells)
	for range 500 {
		lo := math.Exp(r.NormFloat64()*3 + 3)
		hi := lo * (1 + r.ExpFloat64())
		for _, c := range []*curve[float32]{nil, density} {
			var h histogram
			h.add(span{float32(lo), float32(hi)}, 1.5, c)
			require.InDelta(t, 1.5, h.total(), 1e-5)
			require.GreaterOrEqual(t, h.base, binOf(position(float64(float32(lo)))))
			require.LessOrEqual(t, h.base+len(h.mass)-1, binOf(position(float64(float32(hi)))))
		}
	}
	f := &fitter{cells: cells}
	s := seen(append(many(20, span{30, 33}), many(20, span{31, 60})...)...)
	f.load(s)
	f.logGrid()
	f.uniform()
	f.estimate()
	c := curve[float64]{f.ages[:f.n], f.alive[:f.n]}
	assert.InDelta(t, 1, c.mass(29, 63), 1e-3, "but for the cells at the ends")
}

func TestSpanIsNotPutAtItsRightEnd(t *testing.T) {
	s := seen(many(6, span{10, 40})...)
	p50 := s.quantileOf(0.5)
	assert.True(t, p50 > 12*time.Second && p50 < 33*time.Second, "%v", p50)
}

func TestSpansFollowWhatIsKnown(t *testing.T) {
	s := seen(append(many(40, span{29, 31}), many(20, span{20, 80})...)...)
	within(t, 30*time.Second, s.quantileOf(0.5), 1.05)
	within(t, 30*time.Second, s.quantileOf(0.9), 1.1)
}

// A schedule that is late must not make the next one later.
func TestSpansAloneFindTheTruth(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	s := new(series)
	for range 400 {
		d := 60 * math.Exp(r.NormFloat64()*0.1)
		gap := 10 + 10*r.Float64()
		lo := d - gap*r.Float64()
		s.add(span{float32(lo), float32(lo + gap)})
	}
	within(t, time.Minute, s.quantileOf(0.5), 1.05)
}

func TestAJobGivenUpTookLonger(t *testing.T) {
	short := seen(many(20, span{10, 12})...)
	long := seen(append(many(20, span{10, 12}), many(10, over(60*time.Second))...)...)
	assert.Less(t, short.curve(cells).at(60), 0.05)
	assert.InDelta(t, 1.0/3, long.curve(cells).at(60), 0.08)
	assert.EqualValues(t, 20, long.count, "and has not ended")
}

func TestNarrowProfilesAreToldWithinABin(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	s := new(series)
	for range 60 {
		d := 410 + r.NormFloat64()*0.5
		s.add(span{float32(d - r.Float64()), float32(d + r.Float64())})
	}
	c := s.curve(cells)
	assert.InDelta(t, 410, c.quantile(0.5), 0.4)
	assert.Less(t, c.quantile(0.8)-c.quantile(0.2), 2.5, "a bin is 18 s wide here")
}

func TestDriftIsFollowedAndNotImagined(t *testing.T) {
	for _, factor := range []float64{0.5, 2} {
		r := rand.New(rand.NewPCG(1, 1))
		s := new(series)
		draw := func(f float64) {
			d := 55 * f * math.Exp(r.NormFloat64()*0.25)
			s.add(span{float32(d * 0.9), float32(d * 1.1)})
			s.curve(cells)
		}
		for range 1000 {
			draw(1)
		}
		require.Zero(t, s.resets)
		for range 40 {
			draw(factor)
		}
		require.NotZero(t, s.resets, "%v", factor)
		within(t, time.Duration(55*factor*1e9), s.quantileOf(0.5), 1.15, factor)
	}
}

func TestAbsurdDurationsAreBounded(t *testing.T) {
	ends := []time.Duration{math.MinInt64, -time.Second, 0, 1, Min, time.Minute, Max, Max + 1, math.MaxInt64}
	table := New(0)
	var n uint64
	for _, lo := range ends {
		for _, hi := range ends {
			for _, left := range ends {
				table.Learn(Sample{Family: "f", Profile: "p", After: lo, By: hi, Running: left, Told: Estimate{lo, left}, Moved: Estimate{left, hi}})
				n++
			}
			table.Learn(Sample{Family: "f", Profile: "p", After: lo, Unfinished: true, Running: hi})
			p, ok := table.Lookup("f", "p")
			require.True(t, ok)
			require.Equal(t, n, p.Count)
			for _, d := range []time.Duration{p.P10, p.P50, p.P90, p.P99} {
				require.True(t, d >= 0 && d <= Max, "%v after (%v, %v]", d, lo, hi)
			}
			require.True(t, p.P10 <= p.P50 && p.P50 <= p.P90 && p.P90 <= p.P99)
			if n >= Enough && hi == lo {
				set := table.Plan("f", "p", Terms{Cost: 2, MaxDelay: lo.Seconds()})
				require.NotNil(t, set)
				require.True(t, set.Valid())
			}
		}
	}
	for _, terms := range []Terms{{}, {Cost: math.NaN()}, {Cost: math.Inf(1)}, {Cost: -1}} {
		require.Nil(t, table.Plan("f", "p", terms))
	}
	require.NotNil(t, table.Plan("f", "p", Terms{Cost: 1e-9, MaxDelay: math.NaN()}))
}

func TestNothingIsKnownOfNothing(t *testing.T) {
	table := New(0)
	_, ok := table.Lookup("f", "p")
	assert.False(t, ok)
	assert.Nil(t, table.Plan("f", "p", Terms{Cost: 2}))
	_, ok = table.Export("f", "p")
	assert.False(t, ok)
	table.Learn(Sample{Family: "f", Profile: "p", After: time.Minute, Unfinished: true})
	p, _ := table.Lookup("f", "p")
	assert.Zero(t, p.Count)
	assert.Zero(t, p.P50)
}

func TestThereIsAPlanFromTheFifthJobOfTheFamilyOn(t *testing.T) {
	table := New(0)
	for i := range Enough {
		assert.Nil(t, table.Plan("f", "p", Terms{Cost: 2}), "%d", i)
		table.Observe("f", fmt.Sprint(i), 40*time.Second, 60*time.Second, t0)
	}
	require.NotNil(t, table.Plan("f", "p", Terms{Cost: 2}), "a profile never seen goes by its family")
	require.NotNil(t, table.Plan("f", "1", Terms{Cost: 2}))
	assert.Nil(t, table.Plan("g", "1", Terms{Cost: 2}))

	a := table.Plan("f", "1", Terms{Cost: 2})
	assert.Same(t, a, table.Plan("f", "1", Terms{Cost: 2}), "nothing new was seen")
	assert.NotSame(t, a, table.Plan("f", "1", Terms{Cost: 3}))
	table.Observe("f", "1", 40*time.Second, 60*time.Second, t0)
	assert.NotSame(t, a, table.Plan("f", "1", Terms{Cost: 2}))
}

// The provider's estimates are followed as far as they have proved good.
func TestTheBetterOfEstimateAndExperienceIsFollowed(t *testing.T) {
	for name, tt := range map[string]struct {
		left  func(r *rand.Rand, d float64) float64
		worse bool
	}{
		"exact":         {func(_ *rand.Rand, d float64) float64 { return d }, false},
		"always half":   {func(_ *rand.Rand, d float64) float64 { return d / 2 }, false},
		"made up":       {func(r *rand.Rand, _ float64) float64 { return math.Exp(r.NormFloat64()*2 + 3) }, true},
		"about a third": {func(r *rand.Rand, d float64) float64 { return d * math.Exp(r.NormFloat64()*0.3) / 3 }, false},
	} {
		r := rand.New(rand.NewPCG(8, 8))
		table := New(0)
		for range 60 {
			d := 60 * math.Exp(r.NormFloat64()*0.6)
			lo, hi := time.Duration(d*0.95*1e9), time.Duration(d*1.05*1e9)
			left := tt.left(r, d)
			table.Learn(Sample{Family: "f", Profile: "p", After: lo, By: hi, Told: Estimate{Age: time.Second, Left: time.Duration(left * 1e9)}})
			table.Plan("f", "p", Terms{Cost: 2})
		}
		set := table.Plan("f", "p", Terms{Cost: 2})
		assert.Equal(t, tt.worse, set.Told.Worse, name)
		assert.Equal(t, tt.worse, set.Told.Errors == nil, name)
		assert.Nil(t, set.Moved.Errors, name)
		if name == "always half" {
			delay, _ := set.Told.Look(100, 1)
			assert.InDelta(t, 200, delay, 20)
		}
	}
}

func TestRunningIsPlannedApartWhereTheQueueIsWhatVaries(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	table := New(0)
	for range 60 {
		queue := 5 + r.ExpFloat64()*100
		end := queue + 30*math.Exp(r.NormFloat64()*0.1)
		table.Learn(Sample{
			Family: "f", Profile: "p", After: time.Duration((end - 2) * 1e9), By: time.Duration((end + 2) * 1e9), Running: time.Duration(queue * 1e9),
		})
		table.Plan("f", "p", Terms{Cost: 2})
	}
	set := table.Plan("f", "p", Terms{Cost: 2})
	require.NotNil(t, set.Running)
	next, _ := set.Running.Look(0, 1)
	assert.InDelta(t, 29, next, 6)
}

func TestProfilesAreSortedAndTellWhatWasSeen(t *testing.T) {
	table := New(0)
	table.Observe("kling", "pro", time.Minute, time.Minute, t0.Add(time.Hour))
	table.Observe("kling", "pro", time.Minute, time.Minute, t0)
	table.Observe("kling", "", time.Second, time.Second, t0)
	table.Observe("fal", "x", time.Second, time.Second, t0)
	var names []string
	for p := range table.Profiles() {
		names = append(names, p.Family+"/"+p.Profile)
		table.Observe("new", "y", 0, 0, t0) // the body may call the table
		if p.Profile == "pro" {
			assert.EqualValues(t, 2, p.Count)
			assert.Equal(t, t0.Add(time.Hour), p.Last, "the latest, whatever the order")
			within(t, time.Minute, p.P50, 1.5)
		}
	}
	assert.Equal(t, []string{"fal/x", "kling/", "kling/pro"}, names)
	for range table.Profiles() {
		break
	}
}

func TestLeastRecentlyUsedProfileGoesFirst(t *testing.T) {
	table := New(2)
	table.Observe("f", "a", 0, time.Second, t0)
	table.Observe("f", "b", 0, time.Second, t0)
	table.Observe("f", "a", 0, time.Second, t0)
	table.Observe("f", "c", 0, time.Second, t0)
	_, ok := table.Lookup("f", "b")
	assert.False(t, ok)
	a, _ := table.Lookup("f", "a")
	assert.EqualValues(t, 2, a.Count)
	assert.Equal(t, 2, table.Len())
}

// B85: a flood of profiles, each seen over all bins, costs no more than the
// table may hold.
func TestFloodOfProfilesCostsBoundedMemory(t *testing.T) {
	const limit, flood = 64, 8_000
	table := New(limit)
	before := heapInUse()
	for i := range flood {
		table.Observe("family", fmt.Sprintf("profile-%d-%s", i, strings.Repeat("x", 1000)), 0, Max, t0)
	}
	assert.Equal(t, limit, table.Len())
	assert.Len(t, table.profiles.rows, limit)
	assert.Less(t, heapInUse()-before, int64(limit*4096+512<<10))
	runtime.KeepAlive(table)
}

func TestAProfileTakesAtMostTenKilobytes(t *testing.T) {
	const n = 50
	table := New(n)
	before := heapInUse()
	for i := range n {
		r := rand.New(rand.NewPCG(uint64(i), 1))
		profile := fmt.Sprint(i)
		for range 100 {
			end := time.Duration(60 * math.Exp(r.NormFloat64()) * 1e9)
			table.Learn(Sample{Family: "f", Profile: profile, After: end * 9 / 10, By: end})
		}
		require.NotNil(t, table.Plan("f", profile, Terms{Cost: 2}))
	}
	assert.Less(t, (heapInUse()-before)/n, int64(10<<10))
	runtime.KeepAlive(table)
}

func TestLongNamesStayApart(t *testing.T) {
	table := New(0)
	long := strings.Repeat("é", 500)
	table.Observe(long+"1", "p", 0, 1, t0)
	table.Observe(long+"2", "p", 0, 1, t0)
	assert.Equal(t, 2, table.Len())
	for p := range table.Profiles() {
		assert.LessOrEqual(t, len(p.Family), maxName)
	}
	_, ok := table.Lookup(long+"1", "p")
	assert.True(t, ok)
}

func TestKnownProfileIsObservedWithoutMuchAllocating(t *testing.T) {
	table := New(0)
	for range 60 {
		table.Observe("f", "p", time.Second, time.Minute, t0)
	}
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { table.Observe("f", "p", time.Second, time.Minute, t0) }), 4.0)
}

func TestManyGoroutinesLoseNothing(t *testing.T) {
	table := New(0)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				table.Observe("f", fmt.Sprint(i%3), time.Duration(g)*time.Second, time.Minute, t0)
				table.Plan("f", fmt.Sprint(i%3), Terms{Cost: 2})
			}
		})
	}
	wg.Wait()
	var n uint64
	for p := range table.Profiles() {
		n += p.Count
	}
	assert.EqualValues(t, 800, n)
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkObserve(b *testing.B) {
	table := New(0)
	b.ReportAllocs()
	for b.Loop() {
		table.Observe("f", "p", 40*time.Second, 60*time.Second, t0)
	}
}

// BenchmarkPlan is a fit with the tables of all prices.
func BenchmarkPlan(b *testing.B) {
	table := New(0)
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		end := time.Duration(60 * math.Exp(r.NormFloat64()*0.5) * 1e9)
		table.Observe("f", "p", end*9/10, end*11/10, t0)
	}
	b.ReportAllocs()
	for b.Loop() {
		table.profiles.find(name{"f", "p"}).seen += 1000
		table.Plan("f", "p", Terms{Cost: 2})
	}
}

// Observe is Learn of a span: it takes in that a job of this profile took more than lo and at most hi.
func (t *Table) Observe(family, profile string, lo, hi time.Duration, at time.Time) {
	t.Learn(Sample{Family: family, Profile: profile, After: lo, By: hi, At: at})
}

// What a family is like elsewhere fades where a profile has almost no spread, but
// never to nothing.
func TestTheFamilyFadesWhereThereIsAlmostNoSpread(t *testing.T) {
	outside := func(jobs int) float64 {
		table := New(0)
		for i := range 50 {
			for _, s := range []int{1, 20, 90} {
				end := time.Duration(s) * time.Second
				table.Observe("f", fmt.Sprint(s), end, end+time.Second/100, t0.Add(time.Duration(i)))
			}
		}
		for range jobs {
			table.Observe("f", "p", 400*time.Second, 401*time.Second, t0)
		}
		set := table.Plan("f", "p", Terms{Cost: 2})
		c := curve[float32]{set.Age.Ages, set.Age.Alive}
		return 1 - c.mass(380, 420)
	}
	few, some, more := outside(6), outside(50), outside(200)
	assert.Greater(t, few, 0.3, "the family counts")
	assert.Less(t, some, 0.03)
	assert.Less(t, more, some/3)
	assert.Greater(t, more, 1e-6)
}
