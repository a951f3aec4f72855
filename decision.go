package jobpoll

import (
	"time"
)

// Input is all that a decision depends on.
type Input struct {
	Job      Job
	Track    Track
	Stop     StopRules
	Guidance Guidance
	// NotBefore is the end of a cool-down that this job has to wait for. Zero: none.
	NotBefore time.Time
	// Plan is a learned schedule; nil: the table.
	Plan *Plan
	// Webhook is what is known of the webhooks of the job's route; nil: nothing.
	Webhook *WebhookOutlook
	// Price is how many times dearer than usual a look is now: gaps grow by
	// its square root, those of a learned Plan up to a price of 256. 1 or less,
	// NaN, and infinity: as usual.
	Price float64
	// Now is the instant of the decision; Rand a random number in [0, 1),
	// used for jitter only (0.5 is none; out of range counts as 0.5).
	Now  time.Time
	Rand float64
}

// Decision is what Next decided: look again at At, or stop for a reason.
type Decision struct {
	// At is when to look, never before Now; with a Stop, Now itself. A
	// decision whose Cause is CauseParked is not a look: ask Next again then.
	At    time.Time `json:"at"`
	Cause Cause     `json:"cause"`
	// Stop is ReasonNone while the job is to be watched.
	Stop Reason `json:"stop,omitempty"`
}

// Cause says in one word what set the time of a look.
type Cause uint8

// The causes.
const (
	CauseNone      Cause = iota
	CauseFirst           // the first look
	CauseBackoff         // the bucket, grown by looks without progress
	CauseLadder          // Schedule.Delays
	CausePlan            // the learned plan
	CauseEta             // the provider's Remaining
	CauseProgress        // an end estimated from progress
	CauseQueued          // queued at the provider
	CauseNear            // near the expected end
	CauseError           // after a transient error
	CauseMissing         // the provider does not know the job (yet)
	CauseAuth            // credentials refused: a probe a minute
	CauseConfirm         // done without an output: one confirming look
	CauseHint            // a wait that the provider asked for
	CauseCooldown        // a cool-down of the budget, or Job.NotBefore
	CauseFloor           // the minimum gap or the published pace
	CauseDeadline        // the last look before a limit
	CauseParked          // a wait outlasts the limit: nothing until then
	CauseEnded           // the watch ends
	CauseNotice          // a notice asked for a look (set by the Poller)
	CauseNow             // PollNow asked for a look (set by the Poller)
	CauseWake            // the clock jumped or the machine was suspended (set by the Poller)
	CauseReconcile       // the webhook should have come by then
)

var causeNames = []string{"none", "first", "backoff", "ladder", "plan", "eta", "progress", "queued", "near", "error", "missing", "auth",
	"confirm", "hint", "cooldown", "floor", "deadline", "parked", "ended", "notice", "now", "wake", "reconcile"}

// String returns the cause's name.
func (c Cause) String() string { return enumName(causeNames, int(c)) }

// MarshalText writes the name.
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads a name; one that is not known reads as CauseNone.
func (c *Cause) UnmarshalText(b []byte) error {
	*c = Cause(enumValue(causeNames, string(b), int(CauseNone)))
	return nil
}

// question is an Input as the core works on it: instants are Stamps, and what
// is large stays where it is.
type question struct {
	job       *Job // its instants are those below
	track     *Track
	stop      *StopRules
	guidance  *Guidance
	plan      *Plan
	webhook   *WebhookOutlook
	now       Stamp
	submitted Stamp
	notBefore Stamp // the job's own, before its first look
	deadline  Stamp
	closed    Stamp         // the end of a cool-down
	expected  time.Duration // zero: not known
	price     float64
	rand      float64
}

func (in *Input) question() question {
	q := question{
		job: &in.Job, track: &in.Track, stop: &in.Stop, guidance: &in.Guidance, plan: in.Plan, webhook: in.Webhook, now: StampOf(in.Now),
		expected: expected(in.Job.Expected, &in.Guidance), price: in.Price, rand: in.Rand,
	}
	// Most of these are zero most of the time.
	if t := &in.Job.SubmittedAt; !t.IsZero() {
		q.submitted = StampOf(*t)
	}
	if t := &in.Job.NotBefore; !t.IsZero() {
		q.notBefore = StampOf(*t)
	}
	if t := &in.Job.Deadline; !t.IsZero() {
		q.deadline = StampOf(*t)
	}
	if t := &in.NotBefore; !t.IsZero() {
		q.closed = StampOf(*t)
	}
	return q
}

// choice is the answer to a question: a Decision in offsets from its now.
type choice struct {
	delay time.Duration // never negative
	cause Cause
	stop  Reason
}

// expected is the duration that the schedule goes by: the job's own estimate,
// else that of the guidance; zero if there is none.
func expected(own time.Duration, g *Guidance) time.Duration {
	if own > 0 {
		return own
	}
	return max(g.Expected, 0)
}

// age is the time since the job began, never negative.
func (q *question) age() time.Duration {
	s := q.submitted
	if s == 0 {
		if s = q.track.FirstAt; s == 0 {
			return 0
		}
	}
	return max(q.now.Sub(s), 0)
}

// wait is how long the provider must not be asked; zero or less: not at all.
func (q *question) wait() (time.Duration, Cause) {
	w, c := time.Duration(0), CauseHint
	if t := q.track; t.NotBefore != 0 {
		// From a clock ahead of ours only the length of the wait is of use.
		w = min(t.NotBefore.Sub(q.now), t.NotBefore.Sub(t.LastAt))
	}
	if q.closed != 0 {
		if v := q.closed.Sub(q.now); v > w {
			w, c = v, CauseCooldown
		}
	}
	if q.track.Looks == 0 && q.notBefore != 0 {
		if v := q.notBefore.Sub(q.now); v > w {
			w, c = v, CauseCooldown
		}
	}
	return w, c
}

// Look reports whether to look at the job now: it is due, and the decision is
// neither a stop nor the end of a wait that outlasts the limit.
func (d Decision) Look(now time.Time) bool {
	return d.Stop == ReasonNone && d.Cause != CauseParked && !d.At.After(now)
}

// Err gives nil while the job is to be watched or if it succeeded, else a
// *StopError that is made from the job and its memory.
func (d Decision) Err(job Job, t Track) error {
	if d.Stop == ReasonNone || d.Stop == ReasonSucceeded {
		return nil
	}
	o := Outcome{
		Job: job, State: t.State, Reason: d.Stop,
		Report:    Report{State: t.State, RawStatus: t.RawStatus, Progress: t.Progress, QueuePosition: int(t.QueuePosition)},
		ErrorKind: t.ErrorKind, Message: t.Message, Polls: int(t.Looks),
		FirstPollAt: t.FirstAt.Time(), LastPollAt: t.LastAt.Time(), DetectedAt: d.At,
		RetryAt: t.NotBefore.Time(), Via: ViaPoll,
	}
	if t.End == ReasonNone {
		o.Via = ViaLocal
	}
	if t.Failure != FailureUnknown {
		o.Report.Failure = &Failure{Kind: t.Failure}
	}
	o.Resubmit = advice(d.Stop, t.Failure)
	return &StopError{Outcome: o}
}

// advice is what a reason alone says about submitting the work again.
func advice(r Reason, f FailureKind) Advice {
	switch {
	case r == ReasonFailed && f == FailureFault, r == ReasonExpired, r == ReasonNotSent:
		return AdviceSafe
	}
	return AdviceDoNotResubmit
}
