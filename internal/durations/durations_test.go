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

// binWidth is the ratio of the two ends of a bin.
var binWidth = math.Exp2(1.0 / perOctave)

func within(t *testing.T, want, got time.Duration, ratio float64, msg ...any) {
	t.Helper()
	r := float64(got) / float64(want)
	assert.True(t, r <= ratio && r >= 1/ratio, "want %v, got %v (%v)", want, got, msg)
}

func total(h *histogram) (sum float64) {
	for _, m := range h.mass {
		sum += m
	}
	return sum
}

func TestQuantilesOfPointsAreWithinABinOfTheTruth(t *testing.T) {
	for _, median := range []float64{1, 3, 45, 600, 20_000} {
		r := rand.New(rand.NewPCG(7, uint64(median)))
		var h histogram
		var truth []time.Duration
		for range 5000 {
			d := time.Duration(median * math.Exp(r.NormFloat64()*0.5) * float64(time.Second))
			truth = append(truth, d)
			h.add(d, d)
		}
		slices.Sort(truth)
		for _, q := range []float64{0.1, 0.5, 0.9, 0.99} {
			within(t, truth[int(q*5000)-1], h.quantile(q), binWidth, median, q)
		}
	}
}

func TestEveryPointLandsInItsOwnBin(t *testing.T) {
	assert.LessOrEqual(t, Max.Seconds(), edge(bins-1)+1)
	for i := 1; i < bins-1; i++ {
		d := time.Duration(edge(i) * 0.999 * float64(time.Second))
		assert.Equal(t, i, binOf(position(d)), "%v", d)
		within(t, d, at(position(d)), 1.0001)
	}
	assert.Equal(t, 0, binOf(position(Min)))
	assert.Equal(t, 0, binOf(position(0)))
	assert.Equal(t, bins-1, binOf(position(Max)))
}

func TestFirstIntervalIsSpreadEvenlyInTheLogarithm(t *testing.T) {
	var h histogram
	h.add(10*time.Second, 40*time.Second)
	within(t, 20*time.Second, h.quantile(0.5), 1.01)
	within(t, time.Duration(14.142*float64(time.Second)), h.quantile(0.25), 1.01)
	assert.InDelta(t, 1, total(&h), 1e-9)
	assert.Less(t, h.quantile(0.9), 40*time.Second, "not put at its right end")
}

func TestIntervalFollowsTheDensitySoFar(t *testing.T) {
	var h histogram
	for range 200 {
		h.add(30*time.Second, 30*time.Second)
	}
	for range 100 {
		h.add(20*time.Second, 80*time.Second) // could be 30 s, and that is what is known
	}
	within(t, 30*time.Second, h.quantile(0.5), binWidth)
	within(t, 30*time.Second, h.quantile(0.95), binWidth)
	assert.InDelta(t, 300, total(&h), 1e-6)
}

func TestIntervalsAloneFindTheTruth(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var h histogram
	for range 3000 {
		d := 60 * math.Exp(r.NormFloat64()*0.1)
		gap := 10 + 10*r.Float64()
		lo := d - gap*r.Float64()
		h.add(time.Duration(lo*1e9), time.Duration((lo+gap)*1e9))
	}
	within(t, time.Minute, h.quantile(0.5), 1.05)
}

func TestIntervalOutsideAllMassIsStillRecorded(t *testing.T) {
	var h histogram
	for range 1000 {
		h.add(5*time.Second, 5*time.Second)
	}
	for range 3000 {
		h.add(100*time.Second, 200*time.Second)
	}
	p50 := h.quantile(0.5)
	assert.True(t, p50 > 100*time.Second && p50 < 200*time.Second, "%v", p50)
}

func TestLeftEndIsOpen(t *testing.T) {
	var h histogram
	h.add(Min, 2*Min)
	assert.Equal(t, 1, h.base, "nothing of the first bin is inside")
}

func TestAbsurdDurationsAreBounded(t *testing.T) {
	ends := []time.Duration{math.MinInt64, -time.Second, 0, 1, Min, time.Minute, Max, Max + 1, math.MaxInt64}
	table := New(0)
	var n uint64
	for _, lo := range ends {
		for _, hi := range ends {
			table.Observe("f", "p", lo, hi, t0)
			n++
			p, ok := table.Lookup("f", "p")
			require.True(t, ok)
			require.Equal(t, n, p.Count)
			for _, d := range []time.Duration{p.P10, p.P50, p.P90, p.P99} {
				require.True(t, d >= 0 && d <= Max+time.Hour, "%v after (%v, %v]", d, lo, hi)
			}
			require.True(t, p.P10 <= p.P50 && p.P50 <= p.P90 && p.P90 <= p.P99)
		}
	}
	h := &table.rows[name{"f", "p"}].Value.(*row).hist
	assert.InDelta(t, float64(n), total(h), 1e-6)
	assert.False(t, math.IsNaN(h.total))
	assert.GreaterOrEqual(t, h.quantile(math.NaN()), time.Duration(0))
	assert.Equal(t, h.quantile(1), h.quantile(math.Inf(1)))
}

func TestQuantileOfNothingIsZero(t *testing.T) {
	assert.Zero(t, new(histogram).quantile(0.5))
	_, ok := New(0).Lookup("f", "p")
	assert.False(t, ok)
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
			within(t, time.Minute, p.P50, binWidth)
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
	assert.Len(t, table.rows, limit)
	assert.Less(t, heapInUse()-before, int64(limit*4096+512<<10))
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

func TestKnownProfileIsObservedWithoutAllocating(t *testing.T) {
	table := New(0)
	table.Observe("f", "p", 0, Max, t0)
	assert.Zero(t, testing.AllocsPerRun(100, func() { table.Observe("f", "p", time.Second, time.Minute, t0) }))
}

func TestManyGoroutinesLoseNothing(t *testing.T) {
	table := New(0)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				table.Observe("f", fmt.Sprint(i%3), time.Duration(g)*time.Second, time.Minute, t0)
				for range table.Profiles() {
					break
				}
			}
		})
	}
	wg.Wait()
	var n uint64
	for p := range table.Profiles() {
		n += p.Count
	}
	assert.EqualValues(t, 1600, n)
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
