package sim

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Profile is a kind of jobs: those whose durations are alike.
type Profile struct {
	Name   string
	Weight float64 // its part of the set, beside the others
	Dist   Dist
	// Expected is what a caller would say that a job takes, in seconds: here
	// the median.
	Expected float64
}

// Set is a population of jobs.
type Set struct {
	Name     string
	Profiles []Profile
}

func single(name string, d Dist) Set {
	return Set{name, []Profile{{Name: name, Weight: 1, Dist: d, Expected: d.Quantile(0.5)}}}
}

// Generated gives the sets that are made from formulas: previews, standard
// jobs and long renders of small and large spread, and the same with three in
// ten jobs that wait in a queue first.
func Generated() []Set { return slices.Clone(generated()) }

var generated = sync.OnceValue(func() []Set {
	var sets []Set
	for _, sigma := range []float64{0.25, 0.6} {
		for _, median := range []float64{12, 55, 240} {
			sets = append(sets, single(fmt.Sprintf("lognormal %g s, sigma %g", median, sigma), Lognormal{median, sigma}))
		}
	}
	for _, q := range []struct{ median, wait float64 }{{12, 60}, {55, 180}, {240, 600}} {
		d := Queued(Lognormal{q.median, 0.25}, 0.3, q.wait)
		sets = append(sets, single(fmt.Sprintf("queued %g s + 30 %% of %g s", q.median, q.wait), d))
	}
	return sets
})

// Mixed is what the budget is judged on: three classes that share one.
func Mixed() Set {
	set := Set{Name: "60/30/10 % of 12/55/240 s"}
	for i, median := range []float64{12, 55, 240} {
		set.Profiles = append(set.Profiles, Profile{
			Name: fmt.Sprintf("%g s", median), Weight: []float64{0.6, 0.3, 0.1}[i], Dist: Lognormal{median, 0.35}, Expected: median,
		})
	}
	return set
}

//go:embed durations.csv
var measured string

// Measured gives the sets of which the quantiles were measured: jobs of an
// image service, of a CI, of a GPU cluster, and of text to video on a machine
// with nothing else to do.
func Measured() (images, ci, gpu, video Set) {
	all, err := ReadQuantiles(strings.NewReader(measured))
	if err != nil {
		panic(err) // it is part of the program
	}
	sets := []Set{{Name: "image-"}, {Name: "ci-"}, {Name: "gpu-"}, {Name: "t2v-"}}
	for _, p := range all {
		for i := range sets {
			if strings.HasPrefix(p.Name, sets[i].Name) {
				sets[i].Profiles = append(sets[i].Profiles, p)
			}
		}
	}
	return sets[0], sets[1], sets[2], sets[3]
}

// ReadQuantiles reads profiles from CSV: a header of profile, jobs and the
// quantiles as p01 to p99, then a line a profile, in seconds.
func ReadQuantiles(r io.Reader) ([]Profile, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || len(rows[0]) < 4 {
		return nil, fmt.Errorf("sim: line 1: want profile, jobs and two quantiles or more")
	}
	var u []float64
	for _, name := range rows[0][2:] {
		p, err := strconv.ParseFloat(strings.TrimPrefix(name, "p"), 64)
		if err != nil {
			return nil, fmt.Errorf("sim: line 1: %q is no quantile, as p50 is", name)
		}
		u = append(u, p/100)
	}
	var all []Profile
	for n, row := range rows[1:] {
		p, err := quantiles(row, u)
		if err != nil {
			return nil, fmt.Errorf("sim: line %d: %w", n+2, err)
		}
		all = append(all, p)
	}
	return all, nil
}

func quantiles(row []string, u []float64) (Profile, error) {
	var x []float64
	for _, field := range row[1:] {
		v, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return Profile{}, fmt.Errorf("%q is no number", field)
		}
		x = append(x, v)
	}
	weight, x := x[0], x[1:]
	if first, last := x[0], x[len(x)-1]; first == last {
		// All alike to the last digit that is told: evenly within it.
		const half = 0.05
		for i := range x {
			x[i] = first - half + 2*half*u[i]
		}
	}
	d, err := NewKnots(u, x)
	if err != nil {
		return Profile{}, err
	}
	return Profile{Name: row[0], Weight: weight, Dist: d, Expected: d.Quantile(0.5)}, nil
}
