package provider

import (
	"encoding/json"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

func init() {
	filtered := answers(200, `{"id":"{id}","state":"failed","failure_reason":"moderation"}`, jobpoll.Report{RawStatus: "failed"})
	nothing := answers(200, `{"id":"{id}","state":"completed","assets":{"progress_video":"u"}}`, jobpoll.Report{RawStatus: "completed"})
	families["luma"] = family{
		make:   func(cfg Config) (adapter, error) { return made(NewLuma(cfg)) },
		words:  lumaWords,
		reply:  func() reply { return &lumaGeneration{} },
		body:   `{"id":"lm-01","state":"completed","created_at":"2026-01-02T03:04:05.000Z","assets":{"video":"https://cdn.example.test/a.mp4"}}`,
		notice: LumaNotice,
		kinds:  []jobpoll.FailureKind{jobpoll.FailureUnknown, jobpoll.FailureRejected, jobpoll.FailureFiltered, jobpoll.FailureQuota, jobpoll.FailureNoOutput},
		stated: polltest.Adapter{
			Pending: answers(200, `{"id":"{id}","state":"dreaming","assets":null}`, jobpoll.Report{State: jobpoll.StateRunning, RawStatus: "dreaming"}),
			Succeeded: answers(200, `{"id":"{id}","state":"completed","assets":{"video":"https://cdn.example/{id}.mp4"}}`,
				jobpoll.Report{RawStatus: "completed", Output: json.RawMessage(`{"video":"https://cdn.example/{id}.mp4"}`)}),
			Failed: answers(200, `{"id":"{id}","state":"failed","failure_reason":"too complex"}`,
				jobpoll.Report{RawStatus: "failed", Failure: &jobpoll.Failure{Message: "too complex"}}),
			Filtered: &filtered, NoOutput: &nothing,
		},
	}
}
