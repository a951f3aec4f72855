package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/loopback"
	"github.com/jobpoll/jobpoll/provider"
)

// Jobs are submitted over HTTP and watched. The gateway loses the answer to one:
// that is no failure, and the job is not bought again.
func ExampleSubmission() {
	clock := polltest.NewClock(time.Time{})
	server := loopback.Start(loopback.Config{
		Wire: loopback.Atlas(), Credential: "secret", Clock: clock,
		Script: func(int, json.RawMessage) string { return "running; at 20s succeeded" },
		Fault: func(n int, _ *http.Request) loopback.Fault {
			if n == 2 {
				return loopback.Fault{Kind: polltest.FaultHTML}
			}
			return loopback.Fault{}
		},
	})
	defer server.Close()
	atlas, err := provider.NewAtlas(provider.Config{BaseURL: server.URL(), Credentials: provider.Secret("secret"), Clock: clock})
	if err != nil {
		fmt.Println(err)
		return
	}
	poller, err := jobpoll.New(jobpoll.Config{Clock: clock, Routes: []jobpoll.Route{{Name: "atlas", Checker: atlas}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	end := polltest.Run(clock, poller)
	defer end()

	order := provider.Order{Model: "maker/video", Input: map[string]string{"prompt": "a cat on a train"}}
	for _, key := range []string{"order 1", "order 2"} {
		_, err := poller.Submit(context.Background(), provider.Submission("atlas", key, atlas, order))
		fmt.Println(key, "watched:", err == nil, "ambiguous:", errors.Is(err, jobpoll.ErrAmbiguous))
	}
	clock.Advance(time.Minute)
	for _, key := range []string{"order 1", "order 2"} {
		info, _ := poller.Find(key)
		fmt.Println(key, info.Outcome.Reason)
	}
	fmt.Println("jobs bought:", len(server.Jobs()))
	// Output:
	// order 1 watched: true ambiguous: false
	// order 2 watched: false ambiguous: true
	// order 1 succeeded
	// order 2 ambiguous submission
	// jobs bought: 2
}
