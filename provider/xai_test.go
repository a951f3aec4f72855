package provider

import (
	"encoding/json"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

func init() {
	expired := answers(200, `{"request_id":"{id}","status":"expired"}`, jobpoll.Report{RawStatus: "expired"})
	filtered := answers(200, `{"request_id":"{id}","status":"done","video":{"url":"u","respect_moderation":false}}`, jobpoll.Report{RawStatus: "done"})
	nothing := answers(200, `{"request_id":"{id}","status":"done","video":{}}`, jobpoll.Report{RawStatus: "done"})
	families["xai"] = family{
		make:  func(cfg Config) (adapter, error) { return made(NewXAI(cfg)) },
		words: xaiWords,
		reply: func() reply { return &xaiVideo{} },
		body:  `{"status":"done","video":{"url":"https://vid.example.test/a.mp4","duration":8,"respect_moderation":true}}`,
		kinds: []jobpoll.FailureKind{jobpoll.FailureUnknown, jobpoll.FailureFiltered, jobpoll.FailureNoOutput},
		stated: polltest.Adapter{
			Pending: answers(202, `{"request_id":"{id}","status":"pending","progress":40}`, jobpoll.Report{State: jobpoll.StateRunning, RawStatus: "pending", Progress: 0.4}),
			Succeeded: answers(200, `{"request_id":"{id}","status":"done","video":{"url":"https://cdn.example/{id}.mp4"}}`,
				jobpoll.Report{RawStatus: "done", Output: json.RawMessage(`{"url":"https://cdn.example/{id}.mp4"}`)}),
			Failed: answers(200, `{"request_id":"{id}","status":"failed","error":{"code":"X","message":"went away"}}`,
				jobpoll.Report{RawStatus: "failed", Failure: &jobpoll.Failure{Code: "X", Message: "went away"}}),
			Expired: &expired, Filtered: &filtered, NoOutput: &nothing,
		},
	}
}
