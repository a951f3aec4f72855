package jobpoll

import (
	"context"
	"errors"
)

// BatchChecker is the optional ability to ask about many jobs in one call, of
// providers that have a list. With it, jobs of a route that are due about now are
// looked at together: those that are due, and those that will be within a tenth of
// the time since their last look (of their age before the first), or within
// Config.Coalesce if that is longer. None is looked at before its floors allow it,
// and none waits for others. Each job is still decided on its own. Outputs
// (Fetcher) and look-ups (Reconciler) stay calls of their own.
//
// CheckBatch is asked about two jobs or more; one that no other joins is looked at
// by Check. It returns what it found for each job, by Job.ID. A job that it leaves
// out is one that the provider does not know, as one with ErrorNoSuchJob. The error
// of a Result is that job's own and holds nobody else. Ids that nobody asked for
// are ignored. Neither jobs nor the map may be used after it has returned.
//
// Lists lag, end somewhere (after seven days, say), and show less than a look. So no
// job is lost by a list alone: one that is left out, has an error, or failed with
// FailureNoOutput is looked at by Check until that goes well, and ever after if the
// next list does no better. After a StateUnknown one look goes by Check. An error of
// a Result that would end the job (ErrorGone, say, or a permanent one) is a transient
// one until Check returns it too.
//
// An error of CheckBatch itself is one of the call, the map then means nothing:
// it is a transient error for each of the jobs, whatever its kind, but for
// ErrorRateLimited, ErrorConcurrency and ErrorAuth, which cool the budget and hold
// the route, once. As one job that the provider does not like may be what it
// refuses them all for, the jobs of a call that was refused are looked at one by
// one, by Check, until that goes well. So is a job whose looks failed five times in a
// row by lists, or half of StopRules.MaxErrors times, until lists go well again.
// Where a list refuses credentials with which looks go well, twice in a row, no
// list is asked for an hour. ctx, panics and CheckTimeout are as for Check.
//
// To the budget, and in RouteMetrics.Calls, a batch is one call; in
// RouteMetrics.Looks it is one look for each job.
type BatchChecker interface {
	CheckBatch(ctx context.Context, jobs []Job) (map[string]Result, error)
	// MaxBatch is how many jobs one call may ask about. It is asked once, when the
	// route is added. Less than 2: there are no batches, jobs are looked at by
	// Check. More than 1000 is 1000.
	MaxBatch() int
}

// Result is what a batch says of one job: what Check would return.
type Result struct {
	Report Report
	Err    error
}

const (
	// mostInBatch bounds the work of one hold of the lock.
	mostInBatch = 1000
	// earlyPart is what part of its gap a look may come early to join a batch.
	earlyPart = 10
	// mostPassed is how many jobs that cannot join a batch are passed over to find
	// others that can: of those that are due, and of those that are soon.
	mostPassed = 256
)

// batches is what a route has for looks at many jobs in one call.
type batches struct {
	checker BatchChecker // nil: there are none
	size    int          // at most
	apart   map[handle]apart
	good    uint64 // how often lists were seen to go well, or are likely to
	away    bool   // looks fail as lists do
	denied  bool   // the latest list was refused for its credentials
	misled  int    // how often looks were not, since a list went well
	barred  Stamp  // no lists until then
}

func newBatches(c Checker) batches {
	if b, ok := ability[BatchChecker](c); ok {
		if n := min(b.MaxBatch(), mostInBatch); n > 1 {
			return batches{checker: b, size: n, apart: map[handle]apart{}}
		}
	}
	return batches{size: 1}
}

// calls is how many calls so many looks are.
func (b *batches) calls(looks int, now Stamp) int {
	if b.off(now) {
		return looks
	}
	return (looks + b.size - 1) / b.size
}

// fillBatch adds to the look c the further jobs that are due about now. Without
// any it stays a look at one job.
func (p *Poller) fillBatch(c *lookCall, now Stamp) {
	rt := c.route
	if rt.auth.state == authHeld { // one probe at a time
		return
	}
	var urgent, ready []handle // that cannot join: they go next
	for len(c.more)+1 < rt.batch.size && len(urgent)+len(ready) < mostPassed {
		h, l, queue := p.nextReady(rt)
		if l == nil {
			p.fillEarly(c, now)
			break
		}
		if queue == &rt.ready && rt.scarce.on && len(c.more)+len(ready) < fewCandidates {
			h, l = p.choose(rt, h, l, now)
		}
		queue.pop()
		switch {
		case p.joins(rt, h, l, now):
			p.join(c, p.jobs.open(h.slot, l), now)
		case queue == &rt.ready:
			ready = append(ready, h)
		default:
			urgent = append(urgent, h)
		}
	}
	rt.urgent.putBack(urgent)
	rt.ready.putBack(ready)
	c.batch = len(c.more) > 0
}

// joins reports whether the next call of a job may be a part of a batch.
func (p *Poller) joins(rt *route, h handle, l *line, now Stamp) bool {
	next := l.next
	if l.hot != 0 {
		r := p.jobs.hot[l.hot-1]
		if next = r.next; r.stuck != nil {
			return false
		}
	}
	return next == callCheck && rt.batch.takes(h, now)
}

// passed is a job that was passed over.
type passed struct {
	slot int32
	at   Stamp
}

// fillEarly adds jobs that will be due soon.
func (p *Poller) fillEarly(c *lookCall, now Stamp) {
	rt := c.route
	var over []passed
	for len(c.more)+1 < rt.batch.size && len(over) < mostPassed {
		slot, l, at := p.peekDue()
		if l == nil {
			break
		}
		p.due.Pop()
		l.ticket = 0
		if ph, _ := p.jobs.waits(l); ph != phaseWaiting {
			continue
		}
		if l.route != rt.number || !p.joins(rt, handle{slot, l.gen}, l, now) || !p.soon(p.jobs.look(slot, &p.scratch), at, now) {
			over = append(over, passed{slot, at})
			continue
		}
		p.join(c, p.jobs.open(slot, l), now)
	}
	for _, o := range over {
		p.plan(o.slot, o.at)
	}
}

// soon reports whether a job that is due at an instant may as well be looked at
// now.
func (p *Poller) soon(r *record, at, now Stamp) bool {
	gap := at.Sub(later(r.lastAt, r.submitted))
	return at.Sub(now) <= max(gap/earlyPart, p.coalesce) && r.floor() <= now && r.cause != CauseParked
}

// join makes the next look of a record a part of the batch c.
func (p *Poller) join(c *lookCall, r *record, now Stamp) {
	one := &lookCall{grant: c.grant, run: c.run}
	c.more = append(c.more, one)
	p.enterCall(r, one, c, now)
	r.route.meter.lookJoined(one.late)
}

// each gives the i-th job of a call.
func (c *lookCall) each(i int) *lookCall {
	if i == 0 {
		return c
	}
	return c.more[i-1]
}

// inBatch reports whether a job was looked at by CheckBatch.
func (c *lookCall) inBatch() bool { return c.whole != nil && c.whole.batch }

var errLeftOut = errors.New("the answer about many jobs leaves this one out")

// checkBatch asks about all jobs of a call. It gives a result for each, or the
// error of the call.
func (c *lookCall) checkBatch(ctx context.Context) ([]Result, error) {
	jobs := make([]Job, 1+len(c.more))
	for i := range jobs {
		jobs[i] = c.each(i).job
	}
	got, err := c.route.batch.checker.CheckBatch(ctx, jobs)
	if err != nil {
		return nil, err
	}
	all := make([]Result, 1+len(c.more))
	for i := range all {
		res, ok := got[c.each(i).job.ID]
		if !ok {
			res.Err = &CheckError{Kind: ErrorNoSuchJob, Err: errLeftOut}
		}
		all[i] = res
	}
	return all, nil
}

// ownError reads the error of a Result. It binds nobody else, and what would end
// the job is for a look of its own to tell.
func ownError(err error) error {
	err = readError(err)
	e, ok := err.(*lookError)
	if !ok {
		return err
	}
	e.Hint.Scope, e.Err = ScopeJob, nil
	switch e.Kind {
	case ErrorRateLimited, ErrorConcurrency, ErrorAuth, ErrorNoSuchJob:
	default:
		e.Kind = ErrorTransient
	}
	return e
}

// sharedError is what the error of a batch means for each job: nothing that
// would end it. refused tells that it may be one of them that it is about.
func sharedError(err error) (each error, refused bool) {
	e, ok := err.(*lookError)
	if !ok {
		return err, false
	}
	shared := *e
	shared.Err = nil // a permanent one is not that for each
	if shared.Hint.Scope == ScopeJob {
		shared.Hint.Scope = ScopeDefault
	}
	switch e.Kind {
	case ErrorRateLimited, ErrorConcurrency, ErrorAuth:
	case ErrorTransient:
		refused = e.Err != nil
	default:
		shared.Kind, refused = ErrorTransient, true
	}
	return &shared, refused
}

// result is what a finished batch says of its i-th job.
func (a *answered) result(i int) (rep *Report, err error, refused bool) {
	if a.err != nil {
		err, refused = sharedError(a.err)
		return &Report{}, err, refused
	}
	return &a.results[i].Report, a.results[i].Err, false
}

// further is how many jobs a call has besides the first.
func (a *answered) further() int {
	if a == nil {
		return 0
	}
	return len(a.call.more)
}

// takeBatch is takeIn for a batch. It draws a random number for each job.
func (p *Poller) takeBatch(a *answered, now Stamp) {
	c := a.call
	c.route.lasted(now.Sub(c.started))
	if c.live == 0 { // all were given up, and it has come back after all
		c.route.hung--
	} else {
		c.route.batch.ended(a.err)
	}
	for i := range 1 + len(c.more) {
		one := c.each(i)
		r := p.get(one.h)
		if one.lost {
			if r != nil && r.stuck == one {
				r.stuck = nil
			}
			continue
		}
		rep, err, refused := a.result(i)
		p.endCall(r)
		switch {
		case a.err == nil && (err != nil || rep.lacksOutput()):
			c.route.batch.trouble(one.h, true)
		case refused, a.err == nil && rep.State == StateUnknown:
			c.route.batch.trouble(one.h, false)
		case a.err == nil:
			delete(c.route.batch.apart, one.h)
		}
		if a.shut && err != nil {
			p.cutOff(r, now)
			continue
		}
		p.answer(r, one, rep, err, now, p.draw())
	}
}

// coolsFirst reports whether a job is the first of its call to tell of a rate
// limit that has closed nothing.
func (c *lookCall) coolsFirst() bool {
	if c.whole == nil {
		return true
	}
	told := c.whole.cooled
	c.whole.cooled = true
	return !told
}
