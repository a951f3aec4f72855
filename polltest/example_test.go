package polltest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

func ExampleClock() {
	clock := polltest.NewClock(time.Time{})
	var tick jobpoll.Timer
	tick = clock.AfterFunc(20*time.Second, func() {
		fmt.Println(clock.Now().Format(time.TimeOnly))
		tick.Reset(20 * time.Second)
	})
	clock.Advance(time.Minute)
	// Output:
	// 00:00:20
	// 00:00:40
	// 00:01:00
}

// The wall time can be set; timers do not care.
func ExampleClock_Jump() {
	clock := polltest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	clock.AfterFunc(time.Minute, func() { fmt.Println("fired at", clock.Now().Format(time.TimeOnly)) })
	clock.Jump(-time.Hour)
	fmt.Println("it is", clock.Now().Format(time.TimeOnly))
	clock.Advance(time.Minute)
	// Output:
	// it is 11:00:00
	// fired at 11:01:00
}

// Work that was announced is done when Advance returns, or waits on the clock.
func ExampleClock_BusyContext() {
	clock := polltest.NewClock(time.Time{})
	starting := clock.Busy(func() string { return "starting" })
	go func() {
		ctx, done := clock.BusyContext(context.Background(), func() string { return "rendering" })
		defer done()
		starting()
		fmt.Println("rendering")
		if err := clock.Sleep(ctx, 30*time.Second); err == nil {
			fmt.Println("rendered")
		}
	}()
	clock.Advance(29 * time.Second)
	fmt.Println("29 s are over")
	clock.Advance(time.Second)
	// Output:
	// rendering
	// 29 s are over
	// rendered
}

func ExampleProvider() {
	clock := polltest.NewClock(time.Time{})
	provider := polltest.NewProvider(clock)
	provider.Add("abc", `
		at 3s  queued pos 2
		at 8s  running 20% eta 30s
		at 15s 429 retry-after 10s once
		at 40s succeeded output {"url":"https://cdn.example/abc.mp4"}`)

	for range 5 {
		report, err := provider.Check(context.Background(), jobpoll.Job{ID: "abc"})
		fmt.Println(clock.Monotonic(), report.State, report.Progress, string(report.Output), err)
		clock.Advance(10 * time.Second)
	}
	fmt.Println(provider.Total(), "looks")
	// Output:
	// 0s unknown 0  jobpoll: no such job (HTTP 404): no job "abc"
	// 10s running 0.2  <nil>
	// 20s unknown 0  jobpoll: rate limited (HTTP 429): Too Many Requests
	// 30s running 0.2  <nil>
	// 40s succeeded 0 {"url":"https://cdn.example/abc.mp4"} <nil>
	// 5 looks
}

func ExampleParseScript() {
	script, err := polltest.ParseScript("queued; at 90s running 20%")
	fmt.Println(script, err)
	_, err = polltest.ParseScript("queued; at 8s 20")
	fmt.Println(err)
	// Output:
	// at 0s queued; at 1m30s running 20% <nil>
	// polltest: script entry 2 ("at 8s 20"): "20": expected a state (queued, running, succeeded, failed, canceled, expired, unknown, or a word in quotes), an error (error, reset, an HTTP status from 400 to 599), broken, panic or hang
}
