package durations

import (
	"math"
	"time"
)

// span is what was seen of one duration, in seconds: more than lo and at most
// hi, a point where the two are equal, no end known where hi is infinite.
type span struct{ lo, hi float32 }

// spanOf bounds and orders the ends.
func spanOf(lo, hi time.Duration) span {
	if lo > hi {
		lo, hi = hi, lo
	}
	return span{secondsOf(lo), secondsOf(hi)}
}

// over is the span of a job that was given up unfinished.
func over(lo time.Duration) span { return span{secondsOf(lo), float32(math.Inf(1))} }

func secondsOf(d time.Duration) float32 { return float32(min(max(d, 0), Max).Seconds()) }

func (s span) censored() bool { return math.IsInf(float64(s.hi), 1) }

// since is the span counted from a later origin.
func (s span) since(origin time.Duration) span {
	o := secondsOf(origin)
	return span{max(s.lo-o, 0), max(s.hi-o, 0)}
}

// of is the span in parts of left, in Units; ratios are bounded.
func (s span) of(left time.Duration) span {
	scale := unit / max(left.Seconds(), 1e-3)
	bound := func(v float32) float32 { return float32(min(float64(v)*scale, Max.Seconds())) }
	if s.censored() {
		return span{bound(s.lo), s.hi}
	}
	return span{bound(s.lo), bound(s.hi)}
}

// proper reports whether a span that was read from outside is one.
func (s span) proper() bool {
	limit := float32(Max.Seconds())
	return s.lo >= 0 && s.lo <= limit && (s.censored() || s.hi >= s.lo && s.hi <= limit)
}
