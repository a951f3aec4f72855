package provider

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

// Our own adapters pass what users' adapters are tried by.
func TestEveryAdapterConforms(t *testing.T) {
	output := json.RawMessage(`"https://cdn.example/{id}.mp4"`)
	list := json.RawMessage(`["https://cdn.example/{id}.mp4"]`)
	says := func(status int, body string, want jobpoll.Report) polltest.Answer {
		return polltest.Answer{Status: status, Body: body, Want: want}
	}
	also := func(a polltest.Answer) *polltest.Answer { return &a }
	for name, a := range map[string]polltest.Adapter{
		"replicate": {
			Pending: says(200, `{"id":"{id}","status":"processing","output":null,"urls":{"get":"{base}/v1/predictions/{id}"}}`,
				jobpoll.Report{State: jobpoll.StateRunning, RawStatus: "processing"}),
			Succeeded: says(200, `{"id":"{id}","status":"succeeded","output":"https://cdn.example/{id}.mp4","completed_at":"2026-01-02T03:04:46.000Z"}`,
				jobpoll.Report{RawStatus: "succeeded", Output: output, CompletedAt: time.Date(2026, 1, 2, 3, 4, 46, 0, time.UTC)}),
			Failed: says(200, `{"id":"{id}","status":"failed","output":null,"error":"model raised an error"}`,
				jobpoll.Report{RawStatus: "failed", Failure: &jobpoll.Failure{Message: "model raised"}}),
			Canceled: also(says(200, `{"id":"{id}","status":"canceled"}`, jobpoll.Report{RawStatus: "canceled"})),
			Expired:  also(says(200, `{"id":"{id}","status":"aborted"}`, jobpoll.Report{RawStatus: "aborted"})),
			Filtered: also(says(200, `{"id":"{id}","status":"failed","error":"NSFW content detected"}`, jobpoll.Report{RawStatus: "failed"})),
			NoOutput: also(says(200, `{"id":"{id}","status":"succeeded","output":null}`, jobpoll.Report{RawStatus: "succeeded"})),
			Cancel:   also(says(200, `{"id":"{id}","status":"canceled"}`, jobpoll.Report{})),
			Errors:   []polltest.Answer{{Body: `{"id":"{id}","status":"succeeded","output":null,"data_removed":true}`, WantKind: jobpoll.ErrorGone}},
		},
		"fal": {
			Job: func(base string, n int) jobpoll.Job {
				id := "request-" + string(rune('a'+n%26)) + string(rune('a'+n/26))
				return jobpoll.Job{Route: "fal", ID: id, Ref: base + "/own/app/requests/" + id + "/status"}
			},
			Pending: says(202, `{"request_id":"{id}","status":"IN_QUEUE","queue_position":3,"status_url":"{base}/own/app/requests/{id}/status"}`,
				jobpoll.Report{State: jobpoll.StateQueued, RawStatus: "IN_QUEUE", QueuePosition: 4}),
			Succeeded: says(200, `{"request_id":"{id}","status":"COMPLETED"}`, jobpoll.Report{RawStatus: "COMPLETED"}),
			Failed: says(200, `{"request_id":"{id}","status":"COMPLETED","error":"runner went away","error_type":"runner_disconnected"}`,
				jobpoll.Report{RawStatus: "COMPLETED", Failure: &jobpoll.Failure{Kind: jobpoll.FailureFault, Code: "runner_disconnected", Message: "went away"}}),
			Canceled: also(says(200, `{"request_id":"{id}","status":"COMPLETED","error":"cancelled","error_type":"client_cancelled"}`, jobpoll.Report{RawStatus: "COMPLETED"})),
			Filtered: also(says(200, `{"request_id":"{id}","status":"COMPLETED","error":"x","error_type":"content_policy_violation"}`, jobpoll.Report{RawStatus: "COMPLETED"})),
			Output:   also(says(200, `{"video":{"url":"https://cdn.example/{id}.mp4"}}`, jobpoll.Report{Output: json.RawMessage(`{"video":{"url":"https://cdn.example/{id}.mp4"}}`)})),
			Cancel:   also(says(202, `{"status":"CANCELLATION_REQUESTED"}`, jobpoll.Report{})),
		},
		"atlas": {
			Job: func(_ string, n int) jobpoll.Job { // an old one: a 404 of a young one is no such job, too
				return jobpoll.Job{Route: "atlas", ID: "prediction-" + string(rune('a'+n%26)) + string(rune('a'+n/26)), SubmittedAt: time.Now().Add(-time.Hour)}
			},
			Pending: says(200, `{"code":200,"data":{"id":"{id}","status":"starting","outputs":null}}`, jobpoll.Report{State: jobpoll.StateQueued, RawStatus: "starting"}),
			Succeeded: says(200, `{"code":200,"data":{"id":"{id}","status":"completed","outputs":["https://cdn.example/{id}.mp4"]}}`,
				jobpoll.Report{RawStatus: "completed", Output: list}),
			Failed: says(200, `{"code":200,"data":{"id":"{id}","status":"failed","error":"upstream refused","error_code":1039,"outputs":[]}}`,
				jobpoll.Report{RawStatus: "failed", Failure: &jobpoll.Failure{Code: "1039", Message: "upstream refused"}}),
			Canceled: also(says(200, `{"code":200,"data":{"id":"{id}","status":"cancelled"}}`, jobpoll.Report{RawStatus: "cancelled"})),
			Expired:  also(says(200, `{"code":200,"data":{"id":"{id}","status":"timeout"}}`, jobpoll.Report{RawStatus: "timeout"})),
			Filtered: also(says(200, `{"code":200,"data":{"id":"{id}","status":"completed","outputs":[],"has_nsfw_contents":[true]}}`, jobpoll.Report{RawStatus: "completed"})),
			NoOutput: also(says(200, `{"code":200,"data":{"id":"{id}","status":"completed","outputs":[]}}`, jobpoll.Report{RawStatus: "completed"})),
			Errors: []polltest.Answer{
				{Body: `{"code":404,"msg":"prediction not found","data":null}`, WantKind: jobpoll.ErrorNoSuchJob},
				{Body: `{"code":402,"msg":"insufficient balance","data":null}`, WantKind: jobpoll.ErrorQuota},
				{Status: http.StatusUnauthorized, Body: `{"code":401,"msg":"unauthorized","data":null}`, WantKind: jobpoll.ErrorAuth},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a.New = func(target polltest.Target) jobpoll.Checker {
				return newAdapterFor(t, name, Config{BaseURL: target.URL, HTTP: target.Client, Credentials: Secret(target.Credential)})
			}
			a.Logf = t.Logf
			require.NoError(t, polltest.TestChecker(a))
		})
	}
}
