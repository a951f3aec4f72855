package jobpoll

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// endUnsent is the end of a submission that came to nothing: OnStop is told of it
// if no Submit is left to return it. Called under the lock.
func (p *Poller) endUnsent(s *submission, e *SubmitError, now Stamp) {
	if !p.submits.is(s) || s.state == SubmissionTaken || s.state == SubmissionNotSent {
		return
	}
	p.setState(s, SubmissionNotSent, now)
	p.freeSubmitSlot(s)
	s.result = e
	if s.route != nil {
		s.route.meter.submitEnded(e.Meaning)
	}
	p.tellSubmission(s, e, now)
	switch {
	case s.callers == 0:
		p.tellNotSent(s, now)
	case s.outcome != nil && !s.delivered: // that it was ambiguous
		p.undelivered--
		s.outcome = nil
	}
	s.behind = p.store != nil
}

// tellNotSent leaves it to OnStop to tell that a submission came to nothing.
func (p *Poller) tellNotSent(s *submission, now Stamp) {
	via := ViaLocal
	switch s.result.Meaning {
	case SubmitAbsent:
		via = ViaLookup
	case SubmitRefused:
		via = ViaSubmit
	}
	p.concludeSubmission(s, Outcome{Reason: ReasonNotSent, ErrorKind: s.result.ErrorKind, RetryAt: s.result.RetryAt, Via: via, Resubmit: AdviceSafe, Message: s.result.cause()}, now)
}

// endAmbiguous is the end of a submission that was looked for in vain. Called
// under the lock.
func (p *Poller) endAmbiguous(s *submission, now Stamp) {
	p.setState(s, SubmissionAmbiguous, now)
	via := ViaLookup
	if s.doubt.Lookups == 0 {
		via = ViaSubmit
	}
	if s.route != nil {
		s.route.meter.submitEnded(SubmitAmbiguous)
	}
	o := Outcome{Reason: ReasonAmbiguous, Via: via, ErrorKind: ErrorTransient}
	if s.cause != nil {
		o.ErrorKind, _, _ = classify(s.cause)
		o.Message = s.cause.Error()
	}
	p.concludeSubmission(s, o, now)
	err := s.ambiguous()
	p.tellSubmission(s, err, now)
	s.reply(s.job, err)
	s.behind = p.store != nil
	p.planSubmission(s, now)
}

// ambiguous is what Submit returns for a submission that a person has to resolve.
func (s *submission) ambiguous() error {
	e := &SubmitError{Job: s.job, Meaning: SubmitAmbiguous, Err: originalError(s.cause)}
	if s.cause != nil {
		e.text = s.cause.Error()
	}
	return e
}

// concludeSubmission makes the outcome that OnStop is told. Called under the lock.
func (p *Poller) concludeSubmission(s *submission, o Outcome, now Stamp) {
	if s.outcome == nil || s.delivered {
		p.undelivered++
	}
	shift := p.line.shift()
	o.Job, o.DetectedAt = s.job, toWall(now, shift)
	o.Job.SubmittedAt = toWall(s.sentAt, shift)
	if s.route != nil {
		s.route.meter.submissionStopped(o.Reason)
	}
	s.outcome, s.attempts, s.delivered, s.tellAt, s.hooked = &o, 0, false, 0, false
}

// withdraw ends a submission that waits. Called under the lock.
func (p *Poller) withdraw(s *submission, why error) {
	if w := s.waiter; w != nil {
		s.waiter = nil
		b := s.route.budget
		p.after = append(p.after, func() { b.leaveLine(w) })
	}
	e := &SubmitError{Job: s.job, Meaning: SubmitNotSent, Err: why}
	s.callers++ // who withdrew it is told here
	p.endUnsent(s, e, p.line.last())
	s.reply(s.job, e)
	p.planSubmission(s, p.line.last())
}

// tellSubmission tells the hook how far a submission has got. Called under the lock.
func (p *Poller) tellSubmission(s *submission, err error, now Stamp) {
	f := p.hooks.Submitted
	if f == nil {
		return
	}
	job := s.job
	if s.state == SubmissionTaken {
		job = s.taken
	}
	e := SubmitEvent{Job: job, State: s.state, Err: err, At: toWall(now, p.line.shift())}
	p.after = append(p.after, func() { p.hook("Submitted", Key{Route: job.Route}, func() { f(e) }) })
}

// tendSubmissions takes care of the submissions that have something to do, and
// says when to come back. Called under the lock.
func (p *Poller) tendSubmissions(now Stamp) time.Duration {
	if p.run == nil || !p.run.open() {
		return never
	}
	for {
		slot, at, ok := p.submits.next.Peek()
		if !ok {
			return never
		}
		if left := Stamp(at).Sub(now); left > 0 {
			return left
		}
		if p.submits.tending >= maxServing {
			return never // the end of one wakes the loop
		}
		p.submits.tending++
		p.submits.next.Remove(slot)
		s := *p.submits.table.Get(slot)
		s.served, s.due = true, 0
		run := p.run
		p.background(&run.crew, run.work, s.name, func(ctx context.Context) { p.tendSubmission(ctx, run, s) })
	}
}

// tendSubmission does what there is to do for one.
func (p *Poller) tendSubmission(ctx context.Context, run *runState, s *submission) {
	store := &storeContext{run.store, ctx}
	died := true // until it returned: a callback can end its goroutine
	defer func() {
		p.mu.Lock()
		s.served = false
		p.submits.tending--
		if died {
			p.retelling(s, p.line.last())
		}
		if s.due != 0 {
			p.planSubmission(s, s.due)
		}
		p.unlock()
		p.waker.kick()
	}()
	for p.tendStep(ctx, store, s) {
	}
	died = false
}

// tendStep does one thing for a submission; false when there is nothing left to
// do now.
func (p *Poller) tendStep(ctx, store context.Context, s *submission) bool {
	now, _ := p.lock()
	if s.route == nil {
		if s.route = p.routes[s.job.Route]; s.route != nil {
			s.route.submits[s.state]++
			p.holdSubmitSlot(s)
		}
	}
	by := surroundings{listed: p.submits.is(s), closed: ctx.Err() != nil, known: s.doubted() && p.clientKnown(s), now: now}
	switch d, at := s.nextDuty(by); d {
	case dutyPause:
		p.planSubmission(s, at)
	case dutySettle:
		p.settleKnown(s, now)
	case dutyFollowUp:
		f := *s.found
		s.found = nil
		p.unlock()
		p.followUp(ctx, store, s, f)
		return true
	case dutyWrite:
		p.unlock()
		return p.writeSubmission(store, s, "submission") == nil
	case dutyReply:
		s.reply(s.job, s.result)
		p.unlock()
		return true
	case dutyTell:
		return p.tellSubmissionEnd(ctx, s)
	case dutyGiveUp:
		p.endAmbiguous(s, now)
		p.unlock()
		return true
	case dutyLookUp:
		p.unlock()
		return p.lookUpSubmission(ctx, store, s)
	case dutyForget:
		p.forget(s)
	case dutyFreeSlot:
		p.freeSubmitSlot(s)
	}
	p.unlock()
	return false
}

// tellSubmissionEnd calls OnStop. Called under the lock, which it releases.
func (p *Poller) tellSubmissionEnd(ctx context.Context, s *submission) bool {
	if now := p.line.last(); !p.tenancy.sure(now) { // another owner may be telling it
		p.planSubmission(s, now.Add(p.tenancy.pause()))
		p.unlock()
		return false
	}
	cb := p.callbacks.merge(s.route.Callbacks)
	told := s.outcome
	o, attempt, first := *told, int(s.attempts)+1, !s.hooked
	s.hooked = true
	p.unlock()
	if first {
		p.log.Log(ctx, slog.LevelWarn, "submission ended", "route", o.Job.Route, "client_key", clip(o.Job.ClientKey, 64), "reason", o.Reason.String(), "error", o.Err())
		if f := p.hooks.Stopped; f != nil {
			p.hook("Stopped", o.Job.Key(), func() { f(StopEvent{Outcome: o}) })
		}
	}
	var err error
	if cb.OnStop != nil {
		if err = p.callOnStop(ctx, cb, o, attempt); err == nil {
			p.tellDelivered(o, attempt, nil)
		}
	}
	now, _ := p.lock()
	defer p.unlock()
	if s.outcome != told || !p.submits.is(s) { // it has come to something else meanwhile
		return true
	}
	if err != nil {
		p.retelling(s, now)
		return false
	}
	s.attempts, s.delivered = int32(attempt), true
	p.undelivered--
	p.nothingLeft()
	s.behind = p.store != nil
	return true
}

// retelling plans another call of OnStop.
func (p *Poller) retelling(s *submission, now Stamp) {
	s.attempts = addCount(s.attempts)
	s.tellAt = now.Add(grow(retryBase, s.attempts-1, retryCap))
	p.planSubmission(s, s.tellAt)
}

// holdSubmissions ends those that wait when Run ends. Called under the lock.
func (p *Poller) holdSubmissions(run *runState) {
	var left []*submission
	p.submits.all(func(s *submission) {
		if s.state == SubmissionWaiting {
			left = append(left, s)
		}
	})
	for _, s := range left {
		p.withdraw(s, fmt.Errorf("jobpoll: %w", ErrShutdown))
	}
	if p.store == nil || len(left) == 0 {
		return
	}
	const what = "submission that was not sent"
	p.background(&run.crew, run.store, func() string { return what }, func(ctx context.Context) {
		for _, s := range left {
			if p.writeSubmission(ctx, s, what) != nil {
				return // told again after a restart
			}
		}
	})
}

// leaveSubmissions lets the callers go when Run has ended. Called under the lock.
func (p *Poller) leaveSubmissions() {
	p.submits.all(func(s *submission) {
		if s.callers > 0 && s.state != SubmissionWaiting {
			s.reply(s.job, &SubmitError{Job: s.job, Meaning: SubmitUnderWay, Err: fmt.Errorf("jobpoll: %w", ErrShutdown)})
		}
	})
}

// dropSubmissions forgets them when another Poller has the Store, which knows them
// from there. One whose Send is under way stays until it has returned: its id
// must reach the caller. Called under the lock.
func (p *Poller) dropSubmissions(why error) {
	p.submits.all(func(s *submission) {
		switch {
		case s.out && s.sentAt != 0:
		case s.state == SubmissionWaiting:
			p.withdraw(s, why)
			p.unlist(s)
		default:
			s.reply(s.job, &SubmitError{Job: s.job, Meaning: SubmitUnderWay, Err: fmt.Errorf("jobpoll: %w", why)})
			p.unlist(s)
		}
	})
}

// wakeSubmissions makes those go on that wait for a route or a job that has come.
// Called under the lock.
func (p *Poller) wakeSubmissions(route string) {
	p.submits.all(func(s *submission) {
		if s.route == nil && s.job.Route == route {
			p.planSubmission(s, p.line.last())
		}
	})
}
