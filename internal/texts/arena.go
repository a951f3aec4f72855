// Package texts keeps the many short strings of a poller in few, large pieces
// of memory that have no pointers.
package texts

import (
	"encoding/binary"
	"strings"
)

const (
	chunkSize = 64 << 10
	header    = 8 // owner and length
)

// Ref names a string in an Arena. Zero is the empty string.
type Ref uint64

func ref(chunk, at int) Ref { return Ref(uint64(chunk+1)<<32 | uint64(uint32(at))) }

func (r Ref) place() (chunk, at int) { return int(r>>32) - 1, int(uint32(r)) }

// Arena keeps strings in chunks that only grow until they are full and never
// change then. A string that was given out stays valid for ever: it keeps its
// chunk in memory, and no chunk is written twice. The zero Arena is empty and
// ready. It is not safe for concurrent use.
type Arena struct {
	// Held tells whether owner, which is what Add was given, still has r. Moved
	// is told when it gets another Ref, so that a chunk can go that few strings
	// are left in. With nil they stay.
	Held  func(owner int32, r Ref) bool
	Moved func(owner int32, old, now Ref)

	chunks []*chunk
	holes  []int
	open   int // the chunk that takes more, if it is there
	bytes  int // of all chunks
}

type chunk struct {
	text strings.Builder // grown once, so that its text stays where it is
	used int             // bytes still wanted
}

// Add keeps a string for its owner.
func (a *Arena) Add(owner int32, s string) Ref {
	if s == "" {
		return 0
	}
	n := header + len(s)
	i, c := a.open, a.at(a.open)
	if c == nil || c.text.Cap()-c.text.Len() < n {
		full := a.open
		i, c = a.grow(n)
		defer a.tidy(full)
	}
	at := c.text.Len()
	var h [header]byte
	binary.LittleEndian.PutUint32(h[:], uint32(owner))
	binary.LittleEndian.PutUint32(h[4:], uint32(len(s)))
	c.text.Write(h[:])
	c.text.WriteString(s)
	c.used += n
	return ref(i, at)
}

// Get gives the string, which stays valid for ever.
func (a *Arena) Get(r Ref) string {
	if r == 0 {
		return ""
	}
	i, at := r.place()
	_, s, _ := a.chunks[i].entry(at)
	return s
}

// Drop tells that a string is not wanted any more.
func (a *Arena) Drop(r Ref) {
	if r == 0 {
		return
	}
	i, at := r.place()
	c := a.chunks[i]
	_, s, _ := c.entry(at)
	c.used -= header + len(s)
	if c.used == 0 {
		a.free(i)
	} else {
		a.tidy(i)
	}
}

// tidy empties a chunk of which little is still wanted.
func (a *Arena) tidy(i int) {
	if c := a.at(i); c != nil && i != a.open && c.used < c.text.Len()/4 && a.Held != nil {
		a.empty(i)
	}
}

// Bytes is the memory in use.
func (a *Arena) Bytes() int { return a.bytes }

func (a *Arena) at(i int) *chunk {
	if i < len(a.chunks) {
		return a.chunks[i]
	}
	return nil
}

// grow opens a chunk. One that is made for a long string is full at once, and
// the open one stays.
func (a *Arena) grow(n int) (int, *chunk) {
	c := &chunk{}
	size := chunkSize
	switch {
	case n > chunkSize/8:
		size = n
	case len(a.chunks) == 0:
		size = chunkSize / 16 // most pollers have few jobs
	}
	c.text.Grow(size)
	i := len(a.chunks)
	if k := len(a.holes) - 1; k >= 0 {
		i, a.holes = a.holes[k], a.holes[:k]
		a.chunks[i] = c
	} else {
		a.chunks = append(a.chunks, c)
	}
	a.bytes += c.text.Cap()
	if size != n {
		a.open = i
	}
	return i, c
}

func (a *Arena) free(i int) {
	a.bytes -= a.chunks[i].text.Cap()
	a.chunks[i] = nil
	a.holes = append(a.holes, i)
	if len(a.holes) == len(a.chunks) {
		a.chunks, a.holes, a.open = nil, nil, 0
	}
}

// empty moves the strings that are still wanted out of a chunk.
func (a *Arena) empty(i int) {
	c := a.chunks[i]
	for at := 0; at < c.text.Len(); {
		owner, s, next := c.entry(at)
		if old := ref(i, at); a.Held(owner, old) {
			a.Moved(owner, old, a.Add(owner, s))
		}
		at = next
	}
	a.free(i)
}

func (c *chunk) entry(at int) (owner int32, s string, next int) {
	t := c.text.String()
	owner = int32(uint32(t[at]) | uint32(t[at+1])<<8 | uint32(t[at+2])<<16 | uint32(t[at+3])<<24)
	n := int(uint32(t[at+4]) | uint32(t[at+5])<<8 | uint32(t[at+6])<<16 | uint32(t[at+7])<<24)
	return owner, t[at+header : at+header+n], at + header + n
}
