package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each iteration is a child process that lasts some seconds, so that -count is
// what gives benchstat something to compare.

// size is 10,000 jobs with a look a second for a second; with -short the same
// rate of looks for a fifth of it.
func size() (jobs int, rate float64, measured time.Duration) {
	if testing.Short() {
		return 2_000, 10_000, time.Second / 5
	}
	return 10_000, 10_000, time.Second
}

func BenchmarkSteady(b *testing.B) {
	jobs, rate, measured := size()
	for _, c := range contenders {
		b.Run(c.name, func(b *testing.B) {
			l := settings{Rate: rate}.steadyLoad(jobs)
			report(b, steadyUnits, order{Contender: c.name, Load: l, Warm: l.Interval, Duration: measured})
		})
	}
}

// BenchmarkSteadyGarbage is the same with checks that allocate as an HTTP answer does.
func BenchmarkSteadyGarbage(b *testing.B) {
	jobs, rate, measured := size()
	for _, name := range []string{"sleep", "workqueue", "heaps", "jobpoll"} {
		b.Run(name, func(b *testing.B) {
			s := settings{Rate: rate, Garbage: 8192}
			l := s.steadyLoad(jobs)
			report(b, steadyUnits, order{Contender: name, Load: l, Warm: l.Interval, Duration: measured})
		})
	}
}

// BenchmarkBurst works off the jobs when all are due in one instant.
func BenchmarkBurst(b *testing.B) {
	jobs, _, measured := size()
	for _, name := range []string{"afterfunc", "workqueue", "heaps", "jobpoll"} {
		b.Run(name, func(b *testing.B) {
			l := settings{Jobs: jobs}.burstLoad()
			report(b, burstUnits, order{Contender: name, Load: l, Duration: measured, Burst: true})
		})
	}
}

// unit is one figure of a result, as benchstat wants it: in bytes and ns.
type unit struct {
	name string
	of   func(result) float64
}

var steadyUnits = []unit{
	{"B/job", func(r result) float64 { return r.BytesPerJob }},
	{"cpu-ns/look", func(r result) float64 { return r.LookNs }},
	{"admit-ns/job", func(r result) float64 { return r.AdmitUs * 1e3 }},
	{"gc-ns", func(r result) float64 { return r.GCMs * 1e6 }},
	{"late-p50-ns", func(r result) float64 { return r.LateP50Ms * 1e6 }},
	{"late-p99-ns", func(r result) float64 { return r.LateP99Ms * 1e6 }},
}

var burstUnits = []unit{
	{"goroutines", func(r result) float64 { return float64(r.Burst.Goroutines) }},
	{"ticker-max-ns", func(r result) float64 { return r.Burst.TickerMaxMs * 1e6 }},
	{"burst-ns", func(r result) float64 { return r.Burst.TookMs * 1e6 }},
}

// report measures and reports the medians.
func report(b *testing.B, units []unit, o order) {
	var all []result
	for b.Loop() {
		r, err := inChild(b.Context(), o)
		require.NoError(b, err)
		all = append(all, r)
	}
	b.ReportMetric(0, "ns/op") // that is how long it was told to last
	for _, u := range units {
		b.ReportMetric(median(runs{results: all}.column(column{of: u.of})), u.name)
	}
}

// BenchmarkMeter is what the measuring itself adds to each look of all.
func BenchmarkMeter(b *testing.B) {
	m := newMeter(load{Jobs: 10_000, Interval: time.Second})
	ids := make([]string, m.Jobs)
	for i := range ids {
		ids[i] = idOf(i)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		m.look(ids[i%len(ids)])
		i++
	}
}
