package loopback

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// Kling is the wire of the first API of Kling: an envelope with codes of its own,
// times in milliseconds, and tasks that are found below the path that made them.
// There is no cancellation; a canceled or expired job is a failed one.
//
// Sources: copies of the vendor's documents.
func Kling() Wire { return kling{} }

type kling struct{}

var klingWords = map[jobpoll.State]string{
	jobpoll.StateQueued: "submitted", jobpoll.StateRunning: "processing", jobpoll.StateSucceeded: "succeed",
	jobpoll.StateFailed: "failed", jobpoll.StateCanceled: "failed", jobpoll.StateExpired: "failed",
}

func (kling) ID(n int) string { return fmt.Sprintf("8312%012d", n) }

func (kling) Read(r *http.Request, _ json.RawMessage) Call {
	call := Call{Credential: bearer(r, "Bearer")}
	path, ok := strings.CutPrefix(r.URL.Path, "/v1/videos/")
	family, id, below := strings.Cut(path, "/")
	switch {
	case !ok || family == "":
	case !below && r.Method == http.MethodPost:
		call.Op, call.Model = OpSubmit, family
	case below && id != "" && !strings.Contains(id, "/") && r.Method == http.MethodGet:
		call.Op, call.ID = OpStatus, id
	}
	return call
}

// klingEnvelope is around all answers.
type klingEnvelope struct {
	Code      int    `json:"code"`
	Message   string `json:"message"`
	RequestID string `json:"request_id"`
	Data      any    `json:"data,omitempty"`
}

const klingRequest = "rq-5c2f1d8e"

func (kling) Write(r Reply) Answer {
	updated := r.Now
	if !r.EndedAt.IsZero() {
		updated = r.EndedAt
	}
	data := map[string]any{
		"task_id": r.View.ID, "task_status": orNil(r.Word(klingWords)),
		"created_at": r.SubmittedAt.UnixMilli(), "updated_at": updated.UnixMilli(),
	}
	if word := klingWords[r.Entry.State]; word == "failed" {
		data["task_status_msg"] = r.Message()
		if r.filtered() {
			data["task_status_msg"] = "blocked by policy: " + r.Message()
		}
	}
	if r.Entry.State == jobpoll.StateSucceeded {
		data["task_result"] = map[string]any{"videos": r.Output([]map[string]string{{"id": r.View.ID, "url": file(r.View.ID), "duration": "5.0"}})}
	}
	return Answer{Status: http.StatusOK, Body: klingEnvelope{Message: "SUCCEED", RequestID: klingRequest, Data: data}}
}

func (kling) Error(p Problem) Answer {
	status, message := usual(p)
	code := 5000
	switch p.Kind {
	case ProblemNoPath:
		code = 1202
	case ProblemBadRequest:
		code = 1200
	case ProblemUnauthorized:
		code = 1000
	case ProblemNoJob, ProblemNotVisible:
		code = 1203
	case ProblemRateLimited:
		code = 1302
	case ProblemTooManyJobs:
		code = 1303
	}
	return Answer{Status: status, Body: klingEnvelope{Code: code, Message: message, RequestID: klingRequest}}
}
