package jobpoll

import (
	"testing"
	"time"

	"golang.org/x/time/rate"
)

func BenchmarkBareLimiter(b *testing.B) {
	lim := rate.NewLimiter(1e9, 1000)
	b.ReportAllocs()
	now := time.Now()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		lim.AllowN(now, 1)
	}
}

// threeLevels is account → provider → route, with rates of more than a
// benchmark can use.
func threeLevels(b *testing.B, l Limits) *Budget {
	b.Helper()
	root := NewBudget("account", l)
	if err := root.bind(newBudgetClock()); err != nil {
		b.Fatal(err)
	}
	return root.Child("provider", l).Child("route", l)
}

func benchmarkTryAcquire(b *testing.B, route *Budget) {
	b.ReportAllocs()
	now := budgetEpoch
	for b.Loop() {
		now = now.Add(time.Microsecond)
		g, ok := route.tryAcquire(now, LaneStatus)
		if !ok {
			b.Fatal("refused")
		}
		g.done(nil)
	}
}

func BenchmarkTryAcquireUnlimited(b *testing.B) {
	benchmarkTryAcquire(b, threeLevels(b, Limits{}))
}

func BenchmarkTryAcquireTotals(b *testing.B) {
	benchmarkTryAcquire(b, threeLevels(b, Limits{Total: Limit{Rate: 1e9, Burst: 1000, Concurrent: 10}}))
}

func BenchmarkTryAcquireAllLimits(b *testing.B) {
	l := Limits{Total: Limit{Rate: 1e9, Burst: 1000, Concurrent: 10}, Jobs: 10}
	l.Status = LaneLimits{Limit: Limit{Rate: 1e9, Burst: 1000, Concurrent: 8}, Reserve: Limit{Rate: 1e8}}
	l.Submit = l.Status
	benchmarkTryAcquire(b, threeLevels(b, l))
}

// A refusal is what a busy engine asks for most.
func BenchmarkTryAcquireRefused(b *testing.B) {
	route := threeLevels(b, Limits{Total: Limit{Rate: 1e-9, Burst: 1}})
	now := budgetEpoch
	route.tryAcquire(now, LaneStatus)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		if _, ok := route.tryAcquire(now, LaneStatus); ok {
			b.Fatal("granted")
		}
	}
}

func BenchmarkTryAcquireWhileOthersWait(b *testing.B) {
	route := threeLevels(b, Limits{Total: Limit{Rate: 1e9, Burst: 1000}})
	for range 50 {
		n := route.root().Child("closed", Limits{Total: Limit{Rate: 1e-9, Burst: 1}})
		n.tryAcquire(budgetEpoch, LaneStatus)
		for range 20 {
			n.want(LaneStatus, func(grant) {})
		}
	}
	benchmarkTryAcquire(b, route)
}

func BenchmarkAcquire(b *testing.B) {
	route := threeLevels(b, Limits{Total: Limit{Rate: 1e12, Burst: 1e9, Concurrent: 10}})
	b.ReportAllocs()
	for b.Loop() {
		done, err := route.Acquire(b.Context(), LaneStatus)
		if err != nil {
			b.Fatal(err)
		}
		done(nil)
	}
}
