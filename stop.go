package jobpoll

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// NoLimit switches a limit of StopRules off; NoCount a count.
const (
	NoLimit time.Duration = math.MaxInt64
	NoCount int           = math.MaxInt32
)

// Defaults of StopRules.
const (
	DefaultMinAge       = 15 * time.Minute // MaxAge is never shorter by default
	DefaultUnknownAge   = 2 * time.Hour    // MaxAge where no duration is expected
	DefaultNoProgress   = 30 * time.Minute // where no duration is expected
	DefaultMaxErrors    = 10
	DefaultMissingGrace = 30 * time.Second
	DefaultMissingLooks = 3
	DefaultUnknownFor   = 10 * time.Minute
	DefaultUnknownLooks = 10
	DefaultAuthGrace    = 10 * time.Minute
)

// StopRules say when to stop watching a job that the provider has not ended.
// To stop watching is never to say that the job failed.
//
// In every field zero means the default (a zero in Route.Stop: what Config.Stop
// says), a negative value is refused by New, and NoLimit or NoCount switches
// the rule off. The rules in force when a job is first watched stay with it,
// also across restarts. But for a cool-down that outlasts the limit, one look
// always comes before a stop for time.
type StopRules struct {
	// MaxAge is the age limit, from SubmittedAt. Default: ten times Expected
	// but at least 15 min; 2 h where nothing is expected.
	MaxAge time.Duration `json:"max_age,omitempty"`
	// MaxQueued limits the time in the provider's queue. Default: NoLimit
	// (MaxAge binds).
	MaxQueued time.Duration `json:"max_queued,omitempty"`
	// MaxProcessing limits the time since the job was first seen running.
	// Default: NoLimit (MaxAge binds).
	MaxProcessing time.Duration `json:"max_processing,omitempty"`
	// NoProgress limits the time since the last advance, for jobs that have
	// told a progress at least twice. Default: three times Expected but at
	// least 15 min; 30 min where nothing is expected.
	NoProgress time.Duration `json:"no_progress,omitempty"`
	// MaxErrors is how many transient errors in a row end the watch. Rate
	// limits do not count; one good answer clears. Default: 10.
	MaxErrors int `json:"max_errors,omitempty"`
	// MissingGrace and MissingLooks: a job that the provider does not know is
	// given up after that long and that many looks in a row, whichever is
	// later. Defaults: 30 s and 3.
	MissingGrace time.Duration `json:"missing_grace,omitempty"`
	MissingLooks int           `json:"missing_looks,omitempty"`
	// UnknownFor and UnknownLooks: the same for a status word that the adapter
	// does not know. Defaults: 10 min and 10.
	UnknownFor   time.Duration `json:"unknown_for,omitempty"`
	UnknownLooks int           `json:"unknown_looks,omitempty"`
	// AuthGrace is how long refused credentials may last. Default: 10 min.
	AuthGrace time.Duration `json:"auth_grace,omitempty"`
	// CancelRemote asks the provider to cancel a job that is stopped for time
	// (age, deadline, queue, processing, progress), if the Checker is a
	// Canceler: once, for at most 5 s. The result is Outcome.RemoteCancel.
	CancelRemote bool `json:"cancel_remote,omitempty"`
}

// Reason is why a watch ended. It is an error, so that errors.Is(err,
// jobpoll.ReasonDeadline) works on what Wait and Outcome.Err return.
type Reason uint8

// The reasons.
const (
	ReasonNone            Reason = iota // still watched
	ReasonSucceeded                     // the provider: succeeded
	ReasonFailed                        // the provider: failed
	ReasonCanceled                      // the provider: canceled
	ReasonExpired                       // the provider: expired
	ReasonDeadline                      // MaxAge or Job.Deadline
	ReasonQueueLimit                    // MaxQueued
	ReasonProcessingLimit               // MaxProcessing
	ReasonNoProgress                    // NoProgress
	ReasonUnreachable                   // MaxErrors
	ReasonRateLimited                   // the provider's wait outlasts the limit
	ReasonAuth                          // AuthGrace
	ReasonInvalid                       // the provider refuses the look: invalid, or against its policy
	ReasonQuota                         // out of quota
	ReasonLost                          // no such job
	ReasonResultExpired                 // gone
	ReasonUnknownStatus                 // UnknownFor and UnknownLooks
	ReasonAmbiguous                     // a submission that the provider may have taken: see Poller.Resolve
	ReasonNotSent                       // a submission that surely came to nothing
	ReasonAbandoned                     // the caller stopped watching
	ReasonUnknown                       // a name written by a newer version
)

var reasonNames = []string{"none", "succeeded", "failed", "canceled", "expired", "deadline", "queue limit", "processing limit", "no progress",
	"unreachable", "rate limited", "auth", "invalid", "quota", "lost", "result expired", "unknown status", "ambiguous submission", "not sent", "abandoned", "unknown"}

// Reasons lists every reason for which a watch can end, in their order.
func Reasons() []Reason {
	all := make([]Reason, 0, ReasonAbandoned)
	for r := ReasonSucceeded; r <= ReasonAbandoned; r++ {
		all = append(all, r)
	}
	return all
}

// String returns the reason's name in lower case.
func (r Reason) String() string { return enumName(reasonNames, int(r)) }

// Error makes a Reason a target for errors.Is; it says no more than String, so
// that printing a Reason reads well.
func (r Reason) Error() string { return r.String() }

// MarshalText writes the name.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a name; one that is not known reads as ReasonUnknown.
func (r *Reason) UnmarshalText(b []byte) error {
	*r = Reason(enumValue(reasonNames, string(b), int(ReasonUnknown)))
	return nil
}

// Resumable reports whether the remote job may still bring a result, so that
// watching it again under the same id makes sense.
func (r Reason) Resumable() bool {
	switch r {
	case ReasonDeadline, ReasonQueueLimit, ReasonProcessingLimit, ReasonNoProgress, ReasonUnreachable, ReasonRateLimited,
		ReasonAuth, ReasonInvalid, ReasonQuota, ReasonUnknownStatus, ReasonAbandoned:
		return true
	}
	return false
}

// Advice says whether the work may be submitted anew without a second bill
// for one result. The library itself never submits again.
type Advice uint8

// The advice. Do not resubmit is the safe one.
const (
	AdviceDoNotResubmit Advice = iota
	AdviceSafe                 // the provider surely makes no result of this job
)

var adviceNames = []string{"do not resubmit", "safe"}

// String returns the advice in lower case.
func (a Advice) String() string { return enumName(adviceNames, int(a)) }

// MarshalText writes the name.
func (a Advice) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads a name; one that is not known reads as AdviceDoNotResubmit.
func (a *Advice) UnmarshalText(b []byte) error {
	*a = Advice(enumValue(adviceNames, string(b), int(AdviceDoNotResubmit)))
	return nil
}

// Via is how the end of a job became known.
type Via uint8

// The ways.
const (
	ViaUnknown Via = iota
	ViaPoll        // a look
	ViaWebhook     // a notice
	ViaLookup      // the Reconciler
	ViaLocal       // a rule or the caller, without the provider
	ViaSubmit      // the answer to the submission
)

var viaNames = []string{"unknown", "poll", "webhook", "lookup", "local", "submit"}

// String returns the way's name in lower case.
func (v Via) String() string { return enumName(viaNames, int(v)) }

// MarshalText writes the name.
func (v Via) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads a name; one that is not known reads as ViaUnknown.
func (v *Via) UnmarshalText(b []byte) error {
	*v = Via(enumValue(viaNames, string(b), int(ViaUnknown)))
	return nil
}

// Outcome is how the watch of a job ended. It is plain data and survives
// encoding/json. All its times are wall times.
type Outcome struct {
	Job Job `json:"job"`
	// State is what the provider said last; Reason why the watch ended. A job
	// whose watch ended for a deadline has not failed.
	State  State  `json:"state"`
	Reason Reason `json:"reason"`
	Report Report `json:"report"`
	// ErrorKind and Message are those of the last failed look, if the last
	// look failed, or of the caller's cause for an abandoned job.
	ErrorKind ErrorKind `json:"error_kind,omitempty"`
	Message   string    `json:"message,omitempty"`
	// Polls counts the looks at this job, fetches and look-ups included: in a batch
	// one for each of its jobs. One that a shutdown cut off is not counted.
	Polls       int       `json:"polls"`
	FirstPollAt time.Time `json:"first_poll_at,omitzero"`
	LastPollAt  time.Time `json:"last_poll_at,omitzero"`
	DetectedAt  time.Time `json:"detected_at,omitzero"`
	// RetryAt is until when the provider asked to wait, where it did; a watch
	// of the same job that begins before then keeps to it.
	RetryAt time.Time `json:"retry_at,omitzero"`
	// DetectionDelay is how long after its end the job's end was detected:
	// exact where the provider told the time of the end, else at most this
	// (the time since the last look that saw the job unfinished).
	DetectionDelay time.Duration `json:"detection_delay,omitempty"`
	DelayExact     bool          `json:"delay_exact,omitempty"`
	Via            Via           `json:"via"`
	Resubmit       Advice        `json:"resubmit,omitempty"`
	// RemoteCancel is the result of StopRules.CancelRemote: empty where the
	// provider was not asked, "ok", or the error.
	RemoteCancel string `json:"remote_cancel,omitempty"`
}

// Err returns nil iff the job succeeded, else a *StopError.
func (o Outcome) Err() error {
	if o.Reason == ReasonSucceeded {
		return nil
	}
	return &StopError{Outcome: o}
}

// StopError is an Outcome other than success, or the end of a Wait before the
// job's (Outcome.Reason is then ReasonNone and Err the cause of the context).
// It matches its Reason with errors.Is, and what Err wraps.
type StopError struct {
	Outcome Outcome `json:"outcome"`
	// Err is the cause where there is one and it is still at hand: the error
	// of the look that ended the watch or the caller's cause, for a Wait in the
	// same process, or the end of a context. Text and kind of it are in Outcome.
	Err error `json:"-"`
}

// Error names route and id, says why the watch ended and what can be done.
func (e *StopError) Error() string {
	o := e.Outcome
	s := "jobpoll: " + o.Job.Key().String() + ": "
	if o.Job.ID == "" && o.Job.ClientKey != "" { // a submission that became no job
		s = fmt.Sprintf("jobpoll: %s: submission %q: ", o.Job.Route, clip(o.Job.ClientKey, 64))
	}
	if o.Reason == ReasonNone {
		s += "waiting ended before the job did"
	} else {
		s += "stopped: " + o.Reason.String()
	}
	looks := "looks"
	if o.Polls == 1 {
		looks = "look"
	}
	s += fmt.Sprintf(" (state %s, %d %s", o.State, o.Polls, looks)
	if o.Report.RawStatus != "" {
		s += fmt.Sprintf(", provider's word %q", o.Report.RawStatus)
	}
	if o.ErrorKind != ErrorNone {
		s += ", last error " + o.ErrorKind.String()
	}
	if !o.RetryAt.IsZero() {
		s += ", provider asked to wait until " + o.RetryAt.UTC().Format(time.RFC3339)
	}
	s += ")"
	switch {
	case o.Report.Failure != nil:
		s += ": " + o.Report.Failure.String()
	case o.Message != "":
		s += ": " + strings.TrimPrefix(o.Message, "jobpoll: ")
	case e.Err != nil:
		s += ": " + strings.TrimPrefix(scrubErr(e.Err), "jobpoll: ")
	}
	switch {
	case o.Reason == ReasonNone:
		s += "; wait for the same id again, do not submit it anew"
	case o.Reason.Resumable():
		s += "; the job may still finish: watch the same id to resume, do not submit it again"
	case o.Reason == ReasonAmbiguous:
		s += "; look for it at the provider and call Resolve, do not submit it anew"
	case o.Reason == ReasonNotSent:
		s += "; the work may be submitted again"
	case o.Reason == ReasonLost:
		s += "; look for it at the provider before the work is submitted again"
	case o.Resubmit == AdviceSafe:
		s += "; no result will come: the work may be submitted again"
	}
	return s
}

// Unwrap returns the cause.
func (e *StopError) Unwrap() error { return e.Err }

// Is matches the Reason.
func (e *StopError) Is(target error) bool {
	r, ok := target.(Reason)
	return ok && r == e.Outcome.Reason
}
