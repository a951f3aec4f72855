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
// Its times are whatever clock the caller gives to Observe. Fields may be read
// but are best left alone.
type Track struct {
	Version int `json:"v,omitempty"`

	// State and RawStatus are what the provider said last; Furthest is the
	// most advanced pending state so far.
	State    State `json:"state,omitempty"`
	Furthest State `json:"furthest,omitempty"`
	// End is set once an answer ended the job; it never changes then.
	End     Reason      `json:"end,omitempty"`
	Failure FailureKind `json:"failure,omitempty"`
	// ErrorKind and Message are those of the last look if it failed.
	ErrorKind ErrorKind `json:"error_kind,omitempty"`
	// FinishAt is the estimated end while an estimate holds, else zero;
	// FinishTold tells the provider's estimate from one drawn from progress;
	// Remaining is the least time left that the provider has told.
	FinishTold bool          `json:"finish_told,omitempty"`
	FinishAt   time.Time     `json:"finish_at,omitzero"`
	Remaining  time.Duration `json:"remaining,omitempty"`
	RawStatus  string        `json:"raw_status,omitempty"`
	Message    string        `json:"message,omitempty"`

	// Looks counts the answers taken in, good or not; FirstAt, LastAt and
	// GoodAt are the instants of the first, the last, and the last good one;
	// Gap is the time between the last two.
	Looks   int           `json:"looks,omitempty"`
	Gap     time.Duration `json:"gap,omitempty"`
	FirstAt time.Time     `json:"first_at,omitzero"`
	LastAt  time.Time     `json:"last_at,omitzero"`
	GoodAt  time.Time     `json:"good_at,omitzero"`
	// NotBefore is the provider's wait for the next request of this job.
	NotBefore time.Time `json:"not_before,omitzero"`

	// Unchanged counts good answers in a row without progress.
	Unchanged int `json:"unchanged,omitempty"`
	// Progress is the highest told, ProgressTold how often one was told,
	// AdvancedAt the last advance of any kind.
	Progress      float64   `json:"progress,omitempty"`
	ProgressTold  int       `json:"progress_told,omitempty"`
	AdvancedAt    time.Time `json:"advanced_at,omitzero"`
	QueuePosition int       `json:"queue_position,omitempty"`
	QueuedAt      time.Time `json:"queued_at,omitzero"`
	RunningAt     time.Time `json:"running_at,omitzero"`
	// OriginAt and Origin are the point from which progress is measured.
	OriginAt time.Time `json:"origin_at,omitzero"`
	Origin   float64   `json:"origin,omitempty"`

	// Errors counts transient errors in a row, Limited rate limits, Missing
	// unknown jobs, Unknown unknown words, NoOutput ends without an output;
	// the times are when each of these rows began. A good answer ends the
	// first three rows and a transient error that of Missing; a word that is
	// known ends that of Unknown, an answer without a word leaves it.
	Errors    int       `json:"errors,omitempty"`
	Limited   int       `json:"limited,omitempty"`
	Missing   int       `json:"missing,omitempty"`
	MissingAt time.Time `json:"missing_at,omitzero"`
	Unknown   int       `json:"unknown,omitempty"`
	UnknownAt time.Time `json:"unknown_at,omitzero"`
	NoOutput  int       `json:"no_output,omitempty"`
	AuthAt    time.Time `json:"auth_at,omitzero"`
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

// String lists the changes.
func (c Change) String() string {
	if c == 0 {
		return "none"
	}
	var s []string
	for i, n := range []string{"state", "word", "progress", "queue", "advance", "ended"} {
		if c&(1<<i) != 0 {
			s = append(s, n)
		}
	}
	return strings.Join(s, "+")
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
	c := t.observe(&r, err, now)
	return t, c
}

// observe is Observe in place: a Track is half a kilobyte.
func (t *Track) observe(r *Report, err error, now time.Time) Change {
	if t.End != ReasonNone {
		return 0
	}
	t.Version = trackVersion
	if t.Looks > 0 {
		// Wall time is good enough for a gap, and cheaper than Sub.
		t.Gap = time.Duration(max(now.UnixNano()-t.LastAt.UnixNano(), 0))
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

func (t *Track) observeError(h Hint, err error, now time.Time) Change {
	kind, eh, permanent := classify(err)
	wait := max(h.wait(), eh.wait())
	t.ErrorKind, t.Message = kind, scrubErr(err)
	t.NotBefore = time.Time{}
	switch kind {
	case ErrorRateLimited, ErrorConcurrency:
		t.Limited = addCount(t.Limited)
		// A hint is a floor: it does not cut the backoff short.
		wait = max(wait, limitBackoff(t.Limited))
	case ErrorAuth:
		if t.AuthAt.IsZero() {
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
		t.Missing, t.MissingAt = 0, time.Time{}
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

func (t *Track) observeReport(r *Report, now time.Time) Change {
	var c Change
	first := t.GoodAt.IsZero()
	t.GoodAt = now
	t.clearFailures()
	if w := r.Hint.wait(); w > 0 {
		t.NotBefore = now.Add(w)
	} else if !t.NotBefore.IsZero() {
		t.NotBefore = time.Time{}
	}

	state := r.State
	if state > StateExpired {
		state = StateUnknown
	}
	if state == StateFailed && r.Failure != nil && r.Failure.Kind == FailureNoOutput && t.NoOutput == 0 {
		// Some providers fill the output in late: one confirming look.
		t.NoOutput = 1
		t.Unknown, t.UnknownAt = 0, time.Time{}
		t.FinishAt, t.FinishTold = time.Time{}, false
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
		t.FinishAt, t.FinishTold = time.Time{}, false
		if p := clampProgress(r.Progress); p > t.Progress {
			t.Progress = p
		}
		if r.Failure != nil {
			t.Failure = r.Failure.Kind
		}
		t.End = ReasonSucceeded + Reason(state-StateSucceeded)
		return c | ChangeEnded
	}
	t.NoOutput = 0
	switch {
	case state == StateUnknown && r.RawStatus != "":
		if t.Unknown == 0 {
			t.UnknownAt = now
		}
		t.Unknown = addCount(t.Unknown)
	case state != StateUnknown && t.Unknown > 0:
		t.Unknown, t.UnknownAt = 0, time.Time{}
	}
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
	if q := r.QueuePosition; q > 0 && q != t.QueuePosition {
		c |= ChangeQueue
		if q < t.QueuePosition {
			advanced = true
		}
		t.QueuePosition = q
	}
	if better || r.Remaining > 0 || !t.FinishAt.IsZero() {
		t.estimate(r, p, better, now)
	}
	if better || advanced {
		t.Unchanged = 0
		t.AdvancedAt = now
		return c | ChangeAdvance
	}
	if t.AdvancedAt.IsZero() {
		t.AdvancedAt = now
	}
	t.Unchanged = addCount(t.Unchanged)
	return c
}

// clearFailures ends the rows of failed looks.
func (t *Track) clearFailures() {
	if t.ErrorKind != ErrorNone {
		t.ErrorKind, t.Message = ErrorNone, ""
		t.Errors, t.Limited, t.Missing = 0, 0, 0
		t.MissingAt, t.AuthAt = time.Time{}, time.Time{}
	}
}

// endKnown takes in that the job has succeeded and only its output is still to
// come: the rows of bad answers before say nothing of the calls for it.
func (t *Track) endKnown() {
	t.clearFailures()
	t.Unknown, t.UnknownAt, t.NoOutput = 0, time.Time{}, 0
}

// moveState takes a pending state in and reports whether it moved forward.
// The first answer is where a job starts from, not an advance.
func (t *Track) moveState(state State, first bool, r *Report, now time.Time) bool {
	if state != t.State {
		switch {
		case state == StateQueued && (t.QueuedAt.IsZero() || t.RunningAt.After(t.QueuedAt)):
			t.QueuedAt = now
		case state == StateRunning && (t.RunningAt.IsZero() || t.QueuedAt.After(t.RunningAt)):
			t.RunningAt = now
			if s := r.StartedAt; !s.IsZero() && s.Before(now) && now.Sub(s) < MaxRetryAfter && (first || s.After(now.Add(-t.Gap))) {
				t.RunningAt = s
			}
			t.OriginAt, t.Origin = time.Time{}, 0
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
func (t *Track) estimate(r *Report, p float64, better bool, now time.Time) {
	if !t.FinishAt.IsZero() {
		t.FinishAt, t.FinishTold = time.Time{}, false
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
	if t.OriginAt.IsZero() {
		t.OriginAt, t.Origin = now, p
		if t.State == StateRunning && t.RunningAt.Before(now) && !r.StartedAt.IsZero() && t.RunningAt.Equal(r.StartedAt) {
			// The start is known to the provider: the first figure is enough.
			t.OriginAt, t.Origin = t.RunningAt, 0
		}
	}
	if gain := p - t.Origin; gain > 0 && t.FinishAt.IsZero() {
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

func limitBackoff(n int) time.Duration { return grow(limitBase, n-1, limitCap) }

// wait is RetryAfter within its bounds.
func (h Hint) wait() time.Duration { return min(max(h.RetryAfter, 0), MaxRetryAfter) }

func clampProgress(p float64) float64 {
	if !(p > 0) { // also NaN
		return 0
	}
	return min(p, 1)
}

// addCount adds one without ever wrapping.
func addCount(n int) int {
	if n >= math.MaxInt32 {
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
