package jobpoll

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// submissionVersion is written into the Data of each RecordSubmission.
const submissionVersion = 1

// takenRetention is how long a store remembers that a ClientKey was used: twice
// as long as a job whose outcome has been told, as it counts from the submission.
func (p *Poller) takenRetention() time.Duration { return plus(p.retention, p.retention) }

// storedSubmission is the Data of a RecordSubmission, whose ID is the ClientKey.
// All its times are wall times.
type storedSubmission struct {
	Version   int             `json:"v"`
	Job       Job             `json:"job"` // with an ID once it is taken
	State     SubmissionState `json:"state"`
	SentAt    time.Time       `json:"sent_at,omitzero"` // no Send began before
	Outcome   *Outcome        `json:"outcome,omitempty"`
	Attempts  int32           `json:"attempts,omitempty"`
	Delivered bool            `json:"delivered,omitempty"`
}

// submissionRecord is what the store has to hold of a submission: nothing once it
// came to nothing and nobody has to be told. Called under the lock.
func (p *Poller) submissionRecord(s *submission) Record {
	shift := p.line.shift()
	s.rev++
	rec := Record{Kind: RecordSubmission, ID: s.job.ClientKey, Route: s.job.Route, Rev: s.rev, UpdatedAt: toWall(p.line.last(), shift)}
	if s.state == SubmissionNotSent && (s.outcome == nil || s.delivered) {
		return rec
	}
	v := storedSubmission{Version: submissionVersion, Job: s.job, State: s.state, Outcome: s.outcome, Attempts: s.attempts, Delivered: s.delivered}
	switch s.state {
	case SubmissionTaken:
		v.Job = s.taken
		rec.ExpiresAt = rec.UpdatedAt.Add(p.takenRetention())
	case SubmissionSending:
		v.SentAt = rec.UpdatedAt
	case SubmissionInDoubt:
		v.State = SubmissionSending // that is all that is known
		v.SentAt = toWall(s.sentAt, shift)
	case SubmissionAmbiguous:
		v.SentAt = toWall(s.sentAt, shift)
	}
	rec.Data, _ = marshal(&v)
	return rec
}

// writeSubmission writes what the store has to hold of a submission, at once
// with more. One write of a key comes after the other, so that the last one tells
// what is known last.
func (p *Poller) writeSubmission(ctx context.Context, s *submission, what string, more ...Record) error {
	if p.store == nil {
		return nil
	}
	client := s.job.ClientKey
	if err := p.beginKey(ctx, client); err != nil {
		p.submissionBehind(s)
		return err
	}
	batch := more
	p.mu.Lock()
	if p.submits.is(s) { // else another has taken its place
		batch = append(batch, p.submissionRecord(s))
	}
	p.mu.Unlock()
	var err error
	if len(batch) > 0 {
		err = p.put(ctx, what, batch...)
	}
	p.endKey(client)
	if err != nil {
		p.submissionBehind(s)
		return err
	}
	p.mu.Lock()
	s.behind, s.fails = false, 0
	p.mu.Unlock()
	return nil
}

// submissionBehind makes the write be tried again, as long as Run runs.
func (p *Poller) submissionBehind(s *submission) {
	p.mu.Lock()
	s.behind = true
	s.fails = addCount(s.fails)
	p.planSubmission(s, p.line.last().Add(grow(retryBase, s.fails-1, retryCap)))
	p.unlock()
}

// beginKey waits until no other write of a ClientKey's record is under way.
func (p *Poller) beginKey(ctx context.Context, client string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.submits.keys.begin(ctx, &p.mu, client)
}

func (p *Poller) endKey(client string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.submits.keys.end(client)
}

func decodeSubmission(rec Record) (storedSubmission, error) {
	var v storedSubmission
	var misfit *json.UnmarshalTypeError
	if err := json.Unmarshal(rec.Data, &v); err != nil && !errors.As(err, &misfit) {
		return v, fmt.Errorf("jobpoll: stored submission %q cannot be read: %w", rec.ID, err)
	}
	if v.Version > submissionVersion {
		return v, fmt.Errorf("jobpoll: stored submission %q is of version %d, this library reads up to %d: update it", rec.ID, v.Version, submissionVersion)
	}
	probe := v.Job
	if probe.ID == "" && v.State != SubmissionTaken {
		probe.ID = "?"
	}
	if err := probe.faults(); err != nil {
		return v, fmt.Errorf("jobpoll: stored submission %q: %w", rec.ID, err)
	}
	if v.Job.ClientKey != rec.ID || rec.ID == "" {
		return v, fmt.Errorf("jobpoll: stored submission %q: it is about another", rec.ID)
	}
	if v.Outcome != nil {
		normalize(&v.Outcome.Report)
	}
	return v, nil
}

// recallSubmission makes known what the store holds of a ClientKey. A job is that
// of a submission that was taken.
func (p *Poller) recallSubmission(ctx context.Context, client string) (*Job, error) {
	if err := p.restoreOnce(ctx); err != nil {
		return nil, err
	}
	rec, found, err := p.read(ctx, "submission", RecordSubmission, client)
	if err != nil || !found {
		return nil, err
	}
	v, err := decodeSubmission(rec)
	if err != nil {
		p.storeFailed(opGet, "submission", err)
		return nil, err
	}
	switch v.State {
	case SubmissionTaken:
		return &v.Job, nil
	case SubmissionWaiting:
		return nil, nil // an Intent: this is the call that it waits for
	}
	return nil, p.restoreSubmission(rec)
}

// restoreSubmission takes up what was stored of a submission: one that waited
// ends as not sent, one that was being sent is in doubt.
func (p *Poller) restoreSubmission(rec Record) error {
	v, err := decodeSubmission(rec)
	if err != nil || v.State == SubmissionTaken {
		return err
	}
	now, _ := p.lock()
	defer p.unlock()
	client := v.Job.ClientKey
	if _, busy := p.submits.keys[client]; busy || p.submits.get(client) != nil {
		return nil // what we know is newer
	}
	if _, taken := p.clientKey(client); taken && (v.State == SubmissionWaiting || v.State == SubmissionNotSent) {
		return nil // it was read before it was sent, and comes late
	}
	shift := p.line.shift()
	s := p.newSubmission(v.Job, now)
	s.rev, s.attempts, s.returned = rec.Rev, v.Attempts, true
	s.sentAt = min(toSteady(v.SentAt, shift), now)
	switch v.State {
	case SubmissionWaiting, SubmissionNotSent:
		p.restoreEnd(s, SubmissionNotSent, v.Outcome, now)
		if s.outcome == nil {
			s.result = &SubmitError{Job: s.job, Meaning: SubmitNotSent, Err: fmt.Errorf("jobpoll: the process ended before it was sent: %w", ErrNotSent)}
			p.tellNotSent(s, now)
			s.behind = true
		}
	case SubmissionAmbiguous:
		p.restoreEnd(s, SubmissionAmbiguous, v.Outcome, now)
		if s.outcome == nil {
			p.endAmbiguous(s, now)
		}
		s.delivered = v.Delivered && v.Outcome != nil
		if s.delivered {
			p.undelivered--
		}
		p.holdSubmitSlot(s)
	default:
		p.beginDoubt(s, readError(errInterrupted), false, now)
		// The process may have gone on sending for as long as it was given; where it
		// was replaced it may have outlived its lease, and go on still.
		if rt := s.route; rt != nil {
			s.doubt.Since = s.sentAt.Add(rt.SubmitTimeout)
			if p.tenancy.leaser == nil {
				s.doubt.Since = min(s.doubt.Since, now)
			}
		}
	}
	for _, e := range p.early.list {
		if n := &e.n; !e.gone && n.ClientKey == client {
			p.sightSubmission(n)
		}
	}
	p.planSubmission(s, now)
	return nil
}

var errInterrupted = errors.New("jobpoll: the process ended while it was being sent")

// restoreEnd is the end of a submission that was stored.
func (p *Poller) restoreEnd(s *submission, to SubmissionState, o *Outcome, now Stamp) {
	p.setState(s, to, now)
	if s.outcome = o; o != nil {
		p.undelivered++
	}
}
