package provider

import (
	"encoding/json"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

func init() {
	list := json.RawMessage(`["https://cdn.example/{id}.mp4"]`)
	canceled := answers(200, `{"id":"{id}","status":"CANCELLED"}`, jobpoll.Report{RawStatus: "CANCELLED"})
	filtered := answers(200, `{"id":"{id}","status":"FAILED","failureCode":"SAFETY.INPUT.TEXT"}`, jobpoll.Report{RawStatus: "FAILED"})
	nothing := answers(200, `{"id":"{id}","status":"SUCCEEDED","output":[]}`, jobpoll.Report{RawStatus: "SUCCEEDED"})
	deleted := answers(204, "", jobpoll.Report{})
	families["runway"] = family{
		make:  func(cfg Config) (adapter, error) { return made(NewRunway(cfg)) },
		words: runwayWords,
		reply: func() reply { return &runwayTask{} },
		body:  `{"id":"rw-01","status":"SUCCEEDED","createdAt":"2026-01-02T03:04:05.000Z","output":["https://cdn.example.test/a.mp4?sig=x"]}`,
		kinds: []jobpoll.FailureKind{jobpoll.FailureUnknown, jobpoll.FailureFault, jobpoll.FailureRejected, jobpoll.FailureFiltered, jobpoll.FailureNoOutput},
		stated: polltest.Adapter{
			Pending:   answers(200, `{"id":"{id}","status":"RUNNING","progress":0.42}`, jobpoll.Report{State: jobpoll.StateRunning, RawStatus: "RUNNING", Progress: 0.42}),
			Succeeded: answers(200, `{"id":"{id}","status":"SUCCEEDED","output":["https://cdn.example/{id}.mp4"]}`, jobpoll.Report{RawStatus: "SUCCEEDED", Output: list}),
			Failed: answers(200, `{"id":"{id}","status":"FAILED","failure":"went away","failureCode":"INTERNAL"}`,
				jobpoll.Report{RawStatus: "FAILED", Failure: &jobpoll.Failure{Kind: jobpoll.FailureFault, Code: "INTERNAL", Message: "went away"}}),
			Canceled: &canceled, Filtered: &filtered, NoOutput: &nothing, Cancel: &deleted,
		},
	}
}
