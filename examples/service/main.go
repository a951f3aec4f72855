// Command service is the frame of a service that submits video jobs and learns
// their ends: one Poller, one budget for looks and submissions, a structured
// log, the numbers at /debug/vars, and a shutdown on SIGTERM or SIGINT that
// loses nothing. The provider is pretended (provider.go).
//
//	go run ./examples/service -jobs 300 -for 0
//
// runs until a signal; without -for it ends by itself.
package main

import (
	"context"
	"errors"
	"expvar"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jobpoll/jobpoll"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run is the service, until ctx ends, a signal comes, or its time is over.
func run(ctx context.Context, args []string, logTo io.Writer) error {
	flags := flag.NewFlagSet("service", flag.ContinueOnError)
	flags.SetOutput(logTo)
	addr := flags.String("addr", "127.0.0.1:0", "where to serve /debug/vars")
	jobs := flags.Int("jobs", 300, "how many jobs to submit")
	length := flags.Duration("for", 8*time.Second, "end after this time; 0: only on a signal")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if *length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *length)
		defer cancel()
	}
	log := slog.New(slog.NewTextHandler(logTo, nil))

	// The account allows 100 calls a second. Submissions, which earn the money,
	// keep 20 of them under any load of looks; neither leaves the rest unused.
	budget := jobpoll.NewBudget("account", jobpoll.Limits{
		Total:  jobpoll.Limit{Rate: 100, Burst: 20},
		Submit: jobpoll.LaneLimits{Reserve: jobpoll.Limit{Rate: 20}},
		Jobs:   200, // how many it lets run at once
	})
	provider := &provider{}
	p, err := jobpoll.New(jobpoll.Config{
		Budget: budget,
		Routes: []jobpoll.Route{{
			Name:    "render",
			Checker: provider,
			// These jobs take a second or two, so the looks are short as well.
			// Real ones need no Schedule: the default fits seconds to an hour.
			Schedule: jobpoll.Schedule{Delays: []time.Duration{400 * time.Millisecond, 800 * time.Millisecond}, MinDelay: 100 * time.Millisecond},
		}},
		Callbacks: jobpoll.Callbacks{OnStop: func(ctx context.Context, o jobpoll.Outcome) error {
			log.DebugContext(ctx, "job ended", "outcome", o)
			return nil // here a service stores o.Report.Output, or the reason and the id
		}},
		// A durable Store goes here. This one only lives as long as the process.
		Store:         jobpoll.NewMemoryStore(nil),
		ShutdownGrace: 2 * time.Second,
	})
	if err != nil {
		return err
	}

	server, at, err := serve(*addr, p)
	if err != nil {
		return err
	}
	log.Info("serving", "url", "http://"+at+"/debug/vars")

	submitted := make(chan error, 1)
	go func() { submitted <- submit(ctx, p, budget, provider, *jobs) }()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()

	<-ctx.Done()
	log.Info("shutting down", "why", context.Cause(ctx))
	// First the Poller, which finishes what is under way; then who serves its numbers.
	err = errors.Join(<-ended, <-submitted)
	total := p.Metrics().Total
	log.Info("ended", "jobs", total.Watched, "looks", total.Looks, "succeeded", total.Stops[jobpoll.ReasonSucceeded],
		"failed", total.Stops[jobpoll.ReasonFailed], "unresolved", total.Unresolved, "rate_limited", total.RateLimited)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return errors.Join(err, server.Shutdown(bounded))
}

// submit submits jobs one after the other, as fast as the budget lets it.
func submit(ctx context.Context, p *jobpoll.Poller, budget *jobpoll.Budget, provider *provider, n int) error {
	for i := range n {
		done, err := budget.Acquire(ctx, jobpoll.LaneSubmit)
		if ctx.Err() != nil {
			return nil // shut down: the rest was not sent
		}
		if err != nil {
			return err
		}
		id, err := provider.submit(ctx)
		if err != nil {
			done(err) // a rate limit met here cools the submissions, not the looks
			return err
		}
		job := jobpoll.Job{Route: "render", ID: id, ClientKey: fmt.Sprintf("order-%d", i), Profile: "model-1/720p"}
		// Once submitted it must be watched, also while shutting down; and
		// before done, so that its job slot is not free in between.
		err = p.Watch(context.WithoutCancel(ctx), job)
		done(nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// serve publishes the Poller's numbers. A service with one Poller would call
// expvar.Publish; a map of its own leaves the process's variables alone.
func serve(addr string, p *jobpoll.Poller) (*http.Server, string, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, "", err
	}
	var vars expvar.Map
	vars.Set("jobpoll", expvar.Func(func() any { return p.Metrics() }))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/vars", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = io.WriteString(w, vars.String())
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(l) }()
	return s, l.Addr().String(), nil
}
