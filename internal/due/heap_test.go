package due

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// model is what the heap stands for: the newest ticket of each id.
type model map[int32]ticketed

func (m model) first() (ticketed, bool) {
	var all []ticketed
	for _, it := range m {
		all = append(all, it)
	}
	if len(all) == 0 {
		return ticketed{}, false
	}
	return slices.MinFunc(all, func(a, b ticketed) int {
		if a.before(&b) {
			return -1
		}
		return 1
	}), true
}

func TestHeapAgainstAModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var h Heap
	h.ticket = math.MaxUint32 - 500 // tickets wrap on the way
	m := model{}
	valid := func(id int32, ticket uint32) bool { return m[id].ticket == ticket && ticket != 0 }
	peek := func() (ticketed, bool) {
		for {
			id, at, ticket, ok := h.Peek()
			if !ok || valid(id, ticket) {
				return ticketed{at, id, ticket}, ok
			}
			h.Pop()
		}
	}
	for range 20_000 {
		id := rnd.Int32N(60)
		switch rnd.IntN(10) {
		case 0:
			delete(m, id)
		case 1, 2, 3:
			if it, ok := peek(); ok {
				h.Pop()
				delete(m, it.id)
			}
		case 4:
			h.Sweep(valid)
			require.Len(t, m, h.Len())
		default:
			at := rnd.Int64N(50)
			ticket := h.Push(id, at)
			require.NotZero(t, ticket)
			m[id] = ticketed{at, id, ticket}
		}
		want, ok := m.first()
		got, has := peek()
		require.Equal(t, ok, has)
		if ok {
			require.Equal(t, want, got)
		}
	}
}

func TestHeapKeepsTheOrderOfEqualInstants(t *testing.T) {
	var h Heap
	for i := range int32(1000) {
		h.Push(i, 7)
	}
	for i := range int32(1000) {
		id, _, _, _ := h.Peek()
		require.Equal(t, i, id)
		h.Pop()
	}
	h.Pop() // of an empty one: nothing
	require.Zero(t, h.Len())
}

func TestHeapGivesMemoryBack(t *testing.T) {
	var h Heap
	for i := range int32(100_000) {
		h.Push(i, int64(i))
	}
	h.Sweep(func(id int32, _ uint32) bool { return id < 10 })
	require.LessOrEqual(t, cap(h.items), minItems*2)
	id, _, _, ok := h.Peek()
	require.True(t, ok)
	require.Zero(t, id)
}
