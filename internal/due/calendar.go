package due

import (
	"cmp"
	"slices"

	"github.com/jobpoll/jobpoll/internal/records"
)

const (
	// A stretch is 2^25 ns, 34 ms, and so many lie ahead: 137 s.
	stretchBits = 25
	stretches   = 4096
	// What no longer fits into a stretch goes to the heap, so that to sort one
	// takes less than a millisecond; one with few is not worth sorting.
	maxStretch = 8192
	minStretch = 64
	// Below this many entries a heap fits into the cache of a core.
	fewEntries = 4096
	pieceSize  = 15
)

// Calendar is a Heap for many ids. Those due in the next minutes lie, in no
// order, in stretches of time, and a stretch is sorted when it comes up: so a
// push or a pop touches one line of memory, where a heap of a million touches
// one at every level. It costs 17 bytes an id. The zero Calendar is empty and
// ready; it is not safe for use by several goroutines at once.
type Calendar struct {
	run    []ticketed // the last stretch that came up, in order
	head   int        // in run
	rest   Heap       // what has no place in a stretch
	ahead  *[stretches]stretch
	pieces records.Table[piece]
	edge   int64 // the number of the first stretch that takes entries
	first  int64 // of the first that has some, where held is not zero
	held   int   // entries in all stretches
	ticket uint32
}

// stretch is a list of pieces, the newest first. All but that one are full.
type stretch struct {
	newest int32 // its slot is one less
	n      int32 // entries
}

type piece struct {
	older int32
	items [pieceSize]ticketed
}

// Len returns how many entries there are, outdated ones included.
func (c *Calendar) Len() int { return len(c.run) - c.head + c.rest.Len() + c.held }

// Push adds an id and returns its ticket, which is never zero.
func (c *Calendar) Push(id int32, at int64) uint32 {
	if c.ticket++; c.ticket == 0 {
		c.ticket = 1
	}
	it := ticketed{at: at, id: id, ticket: c.ticket}
	n := at >> stretchBits
	if n < c.edge || n-c.edge >= stretches || c.held == 0 && c.rest.Len() < fewEntries || !c.keep(n, it) {
		c.rest.push(it)
	}
	return it.ticket
}

// keep puts an entry into a stretch, false if that is full.
func (c *Calendar) keep(n int64, it ticketed) bool {
	if c.ahead == nil {
		c.ahead = new([stretches]stretch)
	}
	s := &c.ahead[n%stretches]
	if s.n == maxStretch {
		return false
	}
	if c.held == 0 || n < c.first {
		c.first = n
	}
	c.add(s, it)
	return true
}

func (c *Calendar) add(s *stretch, it ticketed) {
	var p *piece
	if s.n%pieceSize == 0 {
		slot, fresh := c.pieces.Add()
		fresh.older, s.newest = s.newest, slot+1
		p = fresh
	} else {
		p = c.pieces.Get(s.newest - 1)
	}
	p.items[s.n%pieceSize] = it
	s.n++
	c.held++
}

// empty takes all entries out of a stretch, in the order in which they came.
func (c *Calendar) empty(s *stretch, into []ticketed) []ticketed {
	n := int(s.n)
	into = slices.Grow(into[:0], n)[:n]
	for n > 0 {
		p := c.pieces.Get(s.newest - 1)
		k := (n-1)%pieceSize + 1
		n -= k
		copy(into[n:], p.items[:k])
		older := p.older
		c.pieces.Remove(s.newest - 1)
		s.newest = older
	}
	c.held -= int(s.n)
	s.n = 0
	return into
}

// front gives the entry that is due first, and whether it is in run.
func (c *Calendar) front() (it *ticketed, inRun bool) {
	for {
		if it, inRun = nil, false; c.head < len(c.run) {
			it, inRun = &c.run[c.head], true
		}
		if len(c.rest.items) > 0 {
			if top := &c.rest.items[0]; !inRun || top.before(it) {
				it, inRun = top, false
			}
		}
		if c.held == 0 || it != nil && it.at < c.first<<stretchBits {
			return it, inRun
		}
		c.comeUp()
	}
}

// comeUp brings the first stretch up. There is none under way: what is in run
// is due before it.
func (c *Calendar) comeUp() {
	n := c.first
	c.run, c.head = c.empty(&c.ahead[n%stretches], c.run), 0
	if len(c.run) < minStretch { // as when there are few: the stretch stays open
		for _, it := range c.run {
			c.rest.push(it)
		}
		c.run = c.run[:0]
	} else {
		c.edge = n + 1
		slices.SortFunc(c.run, func(a, b ticketed) int {
			if d := cmp.Compare(a.at, b.at); d != 0 {
				return d
			}
			return int(int32(a.ticket - b.ticket))
		})
	}
	c.findFirst(n + 1)
}

// findFirst sets first to the first stretch from n on that has entries.
func (c *Calendar) findFirst(n int64) {
	for c.first = n; c.held > 0 && c.ahead[c.first%stretches].n == 0; {
		c.first++
	}
}

// Peek returns the entry that is due first.
func (c *Calendar) Peek() (id int32, at int64, ticket uint32, ok bool) {
	it, _ := c.front()
	if it == nil {
		return 0, 0, 0, false
	}
	return it.id, it.at, it.ticket, true
}

// Pop takes the entry that is due first out.
func (c *Calendar) Pop() {
	it, inRun := c.front()
	if it == nil {
		return
	}
	c.edge = max(c.edge, it.at>>stretchBits) // all stretches before have come up
	if inRun {
		c.head++
	} else {
		c.rest.Pop()
	}
}

// Sweep drops the entries that keep refuses.
func (c *Calendar) Sweep(keep func(id int32, ticket uint32) bool) {
	drop := func(it ticketed) bool { return !keep(it.id, it.ticket) }
	c.run = slices.DeleteFunc(c.run[c.head:], drop)
	c.head = 0
	c.rest.Sweep(keep)
	if c.held == 0 {
		return
	}
	var all []ticketed
	for i := range c.ahead {
		s := &c.ahead[i]
		all = c.empty(s, all)
		for _, it := range all {
			if !drop(it) {
				c.add(s, it)
			}
		}
	}
	c.findFirst(c.edge)
}
