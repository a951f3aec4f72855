package loopback

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// Veo is the wire of Google's Veo at the Gemini API: long-running operations below
// models, for keys in X-Goog-Api-Key, or "key" in the query. The id of a job is the
// last part of its operation's name ("models/veo-x/operations/ID"). A filtered
// job is done without an error and without a video; other failures have an error
// of google.rpc.Code. There is no word for a job that waits. The bytes of a video are
// a call of their own, "files/ID:download", with the key.
//
// Sources: Go google.golang.org/genai 1.77.0, which works with it, and
// https://google.aip.dev/151. Not verified at Google itself: the "@type" of a response,
// which public code has.
func Veo() Wire { return google{of: atGemini} }

// VertexVeo is the wire of Google's Veo at Vertex AI, where an operation is asked
// for by a POST to its model. In all else but the bytes of a video it is Veo;
// keys are Bearer tokens.
//
// Sources: npm @ai-sdk/google-vertex 4.0.208 and Go google.golang.org/genai 1.77.0,
// which work with it, and the documents of Vertex AI for a response.
func VertexVeo() Wire { return google{of: atVertex} }

// GoogleLRO is the wire of a service with long-running operations by AIP-151, below
// any version: a POST to "/v1/projects/p/videos:generate" starts
// "projects/p/operations/ID", and a POST to that with ":cancel" cancels. The output
// is the whole response: where a script gives none, with a "@type" of an example.
// Keys are Bearer tokens.
//
// Sources: https://google.aip.dev/151, and Google's types of operations for Go, which
// read its answers.
func GoogleLRO() Wire { return google{of: atService} }

type googleKind uint8

const (
	atGemini googleKind = iota
	atVertex
	atService
)

type google struct{ of googleKind }

func (google) ID(n int) string { return fmt.Sprintf("op%012d", n) }

// Read takes the model of a call, or what else its operations are below, as
// Call.Model.
func (w google) Read(r *http.Request, body json.RawMessage) Call {
	call := Call{Credential: bearer(r, "Bearer")}
	if w.of == atGemini {
		call.Credential = r.Header.Get("X-Goog-Api-Key")
		if call.Credential == "" {
			call.Credential = r.URL.Query().Get("key")
		}
	}
	_, path, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/") // without the version
	name, verb, _ := strings.Cut(path, ":")
	get, post := r.Method == http.MethodGet, r.Method == http.MethodPost
	if w.of == atVertex && verb == "fetchPredictOperation" && post {
		name, verb, get = member(body, "operationName"), "", true
	} else if w.of == atVertex {
		get = false
	}
	parent, id, isOperation := strings.Cut(name, "/operations/")
	switch {
	case isOperation && id != "" && verb == "" && get:
		call.Op, call.Model, call.ID = OpStatus, parent, id
	case isOperation && id != "" && verb == "cancel" && post && w.of == atService:
		call.Op, call.Model, call.ID = OpCancel, parent, id
	case isOperation:
	case w.of == atGemini && verb == "download" && get:
		if id, isFile := below(name, "files/"); isFile {
			call.Op, call.ID = OpResult, id
		}
	case w.of == atService && verb != "" && post:
		call.Op, call.Model = OpSubmit, name[:max(strings.LastIndexByte(name, '/'), 0)]
	case verb == "predictLongRunning" && post:
		call.Op, call.Model = OpSubmit, name
	}
	return call
}

type googleOperation struct {
	Name     string       `json:"name"`
	Done     bool         `json:"done,omitempty"`
	Error    *googleError `json:"error,omitempty"`
	Response any          `json:"response,omitempty"`
}

type googleError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Status  string `json:"status,omitempty"`
	Details []any  `json:"details,omitempty"`
}

// googleCodes are those of google.rpc.Code for failures; of others it is 13.
var googleCodes = map[jobpoll.FailureKind]int{
	jobpoll.FailureRejected: 3, jobpoll.FailurePolicy: 7, jobpoll.FailureQuota: 8,
}

func (w google) Write(r Reply) Answer {
	switch r.Op {
	case OpCancel:
		return Answer{Status: http.StatusOK, Body: struct{}{}}
	case OpResult:
		if r.Entry.State != jobpoll.StateSucceeded || r.Expired {
			return w.Error(Problem{Kind: ProblemNotReady})
		}
		return Answer{Status: http.StatusOK, Header: http.Header{"Content-Type": {"video/mp4"}}, Body: []byte("the video " + r.View.ID)}
	}
	parent := r.View.Model
	if parent == "" { // of a job that was added: as it was asked for
		parent = r.Call.Model
	}
	o := googleOperation{Name: strings.TrimPrefix(parent+"/operations/"+r.View.ID, "/")}
	if r.Op == OpSubmit {
		return Answer{Status: http.StatusOK, Body: o}
	}
	o.Done = r.Entry.State.Terminal()
	kind, why, failed := r.failed()
	switch {
	case r.Entry.State == jobpoll.StateSucceeded:
		o.Response = w.response(r.View)
	case failed && kind == jobpoll.FailureFiltered && w.of != atService:
		o.Response = w.filtered(why)
	case failed:
		o.Error = &googleError{Code: 13, Message: why}
		if code, ok := googleCodes[kind]; ok {
			o.Error.Code = code
		}
	case r.Entry.State == jobpoll.StateCanceled:
		o.Error = &googleError{Code: 1, Message: "The operation was cancelled."}
	case r.Entry.State == jobpoll.StateExpired:
		o.Error = &googleError{Code: 4, Message: "The deadline passed."}
	}
	return Answer{Status: http.StatusOK, Body: o}
}

// googleTypes are those of responses, which JSON of protocol buffers tells.
var googleTypes = [...]string{
	atGemini:  "type.googleapis.com/google.ai.generativelanguage.v1beta.PredictLongRunningResponse",
	atVertex:  "type.googleapis.com/cloud.ai.large_models.vision.GenerateVideoResponse",
	atService: "type.googleapis.com/example.v1.Video",
}

// response is that of an operation that succeeded. The output of a script is the
// list of videos, or of samples.
func (w google) response(v View) any {
	type object = map[string]any
	switch w.of {
	case atGemini:
		samples := v.Output([]object{{"video": object{"uri": v.Base + "/v1beta/files/" + v.ID + ":download?alt=media"}}})
		return object{"@type": googleTypes[w.of], "generateVideoResponse": object{"generatedSamples": samples}}
	case atVertex:
		videos := v.Output([]object{{"gcsUri": "gs://bucket.example.test/" + v.ID + ".mp4", "mimeType": "video/mp4"}})
		return object{"@type": googleTypes[w.of], "raiMediaFilteredCount": 0, "videos": videos}
	}
	return v.Output(object{"@type": googleTypes[w.of], "uri": v.file()})
}

// filtered is the response of an operation whose video was taken away.
func (w google) filtered(why string) any {
	taken := map[string]any{"raiMediaFilteredCount": 1, "raiMediaFilteredReasons": []string{why}}
	if w.of == atGemini {
		taken = map[string]any{"generateVideoResponse": taken}
	}
	taken["@type"] = googleTypes[w.of]
	return taken
}

// googleStatuses are the names of errors.
var googleStatuses = map[int]string{
	http.StatusBadRequest: "INVALID_ARGUMENT", http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusForbidden: "PERMISSION_DENIED",
	http.StatusNotFound: "NOT_FOUND", http.StatusTooManyRequests: "RESOURCE_EXHAUSTED", http.StatusInternalServerError: "INTERNAL",
	http.StatusServiceUnavailable: "UNAVAILABLE", http.StatusGatewayTimeout: "DEADLINE_EXCEEDED",
}

func (google) Error(p Problem) Answer {
	status, text := p.usual()
	e := googleError{Code: status, Message: text, Status: googleStatuses[status]}
	if p.Wait > 0 {
		e.Details = []any{map[string]string{
			"@type":      "type.googleapis.com/google.rpc.RetryInfo",
			"retryDelay": fmt.Sprintf("%gs", p.Wait.Round(time.Millisecond).Seconds()),
		}}
	}
	return Answer{Status: status, Body: map[string]any{"error": e}}
}
