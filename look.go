package jobpoll

import (
	"context"
	"errors"
	"fmt"
	"time"
)

type callKind uint8

const (
	callCheck  callKind = iota
	callFetch           // the output of a job that has succeeded
	callLookup          // of a job that the provider does not know
)

var callNames = []string{"check", "fetch", "look-up"}

func (k callKind) String() string { return enumName(callNames, int(k)) }

// method is what of the user's code the call goes to.
func (c *lookCall) method() string {
	switch {
	case c.batch:
		return "CheckBatch"
	case c.kind == callFetch:
		return "Fetch"
	case c.kind == callLookup:
		return "Lookup"
	}
	return "Check"
}

// lookCall is one call to the provider under way. What comes before lost is fixed
// when it starts.
type lookCall struct {
	h        handle
	kind     callKind
	route    *route
	job      Job
	success  *Report // of a fetch
	misses   int     // of a look-up
	renewed  uint64  // the refreshes of credentials before it
	started  Stamp
	deadline Stamp
	late     time.Duration
	polls    int
	grant    grant
	run      *runState
	ctx      *callContext

	batch bool        // it is made by CheckBatch
	whole *lookCall   // the call that this is a part of; itself, but in a batch
	more  []*lookCall // the further jobs of a batch

	lost       bool      // nobody waits for its answer any more. Guarded by Poller.mu, as what follows
	live       int       // of a whole call: the jobs whose answer somebody waits for
	cooled     bool      // of a whole call: that it met a rate limit is told, or will be
	listed     bool      // it is in route.calls: nobody has an answer yet
	prev, next *lookCall // there, in the order of the deadlines
}

func (c *lookCall) name() string {
	name := c.kind.String() + " of " + c.job.Key().String()
	if n := len(c.more); n > 0 {
		return fmt.Sprintf("%s and %d more", name, n)
	}
	return name
}

var (
	errTimeout = errors.New("the call timed out")
	errStuck   = errors.New("the last call, which timed out, has still not returned; a Checker must honour its context")
	errGoexit  = errors.New("the Checker ended its goroutine")

	errNoOutputYet = errors.New("the job has succeeded, and its output is not there yet")

	errCallbackGone = errors.New("jobpoll: the callback ended its goroutine")
)

// startCall starts the next call of a record, on c.
func (p *Poller) startCall(r *record, c *lookCall, g grant, now Stamp) {
	c.grant, c.run, c.ctx = g, p.run, c.ctx.renew(p.run.work)
	c.batch, c.more, c.live, c.cooled = false, nil, 0, false // c may be the last call's: all is set
	p.enterCall(r, c, c, now)
	p.wakeBy(c.deadline)
	p.inFlight++
	r.route.meter.lookStarted(c.late)
}

// enterCall makes c the call of a record, as a part of a whole one.
func (p *Poller) enterCall(r *record, c, whole *lookCall, now Stamp) {
	r.polls++
	if r.firstAt == 0 {
		r.firstAt = now
	}
	r.lastAt = now
	c.h, c.kind, c.route, c.job = r.handle(), r.next, r.route, r.job
	c.success, c.misses, c.renewed = r.success, int(r.track.Missing), r.route.auth.renewed
	c.started, c.deadline, c.late, c.polls = now, now.Add(r.route.CheckTimeout), max(now.Sub(r.planned), 0), r.polls
	c.whole, c.lost = whole, false
	whole.live++
	r.to(phaseCalling)
	r.call = c
	p.touch(r)
	r.route.calls.push(c)
	if r.cause == CauseReconcile {
		r.route.meter.reconciled()
	}
}

// invoke calls the user's code, with panics contained, and leaves in a what it
// returned.
func (p *Poller) invoke(ctx context.Context, c *lookCall, a *answered) {
	defer func() {
		if v := recover(); v != nil {
			a.rep, a.results, a.err = Report{}, nil, p.panicked(c.job.Key(), c.method(), v)
		}
	}()
	if c.batch {
		a.results, a.err = c.checkBatch(ctx)
		return
	}
	switch c.kind {
	case callFetch:
		a.rep, a.err = c.route.fetcher.Fetch(ctx, c.job, *c.success)
	case callLookup:
		f, err := c.route.reconciler.Lookup(ctx, Lost{Job: c.job, Misses: c.misses})
		if a.rep, a.err = f.Report, err; err == nil {
			a.finding = &f
		}
	default:
		a.rep, a.err = c.route.Checker.Check(ctx, c.job)
	}
}

// answered is the answer of a call on its way into the record.
type answered struct {
	call    *lookCall
	rep     Report
	err     error // once it is handed on, as readError gives it
	finding *Finding
	results []Result // of a batch that went well: for each of its jobs
	shut    bool     // the call was cut off by a shutdown
	open    bool     // it has not ended for the budget
	closed  closing  // of the budget
}

// hand reads the answer of a call and ends the call for the budget.
func (p *Poller) hand(a *answered) {
	c := a.call
	normalize(&a.rep)
	a.shut = c.run.work.Err() != nil && errors.Is(context.Cause(c.run.work), ErrShutdown)
	a.err = readError(a.err)
	for i := range a.results {
		normalize(&a.results[i].Report)
		a.results[i].Err = ownError(a.results[i].Err)
	}
	// Outside the lock: waiters of the budget may be woken.
	switch {
	case a.err == nil && !c.batch && c.route.quick.Load():
		a.open = true // the next call may take its place: see worker.grantFor
	case a.err == nil:
		c.grant.done(nil)
	case a.shut:
		c.grant.done(context.Canceled) // neutral: it says nothing of the provider
	default:
		a.closed = c.grant.answer(a.err)
	}
}

// tellAnswer tells the hook of an answer, for each of its jobs that has not been
// given up. From then on the answer counts, however long the hook takes, and the
// wait that it asks for binds, though the watch may end meanwhile.
func (p *Poller) tellAnswer(a *answered, now Stamp) {
	if p.hooks.Looked == nil {
		return
	}
	events := make([]LookEvent, 0, 1+len(a.call.more))
	waits := make([]Stamp, cap(events))
	for i := range cap(events) {
		rep, err := &a.rep, a.err
		if a.call.batch {
			rep, err, _ = a.result(i)
		}
		events, waits[i] = append(events, p.lookEvent(a.call.each(i), rep, err, now)), waitOf(rep, err, now)
	}
	p.mu.Lock()
	told := events[:0]
	for i, e := range events {
		c := a.call.each(i)
		if c.lost {
			continue
		}
		told = append(told, e)
		c.route.calls.remove(c)
		if c.kind != callLookup { // of which the Track knows nothing
			r := p.get(c.h)
			r.track.NotBefore = later(r.track.NotBefore, waits[i])
		}
	}
	p.unlock()
	for i := range told {
		p.tellLook(&told[i])
	}
}

// waitOf is until when an answer asks to wait with the next look at its job; zero:
// it does not.
func waitOf(rep *Report, err error, now Stamp) Stamp {
	wait := rep.Hint.wait()
	if err != nil {
		_, hint, _ := classify(err)
		wait = max(wait, hint.wait())
	}
	if wait == 0 || err == nil && rep.State.Terminal() {
		return 0
	}
	return now.Add(wait)
}

// takeIn takes the answer of a call into its record. Called under the lock. It
// reports whether nobody else has the call any more, so that it can be used again.
func (p *Poller) takeIn(a *answered, now Stamp, draw float64) bool {
	c := a.call
	if c.batch {
		p.takeBatch(a, now)
		return false
	}
	c.route.lasted(now.Sub(c.started))
	r := p.get(c.h)
	if c.lost { // it was given up, and has come back after all
		c.route.hung--
		if r != nil && r.stuck == c {
			r.stuck = nil
		}
		return false
	}
	p.endCall(r)
	switch {
	case a.shut && a.err != nil:
		p.cutOff(r, now)
	case a.finding != nil:
		p.answerLookup(r, a.finding, &a.rep, now, draw)
	default:
		if a.err == nil && c.kind == callCheck {
			c.route.batch.found(c.h, now)
		}
		p.answer(r, c, &a.rep, a.err, now, draw)
	}
	return true
}

// cutOff takes in that our own shutdown cancelled a call: that is no answer, it is
// looked again with the next Run.
func (p *Poller) cutOff(r *record, now Stamp) {
	r.route.meter.lookDropped()
	r.polls--
	r.to(phaseWaiting)
	r.planned = later(now, r.floor())
	p.plan(r.slot, r.planned)
}

// lookEvent is what the hook is told of a finished call.
func (p *Poller) lookEvent(c *lookCall, rep *Report, err error, now Stamp) LookEvent {
	kind := ErrorNone
	if err != nil {
		kind, _, _ = classify(err)
	}
	return LookEvent{Job: c.job, State: rep.State, RawStatus: rep.RawStatus, Kind: kind, Err: originalError(err), Took: now.Sub(c.started), Late: c.late,
		At: toWall(now, p.line.shift()), Polls: c.polls}
}

func (p *Poller) tellLook(e *LookEvent) {
	if f := p.hooks.Looked; f != nil {
		p.hook("Looked", e.Job.Key(), func() { f(*e) })
	}
}

// endCall clears the call of a record. It reports whether nobody waits for any
// answer of that call now.
func (p *Poller) endCall(r *record) (over bool) {
	whole := r.call.whole
	r.route.calls.remove(r.call)
	r.call = nil
	if whole.live--; whole.live > 0 {
		return false
	}
	p.inFlight--
	return true
}

// loseCall gives a call up: its answer no longer counts.
func (p *Poller) loseCall(r *record, cause error) {
	c := r.call
	c.lost = true
	if p.endCall(r) {
		c.route.hung++ // until it returns
		p.after = append(p.after, func() { c.whole.ctx.end(cause) })
	}
}

// timeOutCalls gives up the calls that have lasted too long, up to a batch;
// true if there may be more.
func (p *Poller) timeOutCalls(now Stamp) bool {
	for _, rt := range p.order {
		for n := 0; rt.calls.first != nil && rt.calls.first.deadline <= now; n++ {
			if n == tickBatch || !p.canDraw() {
				return true
			}
			p.timeOut(p.get(rt.calls.first.h), now)
		}
	}
	return false
}

// timeOut gives up a call that has lasted too long.
func (p *Poller) timeOut(r *record, now Stamp) {
	c := r.call
	p.loseCall(r, errTimeout)
	r.stuck = c
	err := &CheckError{Kind: ErrorTransient, Err: fmt.Errorf("%w after %v", errTimeout, r.route.CheckTimeout)}
	p.after = append(p.after, func() {
		c.grant.done(err)
		if p.hooks.Looked != nil {
			e := p.lookEvent(c, &Report{}, err, now)
			p.tellLook(&e)
		}
	})
	r.to(phaseWaiting)
	p.answer(r, c, &Report{}, err, now, p.draw())
}

// callList is the calls of a route under way, in the order in which they began
// and time out.
type callList struct{ first, last *lookCall }

func (l *callList) push(c *lookCall) {
	c.listed = true
	if c.prev = l.last; c.prev == nil {
		l.first = c
	} else {
		c.prev.next = c
	}
	l.last = c
}

// remove takes a call out, if it is there.
func (l *callList) remove(c *lookCall) {
	if !c.listed {
		return
	}
	c.listed = false
	if c.prev == nil {
		l.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		l.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
}
