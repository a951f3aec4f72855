package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/jobpoll/jobpoll"
)

// renderer is a jobpoll.Checker for the provider's HTTP interface. This is all
// the code that a provider of your own needs.
type renderer struct {
	base string           // where the provider is
	now  func() time.Time // the Poller's clock
}

// words are the states in the provider's own words. One that is not here is
// watched on, and counted in Metrics.
var words = jobpoll.Words{"waiting": jobpoll.StateQueued, "rendering": jobpoll.StateRunning, "done": jobpoll.StateSucceeded, "failed": jobpoll.StateFailed}

// Check asks about one job.
func (r renderer) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+"/jobs/"+url.PathEscape(job.ID), nil)
	if err != nil {
		return jobpoll.Report{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return jobpoll.Report{}, err // transient
	}
	defer resp.Body.Close()
	hint, err := jobpoll.FromResponse(resp, r.now()) // 429, 503, 404, …; Retry-After
	if err != nil {
		return jobpoll.Report{}, err
	}
	var a answer
	err = json.NewDecoder(resp.Body).Decode(&a)
	return jobpoll.Report{State: words.State(a.Status), RawStatus: a.Status, Progress: a.Percent / 100, QueuePosition: a.Place, Output: a.Result, Hint: hint}, err
}

// answer is what the provider sends of a job.
type answer struct {
	Status  string          `json:"status"`
	Percent float64         `json:"percent,omitempty"`
	Place   int             `json:"place,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}
