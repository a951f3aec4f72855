package loopback

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// RateLimit is a token bucket of requests.
type RateLimit struct {
	PerSecond float64 // zero or less: no limit
	Burst     int     // how many at once; less than 1: 1
}

// RetryForm is how an answer tells how long to stay away.
type RetryForm uint8

// The forms. Those that tell whole seconds round up.
const (
	RetrySeconds       RetryForm = iota // Retry-After: 7
	RetryFraction                       // Retry-After: 6.5
	RetryDate                           // Retry-After: Tue, 02 Jan 2001 03:04:05 GMT
	RetryDateRFC850                     // Retry-After: Tuesday, 02-Jan-01 03:04:05 GMT
	RetryDateANSI                       // Retry-After: Tue Jan  2 03:04:05 2001
	RetryMillis                         // retry-after-ms: 6500
	RetryResetSeconds                   // x-ratelimit-remaining: 0, x-ratelimit-reset: 7
	RetryResetUnix                      // x-ratelimit-reset as Unix seconds
	RetryResetUnixMs                    // x-ratelimit-reset as Unix milliseconds
	RetryResetDuration                  // x-ratelimit-reset-requests: 6.5s
	RetryRateLimit                      // RateLimit: "default";r=0;t=7
	RetryText                           // only in the text of a 429, as Replicate words it: resets in ~7s
	RetryNone                           // not at all
)

// set writes the headers that tell a wait from now on.
func (f RetryForm) set(h http.Header, wait time.Duration, now time.Time) {
	if wait <= 0 {
		return
	}
	seconds := strconv.Itoa(wholeSeconds(wait))
	// A date is told against the Date header, which has no fraction.
	until := now.Add(wait + time.Second - 1).UTC().Truncate(time.Second)
	spent := func(name, reset string) {
		h.Set("X-RateLimit-Remaining"+name, "0")
		h.Set("X-RateLimit-Reset"+name, reset)
	}
	switch f {
	case RetrySeconds:
		h.Set("Retry-After", seconds)
	case RetryFraction:
		h.Set("Retry-After", strconv.FormatFloat(wait.Seconds(), 'f', -1, 64))
	case RetryDate:
		h.Set("Retry-After", until.Format(http.TimeFormat))
	case RetryDateRFC850:
		h.Set("Retry-After", until.Format("Monday, 02-Jan-06 15:04:05 GMT"))
	case RetryDateANSI:
		h.Set("Retry-After", until.Format(time.ANSIC))
	case RetryMillis:
		h.Set("Retry-After-Ms", strconv.FormatFloat(float64(wait)/float64(time.Millisecond), 'f', -1, 64))
	case RetryResetSeconds:
		spent("", seconds)
	case RetryResetUnix:
		spent("", strconv.FormatInt(until.Unix(), 10))
	case RetryResetUnixMs:
		spent("", strconv.FormatInt(now.Add(wait+time.Millisecond-1).UnixMilli(), 10))
	case RetryResetDuration:
		spent("-Requests", wait.String())
	case RetryRateLimit:
		h.Set("RateLimit", `"default";r=0;t=`+seconds)
	}
}

// text is what the body of a 429 says.
func (f RetryForm) text(wait time.Duration) string {
	if f == RetryNone || wait <= 0 {
		return "Request was throttled."
	}
	return "Request was throttled. Your rate limit resets in ~" + strconv.Itoa(wholeSeconds(wait)) + "s."
}

func wholeSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// bucket is a RateLimit on the monotonic time.
type bucket struct {
	perSecond, burst, tokens float64
	last                     time.Duration
}

func newBucket(l RateLimit, now time.Duration) bucket {
	full := float64(max(l.Burst, 1))
	return bucket{perSecond: l.PerSecond, burst: full, tokens: full, last: now}
}

// wait is how long it is until a token is there; zero: it is.
func (b *bucket) wait(now time.Duration) time.Duration {
	if b.perSecond <= 0 {
		return 0
	}
	b.tokens = min(b.burst, b.tokens+(now-b.last).Seconds()*b.perSecond)
	b.last = now
	const rounding = 1e-9
	if b.tokens >= 1-rounding {
		return 0
	}
	seconds := (1 - b.tokens) / b.perSecond
	if seconds > (24 * time.Hour).Seconds() {
		return 24 * time.Hour
	}
	return max(time.Duration(math.Ceil(seconds*1e3))*time.Millisecond, time.Millisecond)
}

// admit takes a token of each limit that the request is under. Where one has
// none it takes nothing and tells the wait; s.mu is held.
func (s *Server) admit(op Op) time.Duration {
	own := &s.status
	if op == OpSubmit {
		own = &s.submit
	}
	now := s.elapsed()
	if wait := max(s.total.wait(now), own.wait(now)); wait > 0 {
		return wait
	}
	s.total.tokens--
	own.tokens--
	return 0
}
