package provider

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// OpenAIURL is the address of OpenAI. Its Videos API was shut down on 24 September
// 2026: give the address of a gateway that speaks as it did, up to "/v1".
const OpenAIURL = "https://api.openai.com"

// OpenAI is the adapter for video jobs in the shape of OpenAI's Videos API, which
// lives on in gateways. It is a jobpoll.Checker, Refresher and Reconciler, and safe
// for concurrent use. DELETE removes a video and is not said to stop one, so
// that there is no cancellation.
//
// A Job needs the id of the video and no Ref. An answer has no URL of the
// video: the Output is the address that its bytes are to be got from, with the
// same credentials, as Client.Download does. What has passed its expires_at is an error of kind ErrorGone.
// A wait in OpenAI-Poll-After-Ms is kept. Of the codes of failures those that tell of
// moderation are FailureFiltered, and those of an account that is used up FailureQuota.
//
// Besides OpenAI's four words those are known that gateways were seen to add:
// "pending", "initializing", "processing", "running", "success", "succeeded",
// "error", "cancelled", "canceled" and "expired". Not verified: which gateway uses which, and
// the fields that they add, URLs for instance.
//
// Source: OpenAI's SDKs openai-go 3.99.0 and openai-node 6.49.0
type OpenAI struct{ c *Client }

var (
	_ jobpoll.Checker    = (*OpenAI)(nil)
	_ jobpoll.Refresher  = (*OpenAI)(nil)
	_ jobpoll.Reconciler = (*OpenAI)(nil)
)

// openAIWords are all words of a video's status.
var openAIWords = jobpoll.Words{
	"queued":       jobpoll.StateQueued,
	"pending":      jobpoll.StateQueued,
	"initializing": jobpoll.StateQueued,
	"in_progress":  jobpoll.StateRunning,
	"processing":   jobpoll.StateRunning,
	"running":      jobpoll.StateRunning,
	"completed":    jobpoll.StateSucceeded,
	"success":      jobpoll.StateSucceeded,
	"succeeded":    jobpoll.StateSucceeded,
	"failed":       jobpoll.StateFailed,
	"error":        jobpoll.StateFailed,
	"cancelled":    jobpoll.StateCanceled,
	"canceled":     jobpoll.StateCanceled,
	"expired":      jobpoll.StateExpired,
}

// NewOpenAI makes the adapter. Credentials is required: the API key; with a
// gateway BaseURL is too.
func NewOpenAI(cfg Config) (*OpenAI, error) {
	c, err := newAdapter(cfg.orElse(OpenAIURL, "Bearer", explainOpenAI), "OPENAI_API_KEY")
	if err != nil {
		return nil, err
	}
	return &OpenAI{c}, nil
}

// openAIError is how OpenAI and many after it tell an error.
type openAIError struct{ Code, Type, Message Text }

// UnmarshalJSON takes an error that is a text for its message.
func (e *openAIError) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '{' {
		return e.Message.UnmarshalJSON(b)
	}
	m := members(b)
	for m.next() {
		switch {
		case m.is("code"):
			e.Code = m.text()
		case m.is("type"):
			e.Type = m.text()
		case m.is("message"):
			e.Message = m.text()
		}
	}
	return nil
}

// openAIUsedUp are the codes of an account that somebody has to pay for, or whose
// limit somebody has to lift. The type of most is insufficient_quota, and gateways
// send that type without a code.
// Source: a page of Microsoft's on OpenAI's insufficient_quota, for the first four
var openAIUsedUp = []string{
	"credit_balance_exhausted", "organization_spend_limit_exceeded", "project_spend_limit_exceeded", "organization_usage_limit_exceeded",
	"insufficient_quota", "billing_hard_limit_reached",
}

// explainOpenAI tells a used-up account from too many calls.
func explainOpenAI(ans Answer, e *jobpoll.CheckError) {
	var v struct {
		Error openAIError `json:"error"`
	}
	ans.decode(&v)
	is := func(name string) bool {
		return strings.EqualFold(name, string(v.Error.Code)) || strings.EqualFold(name, string(v.Error.Type))
	}
	if ans.Status >= 400 && ans.Status < 500 && ans.Status != http.StatusUnauthorized && slices.ContainsFunc(openAIUsedUp, is) {
		e.Kind = jobpoll.ErrorQuota
	}
}

// openAIVideo is what is told of a video.
type openAIVideo struct {
	ID        Text        `json:"id"`
	Status    string      `json:"status"`
	Progress  Text        `json:"progress"`
	Completed Text        `json:"completed_at"`
	Expires   Text        `json:"expires_at"`
	Error     openAIError `json:"error"`

	content string // the address of the bytes
}

func (v *openAIVideo) readable() bool { return v.Status != "" }
func (v *openAIVideo) id() string     { return string(v.ID) }

func (v *openAIVideo) refusal(ans *Answer) error {
	if v.Status == "" && v.Error != (openAIError{}) {
		return ans.Errorf(jobpoll.ErrorTransient, "an error, and an answer without a status")
	}
	return nil
}

func (v *openAIVideo) report(ans *Answer) (jobpoll.Report, error) {
	if v.Status == "" {
		return jobpoll.Report{}, noStatus(ans)
	}
	r := jobpoll.Report{State: openAIWords.State(v.Status), RawStatus: v.Status, Hint: ans.Hint}
	if !r.State.Terminal() {
		r.Progress = percent(v.Progress)
		return r, nil
	}
	r.CompletedAt = v.Completed.Time()
	var output json.RawMessage
	if r.State == jobpoll.StateSucceeded {
		r.ResultExpiresAt = v.Expires.Time()
		if !r.ResultExpiresAt.IsZero() && ans.at.After(r.ResultExpiresAt) {
			return r, ans.Errorf(jobpoll.ErrorGone, "the video was made, but has been removed")
		}
		output = quoted(v.content)
	}
	settle(&r, output, openAIFailure(string(v.Error.Code), string(v.Error.Message)))
	return r, nil
}

// openAIFailure reads the code of a video that failed.
func openAIFailure(code, text string) jobpoll.Failure {
	f := jobpoll.Failure{Code: code, Message: text}
	if slices.Contains(openAIUsedUp, strings.ToLower(code)) {
		f.Kind = jobpoll.FailureQuota
	}
	return filtered(f)
}

// quoted is a text as JSON; nothing of an empty one.
func quoted(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' { // in no URL
			raw, _ := json.Marshal(s) // a string is always JSON
			return raw
		}
	}
	const and = `\u0026` // an ampersand as package json has it; a signed URL has some
	raw := append(make(json.RawMessage, 0, len(s)+len(`""`)+len(and)*strings.Count(s, "&")), '"')
	for {
		part, rest, more := strings.Cut(s, "&")
		if raw = append(raw, part...); !more {
			return append(raw, '"')
		}
		raw, s = append(raw, and...), rest
	}
}

// Check asks about one video.
func (p *OpenAI) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	at := p.c.URL("v1", "videos", job.ID)
	return p.c.look(ctx, Request{URL: at}, &openAIVideo{content: at + "/content"})
}

// Refresh asks Config.Credentials for the key anew.
func (p *OpenAI) Refresh(ctx context.Context) error { return p.c.Refresh(ctx) }

// Submit starts a video, by one POST that is never repeated. Order.Input must be a
// JSON object, or a Form, which an image needs ("input_reference"): the model is put
// into it. Webhooks are set up for the whole account, so that Order.Webhook is refused.
func (p *OpenAI) Submit(ctx context.Context, o Order) (jobpoll.Job, jobpoll.Report, error) {
	const path = "/v1/videos"
	var r Request
	err := o.ready()
	switch _, isForm := o.Input.(Form); {
	case err != nil:
	case isForm:
		r, err = o.form(either(o.Path, path), map[string]string{"model": o.Model})
	default:
		r, err = o.plain(path, "")
	}
	if err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	return p.c.submit(ctx, o, r, &openAIVideo{}, nil)
}

// Lookup looks for a video by its id in the newest hundred of the list. What it
// does not find is FindingUnknown, never absent; without an id there is nothing to
// look by: FindingImpossible.
func (p *OpenAI) Lookup(ctx context.Context, lost jobpoll.Lost) (jobpoll.Finding, error) {
	if lost.Job.ID == "" {
		return jobpoll.Finding{State: jobpoll.FindingImpossible}, nil
	}
	var list struct {
		Data []openAIVideo `json:"data"`
	}
	ans, err := p.c.Do(ctx, Request{URL: p.c.URL("v1", "videos"), Query: url.Values{"limit": {"100"}, "order": {"desc"}}}, &list)
	if err := forgive(err, len(list.Data) > 0); err != nil {
		return jobpoll.Finding{}, err
	}
	return listed(&ans, lost.Job.ID, len(list.Data), func(i int) (string, string) {
		return list.Data[i].id(), list.Data[i].Status
	}, openAIWords), nil
}

// OpenAIPace is what OpenAI said of looks: every 10 to 20 s.
// Source: OpenAI's text on its video API
func OpenAIPace() jobpoll.Guidance { return jobpoll.Guidance{Floor: 10 * time.Second} }

// OpenAINotice makes a notice of an event of OpenAI's, video.completed or
// video.failed. It is a Parser of package webhook, and the verifier to it is
// webhook.NewStandard. An event names the video and tells nothing of it, so that
// it is a hint: it is looked at.
//
// Source: OpenAI's SDK openai-go 3.99.0
func OpenAINotice(body []byte, _ http.Header) (jobpoll.Notice, error) { return event(body) }
