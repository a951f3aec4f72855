package provider

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// WaveSpeedURL is the address of WaveSpeed.
const WaveSpeedURL = "https://api.wavespeed.ai"

// WaveSpeedRetention is how long WaveSpeed keeps a prediction, counted here from
// its creation.
// Source: WaveSpeed's documents, https://wavespeed.ai/docs
const WaveSpeedRetention = 7 * 24 * time.Hour

// WaveSpeed is the adapter for WaveSpeed's predictions. It is a jobpoll.Checker and
// Refresher, and safe for concurrent use; no cancellation and no list are known.
//
// A Job needs the id of the prediction and no Ref. The Output is the list of URLs.
// "processing" with an error and the code 5004 is a call that was not held open
// for long enough, and no failure. A prediction that was deleted is an error of
// kind ErrorGone: it may have been made and paid. Outputs that are all marked as
// not safe for work are a failure of kind FailureFiltered.
//
// Not verified: what the codes 1400 to 1405 say in particular, they are
// FailureRejected.
//
// Source: https://wavespeed.ai/docs, and WaveSpeed's SDKs
type WaveSpeed struct{ c *Client }

var (
	_ jobpoll.Checker   = (*WaveSpeed)(nil)
	_ jobpoll.Refresher = (*WaveSpeed)(nil)
)

// waveSpeedWords are all words of a prediction's status that are a state.
var waveSpeedWords = jobpoll.Words{
	"created":    jobpoll.StateQueued,
	"processing": jobpoll.StateRunning,
	"completed":  jobpoll.StateSucceeded,
	"failed":     jobpoll.StateFailed,
	"cancelled":  jobpoll.StateCanceled,
	"timeout":    jobpoll.StateExpired,
}

// waveSpeedCodes are the codes of a prediction that failed.
var waveSpeedCodes = map[string]jobpoll.FailureKind{
	"1200": jobpoll.FailureFiltered,
	"1400": jobpoll.FailureRejected,
	"1401": jobpoll.FailureRejected,
	"1402": jobpoll.FailureRejected,
	"1403": jobpoll.FailureRejected,
	"1405": jobpoll.FailureRejected,
	"5000": jobpoll.FailureFault,
	"5003": jobpoll.FailureFault,
	"5004": jobpoll.FailureFault,
}

// NewWaveSpeed makes the adapter. Only Credentials is required: the API key.
func NewWaveSpeed(cfg Config) (*WaveSpeed, error) {
	c, err := newAdapter(cfg.orElse(WaveSpeedURL, "Bearer", nil), "WAVESPEED_API_KEY")
	if err != nil {
		return nil, err
	}
	return &WaveSpeed{c}, nil
}

// waveSpeedPrediction is what WaveSpeed tells of a prediction.
type waveSpeedPrediction struct {
	ID        Text            `json:"id"`
	Status    string          `json:"status"`
	Outputs   json.RawMessage `json:"outputs"`
	Error     Text            `json:"error"`
	Code      Text            `json:"code"`
	NSFW      json.RawMessage `json:"has_nsfw_contents"`
	CreatedAt Text            `json:"created_at"`
}

func (v *waveSpeedPrediction) readable() bool { return v.Status != "" }
func (v *waveSpeedPrediction) id() string     { return string(v.ID) }

func (v *waveSpeedPrediction) refusal(ans *Answer) error {
	if strings.EqualFold(strings.TrimSpace(v.Status), "deleted") {
		return ans.Errorf(jobpoll.ErrorGone, "the prediction has been deleted")
	}
	return nil
}

func (v *waveSpeedPrediction) report(ans *Answer) (jobpoll.Report, error) {
	if err := v.refusal(ans); err != nil {
		return jobpoll.Report{RawStatus: v.Status}, err
	}
	if v.Status == "" {
		return jobpoll.Report{}, noStatus(ans)
	}
	r := jobpoll.Report{State: waveSpeedWords.State(v.Status), RawStatus: v.Status, Hint: ans.Hint}
	if !r.State.Terminal() {
		return r, nil
	}
	if at := v.CreatedAt.Time(); !at.IsZero() && r.State == jobpoll.StateSucceeded {
		r.ResultExpiresAt = at.Add(WaveSpeedRetention)
	}
	f := jobpoll.Failure{Code: string(v.Code), Message: string(v.Error)}
	if f.Code == "0" {
		f.Code = ""
	}
	f.Kind = waveSpeedCodes[f.Code]
	if some, all := flags(v.NSFW); all || some && urls(v.Outputs) == nil {
		f.Kind = jobpoll.FailureFiltered
	}
	if r.State == jobpoll.StateFailed {
		f = filtered(f)
	}
	settle(&r, urls(v.Outputs), f)
	return r, nil
}

// waveSpeedAnswer is the envelope of looks, and a prediction in it.
type waveSpeedAnswer struct {
	Envelope Text                `json:"code"`
	Data     waveSpeedPrediction `json:"data"`
}

func (v *waveSpeedAnswer) readable() bool { return v.Envelope != "" || v.Data.Status != "" }
func (v *waveSpeedAnswer) id() string     { return v.Data.id() }

func (v *waveSpeedAnswer) refusal(ans *Answer) error {
	if v.Envelope == "" || v.Envelope == "200" {
		return v.Data.refusal(ans)
	}
	if n, ok := v.Envelope.count(); ok && n != 200 {
		return ans.StatusError(n)
	} else if ok {
		return v.Data.refusal(ans)
	}
	return coded(ans, nil, string(v.Envelope), "")
}

func (v *waveSpeedAnswer) report(ans *Answer) (jobpoll.Report, error) { return v.Data.report(ans) }

// Check asks about one prediction.
func (p *WaveSpeed) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	return p.c.look(ctx, Request{URL: p.c.URL("api", "v3", "predictions", job.ID, "result")}, &waveSpeedAnswer{})
}

// Refresh asks Config.Credentials for the key anew.
func (p *WaveSpeed) Refresh(ctx context.Context) error { return p.c.Refresh(ctx) }

// Submit starts a prediction, by one POST that is never repeated. Order.Model is the
// whole id of the model ("wavespeed-ai/wan-2.2/t2v-480p"), which is the path;
// Order.Input is the body.
func (p *WaveSpeed) Submit(ctx context.Context, o Order) (jobpoll.Job, jobpoll.Report, error) {
	if err := o.ready(); err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	r := Request{URL: o.Path, Header: o.Header, Body: o.Input}
	if r.URL == "" {
		r.URL = p.c.path("api/v3/" + strings.Trim(o.Model, "/"))
	}
	if o.Webhook != "" {
		r.Query = url.Values{"webhook": {o.Webhook}}
	}
	return p.c.submit(ctx, o, r, &waveSpeedAnswer{}, nil)
}

// WaveSpeedVideo is what WaveSpeed says of videos: look every 5 s.
// Source: https://wavespeed.ai/docs
func WaveSpeedVideo() jobpoll.Guidance { return jobpoll.Guidance{Floor: 5 * time.Second} }

// WaveSpeedImages is what WaveSpeed says of images: look every 2 s.
// Source: https://wavespeed.ai/docs
func WaveSpeedImages() jobpoll.Guidance { return jobpoll.Guidance{Floor: 2 * time.Second} }

// WaveSpeedNotice makes a notice of a delivery of WaveSpeed's: the body is the
// prediction, without the envelope that a look has. It is a Parser of package
// webhook, and the verifier to it is webhook.NewWaveSpeed.
//
// Source: https://wavespeed.ai/docs/verify-webhooks
func WaveSpeedNotice(body []byte, _ http.Header) (jobpoll.Notice, error) {
	var v waveSpeedPrediction
	return unwrapped(body, &v)
}
