package jobpoll_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

// One submission goes well. The answer to another is lost: the Reconciler finds
// the job that was bought all the same, and it is not bought again.
func ExamplePoller_Submit() {
	clock := polltest.NewClock(time.Time{})
	provider := polltest.NewProvider(clock)
	poller, err := jobpoll.New(jobpoll.Config{
		Clock: clock,
		Store: jobpoll.NewMemoryStore(clock), // in a service: one that outlives the process
		Routes: []jobpoll.Route{{
			Name:       "render",
			Checker:    provider,
			Reconciler: provider.Finder(2 * time.Second), // finds jobs by the key they were submitted with
		}},
		Callbacks: jobpoll.Callbacks{OnStop: func(_ context.Context, o jobpoll.Outcome) error {
			fmt.Println("ended:", o.Job.ClientKey, o.Job.ID, o.Reason)
			return nil
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	end := polltest.Run(clock, poller)
	defer end()

	submit := func(key string, send func(context.Context) (jobpoll.Sent, error)) {
		job, err := poller.Submit(context.Background(), jobpoll.Submission{Job: jobpoll.Job{Route: "render", ClientKey: key}, Send: send})
		var e *jobpoll.SubmitError
		switch {
		case err == nil:
			fmt.Println("watched:", key, job.ID)
		case errors.As(err, &e) && e.Safe():
			fmt.Println("may be submitted again:", key, e.Meaning, e.ErrorKind)
		default:
			fmt.Println("must not be submitted again:", err)
		}
	}
	submit("order 1", provider.Send("order 1", polltest.Order{ID: "a", Script: "running; at 20s succeeded"}))
	submit("order 1", provider.Send("order 1", polltest.Order{ID: "b"})) // the same key: the same job
	submit("order 2", provider.Send("order 2", polltest.Order{Answer: "400"}))

	lost := make(chan struct{})
	go func() {
		defer close(lost)
		submit("order 3", provider.Send("order 3", polltest.Order{ID: "c", Script: "running; at 30s succeeded", Answer: "reset", Lost: true}))
	}()
	for waiting := true; waiting; {
		select {
		case <-lost:
			waiting = false
		default:
			clock.Advance(time.Second)
		}
	}
	clock.Advance(2 * time.Minute)
	fmt.Println("sent:", len(provider.Sends("order 1")), len(provider.Sends("order 2")), len(provider.Sends("order 3")))
	// Unordered output:
	// watched: order 1 a
	// watched: order 1 a
	// may be submitted again: order 2 refused invalid
	// watched: order 3 c
	// ended: order 1 a succeeded
	// ended: order 3 c succeeded
	// sent: 1 1 1
}

// A person, or a program that can look at the provider's dashboard, says what
// became of a submission that could not be cleared up.
func ExamplePoller_Resolve() {
	clock := polltest.NewClock(time.Time{})
	provider := polltest.NewProvider(clock)
	poller, err := jobpoll.New(jobpoll.Config{Clock: clock, Routes: []jobpoll.Route{{Name: "render", Checker: provider}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	end := polltest.Run(clock, poller)
	defer end()

	_, err = poller.Submit(context.Background(), jobpoll.Submission{
		Job:  jobpoll.Job{Route: "render", ClientKey: "order 1"},
		Send: provider.Send("order 1", polltest.Order{ID: "a", Script: "running", Answer: "reset", Lost: true}),
	})
	fmt.Println(errors.Is(err, jobpoll.ErrAmbiguous))
	for info := range poller.Submissions() {
		fmt.Println(info.Job.ClientKey, info.Submission.State)
	}
	fmt.Println(poller.Resolve(context.Background(), "order 1", "a"))
	info, _ := poller.Find("order 1")
	fmt.Println(info.Job.Key())
	// Output:
	// true
	// order 1 ambiguous
	// <nil>
	// render/a
}
