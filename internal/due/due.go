// Package due holds the instants at which the jobs of a poller are due. A Queue
// knows where each job stands, so that moving and removing one are as cheap as
// adding it and nothing is left behind. A Heap and, for many jobs, a Calendar
// leave that to their user, who pays less for each job that is due.
package due

import "math"

const (
	arity = 4
	// Positions live in pages, so that a few high ids that outlive a burst do
	// not keep the memory of all ids below them.
	pageBits = 10
	pageSize = 1 << pageBits
	pageMask = pageSize - 1
	// Below this many items the heap's array is not worth shrinking.
	minItems = 256
)

// item is kept inline: comparing touches no other memory.
type item struct {
	at  int64
	seq uint64
	id  int32
}

func (a *item) before(b *item) bool {
	return a.at < b.at || (a.at == b.at && a.seq < b.seq)
}

// page maps the ids of one stretch to index+1 in items; 0 is absent.
type page struct {
	used int32
	pos  [pageSize]int32
}

// Queue orders small non-negative ids by the instant at which they are due.
// Equal instants come out in the order in which they were set. It costs 28
// bytes an id. The zero Queue is empty and ready; it is not safe for use by
// several goroutines at once.
type Queue struct {
	items []item
	pages []*page
	spare *page // one empty page, so that a lone id coming and going allocates nothing
	seq   uint64
}

// Len returns how many ids are in the queue.
func (q *Queue) Len() int { return len(q.items) }

// Set puts id into the queue, or moves it, earlier or later. It panics on a
// negative id.
func (q *Queue) Set(id int32, at int64) {
	if id < 0 {
		panic("due: negative id")
	}
	q.seq++
	it := item{at: at, seq: q.seq, id: id}
	if i := q.index(id); i >= 0 {
		q.place(i, it)
		return
	}
	if len(q.items) == math.MaxInt32 {
		panic("due: full")
	}
	q.claim(id)
	q.items = append(q.items, item{})
	q.up(len(q.items)-1, it)
}

// Remove takes id out of the queue and reports whether it was there.
func (q *Queue) Remove(id int32) bool {
	i := q.index(id)
	if i < 0 {
		return false
	}
	q.removeAt(i)
	return true
}

// Peek returns the id that is due first.
func (q *Queue) Peek() (id int32, at int64, ok bool) {
	if len(q.items) == 0 {
		return 0, 0, false
	}
	return q.items[0].id, q.items[0].at, true
}

// Pop takes the id that is due first out of the queue.
func (q *Queue) Pop() (id int32, at int64, ok bool) {
	if len(q.items) == 0 {
		return 0, 0, false
	}
	first := q.items[0]
	q.removeAt(0)
	return first.id, first.at, true
}

// At returns when id is due, if it is in the queue.
func (q *Queue) At(id int32) (int64, bool) {
	i := q.index(id)
	if i < 0 {
		return 0, false
	}
	return q.items[i].at, true
}

// index returns where id stands in items, or -1.
func (q *Queue) index(id int32) int {
	if id < 0 || int(id>>pageBits) >= len(q.pages) {
		return -1
	}
	p := q.pages[id>>pageBits]
	if p == nil {
		return -1
	}
	return int(p.pos[id&pageMask]) - 1
}

// claim makes room for the position of an id that is not in the queue.
func (q *Queue) claim(id int32) {
	n := int(id >> pageBits)
	for len(q.pages) <= n {
		q.pages = append(q.pages, nil)
	}
	if q.pages[n] == nil {
		if q.pages[n] = q.spare; q.spare == nil {
			q.pages[n] = new(page)
		}
		q.spare = nil
	}
	q.pages[n].used++
}

// release forgets the position of an id and its page if that was the last.
func (q *Queue) release(id int32) {
	n := int(id >> pageBits)
	p := q.pages[n]
	p.pos[id&pageMask] = 0
	if p.used--; p.used == 0 {
		q.pages[n], q.spare = nil, p
	}
}

func (q *Queue) removeAt(i int) {
	q.release(q.items[i].id)
	n := len(q.items) - 1
	last := q.items[n]
	q.items = q.items[:n]
	if i < n {
		q.place(i, last)
	}
	// A quarter full halves, so that a queue on the edge does not flap.
	if c := cap(q.items); c > minItems && n <= c/4 {
		smaller := make([]item, n, c/2)
		copy(smaller, q.items)
		q.items = smaller
	}
}

// place puts it at the free index i and restores the order around it.
func (q *Queue) place(i int, it item) {
	if i > 0 && it.before(&q.items[(i-1)/arity]) {
		q.up(i, it)
	} else {
		q.down(i, it)
	}
}

func (q *Queue) put(i int, it item) {
	q.items[i] = it
	q.pages[it.id>>pageBits].pos[it.id&pageMask] = int32(i) + 1
}

func (q *Queue) up(i int, it item) {
	for i > 0 {
		parent := (i - 1) / arity
		if !it.before(&q.items[parent]) {
			break
		}
		q.put(i, q.items[parent])
		i = parent
	}
	q.put(i, it)
}

func (q *Queue) down(i int, it item) {
	n := len(q.items)
	for {
		first := i*arity + 1
		if first >= n {
			break
		}
		least := first
		for c := first + 1; c < min(first+arity, n); c++ {
			if q.items[c].before(&q.items[least]) {
				least = c
			}
		}
		if !q.items[least].before(&it) {
			break
		}
		q.put(i, q.items[least])
		i = least
	}
	q.put(i, it)
}
