package jobpoll_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/jobpoll/jobpoll"
)

// logger writes to standard output, without times.
func logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// An outcome goes into a log as it is: what is looked for, and no output.
func ExampleOutcome_LogValue() {
	outcome := jobpoll.Outcome{
		Job:    jobpoll.Job{Route: "demo", ID: "job-1", ClientKey: "order-4711"},
		State:  jobpoll.StateSucceeded,
		Reason: jobpoll.ReasonSucceeded,
		Report: jobpoll.Report{State: jobpoll.StateSucceeded, Output: json.RawMessage(`{"url":"https://example.com/v.mp4?signature=1"}`)},
		Polls:  7, DetectionDelay: 3200 * time.Millisecond, DelayExact: true,
	}
	logger().Info("ended", "outcome", outcome)
	fmt.Println(outcome)
	// Output:
	// level=INFO msg=ended outcome.job.route=demo outcome.job.id=job-1 outcome.job.client_key=order-4711 outcome.reason=succeeded outcome.state=succeeded outcome.polls=7 outcome.detection_delay=3.2s outcome.delay_exact=true outcome.output_bytes=47
	// demo/job-1: succeeded after 7 looks, found 3.2s late, output of 47 bytes
}

// So does what a hook is told.
func ExampleHooks_log() {
	log := logger()
	hooks := jobpoll.Hooks{
		Looked: func(e jobpoll.LookEvent) { log.Debug("looked", "look", e) },
		Late:   func(e jobpoll.LateEvent) { log.Warn("a result that nobody waits for", "late", e) },
	}
	hooks.Late(jobpoll.LateEvent{
		Job:     jobpoll.Job{Route: "demo", ID: "job-1"},
		Outcome: jobpoll.Outcome{Reason: jobpoll.ReasonDeadline},
		State:   jobpoll.StateSucceeded, Via: jobpoll.ViaWebhook,
	})
	// Output:
	// level=WARN msg="a result that nobody waits for" late.job.route=demo late.job.id=job-1 late.reason=deadline late.state=succeeded late.via=webhook
}
