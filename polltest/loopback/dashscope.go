package loopback

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// DashScope is the wire of DashScope's tasks: times without a zone, which are of
// Beijing, and a word under HTTP 200 for a task that is not known, as an expired
// job is after a day. Only a task that waits can be canceled.
//
// Sources: https://www.alibabacloud.com/help/en/model-studio/manage-asynchronous-tasks
// and the vendor's SDK.
func DashScope() Wire { return dashScope{} }

type dashScope struct{}

var dashScopeWords = map[jobpoll.State]string{
	jobpoll.StateQueued: "PENDING", jobpoll.StateRunning: "RUNNING", jobpoll.StateSucceeded: "SUCCEEDED",
	jobpoll.StateFailed: "FAILED", jobpoll.StateCanceled: "CANCELED", jobpoll.StateExpired: "UNKNOWN",
}

func (dashScope) ID(n int) string { return fmt.Sprintf("a8532587-fa8c-4ef8-82be-%012x", n) }

func (dashScope) Read(r *http.Request, _ json.RawMessage) Call {
	call := Call{Credential: bearer(r, "Bearer")}
	path := r.URL.Path
	above, cancel := strings.CutSuffix(path, "/cancel")
	switch {
	case strings.HasPrefix(path, "/api/v1/services/aigc/") && r.Method == http.MethodPost:
		call.Op, call.Model = OpSubmit, strings.TrimPrefix(path, "/api/v1/services/aigc/")
	case cancel && r.Method == http.MethodPost:
		if id, ok := oneBelow(above, "/api/v1/tasks/"); ok {
			call.Op, call.ID = OpCancel, id
		}
	case r.Method == http.MethodGet:
		if id, ok := oneBelow(path, "/api/v1/tasks/"); ok {
			call.Op, call.ID = OpStatus, id
		}
	}
	return call
}

const dashScopeRequest = "rq-5c2f1d8e"

func (dashScope) Write(r Reply) Answer {
	if r.Op == OpCancel {
		if r.Late {
			return dashScopeRefusal(http.StatusBadRequest, "UnsupportedOperation", "the task has ended")
		}
		return Answer{Status: http.StatusOK, Body: map[string]string{"request_id": dashScopeRequest}}
	}
	out := map[string]any{"task_id": r.View.ID, "task_status": orNil(r.Word(dashScopeWords))}
	for name, at := range map[string]time.Time{"submit_time": r.SubmittedAt, "scheduled_time": r.StartedAt, "end_time": r.EndedAt} {
		if !at.IsZero() {
			const hours = 8
			out[name] = at.In(time.FixedZone("", hours*60*60)).Format("2006-01-02 15:04:05.000")
		}
	}
	switch r.Entry.State {
	case jobpoll.StateSucceeded:
		out["video_url"] = r.Output(file(r.View.ID))
	case jobpoll.StateFailed:
		out["code"], out["message"] = "TaskFailed", r.Message()
		if r.filtered() {
			out["code"] = "DataInspectionFailed"
		}
	}
	return Answer{Status: http.StatusOK, Body: map[string]any{"request_id": dashScopeRequest, "output": out}}
}

func dashScopeRefusal(status int, code, message string) Answer {
	return Answer{Status: status, Body: map[string]string{"request_id": dashScopeRequest, "code": code, "message": message}}
}

func (dashScope) Error(p Problem) Answer {
	status, message := usual(p)
	switch p.Kind {
	case ProblemNoJob, ProblemNotVisible:
		out := map[string]string{"task_id": p.Call.ID, "task_status": "UNKNOWN"}
		return Answer{Status: http.StatusOK, Body: map[string]any{"request_id": dashScopeRequest, "output": out}}
	case ProblemUnauthorized:
		return dashScopeRefusal(status, "InvalidApiKey", message)
	case ProblemRateLimited, ProblemTooManyJobs:
		return dashScopeRefusal(status, "Throttling.RateQuota", message)
	}
	return dashScopeRefusal(status, "InvalidParameter", message)
}
