package loopback

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// OpenAI is the wire of OpenAI's Videos API, which lives on in gateways: videos,
// below /v1, submitted as JSON or as multipart/form-data. The bytes of a video are
// a call of their own. DELETE makes a video one that is not known; there is no
// call that only cancels. A canceled job is "cancelled", a word of gateways'; an
// expired one is failed. Config.Retry of RetryMillis is what its SDKs read. A list is
// newest first, whatever its order says.
//
// Sources: npm openai 7.59.0 and Go openai-go 3.8.1 and 3.99.0, which work with it. Not
// verified: the status of a video's bytes before it is done, here 404.
func OpenAI() Wire { return openAI{} }

type openAI struct{}

var openAIWords = map[jobpoll.State]string{
	jobpoll.StateQueued: "queued", jobpoll.StateRunning: "in_progress", jobpoll.StateSucceeded: "completed",
	jobpoll.StateFailed: "failed", jobpoll.StateCanceled: "cancelled", jobpoll.StateExpired: "failed",
}

func (openAI) ID(n int) string { return fmt.Sprintf("video_68e0a1b2%024d", n) }

func (openAI) Read(r *http.Request, body json.RawMessage) Call {
	call := Call{Credential: bearer(r, "Bearer")}
	id, isOne := below(r.URL.Path, "/v1/videos/")
	content, isContent := below(strings.TrimSuffix(r.URL.Path, "/content"), "/v1/videos/")
	switch {
	case r.URL.Path == "/v1/videos" && r.Method == http.MethodPost:
		call.Op, call.Body = OpSubmit, formInput(r, body)
		if call.Body != nil {
			body = call.Body
		}
		call.Model = member(body, "model")
	case r.URL.Path == "/v1/videos" && r.Method == http.MethodGet:
		call.Op, call.After = OpList, r.URL.Query().Get("after")
		call.Limit, _ = strconv.Atoi(r.URL.Query().Get("limit"))
	case isOne && r.Method == http.MethodGet:
		call.Op, call.ID = OpStatus, id
	case isOne && r.Method == http.MethodDelete:
		call.Op, call.ID, call.Forget = OpCancel, id, true
	case isContent && r.Method == http.MethodGet:
		call.Op, call.ID = OpResult, content
	}
	return call
}

type openAIVideo struct {
	ID        string       `json:"id"`
	Object    string       `json:"object"`
	Model     string       `json:"model"`
	Status    any          `json:"status"`
	Progress  int          `json:"progress"`
	Created   any          `json:"created_at"`
	Completed any          `json:"completed_at"`
	Expires   any          `json:"expires_at"`
	Prompt    any          `json:"prompt"`
	Seconds   string       `json:"seconds"`
	Size      string       `json:"size"`
	Remixed   any          `json:"remixed_from_video_id"`
	Error     *openAIError `json:"error"`
}

type openAIError struct {
	Code    any    `json:"code"`
	Message string `json:"message"`
	Type    string `json:"type,omitempty"`
}

func (w openAI) Write(r Reply) Answer {
	switch r.Op {
	case OpCancel:
		return Answer{Status: http.StatusOK, Body: map[string]any{"id": r.View.ID, "object": "video.deleted", "deleted": true}}
	case OpResult:
		if r.Entry.State != jobpoll.StateSucceeded || r.Expired {
			return w.Error(Problem{Kind: ProblemNotReady})
		}
		return Answer{Status: http.StatusOK, Header: http.Header{"Content-Type": {"video/mp4"}}, Body: []byte("the video " + r.View.ID)}
	case OpList:
		page := make([]openAIVideo, len(r.Page))
		for i, v := range r.Page {
			page[i] = w.video(v)
		}
		list := map[string]any{"object": "list", "data": page, "has_more": r.Next != "", "first_id": nil, "last_id": nil}
		if len(page) > 0 {
			list["first_id"], list["last_id"] = page[0].ID, page[len(page)-1].ID
		}
		return Answer{Status: http.StatusOK, Body: list}
	}
	return Answer{Status: http.StatusOK, Body: w.video(r.View)}
}

func (openAI) video(x View) openAIVideo {
	v := openAIVideo{
		ID: x.ID, Object: "video", Model: x.Model, Status: orNil(x.Word(openAIWords)), Progress: x.percent(),
		Created: unix(x.SubmittedAt), Completed: unix(x.EndedAt), Prompt: orNil(member(x.Input, "prompt")),
		Seconds: cmp.Or(member(x.Input, "seconds"), "4"), Size: cmp.Or(member(x.Input, "size"), "720x1280"),
	}
	switch kind, why, ok := x.failed(); {
	case x.Entry.State == jobpoll.StateSucceeded:
		v.Progress = 100
		if x.Entry.Expires > 0 {
			v.Expires = unix(x.EndedAt.Add(x.Entry.Expires))
		}
	case ok && kind == jobpoll.FailureFiltered:
		v.Error = &openAIError{Code: "moderation_blocked", Message: why}
	case ok:
		v.Error = &openAIError{Code: "video_generation_failed", Message: why}
	case x.Entry.State == jobpoll.StateExpired:
		v.Error = &openAIError{Code: "timeout", Message: "the job took too long"}
	}
	return v
}

func (openAI) Error(p Problem) Answer {
	status, text := p.usual()
	e := openAIError{Message: text, Type: "invalid_request_error"}
	switch {
	case status == http.StatusUnauthorized:
		e.Code = "invalid_api_key"
	case status == http.StatusTooManyRequests:
		e.Code, e.Type = "rate_limit_exceeded", "requests"
	case status >= http.StatusInternalServerError:
		e.Type = "server_error"
	}
	return Answer{Status: status, Body: map[string]any{"error": e}}
}
