package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// KlingURL is the address of Kling outside of China.
const KlingURL = "https://api-singapore.klingai.com"

// KlingRetention is how long Kling keeps outputs.
// Source: Kling's documents
const KlingRetention = 30 * 24 * time.Hour

// KlingTextToVideo is the Order.Path of an order without one: the endpoint of
// Kling's first API for videos of a text.
const KlingTextToVideo = "/v1/videos/text2video"

const (
	klingFirst     = "/v1/"   // begins the paths of the first API
	klingTasksPath = "/tasks" // the list of the 3.x API

	klingOwnID = "external_task_id" // of a task, the caller's
)

// Kling is the adapter for Kling's tasks, of both generations of its API. It is a
// jobpoll.Checker, Refresher and Reconciler, and safe for concurrent use; there is
// no cancellation. Kling3 looks at many tasks of the 3.x API in one call.
//
// Job.Ref says where a task is asked for. A path ("/v1/videos/text2video") is an
// endpoint of the first API, below which its tasks are found and nowhere else;
// without a Ref the task is one of the 3.x API. A task that is missing in a list is
// not known. Submit fills it in. The Output is
// the list of videos (or images), with their URLs; it is kept for KlingRetention.
//
// The codes of the envelope decide, also under a 429: of those only 1302 (too
// fast) and 1303 (too many at once) pass by waiting; an unpaid account, a used-up
// package and an IP address that is not allowed do not.
//
// Not verified: nothing here was read in an artefact of Kling's own, but in
// stored copies of its documents and in clients of others. The answer to a 3.x look is
// read whether "data" is a task, a list of them, or an object with "result". That the
// external_task_id stands in options there is what two clients do; how long it may
// be was not read.
//
// Source: copies of Kling's documents of its API, error codes and callbacks
type Kling struct{ c *Client }

var (
	_ jobpoll.Checker    = (*Kling)(nil)
	_ jobpoll.Refresher  = (*Kling)(nil)
	_ jobpoll.Reconciler = (*Kling)(nil)
)

// klingWords are all words of a task's status, of both generations.
var klingWords = jobpoll.Words{
	"submitted":  jobpoll.StateQueued,
	"processing": jobpoll.StateRunning,
	"succeed":    jobpoll.StateSucceeded, // the first API
	"succeeded":  jobpoll.StateSucceeded, // 3.x
	"failed":     jobpoll.StateFailed,
}

// klingCodes are the codes of Kling's envelope.
var klingCodes = map[string]jobpoll.ErrorKind{
	"1000": jobpoll.ErrorAuth,
	"1001": jobpoll.ErrorAuth,
	"1002": jobpoll.ErrorAuth,
	"1003": jobpoll.ErrorAuth,
	"1004": jobpoll.ErrorAuth,
	"1100": jobpoll.ErrorPolicy,
	"1101": jobpoll.ErrorQuota, // arrears
	"1102": jobpoll.ErrorQuota, // package used up
	"1103": jobpoll.ErrorPolicy,
	"1200": jobpoll.ErrorInvalid,
	"1201": jobpoll.ErrorInvalid,
	"1202": jobpoll.ErrorInvalid,
	"1203": jobpoll.ErrorNoSuchJob,
	"1300": jobpoll.ErrorInvalid, // policy of the platform
	"1301": jobpoll.ErrorInvalid, // content
	"1302": jobpoll.ErrorRateLimited,
	"1303": jobpoll.ErrorConcurrency,
	"1304": jobpoll.ErrorPolicy, // IP address
	"5000": jobpoll.ErrorTransient,
	"5001": jobpoll.ErrorTransient,
	"5002": jobpoll.ErrorTransient,
}

// NewKling makes the adapter. Credentials (the API key) or Tokens (KlingTokens, of an
// access key and a secret key) is required, and nothing else.
//
// Take NewKling3 where all orders are of the 3.x API, whose path has the model
// ("/text-to-video/kling-3.0"): it looks at many tasks in one call. NewKling is for the
// first API ("/v1/videos/text2video"), and for one route with both.
func NewKling(cfg Config) (*Kling, error) {
	c, err := newAdapter(cfg.orElse(KlingURL, "Bearer", explainKling), "KLING_API_KEY")
	if err != nil {
		return nil, err
	}
	return &Kling{c}, nil
}

// explainKling reads the code of a refusal, which says more than its status.
func explainKling(ans Answer, e *jobpoll.CheckError) {
	var v struct {
		Code Text `json:"code"`
	}
	ans.decode(&v)
	kind, ok := klingCodes[string(v.Code)]
	if !ok || ans.Status >= 500 {
		return
	}
	e.Kind = kind
	switch kind {
	case jobpoll.ErrorRateLimited, jobpoll.ErrorConcurrency:
		e.Hint.Scope = jobpoll.ScopeBudget
	default:
		e.Hint = jobpoll.Hint{} // no wait helps
	}
}

// klingTask is what Kling tells of a task, in the words of either API.
type klingTask struct {
	TaskID     Text   `json:"task_id"`
	TaskStatus string `json:"task_status"`
	TaskMsg    Text   `json:"task_status_msg"`
	TaskResult struct {
		Videos json.RawMessage `json:"videos"`
		Images json.RawMessage `json:"images"`
	} `json:"task_result"`
	UpdatedAt Text `json:"updated_at"`
	TaskInfo  struct {
		Own Text `json:"external_task_id"`
	} `json:"task_info"`

	ID         Text            `json:"id"`
	Status     string          `json:"status"`
	Message    Text            `json:"message"`
	Outputs    json.RawMessage `json:"outputs"`
	UpdateTime Text            `json:"update_time"`
	External   Text            `json:"external_id"`
}

func (v *klingTask) readable() bool        { return v.word() != "" }
func (v *klingTask) refusal(*Answer) error { return nil }
func (v *klingTask) id() string            { return either(string(v.TaskID), string(v.ID)) }
func (v *klingTask) word() string          { return either(v.TaskStatus, v.Status) }

// own is the id of the caller's; empty: none is told.
func (v *klingTask) own() string { return either(string(v.TaskInfo.Own), string(v.External)) }

// updated is when it was changed last; zero: that is not told.
func (v *klingTask) updated() time.Time {
	return Text(either(string(v.UpdatedAt), string(v.UpdateTime))).Time()
}

// either is the first text that is not empty.
func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (v *klingTask) report(ans *Answer) (jobpoll.Report, error) {
	word := v.word()
	if word == "" {
		return jobpoll.Report{}, noStatus(ans)
	}
	r := jobpoll.Report{State: klingWords.State(word), RawStatus: word, Hint: ans.Hint}
	if !r.State.Terminal() {
		return r, nil
	}
	if r.CompletedAt = v.updated(); !r.CompletedAt.IsZero() && r.State == jobpoll.StateSucceeded {
		r.ResultExpiresAt = r.CompletedAt.Add(KlingRetention)
	}
	settle(&r, v.output(), klingFailure(either(string(v.TaskMsg), string(v.Message))))
	return r, nil
}

func (v *klingTask) output() json.RawMessage {
	for _, o := range []json.RawMessage{v.TaskResult.Videos, v.TaskResult.Images, v.Outputs} {
		if o = withURL(o, "url"); o != nil {
			return o
		}
	}
	return nil
}

// klingFailure reads the text of a task that failed: it has no code of its own,
// but in the text perhaps.
func klingFailure(text string) jobpoll.Failure {
	f := filtered(jobpoll.Failure{Message: text})
	if mentions([]string{"1301", "risk control", "blocked by policy"}, text) {
		f.Kind = jobpoll.FailureFiltered
	}
	return f
}

// klingReply is the envelope, and a task in it.
type klingReply struct {
	klingTask
	code, text Text
	want       string // the id that is asked for
	wantOwn    string // the caller's id that is asked for
	missing    bool   // from a list
}

// UnmarshalJSON reads the envelope, and of the tasks in it the one that is wanted.
// It gives no error: what is no envelope has no code.
func (v *klingReply) UnmarshalJSON(b []byte) error {
	var data json.RawMessage
	m := members(b)
	for m.next() {
		switch {
		case m.is("code"):
			v.code = m.text()
		case m.is("message"):
			v.text = m.text()
		case m.is("data"):
			data = m.value
		}
	}
	var room [1]klingTask // for what is there almost always
	tasks, isList := klingTasks(room[:0], data)
	lone := len(tasks) == 1
	for i := range tasks {
		if t := &tasks[i]; isAsked(t.own(), v.wantOwn, lone) && (!isList || isAsked(t.id(), v.want, lone)) {
			v.klingTask = *t
			return nil
		}
	}
	v.missing = isList
	return nil
}

// isAsked reports whether a task is the one that was asked for by an id: it tells it,
// or is the lone one and tells none. An id that is empty asks for any.
func isAsked(told, want string, lone bool) bool {
	return want == "" || told == want || told == "" && lone
}

// klingTasks adds the tasks in data to tasks: one, or a list, or an object with a
// list. What has no status is no task.
func klingTasks(tasks []klingTask, data json.RawMessage) (all []klingTask, isList bool) {
	add := func(task json.RawMessage) (list json.RawMessage) {
		tasks = append(tasks, klingTask{})
		return tasks[len(tasks)-1].read(task)
	}
	if len(data) == 0 || data[0] != '[' {
		list := add(data)
		if list == nil {
			return tasks, false
		}
		tasks, data = tasks[:len(tasks)-1], list
	}
	for i := items(data); i.next(); {
		add(i.value)
	}
	return tasks, true
}

// read reads the fields of a task as their tags say, which package json would take
// three times as long for; list is what stands in "result" besides.
func (v *klingTask) read(task json.RawMessage) (list json.RawMessage) {
	m := members(task)
	for m.next() {
		switch {
		case m.is("task_id"):
			v.TaskID = m.text()
		case m.is("task_status"):
			m.word(&v.TaskStatus)
		case m.is("task_status_msg"):
			v.TaskMsg = m.text()
		case m.is("task_result"):
			r := members(m.value)
			for r.next() {
				switch {
				case r.is("videos"):
					v.TaskResult.Videos = bytes.Clone(r.value)
				case r.is("images"):
					v.TaskResult.Images = bytes.Clone(r.value)
				}
			}
		case m.is("task_info"):
			r := members(m.value)
			for r.next() {
				if r.is(klingOwnID) {
					v.TaskInfo.Own = r.text()
				}
			}
		case m.is("external_id"):
			v.External = m.text()
		case m.is("updated_at"):
			v.UpdatedAt = m.text()
		case m.is("id"):
			v.ID = m.text()
		case m.is("status"):
			m.word(&v.Status)
		case m.is("message"):
			v.Message = m.text()
		case m.is("outputs"):
			v.Outputs = bytes.Clone(m.value)
		case m.is("update_time"):
			v.UpdateTime = m.text()
		case m.is("result"):
			m.list(&list)
		}
	}
	return list
}

func (v *klingReply) readable() bool { return v.code != "" }

func (v *klingReply) refusal(ans *Answer) error {
	switch {
	case v.code == "": // an envelope without a code is none
		return noStatus(ans)
	case v.code != "0":
		return coded(ans, klingCodes, string(v.code), string(v.text))
	case v.missing:
		return ans.Errorf(jobpoll.ErrorNoSuchJob, "the task is not in the answer")
	}
	return nil
}

// request is how a task is asked for; of is "task_ids" or "external_task_ids".
func (p *Kling) request(job jobpoll.Job, of, id string) Request {
	if strings.HasPrefix(job.Ref, "/") {
		return Request{URL: p.c.path(job.Ref) + "/" + url.PathEscape(id)}
	}
	return Request{URL: klingTasksPath, Query: url.Values{of: {id}}}
}

// Check asks about one task.
func (p *Kling) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	return p.c.look(ctx, p.request(job, "task_ids", job.ID), &klingReply{want: job.ID})
}

// Refresh asks Config.Credentials for the key, or Config.Tokens for a token, anew.
func (p *Kling) Refresh(ctx context.Context) error { return p.c.Refresh(ctx) }

// KlingLimits are the limits of a Kling account that may run so many tasks at
// once, of one model; zero and less is none. Looks are not counted, and calls
// have no limit.
// Source: a copy of Kling's rules of concurrency
func KlingLimits(concurrent int) jobpoll.Limits { return jobpoll.Limits{Jobs: max(concurrent, 0)} }

// KlingNotice makes a notice of a delivery of Kling's: the body is the task. It is
// a Parser of package webhook. The verifier to it is webhook.NewStandard, where
// the account has a Webhook Secret; without one nothing is signed: let a token
// in the URL of Order.Webhook show that a delivery is Kling's, see
// webhook.NewToken.
//
// The external_task_id is the ClientKey, which Submit made it: a delivery tells the
// id of a task of which the answer was lost. With an external_task_id of one's own
// in Order.Input it is no ClientKey of anything.
//
// Source: a copy of Kling's document of callbacks
func KlingNotice(body []byte, _ http.Header) (jobpoll.Notice, error) {
	var v klingTask
	n, err := unwrapped(body, &v)
	if err != nil {
		return jobpoll.Notice{}, err
	}
	n.ClientKey, n.At = v.own(), v.updated()
	return n, nil
}
