package provider

import (
	"encoding/json"
	"fmt"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

// klingPlain is Kling's envelope without methods.
type klingPlain[T any] struct {
	Code    Text `json:"code"`
	Message Text `json:"message"`
	Data    T    `json:"data"`
}

func init() {
	filtered := answers(200, `{"code":0,"data":{"task_id":"{id}","task_status":"failed","task_status_msg":"blocked by policy"}}`, jobpoll.Report{RawStatus: "failed"})
	nothing := answers(200, `{"code":0,"data":{"task_id":"{id}","task_status":"succeed","task_result":{"videos":[]}}}`, jobpoll.Report{RawStatus: "succeed"})
	families["kling"] = family{
		make:   func(cfg Config) (adapter, error) { return made(NewKling(cfg)) },
		words:  klingWords,
		ref:    KlingTextToVideo,
		reply:  func() reply { return &klingReply{} },
		plain:  func() any { return &klingPlain[klingTask]{} },
		body:   `{"code":0,"message":"ok","request_id":"rq-2","data":{"task_id":"kl-01","task_status":"succeed","task_status_msg":"","task_result":{"videos":[{"id":"v-1","url":"https://cdn.example.test/a.mp4","duration":"5.0"}]},"created_at":1767323045000,"updated_at":1767323145000}}`,
		notice: KlingNotice,
		kinds:  []jobpoll.FailureKind{jobpoll.FailureUnknown, jobpoll.FailureFiltered, jobpoll.FailureNoOutput},
		stated: polltest.Adapter{
			Job: func(_ string, n int) jobpoll.Job {
				return jobpoll.Job{Route: "kling", ID: fmt.Sprintf("task-of-an-id-longer-than-its-ref-%04d", n), Ref: KlingTextToVideo}
			},
			Pending: answers(200, `{"code":0,"data":{"task_id":"{id}","task_status":"processing"}}`, jobpoll.Report{State: jobpoll.StateRunning, RawStatus: "processing"}),
			Succeeded: answers(200, `{"code":0,"data":{"task_id":"{id}","task_status":"succeed","task_result":{"videos":[{"url":"https://cdn.example/{id}.mp4"}]}}}`,
				jobpoll.Report{RawStatus: "succeed", Output: json.RawMessage(`[{"url":"https://cdn.example/{id}.mp4"}]`)}),
			Failed: answers(200, `{"code":0,"data":{"task_id":"{id}","task_status":"failed","task_status_msg":"went away"}}`,
				jobpoll.Report{RawStatus: "failed", Failure: &jobpoll.Failure{Message: "went away"}}),
			Filtered: &filtered, NoOutput: &nothing,
			Errors: []polltest.Answer{
				{Body: `{"code":1203,"message":"no such task"}`, WantKind: jobpoll.ErrorNoSuchJob},
				{Body: `{"code":1102,"message":"resource pack used up"}`, WantKind: jobpoll.ErrorQuota},
				{Body: `{"code":1302,"message":"too fast"}`, WantKind: jobpoll.ErrorRateLimited},
			},
		},
	}
}
