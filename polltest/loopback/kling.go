package loopback

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// Kling is the wire of both generations of Kling's API: an envelope with a code
// around all. A task of the first one ("/v1/videos/text2video") is asked for below
// the path it was submitted to; one of the 3.x API, which has the model in the path
// ("/text-to-video/kling-3.0"), by GET /tasks?task_ids=, with others or alone. There is
// no call to cancel; a canceled or expired job is failed.
//
// A task can have an id of the caller's, the external_task_id of its submission, in
// the 3.x API in options. It stands in the place of the task's own in the path of the
// first API, and in GET /tasks?external_task_ids=. No two tasks have the same one.
//
// Sources: copies of Kling's documents and five clients, of which npm kling-api
// 1.0.0 works with the first API. Not verified: the shape of the answer to a 3.x look,
// here a list, and to a submission with an external_task_id that is taken, here 400.
func Kling() Wire { return kling{} }

type kling struct{}

var klingWords = map[jobpoll.State]string{
	jobpoll.StateQueued: "submitted", jobpoll.StateRunning: "processing", jobpoll.StateSucceeded: "succeed",
	jobpoll.StateFailed: "failed", jobpoll.StateCanceled: "failed", jobpoll.StateExpired: "failed",
}

func (kling) ID(n int) string { return fmt.Sprintf("8%017d", n) }

func (kling) Read(r *http.Request, body json.RawMessage) Call {
	call := Call{Credential: bearer(r, "Bearer")}
	parts := strings.Split(strings.Trim(r.URL.EscapedPath(), "/"), "/")
	first := len(parts) >= 3 && parts[0] == "v1" && (parts[1] == "videos" || parts[1] == "images")
	switch {
	case r.Method == http.MethodPost && (first && len(parts) == 3 || len(parts) == 2 && parts[0] != "v1"):
		call.Op, call.Model, call.OwnID = OpSubmit, r.URL.Path, klingOwnID(r.URL.Path, body)
	case r.Method == http.MethodGet && first && len(parts) == 4:
		call.Op, call.Model = OpStatus, "/"+strings.Join(parts[:3], "/")
		call.ID, _ = url.PathUnescape(parts[3]) // net/http has done so
	case r.Method == http.MethodGet && r.URL.Path == "/tasks":
		ids, own := r.URL.Query().Get("task_ids"), r.URL.Query().Get("external_task_ids")
		call.ByOwnID = ids == "" && own != ""
		call.Op, call.Only = OpList, strings.Split(cmp.Or(ids, own), ",")
		call.Limit = len(call.Only)
	}
	return call
}

// klingOwnID is the caller's id in the body of a submission to a path.
func klingOwnID(path string, body json.RawMessage) string {
	const name = "external_task_id"
	if strings.HasPrefix(path, "/v1/") {
		return member(body, name)
	}
	var input struct {
		Options json.RawMessage `json:"options"`
	}
	_ = json.Unmarshal(body, &input) // the server refuses what is no object
	return member(input.Options, name)
}

type klingEnvelope struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Request string `json:"request_id"`
	Data    any    `json:"data,omitempty"`
}

type klingTask struct {
	ID      string `json:"task_id"`
	Status  any    `json:"task_status"`
	Message string `json:"task_status_msg"`
	Info    any    `json:"task_info,omitempty"`
	Result  any    `json:"task_result,omitempty"`
	Created int64  `json:"created_at"`
	Updated int64  `json:"updated_at"`
}

// kling3Task is one of the 3.x API.
type kling3Task struct {
	ID      string `json:"id"`
	Own     string `json:"external_id,omitempty"`
	Status  any    `json:"status"`
	Message string `json:"message"`
	Outputs any    `json:"outputs,omitempty"`
	Created int64  `json:"create_time"`
	Updated int64  `json:"update_time"`
}

type klingVideo struct {
	ID       string `json:"id"`
	URL      string `json:"url"`
	Duration string `json:"duration"`
}

const klingRequest = "rq-5c2f1d8e"

func (w kling) Write(r Reply) Answer {
	e := klingEnvelope{Message: "SUCCEED", Request: klingRequest}
	of := r.View.Model
	if of == "" { // of a job that was added: as it was asked for
		of = r.Call.Model
	}
	switch {
	case r.Op == OpList:
		tasks := []kling3Task{}
		for _, v := range r.Page {
			if !strings.HasPrefix(v.Model, "/v1/") { // the first API's are not in it
				tasks = append(tasks, w.third(v))
			}
		}
		e.Data = tasks
	case of != r.Call.Model && r.Call.Model != "": // another endpoint knows it not
		return w.Error(Problem{Kind: ProblemNoJob})
	case strings.HasPrefix(of, "/v1/"):
		e.Data = w.first(r.View)
	default:
		e.Data = w.third(r.View)
	}
	return Answer{Status: http.StatusOK, Body: e}
}

func (w kling) first(v View) klingTask {
	t := klingTask{
		ID: v.ID, Status: orNil(v.Word(klingWords)), Message: w.why(v),
		Created: v.SubmittedAt.UnixMilli(), Updated: v.changed().UnixMilli(),
	}
	if own := klingOwnID(v.Model, v.Input); own != "" {
		t.Info = map[string]string{"external_task_id": own}
	}
	if out := w.output(v); out != nil {
		t.Result = map[string]any{"videos": out}
	}
	return t
}

func (w kling) third(v View) kling3Task {
	t := kling3Task{
		ID: v.ID, Own: klingOwnID(v.Model, v.Input), Status: orNil(v.Word(klingWords)), Message: w.why(v), Outputs: w.output(v),
		Created: v.SubmittedAt.UnixMilli(), Updated: v.changed().UnixMilli(),
	}
	if t.Status == "succeed" {
		t.Status = "succeeded"
	}
	return t
}

func (kling) output(v View) any {
	return v.Output([]klingVideo{{ID: "v-" + v.ID, URL: v.file(), Duration: "5.0"}})
}

func (kling) why(v View) string {
	switch kind, why, ok := v.failed(); {
	case ok && kind == jobpoll.FailureFiltered:
		return "Failure to pass the risk control system: " + why
	case ok:
		return why
	}
	return ""
}

func (kling) Error(p Problem) Answer {
	status, text := p.usual()
	codes := map[int]int{
		http.StatusBadRequest: 1201, http.StatusUnauthorized: 1000, http.StatusForbidden: 1103, http.StatusNotFound: 1203,
		http.StatusTooManyRequests: 1302, http.StatusServiceUnavailable: 5001, http.StatusGatewayTimeout: 5002,
	}
	e := klingEnvelope{Code: codes[status], Message: text, Request: klingRequest}
	switch {
	case p.Kind == ProblemTooManyJobs:
		e.Code = 1303
	case p.Kind == ProblemNoPath:
		e.Code = 1202
	case e.Code == 0:
		e.Code = 5000
	}
	return Answer{Status: status, Body: e}
}
