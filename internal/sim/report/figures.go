package main

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"
)

// figure is one number of one seed, and where it belongs.
type figure struct {
	table, row, col string
	value           float64
}

// task is a piece of work of one seed.
type task func() []figure

// results are the medians over the seeds.
type results struct {
	order []figure // rows and columns as they first came
	all   map[figure][]float64
}

// run does the tasks on all processors. The result does not depend on which
// comes first.
func run(tasks []task, done func()) *results {
	parts := make([][]figure, len(tasks))
	next := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				parts[i] = tasks[i]()
				mu.Lock()
				done()
				mu.Unlock()
			}
		})
	}
	for i := range tasks {
		next <- i
	}
	close(next)
	wg.Wait()

	r := &results{all: map[figure][]float64{}}
	for _, f := range slices.Concat(parts...) {
		at := figure{table: f.table, row: f.row, col: f.col}
		if r.all[at] == nil {
			r.order = append(r.order, at)
		}
		r.all[at] = append(r.all[at], f.value)
	}
	return r
}

// get gives the median of a figure; NaN if there is none.
func (r *results) get(table, row, col string) float64 {
	return median(r.all[figure{table: table, row: row, col: col}])
}

// rows gives the rows of a table.
func (r *results) rows(table string) []string {
	return r.names(table, func(f figure) string { return f.row })
}

// cols gives the columns of a table.
func (r *results) cols(table string) []string {
	return r.names(table, func(f figure) string { return f.col })
}

func (r *results) names(table string, of func(figure) string) []string {
	var all []string
	for _, f := range r.order {
		if n := of(f); f.table == table && !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}

// cells gives the medians of all figures of a table that the test lets through.
func (r *results) cells(table string, keep func(row, col string) bool) []cell {
	var all []cell
	for _, f := range r.order {
		if f.table == table && keep(f.row, f.col) {
			all = append(all, cell{f.row, f.col, median(r.all[f])})
		}
	}
	return all
}

// top gives the figure of a table that is the greatest with any seed.
func (r *results) top(table string) cell {
	var best cell
	for _, f := range r.order {
		if f.table != table {
			continue
		}
		if v := slices.Max(r.all[f]); v >= best.value {
			best = cell{f.row, f.col, v}
		}
	}
	return best
}

type cell struct {
	row, col string
	value    float64
}

func mean(cells []cell) float64 {
	sum := 0.0
	for _, c := range cells {
		sum += c.value
	}
	return sum / float64(len(cells))
}

func most(cells []cell) cell {
	return slices.MaxFunc(cells, func(a, b cell) int { return cmp.Compare(a.value, b.value) })
}

func least(cells []cell) cell {
	return slices.MinFunc(cells, func(a, b cell) int { return cmp.Compare(a.value, b.value) })
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
