package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// options are what the flags say.
type options struct {
	seed      uint64
	jobs      int
	speed     int
	providers []string
}

const (
	maxJobs  = 600
	maxSpeed = 200 // beyond it, the milliseconds of a call are minutes of a job
)

// allProviders are those that are shown together.
var allProviders = []string{"fal", "replicate", "atlas"}

// parse reads the flags. An error says what to give instead; flag.ErrHelp means
// that the usage was asked for and written.
func parse(args []string, usage io.Writer) (options, error) {
	var o options
	var name string
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Uint64Var(&o.seed, "seed", 1, "the `number` that durations and scripts are drawn from: the same seed gives the same jobs")
	flags.IntVar(&o.jobs, "jobs", 60, fmt.Sprintf("the `number` of jobs to submit, 1 to %d", maxJobs))
	flags.IntVar(&o.speed, "speed", 20, fmt.Sprintf("how many `times` faster than real time it runs, 1 to %d", maxSpeed))
	flags.StringVar(&name, "provider", "all", "`who` makes the videos: all ("+strings.Join(allProviders, ", ")+"), or one of "+strings.Join(names(), ", "))
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(usage, "go run ./examples/quickstart shows jobpoll at work. Its flags:")
			flags.SetOutput(usage)
			flags.PrintDefaults()
			return o, err
		}
		return o, fmt.Errorf("%w (-h lists the flags)", err)
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("%q is not understood: there are only flags (-h lists them)", flags.Arg(0))
	case o.jobs < 1 || o.jobs > maxJobs:
		return o, fmt.Errorf("-jobs %d: give a number from 1 to %d", o.jobs, maxJobs)
	case o.speed < 1 || o.speed > maxSpeed:
		return o, fmt.Errorf("-speed %d: give a number from 1 to %d", o.speed, maxSpeed)
	case name == "all":
		o.providers = allProviders
	case slices.Contains(names(), name):
		o.providers = []string{name}
	default:
		return o, fmt.Errorf("-provider %q: give all, %s", name, strings.Join(names(), ", "))
	}
	return o, nil
}
