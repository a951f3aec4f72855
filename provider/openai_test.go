package provider

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

func init() {
	canceled := answers(200, `{"id":"{id}","status":"cancelled"}`, jobpoll.Report{RawStatus: "cancelled"})
	filtered := answers(200, `{"id":"{id}","status":"failed","error":{"code":"moderation_blocked","message":"blocked"}}`, jobpoll.Report{RawStatus: "failed"})
	families["openai"] = family{
		make:   func(cfg Config) (adapter, error) { return made(NewOpenAI(cfg)) },
		words:  openAIWords,
		reply:  func() reply { return &openAIVideo{content: "https://api.example/v1/videos/video_01/content"} },
		body:   `{"id":"video_01","object":"video","status":"completed","progress":100,"created_at":1767323045,"completed_at":1767323105,"expires_at":1767326705}`,
		notice: OpenAINotice,
		kinds:  []jobpoll.FailureKind{jobpoll.FailureUnknown, jobpoll.FailureFiltered, jobpoll.FailureQuota},
		stated: polltest.Adapter{
			Pending: answers(200, `{"id":"{id}","object":"video","status":"in_progress","progress":37}`,
				jobpoll.Report{State: jobpoll.StateRunning, RawStatus: "in_progress", Progress: 0.37}),
			Succeeded: answers(200, `{"id":"{id}","object":"video","status":"completed","progress":100}`,
				jobpoll.Report{RawStatus: "completed", Output: json.RawMessage(`"{base}/v1/videos/{id}/content"`)}),
			Failed: answers(200, `{"id":"{id}","status":"failed","error":{"code":"server","message":"went away"}}`,
				jobpoll.Report{RawStatus: "failed", Failure: &jobpoll.Failure{Code: "server", Message: "went away"}}),
			Canceled: &canceled, Filtered: &filtered,
			Errors: []polltest.Answer{{Status: 429, Body: `{"error":{"code":"insufficient_quota","message":"pay"}}`, WantKind: jobpoll.ErrorQuota}},
		},
	}
}

func FuzzQuoted(f *testing.F) {
	for _, s := range []string{"", "https://a.example/b?c=1&d=%20~", "a\"b", `\`, "<>", "é", "\x00", "\x7f", "\xff", "\u2028"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := json.Marshal(s)
		require.NoError(t, err)
		if s == "" {
			want = nil
		}
		require.Equal(t, string(want), string(quoted(s)))
	})
}
