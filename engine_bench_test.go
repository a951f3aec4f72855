package jobpoll_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/require"
)

func benchPoller(b *testing.B, change func(*jobpoll.Config)) (*jobpoll.Poller, func()) {
	cfg := jobpoll.Config{Routes: []jobpoll.Route{{Name: "r", Schedule: every(time.Hour), Checker: jobpoll.CheckerFunc(
		func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			return jobpoll.Report{State: jobpoll.StateRunning}, nil
		})}}}
	if change != nil {
		change(&cfg)
	}
	p, err := jobpoll.New(cfg)
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	return p, func() { cancel(); <-ended }
}

func benchJobs(b *testing.B, p *jobpoll.Poller, n int) {
	for i := range n {
		require.NoError(b, p.Watch(b.Context(), jobpoll.Job{Route: "r", ID: fmt.Sprintf("job-%08d", i)}))
	}
}

func BenchmarkWatch(b *testing.B) {
	p, stop := benchPoller(b, nil)
	defer stop()
	ids := make([]string, b.N)
	for i := range ids {
		ids[i] = fmt.Sprintf("job-%08d", i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for _, id := range ids {
		_ = p.Watch(context.Background(), jobpoll.Job{Route: "r", ID: id})
	}
}

// BenchmarkLooksAmong is the whole way of a look, from due to planned again,
// with an instant Checker: all of n jobs are due at once, again and again.
func BenchmarkLooksAmong(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var looks atomic.Int64
			begin := make(chan struct{})
			p, stop := benchPoller(b, func(c *jobpoll.Config) {
				c.Routes[0].Schedule = jobpoll.Schedule{Delays: []time.Duration{time.Nanosecond}, MinDelay: time.Nanosecond, Jitter: jobpoll.NoJitter}
				c.Routes[0].Checker = jobpoll.CheckerFunc(func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
					<-begin // looks without a pause would hold up Watch
					looks.Add(1)
					return jobpoll.Report{State: jobpoll.StateRunning}, nil
				})
			})
			defer stop()
			benchJobs(b, p, n)
			close(begin)
			b.ReportAllocs()
			b.ResetTimer()
			from := looks.Load()
			for looks.Load()-from < int64(b.N) {
				time.Sleep(100 * time.Microsecond)
			}
			b.StopTimer()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(looks.Load()-from), "ns/look")
		})
	}
}

// BenchmarkCallback is the end of a job, from the notice to OnStop and away.
func BenchmarkCallback(b *testing.B) {
	var stops atomic.Int64
	p, stop := benchPoller(b, func(c *jobpoll.Config) {
		c.Callbacks.OnStop = func(context.Context, jobpoll.Outcome) error { stops.Add(1); return nil }
	})
	defer stop()
	benchJobs(b, p, b.N)
	keys := make([]jobpoll.Key, b.N)
	for i := range keys {
		keys[i] = key(fmt.Sprintf("job-%08d", i))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for _, k := range keys {
		_ = p.Notify(context.Background(), jobpoll.Notice{Key: k, Report: jobpoll.Report{State: jobpoll.StateSucceeded}, Trust: jobpoll.TrustAuthoritative})
	}
	for stops.Load() < int64(b.N) {
		time.Sleep(50 * time.Microsecond)
	}
}

func BenchmarkNotify(b *testing.B) {
	p, stop := benchPoller(b, nil)
	defer stop()
	benchJobs(b, p, 10_000)
	keys := make([]jobpoll.Key, 10_000)
	for i := range keys {
		keys[i] = key(fmt.Sprintf("job-%08d", i))
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		_ = p.Notify(context.Background(), jobpoll.Notice{Key: keys[i%len(keys)], Report: jobpoll.Report{State: jobpoll.StateRunning}, Trust: jobpoll.TrustAuthoritative})
		i++
	}
}

func BenchmarkMetrics(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p, stop := benchPoller(b, nil)
			defer stop()
			benchJobs(b, p, n)
			b.ReportAllocs()
			for b.Loop() {
				_ = p.Metrics()
			}
		})
	}
}
