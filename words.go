package jobpoll

import (
	"maps"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxWords     = 32 // distinct words that are counted by name
	maxWordBytes = 64
	otherWord    = "other"
	noWord       = "(none)"
)

// words counts status words. It takes the first maxWords by name and folds
// the rest, so that its labels stay few whatever a provider says.
type words struct{ counts map[string]uint64 }

func (w *words) add(word string) {
	word = scrubWord(word)
	if _, known := w.counts[word]; !known {
		named := len(w.counts)
		if _, ok := w.counts[otherWord]; ok {
			named--
		}
		if named >= maxWords {
			word = otherWord
		} else {
			word = strings.Clone(word) // it may be a part of a large answer
		}
		if w.counts == nil {
			w.counts = make(map[string]uint64)
		}
	}
	w.counts[word]++
}

// scrubWord makes a provider's word fit to be a label: one line of valid text
// of at most maxWordBytes, with what looks like an id masked. A word that is
// clean comes back as it is.
func scrubWord(word string) string {
	if len(word) > 4*maxWordBytes {
		word = word[:4*maxWordBytes] // bounds the work
	}
	word = strings.ToValidUTF8(strings.TrimSpace(word), "")
	if strings.ContainsFunc(word, unicode.IsControl) {
		word = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, word)
	}
	word = maskIDs(word)
	if len(word) > maxWordBytes {
		cut := maxWordBytes
		for cut > 0 && !utf8.RuneStart(word[cut]) {
			cut--
		}
		word = strings.TrimSpace(word[:cut])
	}
	if word == "" {
		return noWord
	}
	return word
}

// maskIDs replaces runs of letters, digits and hyphens that are long and hold
// several digits: a status has none, an id that got into it does.
func maskIDs(s string) string {
	var out strings.Builder
	kept := 0
	for i := 0; i < len(s); {
		start, digits := i, 0
		for i < len(s) && inRun(s[i]) {
			if s[i] >= '0' && s[i] <= '9' {
				digits++
			}
			i++
		}
		if i-start >= 6 && digits >= 3 {
			out.WriteString(s[kept:start])
			out.WriteByte('#')
			kept = i
		}
		if i == start {
			i++
		}
	}
	if kept == 0 {
		return s
	}
	out.WriteString(s[kept:])
	return out.String()
}

func inRun(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-'
}

// snapshot returns a copy that is never nil.
func (w *words) snapshot() map[string]uint64 {
	s := make(map[string]uint64, len(w.counts))
	maps.Copy(s, w.counts)
	return s
}
