package jobpoll

import (
	"context"
	"strings"

	"github.com/jobpoll/jobpoll/internal/due"
	"github.com/jobpoll/jobpoll/internal/records"
)

// SubmissionState is how far a submission has got.
type SubmissionState uint8

// The states of a submission.
const (
	SubmissionUnknown   SubmissionState = iota
	SubmissionWaiting                   // for its turn in the budget
	SubmissionSending                   // Send is under way
	SubmissionInDoubt                   // the answer does not tell whether it was taken: it is looked for
	SubmissionAmbiguous                 // looked for in vain: a person has to Resolve it
	SubmissionNotSent                   // surely nothing was bought
	SubmissionTaken                     // the provider has the job: it is watched
)

var submissionNames = []string{"unknown", "waiting", "sending", "in doubt", "ambiguous", "not sent", "taken"}

// String returns the state's name in lower case.
func (s SubmissionState) String() string { return enumName(submissionNames, int(s)) }

// MarshalText writes the name.
func (s SubmissionState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a name; one that is not known reads as SubmissionUnknown.
func (s *SubmissionState) UnmarshalText(b []byte) error {
	*s = SubmissionState(enumValue(submissionNames, string(b), int(SubmissionUnknown)))
	return nil
}

// submission is a job that has no id yet. Guarded by Poller.mu, but for what is
// fixed before it is shared: job, and send and values until Send has returned.
type submission struct {
	slot   int32
	route  *route // nil: it was stored, and its route is not configured yet
	job    Job    // without an ID until it is taken
	state  SubmissionState
	since  Stamp // of the state
	sentAt Stamp // when Send was called

	send   func(context.Context) (Sent, error)
	values context.Context         // of the caller, without its end
	waiter *waiter                 // in the budget
	cancel context.CancelCauseFunc // of Send under way
	runs   []func()                // let the Runs go that wait for it
	out    bool                    // its goroutine has not ended

	callers int // of Submit, that wait
	answer  *submitAnswer

	result   *SubmitError // it came to nothing
	taken    Job          // it came to this
	returned bool         // Send has
	doubt    doubt
	cause    error     // of the doubt, as readError gives it
	found    *sighting // a notice has named an id
	slotHeld bool      // a job slot of the budget is taken for it
	slotEnds Stamp

	outcome   *Outcome // to be told to OnStop
	attempts  int32
	hooked    bool // Hooks.Stopped has been told of outcome
	delivered bool

	rev    uint64 // of its record in the store
	behind bool   // the store does not hold what it should
	fails  int32  // of the store, in a row
	served bool   // a goroutine takes care of it
	due    Stamp  // when it has to be taken care of next; zero: not
	lookAt Stamp  // when it may be looked up next
	tellAt Stamp  // when OnStop may be called next
}

// submitAnswer is what the callers of one Submit wait for. Guarded by Poller.mu
// until done is closed.
type submitAnswer struct {
	done chan struct{}
	over bool
	job  Job
	err  error
}

// end lets the callers go. Called under the lock.
func (a *submitAnswer) end(job Job, err error) {
	if !a.over {
		a.over, a.job, a.err = true, job, err
		close(a.done)
	}
}

// reply gives the callers that wait their answer; later ones get another.
func (s *submission) reply(job Job, err error) {
	s.answer.end(job, err)
	s.answer, s.callers = &submitAnswer{done: make(chan struct{})}, 0
}

// submissions are those that are not watched jobs yet.
type submissions struct {
	table records.Table[*submission]
	byKey map[string]*submission // by ClientKey
	next  due.Queue              // those with something to do
	keys  writes[string]         // of their records

	tending int // goroutines that take care of one
}

func (t *submissions) get(client string) *submission { return t.byKey[client] }

// is reports whether a submission is still the one of its key.
func (t *submissions) is(s *submission) bool { return t.byKey[s.job.ClientKey] == s }

// add takes a submission in, in the place of one of the same key that has ended.
func (t *submissions) add(s *submission) {
	if t.byKey == nil {
		t.byKey = map[string]*submission{}
	}
	client := strings.Clone(s.job.ClientKey) // it may lie in a large text
	s.job.ClientKey = client
	slot, at := t.table.Add()
	*at, s.slot = s, slot
	t.byKey[client] = s
}

func (t *submissions) drop(s *submission) {
	if t.is(s) {
		delete(t.byKey, s.job.ClientKey)
		t.next.Remove(s.slot)
		t.table.Remove(s.slot)
	}
}

// all goes over the submissions.
func (t *submissions) all(f func(*submission)) {
	for slot := range t.table.End() {
		if at := t.table.Get(slot); at != nil && *at != nil {
			f(*at)
		}
	}
}

// newSubmission takes a new submission in. Called under the lock.
func (p *Poller) newSubmission(job Job, now Stamp) *submission {
	s := &submission{route: p.routes[job.Route], job: job, answer: &submitAnswer{done: make(chan struct{})}}
	s.job.SubmittedAt = noTime
	if old := p.submits.get(job.ClientKey); old != nil { // it came to nothing
		s.rev = old.rev
		p.unlist(old)
	}
	p.submits.add(s)
	p.setState(s, SubmissionWaiting, now)
	return s
}

// forget drops a submission, and what it has not told. Called under the lock.
func (p *Poller) forget(s *submission) {
	p.unlist(s)
	p.nothingLeft()
}

func (p *Poller) unlist(s *submission) {
	if !p.submits.is(s) {
		return
	}
	if s.outcome != nil && !s.delivered {
		p.undelivered--
	}
	p.freeSubmitSlot(s)
	p.submits.drop(s)
	if s.route != nil {
		s.route.submits[s.state]--
	}
}

// setState moves a submission on and counts it. Called under the lock.
func (p *Poller) setState(s *submission, to SubmissionState, now Stamp) {
	if s.route != nil {
		if s.state != SubmissionUnknown {
			s.route.submits[s.state]--
		}
		s.route.submits[to]++
	}
	s.state, s.since = to, now
}

// planSubmission makes a submission be taken care of at an instant. Called under the lock.
func (p *Poller) planSubmission(s *submission, at Stamp) {
	if !p.submits.is(s) {
		return
	}
	if s.due == 0 || at < s.due {
		s.due = at
	}
	if !s.served { // else once that is over
		p.submits.next.Set(s.slot, int64(s.due))
		p.wakeBy(s.due)
	}
}

// holdSubmitSlot takes a job slot for a submission that may have made a job.
func (p *Poller) holdSubmitSlot(s *submission) {
	if s.slotHeld || s.route == nil || !p.takeable(s) || !s.route.budget.limitsJobs() {
		return
	}
	s.slotHeld = true
	s.slotEnds = s.sentAt.Add(min(s.route.rules(s.job.Expected, s.job.Profile).MaxAge, MaxRetryAfter))
	s.route.budget.jobStarted()
	s.route.budget.doubts(1)
}

// freeSubmitSlot gives it back; waiters of the budget may be woken, so later.
func (p *Poller) freeSubmitSlot(s *submission) {
	if s.slotHeld {
		s.slotHeld = false
		s.route.budget.doubts(-1)
		p.giveJobSlot(s.route.budget)
	}
}

// mayBe reports whether a job that somebody watches under the submission's
// ClientKey may be what has come of it.
func (s *submission) mayBe(k Key) bool {
	switch s.state {
	case SubmissionWaiting, SubmissionSending:
		return false
	case SubmissionTaken:
		return s.taken.Key() == k
	}
	return s.job.Route == k.Route
}

// submitsLeft is how many submissions have not come to an end that was told. Called
// under the lock.
func (p *Poller) submitsLeft() int {
	n := 0
	p.submits.all(func(s *submission) {
		if s.state != SubmissionTaken && (s.state != SubmissionAmbiguous || !s.delivered) {
			n++
		}
	})
	return n
}

// nothingLeft lets those go who wait for the last job, if that is it. Called under
// the lock.
func (p *Poller) nothingLeft() {
	if len(p.drains) == 0 || p.jobs.Len() > 0 || p.undelivered > 0 {
		return
	}
	for _, rt := range p.order { // as a rule that tells, without going over each
		if n := &rt.submits; n[SubmissionWaiting]+n[SubmissionSending]+n[SubmissionInDoubt]+n[SubmissionNotSent] > 0 {
			return
		}
	}
	if p.submitsLeft() == 0 {
		p.drained(nil)
	}
}
