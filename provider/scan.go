package provider

import (
	"bytes"
	"encoding/json"
)

// A part of an answer that was kept as json.RawMessage is known to be valid JSON.
// What an adapter wants of it is read by a walk over it, for a second
// json.Unmarshal costs as much as the first: it checks all anew, and allocates.
// Bytes that are no JSON give anything, but no panic.

// walk goes over the members of an object, or over the items of a list:
//
//	m := members(raw)
//	for m.next() {
//		if m.is("url") { … m.value … }
//	}
//
// Of a name that comes twice the last value counts for package json; a walk
// shows all, in their order. It allocates nothing but for a name with escapes.
type walk struct {
	rest  []byte
	named bool
	name  []byte // of a member, unescaped
	value json.RawMessage
}

// members walks over an object; what is none has no members.
func members(raw []byte) walk { return begin(raw, '{') }

// items walks over a list; what is none has no items.
func items(raw []byte) walk { return begin(raw, '[') }

func begin(raw []byte, bracket byte) walk {
	raw = trimmed(raw)
	if len(raw) == 0 || raw[0] != bracket {
		return walk{}
	}
	return walk{rest: raw[1:], named: bracket == '{'}
}

// next goes to the next member or item, and reports whether there is one.
func (w *walk) next() bool {
	b := trimmed(w.rest)
	if len(b) > 0 && b[0] == ',' {
		b = trimmed(b[1:])
	}
	if w.named {
		if len(b) < len(`""`) || b[0] != '"' {
			return false
		}
		n := textEnd(b)
		w.name = b[1 : n-1]
		if bytes.IndexByte(w.name, '\\') >= 0 {
			w.name = []byte(unquoted(b[:n]))
		}
		if b = trimmed(b[n:]); len(b) == 0 || b[0] != ':' {
			return false
		}
		b = trimmed(b[1:])
	}
	n := valueEnd(b)
	w.value, w.rest = b[:n:n], b[n:]
	return n > 0
}

// is reports whether a member has a name, as it decides which field of a struct
// package json takes it for: whatever its case.
func (w *walk) is(name string) bool {
	return len(w.name) >= len(name) && (string(w.name) == name || bytes.EqualFold(w.name, []byte(name)))
}

// valueEnd is the length of the value that b begins with; 0 if none does.
func valueEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += textEnd(b[i:]) - 1
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // of what is around it
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n': // after a number, or a word
			if depth == 0 {
				return i
			}
		}
	}
	return len(b)
}

// textEnd is the length of the string that b begins with, quotes and all.
func textEnd(b []byte) int {
	if n := 1 + bytes.IndexByte(b[1:], '"'); n > 0 && b[n-1] != '\\' {
		return n + 1
	}
	return escapedEnd(b)
}

// escapedEnd is textEnd of a string that has escapes.
func escapedEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(b)
}

// trimmed is b without the white space before it.
func trimmed(b []byte) []byte {
	for len(b) > 0 && b[0] <= ' ' {
		b = b[1:]
	}
	return b
}
