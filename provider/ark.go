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

// Addresses of Ark: that of BytePlus, and that of Volcengine in China.
const (
	ArkURL        = "https://ark.ap-southeast.bytepluses.com"
	ArkBeijingURL = "https://ark.cn-beijing.volces.com"
)

// ArkRetention is how long the URL of a video lives.
// Source: copies of the documents of ModelArk
const ArkRetention = 24 * time.Hour

// arkTasks is where tasks are.
const arkTasks = "/api/v3/contents/generations/tasks"

// Ark is the adapter for the generations of Ark, of Volcengine and of BytePlus
// (Seedance). It is a jobpoll.Checker, BatchChecker, Canceler, Refresher and
// Reconciler, and safe for concurrent use.
//
// A Job needs the id of the task and no Ref. The Output is the object "content",
// where it has a video or a file; its URLs live for ArkRetention. A failure whose
// code names sensitive content or a risk is FailureFiltered, input and output alike;
// of the other codes those that begin with InternalService are FailureFault, those
// that begin with InvalidParameter FailureRejected, and those of an account that is
// used up FailureQuota. A call that is refused as the
// account is overdue, or, under a 429, as it has used up what it may, is ErrorQuota.
// QuotaExceeded has both meanings: of too many tasks that wait it is ErrorConcurrency.
//
// Not verified in an artefact of the vendor's: the word "expired" and the life of
// a URL, which relays of the API document alike, and the codes of failures, which
// are those that public clients met.
//
// Source: Volcengine's SDK volcengine-go-sdk, its reference of the list of tasks,
// and copies of the documents of ModelArk
type Ark struct{ c *Client }

var (
	_ jobpoll.Checker      = (*Ark)(nil)
	_ jobpoll.BatchChecker = (*Ark)(nil)
	_ jobpoll.Canceler     = (*Ark)(nil)
	_ jobpoll.Refresher    = (*Ark)(nil)
	_ jobpoll.Reconciler   = (*Ark)(nil)
)

// arkWords are all words of a task's status.
var arkWords = jobpoll.Words{
	"queued":    jobpoll.StateQueued,
	"running":   jobpoll.StateRunning,
	"succeeded": jobpoll.StateSucceeded,
	"failed":    jobpoll.StateFailed,
	"cancelled": jobpoll.StateCanceled,
	"expired":   jobpoll.StateExpired,
}

// NewArk makes the adapter. Only Credentials is required: the API key.
func NewArk(cfg Config) (*Ark, error) {
	c, err := newAdapter(cfg.orElse(ArkURL, "Bearer", explainArk), "ARK_API_KEY")
	if err != nil {
		return nil, err
	}
	return &Ark{c}, nil
}

// explainArk tells an account that is used up, until somebody pays or lifts a limit,
// from one that calls too often or has too many tasks.
// Source: Volcengine's list of error codes, in copies
func explainArk(ans Answer, e *jobpoll.CheckError) {
	var v struct {
		Error openAIError `json:"error"`
	}
	ans.decode(&v)
	if ans.Status >= 500 {
		return
	}
	switch strings.ToLower(string(v.Error.Code)) {
	case "quotaexceeded":
		if !mentions([]string{"free trial quota", "usage quota"}, string(v.Error.Message)) {
			e.Kind = jobpoll.ErrorConcurrency
			return
		}
	case "accountoverdueerror", "setlimitexceeded", "accountquotaexceeded":
	default:
		return
	}
	e.Kind, e.Hint = jobpoll.ErrorQuota, jobpoll.Hint{} // no wait helps
}

// arkTask is what Ark tells of a task.
type arkTask struct {
	ID        Text            `json:"id"`
	Status    string          `json:"status"`
	Content   json.RawMessage `json:"content"`
	Error     openAIError     `json:"error"`
	Reason    openAIError     `json:"failure_reason"` // in lists
	UpdatedAt Text            `json:"updated_at"`
}

func newArkTask() receipt { return &arkTask{} }

func (v *arkTask) readable() bool { return v.Status != "" }
func (v *arkTask) id() string     { return string(v.ID) }

func (v *arkTask) refusal(ans *Answer) error {
	if v.Status == "" && v.Error != (openAIError{}) {
		return ans.Errorf(jobpoll.ErrorTransient, "an error, and an answer without a status")
	}
	return nil
}

func (v *arkTask) report(ans *Answer) (jobpoll.Report, error) {
	if v.Status == "" {
		return jobpoll.Report{}, noStatus(ans)
	}
	r := jobpoll.Report{State: arkWords.State(v.Status), RawStatus: v.Status, Hint: ans.Hint}
	if !r.State.Terminal() {
		return r, nil
	}
	if r.CompletedAt = v.UpdatedAt.Time(); !r.CompletedAt.IsZero() && r.State == jobpoll.StateSucceeded {
		r.ResultExpiresAt = r.CompletedAt.Add(ArkRetention)
	}
	why := v.Error
	if why == (openAIError{}) {
		why = v.Reason
	}
	settle(&r, v.output(), arkFailure(string(why.Code), string(why.Message)))
	return r, nil
}

// output is the content, where there is a video or a file in it.
func (v *arkTask) output() json.RawMessage {
	if textIn(v.Content, "video_url") || textIn(v.Content, "file_url") {
		return v.Content
	}
	return nil
}

func arkFailure(code, text string) jobpoll.Failure {
	f := jobpoll.Failure{Code: code, Message: text}
	switch code := strings.ToLower(code); {
	case mentions([]string{"sensitivecontent", "riskdetection"}, code):
		f.Kind = jobpoll.FailureFiltered
	case strings.HasPrefix(code, "invalidparameter"):
		f.Kind = jobpoll.FailureRejected
	case strings.HasPrefix(code, "internalservice"), code == "serveroverloaded":
		f.Kind = jobpoll.FailureFault
	case code == "accountoverdueerror", code == "setlimitexceeded", strings.HasSuffix(code, "quotaexceeded"):
		f.Kind = jobpoll.FailureQuota
	}
	return filtered(f)
}

// Check asks about one task.
func (p *Ark) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	return p.c.look(ctx, Request{URL: arkTasks + "/" + url.PathEscape(job.ID)}, &arkTask{})
}

// MaxBatch is 50: as many tasks as CheckBatch takes.
func (p *Ark) MaxBatch() int { return mostListed }

// CheckBatch asks about up to 50 tasks in one call, of the account's list, which
// tells of the last seven days. What it does not tell of is not in the results: an
// older task for instance, about which Check has to be asked, as the engine does.
// More jobs are an error of kind ErrorInvalid.
func (p *Ark) CheckBatch(ctx context.Context, jobs []jobpoll.Job) (map[string]jobpoll.Result, error) {
	return p.c.checkListed(ctx, arkTasks, jobs, mostListed, &arkTask{}, newArkTask)
}

// Cancel asks Ark to cancel a task, which it does while that is queued, in two
// calls: as the one that cancels removes the record of a task that has ended, with
// its result, a look comes first. The error matches ErrEnded where it shows the end,
// and the task is left alone.
func (p *Ark) Cancel(ctx context.Context, job jobpoll.Job) error {
	_, err := p.c.cancelPending(ctx, p, job, Request{Method: http.MethodDelete, URL: arkTasks + "/" + url.PathEscape(job.ID)}, nil)
	return err
}

// Refresh asks Config.Credentials for the key anew.
func (p *Ark) Refresh(ctx context.Context) error { return p.c.Refresh(ctx) }

// Submit starts a task, by one POST that is never repeated. Order.Input must be a
// JSON object: model and callback_url are put into it.
func (p *Ark) Submit(ctx context.Context, o Order) (jobpoll.Job, jobpoll.Report, error) {
	r, err := o.plain(arkTasks, "callback_url")
	if err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	return p.c.submit(ctx, o, r, &arkTask{}, nil)
}

// Lookup looks for a task in the account's list, which takes its id for a filter.
// What it does not find is FindingUnknown, never absent; without an id there is
// nothing to look by: FindingImpossible.
func (p *Ark) Lookup(ctx context.Context, lost jobpoll.Lost) (jobpoll.Finding, error) {
	return p.c.lookupListed(ctx, arkTasks, lost.Job, mostListed, &arkTask{}, newArkTask)
}

// ArkLimits are the limits of an account at BytePlus: 120 tasks that wait. Limits.Jobs
// counts those that run too, which is stricter: where so many orders wait in your
// process though Ark has room, set a higher one. Volcengine publishes its own for each
// model.
// Source: a copy of the documents of ModelArk
func ArkLimits() jobpoll.Limits { return jobpoll.Limits{Jobs: 120} }

// ArkNotice makes a notice of a delivery of Ark's: the body is the task, as a look
// gives it. It is a Parser of package webhook. Ark signs nothing: let a token in
// the URL of Order.Webhook show that a delivery is Ark's, see webhook.NewToken.
//
// Source: copies of the documents of ModelArk
func ArkNotice(body []byte, _ http.Header) (jobpoll.Notice, error) {
	var v arkTask
	n, err := unwrapped(body, &v)
	if err != nil {
		return jobpoll.Notice{}, err
	}
	n.At = v.UpdatedAt.Time()
	return n, nil
}
