package due

// Heap orders ids by the instant at which they are due and forgets none: to
// move an id is to push it again and to remember the newer ticket, to remove
// it is to forget the ticket. Whoever takes an id out compares the ticket. It
// costs 16 bytes an id, and a push or pop touches no memory but its own. The
// zero Heap is empty and ready; it is not safe for use by several goroutines
// at once.
type Heap struct {
	items  []ticketed
	ticket uint32
}

type ticketed struct {
	at     int64
	id     int32
	ticket uint32
}

// before orders equal instants by the order in which they were pushed; tickets
// may wrap.
func (a *ticketed) before(b *ticketed) bool {
	return a.at < b.at || a.at == b.at && int32(a.ticket-b.ticket) < 0
}

// Len returns how many entries there are, outdated ones included.
func (h *Heap) Len() int { return len(h.items) }

// Push adds an id and returns its ticket, which is never zero.
func (h *Heap) Push(id int32, at int64) uint32 {
	if h.ticket++; h.ticket == 0 {
		h.ticket = 1
	}
	h.push(ticketed{at: at, id: id, ticket: h.ticket})
	return h.ticket
}

func (h *Heap) push(it ticketed) {
	i := len(h.items)
	h.items = append(h.items, it)
	for i > 0 {
		parent := (i - 1) / arity
		if !it.before(&h.items[parent]) {
			break
		}
		h.items[i] = h.items[parent]
		i = parent
	}
	h.items[i] = it
}

// Peek returns the entry that is due first.
func (h *Heap) Peek() (id int32, at int64, ticket uint32, ok bool) {
	if len(h.items) == 0 {
		return 0, 0, 0, false
	}
	it := &h.items[0]
	return it.id, it.at, it.ticket, true
}

// Pop takes the entry that is due first out.
func (h *Heap) Pop() {
	n := len(h.items) - 1
	if n < 0 {
		return
	}
	last := h.items[n]
	h.items = h.items[:n]
	if n > 0 {
		h.down(0, last)
	}
	h.shrink()
}

// Sweep drops the entries that keep refuses.
func (h *Heap) Sweep(keep func(id int32, ticket uint32) bool) {
	kept := h.items[:0]
	for _, it := range h.items {
		if keep(it.id, it.ticket) {
			kept = append(kept, it)
		}
	}
	h.items = kept
	for i := (len(kept) - 2) / arity; i >= 0 && len(kept) > 1; i-- {
		h.down(i, kept[i])
	}
	h.shrink()
}

// shrink halves an array that is a quarter full, so that a heap on the edge
// does not flap.
func (h *Heap) shrink() {
	for c := cap(h.items); c > minItems && len(h.items) <= c/4; c = cap(h.items) {
		smaller := make([]ticketed, len(h.items), c/2)
		copy(smaller, h.items)
		h.items = smaller
	}
}

func (h *Heap) down(i int, it ticketed) {
	n := len(h.items)
	for {
		first := i*arity + 1
		if first >= n {
			break
		}
		least := first
		for c := first + 1; c < min(first+arity, n); c++ {
			if h.items[c].before(&h.items[least]) {
				least = c
			}
		}
		if !h.items[least].before(&it) {
			break
		}
		h.items[i] = h.items[least]
		i = least
	}
	h.items[i] = it
}
