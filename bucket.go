package jobpoll

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// tokenBucket is one rate limit: a token bucket that starts full. The zero tokenBucket
// is no limit. It is not safe for concurrent use, and the times given to it
// must not run backwards: the tree sees to both.
type tokenBucket struct {
	lim     *rate.Limiter
	rate    float64
	burst   int
	changed time.Time // by set
	taken   time.Time // the last token

	// Where the bucket holds many, tokens are counted here and taken from the
	// limiter together: at least sure are in it, of which owed are spent.
	sure, owed int
	owedUntil  time.Time // no longer are they counted here
}

// A bucket that surely holds so many is asked once for all that are taken
// within a moment. They are taken as of its end, so never too early.
const (
	manyTokens = 64
	aMoment    = time.Millisecond
)

// settle takes what is owed from the limiter.
func (b *tokenBucket) settle() {
	if b.owed > 0 {
		b.lim.AllowN(b.taken, b.owed)
		b.sure -= b.owed
		b.owed = 0
	}
}

// set changes the limit at now; a rate of 0 or less is no limit. What is in
// the bucket stays, as far as the new burst has room for it.
func (b *tokenBucket) set(now time.Time, perSecond float64, burst int) {
	if b.rate == perSecond && b.burst == burst {
		return
	}
	b.settle()
	b.sure = 0
	switch {
	case perSecond <= 0:
		b.lim = nil
	case b.lim == nil:
		b.lim = rate.NewLimiter(rate.Limit(perSecond), burst)
	default:
		b.lim.SetLimitAt(now, rate.Limit(perSecond))
		b.lim.SetBurstAt(now, burst)
	}
	b.rate, b.burst, b.changed = perSecond, burst, now
}

// wait is how long it takes until one token is there, if nobody takes one
// before. It counts as the limiter does, so that wait 0 means: take succeeds.
func (b *tokenBucket) wait(now time.Time) time.Duration {
	if b.lim == nil {
		return 0
	}
	b.settle()
	missing := 1 - b.lim.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	ns := missing / b.rate * float64(time.Second)
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}

// ready reports whether a token could be taken now.
func (b *tokenBucket) ready(now time.Time) bool { return b.sure > b.owed || b.wait(now) == 0 }

// readyAt is when a token could be taken: now, or surely after the wait. A
// wait too long for a Duration is cut, which only means to look again then.
func (b *tokenBucket) readyAt(now time.Time) time.Time {
	d := b.wait(now)
	if d == 0 {
		return now
	}
	if d < math.MaxInt64 {
		d++ // the wait is cut to whole nanoseconds
	}
	return now.Add(d)
}

// take takes a token and reports whether there was one.
func (b *tokenBucket) take(now time.Time) bool {
	if b.lim == nil {
		return true
	}
	if b.sure > b.owed && now.Before(b.owedUntil) {
		b.owed++
		b.taken = now
		return true
	}
	b.settle()
	if !b.lim.AllowN(now, 1) {
		b.sure = 0
		return false
	}
	b.taken = now
	if b.sure = 0; b.burst >= manyTokens {
		if n := b.lim.TokensAt(now); n >= manyTokens {
			b.sure, b.owedUntil = int(min(n, math.MaxInt32)), now.Add(aMoment)
		}
	}
	return true
}

// tokens is what is in the bucket; without a limit, infinitely many.
func (b *tokenBucket) tokens(now time.Time) float64 {
	if b.lim == nil {
		return math.Inf(1)
	}
	b.settle()
	return b.lim.TokensAt(now)
}

// untilFull is how long until further tokens would be lost.
func (b *tokenBucket) untilFull(now time.Time) float64 {
	if b.lim == nil {
		return math.Inf(1)
	}
	b.settle()
	return (float64(b.burst) - b.lim.TokensAt(now)) / b.rate
}

// giveBack puts one token back that was taken then, never above the burst, as
// if it had never been taken. Reservation.CancelAt is not reliable here
// (golang/go#56924, #69419), so a new limiter is emptied at that moment in the
// past from which it has refilled to the right level by now.
//
// A token from before a later take or a change of the limits is lost: the
// bucket may have been full in between for want of that take, and the token
// would come on top of what it holds at most. That costs less than a breach.
func (b *tokenBucket) giveBack(now, taken time.Time) {
	if b.lim == nil || !taken.After(b.changed) || taken.Before(b.taken) {
		return
	}
	b.settle()
	b.sure = 0
	level := b.lim.TokensAt(now) + 1
	b.lim = rate.NewLimiter(rate.Limit(b.rate), b.burst)
	if level >= float64(b.burst) {
		return
	}
	ns := math.Min(level/b.rate*float64(time.Second), math.MaxInt64/2)
	b.lim.AllowN(now.Add(-time.Duration(ns)), b.burst)
}
