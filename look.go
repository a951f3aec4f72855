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

// lookCall is one call to the provider under way. All but the fields after mu are
// fixed when it starts.
type lookCall struct {
	h       handle
	kind    callKind
	route   *route
	job     Job
	success *Report // of a fetch
	misses  int     // of a look-up
	renewed uint64  // the refreshes of credentials before it
	started Stamp
	late    time.Duration
	polls   int
	grant   grant
	run     *runState
	ctx     context.Context
	cancel  context.CancelCauseFunc
	idle    func()

	lost bool // nobody waits for its answer any more. Guarded by Poller.mu
}

func (c *lookCall) name() string { return c.kind.String() + " of " + c.job.Key().String() }

var (
	errTimeout = errors.New("the call timed out")
	errStuck   = errors.New("the last call, which timed out, has still not returned; a Checker must honour its context")
	errGoexit  = errors.New("the Checker ended its goroutine")

	errNoOutputYet = errors.New("the job has succeeded, and its output is not there yet")

	errCallbackGone = errors.New("jobpoll: the callback ended its goroutine")
)

// dispatch starts calls for due records while there are workers and budget.
func (p *Poller) dispatch(now Stamp) {
	if p.run == nil || !p.run.open() {
		return
	}
	p.turn++ // so that no route is always the last to find a free worker
	for i := range p.order {
		p.dispatchRoute(p.order[(i+p.turn)%len(p.order)], now)
	}
}

func (p *Poller) dispatchRoute(rt *route, now Stamp) {
	for {
		r, line := p.nextReady(rt)
		if r == nil {
			p.leaveBudget(rt)
			return
		}
		if len(p.draws) == 0 {
			return // the next round goes on
		}
		if c := p.closedUntil(rt, now); c > now {
			// The route closed while it waited: the core says what follows.
			line.pop()
			p.dueWhileClosed(r, now)
			continue
		}
		if r.stuck != nil {
			line.pop()
			r.to(phaseWaiting)
			rt.meter.lookStarted(0)
			p.answer(r, r.stuck, Report{}, &CheckError{Kind: ErrorTransient, Err: errStuck}, now, p.draw())
			continue
		}
		if p.inFlight >= p.workers {
			p.leaveBudget(rt) // others can use it meanwhile
			return
		}
		g, ok := p.takeGrant(rt)
		if !ok {
			return
		}
		line.pop()
		if rt.auth.state == authHeld {
			rt.auth.probeAt = now.Add(authProbe)
		}
		p.startCall(r, g, now)
	}
}

// nextReady is the first record that is due and the line it stands in, nil if
// there is none. Outputs of finished jobs go first.
func (p *Poller) nextReady(rt *route) (*record, *fifo) {
	for _, line := range []*fifo{&rt.outputs, &rt.ready} {
		for {
			h, ok := line.peek()
			if !ok {
				break
			}
			if r := p.get(h); r != nil && r.phase == phaseReady {
				return r, line
			}
			line.pop() // it went another way
		}
	}
	return nil, nil
}

// takeGrant gets a grant of the budget, or leaves word that one is wanted.
func (p *Poller) takeGrant(rt *route) (grant, bool) {
	if n := len(rt.grants); n > 0 {
		g := rt.grants[n-1]
		rt.grants = rt.grants[:n-1]
		return g, true
	}
	if rt.want != nil {
		return grant{}, false
	}
	g, ok := rt.budget.tryAcquire(rt.budget.now(), LaneStatus)
	if !ok {
		// The budget may call back at once, so it is asked without the lock.
		w := &want{}
		rt.want = w
		p.after = append(p.after, func() {
			cancel := rt.budget.want(LaneStatus, func(g grant) { p.waker.granted(routeGrant{rt, w, g}) })
			p.mu.Lock()
			w.cancel = cancel
			dropped := w.dropped
			p.mu.Unlock()
			if dropped {
				cancel()
			}
		})
	}
	return g, ok
}

// leaveBudget gives back what a route cannot use now.
func (p *Poller) leaveBudget(rt *route) {
	p.leaveWant(rt)
	for _, g := range rt.grants {
		p.after = append(p.after, func() { g.giveBack() })
	}
	rt.grants = rt.grants[:0]
}

// startCall starts the next call of a record.
func (p *Poller) startCall(r *record, g grant, now Stamp) {
	r.polls++
	if r.firstAt == 0 {
		r.firstAt = now
	}
	r.lastAt = now
	run := p.run
	c := &lookCall{
		h: r.handle(), kind: r.next, route: r.route, job: r.job, success: r.success, misses: int(r.track.Missing), renewed: r.route.auth.renewed,
		started: now, late: max(now.Sub(r.planned), 0), polls: r.polls, grant: g, run: run,
	}
	c.ctx, c.cancel = context.WithCancelCause(run.work)
	c.idle = p.busy(c.name)
	r.to(phaseCalling)
	r.call = c
	p.touch(r)
	p.due.Set(r.slot, int64(now.Add(r.route.CheckTimeout)))
	p.inFlight++
	r.route.meter.lookStarted(c.late)
	run.wg.Add(1)
	go p.perform(c)
}

// perform makes the call and takes its answer in.
func (p *Poller) perform(c *lookCall) {
	defer c.run.wg.Done()
	ctx, idle := p.busyContext(&callContext{c.ctx}, c.name)
	c.idle()
	defer idle()
	defer c.cancel(nil)
	var rep Report
	var err error = &CheckError{Kind: ErrorTransient, Err: errGoexit}
	defer func() { p.settle(c, rep, err) }()
	r, e := p.invoke(ctx, c)
	rep, err = r, e
}

// invoke calls the user's code, with panics contained.
func (p *Poller) invoke(ctx context.Context, c *lookCall) (rep Report, err error) {
	e := p.guard(c.job.Key(), c.kind.String(), func() error {
		switch c.kind {
		case callFetch:
			rep, err = c.route.fetcher.Fetch(ctx, c.job, *c.success)
		case callLookup:
			var f Finding
			f, err = c.route.reconciler.Lookup(ctx, Lost{Job: c.job, Misses: c.misses})
			rep = f.Report
			if err == nil {
				err = &finding{f}
			}
		default:
			rep, err = c.route.Checker.Check(ctx, c.job)
		}
		return err
	})
	return rep, e
}

// finding carries the answer of a look-up through the path of a look.
type finding struct{ Finding }

func (*finding) Error() string { return "jobpoll: a finding" }

// callContext says DeadlineExceeded for a call that timed out: the timeout is
// on the injected clock, so that its context is one that is cancelled.
type callContext struct{ context.Context }

func (c *callContext) Err() error {
	err := c.Context.Err()
	if err != nil && errors.Is(context.Cause(c.Context), errTimeout) {
		return context.DeadlineExceeded
	}
	return err
}

// settle takes the answer of a call in.
func (p *Poller) settle(c *lookCall, rep Report, err error) {
	now := p.line.now()
	rep = normalize(rep)
	f, isFinding := err.(*finding)
	var original error
	if !isFinding {
		original, err = err, readError(err)
	}
	shut := errors.Is(context.Cause(c.ctx), ErrShutdown)
	// First the budget, outside the lock: its waiters may be woken.
	switch {
	case isFinding || err == nil:
		c.grant.done(nil)
	case shut:
		c.grant.done(context.Canceled) // neutral: it says nothing of the provider
	default:
		c.grant.done(err)
	}
	p.mu.Lock()
	lost := c.lost
	p.mu.Unlock()
	defer p.settled(c, rep, f, err, shut) // also where the hook ends its goroutine
	if !lost {
		kind := ErrorNone
		if original != nil {
			kind, _, _ = classify(err)
		}
		p.tellLook(c, rep, kind, original, now)
	}
}

// settled takes the answer of a call into its record. f is that of a look-up.
func (p *Poller) settled(c *lookCall, rep Report, f *finding, err error, shut bool) {
	now, draw := p.lock()
	r := p.get(c.h)
	switch {
	case r == nil:
	case r.stuck == c:
		r.stuck = nil
	case c.lost || r.call != c:
	case shut && err != nil:
		// Cancelled by our own shutdown: no answer, look again with the next Run.
		p.endCall(r)
		r.route.meter.lookDropped()
		r.polls--
		r.to(phaseWaiting)
		r.planned = later(now, r.floor())
		p.due.Set(r.slot, int64(r.planned))
	case f != nil:
		p.endCall(r)
		p.answerLookup(r, f.Finding, rep, now, draw)
	default:
		p.endCall(r)
		p.answer(r, c, rep, err, now, draw)
	}
	p.unlock()
	p.waker.kick()
}

// tellLook calls the hook of a finished call.
func (p *Poller) tellLook(c *lookCall, rep Report, kind ErrorKind, err error, now Stamp) {
	f := p.hooks.Looked
	if f == nil {
		return
	}
	e := LookEvent{Job: c.job, State: rep.State, RawStatus: rep.RawStatus, Kind: kind, Err: err, Took: now.Sub(c.started), Late: c.late,
		At: toWall(now, p.line.shift()), Polls: c.polls}
	p.hook("Looked", c.job.Key(), func() { f(e) })
}

// endCall clears the call of a record.
func (p *Poller) endCall(r *record) {
	r.call = nil
	p.inFlight--
}

// loseCall gives a call up: its answer no longer counts.
func (p *Poller) loseCall(r *record, cause error) {
	c := r.call
	c.lost = true
	p.endCall(r)
	p.after = append(p.after, func() { c.cancel(cause) })
}

// timeOut gives up a call that has lasted too long.
func (p *Poller) timeOut(r *record, now Stamp) {
	c := r.call
	p.loseCall(r, errTimeout)
	r.stuck = c
	err := &CheckError{Kind: ErrorTransient, Err: fmt.Errorf("%w after %v", errTimeout, r.route.CheckTimeout)}
	p.after = append(p.after, func() {
		c.grant.done(err)
		p.tellLook(c, Report{}, ErrorTransient, err, now)
	})
	r.to(phaseWaiting)
	p.answer(r, c, Report{}, err, now, p.draw())
}
