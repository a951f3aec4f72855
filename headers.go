package jobpoll

import (
	"math"
	"net/http"
	"strings"
	"time"
)

// Header keys in the canonical form in which net/http keeps them: they are
// looked up in the map directly, since Header.Get would canonicalise each
// time. A look at an answer without any hint is the most frequent one.
const (
	hdrAge             = "Age"
	hdrDate            = "Date"
	hdrRetryAfter      = "Retry-After"
	hdrRetryAfterMs    = "Retry-After-Ms"
	hdrPollAfterMs     = "Openai-Poll-After-Ms"
	hdrLimitRetryAfter = "X-Ratelimit-Retry-After"
	hdrRateLimit       = "Ratelimit"
)

// retryHint reads how long the headers of an answer ask the client to stay
// away, from the moment of the answer. The wait is within 0 and MaxRetryAfter,
// is never shorter than asked but for that bound, and 0 means no hint: none,
// one of zero, one that is past. malformed tells that a hint could not be read
// and was ignored.
//
// Explicit waits go first, the largest of them; the resets of rate limits are
// read only where there is none.
func retryHint(h http.Header, status int, now time.Time) (wait time.Duration, malformed bool) {
	if len(h) == 0 {
		return 0, false
	}
	explicit := explicitWait(h, now)
	if explicit.wait > 0 {
		return explicit.wait, explicit.malformed
	}
	reset := limitWait(h, status, now)
	return reset.wait, explicit.malformed || reset.malformed
}

// longestHint gathers hints: the longest wait, and whether one was malformed.
type longestHint struct {
	wait      time.Duration
	malformed bool
}

func (l *longestHint) add(wait time.Duration, ok bool) {
	if !ok {
		l.malformed = true
	}
	l.wait = max(l.wait, wait)
}

// explicitWait reads the headers that name a wait.
func explicitWait(h http.Header, now time.Time) longestHint {
	var l longestHint
	for _, v := range h[hdrRetryAfter] {
		l.add(parseRetryAfter(v, h, now))
	}
	for _, v := range h[hdrLimitRetryAfter] {
		l.add(parseRetryAfter(v, h, now))
	}
	for _, v := range h[hdrRetryAfterMs] {
		l.add(parseMillis(v))
	}
	for _, v := range h[hdrPollAfterMs] {
		l.add(parseMillis(v))
	}
	return l
}

// parseRetryAfter reads seconds, which may carry a fraction, or an HTTP-date.
func parseRetryAfter(v string, h http.Header, now time.Time) (time.Duration, bool) {
	v = trimOWS(v)
	if d, ok := parseDecimal(v); ok {
		return d.seconds(), true
	}
	if t, ok := parseHTTPDate(v); ok {
		return boundWait(t.Sub(answerTime(h, now))), true
	}
	return 0, false
}

// parseMillis reads milliseconds, which may carry a fraction.
func parseMillis(v string) (time.Duration, bool) {
	d, ok := parseDecimal(trimOWS(v))
	return d.millis(), ok
}

// answerTime is when the answer was made by the clock of who made it, which is
// the one that its dates are told by; without it, now.
func answerTime(h http.Header, now time.Time) time.Time {
	if v := h[hdrDate]; len(v) > 0 {
		if t, ok := parseHTTPDate(trimOWS(v[0])); ok {
			return t
		}
	}
	return now
}

// parseHTTPDate reads the three forms of an HTTP-date.
func parseHTTPDate(s string) (time.Time, bool) {
	if s == "" || isASCIIDigit(s[0]) || len(s) > maxDateText {
		return time.Time{}, false
	}
	// Of the form of RFC 850 package time takes any zone, and means by its
	// name what the zone of this machine means by it. HTTP knows GMT only.
	if strings.IndexByte(s, ',') >= 0 && !strings.HasSuffix(s, "GMT") {
		return time.Time{}, false
	}
	t, err := http.ParseTime(s)
	return t, err == nil
}

// decimal is a non-negative number: the whole part, at most math.MaxInt64, and
// the billionth parts of the fraction, rounded up, so at most 1e9.
type decimal struct{ whole, billionths int64 }

// parseDecimal reads digits, or digits, a point and digits; nothing else: no
// sign, exponent, separator, other base, or other script. A whole part that
// is too large for an int64 is cut to the largest.
func parseDecimal(s string) (d decimal, ok bool) {
	i := 0
	for ; i < len(s) && isASCIIDigit(s[i]); i++ {
		digit := int64(s[i] - '0')
		if d.whole > (math.MaxInt64-digit)/10 {
			d.whole = math.MaxInt64
		} else {
			d.whole = d.whole*10 + digit
		}
	}
	if i == 0 {
		return decimal{}, false
	}
	if i == len(s) {
		return d, true
	}
	if s[i] != '.' || i+1 == len(s) {
		return decimal{}, false
	}
	roundUp := int64(0)
	for scale, j := int64(1e8), i+1; j < len(s); j++ {
		if !isASCIIDigit(s[j]) {
			return decimal{}, false
		}
		digit := int64(s[j] - '0')
		if scale == 0 && digit > 0 {
			roundUp = 1
		}
		d.billionths += digit * scale
		scale /= 10
	}
	d.billionths += roundUp
	return d, true
}

func (d decimal) zero() bool { return d.whole == 0 && d.billionths == 0 }

func (d decimal) seconds() time.Duration { return d.times(time.Second) }

func (d decimal) millis() time.Duration { return d.times(time.Millisecond) }

// times is the number in units, rounded up and bounded. The unit is at most a day.
func (d decimal) times(unit time.Duration) time.Duration {
	if d.whole > int64(MaxRetryAfter/unit) {
		return MaxRetryAfter
	}
	return boundWait(time.Duration(d.whole)*unit + mulBillionths(d.billionths, unit))
}

// mulBillionths is n billionths of a unit, rounded up.
func mulBillionths(n int64, unit time.Duration) time.Duration {
	const whole = int64(time.Second) // a billion
	// In two steps, as n·unit may pass an int64.
	high, low := int64(unit)/whole, int64(unit)%whole
	return time.Duration(n*high + (n*low+whole-1)/whole)
}

// epoch is the number as a time since 1970, if it is large enough for one.
func (d decimal) epoch() (t time.Time, ok bool) {
	switch {
	case d.whole >= epochNanos:
		return time.Unix(0, d.whole), true
	case d.whole >= epochMicros:
		return time.Unix(d.whole/1e6, d.whole%1e6*1e3+(d.billionths+1e6-1)/1e6), true
	case d.whole >= epochMillis:
		return time.Unix(d.whole/1e3, d.whole%1e3*1e6+(d.billionths+1e3-1)/1e3), true
	case d.whole > epochSeconds:
		return time.Unix(d.whole, d.billionths), true
	default:
		return time.Time{}, false
	}
}

// boundWait puts a wait within 0 and MaxRetryAfter.
func boundWait(d time.Duration) time.Duration { return min(max(d, 0), MaxRetryAfter) }

// trimOWS cuts the optional white space of HTTP: spaces and tabs.
func trimOWS(s string) string { return strings.Trim(s, " \t") }
