// Package records keeps what is known of many jobs in few, large pieces of
// memory: records in numbered slots, and an index that finds a slot by a hash.
package records

const chunkSize = 256

// Table is a set of records. A record stays at its address while it lives. The
// zero Table is empty and ready. It is not safe for concurrent use.
type Table[T any] struct {
	chunks []*chunk[T]
	roomy  []int32 // chunks with free slots; some may be full or gone by now
	holes  []int32 // numbers of chunks that are gone
	live   int
}

// chunk is apart from its records, so that they fill whole pages and, where
// they have no pointers, are nothing to the garbage collector.
type chunk[T any] struct {
	recs  *[chunkSize]T
	live  int
	fresh int  // slots from here on were never used
	idle  int  // how many of free there are
	roomy bool // it is in Table.roomy
	used  [chunkSize / 64]uint64
	free  [chunkSize]uint8 // slots that were used before
}

// Add takes a slot, with a zero record in it.
func (t *Table[T]) Add() (int32, *T) {
	n, c := t.room()
	i := c.fresh
	if c.idle > 0 {
		c.idle--
		i = int(c.free[c.idle])
	} else {
		c.fresh++
	}
	c.used[i/64] |= 1 << (i % 64)
	c.live++
	t.live++
	return n*chunkSize + int32(i), &c.recs[i]
}

// room gives a chunk with a free slot.
func (t *Table[T]) room() (int32, *chunk[T]) {
	for k := len(t.roomy) - 1; k >= 0; k-- {
		n := t.roomy[k]
		if c := t.chunks[n]; c != nil && c.live < chunkSize {
			return n, c
		} else if c != nil {
			c.roomy = false
		}
		t.roomy = t.roomy[:k]
	}
	c := &chunk[T]{recs: new([chunkSize]T), roomy: true}
	n := int32(len(t.chunks))
	if k := len(t.holes) - 1; k >= 0 {
		n, t.holes = t.holes[k], t.holes[:k]
		t.chunks[n] = c
	} else {
		t.chunks = append(t.chunks, c)
	}
	t.roomy = append(t.roomy, n)
	return n, c
}

// Get gives the record in a slot, nil if there is none.
func (t *Table[T]) Get(slot int32) *T {
	if slot < 0 || int(slot/chunkSize) >= len(t.chunks) {
		return nil
	}
	c, i := t.chunks[slot/chunkSize], slot%chunkSize
	if c == nil || c.used[i/64]&(1<<(i%64)) == 0 {
		return nil
	}
	return &c.recs[i]
}

// Remove empties a slot; its number will be used again. With the last record
// of a chunk its memory goes.
func (t *Table[T]) Remove(slot int32) {
	if t.Get(slot) == nil {
		return
	}
	n, i := slot/chunkSize, slot%chunkSize
	c := t.chunks[n]
	var zero T
	c.recs[i] = zero
	c.used[i/64] &^= 1 << (i % 64)
	c.live--
	t.live--
	switch {
	case t.live == 0:
		*t = Table[T]{}
	case c.live == 0:
		t.chunks[n] = nil
		t.holes = append(t.holes, n)
	default:
		c.free[c.idle] = uint8(i)
		c.idle++
		if !c.roomy {
			c.roomy = true
			t.roomy = append(t.roomy, n)
		}
	}
}

// Len is the number of records.
func (t *Table[T]) Len() int { return t.live }

// End is one more than the highest slot that may be in use.
func (t *Table[T]) End() int32 { return int32(len(t.chunks) * chunkSize) }
