package due

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
)

var sizes = []int{1e3, 1e5, 1e6}

// peerJob and peer are the usual container/heap over pointers.
type peerJob struct {
	at    int64
	index int
}

type peer []*peerJob

func (p peer) Len() int           { return len(p) }
func (p peer) Less(i, j int) bool { return p[i].at < p[j].at }
func (p peer) Swap(i, j int)      { p[i], p[j] = p[j], p[i]; p[i].index = i; p[j].index = j }
func (p *peer) Push(x any)        { j := x.(*peerJob); j.index = len(*p); *p = append(*p, j) }
func (p *peer) Pop() any {
	old := *p
	j := old[len(old)-1]
	*p = old[:len(old)-1]
	return j
}

// fill returns both queues with the same n random instants.
func fill(n int) (*Queue, *peer, []*peerJob, *rand.Rand) {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	var q Queue
	p := make(peer, 0, n)
	jobs := make([]*peerJob, n)
	for id := range n {
		at := r.Int64N(3600e9)
		q.Set(int32(id), at)
		jobs[id] = &peerJob{at: at}
		heap.Push(&p, jobs[id])
	}
	return &q, &p, jobs, r
}

// BenchmarkRescheduleFirst is the engine's own pattern: the first is due, is
// looked at, and gets a later instant.
func BenchmarkRescheduleFirst(b *testing.B) {
	for _, n := range sizes {
		q, p, _, r := fill(n)
		b.Run(fmt.Sprintf("due/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				id, at, _ := q.Peek()
				q.Set(id, at+r.Int64N(60e9))
			}
		})
		b.Run(fmt.Sprintf("container-heap/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				(*p)[0].at += r.Int64N(60e9)
				heap.Fix(p, 0)
			}
		})
	}
}

// BenchmarkMoveAny moves a random job, as a notice or a cool-down does.
func BenchmarkMoveAny(b *testing.B) {
	for _, n := range sizes {
		q, p, jobs, r := fill(n)
		b.Run(fmt.Sprintf("due/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				q.Set(r.Int32N(int32(n)), r.Int64N(3600e9))
			}
		})
		b.Run(fmt.Sprintf("container-heap/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				j := jobs[r.IntN(n)]
				j.at = r.Int64N(3600e9)
				heap.Fix(p, j.index)
			}
		})
	}
}

// BenchmarkRemoveAndAdd takes a random job out and puts it back.
func BenchmarkRemoveAndAdd(b *testing.B) {
	for _, n := range sizes {
		q, p, jobs, r := fill(n)
		b.Run(fmt.Sprintf("due/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				id := r.Int32N(int32(n))
				q.Remove(id)
				q.Set(id, r.Int64N(3600e9))
			}
		})
		b.Run(fmt.Sprintf("container-heap/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				j := jobs[r.IntN(n)]
				heap.Remove(p, j.index)
				j.at = r.Int64N(3600e9)
				heap.Push(p, j)
			}
		})
	}
}

// BenchmarkSteady is what the engine does all day: the first is due, and stands
// again for one interval later.
func BenchmarkSteady(b *testing.B) {
	type queue interface {
		Push(id int32, at int64) uint32
		Peek() (id int32, at int64, ticket uint32, ok bool)
		Pop()
	}
	const interval = int64(20e9)
	for _, n := range sizes {
		for _, jitter := range []int64{1, int64(4e9)} {
			for name, q := range map[string]queue{"heap": &Heap{}, "calendar": &Calendar{}} {
				rnd := rand.New(rand.NewPCG(1, uint64(n)))
				round := func() {
					id, at, _, _ := q.Peek()
					q.Pop()
					q.Push(id, at+interval-rnd.Int64N(jitter))
				}
				for id := range n {
					q.Push(int32(id), int64(id)*interval/int64(n))
				}
				for range 2 * n {
					round()
				}
				b.Run(fmt.Sprintf("%s/%d/jitter=%ds", name, n, jitter/1e9), func(b *testing.B) {
					for b.Loop() {
						round()
					}
				})
			}
		}
	}
}
