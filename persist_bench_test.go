package jobpoll_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/require"
)

// BenchmarkRestore takes 100,000 unresolved jobs up: how long that takes, the
// memory of the process while it goes on, and the looks of the first minute as
// a part of what the budget allows.
func BenchmarkRestore(b *testing.B) {
	const jobs, rate = 100_000, 200
	clock := polltest.NewClock(time.Time{})
	store := jobpoll.NewMemoryStore(clock)
	for i := range jobs {
		id := fmt.Sprintf("job-%06d", i)
		at := clock.Now().Add(-time.Duration(i) * time.Millisecond).Format(time.RFC3339Nano)
		require.NoError(b, store.Put(b.Context(), []jobpoll.Record{{Kind: jobpoll.RecordJob, ID: "1:r/" + id, Route: "r", Rev: 3, Data: fmt.Appendf(nil,
			`{"v":1,"job":{"route":"r","id":%q,"submitted_at":%q},"rules":{"max_age":7200000000000},"polls":2,"due_at":%q,"track":{"v":1,"looks":2,"state":"running","last_at":%q,"good_at":%q}}`,
			id, at, at, at, at)}}))
	}
	for b.Loop() {
		var looks atomic.Int64
		check := jobpoll.CheckerFunc(func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			looks.Add(1)
			return jobpoll.Report{State: jobpoll.StateRunning}, nil
		})
		p, err := jobpoll.New(jobpoll.Config{Clock: clock, Store: store, Routes: []jobpoll.Route{{Name: "r", Checker: check}},
			Budget: jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: rate, Burst: rate}})})
		require.NoError(b, err)
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		n, err := p.Restore(b.Context())
		took := time.Since(began)
		require.NoError(b, err)
		require.Equal(b, jobs, n)
		runtime.ReadMemStats(&after)
		b.ReportMetric(took.Seconds()*1000, "restore-ms")
		b.ReportMetric(float64(after.HeapSys-before.HeapSys+before.HeapIdle-before.HeapReleased)/1e6, "heap-MB")
		b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/jobs, "B/job")
		end := polltest.Run(clock, p)
		clock.Advance(time.Minute)
		b.ReportMetric(float64(looks.Load())/(rate*61), "first-minute")
		require.NoError(b, end())
	}
}
