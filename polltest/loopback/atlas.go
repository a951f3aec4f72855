package loopback

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// Atlas is the wire of Atlas Cloud: an envelope around all, a job that fails
// under HTTP 200 and code 200, and a wrong path that is answered with 401. A job
// that is not visible yet is answered with 404 and 400 by turns. There is no
// call to cancel or list.
//
// Sources: https://www.atlascloud.ai/docs and the vendor's own clients.
func Atlas() Wire { return atlas{} }

type atlas struct{}

var atlasWords = map[jobpoll.State]string{
	jobpoll.StateQueued: "starting", jobpoll.StateRunning: "processing", jobpoll.StateSucceeded: "completed",
	jobpoll.StateFailed: "failed", jobpoll.StateCanceled: "cancelled", jobpoll.StateExpired: "timeout",
}

func (atlas) ID(n int) string { return fmt.Sprintf("a71a5c10%024x", n) }

func (atlas) Read(r *http.Request, _ json.RawMessage) Call {
	call := Call{Credential: bearer(r, "Bearer")}
	path, ok := strings.CutPrefix(r.URL.Path, "/api/v1/model/")
	if !ok {
		return call
	}
	id, isPrediction := strings.CutPrefix(path, "prediction/")
	switch {
	case (path == "generateVideo" || path == "generateImage") && r.Method == http.MethodPost:
		call.Op, call.Model = OpSubmit, path
	case isPrediction && id != "" && !strings.Contains(id, "/") && r.Method == http.MethodGet:
		call.Op, call.ID = OpStatus, id
	}
	return call
}

// atlasEnvelope is around all answers.
type atlasEnvelope struct {
	Code      int    `json:"code"`
	Msg       string `json:"msg"`
	RequestID string `json:"request_id,omitempty"`
	Data      any    `json:"data"`
}

type atlasPrediction struct {
	ID        string `json:"id"`
	Model     string `json:"model,omitempty"`
	Status    any    `json:"status"`
	Outputs   any    `json:"outputs"`
	Error     string `json:"error,omitempty"`
	ErrorCode int    `json:"error_code,omitempty"`
	CreatedAt any    `json:"created_at"`
	NSFW      []bool `json:"has_nsfw_contents,omitempty"`
}

func (atlas) Write(r Reply) Answer {
	var sent struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(r.Input, &sent) // a model of another shape is not shown
	p := atlasPrediction{
		ID: r.View.ID, Model: sent.Model, Status: orNil(r.Word(atlasWords)), CreatedAt: stamp(r.SubmittedAt),
		Outputs: listOf(r.Output([]string{"https://files.example.test/" + r.View.ID + ".mp4"})),
	}
	if r.Entry.State == jobpoll.StateFailed {
		p.Error, p.ErrorCode, p.Outputs = r.Message(), 1039, []string{}
		if f := r.Entry.Failure; f != nil && f.Kind == jobpoll.FailureFiltered {
			p.NSFW = []bool{true}
		}
	}
	return Answer{Status: http.StatusOK, Body: atlasEnvelope{Code: http.StatusOK, Msg: "success", Data: p}}
}

// listOf makes a list of an output that is none.
func listOf(out any) any {
	raw, ok := out.(json.RawMessage)
	if ok && !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) && string(raw) != "null" {
		return []json.RawMessage{raw}
	}
	return out
}

func (atlas) Error(p Problem) Answer {
	code, msg := p.Status, p.Message
	switch p.Kind {
	case ProblemNoPath, ProblemUnauthorized:
		code, msg = http.StatusUnauthorized, "unauthorized"
	case ProblemBadRequest:
		code, msg = http.StatusBadRequest, "invalid request body"
	case ProblemNoJob, ProblemNotReady:
		code, msg = http.StatusNotFound, "prediction not found"
	case ProblemNotVisible:
		code, msg = http.StatusNotFound, "prediction not found"
		if p.Misses%2 == 1 {
			code = http.StatusBadRequest
		}
	case ProblemRateLimited:
		code = http.StatusTooManyRequests
	case ProblemTooManyJobs:
		code, msg = http.StatusTooManyRequests, "too many running predictions"
	}
	if msg == "" {
		msg = strings.ToLower(http.StatusText(code))
	}
	const request = "rq-5c2f1d8e"
	return Answer{
		Status: code,
		Header: http.Header{"X-Request-Id": {request}},
		Body:   atlasEnvelope{Code: code, Msg: msg, RequestID: request, Data: nil},
	}
}
