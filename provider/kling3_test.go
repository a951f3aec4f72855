package provider

import (
	"encoding/json"
	"strings"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

func init() {
	const list, end = `{"code":0,"data":[`, `]}`
	filtered := answers(200, list+`{"id":"{id}","status":"failed","message":"blocked by policy"}`+end, jobpoll.Report{RawStatus: "failed"})
	nothing := answers(200, list+`{"id":"{id}","status":"succeeded","outputs":[]}`+end, jobpoll.Report{RawStatus: "succeeded"})
	families["kling3"] = family{
		make: func(cfg Config) (adapter, error) { return made(NewKling3(cfg)) },
		words: jobpoll.Words{
			"submitted": jobpoll.StateQueued, "processing": jobpoll.StateRunning, "succeeded": jobpoll.StateSucceeded, "failed": jobpoll.StateFailed,
		},
		reply:  func() reply { return &klingReply{} },
		plain:  func() any { return &klingPlain[[]klingTask]{} },
		body:   list + `{"id":"kl-31","status":"succeeded","message":"","outputs":[{"type":"video","id":"v-1","url":"https://cdn.example.test/a.mp4","duration":"5.0"}],"create_time":1767323045000,"update_time":1767323145000}` + end,
		notice: KlingNotice,
		kinds:  []jobpoll.FailureKind{jobpoll.FailureUnknown, jobpoll.FailureFiltered, jobpoll.FailureNoOutput},
		stated: polltest.Adapter{
			Pending: answers(200, list+`{"id":"{id}","status":"processing"}`+end, jobpoll.Report{State: jobpoll.StateRunning, RawStatus: "processing"}),
			Succeeded: answers(200, list+`{"id":"{id}","status":"succeeded","outputs":[{"url":"https://cdn.example/{id}.mp4"}]}`+end,
				jobpoll.Report{RawStatus: "succeeded", Output: json.RawMessage(`[{"url":"https://cdn.example/{id}.mp4"}]`)}),
			Failed: answers(200, list+`{"id":"{id}","status":"failed","message":"went away"}`+end,
				jobpoll.Report{RawStatus: "failed", Failure: &jobpoll.Failure{Message: "went away"}}),
			Filtered: &filtered, NoOutput: &nothing,
			Errors: []polltest.Answer{
				{Body: `{"code":1203,"message":"no such task"}`, WantKind: jobpoll.ErrorNoSuchJob},
				{Body: `{"code":1302,"message":"too fast"}`, WantKind: jobpoll.ErrorRateLimited},
			},
			Batch: func(parts []string) polltest.Answer { // each part is a list of one
				var tasks []string
				for _, p := range parts {
					tasks = append(tasks, strings.TrimSuffix(strings.TrimPrefix(p, list), end))
				}
				return answers(200, list+strings.Join(tasks, ",")+end, jobpoll.Report{})
			},
		},
	}
}
