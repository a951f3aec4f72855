package provider

import (
	"encoding/json"
	"fmt"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

// operations is what a service by Google's convention answers, with a response
// of its own: one with an output, and what is made of it; one that was filtered.
func operations(model, response, output, filtered string) polltest.Adapter {
	of := func(rest string, want jobpoll.Report) polltest.Answer {
		return answers(200, `{"name":"{id}"`+rest+`}`, want)
	}
	canceled := of(`,"done":true,"error":{"code":1,"message":"cancelled"}`, jobpoll.Report{})
	expired := of(`,"done":true,"error":{"code":4,"message":"deadline"}`, jobpoll.Report{})
	nothing := of(`,"done":true,"response":{}`, jobpoll.Report{})
	a := polltest.Adapter{
		Job: func(_ string, n int) jobpoll.Job {
			return jobpoll.Job{Route: "g", ID: fmt.Sprintf("%s/operations/op-%04d", model, n)}
		},
		Pending:   of(``, jobpoll.Report{State: jobpoll.StateRunning}),
		Succeeded: of(`,"done":true,"response":`+response, jobpoll.Report{Output: json.RawMessage(output)}),
		Failed: of(`,"done":true,"error":{"code":3,"message":"invalid argument"}`,
			jobpoll.Report{Failure: &jobpoll.Failure{Kind: jobpoll.FailureRejected, Code: "3", Message: "invalid argument"}}),
		Canceled: &canceled, Expired: &expired, NoOutput: &nothing,
	}
	if filtered != "" {
		f := of(`,"done":true,"response":`+filtered, jobpoll.Report{})
		a.Filtered = &f
	}
	return a
}

func init() {
	kinds := []jobpoll.FailureKind{
		jobpoll.FailureUnknown, jobpoll.FailureFault, jobpoll.FailureRejected, jobpoll.FailureFiltered, jobpoll.FailureQuota, jobpoll.FailurePolicy, jobpoll.FailureNoOutput,
	}
	stated := operations("projects/p/locations/l", `{"uri":"u"}`, `{"uri":"u"}`, "")
	taken := answers(200, `{}`, jobpoll.Report{})
	stated.Cancel = &taken
	families["google-lro"] = family{
		make:   func(cfg Config) (adapter, error) { return made(NewGoogleLRO(cfg)) },
		reply:  func() reply { return &operation{output: googleOutput} },
		body:   `{"name":"projects/p/operations/op-01","metadata":{"step":3},"done":true,"response":{"uri":"https://files.example.test/f1"}}`,
		kinds:  kinds,
		stated: stated,
	}
	samples := `[{"video":{"uri":"https://files.example/f1:download"}}]`
	filtered := `{"generateVideoResponse":{"raiMediaFilteredCount":1,"raiMediaFilteredReasons":["filtered"]}}`
	families["veo"] = family{
		make:   func(cfg Config) (adapter, error) { return made(NewGeminiVeo(cfg)) },
		reply:  func() reply { return &operation{output: veoOutput} },
		body:   `{"name":"models/veo-x/operations/op-01","done":true,"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"https://files.example.test/v1beta/files/f1:download"}}]}}}`,
		notice: GeminiNotice,
		kinds:  kinds,
		stated: operations("models/veo-x", `{"generateVideoResponse":{"generatedSamples":`+samples+`}}`, samples, filtered),
	}
	videos := `[{"gcsUri":"gs://b/a.mp4","mimeType":"video/mp4"}]`
	vertex := operations("projects/p/locations/l/publishers/google/models/m", `{"videos":`+videos+`}`, videos, `{"raiMediaFilteredCount":1}`)
	vertex.Method = "POST"
	families["vertex"] = family{
		make:   func(cfg Config) (adapter, error) { return made(NewVertexVeo(cfg)) },
		ref:    "",
		reply:  func() reply { return &operation{output: veoOutput} },
		body:   `{"name":"projects/p/locations/l/publishers/google/models/m/operations/op-01","done":true,"response":{"videos":[{"gcsUri":"gs://b/a.mp4","mimeType":"video/mp4"}]}}`,
		kinds:  []jobpoll.FailureKind{jobpoll.FailureFiltered, jobpoll.FailureNoOutput, jobpoll.FailureRejected},
		stated: vertex,
	}
}
