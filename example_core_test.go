package jobpoll_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/jobpoll/jobpoll"
)

// A worker that has only the two pure calls: it asks when to look, looks, and
// takes the answer in.
func ExampleSchedule_Next() {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	schedule := jobpoll.Schedule{Jitter: jobpoll.NoJitter, Delays: []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second}}
	in := jobpoll.Input{
		Job: jobpoll.Job{Route: "demo", ID: "job-1", SubmittedAt: start},
		Now: start,
	}
	for _, report := range []jobpoll.Report{
		{State: jobpoll.StateRunning},
		{State: jobpoll.StateRunning, Hint: jobpoll.Hint{RetryAfter: 30 * time.Second}},
		{State: jobpoll.StateRunning, Remaining: 8 * time.Second},
		{State: jobpoll.StateSucceeded},
	} {
		d := schedule.Next(in)
		fmt.Printf("look at %s: %s\n", d.At.Format(time.TimeOnly), d.Cause)
		in.Now = d.At
		in.Track, _ = in.Track.Observe(report, nil, in.Now)
	}
	d := schedule.Next(in)
	fmt.Printf("%s, error: %v\n", d.Stop.String(), d.Err(in.Job, in.Track))
	// Output:
	// look at 12:00:05: first
	// look at 12:00:15: ladder
	// look at 12:00:45: hint
	// look at 12:00:53: eta
	// succeeded, error: <nil>
}

func ExampleTrack_Observe() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var track jobpoll.Track // a job never looked at
	for _, report := range []jobpoll.Report{
		{State: jobpoll.StateQueued, QueuePosition: 7},
		{State: jobpoll.StateRunning, Progress: 0.2},
		{State: jobpoll.StateRunning, Progress: 0.1}, // no progress
	} {
		now = now.Add(10 * time.Second)
		var change jobpoll.Change
		track, change = track.Observe(report, nil, now)
		fmt.Printf("%s: %s\n", track.State, change)
	}
	// The memory is plain data.
	track = jobpoll.Track{}
	track, _ = track.Observe(jobpoll.Report{}, errors.New("connection reset"), now)
	b, _ := json.Marshal(track)
	fmt.Println(string(b))
	// Output:
	// queued: state+queue
	// running: state+progress+advance
	// running: none
	// {"v":1,"error_kind":"transient","message":"connection reset","first_at":"2026-01-01T12:00:30Z","last_at":"2026-01-01T12:00:30Z","looks":1,"errors":1}
}

// Any BackOff gives the growth of a schedule.
func ExampleLadder() {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(2*time.Second),
		backoff.WithMultiplier(3),
		backoff.WithMaxInterval(time.Minute),
		backoff.WithRandomizationFactor(0), // the Schedule has its own jitter
	)
	schedule := jobpoll.Schedule{Delays: jobpoll.Ladder(b)}
	fmt.Println(schedule.Delays)
	// Output: [2s 6s 18s 54s 1m0s]
}

func ExampleDecodeOutput() {
	outcome := jobpoll.Outcome{
		Job:    jobpoll.Job{Route: "demo", ID: "job-1"},
		State:  jobpoll.StateSucceeded,
		Reason: jobpoll.ReasonSucceeded,
		Report: jobpoll.Report{Output: json.RawMessage(`{"video":{"url":"https://example.com/v.mp4"}}`)},
	}
	v, err := jobpoll.DecodeOutput[struct {
		Video struct{ URL string }
	}](outcome)
	fmt.Println(v.Video.URL, err)
	// Output: https://example.com/v.mp4 <nil>
}

func ExampleDecodeReport() {
	// As it comes in an Update, or from a look of one's own.
	report := jobpoll.Report{State: jobpoll.StateSucceeded, Output: json.RawMessage(`["https://example.com/v.mp4"]`)}
	urls, err := jobpoll.DecodeReport[[]string](report)
	fmt.Println(urls, err)
	_, err = jobpoll.DecodeReport[[]string](jobpoll.Report{State: jobpoll.StateRunning, Progress: 0.4})
	fmt.Println(err)
	// Output:
	// [https://example.com/v.mp4] <nil>
	// jobpoll: a report (running, 40 %): the report carries no output
}

func ExampleStopError() {
	err := jobpoll.Outcome{
		Job:    jobpoll.Job{Route: "demo", ID: "job-1"},
		State:  jobpoll.StateRunning,
		Reason: jobpoll.ReasonDeadline,
		Polls:  14,
	}.Err()

	if errors.Is(err, jobpoll.ReasonDeadline) {
		var stop *jobpoll.StopError
		errors.As(err, &stop)
		fmt.Println("resume later:", stop.Outcome.Job.Key(), stop.Outcome.Reason.Resumable())
	}
	fmt.Println(err)
	// Output:
	// resume later: demo/job-1 true
	// jobpoll: demo/job-1: stopped: deadline (state running, 14 looks); the job may still finish: watch the same id to resume, do not submit it again
}
