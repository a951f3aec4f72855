package main

import (
	"context"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// operation is a long-running operation that does not end. It takes the place
// of the HTTP call and of what reads its answer.
type operation struct {
	m  *meter
	id string
}

var noAnswer = &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}

func (o *operation) Done() bool                              { return false }
func (o *operation) Result(context.Context, *struct{}) error { return nil }
func (o *operation) Poll(context.Context) (*http.Response, error) {
	o.m.look(o.id)
	return noAnswer, nil
}

func startAzcore(m *meter) way {
	pipeline := runtime.NewPipeline("bench", "v0", runtime.PipelineOptions{}, nil)
	return way{admit: func(id string, first int64) {
		go func() {
			m.sleepUntil(first)
			poller, err := runtime.NewPoller(noAnswer, pipeline, &runtime.NewPollerOptions[struct{}]{Handler: &operation{m: m, id: id}})
			if err != nil {
				panic(err)
			}
			_, _ = poller.PollUntilDone(context.Background(), &runtime.PollUntilDoneOptions{Frequency: m.Interval})
		}()
	}}
}
