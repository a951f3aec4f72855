// Command webhook is a service that learns the ends of its jobs from webhooks,
// and makes sure by slow looks. The provider (provider.go) speaks HTTP on the
// loopback interface like Replicate; it signs its deliveries, and delays,
// repeats, reorders and drops some of them. A table at the end tells what each
// kind of weather cost.
//
//	go run ./examples/webhook
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/provider"
	"github.com/jobpoll/jobpoll/webhook"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// weathers are what the service goes through, one after the other. The first
// has no webhooks at all, and shows what they save.
var weathers = []weather{
	{name: "no webhooks, looks only", route: "plain", lost: 1},
	{name: "webhooks come", route: "hooked", lost: 0},
	{name: "one in ten is lost", route: "hooked", lost: 0.1},
	{name: "the endpoint is down", route: "hooked", lost: 1},
	{name: "and up again", route: "hooked", lost: 0},
}

// run is the service: it submits some jobs in each weather, waits for their
// ends, and writes the table.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("webhook", flag.ContinueOnError)
	flags.SetOutput(out)
	jobs := flags.Int("jobs", 80, "how many jobs to submit in each weather")
	gap := flags.Duration("gap", 20*time.Millisecond, "between two submissions")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	api := startProvider()
	defer api.close()
	replicate, err := provider.NewReplicate(provider.Config{BaseURL: api.url(), Credentials: provider.Secret(apiKey)})
	if err != nil {
		return err
	}
	seen := &report{}
	poller, err := newPoller(replicate, seen)
	if err != nil {
		return err
	}
	server, hookURL, err := serve(poller)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- poller.Run(ctx) }()

	for _, w := range weathers {
		seen.begin(w)
		if err = submit(ctx, poller, replicate, api, w, *jobs, *gap, hookURL); err != nil {
			break
		}
		if err = seen.wait(ctx, *jobs); err != nil {
			break
		}
		seen.finish(poller.Metrics().Routes[w.route].Webhook.Recent)
	}
	api.close()
	cancel()
	bounded, done := context.WithTimeout(context.Background(), time.Second)
	defer done()
	err = errors.Join(err, <-ended, server.Shutdown(bounded))
	seen.write(out, poller.Metrics().Routes["hooked"].Webhook)
	return err
}

// newPoller makes the Poller: one route that expects webhooks, and one without,
// to compare with. Both are of one family, so that what one learns of how long
// jobs take tells the other when a webhook is late.
func newPoller(checker jobpoll.Checker, seen *report) (*jobpoll.Poller, error) {
	// These jobs take a second, so looks are short as well. Real ones need
	// neither a Schedule nor a Pace: the defaults fit seconds to an hour.
	schedule := jobpoll.Schedule{Delays: []time.Duration{100 * time.Millisecond, 200 * time.Millisecond}, MinDelay: 50 * time.Millisecond}
	return jobpoll.New(jobpoll.Config{
		Routes: []jobpoll.Route{
			{Name: "plain", Family: "replicate", Checker: checker, Schedule: schedule, Webhook: jobpoll.WebhookPolicy{Mode: jobpoll.WebhookAbsent}},
			{Name: "hooked", Family: "replicate", Checker: checker, Schedule: schedule,
				Webhook: jobpoll.WebhookPolicy{Mode: jobpoll.WebhookExpected, Pace: time.Second}},
		},
		Callbacks: jobpoll.Callbacks{OnStop: func(_ context.Context, o jobpoll.Outcome) error {
			seen.add(o)
			return nil
		}},
	})
}

// serve mounts the handler of the deliveries.
func serve(poller *jobpoll.Poller) (*http.Server, string, error) {
	verifier, err := webhook.NewStandard(webhook.StandardConfig{Secrets: []string{hookSecret}})
	if err != nil {
		return nil, "", err
	}
	hooks, err := webhook.New(webhook.Config{
		Notifier: poller,
		Routes: []webhook.Route{{
			Path: "/hooks/replicate", Name: "hooked", Verifier: verifier, Parse: provider.ReplicateNotice, Trust: jobpoll.TrustAuthoritative,
		}},
	})
	if err != nil {
		return nil, "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	mux := http.NewServeMux()
	mux.Handle("/hooks/", hooks)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	return server, "http://" + listener.Addr().String() + "/hooks/replicate", nil
}

// submit submits n jobs and watches them.
func submit(ctx context.Context, poller *jobpoll.Poller, api *provider.Replicate, farm *farm, w weather, n int, gap time.Duration, hook string) error {
	for range n {
		takes := time.Second + time.Duration(rand.NormFloat64()*float64(150*time.Millisecond))
		job, _, err := api.Submit(ctx, provider.Order{Model: "studio/clip", Input: map[string]any{"takes": takes.String()}, Webhook: hook})
		if err != nil {
			return err
		}
		farm.deliver(job.ID, hook, takes, w.lost) // it may come before Watch: then it waits
		job.Route = w.route
		if err := poller.Watch(ctx, job); err != nil {
			return err
		}
		select {
		case <-time.After(gap):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
