package provider_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/jobpoll/jobpoll/polltest/loopback"
	"github.com/jobpoll/jobpoll/provider"
)

// Stability makes a video of an image, which goes along with the order.
func ExampleForm() {
	server := loopback.Start(loopback.Config{Wire: loopback.Stability(), Credential: "key-0123"})
	defer server.Close()
	stability, err := provider.NewStability(provider.Config{BaseURL: server.URL(), Credentials: provider.Secret("key-0123")})
	if err != nil {
		fmt.Println(err)
		return
	}
	image := []byte("\x89PNG\r\n\x1a\n…") // of a file, say
	job, _, err := stability.Submit(context.Background(), provider.Order{
		Model: "image-to-video", // the Profile: it is not sent
		Input: provider.Form{
			Fields: url.Values{"seed": {"7"}, "motion_bucket_id": {"127"}},
			Files:  []provider.File{{Field: "image", Name: "cat.png", Content: image}},
		},
	})
	if err != nil {
		fmt.Println(err, "— may have been taken:", errors.Is(err, provider.ErrAmbiguous))
		return
	}
	job.Route = "stability"
	rep, err := stability.Check(context.Background(), job)
	fmt.Println(job.Profile, rep.State, err)
	// Output:
	// image-to-video running <nil>
}
