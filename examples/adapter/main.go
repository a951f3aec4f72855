// Command adapter shows jobpoll with an adapter of one's own (adapter.go) for
// a provider that it starts itself, on a loopback port (provider.go). Its clock
// runs 30 times faster than real time, so that minutes of rendering take
// seconds; everything else is as in a service.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/jobpoll/jobpoll"
)

func main() {
	speed := flag.Int("speed", 30, "how many times faster than real time the demonstration runs, at least 1")
	flag.Parse()
	clock := fastClock{start: time.Now(), speed: time.Duration(max(*speed, 1))}
	if err := demonstrate(context.Background(), clock, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// demonstrate watches two jobs of one provider: one by callbacks, one by Wait.
func demonstrate(ctx context.Context, clock jobpoll.Clock, out io.Writer) error {
	provider := &provider{now: clock.Now, render: 100 * time.Second, busyAt: 40 * time.Second, wait: 20 * time.Second}
	base, stop, err := listen(provider)
	if err != nil {
		return err
	}
	defer stop()

	start := clock.Now()
	say := func(job jobpoll.Job, format string, args ...any) {
		fmt.Fprintf(out, "%5.1fs  %-9s %s\n", clock.Now().Sub(start).Seconds(), job.ID, fmt.Sprintf(format, args...))
	}
	told := make(chan jobpoll.Outcome, 1)
	p, err := jobpoll.New(jobpoll.Config{
		Clock:  clock,
		Routes: []jobpoll.Route{{Name: "render", Checker: renderer{client: http.DefaultClient, base: base, now: clock.Now}}},
		Callbacks: jobpoll.Callbacks{
			OnUpdate: func(_ context.Context, u jobpoll.Update) {
				switch {
				case u.State == jobpoll.StateQueued:
					say(u.Job, "queued, place %d", u.QueuePosition)
				default:
					say(u.Job, "%s, %.0f %%", u.State, u.Progress*100)
				}
			},
			OnStop: func(_ context.Context, o jobpoll.Outcome) error {
				say(o.Job, "%s after %d looks: %s", o.Reason, o.Polls, o.Report.Output)
				if o.Job.ClientKey == "with callbacks" {
					told <- o
				}
				return nil // taken: it is not told again
			},
		},
		Hooks: jobpoll.Hooks{
			RateLimited: func(e jobpoll.CoolEvent) {
				say(jobpoll.Job{ID: e.Key.ID}, "rate limited: the route %q waits until %.1fs", e.Route, e.Until.Sub(start).Seconds())
			},
		},
	})
	if err != nil {
		return err
	}
	run, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- p.Run(run) }()

	// Give a job to the Poller, and get its end by callback …
	first := jobpoll.Job{Route: "render", ID: provider.submit(), ClientKey: "with callbacks", Expected: 90 * time.Second}
	say(first, "submitted, now watched")
	if err := p.Watch(ctx, first); err != nil {
		end()
		return errors.Join(err, <-ended)
	}
	// … or wait for it where you are.
	second := jobpoll.Job{Route: "render", ID: provider.submit(), Expected: 90 * time.Second}
	say(second, "submitted, now waited for")
	outcome, err := p.Wait(ctx, second)
	if err == nil {
		<-told
		err = sum(out, p, outcome)
	}
	end()
	return errors.Join(err, <-ended)
}

// sum says what the waiting brought and what it cost.
func sum(out io.Writer, p *jobpoll.Poller, o jobpoll.Outcome) error {
	video, err := jobpoll.DecodeOutput[struct{ URL string }](o)
	if err != nil {
		return err
	}
	m := p.Metrics().Total
	fmt.Fprintf(out, "\nWait returned %s, at most %.0f s after it was there.\n%d looks for %d jobs, %d of them refused.\n",
		video.URL, o.DetectionDelay.Seconds(), m.Looks, m.PollsPerCompletion.Count, m.RateLimited)
	return nil
}

// listen serves the provider on a free loopback port.
func listen(h http.Handler) (base string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(l) }()
	return "http://" + l.Addr().String(), func() { _ = s.Close() }, nil
}
