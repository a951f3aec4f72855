package jobpoll_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

// Words finds states in whatever form a gateway passes a word on.
func ExampleWords() {
	words := jobpoll.Words{"in_progress": jobpoll.StateRunning, "succeeded": jobpoll.StateSucceeded}
	fmt.Println(words.State("in_progress"), words.State(" SUCCEEDED "), words.State("paused"))
	// Output: running succeeded unknown
}

// demo is a Poller on a manual clock, with one scripted job.
func demo(script string) (*jobpoll.Poller, *polltest.Clock, *polltest.Provider) {
	clock := polltest.NewClock(time.Time{})
	provider := polltest.NewProvider(clock)
	provider.Add("abc", script)
	p, err := jobpoll.New(jobpoll.Config{Clock: clock, Rand: noJitter, Routes: []jobpoll.Route{{Name: "render", Checker: provider}}})
	if err != nil {
		panic(err)
	}
	return p, clock, provider
}

// Cancel asks the provider; the end is told as the provider tells it.
func ExamplePoller_Cancel() {
	p, clock, provider := demo(`running`)
	defer polltest.Run(clock, p)()
	provider.OnCancel = func(_ context.Context, job jobpoll.Job) error {
		provider.Add(job.ID, `canceled`)
		return nil
	}
	job := jobpoll.Job{Route: "render", ID: "abc"}
	_ = p.Watch(context.Background(), job)
	clock.Advance(20 * time.Second)
	fmt.Println(p.Cancel(context.Background(), job.Key(), nil))
	clock.Advance(2 * time.Second)
	info, _ := p.Job(job.Key())
	fmt.Println(info.Outcome.Reason)
	// Output:
	// <nil>
	// canceled
}

// PollNow brings the next look forward, to where the floors allow it.
func ExamplePoller_PollNow() {
	p, clock, provider := demo(`running`)
	defer polltest.Run(clock, p)()
	job := jobpoll.Job{Route: "render", ID: "abc"}
	_ = p.Watch(context.Background(), job)
	fmt.Println(p.PollNow(job.Key()))
	clock.Settle()
	fmt.Println("looks:", provider.Total())
	fmt.Println(p.PollNow(jobpoll.Key{Route: "render", ID: "other"}))
	// Output:
	// <nil>
	// looks: 1
	// jobpoll: render/other: no such job is watched
}

// Drain waits for the end of all jobs: for programs that are done then.
func ExamplePoller_Drain() {
	p, clock, _ := demo(`running; at 5s succeeded`)
	defer polltest.Run(clock, p)()
	_ = p.Watch(context.Background(), jobpoll.Job{Route: "render", ID: "abc"})
	clock.Advance(time.Minute)
	fmt.Println(p.Drain(context.Background()))
	// Output: <nil>
}

// Jobs, Job and Find show what is watched.
func ExamplePoller_Find() {
	p, clock, _ := demo(`running 40%`)
	defer polltest.Run(clock, p)()
	_ = p.Watch(context.Background(), jobpoll.Job{Route: "render", ID: "abc", ClientKey: "order-7"})
	clock.Advance(10 * time.Second)
	info, ok := p.Find("order-7")
	fmt.Println(ok, info.Job.ID, info.State, info.Progress)
	for j := range p.Jobs() {
		fmt.Println(j.Job.Key(), j.Polls)
	}
	// Output:
	// true abc running 0.4
	// render/abc 2
}

// AddRoute adds a kind of job to a Poller that runs.
func ExamplePoller_AddRoute() {
	p, clock, provider := demo(`running`)
	defer polltest.Run(clock, p)()
	provider.Add("xyz", `succeeded`)
	fmt.Println(p.AddRoute(jobpoll.Route{Name: "upscale", Checker: provider}))
	job := jobpoll.Job{Route: "upscale", ID: "xyz"}
	_ = p.Watch(context.Background(), job)
	clock.Advance(10 * time.Second)
	info, _ := p.Job(job.Key())
	fmt.Println(info.State)
	// Output:
	// <nil>
	// succeeded
}

// Profiles shows how long jobs of each profile really take.
func ExamplePoller_Profiles() {
	p, clock, _ := demo(`running; at 50s succeeded completed`)
	defer polltest.Run(clock, p)()
	_ = p.Watch(context.Background(), jobpoll.Job{Route: "render", ID: "abc", Profile: "model-1/1080p", Expected: time.Minute})
	clock.Advance(2 * time.Minute)
	for d := range p.Profiles() {
		fmt.Println(d.Family, d.Profile, d.Count, d.P50.Round(10*time.Second))
	}
	// Output: render model-1/1080p 1 50s
}
