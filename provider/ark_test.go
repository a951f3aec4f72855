package provider

import (
	"encoding/json"
	"strings"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

func init() {
	canceled := answers(200, `{"id":"{id}","status":"cancelled"}`, jobpoll.Report{RawStatus: "cancelled"})
	expired := answers(200, `{"id":"{id}","status":"expired"}`, jobpoll.Report{RawStatus: "expired"})
	filtered := answers(200, `{"id":"{id}","status":"failed","error":{"code":"OutputVideoSensitiveContentDetected","message":"blocked"}}`, jobpoll.Report{RawStatus: "failed"})
	nothing := answers(200, `{"id":"{id}","status":"succeeded","content":{}}`, jobpoll.Report{RawStatus: "succeeded"})
	taken := answers(200, `{}`, jobpoll.Report{})
	families["ark"] = family{
		make:   func(cfg Config) (adapter, error) { return made(NewArk(cfg)) },
		words:  arkWords,
		reply:  func() reply { return &arkTask{} },
		body:   `{"id":"cgt-01","model":"seedance-x","status":"succeeded","content":{"video_url":"https://tos.example.test/a.mp4"},"usage":{"completion_tokens":1000},"created_at":1767323045,"updated_at":1767323145}`,
		notice: ArkNotice,
		kinds:  []jobpoll.FailureKind{jobpoll.FailureUnknown, jobpoll.FailureFault, jobpoll.FailureRejected, jobpoll.FailureFiltered, jobpoll.FailureQuota, jobpoll.FailureNoOutput},
		stated: polltest.Adapter{
			Pending: answers(200, `{"id":"{id}","status":"running"}`, jobpoll.Report{State: jobpoll.StateRunning, RawStatus: "running"}),
			Succeeded: answers(200, `{"id":"{id}","status":"succeeded","content":{"video_url":"https://cdn.example/{id}.mp4"}}`,
				jobpoll.Report{RawStatus: "succeeded", Output: json.RawMessage(`{"video_url":"https://cdn.example/{id}.mp4"}`)}),
			Failed: answers(200, `{"id":"{id}","status":"failed","error":{"code":"X","message":"went away"}}`,
				jobpoll.Report{RawStatus: "failed", Failure: &jobpoll.Failure{Code: "X", Message: "went away"}}),
			Canceled: &canceled, Expired: &expired, Filtered: &filtered, NoOutput: &nothing, Cancel: &taken,
			Batch: func(parts []string) polltest.Answer {
				return answers(200, `{"items":[`+strings.Join(parts, ",")+`]}`, jobpoll.Report{})
			},
		},
	}
}
