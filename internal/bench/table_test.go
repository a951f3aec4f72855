package main

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMediansAndSpreads(t *testing.T) {
	assert.Equal(t, 2.0, median([]float64{3, 1, 2}))
	assert.Equal(t, 2.5, median([]float64{4, 1, 3, 2}))
	assert.True(t, math.IsNaN(median(nil)))
	assert.Equal(t, 1.0, spread([]float64{3, 1, 2}))
}

// A machine that is slow for one run is so for both.
func TestRatiosAreTakenWithinARun(t *testing.T) {
	assert.Equal(t, []float64{2, 2, 3}, ratios([]float64{2, 200, 6}, []float64{1, 100, 2}))
}

func TestTheTableHasFiguresAndRatios(t *testing.T) {
	all := []runs{
		{contender: contender{name: "a", title: "way a"}, results: []result{{LookNs: 4000, LooksPerS: 10}, {LookNs: 2000, LooksPerS: 10}}},
		{contender: contender{name: "jobpoll", title: "jobpoll"}, results: []result{{LookNs: 1000, LooksPerS: 5}, {LookNs: 1500, LooksPerS: 5}}},
	}
	var b strings.Builder
	writeFigures(&b, peakColumns, all)
	writeRatios(&b, peakColumns, all, "jobpoll")
	assert.Equal(t, strings.TrimLeft(`
| way     | looks/s | ns/look | goroutines | spread of ns/look |
|---------|--------:|--------:|-----------:|------------------:|
| way a   |      10 |   3,000 |          0 |              67 % |
| jobpoll |       5 |   1,250 |          0 |              40 % |

| jobpoll ÷ | looks/s | ns/look |
|-----------|--------:|--------:|
| way a     |    0.50 |    0.50 |
`, "\n"), b.String())
}

func TestTheScaleTableTellsTheGrowth(t *testing.T) {
	of := func(name string, ns float64) runs {
		return runs{contender: contender{name: name, title: name}, results: []result{{LookNs: ns}}}
	}
	var b strings.Builder
	writeScale(&b, []int{1000, 10_000}, [][]runs{{of("azcore", 5), of("jobpoll", 10)}, {of("jobpoll", 15)}})
	assert.Contains(t, b.String(), "× 1.50")
	assert.Contains(t, b.String(), "–", "what was left out at one size has no growth")
}

func TestNumbersAreGrouped(t *testing.T) {
	for want, got := range map[string]string{
		"1,234,567": grouped(1234567, 0), "999": grouped(999, 0), "-1,000.50": grouped(-1000.5, 2), "–": grouped(math.NaN(), 0),
		"0.0012": ratio(0.0012), "12.3": ratio(12.34), "1,234": ratio(1234), "0.50": ratio(0.5),
	} {
		assert.Equal(t, want, got)
	}
}

func TestDoubtsAreNoted(t *testing.T) {
	var b strings.Builder
	writeNotes(&b, []runs{{contender: contender{name: "a"}, results: []result{{}, {Overran: true, Unseen: 3, Jobs: 9, StallMs: 70}}}})
	assert.Equal(t, 3, strings.Count(b.String(), "run 2"))
	assert.Contains(t, b.String(), "3 of 9 jobs")
}
