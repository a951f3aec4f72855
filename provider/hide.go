package provider

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	minSecret = 8  // bytes; a shorter one is a word that may stand in any answer
	minHalf   = 12 // bytes of the latter half of an "id:key", likewise
	redacted  = "…"
	// escapeMarks begin the forms of a character that is not as it is.
	escapeMarks = `\%&`
	// maxBackslashes bounds those before one character.
	maxBackslashes = 16
)

// secret is one answer of Credentials.
type secret struct {
	text  string
	parts []string // that must not be seen: the text, and the half of it that is one too
}

func newSecret(text string) *secret {
	s := &secret{text: text}
	if len(text) >= minSecret {
		s.parts = append(s.parts, text)
	}
	if _, key, ok := strings.Cut(text, ":"); ok && len(key) >= minHalf {
		s.parts = append(s.parts, key)
	}
	return s
}

// hide puts an ellipsis for the secret, also where some or all of its characters
// are escaped as JSON, URLs and HTML do, and where what nobody sees stands between
// them, which jobpoll.Excerpt drops. A nil secret hides nothing.
func (s *secret) hide(b []byte) []byte {
	if s == nil {
		return b
	}
	for _, p := range s.parts {
		if bytes.Contains(b, []byte(p)) {
			b = bytes.ReplaceAll(b, []byte(p), []byte(redacted))
		}
		if isOdd(b) {
			b = hideOdd(b, p)
		}
	}
	return b
}

// isOdd reports whether a text has more than plain, visible ASCII, or one of
// escapeMarks, which are spelled out as each byte of each answer comes by here.
func isOdd[T string | []byte](text T) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '\\' || c == '%' || c == '&' {
			return true
		}
	}
	return false
}

// hideText is hide for a text, which it leaves alone where it can.
func (s *secret) hideText(text string) string {
	if s == nil {
		return text
	}
	for _, p := range s.parts {
		if isOdd(text) || strings.Contains(text, p) {
			return string(s.hide([]byte(text)))
		}
	}
	return text
}

// hideHeader hides it in the values of h.
func (s *secret) hideHeader(h http.Header) {
	for _, values := range h {
		for i, v := range values {
			values[i] = s.hideText(v)
		}
	}
}

func hideOdd(b []byte, part string) []byte {
	var out []byte
	kept := 0 // bytes of b that are in out
	for i := 0; i < len(b); i++ {
		if b[i] != part[0] && strings.IndexByte(escapeMarks, b[i]) < 0 {
			continue
		}
		if n := oddPrefix(b[i:], part); n > 0 {
			out = append(append(out, b[kept:i]...), redacted...)
			kept = i + n
			i = kept - 1
		}
	}
	if kept == 0 {
		return b
	}
	return append(out, b[kept:]...)
}

// oddPrefix is how many bytes at the begin of b are part; 0: it is not there.
func oddPrefix(b []byte, part string) int {
	at := 0
	for part != "" {
		r, size := utf8.DecodeRuneInString(part)
		escaped, n := unescape(b[at:])
		switch {
		case n > 0 && escaped == r:
			at += n
		case at > 0 && n > 0 && unseen(escaped, n):
			at += n
			continue
		case bytes.HasPrefix(b[at:], []byte(part[:size])):
			at += size
		case at > 0 && at < len(b):
			r, n := utf8.DecodeRune(b[at:])
			if !unseen(r, n) {
				return 0
			}
			at += n
			continue
		default:
			return 0
		}
		part = part[size:]
	}
	return at
}

// unseen reports whether a rune of so many bytes is shown to nobody: no UTF-8, a
// control or a format character.
func unseen(r rune, size int) bool {
	return r == utf8.RuneError && size == 1 || !unicode.IsSpace(r) && unicode.In(r, unicode.Cc, unicode.Cf)
}

// unescape reads one escaped character, and tells its length; 0: there is none.
func unescape(b []byte) (rune, int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch b[0] {
	case '%':
		return unescapeURL(b)
	case '\\':
		begin := b[:min(len(b), maxBackslashes)]
		n := len(begin) - len(bytes.TrimLeft(begin, `\`)) // JSON in JSON has more of them
		switch rest := b[n:]; {
		case len(rest) >= 5 && rest[0] == 'u':
			return number(rest[1:5], 16, n+5)
		case len(rest) > 0 && (rest[0] == '/' || rest[0] == '"'):
			return rune(rest[0]), n + 1
		}
		return '\\', n
	case '&':
		return unescapeHTML(b)
	}
	return 0, 0
}

// unescapeURL reads %XX, and as many of them as make one character.
func unescapeURL(b []byte) (rune, int) {
	var raw []byte
	n := 0
	for len(raw) < utf8.UTFMax && len(b) >= n+3 && b[n] == '%' {
		v, ok := number(b[n+1:n+3], 16, 3)
		if ok == 0 {
			break
		}
		raw, n = append(raw, byte(v)), n+3
		if utf8.FullRune(raw) {
			break
		}
	}
	r, size := utf8.DecodeRune(raw)
	if size != len(raw) || size == 0 {
		return 0, 0
	}
	return r, n
}

// unescapeHTML reads &#47; and &#x2f;, and the named ones that encoders write.
func unescapeHTML(b []byte) (rune, int) {
	const longest = 10
	end := bytes.IndexByte(b[:min(len(b), longest)], ';')
	if end < 2 {
		return 0, 0
	}
	name, n := b[1:end], end+1
	switch {
	case bytes.HasPrefix(name, []byte("#x")), bytes.HasPrefix(name, []byte("#X")):
		return number(name[2:], 16, n)
	case name[0] == '#':
		return number(name[1:], 10, n)
	}
	for _, e := range []struct {
		name string
		is   rune
	}{{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}} {
		if string(name) == e.name {
			return e.is, n
		}
	}
	return 0, 0
}

// number reads digits of a base; n is what it tells as the length then.
func number(digits []byte, base, n int) (rune, int) {
	v, err := strconv.ParseUint(string(digits), base, 21)
	if err != nil {
		return 0, 0
	}
	return rune(v), n
}

// String hides the secret from every verb of package fmt that calls it.
func (secret) String() string { return "…" }

// GoString hides it from %#v.
func (secret) GoString() string { return "…" }
