// Command report plays jobs through the schedule that jobpoll learns, the
// defaults of other libraries, and the best that can be done where the
// distribution is known, and prints how they compare. All figures are ratios
// of costs within one run, where a look costs c seconds of delay, and medians
// over the seeds.
//
//	go run ./internal/sim/report             # less than a minute on two cores
//	go run ./internal/sim/report -seeds 11   # steadier
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	seeds := flag.Int("seeds", 5, "how many `seeds` to take the median of")
	jobs := flag.Int("jobs", 6000, "how many `jobs` of the image service to play; two thirds under a budget, of other sets a fifteenth")
	first := flag.Uint64("seed", 1, "the first `seed`")
	only := flag.String("only", "", "one `part` only: learning, cold, steady, replay, drift, calm or budget")
	flag.Parse()
	if flag.NArg() > 0 || *seeds < 1 || *jobs < 150 || *jobs > 1e7 {
		fmt.Fprintln(os.Stderr, "report: want at least one seed, 150 to 10,000,000 jobs, and no arguments")
		os.Exit(2)
	}
	parts, err := choose(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(2)
	}
	r := measure(parts, *first, *seeds, *jobs, progress(os.Stderr))
	print(os.Stdout, r)
	if missed := printTargets(os.Stdout, r); missed > 0 {
		os.Exit(1)
	}
}

// part is one of the questions.
type part struct {
	name  string
	tasks func(seed uint64, jobs int) []task
}

var allParts = []part{
	{"learning", func(seed uint64, _ int) []task { return learning(seed) }},
	{"cold", func(seed uint64, _ int) []task { return cold(seed) }},
	{"replay", replay},
	{"steady", func(seed uint64, _ int) []task { return steady(seed) }},
	{"drift", func(seed uint64, _ int) []task { return drift(seed) }},
	{"calm", func(seed uint64, _ int) []task { return calm(seed) }},
	{"budget", func(seed uint64, jobs int) []task { return budget(seed, jobs*2/3) }},
}

func choose(name string) ([]part, error) {
	if name == "" {
		return allParts, nil
	}
	for _, p := range allParts {
		if p.name == name {
			return []part{p}, nil
		}
	}
	return nil, fmt.Errorf("there is no part %q", name)
}

// measure does all parts for all seeds; done is called after each step with
// how many there are.
func measure(parts []part, first uint64, seeds, jobs int, done func(all int)) *results {
	var tasks []task
	for s := range seeds {
		for _, p := range parts {
			tasks = append(tasks, p.tasks(first+uint64(s), jobs)...)
		}
	}
	return run(tasks, func() { done(len(tasks)) })
}

// progress tells on a terminal how far it is.
func progress(w *os.File) func(int) {
	info, err := w.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func(int) {}
	}
	n := 0
	return func(all int) {
		n++
		fmt.Fprintf(w, "\r%d of %d", n, all)
		if n == all {
			fmt.Fprint(w, "\r\033[K")
		}
	}
}

// print prints the tables that were measured.
func print(w io.Writer, r *results) {
	for _, t := range tables {
		t.print(w, r)
	}
	printPeers(w, r)
}
