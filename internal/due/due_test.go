package due

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// queue is what the suite asks of every implementation.
type queue interface {
	Set(id int32, at int64)
	Remove(id int32) bool
	Peek() (int32, int64, bool)
	Pop() (int32, int64, bool)
	At(id int32) (int64, bool)
	Len() int
}

// sorted is the naive queue: a list that is sorted anew when it changes.
type sorted struct {
	items []item
	seq   uint64
}

func (s *sorted) find(id int32) int {
	return slices.IndexFunc(s.items, func(it item) bool { return it.id == id })
}

func (s *sorted) Len() int { return len(s.items) }

func (s *sorted) Set(id int32, at int64) {
	s.Remove(id)
	s.seq++
	s.items = append(s.items, item{at: at, seq: s.seq, id: id})
	slices.SortFunc(s.items, func(a, b item) int {
		if a.before(&b) {
			return -1
		}
		return 1
	})
}

func (s *sorted) Remove(id int32) bool {
	i := s.find(id)
	if i < 0 {
		return false
	}
	s.items = slices.Delete(s.items, i, i+1)
	return true
}

func (s *sorted) Peek() (int32, int64, bool) {
	if len(s.items) == 0 {
		return 0, 0, false
	}
	return s.items[0].id, s.items[0].at, true
}

func (s *sorted) Pop() (int32, int64, bool) {
	id, at, ok := s.Peek()
	if ok {
		s.Remove(id)
	}
	return id, at, ok
}

func (s *sorted) At(id int32) (int64, bool) {
	if i := s.find(id); i >= 0 {
		return s.items[i].at, true
	}
	return 0, false
}

// both runs the suite over the heap and over the naive list.
func both(t *testing.T, f func(t *testing.T, q queue)) {
	t.Run("heap", func(t *testing.T) { f(t, new(Queue)) })
	t.Run("sorted list", func(t *testing.T) { f(t, new(sorted)) })
}

func drain(q queue) []int32 {
	var ids []int32
	for {
		id, _, ok := q.Pop()
		if !ok {
			return ids
		}
		ids = append(ids, id)
	}
}

func TestEmptyQueueAnswersNothing(t *testing.T) {
	both(t, func(t *testing.T, q queue) {
		_, _, ok := q.Peek()
		assert.False(t, ok)
		_, _, ok = q.Pop()
		assert.False(t, ok)
		_, ok = q.At(7)
		assert.False(t, ok)
		assert.False(t, q.Remove(7))
		assert.False(t, q.Remove(-1))
		assert.Zero(t, q.Len())
	})
}

func TestComesOutInOrderOfTimeThenOfSetting(t *testing.T) {
	both(t, func(t *testing.T, q queue) {
		q.Set(5, 20)
		q.Set(3, 10)
		q.Set(9, 20)
		q.Set(1, 20)
		q.Set(4, math.MinInt64)
		q.Set(8, math.MaxInt64)
		assert.Equal(t, []int32{4, 3, 5, 9, 1, 8}, drain(q))
	})
}

func TestSettingAgainGoesBehindItsEquals(t *testing.T) {
	both(t, func(t *testing.T, q queue) {
		for id := range int32(4) {
			q.Set(id, 1)
		}
		q.Set(0, 1)
		assert.Equal(t, []int32{1, 2, 3, 0}, drain(q))
	})
}

func TestMovesBothWays(t *testing.T) {
	both(t, func(t *testing.T, q queue) {
		for id := range int32(50) {
			q.Set(id, int64(id)*10)
		}
		q.Set(49, -1)
		q.Set(0, 1000)
		at, ok := q.At(49)
		assert.True(t, ok)
		assert.EqualValues(t, -1, at)
		got := drain(q)
		assert.Len(t, got, 50)
		assert.EqualValues(t, 49, got[0])
		assert.EqualValues(t, 0, got[49])
	})
}

func TestRemovedIDIsReallyGone(t *testing.T) {
	both(t, func(t *testing.T, q queue) {
		q.Set(1, 1)
		q.Set(2, 2)
		assert.True(t, q.Remove(1))
		assert.False(t, q.Remove(1))
		assert.Equal(t, 1, q.Len())
		_, ok := q.At(1)
		assert.False(t, ok)
		assert.Equal(t, []int32{2}, drain(q))
	})
}

func TestNegativeIDPanics(t *testing.T) {
	assert.Panics(t, func() { new(Queue).Set(-1, 0) })
}

// step does one operation on both queues and compares every answer.
func step(t require.TestingT, a *Queue, b *sorted, op byte, id int32, at int64) {
	switch op % 8 {
	case 0, 1, 2, 3:
		a.Set(id, at)
		b.Set(id, at)
	case 4, 5:
		require.Equal(t, b.Remove(id), a.Remove(id))
	case 6:
		i, x, ok := a.Pop()
		j, y, ok2 := b.Pop()
		require.Equal(t, []any{j, y, ok2}, []any{i, x, ok})
	case 7:
		x, ok := a.At(id)
		y, ok2 := b.At(id)
		require.Equal(t, []any{y, ok2}, []any{x, ok})
	}
	i, x, ok := a.Peek()
	j, y, ok2 := b.Peek()
	require.Equal(t, []any{j, y, ok2}, []any{i, x, ok})
	require.Equal(t, b.Len(), a.Len())
}

// valid checks order, write-back and page counts.
func valid(t require.TestingT, q *Queue) {
	used := make(map[int32]int32)
	for i := range q.items {
		if i > 0 {
			require.False(t, q.items[i].before(&q.items[(i-1)/arity]), "order at %d", i)
		}
		require.Equal(t, i, q.index(q.items[i].id))
		used[q.items[i].id>>pageBits]++
	}
	for n, p := range q.pages {
		if p == nil {
			require.Zero(t, used[int32(n)])
			continue
		}
		require.Equal(t, used[int32(n)], p.used)
	}
}

func TestAgreesWithTheSortedListOverRandomOperations(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		var a Queue
		var b sorted
		for i := range 3000 {
			// Few ids and instants, so that moves and ties are common; ids over several pages.
			step(t, &a, &b, byte(r.UintN(256)), r.Int32N(60)*97, int64(r.IntN(40)))
			if i%100 == 0 {
				valid(t, &a)
			}
		}
		valid(t, &a)
		require.Equal(t, drain(&b), drain(&a), "seed %d", seed)
	}
}

func FuzzAgreesWithTheSortedList(f *testing.F) {
	f.Add([]byte{0, 1, 2, 0, 2, 2, 4, 1, 0, 6, 0, 0})
	f.Add([]byte{0, 255, 255, 0, 254, 0, 6, 0, 0, 7, 255, 0})
	f.Fuzz(func(t *testing.T, ops []byte) {
		var a Queue
		var b sorted
		for ; len(ops) >= 3 && b.seq < 2000; ops = ops[3:] {
			step(t, &a, &b, ops[0], int32(ops[1])*37, int64(int8(ops[2])))
		}
		valid(t, &a)
		require.Equal(t, drain(&b), drain(&a))
	})
}

// B84(a): moving a job leaves nothing behind.
func TestMovingOneJobAllocatesNothing(t *testing.T) {
	var q Queue
	q.Set(0, 6*3600e9)
	at := int64(0)
	assert.Zero(t, testing.AllocsPerRun(100_000, func() { at++; q.Set(0, at) }))
	assert.Equal(t, 1, q.Len())
	assert.LessOrEqual(t, cap(q.items), minItems)
}

func TestALoneHighIDComesAndGoesWithoutAllocating(t *testing.T) {
	var q Queue
	q.Set(999_999, 1)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		_, at, _ := q.Pop()
		q.Set(999_999, at+1)
	}))
}

// B84: what a burst took is given back, also while a few high ids stay.
func TestMemoryShrinksWhenTheQueueEmpties(t *testing.T) {
	const n = 300_000
	var q Queue
	before := heapInUse()
	for id := range int32(n) {
		q.Set(id, int64(n-id))
	}
	full := heapInUse() - before
	assert.Less(t, full, int64(n*80))
	for id := range int32(n - 5) {
		q.Remove(id)
	}
	left := heapInUse() - before
	assert.LessOrEqual(t, cap(q.items), minItems*2)
	assert.Less(t, left, full/20, "5 of %d ids left", n)
	valid(t, &q)
	assert.Len(t, drain(&q), 5)
	runtime.KeepAlive(&q)
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
