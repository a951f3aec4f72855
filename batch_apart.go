package jobpoll

import "time"

// Which jobs of a route are looked at by themselves though it has a list, and for
// how long. Lists lag, end somewhere, leave outputs away, have rights and limits of
// their own, and fail where looks do not: whatever a list does, a look has the last
// word before a job ends by it.

const (
	// mostMisled is how often a list may refuse credentials with which looks go
	// well: then there are no lists for a while, as each would hold the whole route.
	mostMisled = 2
	// barredFor is how long that while is.
	barredFor = time.Hour
)

// apart is what a route knows of a job that a list did not do well with.
type apart struct {
	alone  bool // its next look is one of its own
	untold bool // as a list left it out, or told an error of it
	before bool // so did the list before, and then a look of its own went well
	failed bool // as lists fail: until batches.good is another
	last   bool // but one more failure would end it
	good   uint64
}

// ended tells how a list went.
func (b *batches) ended(err error) {
	if err == nil {
		b.good++
		b.misled = 0
	}
	kind, _, _ := classify(err)
	b.denied = kind == ErrorAuth
}

// trouble tells that a job is to be looked at by itself: the list did not tell of
// it, or else the call of many was refused.
func (b *batches) trouble(h handle, untold bool) {
	a := b.apart[h]
	a.alone, a.untold, a.failed = true, a.untold || untold, false
	b.apart[h] = a
}

// mostFailed is how many lists in a row may fail a job before it is looked at by
// itself, but no more than half of its StopRules.MaxErrors. Once lists go well again
// that is over for all: looks at each could take very long.
const mostFailed = 5

// fails tells that a look at a job failed, for the nth time in a row: by a list, or
// one of its own.
func (b *batches) fails(h handle, listed bool, n, maxErrors int) {
	a := b.apart[h]
	switch {
	case a.alone && !a.failed:
	case !listed:
		b.away = b.away || a.failed
	case n >= min(mostFailed, maxErrors/2):
		a.alone, a.failed, a.last, a.good = true, true, n >= maxErrors-1, b.good
		b.apart[h] = a
	}
}

// found tells that a look of its own went well.
func (b *batches) found(h handle, now Stamp) {
	if b.denied {
		b.denied = false
		if b.misled++; b.misled >= mostMisled {
			b.misled = mostMisled - 1 // the next one decides again
			b.barred = now.Add(barredFor)
		}
	}
	if b.away { // the provider is back, and its lists may be
		b.away = false
		b.good++
	}
	a, ok := b.apart[h]
	if a.failed && a.good == b.good { // the lists fail, and the provider does not
		a.untold = true
	}
	a.failed = false
	switch {
	case !ok:
	case a.untold && a.before: // it stays with looks of its own
		b.apart[h] = a
	case a.untold, a.before:
		b.apart[h] = apart{before: true}
	default:
		delete(b.apart, h)
	}
}

// off reports whether no list is asked now.
func (b *batches) off(now Stamp) bool { return b.checker == nil || now < b.barred }

// takes reports whether the next call of a job, which is a look, may be a batch.
func (b *batches) takes(h handle, now Stamp) bool {
	if b.off(now) {
		return false
	}
	a := b.apart[h]
	return !a.alone || a.failed && !a.last && a.good != b.good
}

// lacksOutput reports whether the job is done and its output not there, which a
// list may just not show.
func (rep *Report) lacksOutput() bool {
	return rep.State == StateFailed && rep.Failure != nil && rep.Failure.Kind == FailureNoOutput
}
