package loopback

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// MiniMax is the wire of MiniMax's video API (Hailuo), in its first version: a code
// in base_resp says what is wrong, under HTTP 200, also of too many calls. A task
// that is done has a file, whose URL is a call of its own. There is no call to
// cancel; a canceled or expired job is failed.
//
// Sources: MiniMax's command line, its npm minimax-mcp-js 0.0.18, which works with
// it, and https://platform.minimax.io. Not documented is the answer to an unknown
// task, here 404.
func MiniMax() Wire { return miniMax{} }

type miniMax struct{}

var miniMaxWords = map[jobpoll.State]string{
	jobpoll.StateQueued: "Queueing", jobpoll.StateRunning: "Processing", jobpoll.StateSucceeded: "Success",
	jobpoll.StateFailed: "Fail", jobpoll.StateCanceled: "Fail", jobpoll.StateExpired: "Fail",
}

// miniMaxFailures are the codes of failures; of others it is 1000.
var miniMaxFailures = map[jobpoll.FailureKind]int{
	jobpoll.FailureFiltered: 1027, jobpoll.FailureRejected: 2013, jobpoll.FailureQuota: 1008, jobpoll.FailurePolicy: 2061,
}

// miniMaxFile goes before the id of a task in that of its file.
const miniMaxFile = "205"

func (miniMax) ID(n int) string { return fmt.Sprintf("106%012d", n) }

func (miniMax) Read(r *http.Request, body json.RawMessage) Call {
	call := Call{Credential: bearer(r, "Bearer")}
	q := r.URL.Query()
	switch {
	case r.URL.Path == "/v1/video_generation" && r.Method == http.MethodPost:
		call.Op, call.Model = OpSubmit, member(body, "model")
	case r.URL.Path == "/v1/query/video_generation" && r.Method == http.MethodGet:
		call.Op, call.ID = OpStatus, q.Get("task_id")
	case r.URL.Path == "/v1/files/retrieve" && r.Method == http.MethodGet:
		call.Op, call.ID = OpResult, strings.TrimPrefix(q.Get("file_id"), miniMaxFile)
	}
	return call
}

type miniMaxBase struct {
	Code int    `json:"status_code"`
	Text string `json:"status_msg"`
}

type miniMaxTask struct {
	ID     string      `json:"task_id"`
	Status any         `json:"status,omitempty"`
	FileID string      `json:"file_id,omitempty"`
	Base   miniMaxBase `json:"base_resp"`
}

func (w miniMax) Write(r Reply) Answer {
	t := miniMaxTask{ID: r.View.ID, Base: miniMaxBase{Text: "success"}}
	switch r.Op {
	case OpSubmit:
		return Answer{Status: http.StatusOK, Body: t}
	case OpResult:
		return w.file(r.View)
	}
	t.Status = orNil(r.Word(miniMaxWords))
	if r.Output("") != nil {
		t.FileID = miniMaxFile + r.View.ID
	}
	if kind, why, ok := r.failed(); ok {
		t.Base = miniMaxBase{Code: 1000, Text: why}
		if code, ok := miniMaxFailures[kind]; ok {
			t.Base.Code = code
		}
	}
	return Answer{Status: http.StatusOK, Body: t}
}

// file is what is told of the file of a task that is done.
func (w miniMax) file(v View) Answer {
	at := v.Output(v.file())
	if at == nil {
		return w.Error(Problem{Kind: ProblemNoJob})
	}
	return Answer{Status: http.StatusOK, Body: map[string]any{
		"file":      map[string]any{"file_id": miniMaxFile + v.ID, "filename": "output.mp4", "purpose": "video_generation", "download_url": at},
		"base_resp": miniMaxBase{Text: "success"},
	}}
}

func (miniMax) Error(p Problem) Answer {
	status, text := p.usual()
	b := miniMaxBase{Code: 1000, Text: text}
	switch status {
	case http.StatusTooManyRequests:
		b.Code, status = 1002, http.StatusOK
	case http.StatusUnauthorized:
		b.Code, status = 1004, http.StatusOK
	case http.StatusBadRequest:
		b.Code, status = 2013, http.StatusOK
	}
	return Answer{Status: status, Body: map[string]any{"base_resp": b}}
}
