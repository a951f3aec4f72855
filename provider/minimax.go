package provider

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// Addresses of MiniMax: that outside of China, and that in China.
const (
	MiniMaxURL      = "https://api.minimax.io"
	MiniMaxChinaURL = "https://api.minimaxi.com"
)

// MiniMax is the adapter for the videos of MiniMax (Hailuo), in the first version
// of its API. It is a jobpoll.Checker, Fetcher and Refresher, and safe for
// concurrent use; there is no cancellation, and a list only in the second version.
//
// A Job needs the id of the task and no Ref. A task that is done has a file, and
// where that is to be downloaded is a call of its own: Check gives a success
// without an Output and the file's id as Ref, and Fetch the Output, which is the
// download URL. HTTP says 200 also where the code in base_resp is an error: that
// of a task that has ended is why it failed.
//
// Words are those of looks and of callbacks, which differ by more than case. Not
// verified: the codes 1039, 2049 and 2056, which public clients met. The second version of the API has other paths, words
// and errors: MiniMaxV2 speaks it.
//
// Source: MiniMax's command line and MCP server, and the pages of
// https://platform.minimax.io, the OpenAPI of its second version for 2013
type MiniMax struct{ c *Client }

var (
	_ jobpoll.Checker   = (*MiniMax)(nil)
	_ jobpoll.Fetcher   = (*MiniMax)(nil)
	_ jobpoll.Refresher = (*MiniMax)(nil)
)

// miniMaxWords are all words of a task's status.
var miniMaxWords = jobpoll.Words{
	"Preparing":  jobpoll.StateQueued,
	"Queueing":   jobpoll.StateQueued,
	"Processing": jobpoll.StateRunning,
	"Success":    jobpoll.StateSucceeded,
	"Fail":       jobpoll.StateFailed, // of looks
	"Failed":     jobpoll.StateFailed, // of callbacks
}

// miniMaxCodes are the codes of base_resp, as errors of a call.
var miniMaxCodes = map[string]jobpoll.ErrorKind{
	"1002": jobpoll.ErrorRateLimited,
	"1004": jobpoll.ErrorAuth,
	"1008": jobpoll.ErrorQuota,
	"1026": jobpoll.ErrorInvalid, // the input is sensitive
	"1027": jobpoll.ErrorInvalid, // the output is
	"1028": jobpoll.ErrorQuota,
	"1030": jobpoll.ErrorQuota,
	"1039": jobpoll.ErrorRateLimited,
	"2013": jobpoll.ErrorInvalid,
	"2049": jobpoll.ErrorAuth,   // the key is none
	"2056": jobpoll.ErrorQuota,  // what the plan gives for some hours is used up
	"2061": jobpoll.ErrorPolicy, // not in the plan
}

// miniMaxFailures are the same codes, of a task that failed.
var miniMaxFailures = map[string]jobpoll.FailureKind{
	"1008": jobpoll.FailureQuota,
	"1026": jobpoll.FailureFiltered,
	"1027": jobpoll.FailureFiltered,
	"1028": jobpoll.FailureQuota,
	"1030": jobpoll.FailureQuota,
	"2013": jobpoll.FailureRejected,
	"2056": jobpoll.FailureQuota,
	"2061": jobpoll.FailurePolicy,
}

// NewMiniMax makes the adapter. Only Credentials is required: the API key.
func NewMiniMax(cfg Config) (*MiniMax, error) {
	c, err := newAdapter(cfg.orElse(MiniMaxURL, "Bearer", nil), "MINIMAX_API_KEY")
	if err != nil {
		return nil, err
	}
	return &MiniMax{c}, nil
}

// miniMaxBase is the envelope of all answers.
type miniMaxBase struct {
	Base struct {
		Code Text `json:"status_code"`
		Text Text `json:"status_msg"`
	} `json:"base_resp"`
}

func (v *miniMaxBase) refused() bool { return v.Base.Code != "" && v.Base.Code != "0" }

func (v *miniMaxBase) refusal(ans *Answer) error {
	if !v.refused() {
		return nil
	}
	return coded(ans, miniMaxCodes, string(v.Base.Code), string(v.Base.Text))
}

// miniMaxTask is what MiniMax tells of a task.
type miniMaxTask struct {
	miniMaxBase
	TaskID Text   `json:"task_id"`
	Status string `json:"status"`
	FileID Text   `json:"file_id"`

	look bool // it is the answer to one
}

func (v *miniMaxTask) readable() bool { return v.Status != "" || v.Base.Code != "" }
func (v *miniMaxTask) id() string     { return string(v.TaskID) }

// refusal is the error of the envelope, but for a task that has failed: then the
// code is why.
func (v *miniMaxTask) refusal(ans *Answer) error {
	if miniMaxWords.State(v.Status).Terminal() || v.blocked() {
		return nil
	}
	return v.miniMaxBase.refusal(ans)
}

// blocked reports whether a look without a word was answered with a code of the
// filter: that can only be about the task, as a look has nothing else to judge.
func (v *miniMaxTask) blocked() bool {
	return v.look && v.Status == "" && miniMaxFailures[string(v.Base.Code)] == jobpoll.FailureFiltered
}

func (v *miniMaxTask) report(ans *Answer) (jobpoll.Report, error) {
	if v.Status == "" && !v.blocked() {
		return jobpoll.Report{}, noStatus(ans)
	}
	r := jobpoll.Report{State: miniMaxWords.State(v.Status), RawStatus: v.Status, Hint: ans.Hint}
	if r.State == jobpoll.StateSucceeded && v.file() != "" {
		r.Ref = v.file() // the output is one more call away
		return r, nil
	}
	if v.blocked() {
		r.State = jobpoll.StateFailed
	}
	f := jobpoll.Failure{Message: string(v.Base.Text)}
	if v.refused() {
		f.Code, f.Kind = string(v.Base.Code), miniMaxFailures[string(v.Base.Code)]
	} else {
		f.Message = "" // "success", which is of the call
	}
	settle(&r, nil, filtered(f))
	return r, nil
}

// file is the id of the file; "0" is none.
func (v *miniMaxTask) file() string {
	if id := strings.TrimSpace(string(v.FileID)); id != "0" {
		return id
	}
	return ""
}

// Check asks about one task.
func (p *MiniMax) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	return p.c.look(ctx, Request{URL: "/v1/query/video_generation", Query: url.Values{"task_id": {job.ID}}}, &miniMaxTask{look: true})
}

// miniMaxFile is what MiniMax tells of a file.
type miniMaxFile struct {
	miniMaxBase
	File struct {
		URL Text `json:"download_url"`
	} `json:"file"`
}

func (v *miniMaxFile) readable() bool { return v.File.URL != "" || v.Base.Code != "" }

func (v *miniMaxFile) report(ans *Answer) (jobpoll.Report, error) {
	r := jobpoll.Report{State: jobpoll.StateSucceeded, Hint: ans.Hint}
	settle(&r, quoted(link(v.File.URL)), jobpoll.Failure{})
	return r, nil
}

// Fetch gets the download URL of the file of a task that is done. The file's id
// is the Ref of done; without one the task is asked for it.
func (p *MiniMax) Fetch(ctx context.Context, job jobpoll.Job, done jobpoll.Report) (jobpoll.Report, error) {
	if done.Ref == "" {
		again, err := p.Check(ctx, job)
		if err != nil || again.Ref == "" {
			return again, err
		}
		done = again
	}
	r, err := p.c.look(ctx, Request{URL: "/v1/files/retrieve", Query: url.Values{"file_id": {done.Ref}}}, &miniMaxFile{})
	r.RawStatus = done.RawStatus
	return r, err
}

// Refresh asks Config.Credentials for the key anew.
func (p *MiniMax) Refresh(ctx context.Context) error { return p.c.Refresh(ctx) }

// Submit starts a task, by one POST that is never repeated. Order.Input must be a
// JSON object: model and callback_url are put into it. With a webhook MiniMax
// calls it before it answers, and refuses the order if its challenge does not
// come back within 3 s: see webhook.Config.
func (p *MiniMax) Submit(ctx context.Context, o Order) (jobpoll.Job, jobpoll.Report, error) {
	r, err := o.plain("/v1/video_generation", "callback_url")
	if err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	return p.c.submit(ctx, o, r, &miniMaxTask{}, nil)
}

// MiniMaxNotice makes a notice of a delivery of MiniMax's: the body is the task,
// as a look gives it, in words of its own. It is a Parser of package webhook.
// MiniMax signs nothing: let a token in the URL of Order.Webhook show that a
// delivery is MiniMax's, see webhook.NewToken. That a task is done is a hint, as
// its output is to be fetched.
//
// Source: the pages of https://platform.minimax.io
func MiniMaxNotice(body []byte, _ http.Header) (jobpoll.Notice, error) {
	var v miniMaxTask
	n, err := unwrapped(body, &v)
	if n.Report.State == jobpoll.StateSucceeded {
		n.Report, n.Trust = jobpoll.Report{RawStatus: v.Status}, jobpoll.TrustHint
	}
	return n, err
}
