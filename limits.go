package jobpoll

import (
	"math"
	"time"
)

// merge lets the rules of a route replace those of the Poller field by field.
func (s StopRules) merge(base StopRules) StopRules {
	s.MaxAge = pick(s.MaxAge, base.MaxAge)
	s.MaxQueued = pick(s.MaxQueued, base.MaxQueued)
	s.MaxProcessing = pick(s.MaxProcessing, base.MaxProcessing)
	s.NoProgress = pick(s.NoProgress, base.NoProgress)
	s.MaxErrors = pick(s.MaxErrors, base.MaxErrors)
	s.MissingGrace = pick(s.MissingGrace, base.MissingGrace)
	s.MissingLooks = pick(s.MissingLooks, base.MissingLooks)
	s.UnknownFor = pick(s.UnknownFor, base.UnknownFor)
	s.UnknownLooks = pick(s.UnknownLooks, base.UnknownLooks)
	s.AuthGrace = pick(s.AuthGrace, base.AuthGrace)
	s.CancelRemote = s.CancelRemote || base.CancelRemote
	return s
}

// withDefaults fills what is not set, for a job of that expected duration.
func (s StopRules) withDefaults(expected time.Duration) StopRules {
	s.MaxAge = pick(s.MaxAge, defaultAge(expected))
	s.MaxQueued = pick(s.MaxQueued, NoLimit)
	s.MaxProcessing = pick(s.MaxProcessing, NoLimit)
	s.NoProgress = pick(s.NoProgress, defaultStill(expected))
	s.MaxErrors = pick(s.MaxErrors, DefaultMaxErrors)
	s.MissingGrace = pick(s.MissingGrace, DefaultMissingGrace)
	s.MissingLooks = pick(s.MissingLooks, DefaultMissingLooks)
	s.UnknownFor = pick(s.UnknownFor, DefaultUnknownFor)
	s.UnknownLooks = pick(s.UnknownLooks, DefaultUnknownLooks)
	s.AuthGrace = pick(s.AuthGrace, DefaultAuthGrace)
	return s
}

func defaultAge(expected time.Duration) time.Duration {
	if expected > 0 {
		return max(times(expected, 10), DefaultMinAge)
	}
	return DefaultUnknownAge
}

func defaultStill(expected time.Duration) time.Duration {
	if expected > 0 {
		return max(times(expected, 3), DefaultMinAge)
	}
	return DefaultNoProgress
}

func pick[T ~int | ~int64](v, def T) T {
	if v > 0 {
		return v
	}
	return def
}

// times multiplies without wrapping.
func times(d time.Duration, n int64) time.Duration {
	if d > math.MaxInt64/time.Duration(n) {
		return NoLimit
	}
	return d * time.Duration(n)
}

// ended gives the reason for which the answers so far end the watch, but for
// the limits of time.
func (q *question) ended() Reason {
	t := q.track
	switch {
	case t.End != ReasonNone:
		return t.End
	case t.Errors > 0 && reached(t.Errors, pick(q.stop.MaxErrors, DefaultMaxErrors)):
		return ReasonUnreachable
	case t.Missing > 0 && reached(t.Missing, pick(q.stop.MissingLooks, DefaultMissingLooks)) &&
		lasted(t.MissingAt, t.LastAt, pick(q.stop.MissingGrace, DefaultMissingGrace)):
		return ReasonLost
	case t.Unknown > 0 && reached(t.Unknown, pick(q.stop.UnknownLooks, DefaultUnknownLooks)) &&
		lasted(t.UnknownAt, t.LastAt, pick(q.stop.UnknownFor, DefaultUnknownFor)):
		return ReasonUnknownStatus
	case t.AuthAt != 0 && lasted(t.AuthAt, t.LastAt, pick(q.stop.AuthGrace, DefaultAuthGrace)):
		return ReasonAuth
	}
	return ReasonNone
}

// troubled tells in one go that ended has something to look at.
func (t *Track) troubled() bool {
	return t.Errors|t.Missing|t.Unknown != 0 || t.End != ReasonNone || t.AuthAt != 0
}

func reached(n int32, limit int) bool { return int(n) >= limit && limit < NoCount }

func lasted(since, now Stamp, d time.Duration) bool {
	return d != NoLimit && now.Sub(since) >= d
}

// limit gives the time left to the earliest limit, and the reason of a stop there.
func (q *question) limit(age time.Duration) (time.Duration, Reason) {
	t, rules := q.track, q.stop
	left, why := never, ReasonNone
	if q.deadline != 0 {
		left, why = q.deadline.Sub(q.now), ReasonDeadline
	}
	total := rules.MaxAge
	if total <= 0 {
		total = defaultAge(q.expected)
	}
	if l := rest(total, age); l < left {
		left, why = l, ReasonDeadline
	}
	switch {
	case t.State == StateQueued:
		if rules.MaxQueued > 0 {
			waited := age
			if t.RunningAt != 0 { // it went back to the queue
				waited = q.now.Sub(t.QueuedAt)
			}
			if l := rest(rules.MaxQueued, waited); l < left {
				left, why = l, ReasonQueueLimit
			}
		}
	case rules.MaxProcessing > 0 && t.RunningAt != 0:
		if l := rest(rules.MaxProcessing, q.now.Sub(t.RunningAt)); l < left {
			left, why = l, ReasonProcessingLimit
		}
	}
	if t.ProgressTold >= 2 && t.State != StateQueued {
		total := rules.NoProgress
		if total <= 0 {
			total = defaultStill(q.expected)
		}
		since := t.AdvancedAt
		if t.RunningAt > since { // it came back from the queue
			since = t.RunningAt
		}
		if l := rest(total, q.now.Sub(since)); l < left {
			left, why = l, ReasonNoProgress
		}
	}
	return left, why
}

// rest is what is left of a limit; NoLimit never ends.
func rest(total, used time.Duration) time.Duration {
	if total == NoLimit {
		return never
	}
	return total - max(used, 0)
}

// freshAt reports whether a look has been made at or after the limit (both as
// offsets from now) that may decide about it. One that failed decides only as
// the third in a row: after a suspend the network is often later than the clock.
func (t *Track) freshAt(last, limit time.Duration) bool {
	if t.Looks == 0 || last < limit {
		return false
	}
	if t.NoOutput && t.Errors == 0 {
		return false // done, they say: the confirming look decides
	}
	return t.Errors == 0 || t.Errors >= 3
}
