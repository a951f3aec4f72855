package provider

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// Addresses of Runway, and the version of its API that is spoken.
const (
	RunwayURL     = "https://api.dev.runwayml.com"
	RunwayVersion = "2024-11-06"
)

// RunwayTextToVideo is the Order.Path for a video of a text alone; without one the
// order is for image_to_video. Other endpoints are named in the same way.
const RunwayTextToVideo = "/v1/text_to_video"

// Runway is the adapter for Runway's tasks. It is a jobpoll.Checker, Canceler and
// Refresher, and safe for concurrent use; the provider has no list and no webhook.
//
// A Job needs the id of the task and no Ref. The Output is the list of URLs,
// which live for 24 to 48 hours; a later look gives fresh ones. THROTTLED is a
// task that was taken and waits for a free place of the account: it is queued,
// and starts by itself. A task that was deleted is not known any more.
//
// Failure codes: SAFETY is FailureFiltered, and is charged where it was the
// output; INTERNAL is FailureFault, but for codes of bad output, of which it is
// not told whether they are charged; ASSET is FailureRejected. The codes of
// INPUT_PREPROCESSING are read by what follows, and THIRD_PARTY is FailureFault,
// but for its SAFETY. Of these THIRD_PARTY.UNAVAILABLE was read in public clients
// alone.
//
// Source: https://docs.dev.runwayml.com, and Runway's SDK 4.20.1
type Runway struct{ c *Client }

var (
	_ jobpoll.Checker   = (*Runway)(nil)
	_ jobpoll.Canceler  = (*Runway)(nil)
	_ jobpoll.Refresher = (*Runway)(nil)
)

// runwayWords are all words of a task's status.
var runwayWords = jobpoll.Words{
	"PENDING":   jobpoll.StateQueued,
	"THROTTLED": jobpoll.StateQueued,
	"RUNNING":   jobpoll.StateRunning,
	"SUCCEEDED": jobpoll.StateSucceeded,
	"FAILED":    jobpoll.StateFailed,
	"CANCELLED": jobpoll.StateCanceled,
}

// NewRunway makes the adapter. Only Credentials is required: the API secret.
func NewRunway(cfg Config) (*Runway, error) {
	c, err := newAdapter(cfg.orElse(RunwayURL, "Bearer", nil), "RUNWAYML_API_SECRET")
	if err != nil {
		return nil, err
	}
	return &Runway{c}, nil
}

// runwayTask is what Runway tells of a task.
type runwayTask struct {
	ID          Text            `json:"id"`
	Status      string          `json:"status"`
	Progress    Text            `json:"progress"`
	Output      json.RawMessage `json:"output"`
	Failure     Text            `json:"failure"`
	FailureCode Text            `json:"failureCode"`
}

func (v *runwayTask) readable() bool        { return v.Status != "" }
func (v *runwayTask) id() string            { return string(v.ID) }
func (v *runwayTask) refusal(*Answer) error { return nil }

func (v *runwayTask) report(ans *Answer) (jobpoll.Report, error) {
	if v.Status == "" {
		return jobpoll.Report{}, noStatus(ans)
	}
	r := jobpoll.Report{State: runwayWords.State(v.Status), RawStatus: v.Status, Hint: ans.Hint}
	if r.State == jobpoll.StateRunning {
		r.Progress = fraction(v.Progress, 1)
	}
	settle(&r, urls(v.Output), runwayFailure(string(v.FailureCode), string(v.Failure)))
	return r, nil
}

// runwayFailure reads the code of a task that failed.
func runwayFailure(code, text string) jobpoll.Failure {
	f := jobpoll.Failure{Code: code, Message: text}
	family, rest, _ := strings.Cut(strings.ToUpper(code), ".")
	outer := family
	if outer == "INPUT_PREPROCESSING" || outer == "THIRD_PARTY" {
		family, rest, _ = strings.Cut(rest, ".")
	}
	switch {
	case family == "SAFETY":
		f.Kind = jobpoll.FailureFiltered
	case family == "ASSET":
		f.Kind = jobpoll.FailureRejected
	case family == "INTERNAL" && !strings.HasPrefix(rest, "BAD_OUTPUT"), outer == "THIRD_PARTY":
		f.Kind = jobpoll.FailureFault
	}
	return filtered(f)
}

// Check asks about one task.
func (p *Runway) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	return p.c.look(ctx, Request{URL: p.c.URL("v1", "tasks", job.ID), Header: runwayHeader(nil)}, &runwayTask{})
}

func runwayHeader(h http.Header) http.Header {
	return withHeader(h, "X-Runway-Version", RunwayVersion)
}

// Cancel asks Runway to cancel a task, in two calls: as the one that cancels deletes
// a task that has ended, with its result, a look comes first. The error matches
// ErrEnded where it shows the end, and the task is left alone. One that ends between
// the two calls, some milliseconds, is lost all the same. Runway does not know a task
// any more that was canceled.
func (p *Runway) Cancel(ctx context.Context, job jobpoll.Job) error {
	_, err := p.c.cancelPending(ctx, p, job, Request{Method: http.MethodDelete, URL: p.c.URL("v1", "tasks", job.ID), Header: runwayHeader(nil)}, nil)
	return err
}

// Refresh asks Config.Credentials for the secret anew.
func (p *Runway) Refresh(ctx context.Context) error { return p.c.Refresh(ctx) }

// Submit starts a task, by one POST that is never repeated. Order.Input must be a
// JSON object: the model is put into it.
func (p *Runway) Submit(ctx context.Context, o Order) (jobpoll.Job, jobpoll.Report, error) {
	r, err := o.plain("/v1/image_to_video", "")
	if err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	r.Header = runwayHeader(r.Header)
	return p.c.submit(ctx, o, r, &runwayTask{}, nil)
}

// RunwayLimits are the limits of a Runway account that may run so many tasks at
// once, of one model; zero and less is none. Runway queues what is over it as
// THROTTLED, so that the limit is for callers who want to wait on their own
// side. There is no limit of calls a minute.
// Source: Runway's document of usage tiers, https://docs.dev.runwayml.com
func RunwayLimits(concurrent int) jobpoll.Limits { return jobpoll.Limits{Jobs: max(concurrent, 0)} }

// RunwayPace is Runway's published pace: not more than a look in 5 s at one task.
// Source: https://docs.dev.runwayml.com
func RunwayPace() jobpoll.Guidance { return jobpoll.Guidance{Floor: 5 * time.Second} }
