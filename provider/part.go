package provider

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// What is made of the parts of an answer that a walk shows, by the rules of
// package json and of Text.

// text is the value, read as a Text.
func (w *walk) text() (t Text) {
	_ = t.UnmarshalJSON(w.value) // it gives no error
	return t
}

// word puts a text into s, as package json does for a field that is a string:
// null and another type change nothing.
func (w *walk) word(s *string) {
	if w.value[0] == '"' {
		*s = unquoted(w.value)
	}
}

// list puts a list into l, as package json does: null takes away what was there,
// and another type changes nothing.
func (w *walk) list(l *json.RawMessage) {
	switch w.value[0] {
	case '[':
		*l = w.value
	case 'n':
		*l = nil
	}
}

// hasText reports whether the value, read as a Text, would be something: not blank,
// no flag, and no empty object or list.
func (w *walk) hasText() bool {
	v := w.value
	if len(v) < len(`""`) {
		return len(v) > 0
	}
	switch v[0] {
	case 'n', 'f', 't':
		return false
	case '{', '[':
		return len(bytes.TrimSpace(v[1:len(v)-1])) > 0
	case '"':
		return !blank(v)
	}
	return true
}

// blank reports whether a JSON string of two bytes at least is white space.
func blank(quoted []byte) bool {
	if c := quoted[1]; c > ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
		return false // as almost always
	}
	return strings.TrimSpace(unquoted(quoted)) == ""
}

// unquoted is the text of a JSON string, all of it; empty of what is none.
func unquoted(raw []byte) string {
	if n := len(raw); n > 1 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : n-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s) // what is no text leaves it empty
	return s
}

// status is a word that some answers do not have at all, which says something else
// than one that is empty.
type status struct {
	told bool // there is one, of any type
	word string
}

// UnmarshalJSON reads a value; what is no text is no word. It gives no error.
func (s *status) UnmarshalJSON(b []byte) error {
	s.told, s.word = true, unquoted(b)
	return nil
}

// withURL is a list of objects of which one at least has something in one of the
// fields, which count by their exact names; nil if none has.
func withURL(list json.RawMessage, fields ...string) json.RawMessage {
	item := items(list)
	for item.next() {
		for _, f := range fields {
			has := false
			m := members(item.value)
			for m.next() {
				if string(m.name) == f {
					has = m.hasText()
				}
			}
			if has {
				return list
			}
		}
	}
	return nil
}

// holdsText reports whether raw is, or holds at any depth, a text that is not blank
// (names of members do not count): a list of URLs has one, and what came instead of
// URLs has none.
func holdsText(raw []byte) bool {
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			i++
			continue
		}
		n := textEnd(raw[i:])
		after := trimmed(raw[i+n:])
		named := len(after) > 0 && after[0] == ':'
		if n > len(`""`) && !named && !blank(raw[i:i+n]) {
			return true
		}
		i += n
	}
	return false
}

// link is a URL that an answer has as a text; empty of a blank one, and of a flag, an
// object or a list instead of one.
func link(t Text) string {
	s := strings.TrimSpace(string(t))
	if s == "true" || strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") {
		return ""
	}
	return s
}

// textIn reports whether an object has a text in a field.
func textIn(object []byte, field string) (has bool) {
	m := members(object)
	for m.next() {
		if m.is(field) {
			has = m.hasText()
		}
	}
	return has
}

// partOf is a part of a whole that does not keep much more than itself in memory.
func partOf(whole, part []byte) []byte {
	if len(whole) <= 2*len(part) {
		return part
	}
	return bytes.Clone(part)
}
