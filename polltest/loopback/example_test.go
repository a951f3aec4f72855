package loopback_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// A job is submitted and followed to its end, in no time.
func Example() {
	clock := polltest.NewClock(time.Time{})
	server := loopback.Start(loopback.Config{
		Wire:   loopback.Atlas(),
		Clock:  clock,
		Script: func(int, json.RawMessage) string { return `queued; at 8s running; at 40s succeeded` },
	})
	defer server.Close()

	api := server.URL() + "/api/v1/model/"
	resp, err := http.Post(api+"generateVideo", "application/json", strings.NewReader(`{"model":"a/b","prompt":"c"}`))
	var job struct {
		Data struct{ ID, Status string }
	}
	for range 4 {
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		_ = json.Unmarshal(body, &job)
		fmt.Println(resp.Header.Get("Date"), job.Data.Status)
		clock.Advance(15 * time.Second)
		resp, err = http.Get(api + "prediction/" + job.Data.ID)
	}
	_ = resp.Body.Close()
	fmt.Println(server.Stats().Statuses, "status calls")
	// Output:
	// Mon, 01 Jan 2001 00:00:00 GMT starting
	// Mon, 01 Jan 2001 00:00:15 GMT processing
	// Mon, 01 Jan 2001 00:00:30 GMT processing
	// Mon, 01 Jan 2001 00:00:45 GMT completed
	// 4 status calls
}

func ExampleConfig_fault() {
	server := loopback.Start(loopback.Config{
		Wire: loopback.Replicate(),
		Fault: func(n int, _ *http.Request) loopback.Fault {
			if n == 1 {
				return loopback.Fault{Kind: polltest.FaultHTML}
			}
			return loopback.Fault{}
		},
	})
	defer server.Close()
	for range 2 {
		resp, err := http.Post(server.URL()+"/v1/predictions", "application/json", strings.NewReader(`{"input":{}}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = resp.Body.Close()
		fmt.Println(resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	fmt.Println("but there are", len(server.Jobs()), "jobs")
	// Output:
	// 502 text/html
	// 201 application/json
	// but there are 2 jobs
}
