package provider_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"github.com/jobpoll/jobpoll/polltest/loopback"
	"github.com/jobpoll/jobpoll/provider"
)

// A gateway that speaks as OpenAI gives the video to who has the key.
func ExampleClient_Download() {
	server := loopback.Start(loopback.Config{
		Wire: loopback.OpenAI(), Credential: "key-0123", Script: func(int, json.RawMessage) string { return "succeeded" },
	})
	defer server.Close()
	openAI, err := provider.NewOpenAI(provider.Config{BaseURL: server.URL(), Credentials: provider.Secret("key-0123")})
	if err != nil {
		fmt.Println(err)
		return
	}
	job, _, err := openAI.Submit(context.Background(), provider.Order{Model: "maker/video"})
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := openAI.Check(context.Background(), job) // or an Outcome's Report
	if err != nil {
		fmt.Println(err)
		return
	}
	var url string
	if err := json.Unmarshal(report.Output, &url); err != nil {
		fmt.Println(err)
		return
	}
	n, err := openAI.Client().Download(context.Background(), provider.Request{
		URL:    url,
		Header: http.Header{"Accept": {"video/*"}},
	}, os.Stdout) // a file, say
	fmt.Printf("\n%d bytes, %v\n", n, err)
	// Output:
	// the video video_68e0a1b2000000000000000000000001
	// 48 bytes, <nil>
}
