package records_test

import (
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
