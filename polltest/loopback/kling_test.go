package loopback_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// A task is known by the id of the caller's too, each where its API has it.
func TestATaskOfKlingsHasAnIDOfTheCallers(t *testing.T) {
	server := started(t, loopback.Config{Wire: loopback.Kling(), MaxJobs: 3})
	c := client(t)
	ask := func(method, path, body string, status int) string {
		resp, text := do(t, c, method, server.URL()+path, body)
		require.Equal(t, status, resp.StatusCode, "%s %s: %s", method, path, text)
		return text
	}
	const first, third = "/v1/videos/text2video", "/text-to-video/kling-3.0"
	require.Contains(t, ask("POST", first, `{"external_task_id":"a/1"}`, http.StatusOK), `"task_info":{"external_task_id":"a/1"}`)
	require.Contains(t, ask("POST", third, `{"options":{"external_task_id":"b"}}`, http.StatusOK), `"external_id":"b"`)
	require.NotContains(t, ask("POST", third, `{"external_task_id":"c"}`, http.StatusOK), "external_id", "it belongs in options")

	one, two, three := loopback.Kling().ID(1), loopback.Kling().ID(2), loopback.Kling().ID(3)
	require.Contains(t, ask("GET", first+"/a%2F1", "", http.StatusOK), one)
	require.Contains(t, ask("GET", first+"/"+one, "", http.StatusOK), "a/1")
	require.Contains(t, ask("GET", "/v1/videos/image2video/"+one, "", http.StatusNotFound), "1203")
	both := ask("GET", "/tasks?external_task_ids=b,c,none", "", http.StatusOK)
	require.Contains(t, both, two)
	require.NotContains(t, both, three)
	require.NotContains(t, ask("GET", "/tasks?task_ids=b", "", http.StatusOK), two, "it is not the task's own")
	require.NotContains(t, ask("GET", "/tasks?external_task_ids="+two, "", http.StatusOK), two)

	// One that is taken is refused; one of a submission that came to nothing is free.
	require.Contains(t, ask("POST", third, `{"options":{"external_task_id":"b"}}`, http.StatusBadRequest), "1201")
	require.Contains(t, ask("POST", third, `{"options":{"external_task_id":"d"}}`, http.StatusTooManyRequests), "1303")
	require.Contains(t, ask("POST", third, `{"options":{"external_task_id":"d"}}`, http.StatusTooManyRequests), "1303")
	require.Len(t, server.Jobs(), 3)
}
