package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// target is what a figure shall be.
type target struct {
	what  string
	value float64
	most  float64 // the most it may be; with atLeast the least
	// atLeast turns it round.
	atLeast bool
	aim     bool // to be missed is no failure
	note    string
}

func (t target) met() bool {
	if t.atLeast {
		return t.value >= t.most
	}
	return t.value <= t.most
}

// targets gives those of the parts that were measured.
func targets(r *results) []target {
	var all []target
	add := func(t target) {
		if !math.IsNaN(t.value) {
			all = append(all, t)
		}
	}
	for i, n := range completions {
		cells := r.cells("learning", func(_, col string) bool { return strings.HasSuffix(col, fmt.Sprintf("n = %d", n)) })
		if len(cells) == 0 {
			continue
		}
		add(target{what: fmt.Sprintf("cost / optimum after %d completions, mean over sets and c", n), value: mean(cells), most: []float64{1.15, 1.10, 1.05}[i]})
		if n == 200 {
			worst := most(cells)
			add(target{what: "  worst set and c", value: worst.value, most: 1.12, note: worst.row + ", " + worst.col})
		}
	}
	for _, c := range prices {
		add(target{what: fmt.Sprintf("image jobs, %s: cost / optimum of each profile", priceName(c)), value: r.get("replay", "image-", priceName(c)), most: 1.08})
	}
	add(target{what: "image jobs, c = 2: cost / table with the right class", value: r.get("beside the table", "image-", "c = 2"), most: 0.70})
	add(target{what: "image jobs, c = 2: cost / fixed 5 s", value: r.get("beside 5 s", "image-", "c = 2"), most: 0.67})
	if cells := r.cells("steady", every); len(cells) > 0 {
		worst := most(cells)
		add(target{what: "almost no spread, after 50 jobs each: cost / optimum, mean", value: mean(cells), most: 1.5, aim: true, note: fmt.Sprintf("worst %.2f: %s, %s", worst.value, worst.row, worst.col)})
	}
	if cells := peerCells(r, "", ""); len(cells) > 0 {
		best := least(cells)
		add(target{what: "cost of any peer on any set at any c / cost of jobpoll", value: best.value, most: 0.98, atLeast: true, note: best.row + ", " + best.col})
	}
	for _, by := range []string{"2", "0.5"} {
		if cells := r.cells("drift x "+by, func(_, col string) bool { return col == "50 to 100" }); len(cells) > 0 {
			worst := most(cells)
			add(target{what: "durations x " + by + ", jobs 50 to 100 after: cost / new optimum, mean", value: mean(cells), most: 1.15, note: fmt.Sprintf("worst %.2f: %s", worst.value, worst.row)})
		}
	}
	if cells := r.cells("calm", every); len(cells) > 0 {
		worst := r.top("calm")
		add(target{what: "changes seen in 3,000 jobs without one, worst set and seed", value: worst.value, most: 0})
	}
	add(target{what: "budget of 3/4 of the demand: delay / bound", value: r.get("budget", "3/4", "worth first"), most: 1.25})
	add(target{what: "budget of 1/2 of the demand: delay / bound", value: r.get("budget", "1/2", "worth first"), most: 1.45})
	return all
}

func every(_, _ string) bool { return true }

// printTargets prints what was to be shown, and gives how much of it was not.
func printTargets(w io.Writer, r *results) (missed int) {
	fmt.Fprintln(w, "\nWhat it should come to")
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, t := range targets(r) {
		sign, verdict := "<=", "ok"
		if t.atLeast {
			sign = ">="
		}
		switch {
		case t.met():
		case t.aim:
			verdict = "missed, an aim"
		default:
			verdict = "MISSED"
			missed++
		}
		fmt.Fprintf(out, "%s\t%.3f\t%s %.2f\t%s\t%s\n", t.what, t.value, sign, t.most, verdict, t.note)
	}
	out.Flush()
	return missed
}
