package jobpoll_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

// listing is an adapter to a provider that has a list.
type listing struct{ provider *polltest.Provider }

func (l listing) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	return l.provider.Check(ctx, job)
}

func (l listing) MaxBatch() int { return 50 } // ids in one call

// CheckBatch would make one request here. A job that the list leaves out is left out
// of the results too.
func (l listing) CheckBatch(ctx context.Context, jobs []jobpoll.Job) (map[string]jobpoll.Result, error) {
	results := map[string]jobpoll.Result{}
	for _, job := range jobs {
		report, err := l.provider.Check(ctx, job)
		results[job.ID] = jobpoll.Result{Report: report, Err: err}
	}
	return results, nil
}

// What is due about now is looked at in one call, which counts once against the
// provider's limit.
func ExampleBatchChecker() {
	clock := polltest.NewClock(time.Time{})
	provider := polltest.NewProvider(clock)
	provider.Default(`running; at 30s succeeded`)
	p, err := jobpoll.New(jobpoll.Config{
		Clock: clock, Rand: noJitter,
		Routes: []jobpoll.Route{{
			Name: "videos", Checker: listing{provider}, Schedule: jobpoll.Schedule{Delays: []time.Duration{10 * time.Second}},
		}},
	})
	if err != nil {
		panic(err)
	}
	end := polltest.Run(clock, p)
	for i := range 100 {
		if err := p.Watch(context.Background(), jobpoll.Job{Route: "videos", ID: fmt.Sprint("v", i)}); err != nil {
			panic(err)
		}
	}
	clock.Advance(time.Minute)
	total := p.Metrics().Total
	fmt.Println(total.Stops[jobpoll.ReasonSucceeded], "jobs have ended,", total.Looks, "looks,", total.Calls, "calls")
	if err := end(); err != nil {
		panic(err)
	}
	// Output: 100 jobs have ended, 400 looks, 8 calls
}
