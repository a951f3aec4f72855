package records_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/internal/records"
)

func TestRecordsKeepTheirAddressWhileTheyLive(t *testing.T) {
	var tab records.Table[int]
	where := map[int32]*int{}
	for i := range 1000 {
		slot, r := tab.Add()
		*r = i
		where[slot] = r
	}
	require.Len(t, where, 1000)
	require.Equal(t, 1000, tab.Len())
	for slot, r := range where {
		require.Same(t, r, tab.Get(slot))
	}
}

func TestSlotsAreUsedAgainAndStartEmpty(t *testing.T) {
	var tab records.Table[string]
	a, r := tab.Add()
	*r = "old"
	keep, _ := tab.Add()
	tab.Remove(a)
	require.Nil(t, tab.Get(a))
	tab.Remove(a) // a second time changes nothing
	b, r := tab.Add()
	require.Equal(t, a, b)
	require.Empty(t, *r)
	require.Equal(t, 2, tab.Len())
	require.NotNil(t, tab.Get(keep))
}

func TestMemoryGoesWithTheLastRecord(t *testing.T) {
	var tab records.Table[[64]byte]
	var slots []int32
	for range 5000 {
		s, _ := tab.Add()
		slots = append(slots, s)
	}
	require.GreaterOrEqual(t, tab.End(), int32(5000))
	for _, s := range slots {
		tab.Remove(s)
	}
	require.Zero(t, tab.Len())
	require.Zero(t, tab.End())
	require.Nil(t, tab.Get(0))
	require.Nil(t, tab.Get(-1))
}

func TestMemoryGoesWithTheLastRecordOfAChunk(t *testing.T) {
	var tab records.Table[[64]byte]
	var slots []int32
	for range 5000 {
		s, _ := tab.Add()
		slots = append(slots, s)
	}
	end := tab.End()
	for _, s := range slots[300:4900] {
		tab.Remove(s)
	}
	for range 4600 { // the holes are filled first
		s, r := tab.Add()
		require.Less(t, s, end)
		require.Zero(t, *r)
	}
	require.Equal(t, end, tab.End())
	seen := 0
	for s := range tab.End() {
		if tab.Get(s) != nil {
			seen++
		}
	}
	require.Equal(t, 5000, seen)
}

func TestTableAgainstAMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var tab records.Table[int]
	m := map[int32]int{}
	var slots []int32
	for i := range 100_000 {
		if rnd.IntN(100) < 50+40*(1-2*(i/25_000%2)) || len(m) == 0 { // grows, shrinks, grows, shrinks
			s, r := tab.Add()
			_, in := m[s]
			require.False(t, in)
			require.Zero(t, *r)
			*r, m[s] = i, i
			slots = append(slots, s)
			continue
		}
		k := rnd.IntN(len(slots))
		s := slots[k]
		slots[k], slots = slots[len(slots)-1], slots[:len(slots)-1]
		require.Equal(t, m[s], *tab.Get(s))
		tab.Remove(s)
		delete(m, s)
	}
	require.Equal(t, len(m), tab.Len())
	for s, v := range m {
		require.Equal(t, v, *tab.Get(s))
	}
}
