package polltest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

// renders is an adapter with one fault.
type renders struct {
	base   string
	client *http.Client
	key    func() string // a func is not printed
}

var renderWords = jobpoll.Words{"rendering": jobpoll.StateRunning, "done": jobpoll.StateSucceeded, "failed": jobpoll.StateFailed}

func (r renders) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+"/jobs/"+url.PathEscape(job.ID), nil)
	if err != nil {
		return jobpoll.Report{}, err
	}
	req.Header.Set("Authorization", "Bearer "+r.key())
	resp, err := r.client.Do(req)
	if err != nil {
		return jobpoll.Report{}, err
	}
	defer resp.Body.Close()
	hint, err := jobpoll.FromResponse(resp, time.Now())
	if err != nil {
		return jobpoll.Report{}, err
	}
	var a struct {
		Status  string
		Percent float64
		Error   string
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&a); err != nil {
		return jobpoll.Report{}, err
	}
	report := jobpoll.Report{State: renderWords.State(a.Status), RawStatus: a.Status, Progress: a.Percent, Hint: hint}
	if report.State == jobpoll.StateFailed {
		report.Failure = &jobpoll.Failure{Message: a.Error}
	}
	return report, nil
}

func ExampleTestChecker() {
	err := polltest.TestChecker(polltest.Adapter{
		New: func(p polltest.Target) jobpoll.Checker {
			return renders{base: p.URL, client: p.Client, key: func() string { return p.Credential }}
		},
		Pending: polltest.Answer{
			Body: `{"id":"{id}","status":"rendering","percent":40}`,
			Want: jobpoll.Report{RawStatus: "rendering", Progress: 0.4},
		},
		Succeeded: polltest.Answer{
			Body: `{"id":"{id}","status":"done","url":"https://cdn.example/{id}.mp4"}`,
			Want: jobpoll.Report{RawStatus: "done"},
		},
		Failed: polltest.Answer{
			Body: `{"id":"{id}","status":"failed","error":"the renderer crashed"}`,
			Want: jobpoll.Report{RawStatus: "failed", Failure: &jobpoll.Failure{Message: "the renderer crashed"}}, // no kind: the provider tells none
		},
	})

	var faults polltest.Findings
	errors.As(err, &faults)
	for _, f := range faults {
		fmt.Printf("%s: %s: %s; expected: %s\n", f.Check, f.Tried, f.Did, f.Want)
	}
	// Output:
	// progress: the answer Pending: reported the progress 40; expected: 0 to 1 (a provider's percentage is divided by 100); 0 where it is not told
}
