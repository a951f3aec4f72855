package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/provider"
)

// acme is an adapter for a provider of one's own: a struct of the answer, its
// words, and what a Report takes of it.
type acme struct{ *provider.Client }

var acmeWords = jobpoll.Words{"waiting": jobpoll.StateQueued, "busy": jobpoll.StateRunning, "done": jobpoll.StateSucceeded, "broken": jobpoll.StateFailed}

// acmeCodes has FailureFault only where the provider itself is at fault: the
// advice is then that to submit anew is safe. A code that is not here is unknown.
var acmeCodes = map[provider.Text]jobpoll.FailureKind{"renderer_lost": jobpoll.FailureFault, "bad_prompt": jobpoll.FailureRejected, "moderated": jobpoll.FailureFiltered}

// acmeJob is what the provider tells of a job.
type acmeJob struct {
	ID      provider.Text   `json:"id"`
	State   string          `json:"state"`
	Percent float64         `json:"percent"`
	Left    provider.Text   `json:"seconds_left"`
	Code    provider.Text   `json:"code"`
	Reason  provider.Text   `json:"reason"`
	Video   json.RawMessage `json:"video"`
}

func (a acme) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	var v acmeJob
	ans, err := a.Get(ctx, a.URL("jobs", job.ID), &v)
	if err != nil {
		return jobpoll.Report{}, err
	}
	r := jobpoll.Report{State: acmeWords.State(v.State), RawStatus: v.State, Progress: v.Percent / 100, Remaining: v.Left.Seconds(), Hint: ans.Hint}
	switch {
	case r.State == jobpoll.StateFailed:
		r.Failure = &jobpoll.Failure{Kind: acmeCodes[v.Code], Code: string(v.Code), Message: string(v.Reason)}
	case r.State == jobpoll.StateSucceeded && provider.HasOutput(v.Video):
		r.Output = v.Video
	case r.State == jobpoll.StateSucceeded:
		r.State, r.Failure = jobpoll.StateFailed, &jobpoll.Failure{Kind: jobpoll.FailureNoOutput}
	}
	return r, nil
}

// Submit starts a job. An error that matches provider.ErrAmbiguous may have
// started one all the same: to submit again may be to buy it twice.
func (a acme) Submit(ctx context.Context, o provider.Order) (jobpoll.Job, error) {
	var v acmeJob
	ans, err := a.Post(ctx, provider.Request{URL: a.URL("jobs"), Header: o.Header, Body: o.Input}, &v)
	if err != nil {
		return jobpoll.Job{}, err
	}
	return a.Taken(ans, o, string(v.ID), "")
}

func ExampleClient() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("X-Acme-Key") != "acme-secret":
			http.Error(w, `{"error":"who are you?"}`, http.StatusUnauthorized)
		case r.Method == http.MethodPost:
			fmt.Fprint(w, `{"id":7,"state":"waiting"}`)
		default:
			fmt.Fprint(w, `{"id":7,"state":"Done","percent":100,"video":{"url":"https://cdn.example/7.mp4"}}`)
		}
	}))
	defer server.Close()

	client, err := provider.NewClient(provider.Config{
		BaseURL:     server.URL,
		Header:      "X-Acme-Key",
		Credentials: provider.Secret("acme-secret"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	adapter := acme{client}
	job, err := adapter.Submit(context.Background(), provider.Order{Model: "acme/video", Input: map[string]string{"prompt": "a cat on a train"}})
	if err != nil {
		fmt.Println(err, "— may have been taken:", errors.Is(err, provider.ErrAmbiguous))
		return
	}
	job.Route = "acme" // the name that the adapter has as a jobpoll.Route
	fmt.Println(job.Key(), job.Profile)

	// As a jobpoll.Route's Checker it is asked by a Poller; here once by hand.
	rep, err := adapter.Check(context.Background(), job)
	fmt.Println(rep.State, string(rep.Output), err)
	// Output:
	// acme/7 acme/video
	// succeeded {"url":"https://cdn.example/7.mp4"} <nil>
}
