package polltest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// confAdapter is an adapter as it should be. Its fields are the places at which
// the tests break it.
type confAdapter struct {
	base      string
	client    *http.Client
	authorize func(*http.Request)
	request   func(ctx context.Context, job jobpoll.Job) (*http.Request, error)
	answered  func(resp *http.Response) (jobpoll.Hint, error)
	body      func(resp *http.Response) ([]byte, error)
	decode    func(body []byte) (*confAnswer, error)
	report    func(a *confAnswer) jobpoll.Report
	close     func(resp *http.Response)
	check     func(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error)
	canceled  func(resp *http.Response) error
	fetched   func(resp *http.Response) (jobpoll.Report, error)
}

var (
	_ jobpoll.Canceler = (*confAdapter)(nil)
	_ jobpoll.Fetcher  = (*confAdapter)(nil)
)

// confAnswer is what the provider tells of a job.
type confAnswer struct {
	Status   string          `json:"status"`
	Percent  float64         `json:"percent"`
	Place    *int            `json:"place"` // from 0
	Seconds  float64         `json:"seconds_left"`
	URL      string          `json:"status_url"`
	Result   json.RawMessage `json:"result"`
	Code     string          `json:"code"`
	Message  string          `json:"message"`
	Filtered bool            `json:"filtered"`
}

var confWords = jobpoll.Words{
	"in_queue": jobpoll.StateQueued, "Rendering": jobpoll.StateRunning, "done": jobpoll.StateSucceeded,
	"error": jobpoll.StateFailed, "canceled": jobpoll.StateCanceled, "timeout": jobpoll.StateExpired,
}

var confFailures = map[string]jobpoll.FailureKind{"E_GPU": jobpoll.FailureFault, "E_INPUT": jobpoll.FailureRejected}

func newConfAdapter(t Target) *confAdapter {
	client := *t.Client
	client.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
		if !strings.HasPrefix(req.URL.String(), t.URL+"/") {
			return errors.New("a redirect to another host is not followed")
		}
		return nil
	}
	a := &confAdapter{base: t.URL, client: &client}
	a.authorize = func(r *http.Request) { r.Header.Set("X-Api-Key", t.Credential) }
	a.request = a.get
	a.answered = func(resp *http.Response) (jobpoll.Hint, error) { return jobpoll.FromResponse(resp, time.Now()) }
	a.body = func(resp *http.Response) ([]byte, error) { return confRead(resp.Body, 1<<20) }
	a.decode = confDecode
	a.report = confReport
	a.close = func(resp *http.Response) { _ = resp.Body.Close() }
	a.check = a.look
	a.canceled = func(resp *http.Response) error { _, err := a.answered(resp); return err }
	a.fetched = a.output
	return a
}

func confRead(r io.Reader, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(b)) > most {
		err = errors.New("the answer is too long")
	}
	return b, err
}

func confDecode(body []byte) (*confAnswer, error) {
	var a *confAnswer
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, err
	}
	if a == nil {
		return nil, errors.New("the answer is null")
	}
	return a, nil
}

func confReport(a *confAnswer) jobpoll.Report {
	r := jobpoll.Report{
		State:     confWords.State(a.Status),
		RawStatus: a.Status,
		Progress:  min(max(a.Percent/100, 0), 1),
		Remaining: time.Duration(min(max(a.Seconds, 0), 1e6) * float64(time.Second)),
		Ref:       a.URL,
		Output:    a.Result,
	}
	if a.Place != nil && *a.Place >= 0 {
		r.QueuePosition = *a.Place + 1
	}
	switch {
	case a.Filtered:
		r.State = jobpoll.StateFailed
		r.Failure = &jobpoll.Failure{Kind: jobpoll.FailureFiltered, Code: a.Code, Message: a.Message}
	case r.State == jobpoll.StateFailed:
		r.Failure = &jobpoll.Failure{Kind: confFailures[a.Code], Code: a.Code, Message: a.Message}
	}
	return r
}

// Format keeps the credential from being printed.
func (a *confAdapter) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, "the adapter to "+a.base) }

func (a *confAdapter) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	return a.check(ctx, job)
}

func (a *confAdapter) look(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	req, err := a.request(ctx, job)
	if err != nil {
		return jobpoll.Report{}, err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return jobpoll.Report{}, err
	}
	defer a.close(resp)
	hint, err := a.answered(resp)
	if err != nil {
		return jobpoll.Report{}, err
	}
	body, err := a.body(resp)
	if err != nil {
		return jobpoll.Report{}, err
	}
	answer, err := a.decode(body)
	if err != nil {
		return jobpoll.Report{}, err
	}
	r := a.report(answer)
	r.Hint = hint
	return r, nil
}

// url is where the job is told of: its status URL, if that is the provider's.
func (a *confAdapter) url(job jobpoll.Job) string {
	own := a.base + "/jobs/" + url.PathEscape(job.ID)
	if strings.HasPrefix(job.Ref, a.base+"/") {
		return job.Ref
	}
	return own
}

func (a *confAdapter) get(ctx context.Context, job jobpoll.Job) (*http.Request, error) {
	return a.to(ctx, http.MethodGet, a.url(job))
}

func (a *confAdapter) to(ctx context.Context, method, to string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, to, nil)
	if err == nil {
		a.authorize(req)
	}
	return req, err
}

func (a *confAdapter) Cancel(ctx context.Context, job jobpoll.Job) error {
	req, err := a.to(ctx, http.MethodDelete, a.url(job))
	if err != nil {
		return err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer a.close(resp)
	return a.canceled(resp)
}

func (a *confAdapter) Fetch(ctx context.Context, job jobpoll.Job, _ jobpoll.Report) (jobpoll.Report, error) {
	req, err := a.to(ctx, http.MethodGet, a.url(job)+"/result")
	if err != nil {
		return jobpoll.Report{}, err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return jobpoll.Report{}, err
	}
	defer a.close(resp)
	return a.fetched(resp)
}

func (a *confAdapter) output(resp *http.Response) (jobpoll.Report, error) {
	if _, err := a.answered(resp); err != nil {
		return jobpoll.Report{}, err
	}
	body, err := a.body(resp)
	if err == nil && !json.Valid(body) {
		err = errors.New("the output is no JSON")
	}
	return jobpoll.Report{Output: body}, err
}

// confProvider is what the provider of confAdapter answers.
func confProvider() Adapter {
	return Adapter{
		Pending: Answer{
			Status: http.StatusAccepted,
			Body:   `{"id":"{id}","status":"in_queue","percent":40,"place":0,"seconds_left":12.5,"status_url":"{base}/status/{id}"}`,
			Want: jobpoll.Report{State: jobpoll.StateQueued, RawStatus: "in_queue", Progress: 0.4, QueuePosition: 1,
				Remaining: 12500 * time.Millisecond, Ref: "{base}/status/{id}"},
		},
		Succeeded: Answer{
			Body: `{"id":"{id}","status":"done","percent":100,"result":{"url":"https://cdn.example/{id}.mp4"}}`,
			Want: jobpoll.Report{RawStatus: "done", Output: json.RawMessage(`{"url": "https://cdn.example/{id}.mp4"}`)},
		},
		Failed: Answer{
			Body: `{"id":"{id}","status":"error","code":"E_GPU","message":"the renderer crashed"}`,
			Want: jobpoll.Report{RawStatus: "error", Failure: &jobpoll.Failure{Kind: jobpoll.FailureFault, Code: "E_GPU", Message: "crashed"}},
		},
		Canceled: &Answer{Body: `{"id":"{id}","status":"canceled"}`, Want: jobpoll.Report{RawStatus: "canceled"}},
		Expired:  &Answer{Body: `{"id":"{id}","status":"timeout"}`, Want: jobpoll.Report{RawStatus: "timeout"}},
		Filtered: &Answer{Body: `{"id":"{id}","status":"done","filtered":true,"message":"held back"}`, Want: jobpoll.Report{RawStatus: "done"}},
		Output:   &Answer{Body: `{"url":"https://cdn.example/{id}.mp4"}`, Want: jobpoll.Report{Output: json.RawMessage(`{"url":"https://cdn.example/{id}.mp4"}`)}},
		Cancel:   &Answer{Body: `{}`},
	}
}

// confBroken is the provider with an adapter that was broken.
func confBroken(breakIt func(a *confAdapter)) Adapter {
	p := confProvider()
	p.New = func(t Target) jobpoll.Checker {
		a := newConfAdapter(t)
		breakIt(a)
		return a
	}
	return p
}

// confOnStatus is a reading of HTTP errors in which one status means something
// else.
func confOnStatus(status int, instead func(h jobpoll.Hint, err *jobpoll.CheckError) error) func(a *confAdapter) {
	return func(a *confAdapter) {
		right := a.answered
		a.answered = func(resp *http.Response) (jobpoll.Hint, error) {
			h, err := right(resp)
			var e *jobpoll.CheckError
			if errors.As(err, &e) && cmp.Or(status, e.Status) == e.Status {
				return h, instead(h, e)
			}
			return h, err
		}
	}
}

// confReporting changes the report of each answer.
func confReporting(change func(r *jobpoll.Report)) func(a *confAdapter) {
	return func(a *confAdapter) {
		right := a.report
		a.report = func(answer *confAnswer) jobpoll.Report {
			r := right(answer)
			change(&r)
			return r
		}
	}
}

// confLooking changes what a look comes to.
func confLooking(change func(r jobpoll.Report, err error) (jobpoll.Report, error)) func(a *confAdapter) {
	return func(a *confAdapter) {
		a.check = func(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) { return change(a.look(ctx, job)) }
	}
}
