package loopback

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// WaveSpeed is the wire of WaveSpeed: an envelope around all, predictions submitted
// to the path of their model below /api/v3, and a look that is also the result.
// There is no call to cancel or list.
//
// Sources: npm wavespeed 0.3.2 and https://wavespeed.ai/docs
func WaveSpeed() Wire { return waveSpeed{} }

type waveSpeed struct{}

var waveSpeedWords = map[jobpoll.State]string{
	jobpoll.StateQueued: "created", jobpoll.StateRunning: "processing", jobpoll.StateSucceeded: "completed",
	jobpoll.StateFailed: "failed", jobpoll.StateCanceled: "cancelled", jobpoll.StateExpired: "timeout",
}

// waveSpeedFailures are the codes of failures; of others it is 5000.
var waveSpeedFailures = map[jobpoll.FailureKind]int{jobpoll.FailureFiltered: 1200, jobpoll.FailureRejected: 1400}

func (waveSpeed) ID(n int) string { return fmt.Sprintf("c0ffee00%024x", n) }

func (waveSpeed) Read(r *http.Request, _ json.RawMessage) Call {
	call := Call{Credential: bearer(r, "Bearer")}
	path, ok := strings.CutPrefix(r.URL.Path, "/api/v3/")
	id, isResult := below(strings.TrimSuffix(path, "/result"), "predictions/")
	switch {
	case !ok || path == "":
	case isResult && id+"/result" == strings.TrimPrefix(path, "predictions/") && r.Method == http.MethodGet:
		call.Op, call.ID = OpStatus, id
	case !strings.HasPrefix(path, "predictions/") && r.Method == http.MethodPost:
		call.Op, call.Model = OpSubmit, path
	}
	return call
}

type waveSpeedEnvelope struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

type waveSpeedPrediction struct {
	ID      string            `json:"id"`
	Model   string            `json:"model"`
	Status  any               `json:"status"`
	Outputs any               `json:"outputs"`
	Error   string            `json:"error"`
	Code    int               `json:"code,omitempty"`
	NSFW    []bool            `json:"has_nsfw_contents"`
	Created any               `json:"created_at"`
	URLs    map[string]string `json:"urls"`
	Timings map[string]int64  `json:"timings"`
}

func (waveSpeed) Write(r Reply) Answer {
	p := waveSpeedPrediction{
		ID: r.View.ID, Model: r.View.Model, Status: orNil(r.Word(waveSpeedWords)), Created: stamp(r.SubmittedAt),
		Outputs: listOf(r.Output([]string{r.file()})), NSFW: []bool{}, Timings: map[string]int64{"inference": 0},
		URLs: map[string]string{"get": r.View.Base + "/api/v3/predictions/" + r.View.ID + "/result"},
	}
	if p.Outputs == nil {
		p.Outputs = []string{}
	} else {
		p.NSFW = []bool{false}
	}
	if !r.EndedAt.IsZero() && !r.StartedAt.IsZero() {
		p.Timings["inference"] = r.EndedAt.Sub(r.StartedAt).Milliseconds()
	}
	if kind, why, ok := r.failed(); ok {
		p.Error, p.Code = why, 5000
		if code, ok := waveSpeedFailures[kind]; ok {
			p.Code = code
		}
	}
	return Answer{Status: http.StatusOK, Body: waveSpeedEnvelope{Code: http.StatusOK, Message: "success", Data: p}}
}

func (waveSpeed) Error(p Problem) Answer {
	status, text := p.usual()
	return Answer{Status: status, Body: waveSpeedEnvelope{Code: status, Message: text}}
}
