package jobpoll

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// State is what the provider says of a job. Unknown is a word that the adapter
// does not know, or no word at all: the job goes on being watched.
type State uint8

// The states of a job. Queued and Running are pending; the rest but Unknown
// are terminal.
const (
	StateUnknown State = iota
	StateQueued
	StateRunning
	StateSucceeded
	StateFailed
	StateCanceled
	StateExpired
)

var stateNames = []string{"unknown", "queued", "running", "succeeded", "failed", "canceled", "expired"}

// String returns the state's name in lower case.
func (s State) String() string { return enumName(stateNames, int(s)) }

// Terminal reports whether the provider is done with the job.
func (s State) Terminal() bool { return s >= StateSucceeded && s <= StateExpired }

// MarshalText writes the name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a name; one that is not known reads as StateUnknown.
func (s *State) UnmarshalText(b []byte) error {
	*s = State(enumValue(stateNames, string(b), int(StateUnknown)))
	return nil
}

// FailureKind is why the provider failed a job.
type FailureKind uint8

// The kinds of failure.
const (
	FailureUnknown  FailureKind = iota // the provider did not say
	FailureFault                       // the provider's own fault: Outcome.Resubmit says safe
	FailureRejected                    // the input was rejected
	FailureFiltered                    // the output was filtered
	FailureQuota                       // the account is out of quota or credit
	FailurePolicy                      // not allowed for this account
	FailureNoOutput                    // done, but there is nothing: one confirming look decides
)

var failureNames = []string{"unknown", "fault", "rejected", "filtered", "quota", "policy", "no output"}

// String returns the kind's name in lower case.
func (k FailureKind) String() string { return enumName(failureNames, int(k)) }

// MarshalText writes the name.
func (k FailureKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a name; one that is not known reads as FailureUnknown.
func (k *FailureKind) UnmarshalText(b []byte) error {
	*k = FailureKind(enumValue(failureNames, string(b), int(FailureUnknown)))
	return nil
}

// ErrorKind is what a failed look means.
type ErrorKind uint8

// The kinds of error. ErrorNone in a CheckError counts as ErrorTransient.
const (
	ErrorNone        ErrorKind = iota
	ErrorTransient             // may pass: back off and look again
	ErrorRateLimited           // too many calls: the scope cools down
	ErrorConcurrency           // too many jobs at once: the scope cools down
	ErrorQuota                 // out of quota or credit: stop, resumable
	ErrorAuth                  // credentials refused: one refresh, then a slow probe
	ErrorInvalid               // the request itself is wrong: stop, resumable
	ErrorPolicy                // refused for this account: stop, resumable
	ErrorNoSuchJob             // the provider does not know the job: grace, then look it up
	ErrorGone                  // it was there and has been removed: stop
	ErrorUnknown               // a name written by a newer version
)

var errorNames = []string{"none", "transient", "rate limited", "concurrency", "quota", "auth", "invalid", "policy", "no such job", "gone", "unknown"}

// String returns the kind's name in lower case.
func (k ErrorKind) String() string { return enumName(errorNames, int(k)) }

// MarshalText writes the name.
func (k ErrorKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a name; one that is not known reads as ErrorUnknown.
func (k *ErrorKind) UnmarshalText(b []byte) error {
	*k = ErrorKind(enumValue(errorNames, string(b), int(ErrorUnknown)))
	return nil
}

// Scope is what a hint binds.
type Scope uint8

// The scopes. ScopeDefault is the safe one: the job on a pending answer, the
// budget node on a rate limit and on a 503.
const (
	ScopeDefault Scope = iota
	ScopeJob           // this job only
	ScopeBudget        // the node that the route is charged to, in the lane of the call
	ScopeAccount       // the root of that node, in the lane of the call
)

var scopeNames = []string{"default", "job", "budget", "account"}

// String returns the scope's name in lower case.
func (s Scope) String() string { return enumName(scopeNames, int(s)) }

// MarshalText writes the name.
func (s Scope) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a name; one that is not known reads as ScopeDefault.
func (s *Scope) UnmarshalText(b []byte) error {
	*s = Scope(enumValue(scopeNames, string(b), int(ScopeDefault)))
	return nil
}

// MaxRetryAfter bounds every wait that a provider can ask for. Longer ones are
// cut to it, which is still far beyond any limit of a job.
const MaxRetryAfter = 30 * 24 * time.Hour

// Hint is the provider's word on when to come back. It binds the next request
// only, and only from below: a look may be later, never earlier.
type Hint struct {
	// RetryAfter is the least wait from the moment of the answer. Zero: none.
	// Negative counts as zero, more than MaxRetryAfter as MaxRetryAfter.
	RetryAfter time.Duration `json:"retry_after,omitempty"`
	// Scope is what has to wait.
	Scope Scope `json:"scope,omitempty"`
	// Malformed tells that the answer carried a hint that could not be read
	// and was ignored; it is counted in Metrics.
	Malformed bool `json:"malformed,omitempty"`
}

// Failure is why the provider failed a job, in its own words.
type Failure struct {
	Kind    FailureKind `json:"kind"`
	Code    string      `json:"code,omitempty"`
	Message string      `json:"message,omitempty"`
}

// String returns kind, code and message in one line.
func (f Failure) String() string {
	s := f.Kind.String()
	if f.Code != "" {
		s += " " + f.Code
	}
	if f.Message != "" {
		s += ": " + f.Message
	}
	return s
}

// MaxOutput is the largest Output, in bytes, that the engine keeps. A larger
// one is dropped and Report.OutputDropped set: fetch it by its URL instead.
const MaxOutput = 4 << 20

// Report is one answer of the provider about one job, as an adapter read it.
// A pending job is an ordinary Report, not an error. The zero Report says
// nothing: state unknown.
type Report struct {
	State State `json:"state"`
	// RawStatus is the provider's own word, kept for people and for metrics.
	RawStatus string `json:"raw_status,omitempty"`
	// Progress is 0..1; 0 means not told. NaN and negative count as 0, more
	// than 1 as 1.
	Progress float64 `json:"progress,omitempty"`
	// QueuePosition is 1-based; 0 means not told. Negative counts as 0.
	QueuePosition int `json:"queue_position,omitempty"`
	// Remaining is the provider's own estimate of the time left; 0 means not
	// told. Negative counts as 0. Bound a number of seconds before it becomes a
	// Duration: a very large one overflows.
	Remaining time.Duration `json:"remaining,omitempty"`
	Hint      Hint          `json:"hint,omitzero"`
	// Ref replaces Job.Ref when it is not empty.
	Ref string `json:"ref,omitempty"`
	// StartedAt and CompletedAt are the provider's own times; zero means not told.
	StartedAt   time.Time `json:"started_at,omitzero"`
	CompletedAt time.Time `json:"completed_at,omitzero"`
	// ResultExpiresAt is when the result dies at the provider; zero: not told.
	ResultExpiresAt time.Time `json:"result_expires_at,omitzero"`
	// Failure says why, for a failed job.
	Failure *Failure `json:"failure,omitempty"`
	// Output is the result as the provider gave it, at most MaxOutput bytes.
	// The engine keeps a compact copy (no space between tokens): the same bytes
	// whether they came by look, by notice or from the store. What it hands out
	// is shared: do not change it.
	Output json.RawMessage `json:"output,omitempty"`
	// OutputDropped tells that an Output was there but too large to keep.
	OutputDropped bool `json:"output_dropped,omitempty"`
}

// CheckError is a failed look that says what it means. A Checker may return
// any error; one that is no CheckError (and not marked with backoff.Permanent)
// is transient.
type CheckError struct {
	Kind ErrorKind
	Hint Hint
	// Status is the HTTP status, 0 where there was none.
	Status int
	// Err is the cause; it may be nil.
	Err error
}

// Error says the kind, the status and the cause.
func (e *CheckError) Error() string {
	if e == nil { // returned as an error by mistake; not worth a panic
		return "jobpoll: transient"
	}
	var b strings.Builder
	b.WriteString("jobpoll: ")
	b.WriteString(e.Kind.String())
	if e.Status != 0 {
		fmt.Fprintf(&b, " (HTTP %d)", e.Status)
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(strings.TrimPrefix(e.Err.Error(), "jobpoll: "))
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *CheckError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}
