package loopback

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// Stability is the wire of Stability AI's image-to-video: a submission is
// multipart/form-data, and status and result are one call, told apart by the HTTP
// status: 202 until it is done, then the video, as JSON or for "Accept: video/*" as
// its bytes. A failed job is filtered, whatever its kind, and its video blurred; the
// provider has no other failure. A canceled or expired one is not known any more.
//
// Sources: copies of the reference of the API v2beta, and npm stability-ai 0.7.0 of
// others, which works with it. Not verified: the names of errors.
func Stability() Wire { return stability{} }

type stability struct{}

var stabilityWords = map[jobpoll.State]string{
	jobpoll.StateQueued: "in-progress", jobpoll.StateRunning: "in-progress", jobpoll.StateSucceeded: "SUCCESS",
	jobpoll.StateFailed: "CONTENT_FILTERED",
}

func (stability) ID(n int) string { return fmt.Sprintf("a6dc6c6e20acda01%048x", n) }

func (stability) Read(r *http.Request, body json.RawMessage) Call {
	call := Call{Credential: bearer(r, "Bearer")}
	id, isResult := below(r.URL.Path, "/v2beta/image-to-video/result/")
	switch {
	case r.URL.Path == "/v2beta/image-to-video" && r.Method == http.MethodPost:
		call.Op, call.Body = OpSubmit, formInput(r, body)
		var sent struct{ Image formFile }
		call.Bad = json.Unmarshal(call.Body, &sent) != nil || sent.Image.Name == ""
	case isResult && r.Method == http.MethodGet:
		call.Op, call.ID = OpStatus, id
		call.Raw = strings.HasPrefix(r.Header.Get("Accept"), "video/")
	}
	return call
}

// stabilityVideo is the begin of a file of MP4.
const stabilityVideo = "\x00\x00\x00\x18ftypmp42"

func (w stability) Write(r Reply) Answer {
	if r.Op == OpSubmit {
		return Answer{Status: http.StatusOK, Body: map[string]string{"id": r.View.ID}}
	}
	word := r.Word(stabilityWords)
	switch s := r.Entry.State; {
	case r.Expired, s == jobpoll.StateCanceled, s == jobpoll.StateExpired:
		return w.Error(Problem{Kind: ProblemNoJob})
	case !s.Terminal():
		return Answer{Status: http.StatusAccepted, Body: map[string]any{"id": r.View.ID, "status": orNil(word)}}
	case r.Raw:
		h := http.Header{"Content-Type": {"video/mp4"}, "Finish-Reason": {word}, "Seed": {"1"}}
		return Answer{Status: http.StatusOK, Header: h, Body: []byte(stabilityVideo)}
	}
	var video any = []byte(stabilityVideo)
	if r.Entry.State == jobpoll.StateSucceeded {
		video = r.Output(video)
	}
	return Answer{Status: http.StatusOK, Body: map[string]any{"video": video, "finish_reason": orNil(word), "seed": 1}}
}

func (stability) Error(p Problem) Answer {
	status, text := p.usual()
	name := strings.ReplaceAll(strings.ToLower(http.StatusText(status)), " ", "_")
	return Answer{Status: status, Body: map[string]any{"id": "err-5c2f1d8e", "name": name, "errors": []string{text}}}
}
