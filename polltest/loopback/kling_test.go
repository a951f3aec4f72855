package loopback_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
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

// A Script or a Duplicate that panics breaks its own submission off, and takes neither a
// slot nor an id from the next.
func TestASubmissionWhoseScriptPanicsComesToNothing(t *testing.T) {
	for _, who := range []string{"Script", "Duplicate"} {
		var calls atomic.Int32
		once := func(name string) string {
			if name == who && calls.Add(1) == 1 {
				panic(http.ErrAbortHandler) // which net/http does not log
			}
			return ""
		}
		server := started(t, loopback.Config{
			Wire: loopback.Kling(), MaxJobs: 1,
			Script:    func(int, json.RawMessage) string { return once("Script") },
			Duplicate: func(*http.Request, json.RawMessage) string { return once("Duplicate") },
		})
		const body = `{"external_task_id":"own"}`
		c, url := client(t), server.URL()+"/v1/videos/text2video"
		resp, err := c.Post(url, "application/json", strings.NewReader(body))
		if err == nil {
			_ = resp.Body.Close()
		}
		require.Error(t, err, who)
		require.Empty(t, server.Jobs(), who)
		resp, text := do(t, c, http.MethodPost, url, body)
		require.Equal(t, http.StatusOK, resp.StatusCode, "%s: %s", who, text)
	}
}
