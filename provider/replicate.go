package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// ReplicateURL is the address of Replicate.
const ReplicateURL = "https://api.replicate.com"

// ReplicateRetention is how long Replicate keeps input and output of a prediction
// made by API after it has ended; the record itself stays.
// Source: https://replicate.com/docs/topics/predictions/data-retention
const ReplicateRetention = time.Hour

// Replicate is the adapter for Replicate's predictions. It is a jobpoll.Checker,
// Canceler, Refresher and Reconciler, and safe for concurrent use.
//
// A Job needs the id of the prediction and no Ref. The Output is the field of
// that name, as the model gave it. ReplicateRetention after the end it is gone:
// a success whose data has been removed is an error of kind ErrorGone, which
// ends the job as ReasonResultExpired.
//
// The word "aborted" (the deadline passed before the prediction started) is
// StateExpired; a deadline that passes later gives "canceled", which cannot be
// told from a cancellation. There is no progress: the percentages in the logs
// are the model's own text, of one step among several, and go back to zero.
//
// Source: https://replicate.com/docs/reference/http, and for the words
// https://replicate.com/changelog/2025-10-16-prediction-deadlines
type Replicate struct{ c *Client }

var (
	_ jobpoll.Checker    = (*Replicate)(nil)
	_ jobpoll.Canceler   = (*Replicate)(nil)
	_ jobpoll.Refresher  = (*Replicate)(nil)
	_ jobpoll.Reconciler = (*Replicate)(nil)
)

// replicateWords are all words of a prediction's status.
var replicateWords = jobpoll.Words{
	"starting":   jobpoll.StateQueued,
	"processing": jobpoll.StateRunning,
	"succeeded":  jobpoll.StateSucceeded,
	"failed":     jobpoll.StateFailed,
	"canceled":   jobpoll.StateCanceled,
	"aborted":    jobpoll.StateExpired,
}

// NewReplicate makes the adapter. Only Credentials is required: the API token.
func NewReplicate(cfg Config) (*Replicate, error) {
	c, err := newAdapter(cfg.orElse(ReplicateURL, "Bearer", explainReplicate), "REPLICATE_API_TOKEN")
	if err != nil {
		return nil, err
	}
	return &Replicate{c}, nil
}

// newAdapter is NewClient for a provider that takes no call without credentials.
// variable is the environment variable that they are usually kept in.
func newAdapter(cfg Config, variable string) (*Client, error) {
	c, err := NewClient(cfg)
	if cfg.Credentials == nil && cfg.Tokens == nil {
		err = errors.Join(err, errors.New("jobpoll: provider.Config.Credentials is nil, and so is Tokens: the provider takes no call without"))
	}
	if cfg.Credentials.empty() || cfg.Credentials == nil && cfg.Tokens == nil {
		err = errors.Join(err, fmt.Errorf("jobpoll: the key is usually kept in the environment variable %s", variable))
	}
	return c, err
}

// prediction is what Replicate tells of a job.
type prediction struct {
	ID          Text            `json:"id"`
	Status      string          `json:"status"`
	Output      json.RawMessage `json:"output"`
	Error       Text            `json:"error"`
	StartedAt   Text            `json:"started_at"`
	CompletedAt Text            `json:"completed_at"`
	DataRemoved bool            `json:"data_removed"`
	URLs        struct {
		Get string `json:"get"`
	} `json:"urls"`
}

// Check asks about one prediction.
func (p *Replicate) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	var v prediction
	ans, err := p.c.Get(ctx, p.url(job), &v)
	if err := forgive(err, v.Status != ""); err != nil {
		return jobpoll.Report{}, err
	}
	return v.report(&ans)
}

// url is where a prediction is asked about.
func (p *Replicate) url(job jobpoll.Job) string {
	if job.Ref != "" {
		return job.Ref
	}
	return p.c.URL("v1", "predictions", job.ID)
}

func (v *prediction) report(ans *Answer) (jobpoll.Report, error) {
	if v.Status == "" {
		return jobpoll.Report{}, ans.Errorf(jobpoll.ErrorTransient, "an answer without a status")
	}
	r := jobpoll.Report{
		State:       replicateWords.State(v.Status),
		RawStatus:   v.Status,
		Hint:        ans.Hint,
		StartedAt:   v.StartedAt.Time(),
		CompletedAt: v.CompletedAt.Time(),
	}
	if r.State.Terminal() && !r.CompletedAt.IsZero() {
		r.ResultExpiresAt = r.CompletedAt.Add(ReplicateRetention)
	}
	switch {
	case r.State == jobpoll.StateSucceeded && HasOutput(v.Output):
		r.Output = v.Output
	case r.State == jobpoll.StateSucceeded && v.DataRemoved:
		return r, ans.Errorf(jobpoll.ErrorGone, "the prediction succeeded, but its output has been removed")
	case r.State == jobpoll.StateSucceeded:
		r.State = jobpoll.StateFailed
		r.Failure = &jobpoll.Failure{Kind: jobpoll.FailureNoOutput, Message: string(v.Error)}
	case r.State == jobpoll.StateFailed, r.State.Terminal() && v.Error != "":
		r.Failure = replicateFailure(string(v.Error))
	}
	return r, nil
}

// replicateFailure reads the text that a failed prediction has for an error. Only
// what a model or the platform says without doubt gives a kind.
func replicateFailure(text string) *jobpoll.Failure {
	f := &jobpoll.Failure{Message: text, Code: replicateCode(text)}
	switch {
	case mentions(filterWords, text):
		f.Kind = jobpoll.FailureFiltered
	case f.Code == "PA": // the platform took the machine away
		f.Kind = jobpoll.FailureFault
	}
	return f
}

// replicateCode reads the code that stands in the text: "… (code: PA)", "… (E005)".
func replicateCode(text string) string {
	open, end := strings.LastIndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return ""
	}
	code, named := strings.CutPrefix(text[open+1:end], "code: ")
	if len(code) < 1 || len(code) > 8 || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
		return ""
	}
	if !named && (code[0] != 'E' || strings.Trim(code[1:], "0123456789") != "" || len(code) < 4) {
		return ""
	}
	return code
}

// explainReplicate reads the wait out of "… Your rate limit resets in ~30s.",
// which is all that a 429 tells where it has no header.
func explainReplicate(ans Answer, e *jobpoll.CheckError) {
	if e.Kind != jobpoll.ErrorRateLimited || e.Hint.RetryAfter > 0 {
		return
	}
	var v struct {
		Detail Text `json:"detail"`
	}
	_ = json.Unmarshal(ans.Body, &v) // no JSON has no detail
	e.Hint.RetryAfter = resetsIn(string(v.Detail))
}

// resetsIn reads N of "resets in ~Ns"; 0 if it is not there.
func resetsIn(text string) time.Duration {
	_, rest, ok := strings.Cut(text, "resets in ~")
	if !ok {
		return 0
	}
	digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	if !strings.HasPrefix(rest[len(digits):], "s") {
		return 0
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > int64(jobpoll.MaxRetryAfter/time.Second) {
		return 0
	}
	return time.Duration(n) * time.Second
}

// Cancel asks Replicate to cancel a prediction.
func (p *Replicate) Cancel(ctx context.Context, job jobpoll.Job) error {
	_, err := p.c.Do(ctx, Request{Method: http.MethodPost, URL: p.c.URL("v1", "predictions", job.ID, "cancel")}, nil)
	return err
}

// Refresh asks Config.Credentials for the token anew.
func (p *Replicate) Refresh(ctx context.Context) error { return p.c.Refresh(ctx) }

// replicatePages bounds the pages of the list, of about a hundred predictions
// each, that one look-up reads.
const replicatePages = 3

// Lookup looks for a prediction in the newest of the account's list, by its id.
// What it does not find is FindingUnknown, never absent: the list is bounded,
// and shows what the token may see. Nothing but the id tells predictions apart, so
// that a job without one is FindingImpossible.
func (p *Replicate) Lookup(ctx context.Context, lost jobpoll.Lost) (jobpoll.Finding, error) {
	if lost.Job.ID == "" {
		return jobpoll.Finding{State: jobpoll.FindingImpossible}, nil
	}
	next := p.c.URL("v1", "predictions")
	for page := 0; page < replicatePages && next != ""; page++ {
		var list struct {
			Next    string       `json:"next"`
			Results []prediction `json:"results"`
		}
		ans, err := p.c.Get(ctx, next, &list)
		if err := forgive(err, len(list.Results) > 0); err != nil {
			return jobpoll.Finding{}, err
		}
		for _, v := range list.Results {
			if string(v.ID) == lost.Job.ID {
				// The list leaves outputs away: a look has the last word.
				rep := jobpoll.Report{Hint: ans.Hint}
				if s := replicateWords.State(v.Status); !s.Terminal() {
					rep.State, rep.RawStatus = s, v.Status
				}
				return jobpoll.Finding{State: jobpoll.FindingPresent, ID: lost.Job.ID, Report: rep}, nil
			}
		}
		next = p.c.Ref(list.Next)
	}
	return jobpoll.Finding{}, nil
}

// Submit starts a prediction, by one POST that is never repeated.
//
// Order.Model is "owner/name" for an official model, or a version: its id alone
// or "owner/name:id". Order.Path is for deployments. The headers of Replicate
// are Cancel-After ("1m"), and Prefer: with "wait" or "wait=20" the call is held
// open for that long, up to 60 s, and the Report may be that of the end.
func (p *Replicate) Submit(ctx context.Context, o Order) (jobpoll.Job, jobpoll.Report, error) {
	if err := o.ready(); err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	body := struct {
		Version string   `json:"version,omitempty"`
		Input   any      `json:"input"`
		Webhook string   `json:"webhook,omitempty"`
		Events  []string `json:"webhook_events_filter,omitempty"`
	}{Input: o.Input, Webhook: o.Webhook}
	if o.Webhook != "" {
		body.Events = []string{"start", "completed"} // outputs and logs come without end
	}
	url := o.Path
	owner, name, isModel := strings.Cut(o.Model, "/")
	_, version, isVersion := strings.Cut(o.Model, ":")
	switch {
	case url != "":
	case isModel && !isVersion:
		url = p.c.URL("v1", "models", owner, name, "predictions")
	default:
		url = p.c.URL("v1", "predictions")
		if body.Version = version; !isVersion {
			body.Version = o.Model
		}
	}
	var v prediction
	begun := p.c.Now()
	hold := preferredWait(o.Header)
	ans, err := p.c.Post(ctx, Request{URL: url, Header: o.Header, Body: body, Hold: hold}, &v)
	if err := forgive(err, v.ID != ""); err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	ref := p.c.Ref(v.URLs.Get)
	if ref == p.c.URL("v1", "predictions", string(v.ID)) {
		ref = ""
	}
	job, err := p.c.Taken(ans, o, string(v.ID), ref)
	if err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	if hold > 0 {
		job = waited(job, begun)
	}
	rep, err := v.report(&ans)
	if err != nil { // it was taken all the same: the first look will tell
		rep = jobpoll.Report{Hint: ans.Hint}
	}
	return job, rep, nil
}

// preferredWait reads how long a call is held open by "Prefer: wait=n".
func preferredWait(h http.Header) time.Duration {
	const most = 60 * time.Second
	name, n, ok := strings.Cut(h.Get("Prefer"), "=")
	if strings.TrimSpace(name) != "wait" {
		return 0
	}
	if s, err := strconv.Atoi(strings.TrimSpace(n)); ok && err == nil && s >= 0 {
		return min(time.Duration(s)*time.Second, most)
	}
	return most
}
