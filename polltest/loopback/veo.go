package loopback

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// Veo is the wire of Veo at the Gemini API: operations by AIP-151, with names that
// have slashes, without words, and with a filter that is no error. A canceled job
// has the code 1, an expired one 4.
//
// Sources: https://google.aip.dev/151 and the vendor's SDK.
func Veo() Wire { return veo{} }

type veo struct{}

// veoModel is where the operations are.
const veoModel = "models/veo-loopback"

func (veo) ID(n int) string { return fmt.Sprintf("%s/operations/op%010d", veoModel, n) }

func (veo) Read(r *http.Request, _ json.RawMessage) Call {
	call := Call{Credential: r.Header.Get("X-Goog-Api-Key")}
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/v1beta"), "/")
	model, submits := strings.CutSuffix(name, ":predictLongRunning")
	switch {
	case submits && r.Method == http.MethodPost:
		call.Op, call.Model = OpSubmit, model
	case strings.Contains(name, "/operations/") && r.Method == http.MethodGet:
		call.Op, call.ID = OpStatus, name
	}
	return call
}

func (veo) Write(r Reply) Answer {
	body := map[string]any{"name": r.View.ID}
	failed := func(code int) {
		body["error"] = map[string]any{"code": code, "message": r.Message()}
	}
	if r.Entry.State.Terminal() {
		body["done"] = true
	}
	switch r.Entry.State {
	case jobpoll.StateSucceeded:
		samples := r.Output([]any{map[string]any{"video": map[string]string{"uri": file(strings.ReplaceAll(r.View.ID, "/", "-"))}}})
		body["response"] = map[string]any{"generateVideoResponse": map[string]any{"generatedSamples": samples}}
	case jobpoll.StateFailed:
		if r.filtered() {
			body["response"] = map[string]any{"generateVideoResponse": map[string]any{"raiMediaFilteredCount": 1, "raiMediaFilteredReasons": []string{r.Message()}}}
			break
		}
		const unknown = 2
		failed(unknown)
	case jobpoll.StateCanceled:
		failed(1)
	case jobpoll.StateExpired:
		const deadline = 4
		failed(deadline)
	}
	return Answer{Status: http.StatusOK, Body: body}
}

func (veo) Error(p Problem) Answer {
	status, message := usual(p)
	return Answer{Status: status, Body: map[string]any{"error": map[string]any{"code": status, "message": message}}}
}
