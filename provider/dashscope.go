package provider

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// DashScopeURL is the address of Alibaba's Model Studio outside of China.
const DashScopeURL = "https://dashscope-intl.aliyuncs.com"

// DashScopeRetention is how long a task and the URL of its video are kept.
// Source: https://www.alibabacloud.com/help/en/model-studio/manage-asynchronous-tasks
const DashScopeRetention = 24 * time.Hour

// DashScopeVideo is the Order.Path of an order without one.
const DashScopeVideo = "/api/v1/services/aigc/video-generation/video-synthesis"

// DashScope is the adapter for the tasks of Alibaba's DashScope (Wan). It is a
// jobpoll.Checker, Canceler and Refresher, and safe for concurrent use. There is a
// list, of the last 24 hours, by time and model and not by id: nothing that would
// find one task that a look does not.
//
// A Job needs the id of the task and no Ref. The Output is the URL of the video, or
// the list "results" of tasks that make several things. The word UNKNOWN, under a
// 200, says that there is no such task, or none any more: it is an error of kind
// ErrorNoSuchJob. A task of several parts has succeeded where one of them has.
//
// Times come without a zone, and are read as those of Beijing. Not verified: that
// zone, the host outside of China, and codes of failures but DataInspectionFailed and
// IPInfringementSuspect, which filters tell; those that begin with InvalidParameter
// and InternalError are read as they sound.
//
// Source: https://www.alibabacloud.com/help/en/model-studio/manage-asynchronous-tasks,
// https://www.alibabacloud.com/help/en/model-studio/error-code, and DashScope's SDK for
// Python
type DashScope struct{ c *Client }

var (
	_ jobpoll.Checker   = (*DashScope)(nil)
	_ jobpoll.Canceler  = (*DashScope)(nil)
	_ jobpoll.Refresher = (*DashScope)(nil)
)

// dashScopeWords are all words of a task's status that are a state.
var dashScopeWords = jobpoll.Words{
	"PENDING":   jobpoll.StateQueued,
	"RUNNING":   jobpoll.StateRunning,
	"SUSPENDED": jobpoll.StateRunning,
	"SUCCEEDED": jobpoll.StateSucceeded,
	"FAILED":    jobpoll.StateFailed,
	"CANCELED":  jobpoll.StateCanceled,
}

// NewDashScope makes the adapter. Only Credentials is required: the API key.
func NewDashScope(cfg Config) (*DashScope, error) {
	c, err := newAdapter(cfg.orElse(DashScopeURL, "Bearer", explainDashScope), "DASHSCOPE_API_KEY")
	if err != nil {
		return nil, err
	}
	return &DashScope{c}, nil
}

// dashScopeCode is what a code says of a call that is refused, by its part before a
// dot; one that is not known may pass.
func dashScopeCode(code string) jobpoll.ErrorKind {
	switch family, _, _ := strings.Cut(strings.ToLower(code), "."); family {
	case "arrearage", "allocationquota": // AllocationQuota.FreeTierOnly: what was free is used up
		return jobpoll.ErrorQuota
	case "throttling":
		return jobpoll.ErrorRateLimited
	case "invalidapikey":
		return jobpoll.ErrorAuth
	case "invalidparameter":
		return jobpoll.ErrorInvalid
	}
	return jobpoll.ErrorTransient
}

// explainDashScope tells an account that is in arrears, or whose free quota is used
// up, from a wrong request.
func explainDashScope(ans Answer, e *jobpoll.CheckError) {
	var v struct {
		Code Text `json:"code"`
	}
	ans.decode(&v)
	if ans.Status < 500 && dashScopeCode(string(v.Code)) == jobpoll.ErrorQuota {
		e.Kind = jobpoll.ErrorQuota
	}
}

// dashScopeAnswer is what DashScope tells of a task.
type dashScopeAnswer struct {
	Code    Text `json:"code"`
	Message Text `json:"message"`
	Output  struct {
		TaskID    Text            `json:"task_id"`
		Status    string          `json:"task_status"`
		VideoURL  Text            `json:"video_url"`
		Results   json.RawMessage `json:"results"`
		Code      Text            `json:"code"`
		Message   Text            `json:"message"`
		Scheduled Text            `json:"scheduled_time"`
		End       Text            `json:"end_time"`
	} `json:"output"`
}

func (v *dashScopeAnswer) readable() bool { return v.Output.Status != "" || v.Code != "" }
func (v *dashScopeAnswer) id() string     { return string(v.Output.TaskID) }

func (v *dashScopeAnswer) refusal(ans *Answer) error {
	switch {
	case strings.EqualFold(strings.TrimSpace(v.Output.Status), "UNKNOWN"):
		return ans.Errorf(jobpoll.ErrorNoSuchJob, "the provider knows no such task, or not any more")
	case v.Output.Status == "" && v.Code != "":
		code := string(v.Code)
		return coded(ans, map[string]jobpoll.ErrorKind{code: dashScopeCode(code)}, code, string(v.Message))
	}
	return nil
}

func (v *dashScopeAnswer) report(ans *Answer) (jobpoll.Report, error) {
	o := &v.Output
	if o.Status == "" {
		return jobpoll.Report{}, noStatus(ans)
	}
	r := jobpoll.Report{
		State:       dashScopeWords.State(o.Status),
		RawStatus:   o.Status,
		Hint:        ans.Hint,
		StartedAt:   beijing(o.Scheduled),
		CompletedAt: beijing(o.End),
	}
	if r.State == jobpoll.StateSucceeded && !r.CompletedAt.IsZero() {
		r.ResultExpiresAt = r.CompletedAt.Add(DashScopeRetention)
	}
	settle(&r, v.output(), dashScopeFailure(string(o.Code), string(o.Message)))
	return r, nil
}

func (v *dashScopeAnswer) output() json.RawMessage {
	if at := link(v.Output.VideoURL); at != "" {
		return quoted(at)
	}
	return withURL(v.Output.Results, "url", "video_url")
}

func dashScopeFailure(code, text string) jobpoll.Failure {
	f := jobpoll.Failure{Code: code, Message: text}
	switch family, _, _ := strings.Cut(strings.ToLower(code), "."); family {
	case "datainspectionfailed", "ipinfringementsuspect":
		f.Kind = jobpoll.FailureFiltered
	case "invalidparameter":
		f.Kind = jobpoll.FailureRejected
	case "internalerror":
		f.Kind = jobpoll.FailureFault
	case "arrearage", "allocationquota":
		f.Kind = jobpoll.FailureQuota
	}
	return filtered(f)
}

// beijing reads a time without a zone as one of Beijing, and others as Text does.
func beijing(t Text) time.Time {
	const ahead = 8 * time.Hour // of UTC
	if date, clock, ok := strings.Cut(strings.TrimSpace(string(t)), " "); ok {
		at, err := time.Parse(time.RFC3339, date+"T"+strings.TrimLeft(clock, " ")+"Z") // the form that is read fastest
		if err == nil {
			return at.Add(-ahead)
		}
	}
	return t.Time()
}

// Check asks about one task.
func (p *DashScope) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	return p.c.look(ctx, Request{URL: p.c.URL("api", "v1", "tasks", job.ID)}, &dashScopeAnswer{})
}

// Cancel asks DashScope to cancel a task, which it does only while that is PENDING.
func (p *DashScope) Cancel(ctx context.Context, job jobpoll.Job) error {
	_, err := p.c.Do(ctx, Request{Method: http.MethodPost, URL: p.c.URL("api", "v1", "tasks", job.ID, "cancel")}, nil)
	return err
}

// Refresh asks Config.Credentials for the key anew.
func (p *DashScope) Refresh(ctx context.Context) error { return p.c.Refresh(ctx) }

// Submit starts a task, by one POST that is never repeated. Order.Input must be a
// JSON object, with "input" and "parameters": the model is put into it. There is
// no webhook.
func (p *DashScope) Submit(ctx context.Context, o Order) (jobpoll.Job, jobpoll.Report, error) {
	r, err := o.plain(DashScopeVideo, "")
	if err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	r.Header = withHeader(r.Header, "X-DashScope-Async", "enable")
	return p.c.submit(ctx, o, r, &dashScopeAnswer{}, nil)
}

// DashScopeLimits are DashScope's published limits: 20 looks a second for one
// Alibaba Cloud account, which all its users and keys share. Give the budget of the
// account to all routes that use it.
// Source: https://www.alibabacloud.com/help/en/model-studio/manage-asynchronous-tasks
func DashScopeLimits() jobpoll.Limits {
	return jobpoll.Limits{Status: jobpoll.LaneLimits{Limit: jobpoll.Limit{Rate: 20}}}
}

// DashScopePace is what DashScope's documents say of looks: every 15 s.
// Source: a copy of the documents
func DashScopePace() jobpoll.Guidance { return jobpoll.Guidance{Floor: 15 * time.Second} }
