package provider

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

func init() {
	canceled := answers(200, `{"output":{"task_id":"{id}","task_status":"CANCELED"}}`, jobpoll.Report{RawStatus: "CANCELED"})
	filtered := answers(200, `{"output":{"task_id":"{id}","task_status":"FAILED","code":"DataInspectionFailed","message":"content"}}`, jobpoll.Report{RawStatus: "FAILED"})
	nothing := answers(200, `{"output":{"task_id":"{id}","task_status":"SUCCEEDED"}}`, jobpoll.Report{RawStatus: "SUCCEEDED"})
	taken := answers(200, `{"request_id":"rq-1"}`, jobpoll.Report{})
	families["dashscope"] = family{
		make:  func(cfg Config) (adapter, error) { return made(NewDashScope(cfg)) },
		words: dashScopeWords,
		reply: func() reply { return &dashScopeAnswer{} },
		body:  `{"request_id":"rq-2","output":{"task_id":"ds-01","task_status":"SUCCEEDED","submit_time":"2026-01-02 11:04:05.100","scheduled_time":"2026-01-02 11:04:07.000","end_time":"2026-01-02 11:06:00.000","video_url":"https://oss.example.test/a.mp4?Expires=1"},"usage":{"video_count":1}}`,
		kinds: []jobpoll.FailureKind{jobpoll.FailureUnknown, jobpoll.FailureFault, jobpoll.FailureRejected, jobpoll.FailureFiltered, jobpoll.FailureQuota, jobpoll.FailureNoOutput},
		stated: polltest.Adapter{
			Pending: answers(200, `{"output":{"task_id":"{id}","task_status":"PENDING"}}`, jobpoll.Report{State: jobpoll.StateQueued, RawStatus: "PENDING"}),
			Succeeded: answers(200, `{"output":{"task_id":"{id}","task_status":"SUCCEEDED","video_url":"https://cdn.example/{id}.mp4"}}`,
				jobpoll.Report{RawStatus: "SUCCEEDED", Output: json.RawMessage(`"https://cdn.example/{id}.mp4"`)}),
			Failed: answers(200, `{"output":{"task_id":"{id}","task_status":"FAILED","code":"X","message":"went away"}}`,
				jobpoll.Report{RawStatus: "FAILED", Failure: &jobpoll.Failure{Code: "X", Message: "went away"}}),
			Canceled: &canceled, Filtered: &filtered, NoOutput: &nothing, Cancel: &taken,
			Errors: []polltest.Answer{{Body: `{"output":{"task_id":"{id}","task_status":"UNKNOWN"}}`, WantKind: jobpoll.ErrorNoSuchJob}},
		},
	}
}

// A time without a zone is one of Beijing; all that is not such a time is read as
// a Text is.
func TestTimesOfBeijing(t *testing.T) {
	zone := time.FixedZone("", 8*60*60)
	for _, s := range []string{
		"2026-01-02 11:04:07", "2026-01-02 11:04:07.100", " 2026-01-02 11:04:07,5 ", "2026-01-02 1:04:07", "2026-02-30 11:04:07", "2026-01-02 24:00:00",
		"2026-01-02 11:04:07Z", "2026-01-02 11:04:07+08:00", "2026-01-02T11:04:07", "2026-01-02T11:04:07Z", "2026-01-02", "2026-01-02 ", "0000-01-01 00:00:00",
		"9999-12-31 23:59:59", "2026-01-02 11:04:60", "2026-01-02 11:04", "2026-01-02  11:04:07", "1767323045", "soon", "",
	} {
		want, err := time.ParseInLocation(time.DateTime, strings.TrimSpace(s), zone)
		if err != nil {
			want = Text(s).Time()
		}
		require.Equal(t, want.UTC(), beijing(Text(s)), "%q", s)
	}
}
