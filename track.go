package jobpoll

import (
	"errors"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cenkalti/backoff/v4"
)

// trackVersion is written into each Track; a later version reads earlier ones.
const trackVersion = 1

// Track is a job's memory: all that Schedule.Next needs to know of the looks
// so far. It is plain data, comparable, survives encoding/json, and only
// Observe changes it. The zero Track is that of a job never looked at.
//
// Its times are of whatever clock the caller gives to Observe. Fields may be
// read but are best left alone.
//
// The fields stand as they are packed best, not by subject.
type Track struct {
	// Version is 1 once there was a look.
	Version uint8 `json:"v,omitempty"`

	// State is what the provider said last.
	State State `json:"state,omitempty"`
	// Furthest is the most advanced pending State so far.
	Furthest State `json:"furthest,omitempty"`
	// End is set once an answer ended the job; it never changes then.
	End Reason `json:"end,omitempty"`
	// Failure is why the provider failed the job, if End says that it did.
	Failure FailureKind `json:"failure,omitempty"`
	// ErrorKind is that of the last look, if it failed.
	ErrorKind ErrorKind `json:"error_kind,omitempty"`
	// FinishTold: FinishAt is the provider's estimate, and not drawn from progress.
	FinishTold bool `json:"finish_told,omitempty"`
	// NoOutput: the job has ended, but its output was not there yet.
	NoOutput bool `json:"no_output,omitempty"`
	// FinishAt is the estimated end while an estimate holds, else zero.
	FinishAt Stamp `json:"finish_at,omitzero"`
	// Remaining is the least time left that the provider has told; zero: none.
	Remaining time.Duration `json:"remaining,omitempty"`
	// RawStatus is the provider's word for State, as it was told last.
	RawStatus string `json:"raw_status,omitempty"`
	// Message is the error of the last look, if it failed.
	Message string `json:"message,omitempty"`

	// FirstAt is the instant of the first answer, good or not.
	FirstAt Stamp `json:"first_at,omitzero"`
	// LastAt is the instant of the last answer, good or not.
	LastAt Stamp `json:"last_at,omitzero"`
	// GoodAt is the instant of the last good answer.
	GoodAt Stamp `json:"good_at,omitzero"`
	// Gap is the time between the last two answers.
	Gap time.Duration `json:"gap,omitempty"`
	// NotBefore is the provider's wait for the next request of this job.
	NotBefore Stamp `json:"not_before,omitzero"`

	// Progress is the highest told, 0 to 1.
	Progress float64 `json:"progress,omitempty"`
	// AdvancedAt is the last advance of any kind.
	AdvancedAt Stamp `json:"advanced_at,omitzero"`
	// QueuedAt is when the job was first seen in the queue, or back in it.
	QueuedAt Stamp `json:"queued_at,omitzero"`
	// RunningAt is when the job was first seen running, or running again after it
	// was back in the queue; the provider's own time of that where it tells one
	// that can be.
	RunningAt Stamp `json:"running_at,omitzero"`
	// OriginAt is the instant from which progress is measured.
	OriginAt Stamp `json:"origin_at,omitzero"`
	// Origin is the progress at OriginAt.
	Origin float64 `json:"origin,omitempty"`

	// Looks counts the answers taken in, good or not.
	Looks int32 `json:"looks,omitempty"`
	// Unchanged counts good answers in a row without progress.
	Unchanged int32 `json:"unchanged,omitempty"`
	// ProgressTold is how often a progress was told.
	ProgressTold int32 `json:"progress_told,omitempty"`
	// QueuePosition is the place in the provider's queue that was told last; zero:
	// none, or the job is not in it.
	QueuePosition int32 `json:"queue_position,omitempty"`

	// Errors counts transient errors in a row. A good answer ends the row.
	Errors int32 `json:"errors,omitempty"`
	// Limited counts rate limits in a row. A good answer ends the row.
	Limited int32 `json:"limited,omitempty"`
	// Missing counts answers in a row that the job is not known. A good answer
	// ends the row, and a transient error does.
	Missing int32 `json:"missing,omitempty"`
	// Unknown counts answers in a row with a word that the adapter does not know.
	// One that it knows ends the row, an answer without a word leaves it.
	Unknown int32 `json:"unknown,omitempty"`
	// MissingAt is when the row of Missing began.
	MissingAt Stamp `json:"missing_at,omitzero"`
	// UnknownAt is when the row of Unknown began.
	UnknownAt Stamp `json:"unknown_at,omitzero"`
	// AuthAt is the first refusal of credentials since the last good answer.
	AuthAt Stamp `json:"auth_at,omitzero"`
}

// Change is a set of what an answer changed. Zero: nothing that a user of the
// job would notice.
type Change uint16

// The changes. ChangeProgress covers a new highest progress only.
const (
	ChangeState    Change = 1 << iota // another State
	ChangeWord                        // another RawStatus
	ChangeProgress                    // a new highest progress
	ChangeQueue                       // another queue position
	ChangeAdvance                     // real progress of any kind: the backoff starts anew
	ChangeEnded                       // the answer ended the job
)

// Notable reports whether the change is worth an OnUpdate.
func (c Change) Notable() bool { return c&(ChangeState|ChangeWord|ChangeProgress|ChangeQueue) != 0 }

var changeNames = []string{"state", "word", "progress", "queue", "advance", "ended"}

// String lists the changes: "state+word"; "none" for zero.
func (c Change) String() string {
	var s []string
	for i, n := range changeNames {
		if c&(1<<i) != 0 {
			s = append(s, n)
		}
	}
	if s == nil {
		return "none"
	}
	return strings.Join(s, "+")
}

// MarshalText writes the names.
func (c Change) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads names as String lists them, in any order; one that is not
// known is left out.
func (c *Change) UnmarshalText(b []byte) error {
	*c = 0
	for name := range strings.SplitSeq(string(b), "+") {
		for i, n := range changeNames {
			if n == name {
				*c |= 1 << i
			}
		}
	}
	return nil
}

// Observe takes one answer into the memory: a Report, or the error of a failed
// look (the Report then only gives a hint). It is pure: now is the instant of
// the answer. Once an answer has ended the job, Observe changes nothing more.
//
// Good answers clear the counts of failures. Real progress (a new highest
// progress, a state that moved forward, a better queue position) starts the
// backoff anew; a fresh timestamp, a repeated or lower percentage, or an empty
// answer does not. The wait that an answer asks for binds the next look only.
func (t Track) Observe(r Report, err error, now time.Time) (Track, Change) {
	c := t.observeTime(&r, err, now) // this much is inlined, which saves copies
	return t, c
}

func (t *Track) observeTime(r *Report, err error, now time.Time) Change {
	return t.observe(r, err, StampOf(now))
}

// observe is Observe in place.
func (t *Track) observe(r *Report, err error, now Stamp) Change {
	if t.End != ReasonNone {
		return 0
	}
	t.Version = trackVersion
	if t.Looks > 0 {
		t.Gap = max(now.Sub(t.LastAt), 0)
	}
	t.LastAt = now
	if t.Looks == 0 {
		t.FirstAt = now
	}
	t.Looks = addCount(t.Looks)
	if err != nil {
		return t.observeError(r.Hint, err, now)
	}
	return t.observeReport(r, now)
}

func (t *Track) observeError(h Hint, err error, now Stamp) Change {
	kind, eh, permanent := classify(err)
	wait := max(h.wait(), eh.wait())
	t.ErrorKind, t.Message = kind, scrubErr(err)
	t.NotBefore = 0
	switch kind {
	case ErrorRateLimited, ErrorConcurrency:
		t.Limited = addCount(t.Limited)
		// A hint is a floor: it does not cut the backoff short.
		wait = max(wait, limitBackoff(t.Limited))
	case ErrorAuth:
		if t.AuthAt == 0 {
			t.AuthAt = now
		}
	case ErrorNoSuchJob:
		if t.Missing == 0 {
			t.MissingAt = now
		}
		t.Missing = addCount(t.Missing)
	case ErrorGone:
		t.End = ReasonResultExpired
	case ErrorQuota:
		t.End = ReasonQuota
	case ErrorInvalid, ErrorPolicy:
		t.End = ReasonInvalid
	default:
		t.Errors = addCount(t.Errors)
		// A provider in trouble is no witness for "no such job".
		t.Missing, t.MissingAt = 0, 0
	}
	if permanent && t.End == ReasonNone {
		t.End = permanentReason(kind)
	}
	if wait > 0 {
		t.NotBefore = now.Add(wait)
	}
	if t.End != ReasonNone {
		return ChangeEnded
	}
	return 0
}

func (t *Track) observeReport(r *Report, now Stamp) Change {
	var c Change
	first := t.GoodAt == 0
	t.GoodAt = now
	t.clearFailures()
	if w := r.Hint.wait(); w > 0 {
		t.NotBefore = now.Add(w)
	} else if t.NotBefore != 0 {
		t.NotBefore = 0
	}

	state := r.State
	if state > StateExpired {
		state = StateUnknown
	}
	if state == StateFailed && r.Failure != nil && r.Failure.Kind == FailureNoOutput && !t.NoOutput {
		// Some providers fill the output in late: one confirming look.
		t.NoOutput = true
		t.Unknown, t.UnknownAt = 0, 0
		t.FinishAt, t.FinishTold = 0, false
		return 0
	}
	if state != t.State {
		c |= ChangeState
	}
	if r.RawStatus != t.RawStatus {
		if w := clip(r.RawStatus, maxWord); w != t.RawStatus {
			t.RawStatus = w
			c |= ChangeWord
		}
	}
	if state.Terminal() {
		t.State, t.QueuePosition = state, 0
		t.FinishAt, t.FinishTold = 0, false
		if p := clampProgress(r.Progress); p > t.Progress {
			t.Progress = p
		}
		if r.Failure != nil {
			t.Failure = r.Failure.Kind
		}
		t.End = endReasons[state]
		return c | ChangeEnded
	}
	t.NoOutput = false
	t.countUnknown(state, r, now)
	return c | t.observePending(state, first, r, now)
}

// countUnknown keeps the row of words that nobody knows.
func (t *Track) countUnknown(state State, r *Report, now Stamp) {
	switch {
	case state == StateUnknown && r.RawStatus != "":
		if t.Unknown == 0 {
			t.UnknownAt = now
		}
		t.Unknown = addCount(t.Unknown)
	case state != StateUnknown && t.Unknown > 0:
		t.Unknown, t.UnknownAt = 0, 0
	}
}

// observePending takes in how far a job has got that has not ended.
func (t *Track) observePending(state State, first bool, r *Report, now Stamp) Change {
	var c Change
	advanced := false
	if state != t.State || state > t.Furthest {
		advanced = t.moveState(state, first, r, now)
	}
	p := clampProgress(r.Progress)
	if p > 0 {
		t.ProgressTold = addCount(t.ProgressTold)
	}
	better := p > t.Progress
	if better {
		t.Progress = p
		c |= ChangeProgress
	}
	if q := int32(min(r.QueuePosition, math.MaxInt32)); q > 0 && q != t.QueuePosition {
		c |= ChangeQueue
		if q < t.QueuePosition {
			advanced = true
		}
		t.QueuePosition = q
	}
	if better || r.Remaining > 0 || t.FinishAt != 0 {
		t.estimate(r, p, better, now)
	}
	if better || advanced {
		t.Unchanged = 0
		t.AdvancedAt = now
		return c | ChangeAdvance
	}
	if t.AdvancedAt == 0 {
		t.AdvancedAt = now
	}
	t.Unchanged = addCount(t.Unchanged)
	return c
}

// endReasons is why a watch ends when the provider tells such a State.
var endReasons = [...]Reason{
	StateSucceeded: ReasonSucceeded, StateFailed: ReasonFailed, StateCanceled: ReasonCanceled, StateExpired: ReasonExpired,
}

// clearFailures ends the rows of failed looks.
func (t *Track) clearFailures() {
	if t.ErrorKind != ErrorNone {
		t.ErrorKind, t.Message = ErrorNone, ""
		t.Errors, t.Limited, t.Missing = 0, 0, 0
		t.MissingAt, t.AuthAt = 0, 0
	}
}

// endKnown takes in that the job has succeeded and only its output is still to
// come: the rows of bad answers before say nothing of the calls for it.
func (t *Track) endKnown() {
	t.clearFailures()
	t.Unknown, t.UnknownAt, t.NoOutput = 0, 0, false
}

// moveState takes a pending state in and reports whether it moved forward.
// The first answer is where a job starts from, not an advance.
func (t *Track) moveState(state State, first bool, r *Report, now Stamp) bool {
	if state != t.State {
		switch {
		case state == StateQueued && (t.QueuedAt == 0 || t.RunningAt > t.QueuedAt):
			t.QueuedAt = now
		case state == StateRunning && (t.RunningAt == 0 || t.QueuedAt > t.RunningAt):
			t.RunningAt = now
			if s := StampOf(r.StartedAt); s != 0 && s < now && now.Sub(s) < MaxRetryAfter && (first || s > now.Add(-t.Gap)) {
				t.RunningAt = s
			}
			t.OriginAt, t.Origin = 0, 0
			t.Remaining = 0
		}
		if state == StateRunning {
			t.QueuePosition = 0 // it has left the queue
		}
		t.State = state
	}
	if state > t.Furthest {
		forward := !first
		t.Furthest = state
		return forward
	}
	return false
}

// estimate keeps FinishAt: from the provider's Remaining while it shrinks,
// else from a progress that has just moved.
func (t *Track) estimate(r *Report, p float64, better bool, now Stamp) {
	if t.FinishAt != 0 {
		t.FinishAt, t.FinishTold = 0, false
	}
	if rem := min(r.Remaining, MaxRetryAfter); rem > 0 {
		if t.Remaining == 0 || rem < t.Remaining {
			t.Remaining = rem
			t.FinishAt, t.FinishTold = now.Add(rem), true
		}
	}
	if !better {
		return
	}
	if t.OriginAt == 0 {
		t.OriginAt, t.Origin = now, p
		if t.State == StateRunning && t.RunningAt < now && !r.StartedAt.IsZero() && t.RunningAt == StampOf(r.StartedAt) {
			// The start is known to the provider: the first figure is enough.
			t.OriginAt, t.Origin = t.RunningAt, 0
		}
	}
	if gain := p - t.Origin; gain > 0 && t.FinishAt == 0 {
		left := float64(now.Sub(t.OriginAt)) * (1 - p) / gain
		if left > 0 && left < float64(MaxRetryAfter) {
			t.FinishAt = now.Add(time.Duration(left))
		}
	}
}

// classify says what an error of a Checker means. permanent is what
// backoff.Permanent marks.
func classify(err error) (kind ErrorKind, h Hint, permanent bool) {
	if ce, ok := err.(*CheckError); ok && ce != nil { // the common case, without the cost of errors.As
		kind, h = ce.Kind, ce.Hint
		err = ce.Err
	} else {
		var ce *CheckError
		if errors.As(err, &ce) && ce != nil {
			kind, h = ce.Kind, ce.Hint
		}
	}
	if err != nil {
		var pe *backoff.PermanentError
		permanent = errors.As(err, &pe)
	}
	if kind == ErrorNone || kind >= ErrorUnknown {
		kind = ErrorTransient
	}
	return kind, h, permanent
}

// permanentReason is where an error goes that the Checker marked permanent.
func permanentReason(k ErrorKind) Reason {
	switch k {
	case ErrorAuth:
		return ReasonAuth
	case ErrorNoSuchJob:
		return ReasonLost
	case ErrorRateLimited, ErrorConcurrency:
		return ReasonRateLimited
	}
	return ReasonInvalid
}

// Backoff of a rate limit that carries no hint: 2 s·2ⁿ up to 60 s.
const (
	limitBase = 2 * time.Second
	limitCap  = time.Minute
)

func limitBackoff(n int32) time.Duration { return grow(limitBase, n-1, limitCap) }

// wait is RetryAfter within its bounds.
func (h Hint) wait() time.Duration { return min(max(h.RetryAfter, 0), MaxRetryAfter) }

func clampProgress(p float64) float64 {
	if !(p > 0) { // also NaN
		return 0
	}
	return min(p, 1)
}

// addCount adds one without ever wrapping.
func addCount(n int32) int32 {
	if n == math.MaxInt32 {
		return n
	}
	return n + 1
}

// maxWord bounds the provider's own status word, in bytes.
const maxWord = 128

// clip bounds a string and makes it valid UTF-8; it copies only where it must.
func clip(s string, n int) string {
	if len(s) > n {
		s = strings.Clone(s[:n]) // not to keep the rest alive
	}
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "")
}
