package provider

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// LumaURL is the address of Luma's Dream Machine.
const LumaURL = "https://api.lumalabs.ai"

// LumaImage is the Order.Path for images; without one a job makes a video.
const LumaImage = "/dream-machine/v1/generations/image"

// Luma is the adapter for the generations of Luma's Dream Machine. It is a
// jobpoll.Checker, Refresher and Reconciler, and safe for concurrent use. The
// provider's DELETE removes a generation, and is not said to stop one, so that
// there is no cancellation.
//
// A Job needs the id of the generation and no Ref. The Output is the object
// "assets", where it has a video or an image; a progress_video alone is none.
// The words of Luma's Agents API, which has the state "processing", are known
// too, with its codes of failures; its paths are not.
//
// Not verified: how long an output lives, and the limits of the tiers.
//
// Source: Luma's SDK lumaai 1.19.1, https://docs.lumalabs.ai and
// https://docs.agents.lumalabs.ai
type Luma struct{ c *Client }

var (
	_ jobpoll.Checker    = (*Luma)(nil)
	_ jobpoll.Refresher  = (*Luma)(nil)
	_ jobpoll.Reconciler = (*Luma)(nil)
)

// lumaWords are all words of a generation's state.
var lumaWords = jobpoll.Words{
	"queued":     jobpoll.StateQueued,
	"dreaming":   jobpoll.StateRunning,
	"processing": jobpoll.StateRunning,
	"completed":  jobpoll.StateSucceeded,
	"failed":     jobpoll.StateFailed,
}

// lumaCodes are the codes of failures that the Agents API has.
var lumaCodes = map[string]jobpoll.FailureKind{
	"content_moderated":  jobpoll.FailureFiltered,
	"generation_failed":  jobpoll.FailureUnknown,
	"budget_exhausted":   jobpoll.FailureQuota,
	"output_not_found":   jobpoll.FailureUnknown,
	"image_too_large":    jobpoll.FailureRejected,
	"unsupported_format": jobpoll.FailureRejected,
	"corrupt_input":      jobpoll.FailureRejected,
	"invalid_request":    jobpoll.FailureRejected,
	"rate_limited":       jobpoll.FailureQuota,
}

// NewLuma makes the adapter. Only Credentials is required: the API key.
func NewLuma(cfg Config) (*Luma, error) {
	c, err := newAdapter(cfg.orElse(LumaURL, "Bearer", nil), "LUMAAI_API_KEY")
	if err != nil {
		return nil, err
	}
	return &Luma{c}, nil
}

// lumaGeneration is what Luma tells of a generation.
type lumaGeneration struct {
	ID     Text            `json:"id"`
	State  string          `json:"state"`
	Reason Text            `json:"failure_reason"`
	Code   Text            `json:"failure_code"`
	Assets json.RawMessage `json:"assets"`
}

func (v *lumaGeneration) readable() bool        { return v.State != "" }
func (v *lumaGeneration) id() string            { return string(v.ID) }
func (v *lumaGeneration) refusal(*Answer) error { return nil }

func (v *lumaGeneration) report(ans *Answer) (jobpoll.Report, error) {
	if v.State == "" {
		return jobpoll.Report{}, noStatus(ans)
	}
	r := jobpoll.Report{State: lumaWords.State(v.State), RawStatus: v.State, Hint: ans.Hint}
	if !r.State.Terminal() {
		return r, nil
	}
	f := filtered(jobpoll.Failure{Kind: lumaCodes[strings.ToLower(string(v.Code))], Code: string(v.Code), Message: string(v.Reason)})
	settle(&r, v.output(), f)
	return r, nil
}

// output is the assets, where they are what was ordered.
func (v *lumaGeneration) output() json.RawMessage {
	if textIn(v.Assets, "video") || textIn(v.Assets, "image") {
		return v.Assets
	}
	return nil
}

// Check asks about one generation.
func (p *Luma) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	return p.c.look(ctx, Request{URL: p.c.URL("dream-machine", "v1", "generations", job.ID)}, &lumaGeneration{})
}

// Refresh asks Config.Credentials for the key anew.
func (p *Luma) Refresh(ctx context.Context) error { return p.c.Refresh(ctx) }

// Submit starts a generation, by one POST that is never repeated. Order.Input must
// be a JSON object: model and callback_url are put into it.
func (p *Luma) Submit(ctx context.Context, o Order) (jobpoll.Job, jobpoll.Report, error) {
	r, err := o.plain("/dream-machine/v1/generations", "callback_url")
	if err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	return p.c.submit(ctx, o, r, &lumaGeneration{}, nil)
}

// Lookup looks for a generation by its id in the newest hundred of the list. What
// it does not find is FindingUnknown, never absent; without an id there is nothing
// to look by: FindingImpossible.
func (p *Luma) Lookup(ctx context.Context, lost jobpoll.Lost) (jobpoll.Finding, error) {
	if lost.Job.ID == "" {
		return jobpoll.Finding{State: jobpoll.FindingImpossible}, nil
	}
	var list struct {
		Generations []lumaGeneration `json:"generations"`
	}
	ans, err := p.c.Do(ctx, Request{URL: "/dream-machine/v1/generations", Query: url.Values{"limit": {"100"}}}, &list)
	if err := forgive(err, len(list.Generations) > 0); err != nil {
		return jobpoll.Finding{}, err
	}
	return listed(&ans, lost.Job.ID, len(list.Generations), func(i int) (string, string) {
		return list.Generations[i].id(), list.Generations[i].State
	}, lumaWords), nil
}

// LumaNotice makes a notice of a delivery of Luma's: the body is the generation,
// as a look gives it. It is a Parser of package webhook. Luma signs nothing: let a
// token in the URL of Order.Webhook show that a delivery is Luma's, see
// webhook.NewToken.
//
// Source: https://docs.lumalabs.ai, and the API's description in tryAGI/Luma
func LumaNotice(body []byte, _ http.Header) (jobpoll.Notice, error) {
	var v lumaGeneration
	return unwrapped(body, &v)
}
