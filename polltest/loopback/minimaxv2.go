package loopback

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/jobpoll/jobpoll"
)

// MiniMaxV2 is the wire of MiniMax's video API in its second version (MiniMax-H3):
// one call tells the task with its output, an error has a status of HTTP, and there
// is a list. DELETE cancels a task that waits, is refused while one runs, and makes
// one that has ended unknown. MiniMax does not delete one that was canceled.
//
// Sources: the pages of https://platform.minimax.io, their OpenAPI 2.0.0, and
// answers that public clients met. Not documented are the answer to an order
// beyond a limit of tasks, here that of too many calls, and the word of a job that
// expired, which only an older copy has.
func MiniMaxV2() Wire { return miniMaxV2{} }

type miniMaxV2 struct{}

var miniMaxV2Words = map[jobpoll.State]string{
	jobpoll.StateQueued: "queued", jobpoll.StateRunning: "running", jobpoll.StateSucceeded: "succeeded",
	jobpoll.StateFailed: "failed", jobpoll.StateCanceled: "cancelled", jobpoll.StateExpired: "expired",
}

const (
	miniMaxV2Orders = "/v2/video_generation"
	miniMaxV2Tasks  = "/v2/query/video_generation"
)

func (miniMaxV2) ID(n int) string { return fmt.Sprintf("424%012d", n) }

func (miniMaxV2) Read(r *http.Request, body json.RawMessage) Call {
	call := Call{Credential: bearer(r, "Bearer")}
	id, isTask := below(r.URL.Path, miniMaxV2Tasks+"/")
	ordered, isOrder := below(r.URL.Path, miniMaxV2Orders+"/")
	switch {
	case r.URL.Path == miniMaxV2Orders && r.Method == http.MethodPost:
		call.Op, call.Model = OpSubmit, member(body, "model")
	case r.URL.Path == miniMaxV2Tasks && r.Method == http.MethodGet:
		call.Op, call.Only = OpList, r.URL.Query()["filter.task_ids"]
		numberedPage(r.URL.Query(), &call, 20, 100)
	case isTask && r.Method == http.MethodGet:
		call.Op, call.ID = OpStatus, id
	case isOrder && r.Method == http.MethodDelete:
		call.Op, call.ID, call.OnlyQueued, call.ForgetEnded = OpCancel, ordered, true, true
	}
	return call
}

type miniMaxV2Task struct {
	ID       string            `json:"id"`
	Model    string            `json:"model"`
	Status   any               `json:"status"`
	Error    *miniMaxV2Failure `json:"error,omitempty"`
	Created  any               `json:"created_at"`
	Updated  any               `json:"updated_at"`
	Content  any               `json:"content,omitempty"`
	Type     string            `json:"task_type"`
	Modality string            `json:"modality"`
}

type miniMaxV2Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (w miniMaxV2) Write(r Reply) Answer {
	switch r.Op {
	case OpSubmit:
		return Answer{Status: http.StatusOK, Body: map[string]string{"task_id": r.View.ID}}
	case OpCancel:
		return w.cancel(r)
	case OpList:
		items := []miniMaxV2Task{}
		for _, v := range r.Page {
			items = append(items, w.task(v))
		}
		return Answer{Status: http.StatusOK, Body: map[string]any{"items": items, "total": r.Total}}
	}
	return Answer{Status: http.StatusOK, Body: map[string]any{"task": w.task(r.View)}}
}

func (w miniMaxV2) cancel(r Reply) Answer {
	action := "cancelled"
	if r.Late {
		if !r.Entry.State.Terminal() {
			return w.error(http.StatusBadRequest, "invalid params, a task that runs cannot be cancelled")
		}
		action = "deleted"
	}
	return Answer{Status: http.StatusOK, Body: map[string]string{"task_id": r.View.ID, "action": action, "status": action}}
}

func (miniMaxV2) task(v View) miniMaxV2Task {
	t := miniMaxV2Task{
		ID: v.ID, Model: v.Model, Status: orNil(v.Word(miniMaxV2Words)), Created: unix(v.SubmittedAt), Updated: unix(v.changed()),
		Content: v.Output(map[string]string{"url": v.file()}), Type: "generation", Modality: "video",
	}
	if kind, why, ok := v.failed(); ok {
		t.Error = &miniMaxV2Failure{Code: "1000", Message: why}
		if code, ok := miniMaxFailures[kind]; ok {
			t.Error.Code = strconv.Itoa(code)
		}
	}
	return t
}

// Error says 400 of a task that is not known.
func (w miniMaxV2) Error(p Problem) Answer {
	status, text := p.usual()
	switch p.Kind {
	case ProblemNoJob, ProblemNotVisible:
		status, text = http.StatusBadRequest, "invalid params, invalid task_id"
	}
	return w.error(status, text)
}

// error is the envelope of an error: the code of MiniMax's own is in the text.
func (miniMaxV2) error(status int, text string) Answer {
	kind, code := "server_error", 1000
	switch status {
	case http.StatusBadRequest, http.StatusNotFound:
		kind, code = "bad_request_error", 2013
	case http.StatusUnauthorized:
		kind, code = "authorized_error", 1004
	case http.StatusPaymentRequired:
		kind, code = "insufficient_balance_error", 1008
	case http.StatusUnprocessableEntity:
		kind, code = "unprocessable_entity_error", 1026
	case http.StatusTooManyRequests:
		kind, code = "rate_limit_error", 1002
	case 529: // HTTP has no name for it
		kind = "overloaded_error"
	}
	return Answer{Status: status, Body: map[string]any{
		"type":       "error",
		"error":      map[string]string{"type": kind, "message": fmt.Sprintf("%s (%d)", text, code), "http_code": strconv.Itoa(status)},
		"request_id": "021785229015510a",
	}}
}
