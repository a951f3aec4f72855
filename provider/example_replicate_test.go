package provider_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/jobpoll/jobpoll/provider"
)

func ExampleReplicate_Submit() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"id":"rp-01","status":"starting"}`)
	}))
	defer server.Close()

	replicate, err := provider.NewReplicate(provider.Config{BaseURL: server.URL, Credentials: provider.Secret("r8_secret")})
	if err != nil {
		fmt.Println(err)
		return
	}
	job, rep, err := replicate.Submit(context.Background(), provider.Order{
		Model: "owner/video-model",
		Input: map[string]any{"prompt": "a cat on a train"},
	})
	fmt.Println(job.ID, rep.State, err)
	job.Route = "replicate" // the name that the adapter has as a jobpoll.Route
	// Output: rp-01 queued <nil>
}
