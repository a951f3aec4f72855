package loopback

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// DashScope is the wire of Alibaba's DashScope (Wan): tasks, below /api/v1. A
// submission needs the header X-DashScope-Async, only a task that waits can be
// canceled, and a task that is not known is one with the status UNKNOWN, under HTTP
// 200. Times have no zone, and are those of Beijing. An expired job is UNKNOWN. The
// list is not served.
//
// Sources: https://www.alibabacloud.com/help/en/model-studio/manage-asynchronous-tasks,
// DashScope's SDK for Python, and npm @ai-sdk/alibaba 1.0.61, which works with it. Not
// documented are the codes of errors but of
// arrears and of a filter.
func DashScope() Wire { return dashScope{} }

type dashScope struct{}

var dashScopeWords = map[jobpoll.State]string{
	jobpoll.StateQueued: "PENDING", jobpoll.StateRunning: "RUNNING", jobpoll.StateSucceeded: "SUCCEEDED",
	jobpoll.StateFailed: "FAILED", jobpoll.StateCanceled: "CANCELED", jobpoll.StateExpired: "UNKNOWN",
}

// dashScopeFailures are the codes of failures; of others it is InternalError.
var dashScopeFailures = map[jobpoll.FailureKind]string{
	jobpoll.FailureFiltered: "DataInspectionFailed", jobpoll.FailureRejected: "InvalidParameter",
}

func (dashScope) ID(n int) string { return fmt.Sprintf("0385dc79-5ff8-4d82-bcb6-%012x", n) }

func (dashScope) Read(r *http.Request, body json.RawMessage) Call {
	call := Call{Credential: bearer(r, "Bearer")}
	id, isTask := below(r.URL.Path, "/api/v1/tasks/")
	canceled, isCancel := below(strings.TrimSuffix(r.URL.Path, "/cancel"), "/api/v1/tasks/")
	switch {
	case strings.HasPrefix(r.URL.Path, "/api/v1/services/aigc/") && r.Method == http.MethodPost:
		call.Op, call.Model = OpSubmit, member(body, "model")
		call.Bad = r.Header.Get("X-DashScope-Async") != "enable"
	case isTask && r.Method == http.MethodGet:
		call.Op, call.ID = OpStatus, id
	case isCancel && r.Method == http.MethodPost && canceled != id:
		call.Op, call.ID, call.OnlyQueued = OpCancel, canceled, true
	}
	return call
}

type dashScopeTask struct {
	ID        string `json:"task_id"`
	Status    any    `json:"task_status"`
	Submitted string `json:"submit_time,omitempty"`
	Scheduled string `json:"scheduled_time,omitempty"`
	Ended     string `json:"end_time,omitempty"`
	VideoURL  any    `json:"video_url,omitempty"`
	Results   any    `json:"results,omitempty"`
	Code      string `json:"code,omitempty"`
	Message   string `json:"message,omitempty"`
}

const dashScopeRequest = "rq-5c2f1d8e"

func (w dashScope) Write(r Reply) Answer {
	if r.Op == OpCancel {
		if r.Late {
			return w.refusal(http.StatusBadRequest, "UnsupportedOperation", "only a task that is PENDING can be canceled")
		}
		return Answer{Status: http.StatusOK, Body: map[string]string{"request_id": dashScopeRequest}}
	}
	t := dashScopeTask{ID: r.View.ID, Status: orNil(r.Word(dashScopeWords))}
	if r.Op == OpStatus && t.Status != "UNKNOWN" {
		t.Submitted, t.Scheduled, t.Ended = beijing(r.SubmittedAt), beijing(r.StartedAt), beijing(r.EndedAt)
	}
	switch out := r.Output(r.file()).(type) {
	case json.RawMessage: // of a script
		if t.VideoURL = any(out); strings.HasPrefix(string(out), "[") {
			t.VideoURL, t.Results = nil, out
		}
	default:
		t.VideoURL = out
	}
	if kind, why, ok := r.failed(); ok {
		t.Code, t.Message = "InternalError", why
		if code, ok := dashScopeFailures[kind]; ok {
			t.Code = code
		}
	}
	return Answer{Status: http.StatusOK, Body: map[string]any{"request_id": dashScopeRequest, "output": t}}
}

// beijing is a time without a zone; empty of none.
func beijing(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	const hours = 8
	return t.In(time.FixedZone("", hours*60*60)).Format("2006-01-02 15:04:05.000")
}

func (dashScope) refusal(status int, code, text string) Answer {
	return Answer{Status: status, Body: map[string]string{"request_id": dashScopeRequest, "code": code, "message": text}}
}

func (w dashScope) Error(p Problem) Answer {
	if p.Kind == ProblemNoJob || p.Kind == ProblemNotVisible {
		t := dashScopeTask{ID: p.Call.ID, Status: "UNKNOWN"}
		return Answer{Status: http.StatusOK, Body: map[string]any{"request_id": dashScopeRequest, "output": t}}
	}
	status, text := p.usual()
	code, ok := map[int]string{
		http.StatusBadRequest: "InvalidParameter", http.StatusUnauthorized: "InvalidApiKey", http.StatusNotFound: "NotFound",
		http.StatusTooManyRequests: "Throttling.RateQuota",
	}[status]
	if !ok {
		code = "InternalError"
	}
	return w.refusal(status, code, text)
}
