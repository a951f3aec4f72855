package jobpoll

import (
	"net/http"
	"strings"
	"time"
)

// limitPairs are the fields that tell a quota in two headers: the IETF drafts
// up to 06 and the legacy names. The limit itself, which draft 03 mixes with
// policies, is of no use here and not read.
var limitPairs = [...]struct{ remaining, reset string }{
	{"Ratelimit-Remaining", "Ratelimit-Reset"},
	{"X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
	{"X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"},
	{"X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"},
}

// quotaState is what is told to be left of a rate limit.
type quotaState uint8

const (
	quotaUntold quotaState = iota
	quotaLeft
	quotaSpent
)

// limitWait reads the resets of rate limits. A quota that is not used up asks
// for no wait (nor does it promise anything). Where the answer is a refusal
// for load, one that is not told counts as used up; elsewhere only an explicit
// zero counts. A field that cannot matter is not read, so not malformed.
func limitWait(h http.Header, status int, now time.Time) longestHint {
	var l longestHint
	if fromCache(h) {
		return l // the figures are those of someone else's request
	}
	refused := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
	waits := func(q quotaState) bool { return q == quotaSpent || q == quotaUntold && refused }

	for i := range limitPairs {
		resets := h[limitPairs[i].reset]
		if len(resets) == 0 {
			continue
		}
		left, ok := leastLeft(h[limitPairs[i].remaining])
		if !ok {
			l.malformed = true
		}
		if !waits(left) {
			continue
		}
		at := answerTime(h, now)
		for _, v := range resets {
			l.add(parseReset(v, at))
		}
	}

	if lines := h[hdrRateLimit]; len(lines) > 0 {
		limits, ok := parseRateLimit(lines)
		if !ok {
			l.malformed = true
		}
		at := answerTime(h, now)
		for _, limit := range limits {
			if limit.reset != "" && waits(limit.left) {
				l.add(parseReset(limit.reset, at))
			}
		}
	}
	return l
}

// fromCache reports whether a cache has kept the answer for some time.
func fromCache(h http.Header) bool {
	for _, v := range h[hdrAge] {
		if d, ok := parseDecimal(trimOWS(v)); ok && !d.zero() {
			return true
		}
	}
	return false
}

// leastLeft reads a remaining field; of several values the least counts, and
// one that cannot be read counts as not told.
func leastLeft(values []string) (left quotaState, ok bool) {
	ok = true
	for _, v := range values {
		q := parseQuota(trimOWS(v))
		if q == quotaUntold {
			ok = false
		}
		left = max(left, q)
	}
	return left, ok
}

func parseQuota(v string) quotaState {
	d, ok := parseDecimal(v)
	switch {
	case !ok:
		return quotaUntold
	case d.zero():
		return quotaSpent
	default:
		return quotaLeft
	}
}

// limitField is one quota of the single RateLimit field.
type limitField struct {
	left  quotaState
	reset string // seconds; empty: not told
}

// parseRateLimit reads the single field of draft 07, a dictionary
//
//	limit=100, remaining=50, reset=5
//
// and of the drafts from 08 on, a list of named policies
//
//	"default";r=50;t=30, "daily";r=0;t=4000
//
// A line that cannot be read is ignored as a whole.
func parseRateLimit(lines []string) (limits []limitField, ok bool) {
	ok = true
	var dict limitField // one dictionary, also over several lines
	for _, line := range lines {
		had, kept := dict, len(limits)
		for rest, more := line, true; more; {
			var member string
			var closed bool
			member, rest, more, closed = cutUnquoted(rest, ',')
			limit, listed, valid := parseLimitMember(member, &dict)
			if !closed || !valid {
				dict, limits, ok = had, limits[:kept], false
				break
			}
			if listed {
				limits = append(limits, limit)
			}
		}
	}
	return append(limits, dict), ok
}

// parseLimitMember reads one member: of a dictionary, into dict, or an item of
// a list, which it returns.
func parseLimitMember(member string, dict *limitField) (limit limitField, listed, ok bool) {
	head, params, more, _ := cutUnquoted(member, ';')
	head = trimOWS(head)
	if key, value, isDict := strings.Cut(head, "="); isDict && !strings.HasPrefix(head, `"`) {
		// Parameters of a dictionary's member (limit=100;w=60) tell nothing of use.
		return limit, false, dict.set(key, value, "remaining", "reset")
	}
	if !isItemName(head) {
		return limit, false, false
	}
	for more {
		var param string
		param, params, more, _ = cutUnquoted(params, ';')
		key, value, _ := strings.Cut(trimOWS(param), "=")
		if !limit.set(key, value, "r", "t") {
			return limit, false, false
		}
	}
	return limit, true, true
}

// set takes key and value over if the key is one of the two that matter.
func (l *limitField) set(key, value, remaining, reset string) (ok bool) {
	switch key {
	case "":
		return false
	case remaining:
		l.left = parseQuota(value)
		return l.left != quotaUntold
	case reset:
		l.reset = value
		_, ok = parseDecimal(value)
		return ok
	default:
		return true
	}
}

// isItemName reports whether s is a quoted string or a token that begins with
// a letter, as names of policies are.
func isItemName(s string) bool {
	if s == "" {
		return false
	}
	if s[0] == '"' {
		return len(s) >= 2 && s[len(s)-1] == '"'
	}
	return isASCIILetter(s[0]) && !strings.ContainsAny(s, " \t\"")
}

// cutUnquoted is strings.Cut that passes over quoted strings; closed is false
// if one is not ended.
func cutUnquoted(s string, sep byte) (before, after string, found, closed bool) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == sep && !quoted:
			return s[:i], s[i+1:], true, true
		}
	}
	return s, "", false, !quoted
}

// Plain numbers in a reset are told apart by size: no limit resets in three
// years, and no answer is older than 1973. Each epoch unit begins where the
// one before would be beyond the year 5000.
const (
	epochSeconds = 1e8
	epochMillis  = 1e11
	epochMicros  = 1e14
	epochNanos   = 1e17
)

// resetLayouts are the date forms of resets next to the HTTP-dates. Go reads a
// fraction of a second with each of them. A date without a zone is UTC.
var resetLayouts = [...]string{
	time.RFC3339,
	"2006-01-02 15:04:05",
	"2006-01-02T15:04:05",
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05 -0700",
	"2006-01-02 15:04:05 UTC",
	"Mon Jan 02 2006 15:04:05 GMT-0700", // JavaScript
}

// maxDateText is longer than any date that is read, a zone's name included.
const maxDateText = 128

// parseReset reads when a rate limit resets, in any of the encodings in use:
// seconds from now, an epoch, a duration as Go writes it, a date.
func parseReset(v string, at time.Time) (time.Duration, bool) {
	v = trimOWS(v)
	if d, ok := parseDecimal(v); ok {
		t, isEpoch := d.epoch()
		if !isEpoch {
			return d.seconds(), true
		}
		return boundWait(t.Sub(at)), true
	}
	if d, ok := parseSpan(v); ok {
		return d, true
	}
	if len(v) > maxDateText {
		return 0, false
	}
	if t, ok := parseHTTPDate(v); ok {
		return boundWait(t.Sub(at)), true
	}
	v, _, _ = strings.Cut(v, " (") // the zone's name in JavaScript
	for _, layout := range resetLayouts {
		if t, err := time.Parse(layout, v); err == nil {
			return boundWait(t.Sub(at)), true
		}
	}
	return 0, false
}

// parseSpan reads a duration such as 12ms, 6m0s or 1h2m. Unlike
// time.ParseDuration it takes no sign, knows days, and bounds large ones
// instead of refusing them.
func parseSpan(s string) (time.Duration, bool) {
	if s == "" {
		return 0, false
	}
	var sum time.Duration
	for s != "" {
		n := 0
		for n < len(s) && (isASCIIDigit(s[n]) || s[n] == '.') {
			n++
		}
		d, ok := parseDecimal(s[:n])
		if !ok {
			return 0, false
		}
		s = s[n:]
		n = 0
		for n < len(s) && !isASCIIDigit(s[n]) && s[n] != '.' {
			n++
		}
		var unit time.Duration
		switch s[:n] {
		case "ns":
			unit = time.Nanosecond
		case "us", "µs", "μs":
			unit = time.Microsecond
		case "ms":
			unit = time.Millisecond
		case "s":
			unit = time.Second
		case "m":
			unit = time.Minute
		case "h":
			unit = time.Hour
		case "d":
			unit = 24 * time.Hour
		default:
			return 0, false
		}
		s = s[n:]
		sum = boundWait(sum + d.times(unit))
	}
	return sum, true
}
