package jobpoll_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// An adapter first lets FromResponse say what the answer means, and adds what
// only the provider's own codes tell.
func ExampleFromResponse() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	resp := &http.Response{ // from http.Client.Do
		StatusCode: http.StatusTooManyRequests,
		Header:     http.Header{"Retry-After": {"30"}},
		Body:       io.NopCloser(strings.NewReader(`{"code":"insufficient_quota"}`)),
	}
	defer resp.Body.Close()

	hint, err := jobpoll.FromResponse(resp, now)
	fmt.Println("wait:", hint.RetryAfter, "for:", hint.Scope)
	fmt.Println(err)

	var refused *jobpoll.CheckError
	if errors.As(err, &refused) && refused.Kind == jobpoll.ErrorRateLimited {
		body, _ := io.ReadAll(resp.Body) // all of it is still there
		if strings.Contains(string(body), "insufficient_quota") {
			refused.Kind = jobpoll.ErrorQuota
		}
	}
	fmt.Println("means:", refused.Kind)

	// Output:
	// wait: 30s for: budget
	// jobpoll: rate limited (HTTP 429): Too Many Requests: {"code":"insufficient_quota"}
	// means: quota
}
