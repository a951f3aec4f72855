package loopback

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/jobpoll/jobpoll"
)

// Ark is the wire of Ark, of Volcengine and BytePlus (Seedance): tasks of
// generation, below /api/v3. DELETE cancels a task that waits, is refused while one
// runs, and makes one that has ended unknown. Jobs beyond Config.MaxJobs wait.
//
// Sources: Go github.com/volcengine/volcengine-go-sdk 1.1.35 and npm
// @ai-sdk/bytedance 1.0.29, which work with it, and copies of the documents of
// ModelArk. Not verified: the
// refusal of a DELETE, and the codes of errors.
func Ark() Wire { return ark{} }

type ark struct{}

var arkWords = map[jobpoll.State]string{
	jobpoll.StateQueued: "queued", jobpoll.StateRunning: "running", jobpoll.StateSucceeded: "succeeded",
	jobpoll.StateFailed: "failed", jobpoll.StateCanceled: "cancelled", jobpoll.StateExpired: "expired",
}

// arkFailures are the codes of failures; of others it is InternalServiceError.
var arkFailures = map[jobpoll.FailureKind]string{
	jobpoll.FailureFiltered: "OutputVideoSensitiveContentDetected", jobpoll.FailureRejected: "InvalidParameter",
}

const arkTasks = "/api/v3/contents/generations/tasks"

func (ark) ID(n int) string { return fmt.Sprintf("cgt-20260102-%06d", n) }

func (ark) Read(r *http.Request, body json.RawMessage) Call {
	call := Call{Credential: bearer(r, "Bearer")}
	id, isTask := below(r.URL.Path, arkTasks+"/")
	switch {
	case r.URL.Path == arkTasks && r.Method == http.MethodPost:
		call.Op, call.Model, call.Queue = OpSubmit, member(body, "model"), true
	case r.URL.Path == arkTasks && r.Method == http.MethodGet:
		call.Op, call.Only = OpList, r.URL.Query()["filter.task_ids"]
		numberedPage(r.URL.Query(), &call, 20, 500)
	case isTask && r.Method == http.MethodGet:
		call.Op, call.ID = OpStatus, id
	case isTask && r.Method == http.MethodDelete:
		call.Op, call.ID, call.OnlyQueued, call.ForgetEnded = OpCancel, id, true, true
	}
	return call
}

type arkTask struct {
	ID      string    `json:"id"`
	Model   string    `json:"model"`
	Status  any       `json:"status"`
	Content any       `json:"content,omitempty"`
	Error   *arkError `json:"error,omitempty"`
	Reason  *arkError `json:"failure_reason,omitempty"` // in lists
	Created any       `json:"created_at"`
	Updated any       `json:"updated_at"`
}

type arkError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Type    string `json:"type,omitempty"`
}

func (w ark) Write(r Reply) Answer {
	switch r.Op {
	case OpSubmit:
		return Answer{Status: http.StatusOK, Body: map[string]string{"id": r.View.ID}}
	case OpCancel:
		if r.Late && !r.Entry.State.Terminal() {
			e := arkError{Code: "InvalidAction.RunningTaskDeletion", Message: "a task that runs cannot be deleted", Type: "BadRequest"}
			return Answer{Status: http.StatusBadRequest, Body: map[string]any{"error": e}}
		}
		return Answer{Status: http.StatusOK, Body: struct{}{}}
	case OpList:
		items := []arkTask{}
		for _, v := range r.Page {
			t := w.task(v)
			t.Error, t.Reason = nil, t.Error
			items = append(items, t)
		}
		return Answer{Status: http.StatusOK, Body: map[string]any{"items": items, "total": r.Total}}
	}
	return Answer{Status: http.StatusOK, Body: w.task(r.View)}
}

func (ark) task(v View) arkTask {
	t := arkTask{
		ID: v.ID, Model: v.Model, Status: orNil(v.Word(arkWords)), Created: unix(v.SubmittedAt), Updated: unix(v.changed()),
		Content: v.Output(map[string]string{"video_url": v.file()}),
	}
	if kind, why, ok := v.failed(); ok {
		t.Error = &arkError{Code: "InternalServiceError", Message: why}
		if code, ok := arkFailures[kind]; ok {
			t.Error.Code = code
		}
	}
	return t
}

func (ark) Error(p Problem) Answer {
	status, text := p.usual()
	code, ok := map[int]string{
		http.StatusBadRequest: "InvalidParameter", http.StatusUnauthorized: "AuthenticationError", http.StatusNotFound: "ResourceNotFound",
		http.StatusTooManyRequests: "RateLimitExceeded",
	}[status]
	if !ok {
		code = "InternalServiceError"
	}
	return Answer{Status: status, Body: map[string]any{"error": arkError{Code: code, Message: text, Type: http.StatusText(status)}}}
}
