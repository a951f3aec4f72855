package texts

import "strings"

// Interner gives each of a bounded number of strings a number of its own. It
// forgets none. The zero Interner is empty; set its bounds before use. It is
// not safe for concurrent use.
type Interner struct {
	MaxStrings int
	MaxBytes   int

	ids   map[string]uint32
	texts []string
	bytes int
}

// ID gives the number of s: zero for the empty string; false where there is no
// room for another.
func (n *Interner) ID(s string) (uint32, bool) {
	if s == "" {
		return 0, true
	}
	if id, ok := n.ids[s]; ok {
		return id, true
	}
	if len(n.texts) >= n.MaxStrings || n.bytes+len(s) > n.MaxBytes {
		return 0, false
	}
	if n.ids == nil {
		n.ids = map[string]uint32{}
	}
	s = strings.Clone(s) // it may be part of something large
	n.texts = append(n.texts, s)
	n.bytes += len(s)
	id := uint32(len(n.texts))
	n.ids[s] = id
	return id, true
}

// Text gives the string of a number that ID has given.
func (n *Interner) Text(id uint32) string {
	if id == 0 {
		return ""
	}
	return n.texts[id-1]
}

// Len is how many strings are kept.
func (n *Interner) Len() int { return len(n.texts) }
