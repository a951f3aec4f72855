package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jobpoll/jobpoll"
)

// AtlasURL is the address of Atlas Cloud.
const AtlasURL = "https://api.atlascloud.ai"

// AtlasWarmUp is how long a job of Atlas Cloud may answer 400 or 404 after its
// submission, as it is not visible yet.
// Source: the vendor's client for ComfyUI, which tolerates that.
const AtlasWarmUp = 30 * time.Second

// AtlasImage is the Order.Path for images; without one a job makes a video.
const AtlasImage = "/api/v1/model/generateImage"

// Atlas is the adapter for Atlas Cloud. It is a jobpoll.Checker and Refresher, and
// safe for concurrent use; the provider has no cancellation and no list.
//
// A Job needs the id of the prediction and no Ref. For AtlasWarmUp after
// Job.SubmittedAt a 400 or 404 is an error of kind ErrorNoSuchJob; a job without
// that time counts as young. The Output is the list of URLs. Atlas answers 200,
// and code 200 in the body, whatever became of the job: the word decides.
// Outputs that are all marked as not safe for work, or are missing where any is
// marked, are a failure of kind FailureFiltered.
//
// Source: https://atlascloud.ai/docs/en
type Atlas struct{ c *Client }

var (
	_ jobpoll.Checker   = (*Atlas)(nil)
	_ jobpoll.Refresher = (*Atlas)(nil)
)

// atlasWords are all words of a prediction's status.
var atlasWords = jobpoll.Words{
	"starting":   jobpoll.StateQueued,
	"created":    jobpoll.StateQueued,
	"processing": jobpoll.StateRunning,
	"completed":  jobpoll.StateSucceeded,
	"succeeded":  jobpoll.StateSucceeded,
	"failed":     jobpoll.StateFailed,
	"timeout":    jobpoll.StateExpired,
	"cancelled":  jobpoll.StateCanceled,
}

// NewAtlas makes the adapter. Only Credentials is required: the API key.
func NewAtlas(cfg Config) (*Atlas, error) {
	c, err := newAdapter(cfg.orElse(AtlasURL, "Bearer", explainAtlas), "ATLASCLOUD_API_KEY")
	if err != nil {
		return nil, err
	}
	return &Atlas{c}, nil
}

// explainAtlas says what a 401 may be besides bad credentials.
func explainAtlas(ans Answer, e *jobpoll.CheckError) {
	if ans.Status == http.StatusUnauthorized {
		e.Err = fmt.Errorf("the provider answers 401 also for a path that it does not have; check BaseURL and Order.Path besides the key: %w", e.Err)
	}
}

// atlasAnswer is the envelope of all answers, and a job in it.
type atlasAnswer struct {
	Code Text `json:"code"`
	Msg  Text `json:"msg"`
	Data struct {
		ID        Text            `json:"id"`
		Status    string          `json:"status"`
		Outputs   json.RawMessage `json:"outputs"`
		Error     Text            `json:"error"`
		ErrorCode Text            `json:"error_code"`
		NSFW      json.RawMessage `json:"has_nsfw_contents"`
	} `json:"data"`
}

// readable reports whether there is an answer, whatever the types in it.
func (v *atlasAnswer) readable() bool { return v.Code != "" || v.Data.Status != "" }

// status is the code as a number; 0 if it is none.
func (v *atlasAnswer) status() int {
	n, _ := v.Code.count()
	return n
}

// refused reports whether the code surely says that nothing was bought.
func (v *atlasAnswer) refused() bool {
	code := v.status()
	return code >= 400 && code <= 499 && code != http.StatusRequestTimeout && v.Data.ID == ""
}

// Check asks about one prediction.
func (a *Atlas) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	var v atlasAnswer
	ans, err := a.c.Get(ctx, a.c.URL("api", "v1", "model", "prediction", job.ID), &v)
	if err = forgive(err, v.readable()); err == nil {
		err = v.refusal(&ans)
	}
	if err != nil {
		return jobpoll.Report{}, a.young(job, err)
	}
	return v.report(&ans)
}

// young makes a 400 of a job that may not be visible yet one for no such job.
func (a *Atlas) young(job jobpoll.Job, err error) error {
	var ce *jobpoll.CheckError
	if !errors.As(err, &ce) || ce.Kind == jobpoll.ErrorTransient || ce.Status != http.StatusBadRequest && ce.Status != http.StatusNotFound {
		return err
	}
	if age := a.c.Now().Sub(job.SubmittedAt); !job.SubmittedAt.IsZero() && age >= AtlasWarmUp {
		return err
	}
	early := *ce
	early.Kind, early.Err = jobpoll.ErrorNoSuchJob, fmt.Errorf("not visible yet: %w", ce.Err)
	return &early
}

// refusal is the error of an answer whose envelope says something else than its head.
func (v *atlasAnswer) refusal(ans *Answer) error {
	if v.Code == "" {
		return nil
	}
	status := v.status()
	switch status {
	case http.StatusOK:
		return nil
	case 0: // the code is the provider's own
		return ans.Errorf(jobpoll.ErrorTransient, "the code %q in the answer", jobpoll.Excerpt(string(v.Code)))
	}
	err := ans.StatusError(status)
	var ce *jobpoll.CheckError
	if errors.As(err, &ce) && status == http.StatusUnauthorized {
		explainAtlas(Answer{Status: status}, ce)
	}
	return err
}

func (v *atlasAnswer) report(ans *Answer) (jobpoll.Report, error) {
	d := &v.Data
	if d.Status == "" {
		return jobpoll.Report{}, ans.Errorf(jobpoll.ErrorTransient, "an answer without a status")
	}
	r := jobpoll.Report{State: atlasWords.State(d.Status), RawStatus: d.Status, Hint: ans.Hint}
	if !r.State.Terminal() {
		return r, nil
	}
	f := jobpoll.Failure{Code: string(d.ErrorCode), Message: string(d.Error)}
	outputs := urls(d.Outputs)
	if flagged, all := flags(d.NSFW); flagged && (all || outputs == nil) || r.State == jobpoll.StateFailed && mentions(filterWords, f.Message) {
		f.Kind = jobpoll.FailureFiltered
	}
	settle(&r, outputs, f)
	return r, nil
}

// flags reads a flag, or one for each output: whether any is set, and all.
func flags(raw json.RawMessage) (some, all bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '[' {
		some = string(raw) == "true"
		return some, some
	}
	all = true
	for v := range bytes.SplitSeq(bytes.Trim(raw, "[]"), []byte(",")) {
		set := string(bytes.TrimSpace(v)) == "true"
		some, all = some || set, all && set
	}
	return some, all
}

// Refresh asks Config.Credentials for the key anew.
func (a *Atlas) Refresh(ctx context.Context) error { return a.c.Refresh(ctx) }

// Submit starts a job, by one POST that is never repeated. Order.Input must be a
// JSON object, as Atlas wants all in one: model and webhook_url are put into it.
// Order.Path is AtlasImage for an image.
func (a *Atlas) Submit(ctx context.Context, o Order) (jobpoll.Job, jobpoll.Report, error) {
	if err := o.ready(); err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	body, err := flat(o.Input, map[string]string{"model": o.Model, "webhook_url": o.Webhook})
	if err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	url := o.Path
	if url == "" {
		url = a.c.URL("api", "v1", "model", "generateVideo")
	}
	var v atlasAnswer
	ans, err := a.c.Post(ctx, Request{URL: url, Header: o.Header, Body: body}, &v)
	if err = forgive(err, v.readable()); err == nil {
		if err = v.refusal(&ans); err != nil && !v.refused() {
			err = marked(err, ErrAmbiguous)
		}
	}
	if err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	job, err := a.c.Taken(ans, o, string(v.Data.ID), "")
	if err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	rep, err := v.report(&ans)
	if err != nil { // it was taken all the same: the first look will tell
		rep = jobpoll.Report{Hint: ans.Hint}
	}
	return job, rep, nil
}

// flat puts values that are not empty into a JSON object.
func flat(input any, values map[string]string) (map[string]json.RawMessage, error) {
	body := map[string]json.RawMessage{}
	raw, err := json.Marshal(input)
	if err == nil {
		err = json.Unmarshal(raw, &body) // null leaves it nil
	}
	if err != nil {
		return nil, &jobpoll.CheckError{Kind: jobpoll.ErrorInvalid, Err: fmt.Errorf("Order.Input is no JSON object: %w", err)}
	}
	if body == nil {
		body = map[string]json.RawMessage{}
	}
	for k, v := range values {
		if v == "" {
			continue
		}
		if body[k], err = json.Marshal(v); err != nil {
			return nil, &jobpoll.CheckError{Kind: jobpoll.ErrorInvalid, Err: err}
		}
	}
	return body, nil
}
