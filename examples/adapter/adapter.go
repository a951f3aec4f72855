package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/jobpoll/jobpoll"
)

// renderer is a jobpoll.Checker for the provider's HTTP interface. This is all
// the code that a provider of your own needs.
type renderer struct {
	client *http.Client
	base   string           // where the provider is
	now    func() time.Time // the Poller's clock
}

// maxBody bounds what is read of an answer, in bytes.
const maxBody = 1 << 20

// words are the states in the provider's own words. One that is not here is
// watched on, and counted in Metrics.
var words = jobpoll.Words{"waiting": jobpoll.StateQueued, "rendering": jobpoll.StateRunning, "done": jobpoll.StateSucceeded, "failed": jobpoll.StateFailed}

// Check asks about one job.
func (r renderer) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+"/jobs/"+url.PathEscape(job.ID), nil)
	if err != nil {
		return jobpoll.Report{}, err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return jobpoll.Report{}, err // transient
	}
	defer resp.Body.Close()
	hint, err := jobpoll.FromResponse(resp, r.now()) // 429, 503, 404, …; Retry-After
	if err != nil {
		return jobpoll.Report{}, err
	}
	var a answer
	err = json.NewDecoder(io.LimitReader(resp.Body, maxBody)).Decode(&a)
	return a.report(hint), err
}

// answer is what the provider sends of a job.
type answer struct {
	Status  string          `json:"status"`
	Percent float64         `json:"percent,omitempty"`
	Place   int             `json:"place,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Code    string          `json:"code,omitempty"`
	Error   string          `json:"error,omitempty"`
}

// kinds are the kinds of failure by the provider's codes. One that is not here
// is unknown: only what is surely the provider's own fault may be FailureFault,
// as that is taken for safe to submit again.
var kinds = map[string]jobpoll.FailureKind{"crashed": jobpoll.FailureFault, "bad_input": jobpoll.FailureRejected, "held_back": jobpoll.FailureFiltered}

func (a answer) report(hint jobpoll.Hint) jobpoll.Report {
	r := jobpoll.Report{State: words.State(a.Status), RawStatus: a.Status, Progress: a.Percent / 100, QueuePosition: max(a.Place, 0), Output: a.Result, Hint: hint}
	switch {
	case r.State == jobpoll.StateFailed:
		r.Failure = &jobpoll.Failure{Kind: kinds[a.Code], Code: a.Code, Message: a.Error}
	case r.State == jobpoll.StateSucceeded && (len(a.Result) == 0 || string(a.Result) == "null"):
		r.State, r.Failure = jobpoll.StateFailed, &jobpoll.Failure{Kind: jobpoll.FailureNoOutput}
	}
	return r
}
