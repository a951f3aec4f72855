package provider

import (
	"encoding/json"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

func init() {
	filtered := answers(200, `{"finish_reason":"CONTENT_FILTERED","video":"AAAA","seed":1}`, jobpoll.Report{RawStatus: "CONTENT_FILTERED"})
	nothing := answers(200, `{"finish_reason":"SUCCESS","video":""}`, jobpoll.Report{RawStatus: "SUCCESS"})
	families["stability"] = family{
		make:  func(cfg Config) (adapter, error) { return made(NewStability(cfg)) },
		words: stabilityWords,
		input: Form{Files: []File{{Field: "image", Content: []byte("an image")}}},
		reply: func() reply { return &stabilityResult{address: "https://api.example/r"} },
		body:  `{"video":"AAAAIGZ0eXBpc29t","finish_reason":"SUCCESS","seed":1}`,
		kinds: []jobpoll.FailureKind{jobpoll.FailureFiltered, jobpoll.FailureNoOutput},
		stated: polltest.Adapter{
			Pending: answers(202, `{"id":"{id}","status":"in-progress"}`, jobpoll.Report{State: jobpoll.StateRunning, RawStatus: "in-progress"}),
			Succeeded: answers(200, `{"video":"AAAAIGZ0eXBpc29t","finish_reason":"SUCCESS","seed":1}`,
				jobpoll.Report{RawStatus: "SUCCESS", Output: json.RawMessage(`"{base}/v2beta/image-to-video/result/{id}"`)}),
			Failed: answers(200, `{"finish_reason":"CONTENT_FILTERED","seed":1}`,
				jobpoll.Report{RawStatus: "CONTENT_FILTERED", Failure: &jobpoll.Failure{Kind: jobpoll.FailureFiltered}}),
			Filtered: &filtered, NoOutput: &nothing,
		},
	}
}
