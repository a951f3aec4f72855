package due

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A Calendar is a Heap that is faster: the same comes out of both.
func TestCalendarAgainstAHeap(t *testing.T) {
	const stretch = 1 << stretchBits
	for name, plan := range map[string]func(rnd *rand.Rand, now int64) int64{
		"one interval":         func(_ *rand.Rand, now int64) int64 { return now + 20e9 },
		"an interval, spread":  func(rnd *rand.Rand, now int64) int64 { return now + 16e9 + rnd.Int64N(8e9) },
		"far and near":         func(rnd *rand.Rand, now int64) int64 { return now + rnd.Int64N(stretch<<rnd.IntN(16)) },
		"in one stretch":       func(rnd *rand.Rand, now int64) int64 { return now/60e9*60e9 + 60e9 + rnd.Int64N(3) },
		"also late ones":       func(rnd *rand.Rand, now int64) int64 { return now - 5e9 + rnd.Int64N(20e9) },
		"at the ends of time":  func(rnd *rand.Rand, now int64) int64 { return []int64{math.MinInt64, now, math.MaxInt64}[rnd.IntN(3)] },
		"where stretches meet": func(rnd *rand.Rand, now int64) int64 { return now/stretch*stretch + rnd.Int64N(5000)*stretch },
	} {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(3, 4))
			var c Calendar
			var h Heap
			c.ticket, h.ticket = math.MaxUint32-30_000, math.MaxUint32-30_000 // they wrap on the way
			now, id := int64(0), int32(0)
			push := func() {
				at := plan(rnd, now)
				if want, got := h.Push(id, at), c.Push(id, at); want != got {
					require.Equal(t, want, got)
				}
				id++
			}
			pop := func() {
				id, at, ticket, ok := h.Peek()
				gotID, gotAt, gotTicket, got := c.Peek()
				if id != gotID || at != gotAt || ticket != gotTicket || ok != got {
					require.Equal(t, []any{id, at, ticket, ok}, []any{gotID, gotAt, gotTicket, got})
				}
				h.Pop()
				c.Pop()
				if ok && at > now && at < math.MaxInt64 {
					now = at
				}
			}
			for range 2 { // it fills up, is busy, and runs empty
				for range 15_000 {
					push()
				}
				for range 20_000 {
					pop()
					push()
				}
				keep := func(id int32, _ uint32) bool { return id%3 > 0 }
				h.Sweep(keep)
				c.Sweep(keep)
				for range 20_000 {
					pop()
					if rnd.IntN(4) == 0 {
						push()
					}
				}
				for h.Len() > 0 {
					if h.Len() != c.Len() {
						require.Equal(t, h.Len(), c.Len())
					}
					pop()
				}
				require.Zero(t, c.Len())
				require.Zero(t, c.pieces.Len())
				pop()
			}
		})
	}
}

func TestCalendarUsesItsStretches(t *testing.T) {
	var c Calendar
	for id := range int32(20_000) {
		c.Push(id, int64(id)*1e6)
	}
	for id := range int32(20_000) {
		got, at, _, _ := c.Peek()
		require.Equal(t, id, got)
		c.Pop()
		c.Push(id, at+20e9)
	}
	require.Less(t, c.rest.Len(), 2*fewEntries)
	require.Greater(t, c.held, 10_000)
}

func TestCalendarGivesMemoryBack(t *testing.T) {
	var c Calendar
	before := heapInUse()
	for id := range int32(300_000) {
		c.Push(id, int64(id)*1e5)
	}
	full := heapInUse() - before
	require.Less(t, full, int64(300_000*24))
	c.Sweep(func(id int32, _ uint32) bool { return id%60_000 == 0 })
	require.Equal(t, 5, c.Len())
	require.Less(t, heapInUse()-before, full/5)
	for range 5 {
		c.Pop()
	}
	_, _, _, ok := c.Peek()
	require.False(t, ok)
}
