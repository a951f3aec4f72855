package provider

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

func init() {
	canceled := answers(200, `{"task":{"id":"{id}","status":"cancelled"}}`, jobpoll.Report{RawStatus: "cancelled"})
	expired := answers(200, `{"task":{"id":"{id}","status":"expired"}}`, jobpoll.Report{RawStatus: "expired"})
	filtered := answers(200, `{"task":{"id":"{id}","status":"failed","error":{"code":"1026","message":"sensitive"}}}`, jobpoll.Report{RawStatus: "failed"})
	nothing := answers(200, `{"task":{"id":"{id}","status":"succeeded","content":{"url":""}}}`, jobpoll.Report{RawStatus: "succeeded"})
	taken := answers(200, `{"task_id":"{id}","action":"cancelled","status":"cancelled"}`, jobpoll.Report{})
	refused := func(status int, body string, kind jobpoll.ErrorKind) polltest.Answer {
		return polltest.Answer{Status: status, Body: body, WantKind: kind}
	}
	families["minimax2"] = family{
		make:   func(cfg Config) (adapter, error) { return made(NewMiniMaxV2(cfg)) },
		words:  miniMaxV2Words,
		reply:  func() reply { return &miniMaxV2Reply{} },
		body:   `{"task":{"id":"mm-01","model":"MiniMax-H3","status":"succeeded","created_at":1767323045,"updated_at":1767323145,"content":{"url":"https://cdn.example.test/a.mp4"},"resolution":"2K","duration":5,"usage":{"total_seconds":5},"ratio":"16:9","task_type":"generation","modality":"video"}}`,
		notice: MiniMaxV2Notice,
		kinds: []jobpoll.FailureKind{
			jobpoll.FailureUnknown, jobpoll.FailureRejected, jobpoll.FailureFiltered, jobpoll.FailureQuota, jobpoll.FailurePolicy, jobpoll.FailureNoOutput,
		},
		stated: polltest.Adapter{
			Pending: answers(200, `{"task":{"id":"{id}","status":"queued"}}`, jobpoll.Report{State: jobpoll.StateQueued, RawStatus: "queued"}),
			Succeeded: answers(200, `{"task":{"id":"{id}","status":"succeeded","content":{"url":"https://cdn.example/{id}.mp4"}}}`,
				jobpoll.Report{RawStatus: "succeeded", Output: json.RawMessage(`{"url":"https://cdn.example/{id}.mp4"}`)}),
			Failed: answers(200, `{"task":{"id":"{id}","status":"failed","error":{"code":"2013","message":"bad prompt"}}}`,
				jobpoll.Report{RawStatus: "failed", Failure: &jobpoll.Failure{Kind: jobpoll.FailureRejected, Code: "2013", Message: "bad prompt"}}),
			Canceled: &canceled, Expired: &expired, Filtered: &filtered, NoOutput: &nothing, Cancel: &taken,
			Batch: func(parts []string) polltest.Answer { // each part is the answer to a look
				var tasks []string
				for _, p := range parts {
					tasks = append(tasks, strings.TrimSuffix(strings.TrimPrefix(p, `{"task":`), `}`))
				}
				return answers(200, `{"items":[`+strings.Join(tasks, ",")+`]}`, jobpoll.Report{})
			},
			Errors: []polltest.Answer{
				refused(http.StatusBadRequest, `{"type":"error","error":{"type":"bad_request_error","message":"invalid task_id (2013)","http_code":"400"}}`, jobpoll.ErrorNoSuchJob),
				refused(http.StatusPaymentRequired, `{"type":"error","error":{"type":"insufficient_balance_error","message":"balance (1008)","http_code":"402"}}`, jobpoll.ErrorQuota),
				refused(http.StatusOK, `{"type":"error","error":{"type":"rate_limit_error","message":"rate limit (1002)","http_code":"429"}}`, jobpoll.ErrorRateLimited),
			},
		},
	}
}
