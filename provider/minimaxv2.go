package provider

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// Paths of the second version of MiniMax's API: of orders, and of tasks.
const (
	miniMaxV2Orders = "/v2/video_generation"
	miniMaxV2Tasks  = "/v2/query/video_generation"
)

// MiniMaxV2 is the adapter for the videos of MiniMax in the second version of its
// API (MiniMax-H3). It is a jobpoll.Checker, BatchChecker, Canceler, Refresher and
// Reconciler, and safe for concurrent use. MiniMax is the one for the first version,
// with other paths, words and errors.
//
// A Job needs the id of the task and no Ref. The Output is the object "content"
// with its URL, or, of a task of the type h3_context_ir, with its prompt. MiniMax
// says that the URL lives for a limited time and not how long, and that another
// look gives a new one; it knows a task for 7 days.
//
// A call that is refused has a status of HTTP. A 400 that says that the id of the
// task is invalid, as it does of one that is too old, is ErrorNoSuchJob, and a 429
// whose code says that the plan or the balance is used up is ErrorQuota. The codes
// of tasks that failed are read as those of the first version.
//
// Not verified: nothing here was tried at MiniMax. The word "expired" is in an older
// copy of the documents only, 1026 is the one code of a failure that they show, the
// largest page of the list is not told, and newer copies give https://api.minimax.cn
// for China.
//
// Source: copies of the pages of https://platform.minimax.io, which hold the OpenAPI
// 2.0.0 of its video generation; public clients met the 400, too
type MiniMaxV2 struct{ c *Client }

var (
	_ jobpoll.Checker      = (*MiniMaxV2)(nil)
	_ jobpoll.BatchChecker = (*MiniMaxV2)(nil)
	_ jobpoll.Canceler     = (*MiniMaxV2)(nil)
	_ jobpoll.Refresher    = (*MiniMaxV2)(nil)
	_ jobpoll.Reconciler   = (*MiniMaxV2)(nil)
)

// miniMaxV2Words are all words of a task's status, of looks and of callbacks.
var miniMaxV2Words = jobpoll.Words{
	"queued":    jobpoll.StateQueued,
	"running":   jobpoll.StateRunning,
	"succeeded": jobpoll.StateSucceeded,
	"failed":    jobpoll.StateFailed,
	"cancelled": jobpoll.StateCanceled,
	"expired":   jobpoll.StateExpired,
}

// NewMiniMaxV2 makes the adapter. Only Credentials is required: the API key.
func NewMiniMaxV2(cfg Config) (*MiniMaxV2, error) {
	c, err := newAdapter(cfg.orElse(MiniMaxURL, "Bearer", explainMiniMaxV2), "MINIMAX_API_KEY")
	if err != nil {
		return nil, err
	}
	return &MiniMaxV2{c}, nil
}

// miniMaxV2Error is what MiniMax tells of a call that is refused.
type miniMaxV2Error struct {
	Message Text `json:"message"`
	Status  Text `json:"http_code"`
}

// explainMiniMaxV2 tells a task that is not known from an order that is not valid.
func explainMiniMaxV2(ans Answer, e *jobpoll.CheckError) {
	var v struct {
		Error miniMaxV2Error `json:"error"`
	}
	ans.decode(&v)
	switch text := string(v.Error.Message); {
	case e.Status == http.StatusBadRequest && mentions([]string{"invalid task_id"}, text):
		e.Kind = jobpoll.ErrorNoSuchJob
	case e.Kind == jobpoll.ErrorRateLimited && miniMaxCodes[codeAtEnd(text)] == jobpoll.ErrorQuota:
		e.Kind, e.Hint = jobpoll.ErrorQuota, jobpoll.Hint{} // no wait helps
	}
}

// codeAtEnd is the code of "rate limit (1002)"; empty where there is none.
func codeAtEnd(text string) string {
	text, ok := strings.CutSuffix(strings.TrimSpace(text), ")")
	if !ok {
		return ""
	}
	return text[strings.LastIndexByte(text, '(')+1:]
}

// miniMaxV2Task is what MiniMax tells of a task.
type miniMaxV2Task struct {
	ID        Text            `json:"id"`
	Status    string          `json:"status"`
	Type      Text            `json:"task_type"`
	Content   json.RawMessage `json:"content"`
	Error     openAIError     `json:"error"`
	UpdatedAt Text            `json:"updated_at"`
}

func newMiniMaxV2Task() receipt { return &miniMaxV2Task{} }

func (v *miniMaxV2Task) readable() bool        { return v.Status != "" }
func (v *miniMaxV2Task) id() string            { return string(v.ID) }
func (v *miniMaxV2Task) refusal(*Answer) error { return nil }

func (v *miniMaxV2Task) report(ans *Answer) (jobpoll.Report, error) {
	if v.Status == "" {
		return jobpoll.Report{}, noStatus(ans)
	}
	r := jobpoll.Report{State: miniMaxV2Words.State(v.Status), RawStatus: v.Status, Hint: ans.Hint}
	if !r.State.Terminal() {
		return r, nil
	}
	r.CompletedAt = v.UpdatedAt.Time()
	code := string(v.Error.Code)
	settle(&r, v.output(), filtered(jobpoll.Failure{Kind: miniMaxFailures[code], Code: code, Message: string(v.Error.Message)}))
	return r, nil
}

// output is the content, where it has what was ordered.
func (v *miniMaxV2Task) output() json.RawMessage {
	if textIn(v.Content, "url") || v.Type == "h3_context_ir" && textIn(v.Content, "prompt") {
		return v.Content
	}
	return nil
}

// miniMaxV2Reply is an answer: a task, the id of one that was ordered, or an error.
type miniMaxV2Reply struct {
	Task   miniMaxV2Task  `json:"task"`
	TaskID Text           `json:"task_id"`
	Error  miniMaxV2Error `json:"error"`
}

func (v *miniMaxV2Reply) readable() bool { return v.Task.readable() }
func (v *miniMaxV2Reply) id() string     { return either(string(v.TaskID), v.Task.id()) }

// refusal is an error under a status of success, read as if it had its own.
func (v *miniMaxV2Reply) refusal(ans *Answer) error {
	if v.readable() || v.Error == (miniMaxV2Error{}) {
		return nil
	}
	status, _ := v.Error.Status.count()
	err := ans.StatusError(status)
	var ce *jobpoll.CheckError
	if errors.As(err, &ce) {
		explainMiniMaxV2(*ans, ce)
	}
	return err
}

func (v *miniMaxV2Reply) report(ans *Answer) (jobpoll.Report, error) { return v.Task.report(ans) }

// Check asks about one task.
func (p *MiniMaxV2) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	return p.c.look(ctx, Request{URL: miniMaxV2Tasks + "/" + url.PathEscape(job.ID)}, &miniMaxV2Reply{})
}

// miniMaxV2Page is the page of the list that MiniMax's example has.
const miniMaxV2Page = 20

// MaxBatch is 20: as many tasks as CheckBatch takes.
func (p *MiniMaxV2) MaxBatch() int { return miniMaxV2Page }

// CheckBatch asks about up to 20 tasks in one call, of the account's list, which
// tells of the last seven days. What it does not tell of is not in the results: an
// older task for instance. More jobs are an error of kind ErrorInvalid.
func (p *MiniMaxV2) CheckBatch(ctx context.Context, jobs []jobpoll.Job) (map[string]jobpoll.Result, error) {
	return p.c.checkListed(ctx, miniMaxV2Tasks, jobs, miniMaxV2Page, &miniMaxV2Reply{}, newMiniMaxV2Task)
}

// Cancel asks MiniMax to cancel a task, which it does while that is queued; one that
// runs is refused with ErrorInvalid. It takes two calls: as the one that cancels
// removes the record of a task that has ended, a look comes first. The error matches
// ErrEnded where it shows the end, and the task is left alone; it matches it too if
// the task ended in between, and then no look will find the task.
func (p *MiniMaxV2) Cancel(ctx context.Context, job jobpoll.Job) error {
	var v struct {
		Action Text `json:"action"`
	}
	ans, err := p.c.cancelPending(ctx, p, job, Request{Method: http.MethodDelete, URL: miniMaxV2Orders + "/" + url.PathEscape(job.ID)}, &v)
	if err != nil {
		return err
	}
	if v.Action == "deleted" || v.Action == "delete" { // the word of an older copy
		return ended(job, &ans)
	}
	return nil
}

// Refresh asks Config.Credentials for the key anew.
func (p *MiniMaxV2) Refresh(ctx context.Context) error { return p.c.Refresh(ctx) }

// Submit starts a task, by one POST that is never repeated. Order.Input must be a
// JSON object: model and callback_url are put into it. Order.Path takes the other
// endpoints of which the tasks are asked for alike, "/v2/h3_context_ir" and
// "/v2/video_regeneration". With a webhook MiniMax calls it before it answers, and
// wants its challenge back within 3 s: see webhook.Config.
func (p *MiniMaxV2) Submit(ctx context.Context, o Order) (jobpoll.Job, jobpoll.Report, error) {
	r, err := o.plain(miniMaxV2Orders, "callback_url")
	if err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	return p.c.submit(ctx, o, r, &miniMaxV2Reply{}, nil)
}

// Lookup looks for a task in the account's list, of the last 7 days, which takes
// its id for a filter. What it does not find is FindingUnknown, never absent; without
// an id there is nothing to look by: FindingImpossible.
func (p *MiniMaxV2) Lookup(ctx context.Context, lost jobpoll.Lost) (jobpoll.Finding, error) {
	return p.c.lookupListed(ctx, miniMaxV2Tasks, lost.Job, miniMaxV2Page, &miniMaxV2Reply{}, newMiniMaxV2Task)
}

// MiniMaxV2Notice makes a notice of a delivery of the second version of MiniMax's
// API: the body is the answer to a look, and one that is the bare task is read too.
// It is a Parser of package webhook. MiniMax signs nothing: let a token in the URL
// of Order.Webhook show that a delivery is MiniMax's, see webhook.NewToken.
//
// Source: copies of the pages of https://platform.minimax.io
func MiniMaxV2Notice(body []byte, _ http.Header) (jobpoll.Notice, error) {
	var v struct {
		Task json.RawMessage `json:"task"`
	}
	if err := readNotice(body, &v, func() bool { return false }); err != nil {
		return jobpoll.Notice{}, err
	}
	if HasOutput(v.Task) {
		body = v.Task
	}
	var t miniMaxV2Task
	n, err := unwrapped(body, &t)
	if err != nil {
		return jobpoll.Notice{}, err
	}
	n.At = t.UpdatedAt.Time()
	return n, nil
}
