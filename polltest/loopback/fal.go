package loopback

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// Fal is the wire of fal's queue: a submission goes to the model with its
// sub-path, all else to /{owner}/{app}/requests/{id}, without it. A status is
// answered with 202 until the request is completed, which says nothing of its
// success. Jobs beyond Config.MaxJobs wait in the queue. The stream of a status
// is not served.
//
// Sources: npm @fal-ai/client 1.10.1 and https://docs.fal.ai/model-apis. Not
// documented are the codes of a cancellation that comes late (here 400), of a
// path with the sub-path (405), and of a result that is asked for too early
// (400; npm @ai-sdk/fal 2.0.59 goes by the text of that answer alone).
func Fal() Wire { return fal{} }

type fal struct{}

var falWords = map[jobpoll.State]string{
	jobpoll.StateQueued: "IN_QUEUE", jobpoll.StateRunning: "IN_PROGRESS", jobpoll.StateSucceeded: "COMPLETED",
	jobpoll.StateFailed: "COMPLETED", jobpoll.StateCanceled: "COMPLETED", jobpoll.StateExpired: "COMPLETED",
}

// falNamespaces stand before the owner in the id of some models.
var falNamespaces = []string{"workflows", "comfy"}

func (fal) ID(n int) string { return fmt.Sprintf("5c2f1d8e-0000-4000-8000-%012x", n) }

func (fal) Read(r *http.Request, _ json.RawMessage) Call {
	call := Call{Credential: bearer(r, "Key", "Bearer")}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	app := 2
	if slices.Contains(falNamespaces, parts[0]) {
		app = 3
	}
	if len(parts) < app {
		return call
	}
	if r.Method == http.MethodPost {
		call.Op, call.Model, call.Queue = OpSubmit, strings.Join(parts, "/"), true
		return call
	}
	call.Misplaced = true
	if len(parts) < app+2 || parts[app] != "requests" {
		return call
	}
	call.Model, call.ID = strings.Join(parts[:app], "/"), parts[app+1]
	call.Logs = r.URL.Query().Get("logs") == "1"
	switch rest := strings.Join(parts[app+2:], "/"); {
	case r.Method == http.MethodGet && rest == "status":
		call.Op = OpStatus
	case r.Method == http.MethodGet && rest == "":
		call.Op = OpResult
	case r.Method == http.MethodPut && rest == "cancel":
		call.Op = OpCancel
	}
	return call
}

// falApp is the model without its sub-path.
func falApp(model string) string {
	parts := strings.Split(model, "/")
	app := 2
	if slices.Contains(falNamespaces, parts[0]) {
		app = 3
	}
	return strings.Join(parts[:min(app, len(parts))], "/")
}

type falStatus struct {
	Status        string      `json:"status"`
	RequestID     string      `json:"request_id"`
	GatewayID     string      `json:"gateway_request_id,omitempty"`
	ResponseURL   string      `json:"response_url"`
	StatusURL     string      `json:"status_url"`
	CancelURL     string      `json:"cancel_url"`
	QueuePosition *int        `json:"queue_position,omitempty"`
	Logs          any         `json:"logs,omitempty"`
	Metrics       *falMetrics `json:"metrics,omitempty"`
	Error         string      `json:"error,omitempty"`
	ErrorType     string      `json:"error_type,omitempty"`
}

type falMetrics struct {
	InferenceTime float64 `json:"inference_time"`
}

type falLog struct {
	Message   string `json:"message"`
	Level     string `json:"level"`
	Source    string `json:"source"`
	Timestamp any    `json:"timestamp"`
}

func (w fal) Write(r Reply) Answer {
	id := http.Header{"X-Fal-Request-Id": {r.View.ID}}
	switch r.Op {
	case OpSubmit:
		s := w.status(r)
		s.GatewayID = s.RequestID
		return Answer{Status: http.StatusOK, Header: id, Body: s}
	case OpStatus:
		s := w.status(r)
		if r.Entry.State.Terminal() {
			return Answer{Status: http.StatusOK, Header: id, Body: s}
		}
		return Answer{Status: http.StatusAccepted, Header: id, Body: s}
	case OpResult:
		return w.result(r, id)
	}
	if r.Late {
		return Answer{Status: http.StatusBadRequest, Header: id, Body: map[string]string{"status": "ALREADY_COMPLETED"}}
	}
	return Answer{Status: http.StatusAccepted, Header: id, Body: map[string]string{"status": "CANCELLATION_REQUESTED"}}
}

func (fal) status(r Reply) falStatus {
	model := r.View.Model
	if model == "" { // of a job that was added: as it was asked for
		model = r.Call.Model
	}
	at := r.Base + "/" + falApp(model) + "/requests/" + r.View.ID
	s := falStatus{
		Status: r.Word(falWords), RequestID: r.View.ID, ResponseURL: at, StatusURL: at + "/status", CancelURL: at + "/cancel",
	}
	if r.Entry.State == jobpoll.StateQueued {
		ahead := max(r.Entry.Position-1, 0)
		s.QueuePosition = &ahead
	}
	if r.Logs {
		s.Logs = []falLog{}
		if line := r.Log(); line != "" {
			s.Logs = []falLog{{Message: line, Level: "INFO", Source: "USER", Timestamp: stamp(r.Now)}}
		}
	}
	if r.Entry.State.Terminal() {
		if e := falFailure(r.View); e.code/100 == 5 || e.code == 499 {
			s.Error, s.ErrorType = e.text, e.kind
		}
		if !r.StartedAt.IsZero() {
			s.Metrics = &falMetrics{InferenceTime: math.Round(r.EndedAt.Sub(r.StartedAt).Seconds()*1e3) / 1e3}
		}
	}
	return s
}

// falError is how a job failed; code zero: it did not. A kind without an
// error_type of fal's is an error of the input, in an array.
type falError struct {
	code       int
	text, kind string
}

func falFailure(v View) falError {
	switch v.Entry.State {
	case jobpoll.StateCanceled:
		return falError{code: 499, text: "Request was cancelled by the client", kind: "client_cancelled"}
	case jobpoll.StateExpired:
		return falError{code: http.StatusGatewayTimeout, text: "Request timed out", kind: "request_timeout"}
	case jobpoll.StateFailed:
	default:
		return falError{}
	}
	e := falError{code: http.StatusInternalServerError, text: v.Message(), kind: "runner_server_error"}
	if f := v.Entry.Failure; f != nil {
		switch f.Kind {
		case jobpoll.FailureFiltered:
			e.code, e.kind = http.StatusUnprocessableEntity, "content_policy_violation"
		case jobpoll.FailureRejected:
			e.code, e.kind = http.StatusUnprocessableEntity, "value_error"
		}
	}
	return e
}

func (fal) result(r Reply, h http.Header) Answer {
	e := falFailure(r.View)
	switch {
	case e.code == 0:
		video := map[string]any{"video": map[string]any{"url": "https://files.example.test/" + r.View.ID + ".mp4", "content_type": "video/mp4"}}
		out := r.Output(video)
		if out == nil {
			out = json.RawMessage("null")
		}
		return Answer{Status: http.StatusOK, Header: h, Body: out}
	case e.code == http.StatusUnprocessableEntity:
		return Answer{Status: e.code, Header: h, Body: falDetail(e.text, e.kind)}
	}
	h.Set("X-Fal-Error-Type", e.kind)
	return Answer{Status: e.code, Header: h, Body: falFlat{Detail: e.text, ErrorType: e.kind}}
}

// falFlat is the error of the infrastructure; those of the input are arrays.
type falFlat struct {
	Detail    string `json:"detail"`
	ErrorType string `json:"error_type,omitempty"`
}

func falDetail(text, kind string) any {
	type item struct {
		Loc  []string `json:"loc"`
		Msg  string   `json:"msg"`
		Type string   `json:"type"`
	}
	return map[string]any{"detail": []item{{Loc: []string{"body", "prompt"}, Msg: text, Type: kind}}}
}

// falErrorTypes are the types that go with a status.
var falErrorTypes = map[int]string{
	http.StatusBadRequest: "bad_request", 499: "client_disconnected", http.StatusInternalServerError: "internal_error",
	http.StatusBadGateway: "runner_incomplete_response", http.StatusServiceUnavailable: "runner_scheduling_failure",
	http.StatusGatewayTimeout: "request_timeout",
}

func (fal) Error(p Problem) Answer {
	a := Answer{Status: p.Status, Header: http.Header{}}
	text, kind := p.Message, ""
	switch p.Kind {
	case ProblemScripted:
		kind = falErrorTypes[p.Status]
	case ProblemNoPath:
		a.Status, text = http.StatusNotFound, "Not Found"
		if p.Call.Misplaced {
			a.Status, text = http.StatusMethodNotAllowed, "Method Not Allowed"
		}
	case ProblemBadRequest:
		return Answer{Status: http.StatusUnprocessableEntity, Body: falDetail("Field required", "missing")}
	case ProblemUnauthorized:
		a.Status, text = http.StatusUnauthorized, "Authentication is required to access this application."
	case ProblemNoJob, ProblemNotVisible:
		if p.Call.Op == OpCancel {
			return Answer{Status: http.StatusNotFound, Body: map[string]string{"status": "NOT_FOUND"}}
		}
		a.Status, text = http.StatusNotFound, "Request not found"
	case ProblemNotReady:
		a.Status, text = http.StatusBadRequest, "Request is still in progress"
	case ProblemRateLimited, ProblemTooManyJobs:
		a.Status = http.StatusTooManyRequests
	}
	if text == "" {
		text = http.StatusText(a.Status)
	}
	if kind != "" {
		a.Header.Set("X-Fal-Error-Type", kind)
	}
	a.Body = falFlat{Detail: text, ErrorType: kind}
	return a
}
