package jobpoll

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jobpoll/jobpoll/internal/sending"
)

// DefaultSubmitTimeout is Route.SubmitTimeout where that is zero.
const DefaultSubmitTimeout = 2 * time.Minute

var (
	errNoID     = errors.New("jobpoll: the answer to the submission has no id")
	errSendGone = errors.New("jobpoll: Send ended its goroutine")
)

func (s *submission) name() string {
	return "submission of " + s.job.Route + " " + clip(s.job.ClientKey, 64)
}

// startSending sends a submission whose turn it is.
func (p *Poller) startSending(s *submission, g grant) {
	now, _ := p.lock()
	if s.state != SubmissionWaiting || p.run != nil && p.run.draining { // it was withdrawn, or is about to be
		p.unlock()
		g.giveBack()
		return
	}
	p.setState(s, SubmissionSending, now)
	s.waiter, s.out = nil, true
	work, cancel := context.WithCancelCause(s.values)
	s.cancel = cancel
	if p.run != nil {
		p.attach(s, p.run)
	}
	p.tellSubmission(s, nil, now)
	started := p.busy(s.name)
	p.unlock()
	go p.sending(work, s, g, started)
}

// attach makes a Run wait for a Send, and cancel it in the end. Called under the lock.
func (p *Poller) attach(s *submission, run *runState) {
	run.crew.enter()
	cancel := s.cancel
	stop := context.AfterFunc(run.work, func() { cancel(context.Cause(run.work)) })
	s.runs = append(s.runs, func() {
		stop()
		run.crew.leave()
	})
}

// attachSubmissions makes a Run that begins wait for what was sent before it.
// Called under the lock.
func (p *Poller) attachSubmissions(run *runState) {
	p.submits.all(func(s *submission) {
		if s.out {
			p.attach(s, run)
		}
	})
}

// sending is the goroutine of a submission: it stores the intent, calls Send
// and takes its return in.
func (p *Poller) sending(work context.Context, s *submission, g grant, started func()) {
	ctx, idle := p.busyContext(timedContext{work}, s.name)
	started()
	defer idle()
	defer p.sendOver(s)
	store := p.storeFor(ctx)
	if err := p.awaitOwner(ctx); err != nil { // the lease may have lapsed while it waited for its turn
		g.giveBack()
		p.unsent(store, s, fmt.Errorf("jobpoll: %w", err))
		return
	}
	if err := p.writeSubmission(store, s, "submission"); err != nil {
		g.giveBack()
		p.unsent(store, s, fmt.Errorf("jobpoll: the intent could not be stored: %w", err))
		return
	}
	now, _ := p.lock()
	s.sentAt = now
	why := p.tooLate(s, now)
	if why == nil && work.Err() != nil {
		why = ErrShutdown
	}
	if why == nil {
		s.route.meter.submitSent()
	}
	p.unlock()
	if why != nil {
		g.giveBack()
		p.unsent(store, s, fmt.Errorf("jobpoll: %w", why))
		return
	}
	timer := p.line.clock.AfterFunc(s.route.SubmitTimeout, func() { p.sendTimedOut(s, g) })
	var sent Sent
	err := errSendGone
	defer func() { // also where Send ended the goroutine
		timer.Stop()
		p.sendReturned(ctx, s, g, sent, err)
	}()
	asked := sending.With(ctx, s.job.ClientKey) // for provider.Send
	err = p.guard(Key{Route: s.job.Route}, "Send", func() (err error) { sent, err = s.send(asked); return err })
}

var (
	errNobodyWaits = fmt.Errorf("nobody waits for it any more: %w", context.Canceled)
	errPastDue     = errors.New("its Deadline has passed")
)

// tooLate says why a submission whose turn it is is not sent after all.
func (p *Poller) tooLate(s *submission, now Stamp) error {
	switch d := toSteady(s.job.Deadline, p.line.shift()); {
	case !p.submits.is(s): // dropped with a lease
		return ErrNotOwner
	case s.callers == 0:
		return errNobodyWaits
	case d != 0 && d <= now:
		return errPastDue
	}
	return nil
}

// sendOver lets those go that wait for the goroutine.
func (p *Poller) sendOver(s *submission) {
	p.mu.Lock()
	runs := s.runs
	s.runs, s.out, s.send, s.values = nil, false, nil, nil
	s.cancel(nil)
	p.unlock()
	p.waker.kick()
	for _, done := range runs {
		done()
	}
}

// unsent ends a submission of which surely nothing was sent, by a fault of ours.
func (p *Poller) unsent(store context.Context, s *submission, why error) {
	p.settleUnsent(store, s, &SubmitError{Job: s.job, Meaning: SubmitNotSent, Err: why})
}

// settleUnsent ends a submission that came to nothing, first in the store.
func (p *Poller) settleUnsent(ctx context.Context, s *submission, e *SubmitError) {
	now, _ := p.lock()
	p.endUnsent(s, e, now)
	p.unlock()
	_ = p.writeSubmission(ctx, s, "submission that came to nothing") // else it is tried again
	p.mu.Lock()
	s.reply(s.job, e)
	p.planSubmission(s, now) // what is left to do
	p.unlock()
	p.waker.kick()
}

// sendTimedOut gives the answer of a Send up.
func (p *Poller) sendTimedOut(s *submission, g grant) {
	err := readError(&CheckError{Kind: ErrorTransient, Err: fmt.Errorf("%w after %v", errTimeout, s.route.SubmitTimeout)})
	now, _ := p.lock()
	s.cancel(errTimeout)
	if s.state == SubmissionSending {
		p.beginDoubt(s, err, false, now)
		p.after = append(p.after, func() { g.done(err) })
	}
	p.unlock()
	p.waker.kick()
}

// sendReturned takes in what a Send returned, be it after it was given up.
func (p *Poller) sendReturned(work context.Context, s *submission, g grant, sent Sent, err error) {
	verdict := judgeSend(sent.ID, err)
	if err == nil && verdict == sendDoubtful {
		err = errNoID
	}
	read := readError(err)
	normalize(&sent.Report)
	p.mu.Lock()
	s.returned = true
	if verdict == sendDoubtful || verdict == sendExists {
		p.holdSubmitSlot(s) // before the call's own is free
	}
	p.mu.Unlock()
	if errors.Is(context.Cause(work), ErrShutdown) && read != nil {
		defer g.done(context.Canceled) // it says nothing of the provider
	} else if verdict != sendTaken { // else once it is counted as a job
		s.route.meter.refused(read)
		defer p.closed(s.route, Key{Route: s.job.Route}, g, read)() // a hook that blocks holds up nobody who waits for the answer
	}
	switch verdict {
	case sendTaken:
		_ = p.takeSubmission(p.storeFor(work), s, sighting{id: sent.ID, ref: sent.Ref, report: sent.Report, at: sent.SubmittedAt, via: ViaSubmit})
		g.done(nil)
	case sendRefused, sendUnsent:
		p.sendRefusedAs(work, s, verdict, err, read)
	default:
		now, _ := p.lock()
		switch s.state {
		case SubmissionSending:
			p.beginDoubt(s, read, verdict == sendExists, now)
		case SubmissionInDoubt: // it may have gone out until now
			s.doubt.Since = now
		}
		if usableID(sent.ID) && s.found == nil { // worth a look
			s.found = &sighting{id: sent.ID, ref: sent.Ref, via: ViaSubmit}
		}
		p.unlock()
		p.waker.kick()
	}
}

// sendRefusedAs ends a submission that was refused, or never left.
func (p *Poller) sendRefusedAs(work context.Context, s *submission, verdict sendVerdict, err, read error) {
	e := &SubmitError{Job: s.job, Meaning: SubmitNotSent, Err: err, text: read.Error()}
	if verdict == sendRefused {
		e.Meaning = SubmitRefused
		kind, hint, _ := classify(read)
		e.ErrorKind, e.RetryAt = kind, p.retrySubmit(s.route, hint)
	}
	p.mu.Lock()
	known := s.state == SubmissionSending || s.state == SubmissionInDoubt
	p.mu.Unlock()
	if known {
		p.settleUnsent(p.storeFor(work), s, e)
	}
}

// retrySubmit is from when on a refused submission may be made again.
func (p *Poller) retrySubmit(rt *route, h Hint) time.Time {
	now, raw := p.line.read()
	wait := max(h.wait(), rt.budget.closedFor(LaneSubmit, raw))
	if wait <= 0 {
		return noTime
	}
	return toWall(now.Add(wait), p.line.shift())
}

var noTime time.Time

// storeFor is the context in which a submission is written: it does not end with
// the caller's or with the Send's, but with the Run's for the store.
func (p *Poller) storeFor(work context.Context) context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return &storeContext{context.Background(), work}
	}
	return &storeContext{p.run.store, work}
}

// sighting is a job of the provider that is, or may be, that of a submission.
type sighting struct {
	id, ref string
	report  Report
	at      time.Time // when the provider accepted it; zero: not told
	via     Via
	sure    bool // it is believed without a look

	notBefore Stamp // of the next look
}

// takeSubmission makes a watched job of a submission: it is stored with its id,
// then watched, whatever the store says. The error is that of the store, or says
// that the job is another's.
func (p *Poller) takeSubmission(ctx context.Context, s *submission, f sighting) error {
	now, draw := p.lock()
	job := p.jobOf(s, &f, now)
	key := job.Key()
	if !p.takeable(s) {
		p.unlock()
		return nil
	}
	if p.store != nil {
		if err := p.writes.begin(ctx, &p.mu, key); err != nil { // another write of that job hangs
			p.unlock()
			read := readError(err)
			p.mu.Lock()
			if p.takeable(s) {
				f.sure = true
				s.found = &f
				p.beginDoubt(s, read, true, now)
			}
			p.unlock()
			return err
		}
	}
	if !p.takeable(s) {
		p.endTaking(key)
		p.unlock()
		return nil
	}
	_, ended := p.ended.get(key)
	if p.find(key) != nil || ended {
		err := p.takeKnown(ctx, s, job, f.via, now)
		return err
	}
	if k, taken := p.clientKey(job.ClientKey); taken && k != key { // by a Watch: that must not lose this one
		job.ClientKey = ""
	} else {
		p.byClient[job.ClientKey] = key // nobody else takes it meanwhile
	}
	r := p.prepare(job, now)
	p.setState(s, SubmissionTaken, now)
	s.taken = job
	var err, unstored error
	if p.store != nil {
		rec := p.encode(r)
		p.unlock()
		err = p.writeSubmission(ctx, s, "submitted job", rec)
		unstored = unstoredError(job, err)
		now, draw = p.lock()
		p.endTaking(key)
	}
	p.beginSubmitted(r, &f, now, draw)
	p.settleTaken(s, job, unstored, f.via, now)
	p.unlock()
	p.waker.kick()
	return err
}

// takeable reports whether a submission may still become a job.
func (p *Poller) takeable(s *submission) bool {
	return p.submits.is(s) && (s.state == SubmissionSending || s.state == SubmissionInDoubt || s.state == SubmissionAmbiguous)
}

func (p *Poller) endTaking(key Key) {
	if p.store != nil {
		p.writes.end(key)
	}
}

// takeKnown is takeSubmission for an id that is known already: the provider has
// told it for two submissions, or somebody else has watched it. Called under the
// lock, which it releases.
func (p *Poller) takeKnown(ctx context.Context, s *submission, job Job, via Via, now Stamp) error {
	key := job.Key()
	p.endTaking(key)
	info, _ := p.info(key)
	if p.byClient[job.ClientKey] == noKey {
		p.byClient[job.ClientKey] = key
	}
	p.setState(s, SubmissionTaken, now)
	s.taken = job
	if other := info.Job.ClientKey; other != "" && other != job.ClientKey {
		p.after = append(p.after, func() {
			p.log.Warn("the provider gave the id of another submission", "job", key.String(), "client_key", clip(job.ClientKey, 64), "other", clip(other, 64))
		})
	}
	p.unlock()
	err := p.writeSubmission(ctx, s, "submitted job")
	unstored := unstoredError(info.Job, err)
	now, _ = p.lock()
	p.settleTaken(s, info.Job, unstored, via, now)
	p.unlock()
	p.waker.kick()
	return err
}

var noKey Key

// jobOf is the job that a sighting makes of a submission.
func (p *Poller) jobOf(s *submission, f *sighting, now Stamp) Job {
	shift := p.line.shift()
	job := s.job
	job.ID = f.id
	switch {
	case saneRef(f.ref) != "":
		job.Ref = f.ref
	case f.report.Ref != "":
		job.Ref = f.report.Ref
	}
	accepted := now
	if f.via != ViaSubmit {
		accepted = s.sentAt
	}
	if at := toSteady(saneTime(f.at), shift); at != 0 {
		accepted = min(max(at, s.sentAt), accepted)
	}
	job.SubmittedAt = toWall(accepted, shift)
	if w := f.report.Hint.wait(); w > 0 {
		if at := toWall(now.Add(w), shift); at.After(job.NotBefore) {
			job.NotBefore = at
		}
	}
	return job
}

// beginSubmitted starts the watch of a job that was just submitted. What the
// answer told of a pending job is where every job starts, and no look.
func (p *Poller) beginSubmitted(prepared *record, f *sighting, now Stamp, draw float64) {
	rep := f.report
	if !rep.State.Terminal() {
		p.begin(prepared, now, draw)
		return
	}
	r := p.admit(prepared, false)
	if rep.needsFetch(r.route) {
		p.fetchNext(r, rep, later(now, r.floor()), CauseConfirm, now)
	} else {
		p.observe(r, &rep, nil, f.via, now, draw)
	}
	p.applyEarly(r, now, draw)
}

// settleTaken tells that a submission has become a job, and forgets it once the
// store holds that. Called under the lock.
func (p *Poller) settleTaken(s *submission, job Job, unstored error, via Via, now Stamp) {
	p.freeSubmitSlot(s)
	s.route.meter.submitTaken(via)
	p.tellSubmission(s, unstored, now)
	s.reply(job, unstored)
	if s.outcome != nil && !s.delivered { // its doubt need not be told any more
		p.undelivered--
	}
	s.outcome = nil
	if unstored == nil {
		p.forget(s)
		return
	}
	p.planSubmission(s, now.Add(retryBase))
}

// unstoredError is what Submit returns where the store has failed after the
// provider took the job.
func unstoredError(job Job, err error) error {
	if err == nil {
		return nil
	}
	return &SubmitError{Job: job, Meaning: SubmitUnstored, Err: fmt.Errorf("jobpoll: it could not be stored: %w", err)}
}
