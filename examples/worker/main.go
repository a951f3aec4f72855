// Worker watches a job with the two pure calls only: no Poller, no goroutine.
// All that it knows is one JSON document, so that any scheduler can run it: a
// cron, a queue's retry, a workflow's timer.
//
//	go run ./examples/worker              # loops in simulated time
//	go run ./examples/worker -state FILE  # one tick a run, state in FILE
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"time"

	"github.com/jobpoll/jobpoll"
)

// state is all that has to survive between two ticks.
type state struct {
	Job   jobpoll.Job   `json:"job"`
	Track jobpoll.Track `json:"track"`
	Due   time.Time     `json:"due,omitzero"`
}

var schedule jobpoll.Schedule // the default one

// check asks a simulated provider about a job that takes 40 s. A real one
// would be an HTTP call to job.Ref.
func check(job jobpoll.Job, now time.Time) (jobpoll.Report, error) {
	switch age := now.Sub(job.SubmittedAt); {
	case age < 8*time.Second: // the status moves to a URL of its own
		return jobpoll.Report{State: jobpoll.StateQueued, QueuePosition: 2, Ref: "/v2/status/" + job.ID}, nil
	case age < 25*time.Second: // too many calls: come back in 10 s
		return jobpoll.Report{}, &jobpoll.CheckError{Kind: jobpoll.ErrorRateLimited, Status: 429, Hint: jobpoll.Hint{RetryAfter: 10 * time.Second}}
	case age < 40*time.Second:
		return jobpoll.Report{State: jobpoll.StateRunning, Progress: age.Seconds() / 40, Remaining: 40*time.Second - age}, nil
	}
	return jobpoll.Report{State: jobpoll.StateSucceeded, Output: json.RawMessage(`{"url":"https://example.com/v.mp4"}`)}, nil
}

// tick does what is due: one look at most. It reports when to come again; done
// says that the watch has ended, with a nil error only for a success.
func tick(s state, now time.Time, rnd float64) (next state, done bool, err error) {
	if now.Before(s.Due) {
		return s, false, nil
	}
	in := jobpoll.Input{Job: s.Job, Track: s.Track, Now: now} // Rand 0: the earliest instant
	d := schedule.Next(in)
	if d.Look(now) {
		report, err := check(s.Job, now)
		s.Track, _ = s.Track.Observe(report, err, now)
		if err == nil && report.Ref != "" {
			s.Job.Ref = report.Ref // the adapter's new reference goes with the job
		}
		fmt.Printf("%5.1fs  %-9s %3.0f %%  %s %s %s\n", now.Sub(s.Job.SubmittedAt).Seconds(), s.Track.State, 100*s.Track.Progress, s.Job.Ref, s.Track.Message, report.Output)
		in.Job, in.Track, in.Rand = s.Job, s.Track, rnd
		d = schedule.Next(in)
	}
	if d.Stop != jobpoll.ReasonNone {
		return s, true, d.Err(s.Job, s.Track)
	}
	s.Due = d.At // a wait that the provider asked for is in here
	return s, false, nil
}

// load reads the state; where there is none, a job has just been submitted.
func load(file string, now time.Time) (state, error) {
	s := state{Job: jobpoll.Job{Route: "demo", ID: "job-1", Ref: "/v1/status/job-1", Expected: 45 * time.Second, SubmittedAt: now}}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(b, &s)
}

// simulate ticks from one due time to the next, the state as JSON in between.
func simulate(now time.Time) (state, error) {
	s, _ := load("", now)
	for {
		next, done, err := tick(s, now, 0.5)
		if done {
			return next, err
		}
		b, _ := json.Marshal(next) // plain data: this cannot fail
		s = state{}
		if err := json.Unmarshal(b, &s); err != nil {
			return next, err
		}
		now = s.Due
	}
}

func main() {
	file := flag.String("state", "", "do one tick, with the state in this file")
	flag.Parse()
	now := time.Now().UTC()
	if *file == "" {
		if _, err := simulate(now); err != nil {
			log.Fatal(err) // names the job, the reason, and what to do
		}
		return
	}
	s, err := load(*file, now)
	if err != nil {
		log.Fatal(err)
	}
	next, done, stop := tick(s, now, float64(now.Nanosecond())/1e9)
	b, err := json.MarshalIndent(next, "", "  ")
	if err == nil {
		err = os.WriteFile(*file, b, 0o600)
	}
	switch {
	case err != nil:
		log.Fatal(err)
	case stop != nil:
		log.Fatal(stop)
	case done:
		fmt.Println("done")
	default:
		fmt.Println("come again at", next.Due.Format(time.RFC3339))
	}
}
