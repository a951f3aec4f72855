package loopback

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// Runway is the wire of Runway's tasks: progress from 0 to 1 while a task runs,
// codes of failures, and a DELETE that cancels. An expired job is a failed one.
//
// Sources: https://docs.dev.runwayml.com and the vendor's SDK.
func Runway() Wire { return runway{} }

type runway struct{}

var runwayWords = map[jobpoll.State]string{
	jobpoll.StateQueued: "PENDING", jobpoll.StateRunning: "RUNNING", jobpoll.StateSucceeded: "SUCCEEDED",
	jobpoll.StateFailed: "FAILED", jobpoll.StateCanceled: "CANCELLED", jobpoll.StateExpired: "FAILED",
}

func (runway) ID(n int) string { return fmt.Sprintf("17f20503-6c24-4c16-946b-%012x", n) }

func (runway) Read(r *http.Request, _ json.RawMessage) Call {
	call := Call{Credential: bearer(r, "Bearer")}
	if id, ok := oneBelow(r.URL.Path, "/v1/tasks/"); ok {
		switch r.Method {
		case http.MethodGet:
			call.Op, call.ID = OpStatus, id
		case http.MethodDelete:
			call.Op, call.ID = OpCancel, id
		}
		return call
	}
	if endpoint, ok := oneBelow(r.URL.Path, "/v1/"); ok && strings.HasSuffix(endpoint, "_to_video") && r.Method == http.MethodPost {
		call.Op, call.Model = OpSubmit, endpoint
	}
	return call
}

func (runway) Write(r Reply) Answer {
	switch r.Op {
	case OpSubmit:
		return Answer{Status: http.StatusOK, Body: map[string]any{"id": r.View.ID}}
	case OpCancel:
		return Answer{Status: http.StatusNoContent}
	}
	body := map[string]any{"id": r.View.ID, "status": orNil(r.Word(runwayWords)), "createdAt": stamp(r.SubmittedAt)}
	switch r.Entry.State {
	case jobpoll.StateRunning:
		body["progress"] = r.Entry.Progress
	case jobpoll.StateSucceeded:
		body["output"] = atlasOutputs(r.Output([]string{file(r.View.ID)}))
	case jobpoll.StateFailed, jobpoll.StateExpired:
		body["failure"], body["failureCode"] = r.Message(), "INTERNAL.BAD_OUTPUT.CODE01"
		if r.filtered() {
			body["failureCode"] = "SAFETY.OUTPUT.VIDEO"
		}
	}
	return Answer{Status: http.StatusOK, Body: body}
}

func (runway) Error(p Problem) Answer {
	status, message := usual(p)
	return Answer{Status: status, Body: map[string]string{"error": message}}
}
