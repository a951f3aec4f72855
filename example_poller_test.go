package jobpoll_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

// The examples run on a clock that is moved by hand, so that a minute takes no
// time and each run prints the same. A service leaves Config.Clock and
// Config.Rand nil.

// noJitter is a Config.Rand that never spreads a delay.
func noJitter() float64 { return 0.5 }

// New reports everything that is wrong at once, and starts nothing.
func ExampleNew() {
	_, err := jobpoll.New(jobpoll.Config{
		Workers: -1,
		Routes: []jobpoll.Route{{
			Name:     "render",
			Schedule: jobpoll.Schedule{MaxDelay: time.Millisecond},
		}},
	})
	fmt.Println(err)
	// Output:
	// jobpoll: Config.Workers: -1 is negative; zero means 1024
	// jobpoll: Config.Routes[0] ("render").Checker: is nil; it is what asks the provider
	// jobpoll: Config.Routes[0] ("render").Schedule.MaxDelay: the cap 1ms is under the least gap 1s (MinDelay)
}

// Watch gives a job to the Poller; the callbacks tell what becomes of it.
func ExamplePoller_Watch() {
	clock := polltest.NewClock(time.Time{})
	provider := polltest.NewProvider(clock)
	provider.Add("abc", `queued pos 3; at 20s running 50%; at 40s succeeded output {"url":"https://cdn.example/abc.mp4"}`)

	p, err := jobpoll.New(jobpoll.Config{
		Clock: clock, Rand: noJitter,
		Routes: []jobpoll.Route{{Name: "render", Checker: provider}},
		Callbacks: jobpoll.Callbacks{
			OnUpdate: func(_ context.Context, u jobpoll.Update) { fmt.Println("update:", u.State) },
			OnStop: func(_ context.Context, o jobpoll.Outcome) error {
				fmt.Println("end:", o.Reason, string(o.Report.Output))
				return nil // taken; an error would bring it again
			},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer polltest.Run(clock, p)()

	job := jobpoll.Job{Route: "render", ID: "abc", Expected: 45 * time.Second}
	if err := p.Watch(context.Background(), job); err != nil {
		fmt.Println(err)
	}
	clock.Advance(2 * time.Minute)

	err = p.Watch(context.Background(), job)
	fmt.Println("once more:", err)
	// Output:
	// update: queued
	// update: running
	// end: succeeded {"url":"https://cdn.example/abc.mp4"}
	// once more: jobpoll: render/abc: already resolved: succeeded
}

// Wait is Watch for callers who want the end where they are. The reason of an
// end that is no success is matched with errors.Is.
func ExamplePoller_Wait() {
	clock := polltest.NewClock(time.Time{})
	provider := polltest.NewProvider(clock)
	provider.Add("abc", `running; at 30s failed filtered "the face of a person"`)

	p, err := jobpoll.New(jobpoll.Config{
		Clock: clock, Rand: noJitter,
		Routes: []jobpoll.Route{{Name: "render", Checker: provider}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer polltest.Run(clock, p)()

	ended := make(chan error, 1)
	go func() {
		_, err := p.Wait(context.Background(), jobpoll.Job{Route: "render", ID: "abc", Expected: 45 * time.Second})
		ended <- err
	}()
	for p.Metrics().Total.Watched == 0 {
		time.Sleep(time.Millisecond)
	}
	clock.Advance(2 * time.Minute)
	err = <-ended

	var stop *jobpoll.StopError
	if errors.As(err, &stop) && errors.Is(err, jobpoll.ReasonFailed) {
		fmt.Println(stop.Outcome.Job.ID, "failed:", stop.Outcome.Report.Failure)
	}
	// Output:
	// abc failed: filtered: the face of a person
}

// The function Wait needs neither Config nor Route: for a command line, a
// script, a first try.
func ExampleWait() {
	checker := jobpoll.CheckerFunc(func(_ context.Context, job jobpoll.Job) (jobpoll.Report, error) {
		return jobpoll.Report{State: jobpoll.StateSucceeded, Output: json.RawMessage(`{"url":"https://cdn.example/abc.mp4"}`)}, nil
	})
	submitted := time.Now().Add(-time.Minute) // so that the first look is due at once
	o, err := jobpoll.Wait(context.Background(), checker, jobpoll.Job{ID: "abc", SubmittedAt: submitted})
	if err != nil {
		fmt.Println(err)
		return
	}
	video, err := jobpoll.DecodeOutput[struct{ URL string }](o)
	fmt.Println(o.Reason, video.URL, err)
	// Output:
	// succeeded https://cdn.example/abc.mp4 <nil>
}

// Follow is a live view, for a progress bar or server-sent events. A reader
// that is slow misses what was between and sees the latest.
func ExamplePoller_Follow() {
	clock := polltest.NewClock(time.Time{})
	provider := polltest.NewProvider(clock)
	provider.Add("abc", `running 25%; at 20s running 75%; at 40s succeeded`)

	p, err := jobpoll.New(jobpoll.Config{
		Clock: clock, Rand: noJitter,
		Routes: []jobpoll.Route{{Name: "render", Checker: provider}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer polltest.Run(clock, p)()

	job := jobpoll.Job{Route: "render", ID: "abc", Expected: 45 * time.Second}
	if err := p.Watch(context.Background(), job); err != nil {
		fmt.Println(err)
	}
	for u := range p.Follow(context.Background(), job.Key()) {
		fmt.Printf("%s %.0f %%\n", u.State, u.Progress*100)
		if u.Outcome == nil {
			clock.Advance(20 * time.Second)
		}
	}
	// Output:
	// unknown 0 %
	// running 25 %
	// running 75 %
	// succeeded 75 %
}

// Notify takes a webhook in. A notice of which the signature was checked ends
// the job without a look; any other only makes the Poller look at once.
func ExamplePoller_Notify() {
	clock := polltest.NewClock(time.Time{})
	provider := polltest.NewProvider(clock)
	provider.Add("abc", `running; at 10s succeeded`)

	p, err := jobpoll.New(jobpoll.Config{
		Clock: clock, Rand: noJitter,
		Routes: []jobpoll.Route{{Name: "render", Checker: provider}},
		Callbacks: jobpoll.Callbacks{OnStop: func(_ context.Context, o jobpoll.Outcome) error {
			fmt.Println(o.Job.ID, o.Reason, "via", o.Via)
			return nil
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer polltest.Run(clock, p)()

	ctx := context.Background()
	signed, thin := jobpoll.Key{Route: "render", ID: "signed"}, jobpoll.Key{Route: "render", ID: "abc"}
	for _, k := range []jobpoll.Key{signed, thin} {
		if err := p.Watch(ctx, jobpoll.Job{Route: k.Route, ID: k.ID, Expected: 20 * time.Minute}); err != nil {
			fmt.Println(err)
		}
	}
	clock.Advance(11 * time.Second)

	err = p.Notify(ctx, jobpoll.Notice{
		Key: signed, EventID: "evt-1", Trust: jobpoll.TrustAuthoritative,
		Report: jobpoll.Report{State: jobpoll.StateSucceeded},
	})
	clock.Settle()
	err = errors.Join(err, p.Notify(ctx, jobpoll.Notice{Key: thin, EventID: "evt-2"}))
	clock.Settle()
	fmt.Println("taken over:", err == nil)
	fmt.Println("looks:", len(provider.Looks("signed")), len(provider.Looks("abc")))
	// Output:
	// signed succeeded via webhook
	// abc succeeded via poll
	// taken over: true
	// looks: 0 1
}

// Abandon stops watching. The provider is not told, and the same id can be
// watched again.
func ExamplePoller_Abandon() {
	clock := polltest.NewClock(time.Time{})
	provider := polltest.NewProvider(clock)
	provider.Add("abc", `running; at 50s succeeded`)

	p, err := jobpoll.New(jobpoll.Config{
		Clock: clock, Rand: noJitter,
		Routes: []jobpoll.Route{{Name: "render", Checker: provider}},
		Callbacks: jobpoll.Callbacks{OnStop: func(_ context.Context, o jobpoll.Outcome) error {
			fmt.Println(o.Err())
			return nil
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer polltest.Run(clock, p)()

	job := jobpoll.Job{Route: "render", ID: "abc", Expected: 45 * time.Second}
	if err := p.Watch(context.Background(), job); err != nil {
		fmt.Println(err)
	}
	clock.Advance(25 * time.Second)
	if err := p.Abandon(context.Background(), job.Key(), errors.New("the customer left")); err != nil {
		fmt.Println(err)
	}
	clock.Advance(time.Minute)

	if err := p.Watch(context.Background(), job); err != nil { // came back
		fmt.Println(err)
	}
	clock.Advance(time.Minute)
	// Output:
	// jobpoll: render/abc: stopped: abandoned (state running, 2 looks, provider's word "running"): the customer left; the job may still finish: watch the same id to resume, do not submit it again
	// <nil>
}

// Metrics is a snapshot: counters that only grow, gauges that return to zero.
func ExamplePoller_Metrics() {
	clock := polltest.NewClock(time.Time{})
	provider := polltest.NewProvider(clock)
	provider.Default(`running; at 40s succeeded completed`)

	p, err := jobpoll.New(jobpoll.Config{
		Clock: clock, Rand: noJitter,
		Routes: []jobpoll.Route{{Name: "render", Checker: provider}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer polltest.Run(clock, p)()

	for i := range 10 {
		job := jobpoll.Job{Route: "render", ID: fmt.Sprint(i), SubmittedAt: clock.Now(), Expected: 45 * time.Second}
		if err := p.Watch(context.Background(), job); err != nil {
			fmt.Println(err)
		}
	}
	show := func() {
		m := p.Metrics().Routes["render"]
		fmt.Printf("%v: %d unresolved, oldest %v, %d succeeded\n",
			clock.Monotonic(), m.Unresolved, m.Age.Oldest.Round(time.Second), m.Stops[jobpoll.ReasonSucceeded])
	}
	show()
	clock.Advance(30 * time.Second)
	show()
	clock.Advance(time.Minute)
	show()
	// Output:
	// 0s: 10 unresolved, oldest 0s, 0 succeeded
	// 30s: 10 unresolved, oldest 30s, 0 succeeded
	// 1m30s: 0 unresolved, oldest 0s, 10 succeeded
}

// Hooks of several sources, a log and a metrics library say, are joined.
func ExampleJoinHooks() {
	logs := jobpoll.Hooks{
		Looked: func(e jobpoll.LookEvent) { fmt.Println("log: looked at", e.Job.ID, e.State) },
	}
	counts := jobpoll.Hooks{
		Looked:  func(jobpoll.LookEvent) { fmt.Println("count: one look") },
		Stopped: func(e jobpoll.StopEvent) { fmt.Println("count: one end,", e.Outcome.Reason) },
	}
	clock := polltest.NewClock(time.Time{})
	provider := polltest.NewProvider(clock)
	provider.Add("abc", `succeeded`)

	p, err := jobpoll.New(jobpoll.Config{
		Clock: clock, Rand: noJitter,
		Routes: []jobpoll.Route{{Name: "render", Checker: provider}},
		Hooks:  jobpoll.JoinHooks(logs, counts),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer polltest.Run(clock, p)()
	if err := p.Watch(context.Background(), jobpoll.Job{Route: "render", ID: "abc"}); err != nil {
		fmt.Println(err)
	}
	clock.Advance(10 * time.Second)
	// Output:
	// log: looked at abc succeeded
	// count: one look
	// count: one end, succeeded
}

// What is in the Store goes on after a restart: unresolved jobs are watched on,
// and an end that nobody has taken yet is told.
func ExampleNewMemoryStore() {
	clock := polltest.NewClock(time.Time{})
	provider := polltest.NewProvider(clock)
	provider.Add("abc", `running; at 50s succeeded`)
	store := jobpoll.NewMemoryStore(clock)

	config := jobpoll.Config{
		Clock: clock, Rand: noJitter, Store: store,
		Routes: []jobpoll.Route{{Name: "render", Checker: provider}},
		Callbacks: jobpoll.Callbacks{OnStop: func(_ context.Context, o jobpoll.Outcome) error {
			fmt.Println("told:", o.Job.ID, o.Reason)
			return nil
		}},
	}
	before, err := jobpoll.New(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	end := polltest.Run(clock, before)
	if err := before.Watch(context.Background(), jobpoll.Job{Route: "render", ID: "abc", Expected: 45 * time.Second}); err != nil {
		fmt.Println(err)
	}
	clock.Advance(20 * time.Second)
	fmt.Println("stopped:", end(), "records:", store.Len())

	clock.Advance(time.Minute) // nobody looks; the job ends meanwhile
	after, err := jobpoll.New(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	n, err := after.Restore(context.Background()) // Run would do it too
	fmt.Println("restored", n, err)
	end = polltest.Run(clock, after)
	clock.Advance(10 * time.Second)
	fmt.Println("stopped:", end())
	// Output:
	// stopped: <nil> records: 1
	// restored 1 <nil>
	// told: abc succeeded
	// stopped: <nil>
}
