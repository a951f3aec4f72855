package jobpoll

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Pace of the look-ups of a submission in doubt.
const (
	doubtBase = time.Second
	doubtCap  = 15 * time.Second
	maxUnsure = 4  // look-ups that know nothing, once the grace is over
	maxDoubts = 32 // look-ups in all, once the grace is over
)

// doubt is what is known of a submission whose answer was lost. Plain data.
type doubt struct {
	Since   Stamp // its request may have reached the provider until then
	Lookups int32
	Absent  int32 // look-ups in a row that say that it is not there
	Unsure  int32 // that know nothing
	Errors  int32 // that failed, in a row
	Seen    bool  // something has shown that the provider has it
}

// doubtEnd is what follows from a look-up.
type doubtEnd uint8

const (
	doubtOn     doubtEnd = iota // look again
	doubtFound                  // it is there
	doubtAbsent                 // it surely is not
	doubtGivenUp
)

// lookedUp is what a look-up has come to.
type lookedUp struct {
	state  FindingState
	failed bool          // state says nothing
	hint   time.Duration // the least wait until the next one
	begun  Stamp
	over   Stamp
	open   bool // Send has not returned: the request may still be on its way
}

// hear takes the answer of a look-up, and says what follows; wait is until the
// next one.
func (d *doubt) hear(l lookedUp, rules *StopRules) (end doubtEnd, wait time.Duration) {
	d.Lookups = addCount(d.Lookups)
	settled := d.Since.Add(rules.MissingGrace)
	graced := l.begun >= settled && !l.open
	switch {
	case l.failed:
		d.Errors = addCount(d.Errors)
		if int(d.Errors) >= rules.MaxErrors {
			return doubtGivenUp, 0
		}
		return doubtOn, max(l.hint, grow(limitBase, d.Errors-1, limitCap))
	case l.state == FindingPresent:
		return doubtFound, 0
	case l.state == FindingImpossible:
		return doubtGivenUp, 0
	case l.state == FindingAbsent:
		d.Errors, d.Absent = 0, addCount(d.Absent)
		if graced && int(d.Absent) >= rules.MissingLooks {
			if d.Seen {
				return doubtGivenUp, 0 // one of the two is wrong
			}
			return doubtAbsent, 0
		}
	default:
		d.Errors, d.Absent = 0, 0
		d.Unsure = addCount(d.Unsure)
		if graced && d.Unsure >= maxUnsure {
			return doubtGivenUp, 0
		}
	}
	if graced && d.Lookups >= maxDoubts {
		return doubtGivenUp, 0
	}
	wait = grow(doubtBase, d.Lookups, doubtCap)
	if left := settled.Sub(l.over); left > 0 && left < wait {
		wait = left // the first that can settle it
	}
	return doubtOn, max(wait, l.hint)
}

// beginDoubt begins to look for a submission. cause is as readError gives it.
// Called under the lock.
func (p *Poller) beginDoubt(s *submission, cause error, seen bool, now Stamp) {
	p.setState(s, SubmissionInDoubt, now)
	s.cause = cause
	s.doubt = doubt{Since: now, Seen: seen || s.doubt.Seen}
	p.holdSubmitSlot(s)
	if s.route != nil {
		s.route.meter.submitDoubted()
	}
	p.tellSubmission(s, originalError(cause), now)
	s.lookAt = now.Add(doubtBase)
	if s.route != nil && s.route.reconciler == nil {
		s.lookAt = now // there is nothing to wait for
	}
	at := s.lookAt
	if s.found != nil {
		at = now
	}
	p.planSubmission(s, at)
}

// followUp takes the id that somebody has named: at its word, or after a look.
func (p *Poller) followUp(ctx, store context.Context, s *submission, f sighting) {
	if f.sure {
		_ = p.takeSubmission(store, s, f)
		return
	}
	p.verify(ctx, store, s, f)
}

// clientKnown reports whether a job with the submission's key is watched, or has
// ended.
func (p *Poller) clientKnown(s *submission) bool {
	k, ok := p.clientKey(s.job.ClientKey)
	if ok {
		_, ok = p.info(k) // else it is only about to be watched
	}
	return ok
}

// settleKnown ends a submission whose job came to be known in another way: it was
// restored, or watched by the user. Called under the lock.
func (p *Poller) settleKnown(s *submission, now Stamp) {
	k, _ := p.clientKey(s.job.ClientKey)
	info, _ := p.info(k)
	s.taken = info.Job
	p.setState(s, SubmissionTaken, now)
	p.settleTaken(s, s.taken, nil, ViaUnknown, now)
	if p.store != nil {
		rec := Record{Kind: RecordSubmission, ID: s.job.ClientKey, Route: s.job.Route, Rev: s.rev + 1, UpdatedAt: toWall(now, p.line.shift())}
		rec.ExpiresAt = rec.UpdatedAt.Add(p.takenRetention())
		rec.Data, _ = marshal(&storedSubmission{Version: submissionVersion, Job: s.taken, State: SubmissionTaken})
		p.writeBehind(rec)
	}
}

// verify looks at the job that an untrusted notice named: it is taken for that of
// the submission if the provider knows it.
func (p *Poller) verify(ctx, store context.Context, s *submission, f sighting) {
	now, _ := p.lock()
	job := p.jobOf(s, &f, now)
	ours := p.belongs(s, f.id)
	p.unlock()
	if !ours {
		return
	}
	if stored, err := p.stored(store, job.Key()); err == nil && stored != nil && stored.Job.ClientKey != "" && stored.Job.ClientKey != s.job.ClientKey {
		return // a job of another submission that ended long ago
	}
	rep, err := askAbout(ctx, p, s, "Check", func(ctx context.Context) (Report, error) { return s.route.Checker.Check(ctx, job) })
	if err == nil {
		normalize(&rep)
		f.report = rep
		_ = p.takeSubmission(store, s, f)
		return
	}
	kind, hint, _ := classify(err)
	now, _ = p.lock()
	defer p.unlock()
	if p.takeable(s) && s.found == nil && kind != ErrorNoSuchJob && kind != ErrorGone && s.doubt.Errors < maxLookups {
		s.doubt.Errors++
		f.notBefore = now.Add(max(hint.wait(), grow(limitBase, s.doubt.Errors-1, limitCap)))
		s.found = &f // ask again
		p.planSubmission(s, f.notBefore)
	}
}

// lookUpSubmission asks the Reconciler once; false: nothing more now.
func (p *Poller) lookUpSubmission(ctx, store context.Context, s *submission) bool {
	p.mu.Lock()
	shift := p.line.shift()
	lost := Lost{Job: s.job, SentAt: toWall(s.sentAt, shift), GivenUpAt: toWall(s.doubt.Since, shift), Lookups: int(s.doubt.Lookups)}
	cause := s.cause
	p.mu.Unlock()
	type found struct {
		Finding
		begun Stamp
	}
	f, err := askAbout(ctx, p, s, "Lookup", func(ctx context.Context) (found, error) {
		begun := p.line.now()
		f, err := s.route.reconciler.Lookup(ctx, lost)
		return found{f, begun}, err
	})
	if ctx.Err() != nil && err != nil {
		return true // shut down: it says nothing
	}
	normalize(&f.Report)
	hint := f.Report.Hint.wait()
	if err != nil {
		_, h, _ := classify(err)
		hint = h.wait()
		cause = readError(errors.Join(originalError(cause), originalError(err)))
	}
	now, _ := p.lock()
	if s.state != SubmissionInDoubt || !p.submits.is(s) {
		p.unlock()
		return true
	}
	state := f.State
	if state == FindingPresent && !p.belongs(s, f.ID) {
		state = FindingUnknown
		s.doubt.Seen = s.doubt.Seen || f.ID == ""
	}
	l := lookedUp{state: state, failed: err != nil, hint: hint, begun: f.begun, over: now, open: !s.returned}
	end, wait := s.doubt.hear(l, s.route.rules(s.job.Expected, s.job.Profile))
	switch end {
	case doubtOn:
		s.lookAt = now.Add(wait)
		p.planSubmission(s, s.lookAt)
	case doubtAbsent:
		p.endUnsent(s, &SubmitError{Job: s.job, Meaning: SubmitAbsent}, now)
		p.unlock()
		if p.writeSubmission(store, s, "absent submission") == nil {
			p.mu.Lock()
			s.reply(s.job, s.result)
			p.unlock()
		}
		return true
	case doubtGivenUp:
		s.cause = cause
		p.endAmbiguous(s, now)
	case doubtFound:
		p.unlock()
		_ = p.takeSubmission(store, s, sighting{id: f.ID, ref: f.Ref, report: f.Report, via: ViaLookup})
		return true
	}
	p.unlock()
	return end != doubtOn
}

// belongs reports whether an id that a look-up found can be that of a
// submission: it is none of another's job. Called under the lock.
func (p *Poller) belongs(s *submission, id string) bool {
	probe := s.job
	probe.ID = id
	if probe.faults() != nil {
		return false
	}
	info, known := p.info(probe.Key())
	if known && info.Job.ClientKey != "" && info.Job.ClientKey != s.job.ClientKey {
		p.after = append(p.after, func() {
			p.log.Warn("the job of another submission was taken for this one", "job", probe.Key().String(), "client_key", clip(s.job.ClientKey, 64))
		})
		return false
	}
	return true
}

// askAbout makes one call to the provider about a submission, as one look: charged
// to the budget, and for no longer than CheckTimeout. The error is one that was read.
func askAbout[T any](ctx context.Context, p *Poller, s *submission, what string, call func(context.Context) (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	var a answer
	rt := s.route
	g, err := rt.budget.acquire(ctx, LaneStatus)
	if err != nil {
		return a.v, readError(err)
	}
	rt.meter.lookStarted(0)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := p.line.clock.AfterFunc(rt.CheckTimeout, func() { cancel(errTimeout) })
	defer timer.Stop()
	answered := make(chan answer, 1)
	go func() {
		a := answer{err: errGoexit}
		defer func() { answered <- a }()
		a.err = p.guard(Key{Route: rt.Name}, what, func() (err error) { a.v, err = call(timedContext{ctx}); return err })
	}()
	select {
	case a = <-answered:
	case <-ctx.Done():
		a.err = fmt.Errorf("jobpoll: %s of submission %q: %w", what, clip(s.job.ClientKey, 64), context.Cause(ctx))
	}
	a.err = readError(a.err)
	var hint Hint
	kind := ErrorNone
	if a.err != nil {
		kind, hint, _ = classify(a.err)
	}
	rt.meter.lookEnded(kind, hint, 0, 0)
	if errors.Is(context.Cause(ctx), ErrShutdown) && a.err != nil {
		g.done(context.Canceled)
	} else {
		p.answered(rt, Key{Route: rt.Name}, g, a.err)
	}
	return a.v, a.err
}
