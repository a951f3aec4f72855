package jobpoll

import (
	"math"
	"time"
)

// WebhookOutlook is what is known of the webhooks of a route when the next look
// at one of its jobs is planned. It is plain data, and the rule is:
//
//   - Where a part l of the webhooks is lost, the first look is at the age by
//     which all but 1.3·l of such jobs have ended (all but 1 % at most), as far
//     as that is known: later, a lost one waits too long; earlier, too many
//     looks find a job that still runs.
//   - After that the usual gap of the class is multiplied by √(1/3l), up to Pace:
//     the best gap is as the inverse root of the rate of what there is to find.
//   - Both only put a look off. An estimate, a plan or a bucket that is later
//     holds, and so do the waits after failed looks, all floors and all limits.
//
// So where three of four are lost the ordinary schedule holds. A
// Schedule.MaxDelay bounds the gaps too, unless less than 1 % is lost.
type WebhookOutlook struct {
	Policy WebhookPolicy
	// Coverage is the part of ends that webhooks tell, 0 to 1; outside, and
	// NaN: 0. The mode of Policy is not looked at.
	Coverage float64
	// P10 to P99 are the ages by which that percentage of the jobs of this
	// profile has ended. A zero P99: not known.
	P10, P50, P90, P99 time.Duration
}

// mostCovered is the coverage from which on nothing is expected to be lost.
const mostCovered = 0.99

// stillRun is how many jobs may still run at their first look for each whose
// webhook is lost, and usualLoss the loss at which the usual gap holds: 1.3 and
// 1/3 lie near the best that any first look and gap reach at a loss of a tenth,
// for log-normal durations with a spread of 0.15 to 0.3.
const (
	stillRun  = 1.3
	usualLoss = 1.0 / 3
)

// reconcile puts the ordinary delay off while the webhook can still be on
// time. asked is the age of the job at the last answer.
func (s *Schedule) reconcile(q *question, p *pace, delay time.Duration, cause Cause, asked time.Duration) (time.Duration, Cause) {
	w := q.webhook
	if w == nil || !(w.Coverage > 0 && w.Coverage <= 1) || !cause.ordinary() {
		return delay, cause
	}
	d := max(w.first(q.expected)-asked, delay)
	if q.track.Looks > 0 {
		d = max(d, w.gap(max(s.usual(p, q.track.Unchanged), delay)))
	}
	// Spread above the wait, as above a floor, and never over what bounds it.
	d = min(plus(d, s.lift(min(d, delay), q.rand)), w.Policy.longest())
	if s.MaxDelay > 0 && w.Coverage < mostCovered {
		d = min(d, s.MaxDelay)
	}
	if d <= delay {
		return delay, cause
	}
	return d, CauseReconcile
}

// ordinary reports whether a delay is that of a job that goes its way.
func (c Cause) ordinary() bool {
	switch c {
	case CauseFirst, CauseBackoff, CauseLadder, CausePlan, CauseEta, CauseProgress, CauseQueued, CauseNear:
		return true
	}
	return false
}

// usual is the delay of the class, without an estimate or a plan: those tell
// when a job ends, and that the webhook tells too.
func (s *Schedule) usual(p *pace, unchanged int32) time.Duration {
	if len(s.Delays) > 0 {
		return s.rung(unchanged)
	}
	return grow(p.step(), unchanged, p.limit)
}

// gap is the time between two looks, given what is usual.
func (w *WebhookOutlook) gap(usual time.Duration) time.Duration {
	gap := w.Policy.pace()
	if lost := 1 - w.Coverage; lost > 0 {
		gap = min(gap, stretch(usual, math.Sqrt(usualLoss/lost)))
	}
	return gap
}

// first is the age of the first look. Between the ages that are known it goes
// as the tail of an exponential distribution.
func (w *WebhookOutlook) first(expected time.Duration) time.Duration {
	p := [...]time.Duration{0, w.P10, w.P50, w.P90, w.P99}
	if w.P99 <= 0 {
		f := max(3*min(expected, MaxRetryAfter), leastFirst)
		if w.Policy.First > 0 {
			f = w.Policy.First
		}
		p = [...]time.Duration{0, f / 6, f / 3, f / 2, f}
	} else if f := w.Policy.First; f > 0 {
		p[4] = f
	}
	at := tail(min(max(1-stillRun*(1-w.Coverage), 0), mostCovered))
	for i := 1; i < len(p); i++ {
		p[i] = min(max(p[i], p[i-1]), p[len(p)-1])
		if lo, hi := tail(knots[i-1]), tail(knots[i]); at <= hi {
			return p[i-1] + time.Duration((at-lo)/(hi-lo)*float64(p[i]-p[i-1]))
		}
	}
	return p[len(p)-1]
}

var knots = [...]float64{0, 0.1, 0.5, 0.9, mostCovered}

func tail(part float64) float64 { return -math.Log(1 - part) }
