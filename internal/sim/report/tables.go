package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// table is how one of the questions is printed.
type table struct {
	name, title string
	average     bool // with a last line of the means
}

var tables = []table{
	{"learning", "Learnt from own looks, nothing expected: cost / optimum after n completions", true},
	{"cold", "Before anything is learnt, the table: cost / optimum, by what the caller expects in parts of the median", true},
	{"replay", "From the first job on, four at a time, nothing expected: cost / optimum of each profile", false},
	{"beside the table", "The same: cost / cost of the table that knows the right class", false},
	{"beside 5 s", "The same: cost / cost of a fixed 5 s", false},
	{"steady", "Profiles with almost no spread after 50 jobs of each: cost / optimum", true},
	{"drift x 2", "Twice as slow from one job to the next, c = 2: cost / new optimum", true},
	{"drift x 0.5", "Twice as fast, c = 2: cost / new optimum", true},
	{"calm", "Changes seen in 3,000 jobs that do not change, c = 2", false},
	{"budget", "A shared budget of looks: mean delay / the bound that no policy can stay below", false},
}

func (t table) print(w io.Writer, r *results) {
	rows, cols := r.rows(t.name), r.cols(t.name)
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", t.title)
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(out, "\t%s\t\n", strings.Join(cols, "\t"))
	line := func(name string, value func(col string) float64) {
		fmt.Fprint(out, left(name))
		for _, c := range cols {
			fmt.Fprintf(out, "\t%.2f", value(c))
		}
		fmt.Fprint(out, "\t\n")
	}
	for _, row := range rows {
		line(row, func(col string) float64 { return r.get(t.name, row, col) })
	}
	if t.average && len(rows) > 1 {
		line("mean", func(col string) float64 {
			return mean(r.cells(t.name, func(_, c string) bool { return c == col }))
		})
	}
	out.Flush()
}

// left pads a name, so that it stands on the left of a table of numbers.
func left(s string) string { return fmt.Sprintf("%-38s", s) }

// printPeers prints for each peer and price the set on which it does best.
func printPeers(w io.Writer, r *results) {
	names := r.rows("peers on image-")
	if len(names) == 0 {
		return
	}
	fmt.Fprintln(w, "\nDefaults of other libraries: cost / cost of jobpoll from the first job on, image jobs and the set that suits the peer best")
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(out, left(""))
	for _, c := range prices {
		fmt.Fprintf(out, "\t%s\tleast", priceName(c))
	}
	fmt.Fprint(out, "\t\n")
	for _, peer := range names {
		fmt.Fprint(out, left(peer))
		for _, c := range prices {
			best := least(peerCells(r, peer, priceName(c)))
			fmt.Fprintf(out, "\t%.2f\t%.2f", r.get("peers on image-", peer, priceName(c)), best.value)
		}
		fmt.Fprint(out, "\t\n")
	}
	out.Flush()
}

// peerCells gives the cost of a peer, or of all if it has no name, on each set
// beside that of jobpoll; the row of a cell is the peer and the set.
func peerCells(r *results, peer, col string) []cell {
	var all []cell
	for _, p := range replayed(150) {
		for _, c := range r.cells("peers on "+p.set.Name, func(row, at string) bool {
			return (peer == "" || row == peer) && (col == "" || at == col)
		}) {
			all = append(all, cell{c.row + " on " + p.set.Name, c.col, c.value})
		}
	}
	return all
}
