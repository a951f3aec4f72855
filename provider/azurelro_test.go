package provider

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

func init() {
	canceled := answers(200, `{"id":"{id}","status":"Canceled"}`, jobpoll.Report{RawStatus: "Canceled"})
	filtered := answers(200, `{"id":"{id}","status":"Failed","error":{"code":"ContentFilter","message":"blocked"}}`, jobpoll.Report{RawStatus: "Failed"})
	nothing := answers(200, `{"id":"{id}","status":"Succeeded"}`, jobpoll.Report{RawStatus: "Succeeded"})
	families["azure-lro"] = family{
		make:  func(cfg Config) (adapter, error) { return made(NewAzureLRO(cfg)) },
		words: azureWords,
		ref:   "https://api.example/operations/az-01?api-version=1",
		reply: func() reply { return &azureStatus{} },
		body:  `{"id":"az-01","status":"Succeeded","result":{"url":"https://blob.example.test/a.mp4"}}`,
		kinds: []jobpoll.FailureKind{jobpoll.FailureUnknown, jobpoll.FailureFiltered, jobpoll.FailureNoOutput},
		stated: polltest.Adapter{
			Job: func(base string, n int) jobpoll.Job {
				id := fmt.Sprintf("operation-%04d", n)
				return jobpoll.Job{Route: "azure", ID: id, Ref: base + "/operations/" + id + "?api-version=1"}
			},
			Pending: answers(200, `{"id":"{id}","status":"NotStarted"}`, jobpoll.Report{State: jobpoll.StateQueued, RawStatus: "NotStarted"}),
			Succeeded: answers(200, `{"id":"{id}","status":"Succeeded","result":{"url":"https://cdn.example/{id}.mp4"}}`,
				jobpoll.Report{RawStatus: "Succeeded", Output: json.RawMessage(`{"url":"https://cdn.example/{id}.mp4"}`)}),
			Failed: answers(200, `{"id":"{id}","status":"Failed","error":{"code":"X","message":"went away"}}`,
				jobpoll.Report{RawStatus: "Failed", Failure: &jobpoll.Failure{Code: "X", Message: "went away"}}),
			Canceled: &canceled, Filtered: &filtered, NoOutput: &nothing,
		},
	}
}

// What an operation without a monitor was bought for cannot be asked about.
func TestAnOperationWithoutAMonitorIsAmbiguous(t *testing.T) {
	a := cannedAdapter(t, "azure-lro", &canned{202, nil, []byte(`{"id":"az-01","status":"NotStarted"}`)})
	_, _, err := a.Submit(t.Context(), Order{Path: "/jobs"})
	require.ErrorIs(t, err, ErrNoID)
	require.ErrorIs(t, err, ErrAmbiguous)
}
