package jobpoll

import (
	"iter"
	"slices"
	"time"
)

// SubmissionInfo is what is known of a submission that is no watched job yet.
type SubmissionInfo struct {
	State SubmissionState `json:"state"`
	// Since is when that began.
	Since time.Time `json:"since"`
	// Position is the place in the line of the route's budget, 1-based, and Reason
	// what the line waits for; both only while the State is SubmissionWaiting. Where
	// that is a place of Limits.Jobs it says how many are held by submissions whose
	// answer was lost.
	Position int    `json:"position,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// SentAt is when Send was called; zero: not yet.
	SentAt time.Time `json:"sent_at,omitzero"`
	// Lookups is how often it was looked for, NextLookupAt when it will be next.
	Lookups      int       `json:"lookups,omitempty"`
	NextLookupAt time.Time `json:"next_lookup_at,omitzero"`
	// Message is why it is in doubt, or came to nothing.
	Message string `json:"message,omitempty"`
}

// Submissions goes over the submissions that are no watched jobs: those that wait
// or are under way, are in doubt, or wait for Resolve, and those whose end has not
// been told. It does not stop the engine. The Position and Reason of those that wait
// in one line are of one instant.
func (p *Poller) Submissions() iter.Seq[JobInfo] {
	return func(yield func(JobInfo) bool) {
		p.mu.Lock()
		var all []*submission
		p.submits.all(func(s *submission) { all = append(all, s) })
		p.mu.Unlock()
		slices.SortFunc(all, func(a, b *submission) int { return int(a.slot - b.slot) })
		places := lines{}
		for _, s := range all {
			if i, ok := p.describeSubmission(s, places.place); ok && !yield(i) {
				return
			}
		}
	}
}

// findSubmission tells what is known of the submission with that ClientKey.
func (p *Poller) findSubmission(clientKey string) (JobInfo, bool) {
	p.mu.Lock()
	s := p.submits.get(clientKey)
	p.mu.Unlock()
	if s == nil {
		return JobInfo{}, false
	}
	return p.describeSubmission(s, (*Budget).place)
}

// describeSubmission tells what is known of a submission; place that of a waiter
// in its line.
func (p *Poller) describeSubmission(s *submission, place func(*Budget, *waiter) (int, string)) (JobInfo, bool) {
	p.mu.Lock()
	if !p.submits.is(s) {
		p.mu.Unlock()
		return JobInfo{}, false
	}
	shift := p.line.shift()
	v := SubmissionInfo{State: s.state, Since: toWall(s.since, shift), SentAt: toWall(s.sentAt, shift), Lookups: int(s.doubt.Lookups)}
	i := JobInfo{Job: s.job, Submission: &v, InFlight: s.state == SubmissionSending, Delivered: s.delivered}
	var result *SubmitError
	switch s.state {
	case SubmissionInDoubt, SubmissionAmbiguous:
		if s.cause != nil {
			v.Message = s.cause.Error()
		} else if s.outcome != nil {
			v.Message = s.outcome.Message
		}
		if s.state == SubmissionInDoubt && s.route != nil && s.route.reconciler != nil {
			v.NextLookupAt = toWall(s.lookAt, shift)
		}
	case SubmissionNotSent:
		result = s.result
	case SubmissionTaken:
		i.Job = s.taken
	}
	if s.outcome != nil {
		o := *s.outcome
		i.Outcome = &o
	}
	w, rt := s.waiter, s.route
	p.mu.Unlock()
	if result != nil {
		v.Message, i.ErrorKind = result.cause(), result.ErrorKind
	}
	i.Message = v.Message
	if w != nil { // the budget reads its clock
		v.Position, v.Reason = place(rt.budget, w)
	}
	return i, true
}
