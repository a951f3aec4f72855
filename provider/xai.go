package provider

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/jobpoll/jobpoll"
)

// XAIURL is the address of xAI.
const XAIURL = "https://api.x.ai"

// XAI is the adapter for the videos of xAI. It is a jobpoll.Checker and Refresher,
// and safe for concurrent use; no cancellation, list or webhook is known.
//
// A Job needs the request_id and no Ref. A 202 says that it is not done, with a
// body or without. Some answers about a video that is done have its URL and no
// status. The Output is the object "video". A video with respect_moderation false
// was blocked, whatever the word: a failure of kind FailureFiltered. So is one that
// a look is refused for, with a 400 that tells of moderation: that is how xAI
// tells it of most.
//
// Not verified: the scale of progress, which is read as 0 to 100, the codes of
// failures, and how long a URL lives.
//
// Source: Vercel's client @ai-sdk/xai 3.0.138, and for the 400 its pull request 17887
type XAI struct{ c *Client }

var (
	_ jobpoll.Checker   = (*XAI)(nil)
	_ jobpoll.Refresher = (*XAI)(nil)
)

// xaiWords are all words of a video's status.
var xaiWords = jobpoll.Words{
	"pending": jobpoll.StateRunning, // it waits or is at work: that is not told
	"done":    jobpoll.StateSucceeded,
	"failed":  jobpoll.StateFailed,
	"expired": jobpoll.StateExpired,
}

// NewXAI makes the adapter. Only Credentials is required: the API key.
func NewXAI(cfg Config) (*XAI, error) {
	c, err := newAdapter(cfg.orElse(XAIURL, "Bearer", explainXAI), "XAI_API_KEY")
	if err != nil {
		return nil, err
	}
	return &XAI{c}, nil
}

// xaiVideo is what xAI tells of a video.
type xaiVideo struct {
	ID       Text            `json:"request_id"`
	Status   status          `json:"status"`
	Progress Text            `json:"progress"`
	Video    json.RawMessage `json:"video"`
	Error    openAIError     `json:"error"`
}

func (v *xaiVideo) readable() bool        { return v.Status.told || v.ID != "" || v.Video != nil }
func (v *xaiVideo) id() string            { return string(v.ID) }
func (v *xaiVideo) refusal(*Answer) error { return nil }

func (v *xaiVideo) report(ans *Answer) (jobpoll.Report, error) {
	word := v.Status.word
	made, blocked := v.video()
	r := jobpoll.Report{State: xaiWords.State(word), RawStatus: word, Hint: ans.Hint}
	switch {
	case word != "":
	case ans.Status == http.StatusAccepted:
		r.State = jobpoll.StateRunning
	case !v.Status.told && (made || blocked):
		r.State = jobpoll.StateSucceeded
	default:
		return jobpoll.Report{}, noStatus(ans)
	}
	if !r.State.Terminal() {
		r.Progress = percent(v.Progress)
		return r, nil
	}
	f := filtered(jobpoll.Failure{Code: string(v.Error.Code), Message: string(v.Error.Message)})
	if blocked {
		f.Kind = jobpoll.FailureFiltered
	}
	var output json.RawMessage
	if made {
		output = v.Video
	}
	settle(&r, output, f)
	return r, nil
}

// video reads the object "video": whether it has a URL, and whether it was blocked.
func (v *xaiVideo) video() (made, blocked bool) {
	m := members(v.Video)
	for m.next() {
		switch {
		case m.is("url"):
			made = m.hasText()
		case m.is("respect_moderation"):
			switch string(m.value) { // what is no flag says nothing
			case "false":
				blocked = true
			case "true", "null":
				blocked = false
			}
		}
	}
	return made, blocked
}

// Check asks about one video.
func (p *XAI) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	r := Request{URL: p.c.URL("v1", "videos", job.ID)}
	rep, err := p.c.lookAccepted(ctx, r, &xaiVideo{})
	var moderated *xaiModerated
	if errors.As(err, &moderated) {
		return jobpoll.Report{State: jobpoll.StateFailed, Failure: &moderated.Failure}, nil
	}
	return rep, err
}

// xaiModerated is the cause of an error that says that a video was blocked.
type xaiModerated struct {
	jobpoll.Failure
	err error
}

func (e *xaiModerated) Error() string { return e.err.Error() }
func (e *xaiModerated) Unwrap() error { return e.err }

// explainXAI tells a refusal by moderation from others.
func explainXAI(ans Answer, e *jobpoll.CheckError) {
	var v struct {
		Code  Text        `json:"code"`
		Error openAIError `json:"error"`
	}
	ans.decode(&v)
	code := either(string(v.Code), string(v.Error.Code))
	if e.Kind == jobpoll.ErrorInvalid && mentions([]string{"content moderation", "content-moderated"}, code, string(v.Error.Message)) {
		e.Err = &xaiModerated{jobpoll.Failure{Kind: jobpoll.FailureFiltered, Code: code, Message: string(v.Error.Message)}, e.Err}
	}
}

// Refresh asks Config.Credentials for the key anew.
func (p *XAI) Refresh(ctx context.Context) error { return p.c.Refresh(ctx) }

// Submit starts a video, by one POST that is never repeated. Order.Input must be a
// JSON object: the model is put into it. There is no webhook.
func (p *XAI) Submit(ctx context.Context, o Order) (jobpoll.Job, jobpoll.Report, error) {
	r, err := o.plain("/v1/videos/generations", "")
	if err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	return p.c.submit(ctx, o, r, &xaiVideo{}, nil)
}
