// Package records keeps records of one type in slots that small numbers name,
// at addresses that stay the same while a record lives.
package records

const chunkSize = 256

// Table is a set of records. The zero Table is empty and ready. It is not safe
// for concurrent use.
type Table[T any] struct {
	chunks []*[chunkSize]entry[T]
	free   []int32
	live   int
}

type entry[T any] struct {
	used bool
	rec  T
}

// Add takes a slot, with a zero record in it.
func (t *Table[T]) Add() (int32, *T) {
	if len(t.free) == 0 {
		base := int32(len(t.chunks) * chunkSize)
		t.chunks = append(t.chunks, new([chunkSize]entry[T]))
		for i := int32(chunkSize - 1); i >= 0; i-- {
			t.free = append(t.free, base+i)
		}
	}
	slot := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	t.live++
	e := &t.chunks[slot/chunkSize][slot%chunkSize]
	e.used = true
	return slot, &e.rec
}

// Get gives the record in a slot, nil if there is none.
func (t *Table[T]) Get(slot int32) *T {
	if slot < 0 || slot >= t.End() {
		return nil
	}
	if e := &t.chunks[slot/chunkSize][slot%chunkSize]; e.used {
		return &e.rec
	}
	return nil
}

// Remove empties a slot; its number will be used again. When the last record
// goes, so does the memory.
func (t *Table[T]) Remove(slot int32) {
	if t.Get(slot) == nil {
		return
	}
	t.chunks[slot/chunkSize][slot%chunkSize] = entry[T]{}
	t.free = append(t.free, slot)
	if t.live--; t.live == 0 {
		t.chunks, t.free = nil, nil
	}
}

// Len is the number of records.
func (t *Table[T]) Len() int { return t.live }

// End is one more than the highest slot that may be in use.
func (t *Table[T]) End() int32 { return int32(len(t.chunks) * chunkSize) }
