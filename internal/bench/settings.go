package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// settings are the flags.
type settings struct {
	Jobs     int           `json:"jobs"`
	Rate     float64       `json:"rate"`
	Garbage  int           `json:"garbage,omitempty"`
	Runs     int           `json:"runs"`
	Duration time.Duration `json:"duration"`
	Warm     time.Duration `json:"warm"`
	Mode     string        `json:"mode"`

	chosen         []contender
	profile        string
	of             string
	peak, inBurst  bool
	scale, asJSON  bool
	soak, soakLife time.Duration
}

// flags are those of the command; only is what -only says.
func flags(s *settings, only *string) *flag.FlagSet {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&s.Jobs, "jobs", 100_000, "how many jobs are watched")
	f.Float64Var(&s.Rate, "rate", 5000, "looks per second; each job is looked at once in jobs/rate seconds")
	f.IntVar(&s.Garbage, "garbage", 0, "bytes that each check allocates and drops")
	f.IntVar(&s.Runs, "runs", 3, "how often all is measured; medians are printed")
	f.StringVar(only, "only", "", "names of contenders, with commas; empty: all")
	f.StringVar(&s.of, "of", "jobpoll", "the contender whose ratios to the others are printed")
	f.DurationVar(&s.Duration, "duration", 10*time.Second, "how long a measurement lasts")
	f.DurationVar(&s.Warm, "warm", 0, "time before it; zero: until each job has been looked at once")
	f.BoolVar(&s.asJSON, "json", false, "print all results as JSON")
	f.StringVar(&s.profile, "cpuprofile", "", "directory for a CPU profile of each contender's last measurement")
	f.BoolVar(&s.inBurst, "burst", false, "all jobs due in one instant, checks of 1 ms, 64 workers")
	f.BoolVar(&s.peak, "peak", false, "as many looks as each can do: asked for ever more")
	f.BoolVar(&s.scale, "scale", false, "10,000 to 1,000,000 jobs at the same rate")
	f.DurationVar(&s.soak, "soak", 0, "let jobpoll alone work that long at the limit of a budget, and check that all is accounted for")
	f.DurationVar(&s.soakLife, "life", time.Minute, "with -soak, how long a job lives at most")
	return f
}

func parse(args []string, errs io.Writer) (settings, error) {
	var s settings
	var only string
	f := flags(&s, &only)
	f.SetOutput(errs)
	if err := f.Parse(args); err != nil {
		return s, err
	}
	var err error
	if s.chosen, err = chosen(only); err == nil {
		err = s.faults(f.NArg())
	}
	if err != nil {
		fmt.Fprintln(errs, "bench:", err)
	}
	return s, err
}

func (s *settings) faults(rest int) error {
	modes := 0
	s.Mode = "steady"
	for _, m := range []struct {
		name string
		on   bool
	}{{"burst", s.inBurst}, {"peak", s.peak}, {"scale", s.scale}, {"soak", s.soak > 0}} {
		if m.on {
			modes++
			s.Mode = m.name
		}
	}
	switch {
	case rest > 0:
		return errors.New("there are arguments that are no flags")
	case modes > 1:
		return errors.New("only one of -burst, -peak, -scale and -soak")
	case s.Jobs <= 0 || s.Rate <= 0 || s.Runs <= 0 || s.Duration <= 0 || s.soakLife <= 0:
		return errors.New("-jobs, -rate, -runs, -duration and -life must be positive")
	case s.Garbage < 0 || s.Warm < 0 || s.soak < 0:
		return errors.New("-garbage, -warm and -soak must not be negative")
	}
	return nil
}
