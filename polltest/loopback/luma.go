package loopback

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// Luma is the wire of Luma's Dream Machine: generations, below
// /dream-machine/v1. DELETE makes a generation one that is not known; there is
// no call that only cancels. A canceled or expired job is failed.
//
// Sources: npm lumaai 1.19.1 and https://docs.lumalabs.ai. Not documented are the
// texts of errors.
func Luma() Wire { return luma{} }

type luma struct{}

var lumaWords = map[jobpoll.State]string{
	jobpoll.StateQueued: "queued", jobpoll.StateRunning: "dreaming", jobpoll.StateSucceeded: "completed",
	jobpoll.StateFailed: "failed", jobpoll.StateCanceled: "failed", jobpoll.StateExpired: "failed",
}

const lumaPath = "/dream-machine/v1/generations"

func (luma) ID(n int) string { return fmt.Sprintf("9e0d7c5a-3b1f-4e86-a2d4-%012x", n) }

func (luma) Read(r *http.Request, body json.RawMessage) Call {
	call := Call{Credential: bearer(r, "Bearer")}
	id, isOne := below(r.URL.Path, lumaPath+"/")
	switch {
	case r.Method == http.MethodPost && (r.URL.Path == lumaPath || id == "video" || id == "image"):
		call.Op, call.Model = OpSubmit, member(body, "model")
	case r.URL.Path == lumaPath && r.Method == http.MethodGet:
		call.Op = OpList
		if offset := r.URL.Query().Get("offset"); offset != "0" && offset != "" {
			call.Cursor = "-" + offset
		}
	case isOne && r.Method == http.MethodGet:
		call.Op, call.ID = OpStatus, id
	case isOne && r.Method == http.MethodDelete:
		call.Op, call.ID, call.Forget = OpCancel, id, true
	}
	return call
}

type lumaGeneration struct {
	ID      string          `json:"id"`
	Type    string          `json:"generation_type"`
	State   any             `json:"state"`
	Reason  any             `json:"failure_reason"`
	Created any             `json:"created_at"`
	Assets  any             `json:"assets"`
	Model   string          `json:"model,omitempty"`
	Request json.RawMessage `json:"request,omitempty"`
}

func (w luma) Write(r Reply) Answer {
	switch r.Op {
	case OpSubmit:
		return Answer{Status: http.StatusCreated, Body: w.generation(r.View)}
	case OpCancel:
		return Answer{Status: http.StatusNoContent}
	case OpList:
		page := make([]lumaGeneration, len(r.Page))
		for i, v := range r.Page {
			page[i] = w.generation(v)
		}
		return Answer{Status: http.StatusOK, Body: map[string]any{"generations": page, "has_more": r.Next != "", "count": len(page)}}
	}
	return Answer{Status: http.StatusOK, Body: w.generation(r.View)}
}

func (luma) generation(v View) lumaGeneration {
	g := lumaGeneration{
		ID: v.ID, Type: "video", State: orNil(v.Word(lumaWords)), Created: stamp(v.SubmittedAt), Model: v.Model, Request: v.Input,
		Assets: v.Output(map[string]string{"video": v.file()}),
	}
	switch kind, why, ok := v.failed(); {
	case ok && kind == jobpoll.FailureFiltered:
		g.Reason = "moderation: " + why
	case ok:
		g.Reason = why
	case v.Entry.State == jobpoll.StateCanceled, v.Entry.State == jobpoll.StateExpired:
		g.Reason = strings.ToLower(v.Entry.State.String())
	}
	return g
}

func (luma) Error(p Problem) Answer {
	status, text := p.usual()
	return Answer{Status: status, Body: map[string]string{"detail": text}}
}
