package provider

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// FalURL is the address of fal's queue.
const FalURL = "https://queue.fal.run"

// Fal is the adapter for fal's queue. It is a jobpoll.Checker, Fetcher, Canceler
// and Refresher, and safe for concurrent use.
//
// Job.Ref says where the request lives, as it is not in its id: the status_url
// of the answer to the submission, or the model id ("fal-ai/some/model"), of
// which only the first two parts count, as a model's sub-path is no part of a
// request's address. Submit fills it in.
//
// COMPLETED only says that the request has left the queue. Whether it succeeded
// is told by the result, which is a call of its own: Check gives a success
// without an Output, and Fetch the Output (the whole result, which looks
// different for each model) or why there is none.
//
// Source: https://fal.ai/docs/api-reference/inference-api, and fal's clients
type Fal struct{ c *Client }

var (
	_ jobpoll.Checker   = (*Fal)(nil)
	_ jobpoll.Fetcher   = (*Fal)(nil)
	_ jobpoll.Canceler  = (*Fal)(nil)
	_ jobpoll.Refresher = (*Fal)(nil)
)

// falWords are all words of a request's status. There is none for a failure.
var falWords = jobpoll.Words{
	"IN_QUEUE":    jobpoll.StateQueued,
	"IN_PROGRESS": jobpoll.StateRunning,
	"COMPLETED":   jobpoll.StateSucceeded,
}

// NewFal makes the adapter. Only Credentials is required: the API key.
func NewFal(cfg Config) (*Fal, error) {
	c, err := newAdapter(cfg.orElse(FalURL, "Key", nil), "FAL_KEY")
	if err != nil {
		return nil, err
	}
	return &Fal{c}, nil
}

// falStatus is what fal tells of a request.
type falStatus struct {
	ID        Text   `json:"request_id"`
	Status    string `json:"status"`
	Ahead     Text   `json:"queue_position"` // how many are ahead of it
	Error     Text   `json:"error"`
	ErrorType Text   `json:"error_type"`
	StatusURL string `json:"status_url"`
}

// Check asks for the status of one request.
func (f *Fal) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	url, err := f.url(job, "status")
	if err != nil {
		return jobpoll.Report{}, err
	}
	var v falStatus
	ans, err := f.c.Get(ctx, url, &v)
	if err := forgive(err, v.Status != ""); err != nil {
		return jobpoll.Report{}, err
	}
	return v.report(&ans)
}

func (v *falStatus) report(ans *Answer) (jobpoll.Report, error) {
	if v.Status == "" {
		return jobpoll.Report{}, ans.Errorf(jobpoll.ErrorTransient, "an answer without a status")
	}
	r := jobpoll.Report{State: falWords.State(v.Status), RawStatus: v.Status, Hint: ans.Hint}
	if r.State == jobpoll.StateQueued {
		r.QueuePosition = falPlace(v.Ahead)
	}
	if r.State == jobpoll.StateSucceeded && (v.Error != "" || v.ErrorType != "") {
		r.State, r.Failure = falFailure(string(v.ErrorType), string(v.Error))
	}
	return r, nil
}

// falPlace makes a place of the number of requests ahead; 0 if that is none.
func falPlace(ahead Text) int {
	if n, ok := ahead.count(); ok {
		return n + 1
	}
	return 0
}

// url is the address of a request, or of what is below it: status, cancel.
func (f *Fal) url(job jobpoll.Job, below ...string) (string, error) {
	ref := strings.TrimSpace(job.Ref)
	base := ""
	switch u, err := url.Parse(ref); {
	case err == nil && u.Host != "":
		u.RawQuery, u.Fragment = "", ""
		base = u.String()
		for _, end := range []string{"/status", "/cancel", "/response"} {
			base = strings.TrimSuffix(base, end)
		}
	default:
		app := falApp(ref)
		if app == nil || job.ID == "" {
			return "", &jobpoll.CheckError{Kind: jobpoll.ErrorInvalid, Err: fmt.Errorf("%s: fal needs the model id or the status_url as Job.Ref", job.Key())}
		}
		base = f.c.URL(append(app, "requests", job.ID)...)
	}
	for _, s := range below {
		base += "/" + s
	}
	return base, nil
}

// falApp gives the parts of a model id that address its requests: owner and app,
// after the namespace of workflows and of ComfyUI. The rest is dropped.
func falApp(model string) []string {
	parts := strings.Split(strings.Trim(model, "/"), "/")
	n := 2
	if parts[0] == "workflows" || parts[0] == "comfy" {
		n = 3
	}
	if len(parts) < n {
		return nil
	}
	for _, p := range parts[:n] {
		if p == "" {
			return nil
		}
	}
	return parts[:n:n]
}

// Cancel asks fal to cancel a request. An error matches ErrEnded where it has
// completed before, and is of kind ErrorNoSuchJob where fal does not know it.
func (f *Fal) Cancel(ctx context.Context, job jobpoll.Job) error {
	url, err := f.url(job, "cancel")
	if err != nil {
		return err
	}
	ans, err := f.c.Do(ctx, Request{Method: http.MethodPut, URL: url}, nil)
	var v struct {
		Status string `json:"status"`
	}
	ans.decode(&v)
	switch {
	case strings.EqualFold(v.Status, "ALREADY_COMPLETED"):
		return ended(job, &ans)
	case strings.EqualFold(v.Status, "NOT_FOUND"):
		return ans.Errorf(jobpoll.ErrorNoSuchJob, "%s: fal does not know it", job.Key())
	}
	return err
}

// Refresh asks Config.Credentials for the key anew.
func (f *Fal) Refresh(ctx context.Context) error { return f.c.Refresh(ctx) }

// Submit puts a request into the queue, by one POST that is never repeated.
//
// Order.Model is the whole model id. The headers of fal are
// X-Fal-Request-Timeout (seconds; the job then fails with the code
// request_timeout), X-Fal-No-Retry, X-Fal-Queue-Priority and
// X-Fal-Object-Lifecycle-Preference. The Job's Ref is the status_url of the
// answer, or the model id where that names a host that is not allowed.
func (f *Fal) Submit(ctx context.Context, o Order) (jobpoll.Job, jobpoll.Report, error) {
	if err := o.ready(); err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	r := Request{URL: o.Path, Header: o.Header, Body: o.Input}
	if r.URL == "" {
		r.URL = f.c.URL(strings.Split(strings.Trim(o.Model, "/"), "/")...)
	}
	if o.Input == nil {
		r.Body = struct{}{}
	}
	if o.Webhook != "" {
		r.Query = url.Values{"fal_webhook": {o.Webhook}}
	}
	var v falStatus
	ans, err := f.c.Post(ctx, r, &v)
	if err := forgive(err, v.ID != ""); err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	ref := f.c.Ref(v.StatusURL)
	if ref == "" {
		ref = strings.Join(falApp(o.Model), "/")
	}
	job, err := f.c.Taken(ans, o, string(v.ID), ref)
	if err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	rep, err := v.report(&ans)
	if err != nil { // it was taken all the same: the first look will tell
		rep = jobpoll.Report{Hint: ans.Hint}
	}
	return job, rep, nil
}
