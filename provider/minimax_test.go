package provider

import (
	"encoding/json"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

func init() {
	filtered := answers(200, `{"task_id":"{id}","status":"Fail","file_id":"","base_resp":{"status_code":1027,"status_msg":"output sensitive"}}`, jobpoll.Report{RawStatus: "Fail"})
	nothing := answers(200, `{"task_id":"{id}","status":"Success","file_id":"","base_resp":{"status_code":0,"status_msg":"success"}}`, jobpoll.Report{RawStatus: "Success"})
	file := answers(200, `{"file":{"file_id":"file-{id}","download_url":"https://cdn.example/{id}.mp4"},"base_resp":{"status_code":0}}`,
		jobpoll.Report{Output: json.RawMessage(`"https://cdn.example/{id}.mp4"`)})
	families["minimax"] = family{
		make:   func(cfg Config) (adapter, error) { return made(NewMiniMax(cfg)) },
		words:  miniMaxWords,
		reply:  func() reply { return &miniMaxTask{} },
		body:   `{"task_id":"mm-01","status":"Success","file_id":"90001","video_width":1280,"video_height":720,"base_resp":{"status_code":0,"status_msg":"success"}}`,
		notice: MiniMaxNotice,
		kinds: []jobpoll.FailureKind{
			jobpoll.FailureUnknown, jobpoll.FailureRejected, jobpoll.FailureFiltered, jobpoll.FailureQuota, jobpoll.FailurePolicy, jobpoll.FailureNoOutput,
		},
		stated: polltest.Adapter{
			Pending: answers(200, `{"task_id":"{id}","status":"Queueing","file_id":"","base_resp":{"status_code":0,"status_msg":"success"}}`,
				jobpoll.Report{State: jobpoll.StateQueued, RawStatus: "Queueing"}),
			Succeeded: answers(200, `{"task_id":"{id}","status":"Success","file_id":"file-{id}","base_resp":{"status_code":0,"status_msg":"success"}}`,
				jobpoll.Report{RawStatus: "Success"}),
			Failed: answers(200, `{"task_id":"{id}","status":"Fail","file_id":"","base_resp":{"status_code":2013,"status_msg":"bad prompt"}}`,
				jobpoll.Report{RawStatus: "Fail", Failure: &jobpoll.Failure{Kind: jobpoll.FailureRejected, Code: "2013", Message: "bad prompt"}}),
			Filtered: &filtered, NoOutput: &nothing, Output: &file,
			Errors: []polltest.Answer{
				{Body: `{"base_resp":{"status_code":1002,"status_msg":"rate limit"}}`, WantKind: jobpoll.ErrorRateLimited},
				{Body: `{"base_resp":{"status_code":1008,"status_msg":"balance"}}`, WantKind: jobpoll.ErrorQuota},
			},
		},
	}
}
