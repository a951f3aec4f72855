package loopback

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// Replicate is the wire of Replicate's HTTP API: predictions, of a model, of a
// deployment or of a version, below /v1. A create with "Prefer: wait" is held
// open for as long as it says, a minute at most, and Cancel-After is a deadline.
// A percentage in a script goes into the logs, where provider.Replicate does not
// read it: a job of this wire shows no progress.
//
// Sources: npm replicate 1.4.0, @ai-sdk/replicate 2.0.57, which knows no "aborted",
// and https://replicate.com/docs/reference/http.
func Replicate() Wire { return replicate{} }

type replicate struct{}

// longestHold is how long Prefer: wait waits at most.
const longestHold = time.Minute

var replicateWords = map[jobpoll.State]string{
	jobpoll.StateQueued: "starting", jobpoll.StateRunning: "processing", jobpoll.StateSucceeded: "succeeded",
	jobpoll.StateFailed: "failed", jobpoll.StateCanceled: "canceled", jobpoll.StateExpired: "aborted",
}

// prediction is the object of the API. urls.stream is not served.
type prediction struct {
	ID          string            `json:"id"`
	Model       string            `json:"model"`
	Version     string            `json:"version"`
	Input       any               `json:"input"`
	Logs        string            `json:"logs"`
	Output      any               `json:"output"`
	DataRemoved bool              `json:"data_removed"`
	Error       any               `json:"error"`
	Source      string            `json:"source"`
	Status      any               `json:"status"`
	CreatedAt   any               `json:"created_at"`
	StartedAt   any               `json:"started_at"`
	CompletedAt any               `json:"completed_at"`
	Metrics     *predictionTimes  `json:"metrics,omitempty"`
	URLs        map[string]string `json:"urls"`
}

type predictionTimes struct {
	Predict float64 `json:"predict_time"`
	Total   float64 `json:"total_time"`
}

func (replicate) ID(n int) string { return fmt.Sprintf("rm0cpred%018d", n) }

func (replicate) Read(r *http.Request, _ json.RawMessage) Call {
	call := Call{Credential: bearer(r, "Bearer", "Token")}
	path, ok := strings.CutPrefix(r.URL.Path, "/v1/")
	if !ok {
		return call
	}
	parts := strings.Split(strings.TrimSuffix(path, "/"), "/")
	get, post := r.Method == http.MethodGet, r.Method == http.MethodPost
	switch {
	case len(parts) == 1 && parts[0] == "predictions" && get:
		call.Op, call.Cursor = OpList, r.URL.Query().Get("cursor")
	case len(parts) == 1 && parts[0] == "predictions" && post:
		call.Op = OpSubmit
	case len(parts) == 4 && (parts[0] == "models" || parts[0] == "deployments") && parts[3] == "predictions" && post:
		call.Op, call.Model = OpSubmit, parts[1]+"/"+parts[2]
	case len(parts) == 2 && parts[0] == "predictions" && get:
		call.Op, call.ID = OpStatus, parts[1]
	case len(parts) == 3 && parts[0] == "predictions" && parts[2] == "cancel" && post:
		call.Op, call.ID = OpCancel, parts[1]
	}
	if call.Op == OpSubmit {
		call.Hold = preferredWait(r.Header.Get("Prefer"))
		call.Deadline = cancelAfter(r.Header.Get("Cancel-After"))
	}
	return call
}

// preferredWait reads "wait" and "wait=5".
func preferredWait(prefer string) time.Duration {
	word, value, given := strings.Cut(strings.TrimSpace(prefer), "=")
	if word != "wait" {
		return 0
	}
	n, err := strconv.Atoi(value)
	if !given || err != nil || n > int(longestHold/time.Second) {
		return longestHold
	}
	return time.Duration(n) * time.Second
}

// cancelAfter reads seconds, or a duration such as 1m.
func cancelAfter(text string) time.Duration {
	if n, err := strconv.Atoi(text); err == nil {
		text = strconv.Itoa(n) + "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return max(d, 0)
}

func (w replicate) Write(r Reply) Answer {
	switch r.Op {
	case OpSubmit:
		return Answer{Status: http.StatusCreated, Body: w.prediction(r.View)}
	case OpList:
		results := make([]prediction, len(r.Page))
		for i, v := range r.Page {
			results[i] = w.prediction(v)
		}
		var next, previous any
		if r.Next != "" {
			next = r.Base + "/v1/predictions?cursor=" + url.QueryEscape(r.Next)
		}
		return Answer{Status: http.StatusOK, Body: struct {
			Previous any          `json:"previous"`
			Next     any          `json:"next"`
			Results  []prediction `json:"results"`
		}{previous, next, results}}
	}
	return Answer{Status: http.StatusOK, Body: w.prediction(r.View)}
}

func (replicate) prediction(v View) prediction {
	var sent struct {
		Input   json.RawMessage `json:"input"`
		Version string          `json:"version"`
	}
	_ = json.Unmarshal(v.Input, &sent) // an input of another shape is not shown
	p := prediction{
		ID: v.ID, Model: v.Model, Version: sent.Version, Source: "api", Status: orNil(v.Word(replicateWords)),
		Output: v.Output("https://files.example.test/" + v.ID + ".mp4"), DataRemoved: v.Expired,
		CreatedAt: stamp(v.SubmittedAt), StartedAt: stamp(v.StartedAt), CompletedAt: stamp(v.EndedAt),
		URLs: map[string]string{
			"get":    v.Base + "/v1/predictions/" + v.ID,
			"cancel": v.Base + "/v1/predictions/" + v.ID + "/cancel",
		},
	}
	if p.Version == "" {
		p.Version = "hidden"
	}
	if v.Expired {
		p.Input = struct{}{}
	} else if sent.Input != nil {
		p.Input = sent.Input
	}
	if line := v.Log(); line != "" {
		p.Logs = line + "\n"
	}
	if v.Entry.State == jobpoll.StateFailed {
		p.Error = v.Message()
	}
	if !v.EndedAt.IsZero() && !v.StartedAt.IsZero() {
		p.Metrics = &predictionTimes{Predict: v.EndedAt.Sub(v.StartedAt).Seconds(), Total: v.EndedAt.Sub(v.SubmittedAt).Seconds()}
	}
	return p
}

// replicateError is the error body; title and status are not always there.
type replicateError struct {
	Title  string `json:"title,omitempty"`
	Detail string `json:"detail"`
	Status int    `json:"status,omitempty"`
}

func (replicate) Error(p Problem) Answer {
	e := replicateError{Status: p.Status, Detail: p.Message}
	switch p.Kind {
	case ProblemNoPath, ProblemNoJob, ProblemNotVisible, ProblemNotReady:
		e = replicateError{Detail: "The requested resource could not be found.", Status: http.StatusNotFound}
	case ProblemBadRequest:
		e = replicateError{Title: "Input validation failed", Detail: "- input is required", Status: http.StatusUnprocessableEntity}
	case ProblemUnauthorized:
		e = replicateError{Title: "Unauthenticated", Detail: "You did not pass a valid authentication token", Status: http.StatusUnauthorized}
	case ProblemRateLimited:
		e.Status = http.StatusTooManyRequests
	case ProblemTooManyJobs:
		e = replicateError{Detail: "Request was throttled. Too many predictions are running.", Status: http.StatusTooManyRequests}
	}
	if e.Detail == "" {
		e.Detail = http.StatusText(e.Status)
	}
	return Answer{Status: e.Status, Body: e}
}
