package main

// entry is a place in a due queue.
type entry struct {
	due  int64
	slot uint32
}

// heap4 is a min-heap of four children a node: half as deep as a binary one,
// and the children of a node lie in one cache line.
type heap4 []entry

func (h *heap4) push(e entry) {
	q := append(*h, e)
	*h = q
	at := len(q) - 1
	for at > 0 {
		up := (at - 1) / 4
		if q[up].due <= e.due {
			break
		}
		q[at] = q[up]
		at = up
	}
	q[at] = e
}

// pop takes the earliest entry; the heap must not be empty.
func (h *heap4) pop() entry {
	q := *h
	top, last := q[0], q[len(q)-1]
	q = q[:len(q)-1]
	*h = q
	if len(q) > 0 {
		q.down(last)
	}
	return top
}

// down puts an entry where the root was.
func (h heap4) down(e entry) {
	at := 0
	for {
		least := at*4 + 1
		if least >= len(h) {
			break
		}
		for c := least + 1; c < min(at*4+5, len(h)); c++ {
			if h[c].due < h[least].due {
				least = c
			}
		}
		if e.due <= h[least].due {
			break
		}
		h[at] = h[least]
		at = least
	}
	h[at] = e
}
