package sim

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func simDists(t *testing.T) map[string]Dist {
	t.Helper()
	all := map[string]Dist{"twice": Scaled{Lognormal{55, 0.25}, 2}}
	images, ci, gpu, video := Measured()
	for _, s := range append(Generated(), Mixed(), images, ci, gpu, video) {
		for _, p := range s.Profiles {
			all[s.Name+"/"+p.Name] = p.Dist
		}
	}
	return all
}

func TestQuantileAndCDFAreInverse(t *testing.T) {
	for name, d := range simDists(t) {
		last := 0.0
		for u := 0.005; u < 1; u += 0.005 {
			x := d.Quantile(u)
			require.Greater(t, x, 0.0, "%s at %v", name, u)
			require.GreaterOrEqual(t, x, last, "%s at %v", name, u)
			last = x
			// At a step the CDF is beyond u.
			require.GreaterOrEqual(t, d.CDF(x), u-1e-3, "%s at %v", name, u)
			require.LessOrEqual(t, d.CDF(x*(1-1e-9)), u+1e-3, "%s at %v", name, u)
		}
		assert.Zero(t, d.CDF(0), name)
		assert.Zero(t, d.CDF(-1), name)
		assert.InDelta(t, 1, d.CDF(1e9), 1e-5, name)
	}
}

func TestMedianOfALognormalIsItsMedian(t *testing.T) {
	l := Lognormal{Median: 55, Sigma: 0.6}
	assert.InDelta(t, 55, l.Quantile(0.5), 1e-9)
	assert.InDelta(t, 0.8413, l.CDF(55*math.Exp(0.6)), 1e-4)
}

func TestAQueueAddsItsWaitToTheMean(t *testing.T) {
	d := Queued(Lognormal{12, 0.25}, 0.3, 60)
	sum, n := 0.0, 20_000
	for _, x := range Even(d, n, Random(1)) {
		sum += x
	}
	want := 12*math.Exp(0.25*0.25/2) + 0.3*60
	assert.InDelta(t, want, sum/float64(n), 0.01*want)
	assert.Less(t, math.Abs(d.CDF(12)-0.7*0.5), 0.03, "hardly a job that waited is done by then")
}

func TestEvenStandsForTheWholeDistribution(t *testing.T) {
	all := Even(Lognormal{55, 0.6}, 1001, Random(1))
	assert.False(t, slices.IsSorted(all))
	slices.Sort(all)
	assert.InDelta(t, 55, all[500], 1e-9)
}

func TestMeasuredQuantilesAreKept(t *testing.T) {
	images, ci, gpu, video := Measured()
	assert.Len(t, images.Profiles, 21)
	assert.Len(t, ci.Profiles, 1)
	assert.Len(t, gpu.Profiles, 1)
	assert.Len(t, video.Profiles, 7)
	p := images.Profiles[0]
	assert.Equal(t, 8191.0, p.Weight)
	for u, want := range map[float64]float64{0.01: 8, 0.05: 10, 0.5: 18, 0.95: 31, 0.99: 40} {
		assert.InDelta(t, want, p.Dist.Quantile(u), 1e-9)
	}
	assert.Less(t, p.Dist.Quantile(1), 45.0, "there is a longest job")
	narrow := video.Profiles[0].Dist
	assert.InDelta(t, 0.1, narrow.Quantile(1)-narrow.Quantile(0), 0.01, "alike to the digit that is told")
}

func TestWrongQuantilesAreNamedWithTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "line 1",
		"profile,jobs\n":                         "line 1",
		"profile,jobs,p10,pX\n":                  `line 1: "pX"`,
		"profile,jobs,p10,p90\na,1,2,x":          `line 2: "x" is no number`,
		"profile,jobs,p10,p90\na,1,2,3\nb,1,3,2": "line 3: quantile 0.9 is 2 s",
		"profile,jobs,p10,p90\na,1,-2,3":         "line 2: quantile 0.1 is -2 s",
		"profile,jobs,p10,p90\na,1,0,3":          "line 2: quantile 0.1 is 0 s",
		"profile,jobs,p10,p90\na,1,NaN,3":        "line 2: quantile 0.1 is NaN s",
		"profile,jobs,p10,p90\na,1,2,Inf":        "line 2: quantile 0.9 is +Inf s",
		"profile,jobs,p90,p10\na,1,2,3":          "line 2: 0.1 is no quantile that may stand here",
		"profile,jobs,p10,p190\na,1,2,3":         "line 2: 1.9 is no quantile that may stand here",
		"profile,jobs,p10,p90\na,1,2":            "wrong number of fields",
	} {
		_, err := ReadQuantiles(strings.NewReader(text))
		assert.ErrorContains(t, err, want, "%q", text)
	}
}

func TestSampleIsTheDistributionOfWhatWasMeasured(t *testing.T) {
	s := NewSample([]float64{3, 1, 2, 2})
	assert.Equal(t, 1.0, s.Quantile(0))
	assert.Equal(t, 2.0, s.Quantile(0.5))
	assert.Equal(t, 3.0, s.Quantile(0.99))
	assert.Equal(t, 0.75, s.CDF(2))
	assert.Equal(t, 0.0, s.CDF(0.5))
	assert.Equal(t, 1.0, s.CDF(3))
}
