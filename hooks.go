package jobpoll

import (
	"reflect"
	"time"
)

// Hooks are the telemetry of a Poller: each is called after something has
// happened, with one event by value. A nil func costs nothing. They tell, they
// decide nothing: for results use Callbacks.
//
// A hook is called on the goroutine on which the thing happened (a look's own,
// that of Notify, that of Run), never under a lock, so it may call the Poller.
// The events of one look, notice or call come one after the other and in order;
// those of different origins may come in parallel, also for one job. A hook
// must not block for long, since that look, notice or round waits for it, nor end
// its goroutine. No answer is lost by that, and other looks go on, up to a bound: a
// look is one of Config.Workers until its Looked has returned, and no look begins
// while the hooks that follow on eight times as many looks have not. A panic in a
// hook is contained and reported to Panicked; one in Panicked is only counted. Events
// are plain values and may be kept.
type Hooks struct {
	// Looked is called after each look, good or failed.
	Looked func(LookEvent)
	// Scheduled is called when the next look of a job has been planned.
	Scheduled func(ScheduleEvent)
	// Stopped is called for each watch that ended, and for each submission whose end
	// OnStop is told of: after its outcome was stored and before OnStop, once in each
	// process that tells it. So it is called again after a restart if OnStop had not
	// taken the outcome.
	Stopped func(StopEvent)
	// RateLimited is called for each answer to a call of the Poller (a look, a
	// submission, a cancellation, a look-up) that closes a node of a budget, or
	// keeps it closed: a rate limit, a submission that met a used-up quota, and a
	// fault that may pass with a RetryAfter, like a 503. Also for a rate limit of a
	// look that holds its job alone. It is silent on what Budget.Acquire's done is
	// told, since you know that, and on cool-downs that come from the Store.
	RateLimited func(CoolEvent)
	// Noticed is called for each notice, with what became of it.
	Noticed func(NoticeEvent)
	// Late is called when the provider tells the end of a job after its watch
	// was stopped: a paid result that nobody waits for any more.
	Late func(LateEvent)
	// Coverage is called when the coverage of a route's webhooks, by which its
	// looks are planned, has moved by a fifth or more since it was last called,
	// or has gone.
	Coverage func(CoverageEvent)
	// UnknownWord is called when a job tells a status word that its adapter
	// does not know, and again only when that word changes.
	UnknownWord func(WordEvent)
	// Submitted is called when a submission waits, is being sent, is in doubt, and
	// when it has come to an end, with State telling which.
	Submitted func(SubmitEvent)
	// Panicked is called when user code has panicked and was contained.
	Panicked func(PanicEvent)
	// StoreFailed is called when the Store has returned an error.
	StoreFailed func(StoreEvent)
	// StoreChanged is called when the Store has begun to fail, and when it works
	// again.
	StoreChanged func(StoreHealth)
	// OwnerChanged is called when this Poller has become the owner of its Store,
	// and when it waits because another one is.
	OwnerChanged func(OwnerEvent)
	// Delivered is called after each call of OnStop.
	Delivered func(DeliverEvent)
	// ClockJumped is called when wall time and elapsed time have come apart: a
	// clock step or a suspended machine.
	ClockJumped func(JumpEvent)
}

// LookEvent is one look at a job.
type LookEvent struct {
	Job Job
	// State and RawStatus are what this look told; zero for a failed one.
	State     State
	RawStatus string
	// Kind and Err are ErrorNone and nil for a good look.
	Kind ErrorKind
	Err  error
	// Took is how long the call lasted, Late how long after its planned
	// instant it started; never negative.
	Took, Late time.Duration
	// At is when the look ended.
	At time.Time
	// Polls is how many looks the job has had, with this one.
	Polls int
}

// ScheduleEvent is a planned look.
type ScheduleEvent struct {
	Key       Key
	ClientKey string
	At        time.Time
	// Cause is what set the instant.
	Cause Cause
}

// StopEvent is the end of a watch.
type StopEvent struct{ Outcome Outcome }

// CoolEvent is a node and lane of a budget that is closed, or a job that waits.
type CoolEvent struct {
	// Route is that of the call.
	Route string
	// Budget is the Name of the node that is closed: that of the route's budget,
	// with ScopeAccount its root. Empty where only the job waits.
	Budget string
	// Lane is the one that is closed. The other goes on.
	Lane Lane
	// Scope is what the answer named; ScopeJob where only the job waits.
	Scope Scope
	// Kind is what the answer was: ErrorRateLimited, ErrorConcurrency, ErrorQuota,
	// or ErrorTransient for a fault that may pass.
	Kind ErrorKind
	// Until is when the node opens, or the job may be looked at again: wall time.
	Until time.Time
	// Key is the job whose answer said so, in a batch the first of them. Of a
	// submission it has the Route alone.
	Key Key
}

// NoticeKind is what became of a notice.
type NoticeKind uint8

// The kinds of notice.
const (
	NoticeUnknown   NoticeKind = iota
	NoticeApplied              // moved the job forward or ended it
	NoticeHint                 // not trusted or thin: the job is looked at
	NoticeDuplicate            // seen before
	NoticeStale                // older than what is known
	NoticeConflict             // contradicts an end that is known
	NoticeEarly                // no such job yet: parked
	NoticeDropped              // parked, then dropped: too many, or too old
	NoticeLate                 // for a job whose watch has ended
)

var noticeNames = []string{"unknown", "applied", "hint", "duplicate", "stale", "conflict", "early", "dropped", "late"}

// String returns the kind's name in lower case.
func (k NoticeKind) String() string { return enumName(noticeNames, int(k)) }

// MarshalText writes the name.
func (k NoticeKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a name; one that is not known reads as NoticeUnknown.
func (k *NoticeKind) UnmarshalText(b []byte) error {
	*k = NoticeKind(enumValue(noticeNames, string(b), int(NoticeUnknown)))
	return nil
}

// NoticeEvent is a notice and what became of it. Which of Key and ClientKey is
// set depends on the sender.
type NoticeEvent struct {
	Key       Key
	ClientKey string
	EventID   string
	Kind      NoticeKind
}

// LateEvent is an end that the provider told after the watch was stopped.
type LateEvent struct {
	Job Job
	// Outcome is what was told when the watch ended. It stays.
	Outcome Outcome
	// State and Report are what the provider says now.
	State  State
	Report Report
	Via    Via
	// Trust is that of the notice: one that is not authoritative needs a look.
	Trust Trust
	At    time.Time
}

// CoverageEvent is a change in how many ends the webhooks of a route tell.
type CoverageEvent struct {
	Route string
	// From and To are parts of the latest ends, 0 to 1. At 0 the ordinary
	// schedule holds. Where To is less, jobs that wait are brought forward.
	From, To float64
	At       time.Time
}

// WordEvent is a status word that the adapter does not know.
type WordEvent struct {
	Job  Job
	Word string
}

// SubmitEvent is a submission that has come to another state.
type SubmitEvent struct {
	// Job has an ID once the provider has it (SubmissionTaken).
	Job   Job
	State SubmissionState
	// Err is why it is in doubt, or the *SubmitError that Submit returns.
	Err error
	At  time.Time
}

// PanicEvent is a contained panic of user code.
type PanicEvent struct {
	// Key is the job it was about; zero where there is none.
	Key Key
	// Where names what was called, as it is called in Go: "Check", "CheckBatch",
	// "Fetch", "Lookup", "Refresh", "Cancel", "Send", "OnUpdate", "OnStop",
	// "Store.Load" and the other methods of it, "Hooks.Looked" and the other hooks.
	Where string
	Value any
	Stack []byte
}

// StoreEvent is a failed call of the Store.
type StoreEvent struct {
	// Op is the method: "Load", "Get", "Put", "Lease".
	Op  string
	Err error
}

// OwnerEvent tells who is the owner of the Store.
type OwnerEvent struct {
	// Owner tells that it is this Poller, which is called Name (Config.Owner).
	Owner bool
	Name  string
	At    time.Time
}

// DeliverEvent is one call of OnStop.
type DeliverEvent struct {
	Key       Key
	ClientKey string
	Reason    Reason
	// Attempt counts from 1.
	Attempt int
	// Err is nil when the outcome was taken; otherwise it is called again.
	Err error
}

// JumpEvent is a jump of the clock.
type JumpEvent struct {
	// By is positive for a jump forward.
	By time.Duration
	At time.Time
}

// JoinHooks returns Hooks that call a, then b. What is nil in both stays nil.
// A panic in a keeps b from being called for that event.
func JoinHooks(a, b Hooks) Hooks {
	return Hooks{
		Looked:       joinHook(a.Looked, b.Looked),
		Scheduled:    joinHook(a.Scheduled, b.Scheduled),
		Stopped:      joinHook(a.Stopped, b.Stopped),
		RateLimited:  joinHook(a.RateLimited, b.RateLimited),
		Noticed:      joinHook(a.Noticed, b.Noticed),
		Late:         joinHook(a.Late, b.Late),
		Coverage:     joinHook(a.Coverage, b.Coverage),
		UnknownWord:  joinHook(a.UnknownWord, b.UnknownWord),
		Submitted:    joinHook(a.Submitted, b.Submitted),
		Panicked:     joinHook(a.Panicked, b.Panicked),
		StoreFailed:  joinHook(a.StoreFailed, b.StoreFailed),
		StoreChanged: joinHook(a.StoreChanged, b.StoreChanged),
		OwnerChanged: joinHook(a.OwnerChanged, b.OwnerChanged),
		Delivered:    joinHook(a.Delivered, b.Delivered),
		ClockJumped:  joinHook(a.ClockJumped, b.ClockJumped),
	}
}

// any reports whether there is a hook at all.
func (h Hooks) any() bool {
	v := reflect.ValueOf(h)
	for i := range v.NumField() {
		if !v.Field(i).IsNil() {
			return true
		}
	}
	return false
}

// joinHook keeps a lone hook as it is, so that joining costs nothing.
func joinHook[E any](a, b func(E)) func(E) {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(e E) { a(e); b(e) }
}
