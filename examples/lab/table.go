package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/internal/sim"
)

// printTable prints all policies, the cheapest first.
func printTable(w io.Writer, r results) {
	fmt.Fprintf(w, "%d jobs of %d profiles; a look costs as much as %g s of delay\n\n", r.jobs, r.profiles, r.price)
	rows := append([]point{r.own, r.table, r.unknown}, r.peers...)
	slices.SortStableFunc(rows, func(a, b point) int { return cmp.Compare(a.cost(r.price), b.cost(r.price)) })
	rows = append([]point{{"optimum, if all durations were known", r.optimum.looks, r.optimum.late}}, rows...)
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(out, "%-40s\tlooks a job\tmean delay, s\tcost, s\tbeside jobpoll\t\n", "")
	for _, p := range rows {
		fmt.Fprintf(out, "%-40s\t%.1f\t%.1f\t%.1f\t%.2f\t\n", p.name, p.looks, p.late, p.cost(r.price), p.cost(r.price)/r.own.cost(r.price))
	}
	out.Flush()

	fmt.Fprint(w, "\nas completions accumulate, jobpoll in parts of the optimum at the same jobs\n\n")
	out = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "completions of the profile\tdelay\tcost\tcost of the table, right class\t")
	for _, l := range r.learning {
		fmt.Fprintf(out, "%.0f and more\t%.2f\t%.2f\t%.2f\t\n", l.completions, l.late, l.cost, l.table)
	}
	out.Flush()

	fmt.Fprint(w, "\nwhat PollCost trades\n\n")
	out = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "PollCost\tlooks a job\tmean delay, s\t")
	for _, p := range r.curve {
		fmt.Fprintf(out, "%s\t%.1f\t%.1f\t\n", p.name, p.looks, p.late)
	}
	out.Flush()
}

// printed is for how many profiles a line is printed.
const printed = 40

// printRoute prints the settings that these jobs ask for: what is expected of
// each profile serves until enough jobs were seen.
func printRoute(w io.Writer, p population, cost time.Duration) {
	fmt.Fprint(w, "\nthe Route for these jobs\n\n")
	fmt.Fprint(w, "jobpoll.Route{\n\tName: \"render\", Checker: checker,\n")
	if cost != jobpoll.DefaultPollCost {
		fmt.Fprintf(w, "\tSchedule: jobpoll.Schedule{PollCost: %s},\n", source(cost))
	}
	fmt.Fprint(w, "\tGuidance: map[string]jobpoll.Guidance{ // medians: they serve until five jobs were seen\n")
	profiles := slices.Clone(p.set.Profiles)
	slices.SortStableFunc(profiles, func(a, b sim.Profile) int { return cmp.Compare(b.Weight, a.Weight) })
	for _, q := range profiles[:min(len(profiles), printed)] {
		fmt.Fprintf(w, "\t\t%q: {Expected: %s},\n", q.Name, source(sim.Seconds(nice(q.Expected))))
	}
	if more := len(profiles) - printed; more > 0 {
		fmt.Fprintf(w, "\t\t// %d profiles with fewer jobs are left out\n", more)
	}
	fmt.Fprint(w, "\t},\n}\n")
}

// source writes a duration as Go has it.
func source(d time.Duration) string {
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{time.Minute, "Minute"}, {time.Second, "Second"}} {
		switch {
		case d == u.of:
			return "time." + u.name
		case d%u.of == 0:
			return fmt.Sprintf("%d * time.%s", d/u.of, u.name)
		}
	}
	return fmt.Sprintf("%d * time.Millisecond", d.Round(time.Millisecond)/time.Millisecond)
}
