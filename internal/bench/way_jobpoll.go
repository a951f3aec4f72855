package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jobpoll/jobpoll"
)

// wide is a limit, in calls per second, that binds nobody.
const wide = 100_000_000

const profileCount = 100

// profileNames are as many as a large account has.
func profileNames() []string {
	names := make([]string, profileCount)
	for i := range names {
		names[i] = fmt.Sprintf("model-%d/1080p/%ds", i/10, i%10+1)
	}
	return names
}

const benchRoute = "render"

// steadySchedule has one interval: first = cap. The jitter is worked out for
// each look, but so small (nanoseconds) that the planned instant is known.
func steadySchedule(interval time.Duration) jobpoll.Schedule {
	return jobpoll.Schedule{
		Delays:   []time.Duration{interval},
		MinDelay: min(interval, jobpoll.DefaultMinDelay),
		Jitter:   1e-9,
	}
}

// wideBudget has both lanes with their guarantees, set so wide that no call waits.
func wideBudget() *jobpoll.Budget {
	half := jobpoll.LaneLimits{Reserve: jobpoll.Limit{Rate: wide / 2, Burst: wide / 2}}
	return jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: wide, Burst: wide}, Status: half, Submit: half})
}

// jobpollWay is this library with all that it has: schedule, stop rules, budget,
// deadlines, profiles, metrics. Only the store is left out.
type jobpollWay struct {
	m        *meter
	poller   *jobpoll.Poller
	profiles []string
	deadline time.Time
	// told is how long it took from a notice of the end to OnStop, by notified:
	// when the notice was given, by the number of the job.
	told     *histogram
	notified []atomic.Int64
}

func startJobpoll(m *meter) way {
	w := &jobpollWay{
		m: m, profiles: profileNames(), deadline: m.begin.Add(time.Hour),
		told: newHistogram(), notified: make([]atomic.Int64, notices),
	}
	var err error
	w.poller, err = jobpoll.New(jobpoll.Config{
		Routes:    []jobpoll.Route{{Name: benchRoute, Checker: jobpoll.CheckerFunc(w.check), Schedule: steadySchedule(m.Interval)}},
		Budget:    wideBudget(),
		Callbacks: jobpoll.Callbacks{OnStop: w.stopped},
		Workers:   m.Workers,
	})
	if err != nil {
		panic(err)
	}
	go func() {
		if err := w.poller.Run(context.Background()); err != nil {
			panic(err)
		}
	}()
	return way{admit: w.admit, calls: w.calls()}
}

func (w *jobpollWay) check(_ context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	w.m.look(job.ID)
	return jobpoll.Report{State: jobpoll.StateRunning, RawStatus: "running"}, nil
}

func (w *jobpollWay) admit(id string, first int64) {
	job := jobpoll.Job{Route: benchRoute, ID: id, Profile: w.profiles[indexOf(id)%profileCount], Deadline: w.deadline}
	// The first look comes one interval after the submission. Where that would
	// lie in the future, as with the tiny gaps of -peak, it has to wait.
	submitted := first - int64(w.m.Interval)
	job.SubmittedAt = w.m.at(submitted)
	if submitted > w.m.now() {
		job.NotBefore = w.m.at(first)
	}
	if err := w.poller.Watch(context.Background(), job); err != nil {
		panic(err)
	}
}

// notices is how many jobs at most are ended by notice in a burst.
const notices = spare / 2

// stopped is called with the end of a job that a notice has ended.
func (w *jobpollWay) stopped(_ context.Context, o jobpoll.Outcome) error {
	k := w.m.Jobs - 1 - indexOf(o.Job.ID)
	if k >= 0 && k < notices {
		w.told.add(k, w.m.now()-w.notified[k].Load())
	}
	return nil
}

// endingCall has a time for each job that a notice has ended.
const endingCall = "Notify to OnStop"

// calls are what a service does while a burst is worked off.
func (w *jobpollWay) calls() []call {
	key := func(i int) jobpoll.Key { return jobpoll.Key{Route: benchRoute, ID: idOf(i)} }
	return []call{
		{name: "Watch", took: newHistogram(), do: func(k int) { w.watchUrgent(w.m.Jobs + k%spare) }},
		{name: "Watch to look", took: w.m.urgent},
		{name: "Notify", took: newHistogram(), do: func(k int) { w.end(k, key(w.m.Jobs-1-k)) }},
		{name: endingCall, took: w.told},
		{name: "PollNow", took: newHistogram(), do: func(k int) { _ = w.poller.PollNow(key(k * 97 % w.m.Jobs)) }},
		{name: "Job", took: newHistogram(), do: func(k int) { w.poller.Job(key(k * 101 % w.m.Jobs)) }},
		{name: "Metrics", took: newHistogram(), do: func(int) { w.poller.Metrics() }},
	}
}

// watchUrgent adds a job and asks for a look at it now.
func (w *jobpollWay) watchUrgent(i int) {
	now := w.m.now()
	w.m.planned[i].Store(now)
	w.admit(idOf(i), now)
	_ = w.poller.PollNow(jobpoll.Key{Route: benchRoute, ID: idOf(i)})
}

// end gives notice of the end of the k-th job from the last.
func (w *jobpollWay) end(k int, key jobpoll.Key) {
	if k >= min(notices, w.m.Jobs) {
		return
	}
	w.notified[k].Store(w.m.now())
	_ = w.poller.Notify(context.Background(), jobpoll.Notice{
		Key: key, Report: jobpoll.Report{State: jobpoll.StateSucceeded, RawStatus: "succeeded"}, Trust: jobpoll.TrustAuthoritative,
	})
}
