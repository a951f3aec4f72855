package durations

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stateTable knows all that can be known of one profile.
func stateTable(jobs int) *Table {
	table := New(0)
	r := rand.New(rand.NewPCG(2, 2))
	for range jobs {
		d := 60 * math.Exp(r.NormFloat64()*1.5)
		table.Learn(Sample{
			Family: "f", Profile: "p", After: time.Duration(d * 0.8e9), By: time.Duration(d * 1.2e9), Running: time.Duration(d * 0.1e9),
			Told: Estimate{Age: 1, Left: time.Duration(d * 2e9)}, Moved: Estimate{Age: 1, Left: time.Duration(d * 3e9 * r.Float64())}, At: t0,
		})
	}
	return table
}

func TestStateSurvivesStoring(t *testing.T) {
	table := stateTable(300)
	data, ok := table.Export("f", "p")
	require.True(t, ok)
	assert.LessOrEqual(t, len(data), maxState)

	text, err := json.Marshal(data)
	require.NoError(t, err)
	var stored []byte
	require.NoError(t, json.Unmarshal(text, &stored))
	back := New(0)
	require.NoError(t, back.Import(stored))
	want, _ := table.Lookup("f", "p")
	got, ok := back.Lookup("f", "p")
	require.True(t, ok)
	assert.Equal(t, want.Count, got.Count)
	assert.Equal(t, want.Last, got.Last)
	within(t, want.P50, got.P50, 1.15) // of a fit with the latest jobs
	within(t, want.P90, got.P90, 1.15)

	terms := Terms{Cost: 2}
	a, b := table.Plan("f", "p", terms), back.Plan("f", "p", terms)
	x, _ := a.Age.Look(0, 1)
	y, _ := b.Age.Look(0, 1)
	assert.InEpsilon(t, x, y, 0.1)
	assert.Equal(t, a.Running == nil, b.Running == nil)
	assert.Equal(t, a.Told.Worse, b.Told.Worse)
	assert.NotNil(t, back.Plan("f", "another", terms), "the family is known again")
}

func TestOnlyNewerStateReplacesWhatIsKnown(t *testing.T) {
	state := func(jobs int, took, at time.Duration) []byte {
		table := New(0)
		for range jobs {
			table.Observe("f", "p", took*9/10, took, t0.Add(at))
		}
		data, _ := table.Export("f", "p")
		return data
	}
	table := New(0)
	for _, v := range []struct {
		data  []byte
		newer bool
		count uint64
	}{
		{state(20, time.Minute, time.Hour), true, 20}, // nothing was known
		{state(20, time.Minute, time.Hour), false, 20},
		{state(30, time.Minute, time.Minute), false, 20},
		{state(30, 2*time.Minute, 2*time.Hour), true, 30},
	} {
		newer, err := table.Update(v.data)
		require.NoError(t, err)
		assert.Equal(t, v.newer, newer)
		p, _ := table.Lookup("f", "p")
		assert.Equal(t, v.count, p.Count)
	}
	p, _ := table.Lookup("f", "p")
	within(t, 2*time.Minute, p.P50, 1.1)
	assert.EqualValues(t, 20, table.families.find(name{family: "f"}).age.count, "a family takes each profile once")
	_, err := table.Update([]byte{99})
	require.ErrorIs(t, err, errState)
}

// firstState is a state that version 1 wrote, of three jobs, with no part but
// the first. It must be read for ever.
const firstState = "AQFmAXAAAAAAAAAAAAAAAAAAAwAAAAAAAAMAAPBBAAAMQgAAIEIAADRCAABIQgAAyEIA"

func TestStateOfAnEarlierVersionIsRead(t *testing.T) {
	data, err := base64.StdEncoding.DecodeString(firstState)
	require.NoError(t, err)
	table := New(0)
	require.NoError(t, table.Import(data))
	p, ok := table.Lookup("f", "p")
	require.True(t, ok)
	assert.EqualValues(t, 3, p.Count)
	assert.True(t, p.P50 > 30*time.Second && p.P50 < 60*time.Second, "%v", p.P50)
	require.NoError(t, table.Import(append(data, stateWithout(t, data)...)), "and what a later one has added is left")
}

// stateWithout is the three parts that are missing in data, and something more.
func stateWithout(t *testing.T, data []byte) []byte {
	t.Helper()
	empty := []byte{0, 0, 0, 0, 0, 0, 0, 0, 0}
	return append(append(append(append([]byte{}, empty...), empty...), empty...), "more"...)
}

func TestDamagedStateIsRefused(t *testing.T) {
	data, _ := stateTable(100).Export("f", "p")
	table := New(0)
	for n := 0; n < len(data); n += 7 {
		_ = table.Import(data[:n]) // cut at a part it may be good
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		bad := append([]byte(nil), data...)
		for range 1 + r.IntN(4) {
			bad[r.IntN(len(bad))] = byte(r.Uint32())
		}
		if table.Import(bad) != nil {
			continue
		}
	}
	for p := range table.Profiles() {
		require.True(t, p.P10 >= 0 && p.P99 <= Max && p.P10 <= p.P99)
		if set := table.Plan(p.Family, p.Profile, Terms{Cost: 2}); set != nil {
			require.True(t, set.Valid())
		}
	}
	for _, bad := range [][]byte{nil, {}, {0}, {stateVersion + 1}, {2}, {1}, {1, 255}, []byte("not a state at all")} {
		require.ErrorIs(t, table.Import(bad), errState)
	}
}

// Version 1 had sixteen bins in an octave, and kept old errors of estimates.
func TestTheFinerBinsOfVersionOneAreRead(t *testing.T) {
	b := []byte{1, 1, 'f', 1, 'p', 0}
	b = appendFloats(b, 0, 0, 0)
	for range 4 {
		b = append(b, 40, 0, 0) // count, rise, resets
		b = appendFloats(b, 0)
		b = append(b, 0, 4, 16) // no latest; four bins from the 16th
		b = appendFloats(b, 8)
		for _, m := range []uint16{math.MaxUint16 / 4, math.MaxUint16 / 2, 0, math.MaxUint16} {
			b = binary.LittleEndian.AppendUint16(b, m)
		}
	}
	r, err := decode(b)
	require.NoError(t, err)
	for _, s := range []*series{&r.age, &r.running} {
		assert.Equal(t, 8, s.slow.base, "(0.47 s, 0.5 s]")
		assert.InDeltaSlice(t, []float32{2, 4, 8}, s.slow.mass, 1e-3)
	}
	assert.Empty(t, r.told.errors.slow.mass)
	assert.Empty(t, r.moved.errors.slow.mass)

	table := New(0)
	require.NoError(t, table.Import(b))
	p, ok := table.Lookup("f", "p")
	require.True(t, ok)
	assert.InDelta(t, 0.6, p.P50.Seconds(), 0.1)
	again, ok := table.Export("f", "p")
	require.True(t, ok)
	assert.EqualValues(t, stateVersion, again[0])
	require.NoError(t, table.Import(again))
	b[0] = stateVersion + 1
	require.ErrorIs(t, table.Import(b), errState, "of a later version")
}

// The worst case, all bins of all parts, still fits.
func TestStateIsBounded(t *testing.T) {
	table := New(0)
	r := rand.New(rand.NewPCG(2, 2))
	for range 1000 {
		d := time.Duration(math.Exp(r.Float64()*26) * 1e6)
		table.Learn(Sample{
			Family: "f", Profile: "p", After: d, By: 2 * d, Running: d / 2, Told: Estimate{1, time.Duration(r.ExpFloat64() * 1e12)},
			Moved: Estimate{1, time.Duration(r.ExpFloat64() * 1e10)},
		})
	}
	data, _ := table.Export("f", "p")
	assert.LessOrEqual(t, len(data), maxState)
	require.NoError(t, New(0).Import(data))
}
