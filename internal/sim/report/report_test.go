package main

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/internal/sim"
)

// reportMeasure measures some parts on few seeds.
func reportMeasure(t *testing.T, seeds, jobs int, names ...string) *results {
	t.Helper()
	var parts []part
	for _, n := range names {
		p, err := choose(n)
		require.NoError(t, err)
		parts = append(parts, p...)
	}
	return measure(parts, 1, seeds, jobs, func(int) {})
}

// reportTarget finds a target by how it begins.
func reportTarget(t *testing.T, r *results, what string) target {
	t.Helper()
	for _, v := range targets(r) {
		if strings.HasPrefix(v.what, what) {
			return v
		}
	}
	t.Fatalf("there is no target %q", what)
	return target{}
}

// The figures of the report, on so few seeds that they may be off by a little.
func TestTheLearnedScheduleComesCloseToTheOptimum(t *testing.T) {
	r := reportMeasure(t, 1, 2400, "learning", "replay", "drift", "budget")
	slack := map[string]float64{
		"cost / optimum after 20":           1.03,
		"cost / optimum after 50":           1.03,
		"cost / optimum after 200":          1.03,
		"  worst set and c":                 1.06,
		"image jobs, c = 0.5: cost":         1.04,
		"image jobs, c = 2: cost / optimum": 1.04,
		"image jobs, c = 10: cost":          1.04,
		"image jobs, c = 2: cost / table":   1.03,
		"image jobs, c = 2: cost / fixed":   1.03,
		"durations x 2":                     1.1,
		"durations x 0.5":                   1.1,
		"budget of 3/4":                     1.06,
		"budget of 1/2":                     1.06,
	}
	for what, by := range slack {
		v := reportTarget(t, r, what)
		assert.LessOrEqual(t, v.value, by*v.most, "%s %s", v.what, v.note)
	}
	peers := reportTarget(t, r, "cost of any peer")
	assert.GreaterOrEqual(t, peers.value, 0.9*peers.most, peers.note)
	for _, b := range []string{"3/4", "1/2"} {
		assert.Greater(t, r.get("budget", b, "in turn"), r.get("budget", b, "worth first"))
	}

	var out bytes.Buffer
	print(&out, r)
	printTargets(&out, r)
	for _, want := range []string{"cenkalti/backoff", "queued 55 s", "image-", "What it should come to"} {
		assert.Contains(t, out.String(), want)
	}
	assert.NotContains(t, out.String(), "NaN")
}

func TestBeforeTheFifthCompletionItCostsWhatTheTableCosts(t *testing.T) {
	r := reportMeasure(t, 1, 150, "cold")
	for _, c := range prices {
		known := mean(r.cells("cold", func(_, col string) bool { return col == priceName(c)+", right" }))
		wrong := mean(r.cells("cold", func(_, col string) bool { return col == priceName(c)+", 1/4 x" }))
		assert.Less(t, known, 2.2)
		assert.Less(t, wrong, 3.0)
	}
}

func TestTheResultDoesNotDependOnWhichTaskIsDoneFirst(t *testing.T) {
	var a, b bytes.Buffer
	print(&a, reportMeasure(t, 1, 150, "cold"))
	print(&b, reportMeasure(t, 1, 150, "cold"))
	assert.Equal(t, a.String(), b.String())
}

func TestAChangeIsCountedWhereThereIsOne(t *testing.T) {
	s := sim.Generated()[1]
	slow := sim.Set{Name: s.Name, Profiles: slices.Clone(s.Profiles)}
	slow.Profiles[0].Dist = sim.Scaled{Dist: s.Profiles[0].Dist, By: 3}
	w, seen := counted(sim.Random(1), 2)
	w.Play(sim.OneByOne(s, 150, w.Rand))
	assert.Zero(t, seen.Resets(sim.Family, s.Name))
	w.Play(sim.OneByOne(slow, 60, w.Rand))
	assert.Equal(t, 1, seen.Resets(sim.Family, s.Name))
}

func TestMedians(t *testing.T) {
	assert.Equal(t, 2.0, median([]float64{9, 1, 2}))
	assert.Equal(t, 1.5, median([]float64{2, 1}))
	assert.True(t, math.IsNaN(median(nil)))
	_, err := choose("nothing")
	assert.Error(t, err)
}
