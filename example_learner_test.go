package jobpoll_test

import (
	"fmt"
	"time"

	"github.com/jobpoll/jobpoll"
)

// A worker that drives the core itself learns from the jobs that it has seen
// end, and hands the plan to Next.
func ExampleLearner() {
	learner, schedule := jobpoll.NewLearner(0), jobpoll.Schedule{Jitter: jobpoll.NoJitter}
	for i := range 50 { // each was seen to end between two looks
		took := 50*time.Second + time.Duration(i%10)*time.Second
		learner.Observe(jobpoll.Sample{Family: "fal", Profile: "kling/10s", After: took - 3*time.Second, By: took + 3*time.Second})
	}

	submitted := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	d := schedule.Next(jobpoll.Input{
		Job:  jobpoll.Job{Route: "fal", ID: "job-1", Profile: "kling/10s", SubmittedAt: submitted},
		Plan: learner.Plan("fal", "kling/10s", schedule),
		Now:  submitted,
	})
	wait := d.At.Sub(submitted)
	fmt.Println(d.Cause, wait > 45*time.Second && wait < 60*time.Second)
	// Output: plan true
}
