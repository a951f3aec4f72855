package jobpoll

// duty is what there is to do next for a submission.
type duty uint8

const (
	dutyNone     duty = iota // nothing, until something happens
	dutyPause                // nothing, until an instant
	dutySettle               // its job is known: it was taken
	dutyFollowUp             // go after the id that was named
	dutyWrite                // store it
	dutyReply                // tell the callers that it came to nothing
	dutyTell                 // tell OnStop its end
	dutyGiveUp               // nothing can look for it: it is ambiguous
	dutyLookUp               // look for it
	dutyForget               // drop it
	dutyFreeSlot             // give its job slot back
)

// surroundings are what its next duty depends on besides the submission itself.
type surroundings struct {
	listed bool // it is still the one of its key
	closed bool // Run is ending: the rest with the next one
	known  bool // a job with its key is watched, or has ended
	now    Stamp
}

// doubted reports whether it is not known what has come of it.
func (s *submission) doubted() bool {
	return s.state == SubmissionInDoubt || s.state == SubmissionAmbiguous
}

// nextDuty says what to do next: what was found goes before the store, that before
// who has to be told, and that before the search. at is the end of a pause.
func (s *submission) nextDuty(by surroundings) (d duty, at Stamp) {
	switch {
	case !by.listed || s.route == nil:
		return dutyNone, 0
	case by.closed:
		return dutyPause, by.now
	case s.doubted() && by.known:
		return dutySettle, 0
	case s.doubted() && s.found != nil && s.found.notBefore <= by.now:
		return dutyFollowUp, 0
	case s.behind:
		return dutyWrite, 0
	case s.result != nil && s.callers > 0:
		return dutyReply, 0
	case s.outcome != nil && !s.delivered:
		return dutyFrom(s.tellAt, by.now, dutyTell)
	case s.state == SubmissionInDoubt:
		return dutyFrom(s.lookAt, by.now, s.search())
	case s.state == SubmissionTaken || s.state == SubmissionNotSent:
		return dutyForget, 0
	case s.slotHeld:
		return dutyFrom(s.slotEnds, by.now, dutyFreeSlot)
	}
	return dutyNone, 0
}

// search is how to look for a submission whose answer was lost.
func (s *submission) search() duty {
	switch {
	case s.route.reconciler != nil:
		return dutyLookUp
	case s.found != nil: // only the job that was named is asked about, later
		return dutyNone
	}
	return dutyGiveUp
}

// dutyFrom is a duty from an instant on, and a pause before it.
func dutyFrom(at, now Stamp, d duty) (duty, Stamp) {
	if at > now {
		return dutyPause, at
	}
	return d, 0
}
