// Command quickstart shows jobpoll at work, with nothing needed but Go: it
// starts providers on loopback ports that speak as fal, Replicate and Atlas
// Cloud do, submits jobs of seconds and of minutes to them, and polls them over
// HTTP, while one of them limits its callers, fails a job, filters one, forgets
// one and lets one hang.
//
// Beside it, a loop that sleeps five seconds runs on the same jobs at a second
// set of the same providers. The table at the end compares what both cost and
// when both knew.
//
// One clock that runs faster than real time drives the providers, the Poller
// and the loop; everything else is as in a service.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit codes beside 0, where all jobs are accounted for.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// run is the whole command, and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "quickstart: %v\n", err)
		return exitUsage
	}
	sum, err := demonstrate(ctx, plan{
		options:  opts,
		orders:   draw(opts.seed, opts.jobs, opts.providers),
		patience: patience,
	}, newScreen(stdout, os.Getenv))
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "quickstart: interrupted")
		return exitInterrupted
	}
	if err != nil {
		fmt.Fprintf(stderr, "quickstart: %v\n", err)
		return exitFailed
	}
	if _, err := fmt.Fprint(stdout, sum.table()); err != nil {
		fmt.Fprintf(stderr, "quickstart: %v\n", err)
		return exitFailed
	}
	if len(sum.problems) > 0 {
		return exitFailed
	}
	return 0
}
