package provider_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/provider"
)

// What people copy is as a Checker should be.
func TestTheExampleConforms(t *testing.T) {
	require.NoError(t, polltest.TestChecker(polltest.Adapter{
		New: func(p polltest.Target) jobpoll.Checker {
			c, err := provider.NewClient(provider.Config{HTTP: p.Client, BaseURL: p.URL, Header: "X-Acme-Key", Credentials: provider.Secret(p.Credential)})
			if err != nil {
				panic(err) // told as a finding
			}
			return acme{c}
		},
		Pending: polltest.Answer{
			Body: `{"id":"{id}","state":"busy","percent":40,"seconds_left":12.5}`,
			Want: jobpoll.Report{State: jobpoll.StateRunning, RawStatus: "busy", Progress: 0.4, Remaining: 12500 * time.Millisecond},
		},
		Succeeded: polltest.Answer{
			Body: `{"id":"{id}","state":"done","percent":100,"video":{"url":"https://cdn.example/{id}.mp4"}}`,
			Want: jobpoll.Report{RawStatus: "done", Output: json.RawMessage(`{"url":"https://cdn.example/{id}.mp4"}`)},
		},
		Failed: polltest.Answer{
			Body: `{"id":"{id}","state":"broken","code":"renderer_lost","reason":"the machine went away"}`,
			Want: jobpoll.Report{RawStatus: "broken", Failure: &jobpoll.Failure{Kind: jobpoll.FailureFault, Code: "renderer_lost", Message: "went away"}},
		},
		Filtered: &polltest.Answer{Body: `{"id":"{id}","state":"broken","code":"moderated","reason":"held back"}`, Want: jobpoll.Report{RawStatus: "broken"}},
		NoOutput: &polltest.Answer{Body: `{"id":"{id}","state":"done","video":null}`, Want: jobpoll.Report{RawStatus: "done"}},
		Logf:     t.Logf,
	}))
}
