package jobpoll

import (
	"context"
	"errors"
	"fmt"
)

// ErrNotAmbiguous is matched by the error of Resolve for a submission whose end is
// known, or that is still being sent.
var ErrNotAmbiguous = errors.New("the submission is not ambiguous")

// Resolve is a person's answer to a submission that is ambiguous, or still being
// looked for: remoteID is the provider's id of the job, which is watched from now
// on; an empty one says that the provider surely has no such job. Its ClientKey is
// then free again. Resolve itself submits nothing. OnStop is told of the end of
// the job as of any other, and not of an empty id. Where a Submit still waits it
// returns what was resolved.
//
// A nil error: the answer is stored. ErrUnknownJob: no submission has that key.
// ErrNotAmbiguous: its end is known and is another than the one given, or it is not
// known yet, as it waits or is being sent. With an error of the store nothing has
// changed, but that a job whose id was given is watched (a *SubmitError with
// SubmitUnstored) and stored later.
func (p *Poller) Resolve(ctx context.Context, clientKey, remoteID string) error {
	named := func(err error) error {
		return fmt.Errorf("jobpoll: Resolve: ClientKey %q: %w", clip(clientKey, 64), err)
	}
	if ctx.Err() != nil {
		return named(contextError(ctx))
	}
	p.mu.Lock()
	s := p.submits.get(clientKey)
	err := p.tenancy.refusal()
	p.mu.Unlock()
	if err != nil {
		return named(err)
	}
	if s == nil && p.store != nil {
		if _, err := p.recallSubmission(ctx, clientKey); err != nil {
			return named(err)
		}
	}
	p.mu.Lock()
	s = p.submits.get(clientKey)
	if err := p.resolvable(s, clientKey, remoteID); err != nil || s == nil {
		p.unlock()
		if err != nil {
			return named(err)
		}
		return nil
	}
	if remoteID == "" {
		p.unlock()
		if err := p.resolveAbsent(ctx, s); err != nil {
			return named(err)
		}
		return nil
	}
	probe := s.job
	probe.ID = remoteID
	if err := probe.faults(); err != nil {
		p.unlock()
		return named(err)
	}
	if s.route == nil {
		p.unlock()
		return named(ErrUnknownRoute)
	}
	s.route.meter.submitResolved()
	ans := s.answer
	p.unlock()
	if err := p.takeSubmission(ctx, s, sighting{id: remoteID, via: ViaLookup, sure: true}); err != nil {
		return named(err)
	}
	select {
	case <-ans.done: // somebody else may have been about to take it
		return nil
	case <-ctx.Done():
		return named(contextError(ctx))
	}
}

// resolvable says what speaks against an answer to a submission; nil with no
// submission: it is the one that is known. Called under the lock.
func (p *Poller) resolvable(s *submission, clientKey, remoteID string) error {
	if k, ok := p.clientKey(clientKey); ok {
		if k.ID == remoteID {
			return nil
		}
		return fmt.Errorf("%w: it is %s", ErrNotAmbiguous, k)
	}
	switch {
	case s == nil:
		return ErrUnknownJob
	case s.state == SubmissionInDoubt, s.state == SubmissionAmbiguous:
		return nil
	case s.state == SubmissionNotSent && remoteID == "":
		return nil
	}
	return fmt.Errorf("%w: it is %s", ErrNotAmbiguous, s.state)
}

// resolveAbsent ends a submission that a person says is not there.
func (p *Poller) resolveAbsent(ctx context.Context, s *submission) error {
	if p.store != nil {
		if err := p.beginKey(ctx, s.job.ClientKey); err != nil {
			return err
		}
		defer p.endKey(s.job.ClientKey)
		p.mu.Lock()
		s.rev++
		rec := Record{Kind: RecordSubmission, ID: s.job.ClientKey, Route: s.job.Route, Rev: s.rev, UpdatedAt: toWall(p.line.last(), p.line.shift())}
		p.mu.Unlock()
		if err := p.put(ctx, "resolved submission", rec); err != nil {
			p.submissionBehind(s) // it may have been deleted all the same
			return err
		}
	}
	now, _ := p.lock()
	defer p.unlock()
	if s.state == SubmissionTaken { // meanwhile
		return fmt.Errorf("%w: it is %s", ErrNotAmbiguous, s.taken.Key())
	}
	if !p.submits.is(s) {
		return nil
	}
	if s.route != nil {
		s.route.meter.submitResolved()
	}
	e := &SubmitError{Job: s.job, Meaning: SubmitAbsent}
	s.callers++ // the caller of Resolve knows: OnStop is not told
	p.endUnsent(s, e, now)
	s.reply(s.job, e)
	s.behind = false
	p.forget(s)
	return nil
}

// sightSubmission takes from a notice that the provider has the job of a
// submission, and under which id. Called under the lock.
func (p *Poller) sightSubmission(n *Notice) {
	s := p.submits.get(n.ClientKey)
	if n.ClientKey == "" || s == nil || s.job.Route != n.Key.Route {
		return
	}
	if n.Trust == TrustAuthoritative {
		s.doubt.Seen = true
	}
	if n.Key.ID == "" || s.found != nil && s.found.sure {
		return
	}
	s.found = &sighting{id: n.Key.ID, via: ViaWebhook, sure: n.Trust == TrustAuthoritative}
	if s.state == SubmissionInDoubt || s.state == SubmissionAmbiguous {
		p.planSubmission(s, p.line.last())
	}
}
