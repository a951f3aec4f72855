package jobpoll

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Submission is a job to be submitted.
type Submission struct {
	// Job is what is known of it before. Route and ClientKey are required; the
	// ClientKey is what the submission is known by until there is an id, and for
	// ever after. ID must be empty. SubmittedAt is set by the Poller.
	Job Job
	// Send makes the one call that buys the job and returns what the provider
	// answered. It is called at most once for each Submit, on a goroutine of its own.
	// It must not repeat the call by itself, and should hand the ClientKey to the
	// provider where that takes one: as its idempotency key, or to look jobs up by;
	// that of provider.Send does.
	//
	// ctx carries the values of Submit's ctx but not its end: a submission that
	// has been begun is worth more than the call that waits for it. It ends after
	// Route.SubmitTimeout, and with Run once the grace is over. What an error
	// means is told at SubmitError; a panic is an error like any other.
	Send func(ctx context.Context) (Sent, error)
}

// Sent is the provider's answer to a submission.
type Sent struct {
	// ID is the provider's id of the job, never one's own. An empty one without an
	// error is ambiguous: there is nothing to ask about. So is one that cannot be
	// watched, see Watch.
	ID string
	// Ref becomes Job.Ref. Empty: Report.Ref, else that of the Submission.
	Ref string
	// Report is what the answer told besides. A wait in its Hint is the least age of
	// the first look; a job that is done already is not looked at at all.
	Report Report
	// SubmittedAt is when the provider accepted the job, where that was not when Send
	// returned: a call that was held open until the job was done. Zero: when Send
	// returned. Later counts as that, earlier than the begin of Send as the begin.
	SubmittedAt time.Time
}

// Submit submits a job and watches it. With a Store the intent is stored before
// Send is called, and the provider's id before Submit returns: whenever the
// process dies, the job is either not sent, or known, or looked for, and never
// sent again.
//
// It waits for its turn in LaneSubmit of the route's budget, and where
// Limits.Jobs is set for a job slot; Find tells position and reason. It calls
// Send once. Where the answer does not tell whether the provider has taken the
// job (a timeout, a cut connection, a 5xx, an answer without an id, a panic), it
// waits on while the route's Reconciler looks for the job by its ClientKey. A nil
// error means that the job is watched; any other is a *SubmitError.
//
// The end of ctx ends the waiting. A submission that has not begun to be sent is
// then not sent, if nobody else waits for it; one that has goes on, and its end is
// told by OnStop as that of any other job.
//
// The same ClientKey is the same job, in one process and, with a Store, for 60 days
// across restarts: while it is under way a second Submit waits for the first
// one's end; where the job is watched it returns that; where it has ended it
// does as Watch does (ErrResolved, or it is watched anew). Send is then not
// called. Whether both ask for the same work cannot be seen: a key of one's own
// for each job bought is the caller's part. A key whose submission surely came to
// nothing (SubmitError.Safe) is free again.
//
// OnStop is told of a submission that ended as ambiguous (ReasonAmbiguous), once
// that is stored, whether or not a Submit returns it too: a person has to look for
// it, see Resolve. It is told of one that surely came to nothing (ReasonNotSent)
// only where no Submit is left to return that, as after a restart. The Outcome's
// Job then has a ClientKey and no ID.
//
// Submit may be called before Run, which is needed for all but Send itself. Once
// Run is ending, or has returned and not been called again, nothing is sent any
// more (ErrShutdown). Without a Store all of this holds within the process, and
// what was under way when it died is lost. A Store that was set back to a backup
// does not know what has been sent since: before its keys are used again, look at
// the provider for what they bought.
//
// Where the Store is a Leaser only its owner submits: Submit waits for the lease
// while Run asks for it, and takes it itself before the first Run. While another
// Poller has it the error matches ErrNotOwner, and is safe.
func (p *Poller) Submit(ctx context.Context, s Submission) (Job, error) {
	if err := s.faults(); err != nil {
		return s.Job, &SubmitError{Job: s.Job, Meaning: SubmitNotSent, ErrorKind: ErrorInvalid, Err: err}
	}
	sub, ans, err := p.enterSubmission(ctx, &s)
	if ans == nil {
		return sub.job, err
	}
	select {
	case <-ans.done:
	case <-ctx.Done():
		if err := p.leaveSubmission(sub, ans, contextError(ctx)); err != nil {
			return s.Job, err
		}
	}
	return ans.job, ans.err
}

// faults lists what makes a submission impossible.
func (s *Submission) faults() error {
	var all []error
	j := &s.Job
	bad := func(format string, args ...any) { all = append(all, fmt.Errorf("jobpoll: "+format, args...)) }
	if j.ClientKey == "" {
		bad("Submission.Job.ClientKey is empty; it is what the submission is known by if its answer is lost")
	}
	if j.ID != "" {
		bad("Submission.Job.ID is %q; a job that has an id was submitted: Watch it", clip(j.ID, 64))
	}
	if s.Send == nil {
		bad("Submission.Send is nil; it is what submits the job")
	}
	probe := *j
	probe.ID = "?" // not known yet
	if err := probe.faults(); err != nil {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// enterSubmission finds or begins the submission of a ClientKey. Without an
// answer to wait for, the job of the returned submission and the error are all
// that there is.
func (p *Poller) enterSubmission(ctx context.Context, s *Submission) (*submission, *submitAnswer, error) {
	given := &submission{job: s.Job}
	refuse := func(err error) (*submission, *submitAnswer, error) {
		return given, nil, &SubmitError{Job: s.Job, Meaning: SubmitNotSent, Err: err}
	}
	if ctx.Err() != nil {
		return refuse(contextError(ctx))
	}
	if err := p.awaitOwner(ctx); err != nil {
		return refuse(fmt.Errorf("jobpoll: %s: %w", s.Job.Route, err))
	}
	sub, ans, err := p.joinSubmission(s)
	if sub == nil && err == nil && p.store != nil {
		job, err2 := p.recallSubmission(ctx, s.Job.ClientKey)
		if err2 != nil {
			return refuse(fmt.Errorf("jobpoll: the store could not be read: %w", err2))
		}
		sub, ans, err = p.joinSubmission(s)
		if job != nil && sub == nil && err == nil {
			if job.Route != s.Job.Route {
				return given, nil, duplicateSubmission(s.Job, job.Key().String())
			}
			sub = &submission{job: *job}
		}
	}
	switch {
	case err != nil:
		return given, nil, err
	case sub != nil && ans == nil: // a job that is known
		return sub, nil, p.knownSubmission(ctx, sub.job)
	case sub != nil:
		return sub, ans, nil
	}
	sub, ans, err = p.beginSubmission(ctx, s)
	if ans == nil {
		if sub == nil {
			sub = given
		} else if err == nil {
			err = p.knownSubmission(ctx, sub.job)
		}
	}
	return sub, ans, err
}

// knownSubmission is what Submit returns for a job that has been submitted before.
func (p *Poller) knownSubmission(ctx context.Context, job Job) error {
	err := p.Watch(ctx, job)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrResolved):
		return &SubmitError{Job: job, Meaning: SubmitResolved, Err: err}
	}
	return &SubmitError{Job: job, Meaning: SubmitUnderWay, Err: err}
}

// joinSubmission joins a submission of the same ClientKey that is under way. A
// submission without an answer to wait for carries a job that is known.
func (p *Poller) joinSubmission(s *Submission) (*submission, *submitAnswer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.joinLocked(s)
}

func (p *Poller) joinLocked(s *Submission) (*submission, *submitAnswer, error) {
	job := s.Job
	if err := p.notSoleOwner(); err != nil {
		return nil, nil, &SubmitError{Job: job, Meaning: SubmitNotSent, Err: fmt.Errorf("jobpoll: %s: %w", job.Route, err)}
	}
	if p.routes[job.Route] == nil {
		return nil, nil, &SubmitError{Job: job, Meaning: SubmitNotSent, ErrorKind: ErrorInvalid, Err: fmt.Errorf("jobpoll: %s: %w (Config.Routes, AddRoute)", job.Route, ErrUnknownRoute)}
	}
	if k, ok := p.clientKey(job.ClientKey); ok {
		info, _ := p.info(k)
		if info.Job.ID == "" { // it is about to be watched
			info.Job = job
			info.Job.ID = k.ID
		}
		if k.Route != job.Route {
			return nil, nil, duplicateSubmission(job, k.String())
		}
		return &submission{job: info.Job}, nil, nil
	}
	sub := p.submits.get(job.ClientKey)
	switch {
	case sub == nil || sub.state == SubmissionNotSent:
		return nil, nil, nil
	case sub.job.Route != job.Route:
		return nil, nil, duplicateSubmission(job, sub.job.Route)
	case sub.state == SubmissionAmbiguous:
		return nil, nil, sub.ambiguous()
	}
	sub.callers++
	return sub, sub.answer, nil
}

// notSoleOwner tells why nothing may be bought now: another Poller that has the
// lease of the Store, or may have it, could buy the same. Called under the lock.
func (p *Poller) notSoleOwner() error {
	if t := &p.tenancy; t.leaser != nil && !t.sure(p.line.last()) {
		return ErrNotOwner
	}
	return nil
}

func duplicateSubmission(job Job, other string) error {
	return &SubmitError{Job: job, Meaning: SubmitNotSent, ErrorKind: ErrorInvalid, Err: fmt.Errorf("jobpoll: ClientKey %q: %w (%s)", clip(job.ClientKey, 64), ErrDuplicateKey, other)}
}

// beginSubmission takes a new submission in and sends it or lines it up.
func (p *Poller) beginSubmission(ctx context.Context, s *Submission) (*submission, *submitAnswer, error) {
	now, _ := p.lock()
	if sub, ans, err := p.joinLocked(s); sub != nil || err != nil { // meanwhile
		p.unlock()
		return sub, ans, err
	}
	if p.run == nil && p.over || p.run != nil && p.run.draining {
		p.unlock()
		return nil, nil, &SubmitError{Job: s.Job, Meaning: SubmitNotSent, Err: fmt.Errorf("jobpoll: %w", ErrShutdown)}
	}
	sub := p.newSubmission(s.Job, now)
	sub.send, sub.values, sub.callers = s.Send, context.WithoutCancel(ctx), 1
	ans, rt := sub.answer, sub.route
	p.unlock()

	_, raw := p.line.read()
	if g, ok := rt.budget.tryNow(raw, LaneSubmit); ok {
		p.startSending(sub, g)
		return sub, ans, nil
	}
	w := rt.budget.lineUp(LaneSubmit, func(g grant) { // it may be a look that lets it go, under our lock
		idle := p.busy(sub.name)
		go func() {
			defer idle()
			p.startSending(sub, g)
		}()
	})
	p.mu.Lock()
	sub.waiter = w
	waits := sub.state == SubmissionWaiting
	if waits {
		p.tellSubmission(sub, nil, now)
	}
	p.unlock()
	if !waits {
		return sub, ans, nil
	}
	if err := p.writeSubmission(ctx, sub, "waiting submission"); err != nil {
		why := fmt.Errorf("jobpoll: the intent could not be stored: %w", err)
		p.mu.Lock()
		if sub.state == SubmissionWaiting {
			p.withdraw(sub, why)
		}
		p.unlock()
		p.waker.kick()
	}
	return sub, ans, nil
}

// leaveSubmission ends one caller's waiting. Nil: there is an answer after all.
func (p *Poller) leaveSubmission(sub *submission, ans *submitAnswer, why error) error {
	defer p.waker.kick()
	p.mu.Lock()
	defer p.unlock()
	if ans.over {
		return nil
	}
	sub.callers--
	switch {
	case sub.state == SubmissionNotSent && sub.result != nil:
		return sub.result // about to be stored
	case sub.state == SubmissionWaiting && sub.callers == 0:
		p.withdraw(sub, why)
		return nil
	}
	return &SubmitError{Job: sub.job, Meaning: SubmitUnderWay, Err: why}
}
