package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// column is one figure of the table.
type column struct {
	name string
	of   func(r result) float64
	// digits behind the point.
	digits int
	// plain columns have no ratio.
	plain bool
}

var steadyColumns = []column{
	{name: "B/job", of: func(r result) float64 { return r.BytesPerJob }},
	{name: "ns/look", of: func(r result) float64 { return r.LookNs }},
	{name: "admit µs/job", of: func(r result) float64 { return r.AdmitUs }, digits: 2},
	{name: "GC ms", of: func(r result) float64 { return r.GCMs }, digits: 2},
	{name: "late p50 ms", of: func(r result) float64 { return r.LateP50Ms }, digits: 2},
	{name: "late p99 ms", of: func(r result) float64 { return r.LateP99Ms }, digits: 2},
	{name: "goroutines", of: func(r result) float64 { return float64(r.Goroutines) }, plain: true},
	{name: "looks/s", of: func(r result) float64 { return r.LooksPerS }, plain: true},
}

var peakColumns = []column{
	{name: "looks/s", of: func(r result) float64 { return r.LooksPerS }},
	{name: "ns/look", of: func(r result) float64 { return r.LookNs }},
	{name: "goroutines", of: func(r result) float64 { return float64(r.Goroutines) }, plain: true},
}

var burstColumns = []column{
	{name: "goroutines", of: func(r result) float64 { return float64(r.Burst.Goroutines) }},
	{name: "ticker p99 ms", of: func(r result) float64 { return r.Burst.TickerP99Ms }, digits: 2},
	{name: "ticker max ms", of: func(r result) float64 { return r.Burst.TickerMaxMs }, digits: 2},
	{name: "done %", of: func(r result) float64 { return r.Burst.Done * 100 }, plain: true, digits: 1},
	{name: "took ms", of: func(r result) float64 { return r.Burst.TookMs }},
}

// runs are the results of one contender, a run each.
type runs struct {
	contender
	results []result
}

// column gives one figure of all runs.
func (r runs) column(c column) []float64 {
	var all []float64
	for _, res := range r.results {
		all = append(all, c.of(res))
	}
	return all
}

// median of no values is NaN.
func median(all []float64) float64 {
	if len(all) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(all))
	mid := len(s) / 2
	if len(s)%2 == 1 {
		return s[mid]
	}
	return (s[mid-1] + s[mid]) / 2
}

// spread is the distance of the extremes as a part of the median.
func spread(all []float64) float64 {
	if len(all) == 0 {
		return math.NaN()
	}
	return (slices.Max(all) - slices.Min(all)) / median(all)
}

// ratios are the quotients of two contenders within each run.
func ratios(a, b []float64) []float64 {
	var all []float64
	for i := range min(len(a), len(b)) {
		all = append(all, a[i]/b[i])
	}
	return all
}

// writeFigures prints the medians, and how far the runs of the first CPU column
// lie apart.
func writeFigures(w io.Writer, columns []column, all []runs) {
	rows := [][]string{{"way"}}
	for _, c := range columns {
		rows[0] = append(rows[0], c.name)
	}
	rows[0] = append(rows[0], "spread of ns/look")
	for _, r := range all {
		row := []string{r.title}
		for _, c := range columns {
			row = append(row, grouped(median(r.column(c)), c.digits))
		}
		cpu := r.column(column{of: func(r result) float64 { return r.LookNs }})
		rows = append(rows, append(row, percent(spread(cpu))))
	}
	if !slices.ContainsFunc(columns, func(c column) bool { return c.name == "ns/look" }) {
		for i := range rows {
			rows[i] = rows[i][:len(rows[i])-1]
		}
	}
	writeMarkdown(w, rows)
}

// writeRatios prints the figures of one contender as multiples of each other's.
func writeRatios(w io.Writer, columns []column, all []runs, of string) {
	at := slices.IndexFunc(all, func(r runs) bool { return r.name == of })
	if at < 0 || len(all) < 2 {
		return
	}
	rows := [][]string{{all[at].title + " ÷"}}
	for _, c := range columns {
		if !c.plain {
			rows[0] = append(rows[0], c.name)
		}
	}
	for i, r := range all {
		if i == at {
			continue
		}
		row := []string{r.title}
		for _, c := range columns {
			if !c.plain {
				row = append(row, ratio(median(ratios(all[at].column(c), r.column(c)))))
			}
		}
		rows = append(rows, row)
	}
	fmt.Fprintln(w)
	writeMarkdown(w, rows)
}

// writeCalls prints what else was asked during a burst.
func writeCalls(w io.Writer, all []runs) {
	for _, r := range all {
		names := map[string]bool{}
		for _, res := range r.results {
			for name := range res.Burst.Calls {
				names[name] = true
			}
		}
		if len(names) == 0 {
			continue
		}
		rows := [][]string{{r.title + ", in the burst", "count", "p50 ms", "p99 ms", "max ms"}}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			row := []string{name}
			for _, c := range []column{
				{of: func(r result) float64 { return float64(r.Burst.Calls[name].Count) }},
				{of: func(r result) float64 { return r.Burst.Calls[name].P50Ms }, digits: 3},
				{of: func(r result) float64 { return r.Burst.Calls[name].P99Ms }, digits: 3},
				{of: func(r result) float64 { return r.Burst.Calls[name].MaxMs }, digits: 3},
			} {
				row = append(row, grouped(median(r.column(c)), c.digits))
			}
			rows = append(rows, row)
		}
		fmt.Fprintln(w)
		writeMarkdown(w, rows)
	}
}

// writeMarkdown prints rows, the first of which is the head, as a table with
// columns of even width.
func writeMarkdown(w io.Writer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for n, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-len([]rune(cell)))
			if i == 0 {
				b.WriteString("| " + cell + pad + " |")
			} else {
				b.WriteString(" " + pad + cell + " |")
			}
		}
		fmt.Fprintln(w, b.String())
		if n == 0 {
			fmt.Fprint(w, "|"+strings.Repeat("-", widths[0]+2)+"|")
			for _, width := range widths[1:] {
				fmt.Fprint(w, strings.Repeat("-", width+1)+":|")
			}
			fmt.Fprintln(w)
		}
	}
}

// grouped writes a number with a comma between thousands; "–" for none.
func grouped(v float64, digits int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	whole, rest, dot := strings.Cut(strconv.FormatFloat(v, 'f', digits, 64), ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if dot {
		whole += "." + rest
	}
	return sign + whole
}

// ratio writes a quotient with about three digits.
func ratio(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case math.Abs(v) >= 100:
		return grouped(v, 0)
	case math.Abs(v) >= 10:
		return grouped(v, 1)
	case math.Abs(v) >= 0.1:
		return grouped(v, 2)
	}
	return grouped(v, 4)
}

func percent(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	return grouped(v*100, 0) + " %"
}

// writeScale prints CPU a look by the number of jobs, and how much it grows.
func writeScale(w io.Writer, sizes []int, bySize [][]runs) {
	rows := [][]string{{"ns/look"}}
	for _, jobs := range sizes {
		rows[0] = append(rows[0], grouped(float64(jobs), 0)+" jobs")
	}
	rows[0] = append(rows[0], "grows by")
	cpu := column{of: func(r result) float64 { return r.LookNs }}
	for _, c := range contenders {
		var row []string
		var first, last []float64
		for _, all := range bySize {
			at := slices.IndexFunc(all, func(r runs) bool { return r.name == c.name })
			if at < 0 {
				row = append(row, "–")
				last = nil
				continue
			}
			last = all[at].column(cpu)
			if first == nil {
				first = last
			}
			row = append(row, grouped(median(last), 0))
		}
		if first != nil {
			rows = append(rows, append(append([]string{c.title}, row...), "× "+ratio(median(ratios(last, first)))))
		}
	}
	writeMarkdown(w, rows)
}
