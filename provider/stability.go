package provider

import (
	"context"
	"time"

	"github.com/jobpoll/jobpoll"
)

// StabilityURL is the address of Stability AI.
const StabilityURL = "https://api.stability.ai"

// StabilityRetention is how long a result is kept. When it was made is not told.
// Source: copies of the reference of the API v2beta
const StabilityRetention = 24 * time.Hour

// Stability is the adapter for Stability AI's image-to-video. It is a
// jobpoll.Checker and Refresher, and safe for concurrent use; there is no list, no
// cancellation and no webhook.
//
// A Job needs the id of the generation and no Ref. Status and result are one call,
// told apart by the HTTP status, and the bytes of the video are in the answer: one
// look downloads it (Config.MaxBody is 16 MiB where it is not set). The Output is
// no copy of it but the address, where Client.Download gets it, with the same key, by
// a Request whose Header has "Accept: video/*". A filtered video comes under a 200, and is a failure of kind
// FailureFiltered. A 404 is an id that is not known, not any more after
// StabilityRetention, or of another key.
//
// Not verified in an artefact of the vendor's: all of it, as only copies of the
// reference were read, and whether the product is still sold.
//
// Source: copies of the reference of the API v2beta
type Stability struct{ c *Client }

var (
	_ jobpoll.Checker   = (*Stability)(nil)
	_ jobpoll.Refresher = (*Stability)(nil)
)

// stabilityWords are all words of a status, and of the reason of an end.
var stabilityWords = jobpoll.Words{
	"in-progress":      jobpoll.StateRunning,
	"SUCCESS":          jobpoll.StateSucceeded,
	"CONTENT_FILTERED": jobpoll.StateFailed,
}

// NewStability makes the adapter. Only Credentials is required: the API key.
func NewStability(cfg Config) (*Stability, error) {
	if cfg.MaxBody == 0 {
		cfg.MaxBody = maxInlineVideo
	}
	c, err := newAdapter(cfg.orElse(StabilityURL, "Bearer", nil), "STABILITY_API_KEY")
	if err != nil {
		return nil, err
	}
	return &Stability{c}, nil
}

// stabilityResult is what Stability tells of a generation.
type stabilityResult struct {
	ID     Text   `json:"id"`
	Status string `json:"status"`
	Reason string `json:"finish_reason"`
	Video  Text   `json:"video"` // its begin

	address string // of the result
}

func (v *stabilityResult) id() string            { return string(v.ID) }
func (v *stabilityResult) readable() bool        { return either(v.Status, v.Reason) != "" }
func (v *stabilityResult) refusal(*Answer) error { return nil }

func (v *stabilityResult) report(ans *Answer) (jobpoll.Report, error) {
	word := either(v.Status, v.Reason)
	if word == "" {
		return jobpoll.Report{}, noStatus(ans)
	}
	r := jobpoll.Report{State: stabilityWords.State(word), RawStatus: word, Hint: ans.Hint}
	f := jobpoll.Failure{}
	if r.State == jobpoll.StateFailed {
		f.Kind = jobpoll.FailureFiltered
	}
	if link(v.Video) == "" {
		v.address = ""
	}
	settle(&r, quoted(v.address), f)
	return r, nil
}

// Check asks about one generation.
func (p *Stability) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	at := p.c.URL("v2beta", "image-to-video", "result", job.ID)
	return p.c.lookAccepted(ctx, Request{URL: at}, &stabilityResult{address: at})
}

// Submit starts a generation, by one POST that is never repeated. Order.Input must be
// a Form: with the file "image", and with the fields "seed", "cfg_scale" and
// "motion_bucket_id" where Stability is not to choose. What these may be, and the
// sizes of the image, is Stability's to say. There is one model, so that
// Order.Model is not sent; it is the Profile as ever. Order.Path and
// Order.Webhook are refused.
func (p *Stability) Submit(ctx context.Context, o Order) (jobpoll.Job, jobpoll.Report, error) {
	r, err := o.form("/v2beta/image-to-video", nil)
	if err == nil && o.Path != "" {
		err = invalid("Order.Path is set, but results are at one path alone")
	}
	if err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	return p.c.submit(ctx, o, r, &stabilityResult{}, nil)
}

// Refresh asks Config.Credentials for the key anew.
func (p *Stability) Refresh(ctx context.Context) error { return p.c.Refresh(ctx) }

// StabilityLimits are Stability's published limits: 150 calls in 10 s, of all
// kinds.
// Source: a copy of the documents, https://apifox.com/apidoc/docs-site/3757851/doc-3401709
func StabilityLimits() jobpoll.Limits {
	return jobpoll.Limits{Total: jobpoll.Limit{Rate: 150.0 / 10}}
}

// StabilityPace is the least pace of looks: one in 10 s.
// Not verified. Source: Stability's samples
func StabilityPace() jobpoll.Guidance { return jobpoll.Guidance{Floor: 10 * time.Second} }
