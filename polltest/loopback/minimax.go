package loopback

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// MiniMax is the wire of the first API of MiniMax: ids in the query, errors as a
// code under HTTP 200, and a second call for the URL of the file. There is no
// cancellation; a canceled or expired job is a failed one.
//
// Sources: the vendor's command line and its pages.
func MiniMax() Wire { return miniMax{} }

type miniMax struct{}

var miniMaxWords = map[jobpoll.State]string{
	jobpoll.StateQueued: "Queueing", jobpoll.StateRunning: "Processing", jobpoll.StateSucceeded: "Success",
	jobpoll.StateFailed: "Fail", jobpoll.StateCanceled: "Fail", jobpoll.StateExpired: "Fail",
}

// miniMaxFile goes before the id of a job in that of its file.
const miniMaxFile = "90"

func (miniMax) ID(n int) string { return fmt.Sprintf("1160%011d", n) }

func (miniMax) Read(r *http.Request, _ json.RawMessage) Call {
	call := Call{Credential: bearer(r, "Bearer")}
	query := r.URL.Query()
	switch r.Method + " " + r.URL.Path {
	case "POST /v1/video_generation":
		call.Op, call.Model = OpSubmit, "video_generation"
	case "GET /v1/query/video_generation":
		call.Op, call.ID = OpStatus, query.Get("task_id")
	case "GET /v1/files/retrieve":
		call.Op, call.ID = OpResult, strings.TrimPrefix(query.Get("file_id"), miniMaxFile)
	}
	return call
}

// miniMaxBase is in all answers.
type miniMaxBase struct {
	Code int    `json:"status_code"`
	Msg  string `json:"status_msg"`
}

func (miniMax) Write(r Reply) Answer {
	base := miniMaxBase{0, "success"}
	if r.Op == OpSubmit {
		return Answer{Status: http.StatusOK, Body: map[string]any{"task_id": r.View.ID, "base_resp": base}}
	}
	if r.Op == OpResult {
		url := r.Output(file(r.View.ID))
		return Answer{Status: http.StatusOK, Body: map[string]any{"file": map[string]any{"file_id": miniMaxFile + r.View.ID, "download_url": url}, "base_resp": base}}
	}
	fileID := ""
	switch r.Entry.State {
	case jobpoll.StateSucceeded:
		fileID = miniMaxFile + r.View.ID
	case jobpoll.StateFailed, jobpoll.StateCanceled, jobpoll.StateExpired:
		base = miniMaxBase{1000, r.Message()}
		if r.filtered() {
			base.Code = 1027
		}
	}
	return Answer{Status: http.StatusOK, Body: map[string]any{
		"task_id": r.View.ID, "status": orNil(r.Word(miniMaxWords)), "file_id": fileID, "base_resp": base,
	}}
}

func (miniMax) Error(p Problem) Answer {
	status, message := usual(p)
	code := 1000
	switch p.Kind {
	case ProblemUnauthorized:
		code, status = 1004, http.StatusOK
	case ProblemBadRequest, ProblemNotReady:
		code, status = 2013, http.StatusOK
	case ProblemRateLimited, ProblemTooManyJobs:
		code, status = 1002, http.StatusOK
	}
	return Answer{Status: status, Body: map[string]any{"base_resp": miniMaxBase{code, message}}}
}
