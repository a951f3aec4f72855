package durations

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	maxLive = 10 << 10 // bytes of a profile in memory
	twoCost = maxLive + 3<<10
)

// memoryKinds are profiles that take much: with every kind of evidence, each of
// which has proved worth a plan of its own.
var memoryKinds = []struct {
	name  string
	spans func(r *rand.Rand) (wait, run float64)
}{
	{"of some spread", func(r *rand.Rand) (wait, run float64) {
		return r.ExpFloat64() * 100, 60 * math.Exp(r.NormFloat64()*0.25)
	}},
	{"of any duration", func(r *rand.Rand) (wait, run float64) {
		return 0.1 * math.Exp(r.Float64()*15), 0.1 * math.Exp(r.Float64()*15)
	}},
}

// memorySample is of a job whose first look found it done, so that its end may
// lie in any bin before, or of one that was seen unfinished a bit earlier.
func memorySample(r *rand.Rand, profile string, wait, run float64) Sample {
	after, by := 0.0, wait+run
	if r.IntN(4) > 0 {
		after = by * 0.95
	}
	ns := func(s float64) time.Duration { return time.Duration(s * 1e9) }
	s := Sample{Family: "f", Profile: profile, After: ns(after), By: ns(by * 1.05), Running: ns(wait), At: t0}
	s.Told = Estimate{Age: 1, Left: ns(by * math.Exp(r.NormFloat64()*0.02))}
	s.Moved = Estimate{Age: 1, Left: ns(by * math.Exp(r.NormFloat64()*0.1))}
	return s
}

// memoryOf is what a profile takes in memory, with plans for all of the costs.
func memoryOf(t *testing.T, spans func(r *rand.Rand) (wait, run float64), costs ...float64) int64 {
	t.Helper()
	const jobs = 220
	n := 16
	if v, err := strconv.Atoi(os.Getenv("JOBPOLL_MEMORY_PROFILES")); err == nil {
		n = v
	}
	table := New(n)
	profiles := make([]string, n)
	for i := range n {
		profiles[i] = fmt.Sprintf("some-model/of-a-name/%d", i)
	}
	full := 0
	before := heapInUse()
	for i, p := range profiles {
		r := rand.New(rand.NewPCG(uint64(i), 1))
		for k := range jobs {
			wait, run := spans(r)
			table.Learn(memorySample(r, p, wait, run))
			if k%20 != 19 && k > 10 {
				continue
			}
			for _, c := range costs {
				set := table.Plan("f", p, Terms{Cost: c})
				if k == jobs-1 && set.Told.Errors != nil && set.Moved.Errors != nil {
					full++
				}
			}
		}
		data, _ := table.Export("f", p)
		require.LessOrEqual(t, len(data), maxState)
		table.Lookup("f", p)
	}
	live := (heapInUse() - before) / int64(n)
	runtime.KeepAlive(table)
	require.Greater(t, full, n/2, "what was to be measured was there")
	return live
}

func TestAProfileOfEveryEvidenceTakesAtMostTenKilobytes(t *testing.T) {
	for _, kind := range memoryKinds {
		live := memoryOf(t, kind.spans, 2)
		assert.LessOrEqual(t, live, int64(maxLive), kind.name)
	}
}

// A route of the same family with a price of its own needs looks of its own, but
// nothing else.
func TestASecondPriceCostsLittleMemory(t *testing.T) {
	for _, kind := range memoryKinds {
		live := memoryOf(t, kind.spans, 2, 10)
		assert.LessOrEqual(t, live, int64(twoCost), kind.name)
	}
}
