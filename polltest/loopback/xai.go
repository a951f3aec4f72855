package loopback

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/jobpoll/jobpoll"
)

// XAI is the wire of xAI's videos, below /v1: a look is answered with 202 while the
// job waits or runs. A filtered job is done, and its video says that it was
// blocked. There is no call to cancel or list; a canceled job is failed.
//
// Source: npm @ai-sdk/xai 3.0.138. Not documented are the texts of errors.
func XAI() Wire { return xai{} }

type xai struct{}

var xaiWords = map[jobpoll.State]string{
	jobpoll.StateQueued: "pending", jobpoll.StateRunning: "pending", jobpoll.StateSucceeded: "done",
	jobpoll.StateFailed: "failed", jobpoll.StateCanceled: "failed", jobpoll.StateExpired: "expired",
}

func (xai) ID(n int) string { return fmt.Sprintf("7b1a3c90-51d2-4f0e-9a77-%012x", n) }

func (xai) Read(r *http.Request, body json.RawMessage) Call {
	call := Call{Credential: bearer(r, "Bearer")}
	last, ok := below(r.URL.Path, "/v1/videos/")
	switch {
	case !ok:
	case r.Method == http.MethodPost && (last == "generations" || last == "edits" || last == "extensions"):
		call.Op, call.Model = OpSubmit, member(body, "model")
	case r.Method == http.MethodGet:
		call.Op, call.ID = OpStatus, last
	}
	return call
}

type xaiVideo struct {
	Status   any       `json:"status"`
	Progress int       `json:"progress"`
	Model    string    `json:"model,omitempty"`
	Video    any       `json:"video,omitempty"`
	Error    *arkError `json:"error,omitempty"`
}

func (xai) Write(r Reply) Answer {
	if r.Op == OpSubmit {
		return Answer{Status: http.StatusOK, Body: map[string]string{"request_id": r.View.ID}}
	}
	video := func(url string, respected bool) any {
		return map[string]any{"url": url, "duration": 5, "respect_moderation": respected}
	}
	v := xaiVideo{Status: orNil(r.Word(xaiWords)), Progress: r.percent(), Model: r.View.Model, Video: r.Output(video(r.file(), true))}
	switch kind, why, ok := r.failed(); {
	case r.Entry.State == jobpoll.StateSucceeded:
		v.Progress = 100
	case ok && kind == jobpoll.FailureFiltered:
		v.Status, v.Video = "done", video("", false)
	case ok && kind == jobpoll.FailureRejected:
		v.Error = &arkError{Code: "invalid_argument", Message: why}
	case ok:
		v.Error = &arkError{Code: "internal_error", Message: why}
	}
	if !r.Entry.State.Terminal() {
		return Answer{Status: http.StatusAccepted, Body: v}
	}
	return Answer{Status: http.StatusOK, Body: v}
}

func (xai) Error(p Problem) Answer {
	status, text := p.usual()
	return Answer{Status: status, Body: map[string]string{"code": http.StatusText(status), "error": text}}
}
