// Command lab plays the durations of your own jobs through the schedule that
// jobpoll learns, the defaults of other libraries, and the best that can be
// done where the durations are known. It prints a table, draws how late each
// learns the end for how many looks, and says what to put into your Route.
package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/jobpoll/jobpoll"
)

const usage = `usage: lab [flags] [file.csv]

file.csv has one job a line in the order in which they were submitted: how long
it took, or its profile (model and settings) and how long it took. Seconds, or
such as 1m30s. - is the standard input. Without a file lab plays jobs of its
own: 60 % previews of 12 s, 30 % of 55 s, 10 % of 240 s.

`

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// settings are the flags.
type settings struct {
	file string
	seed uint64
	cost time.Duration
	unit time.Duration
	jobs int
	out  string
}

func run(args []string, in io.Reader, out, errs io.Writer) int {
	s, err := parse(args, errs)
	if err == flag.ErrHelp {
		return 0
	}
	if err != nil {
		return 2 // the flags told
	}
	if err := s.run(in, out, errs); err != nil {
		fmt.Fprintln(errs, "lab:", err)
		return 1
	}
	return 0
}

func parse(args []string, errs io.Writer) (settings, error) {
	var s settings
	var unit string
	f := flag.NewFlagSet("lab", flag.ContinueOnError)
	f.SetOutput(errs)
	f.Usage = func() {
		fmt.Fprint(errs, usage)
		f.PrintDefaults()
	}
	f.Uint64Var(&s.seed, "seed", 1, "the `seed` of all that is drawn")
	f.DurationVar(&s.cost, "cost", jobpoll.DefaultPollCost, "Schedule.PollCost: how much longer you would `wait` to save one look")
	f.StringVar(&unit, "unit", "s", "the `unit` of plain numbers: s or ms")
	f.IntVar(&s.jobs, "jobs", 3000, "how many `jobs` to play where there is no file")
	f.StringVar(&s.out, "o", "lab", "where to write the pictures: this `name` with .svg and with .png")
	fail := func(format string, a ...any) (settings, error) {
		err := fmt.Errorf(format, a...)
		fmt.Fprintln(errs, "lab:", err)
		return s, err
	}
	if err := f.Parse(args); err != nil {
		return s, err
	}
	switch unit {
	case "s":
		s.unit = time.Second
	case "ms":
		s.unit = time.Millisecond
	default:
		return fail("-unit %q: want s or ms", unit)
	}
	switch {
	case f.NArg() > 1:
		return fail("one file at most, not %d; flags come first", f.NArg())
	case s.cost < 10*time.Millisecond || s.cost > time.Hour:
		return fail("-cost %v: want 10ms to 1h", s.cost)
	case s.jobs < 10 || s.jobs > maxJobs:
		return fail("-jobs %d: want 10 to %d", s.jobs, maxJobs)
	case s.out == "":
		return fail("-o is empty: want a file name without its ending")
	}
	s.file = f.Arg(0)
	return s, nil
}

func (s settings) run(in io.Reader, out, errs io.Writer) error {
	p, err := s.population(in)
	if err != nil {
		return err
	}
	if p.warning != "" {
		fmt.Fprintln(errs, "lab: warning:", p.warning)
	}
	bar := progress(errs)
	res := play(p, s.cost.Seconds(), s.seed, func() { _ = bar.Add(1) }) // what it cannot write is no loss
	_ = bar.Finish()
	if err := drawAll(res, s.out); err != nil {
		return err
	}
	printTable(out, res)
	printRoute(out, p, s.cost)
	fmt.Fprintf(out, "\npictures: %s.svg and %s.png\n", s.out, s.out)
	return nil
}

func (s settings) population(in io.Reader) (population, error) {
	switch s.file {
	case "":
		return generated(s.jobs, s.seed), nil
	case "-":
		return read(in, s.unit)
	}
	f, err := os.Open(s.file)
	if err != nil {
		return population{}, err
	}
	defer f.Close()
	p, err := read(f, s.unit)
	if err != nil {
		return p, fmt.Errorf("%s: %w", s.file, err)
	}
	return p, nil
}

// progress is a bar on a terminal, and nothing elsewhere.
func progress(w io.Writer) *progressbar.ProgressBar {
	visible := false
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		visible = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return progressbar.NewOptions(steps(), progressbar.OptionSetWriter(w), progressbar.OptionSetVisibility(visible),
		progressbar.OptionSetDescription("playing"), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
}

// nice rounds to three figures.
func nice(seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	scale := math.Pow(10, 2-math.Floor(math.Log10(seconds)))
	return math.Round(seconds*scale) / scale
}
