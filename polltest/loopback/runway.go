package loopback

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// Runway is the wire of Runway's API: tasks, below /v1, for requests that name a
// version in X-Runway-Version. Jobs beyond Config.MaxJobs, and those with a
// position in their script, are THROTTLED. DELETE cancels a task that has not
// ended; a task that was canceled or deleted is not known any more.
//
// Sources: npm @runwayml/sdk 4.20.1 and https://docs.dev.runwayml.com. Not
// documented are the texts of errors.
func Runway() Wire { return runway{} }

type runway struct{}

var runwayWords = map[jobpoll.State]string{
	jobpoll.StateQueued: "PENDING", jobpoll.StateRunning: "RUNNING", jobpoll.StateSucceeded: "SUCCEEDED",
	jobpoll.StateFailed: "FAILED", jobpoll.StateCanceled: "CANCELLED", jobpoll.StateExpired: "CANCELLED",
}

// runwayCodes are those of failures; of others it is INTERNAL.
var runwayCodes = map[jobpoll.FailureKind]string{
	jobpoll.FailureFiltered: "SAFETY.INPUT.TEXT", jobpoll.FailureRejected: "ASSET.INVALID", jobpoll.FailureNoOutput: "INTERNAL.BAD_OUTPUT.CODE01",
}

func (runway) ID(n int) string { return fmt.Sprintf("17f20503-6c24-4c16-946b-%012x", n) }

func (runway) Read(r *http.Request, body json.RawMessage) Call {
	call := Call{Credential: bearer(r, "Bearer"), Bad: r.Header.Get("X-Runway-Version") == ""}
	id, isTask := below(r.URL.Path, "/v1/tasks/")
	endpoint, isEndpoint := below(r.URL.Path, "/v1/")
	switch {
	case isTask && r.Method == http.MethodGet:
		call.Op, call.ID = OpStatus, id
	case isTask && r.Method == http.MethodDelete:
		call.Op, call.ID, call.Forget = OpCancel, id, true
	case isEndpoint && strings.Contains(endpoint, "_to_") && r.Method == http.MethodPost:
		call.Op, call.Model, call.Queue = OpSubmit, member(body, "model"), true
	}
	return call
}

type runwayTask struct {
	ID          string  `json:"id"`
	Status      any     `json:"status"`
	CreatedAt   any     `json:"createdAt"`
	Progress    float64 `json:"progress,omitempty"`
	Output      any     `json:"output,omitempty"`
	Failure     string  `json:"failure,omitempty"`
	FailureCode string  `json:"failureCode,omitempty"`
}

func (runway) Write(r Reply) Answer {
	switch r.Op {
	case OpSubmit:
		return Answer{Status: http.StatusOK, Body: map[string]string{"id": r.View.ID}}
	case OpCancel:
		return Answer{Status: http.StatusNoContent}
	}
	t := runwayTask{
		ID: r.View.ID, Status: orNil(r.Word(runwayWords)), CreatedAt: stamp(r.SubmittedAt),
		Output: listOf(r.Output([]string{r.file()})),
	}
	if r.Entry.State == jobpoll.StateQueued && r.Entry.Position > 0 && r.Entry.Word == "" {
		t.Status = "THROTTLED"
	}
	if r.Entry.State == jobpoll.StateRunning {
		t.Progress = r.Entry.Progress
	}
	if kind, why, ok := r.failed(); ok {
		t.Failure, t.FailureCode = why, "INTERNAL"
		if code, ok := runwayCodes[kind]; ok {
			t.FailureCode = code
		}
	}
	return Answer{Status: http.StatusOK, Body: t}
}

func (runway) Error(p Problem) Answer {
	status, text := p.usual()
	return Answer{Status: status, Body: map[string]string{"error": text}}
}
