package provider

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// GeminiURL is the address of the Gemini API, with its version.
const GeminiURL = "https://generativelanguage.googleapis.com/v1beta"

// VeoRetention is how long the Gemini API keeps a video. When it was made is not
// told, so that no Report has ResultExpiresAt.
// Source: https://ai.google.dev/gemini-api/docs/video
const VeoRetention = 48 * time.Hour

// maxInlineVideo is Config.MaxBody of adapters of providers that put the bytes of a
// video into the answer.
const maxInlineVideo = 16 << 20

// Veo is the adapter for Google's Veo, at the Gemini API (NewGeminiVeo) or at
// Vertex AI (NewVertexVeo). It is a jobpoll.Checker and Refresher, and safe for
// concurrent use; there is no list, and no cancellation that is documented for it.
//
// A Job's ID is the whole name of the operation, slashes and all. The Output is the
// list of videos: generatedSamples at Gemini, whose URIs need the API key, so that
// Client.Download gets them, or the bytes, and videos at Vertex, with a gcsUri or the
// bytes. An answer with the bytes may be large: Config.MaxBody is 16 MiB where it is not set, and the engine keeps no
// Output above jobpoll.MaxOutput; have them put into a bucket.
//
// A filter that took all videos is a failure of kind FailureFiltered, though the
// operation is done without an error. Errors are read as GoogleLRO reads them.
//
// Google's documents name Veo at the Gemini API beside Interactions. Its client for Go
// makes videos there; that for JavaScript does not any more (@google/genai 3.1.0), and
// does at Vertex AI alone. Not verified: where webhook_config stands in an order, and that
// older models at Vertex gave generatedSamples in the response itself, which is read too.
//
// Source: Google's SDK google.golang.org/genai 1.77.0
type Veo struct {
	c      *Client
	vertex bool
}

var (
	_ jobpoll.Checker   = (*Veo)(nil)
	_ jobpoll.Refresher = (*Veo)(nil)
)

// NewGeminiVeo makes the adapter for the Gemini API. Only Credentials is required:
// the API key, which goes into X-Goog-Api-Key.
func NewGeminiVeo(cfg Config) (*Veo, error) {
	if cfg.Header == "" && cfg.Scheme == "" {
		cfg.Header = "X-Goog-Api-Key"
	}
	return newVeo(cfg.orElse(GeminiURL, "", explainGoogle), "GEMINI_API_KEY", false)
}

// NewVertexVeo makes the adapter for Vertex AI. BaseURL is required, with the
// version ("https://us-central1-aiplatform.googleapis.com/v1"), and so is
// Tokens, which gives access tokens, or Credentials where another renews them.
func NewVertexVeo(cfg Config) (*Veo, error) {
	return newVeo(cfg.orElse("", "Bearer", explainGoogle), "GOOGLE_ACCESS_TOKEN", true)
}

func newVeo(cfg Config, variable string, vertex bool) (*Veo, error) {
	if cfg.MaxBody == 0 {
		cfg.MaxBody = maxInlineVideo
	}
	c, err := newAdapter(cfg, variable)
	if err != nil {
		return nil, err
	}
	return &Veo{c, vertex}, nil
}

// veoOutput reads the response of an operation, of Gemini or of Vertex.
func veoOutput(response json.RawMessage) (json.RawMessage, jobpoll.Failure) {
	var videos, samples, older json.RawMessage
	var taken, takenAtGemini veoTaken
	m := members(response)
	for m.next() {
		switch {
		case m.is("videos"):
			videos = m.value
		case m.is("generatedSamples"):
			older = m.value
		case m.is("generateVideoResponse"):
			m := members(m.value)
			for m.next() {
				if m.is("generatedSamples") {
					samples = m.value
				}
				takenAtGemini.read(&m)
			}
		default:
			taken.read(&m)
		}
	}
	if out := withURL(videos, "gcsUri", "bytesBase64Encoded"); out != nil {
		return partOf(response, out), jobpoll.Failure{}
	}
	for _, of := range [...]json.RawMessage{samples, older} {
		if veoSamples(of) {
			return partOf(response, of), jobpoll.Failure{}
		}
	}
	f := jobpoll.Failure{}
	for _, t := range [...]veoTaken{taken, takenAtGemini} {
		reason := items(t.reasons)
		more := reason.next()
		if n, _ := t.count.count(); n == 0 && !more {
			continue
		}
		f.Kind = jobpoll.FailureFiltered
		for ; more; more = reason.next() {
			f.Message = strings.TrimPrefix(cut([]byte(f.Message+"; "+string(reason.text()))), "; ")
		}
	}
	return nil, f
}

// veoTaken is what a filter took.
type veoTaken struct {
	count   Text
	reasons json.RawMessage
}

func (t *veoTaken) read(m *walk) {
	switch {
	case m.is("raiMediaFilteredCount"):
		t.count = m.text()
	case m.is("raiMediaFilteredReasons"):
		m.list(&t.reasons)
	}
}

// veoSamples reports whether one of the samples has a video.
func veoSamples(samples json.RawMessage) bool {
	s := items(samples)
	for s.next() {
		uri, inline := false, false
		m := members(s.value)
		for m.next() {
			if !m.is("video") {
				continue
			}
			v := members(m.value)
			for v.next() {
				switch {
				case v.is("uri"):
					uri = v.hasText()
				case v.is("encodedVideo"):
					inline = v.hasText()
				}
			}
		}
		if uri || inline {
			return true
		}
	}
	return false
}

// Check asks about one operation.
func (p *Veo) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	r := Request{URL: p.c.path(job.ID)}
	if p.vertex {
		model, _, ok := strings.Cut(job.ID, "/operations/")
		if !ok {
			return jobpoll.Report{}, invalid("%s: the id is no name of an operation below a model", job.Key())
		}
		r.URL = p.c.path(model) + ":fetchPredictOperation"
		r.Body = map[string]string{"operationName": job.ID}
	}
	return p.c.look(ctx, r, &operation{output: veoOutput})
}

// Refresh asks Config.Credentials for the key, or Config.Tokens for a token, anew.
func (p *Veo) Refresh(ctx context.Context) error { return p.c.Refresh(ctx) }

// Submit starts an operation, by one POST that is never repeated. Order.Model is
// the model ("veo-3.0-generate-001"), at Vertex its whole name
// ("projects/p/locations/l/publishers/google/models/m"). Order.Input is the body:
// instances and parameters. Gemini takes a webhook for an order, Vertex does not.
func (p *Veo) Submit(ctx context.Context, o Order) (jobpoll.Job, jobpoll.Report, error) {
	if err := o.ready(); err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	if p.vertex {
		if err := o.noWebhook(); err != nil {
			return jobpoll.Job{}, jobpoll.Report{}, err
		}
	}
	body, err := flat(o.Input, nil)
	if err == nil && o.Webhook != "" {
		err = nested(body, "webhook_config", "uris", []string{o.Webhook})
	}
	if err != nil {
		return jobpoll.Job{}, jobpoll.Report{}, err
	}
	at := o.Path
	switch {
	case at != "":
	case p.vertex:
		at = p.c.path(o.Model) + ":predictLongRunning"
	default:
		at = p.c.path("models/"+strings.TrimPrefix(o.Model, "models/")) + ":predictLongRunning"
	}
	return p.c.submit(ctx, o, Request{URL: at, Header: o.Header, Body: body}, &operation{output: veoOutput}, nil)
}

// VeoPace is the pace of Google's samples: a look every 10 s.
// Source: https://ai.google.dev/gemini-api/docs/video
func VeoPace() jobpoll.Guidance { return jobpoll.Guidance{Floor: 10 * time.Second} }

// GeminiNotice makes a notice of an event of the Gemini API's, video.generated. It is
// a Parser of package webhook, and the verifier to it is webhook.NewStandard for
// the endpoints of a project, and webhook.NewJWT for that of one order. An event
// names the operation and is a hint. There is none for a video that failed.
//
// Source: https://ai.google.dev/gemini-api/docs/webhooks
func GeminiNotice(body []byte, _ http.Header) (jobpoll.Notice, error) { return event(body) }
