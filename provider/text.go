package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jobpoll/jobpoll"
)

// maxText bounds a Text, in bytes.
const maxText = 4 << 10

// Text reads any JSON value as text: a string as it is, null and false as empty,
// all else as its JSON. Providers change the kind of a field for people (an error that
// is a string here and an object there), and no job should be lost over that.
// Text longer than 4 KiB is cut.
type Text string

// UnmarshalJSON reads a value; it gives no error.
func (t *Text) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null", string(b) == "false":
		*t = ""
	case len(b) > 1 && b[0] == '"' && bytes.IndexByte(b, '\\') < 0 && utf8.Valid(b):
		*t = Text(cut(b[1 : len(b)-1]))
	case len(b) > 0 && b[0] == '"':
		var s string
		if json.Unmarshal(b, &s) != nil {
			return nil
		}
		*t = Text(cut([]byte(s)))
	default:
		*t = Text(cut(b))
	}
	return nil
}

// cut makes a text of its own, which does not keep the rest in memory.
func cut(b []byte) string {
	end := min(len(b), maxText)
	for end < len(b) && end > 0 && !utf8.RuneStart(b[end]) {
		end--
	}
	return string(b[:end])
}

// Seconds reads the text as a number of seconds, a fraction too. It is within 0
// and jobpoll.MaxRetryAfter, as the engine bounds waits: a larger number, which
// would overflow a Duration, is that. Anything else, a negative number, NaN and
// infinity too, is 0: not told.
func (t Text) Seconds() time.Duration {
	n, err := strconv.ParseFloat(strings.TrimSpace(string(t)), 64)
	switch {
	case errors.Is(err, strconv.ErrRange): // n is infinite, with the sign of the number
	case err != nil, math.IsNaN(n), math.IsInf(n, 0):
		return 0
	}
	if n >= jobpoll.MaxRetryAfter.Seconds() {
		return jobpoll.MaxRetryAfter
	}
	return time.Duration(max(n, 0) * float64(time.Second))
}

// Time reads the text as a time: RFC 3339, or a number of seconds, or of
// milliseconds where it is 10¹¹ or more, since 1970. Anything else, a time
// without a zone too, is the zero time: not told.
func (t Text) Time() time.Time {
	s := strings.TrimSpace(string(t))
	if s == "" {
		return time.Time{}
	}
	if len(s) > 4 && s[4] == '-' { // after the year; a number is not worth the error
		if at, err := time.Parse(time.RFC3339Nano, s); err == nil {
			return at.UTC()
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n <= 0 || n >= 1e14 || n != n {
		return time.Time{}
	}
	if n < 1e11 {
		n *= 1000
	}
	return time.UnixMilli(int64(n)).UTC()
}

// number reads the text as a finite number.
func (t Text) number() (n float64, ok bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(string(t)), 64)
	return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
}

// count reads the text as a number of things; its fraction does not count.
func (t Text) count() (n int, ok bool) {
	const most = 1 << 30
	f, err := strconv.ParseFloat(strings.TrimSpace(string(t)), 64)
	if err != nil || f != f || f < 0 || f > most {
		return 0, false
	}
	return int(f), true
}

// HasOutput reports whether raw holds something: not null, an empty string, an
// empty object, or an array of nothing but nulls and empty strings.
func HasOutput(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return false
	}
	switch raw[0] {
	case 'n':
		return false
	case '"':
		return len(raw) > 2
	case '{':
		return len(bytes.TrimSpace(raw[1:])) > 1
	case '[':
		return !emptyList(raw[1:])
	}
	return true
}

// emptyList reports whether what follows the bracket of a list is nothing, null
// and empty strings only.
func emptyList(raw []byte) bool {
	for len(raw) > 0 {
		switch {
		case raw[0] == ']':
			return true
		case strings.IndexByte(" \t\r\n,", raw[0]) >= 0:
			raw = raw[1:]
		case bytes.HasPrefix(raw, []byte(`""`)):
			raw = raw[2:]
		case bytes.HasPrefix(raw, []byte("null")):
			raw = raw[4:]
		default:
			return false
		}
	}
	return true
}

// mentions reports whether one of the words is in one of the texts, whatever their case.
func mentions(words []string, texts ...string) bool {
	for _, t := range texts {
		if t == "" {
			continue
		}
		t = strings.ToLower(t)
		for _, w := range words {
			if strings.Contains(t, w) {
				return true
			}
		}
	}
	return false
}

// filterWords are how providers say that a filter took the output: none of them
// stands for another kind of failure.
var filterWords = []string{"nsfw", "content_policy", "content policy", "content_filter", "content filter", "moderation", "content_moderated", "flagged as sensitive", "flagged as potentially sensitive", "safety filter"}
