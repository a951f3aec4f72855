package sqltest

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/sqlstore"
	"github.com/stretchr/testify/require"
)

// Looks as fast as they can be made, without a store and with SQLite on disk:
//
//	go -C internal/sqltest test -run '^$' -bench Looks -count 6 .
//
// The time of the jobs runs much faster than the real one, so that pacing is
// written more often in a second than ever in a service: it is the worst that a
// store can cost. puts/look is how many transactions that takes.
func BenchmarkLooks(b *testing.B) {
	for _, name := range []string{"none", "SQLite"} {
		b.Run(name, func(b *testing.B) {
			clock := polltest.NewClock(start)
			var looks, puts, records atomic.Int64
			cfg := jobpoll.Config{Clock: clock, Routes: []jobpoll.Route{{Name: "fal", Checker: jobpoll.CheckerFunc(
				func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
					looks.Add(1)
					return jobpoll.Report{State: jobpoll.StateRunning}, nil
				})}}}
			if name == "SQLite" {
				d := database{sqlstore.SQLite, "sqlite", SQLiteDSN(filepath.Join(b.TempDir(), "jobs.db"))}
				cfg.Store = counting{d.store(b, sqlstore.Config{Clock: clock}), &puts, &records}
			}
			h := polltest.Start(b, cfg)
			for i := range benchJobs {
				job := jobpoll.Job{Route: "fal", ID: fmt.Sprint(i), Expected: 100 * time.Hour}
				require.NoError(b, h.Watch(b.Context(), job))
			}
			clock.Advance(5 * time.Minute) // the first looks, and the growth of the gaps
			looks.Store(0)
			puts.Store(0)
			records.Store(0)
			b.ResetTimer()
			for b.Loop() {
				clock.Advance(10 * time.Minute)
			}
			b.ReportMetric(float64(looks.Load())/b.Elapsed().Seconds(), "looks/s")
			b.ReportMetric(float64(records.Load())/float64(looks.Load()), "records/look")
			b.ReportMetric(float64(puts.Load())/float64(looks.Load()), "puts/look")
			b.ReportMetric(0, "ns/op")
		})
	}
}

const benchJobs = 1000

// counting counts the records that are put. It is no Leaser.
type counting struct {
	jobpoll.Store
	puts, records *atomic.Int64
}

func (c counting) Put(ctx context.Context, batch []jobpoll.Record) error {
	c.puts.Add(1)
	c.records.Add(int64(len(batch)))
	return c.Store.Put(ctx, batch)
}
