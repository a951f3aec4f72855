package provider

import (
	"encoding/json"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

func init() {
	canceled := answers(200, `{"code":200,"data":{"id":"{id}","status":"cancelled"}}`, jobpoll.Report{RawStatus: "cancelled"})
	expired := answers(200, `{"code":200,"data":{"id":"{id}","status":"timeout"}}`, jobpoll.Report{RawStatus: "timeout"})
	filtered := answers(200, `{"code":200,"data":{"id":"{id}","status":"failed","error":"x","code":1200}}`, jobpoll.Report{RawStatus: "failed"})
	nothing := answers(200, `{"code":200,"data":{"id":"{id}","status":"completed","outputs":[]}}`, jobpoll.Report{RawStatus: "completed"})
	families["wavespeed"] = family{
		make:   func(cfg Config) (adapter, error) { return made(NewWaveSpeed(cfg)) },
		words:  waveSpeedWords,
		reply:  func() reply { return &waveSpeedAnswer{} },
		body:   `{"code":200,"message":"success","data":{"id":"ws-01","status":"completed","outputs":["https://cdn.example.test/a.mp4"],"has_nsfw_contents":[false],"timings":{"inference":41200}}}`,
		notice: WaveSpeedNotice,
		kinds:  []jobpoll.FailureKind{jobpoll.FailureUnknown, jobpoll.FailureFault, jobpoll.FailureRejected, jobpoll.FailureFiltered, jobpoll.FailureNoOutput},
		stated: polltest.Adapter{
			Pending: answers(200, `{"code":200,"data":{"id":"{id}","status":"processing","error":"Sync mode timed out","code":5004}}`,
				jobpoll.Report{State: jobpoll.StateRunning, RawStatus: "processing"}),
			Succeeded: answers(200, `{"code":200,"data":{"id":"{id}","status":"completed","outputs":["https://cdn.example/{id}.mp4"]}}`,
				jobpoll.Report{RawStatus: "completed", Output: json.RawMessage(`["https://cdn.example/{id}.mp4"]`)}),
			Failed: answers(200, `{"code":200,"data":{"id":"{id}","status":"failed","error":"went away","code":5000}}`,
				jobpoll.Report{RawStatus: "failed", Failure: &jobpoll.Failure{Kind: jobpoll.FailureFault, Code: "5000", Message: "went away"}}),
			Canceled: &canceled, Expired: &expired, Filtered: &filtered, NoOutput: &nothing,
			Errors: []polltest.Answer{
				{Body: `{"code":200,"data":{"id":"{id}","status":"deleted"}}`, WantKind: jobpoll.ErrorGone},
				{Body: `{"code":404,"message":"not found"}`, WantKind: jobpoll.ErrorNoSuchJob},
				{Body: `{"code":429,"message":"slow"}`, WantKind: jobpoll.ErrorRateLimited},
			},
		},
	}
}
