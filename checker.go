package jobpoll

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Checker asks the provider about one job. It is all that an adapter must have.
// What else it can do is told by further interfaces: Canceler, Fetcher,
// BatchChecker, Refresher, Reconciler.
//
// Check is called for one job at a time and for many jobs in parallel. It
// should honour ctx, which ends after Route.CheckTimeout. A pending job is a
// Report, not an error. A plain error is transient; a *CheckError says more;
// an error marked with backoff.Permanent stops the job. A panic is contained
// and counts as a transient error.
type Checker interface {
	Check(ctx context.Context, job Job) (Report, error)
}

// CheckerFunc makes a function a Checker.
type CheckerFunc func(ctx context.Context, job Job) (Report, error)

// Check calls f.
func (f CheckerFunc) Check(ctx context.Context, job Job) (Report, error) { return f(ctx, job) }

// Canceler is the optional ability to ask the provider to cancel a job. A nil
// error means that the request was taken, not that the job has ended.
type Canceler interface {
	Cancel(ctx context.Context, job Job) error
}

// Fetcher is the optional ability to get the output of a job that has
// succeeded by a second call. It is called when Check said Succeeded without
// an Output, with the Report of that look; it is charged to the budget as a
// call of its own that goes before looks, and tried again on its own errors
// without another Check: for at most MaxErrors failures in a row, and as long as
// MaxAge from the success on. The Report that it returns needs an Output and no
// State; a State that is not pending replaces that of done.
type Fetcher interface {
	Fetch(ctx context.Context, job Job, done Report) (Report, error)
}

// Refresher is the optional ability to renew credentials. After an
// ErrorAuth it is called once for all jobs of the route; a nil error makes
// them look again at once.
type Refresher interface {
	Refresh(ctx context.Context) error
}

// Reconciler looks up a job that the provider says it does not know, or whose
// submission may have been taken though its answer was lost, by whatever else
// there is: the caller's key, a list. FindingAbsent means that the provider surely
// has no such job. A list without it, or a look-up that could not be made, is
// FindingUnknown: at most a list that is known to be whole says more. Where there
// is nothing to look by it is FindingImpossible, without a call.
//
// A job that was submitted with the ClientKey is looked for several times, as
// young jobs may not be visible yet: absent counts once StopRules.MissingGrace is
// over and MissingLooks look-ups in a row have said so.
type Reconciler interface {
	Lookup(ctx context.Context, lost Lost) (Finding, error)
}

// Lost is the question to a Reconciler.
type Lost struct {
	// Job is what is known of the job; its ID is empty where it never was known.
	Job Job `json:"job"`
	// Misses is how many looks in a row found no such job.
	Misses int `json:"misses"`
	// SentAt is when a submission without an id was sent, and GivenUpAt until when its
	// request may have reached the provider: what lists are searched by. Zero for a
	// job that has an id.
	SentAt    time.Time `json:"sent_at,omitzero"`
	GivenUpAt time.Time `json:"given_up_at,omitzero"`
	// Lookups is how often such a submission was looked for before.
	Lookups int `json:"lookups,omitempty"`
}

// FindingState is the answer to a Lookup.
type FindingState uint8

// The findings. Unknown is the safe one: nothing follows from it.
const (
	FindingUnknown FindingState = iota
	FindingPresent              // the job is there
	FindingAbsent               // the job surely is not there and never was
	// FindingImpossible: there is nothing that the job could be looked for by, as where
	// a provider has a list of ids and no id was ever told. It is not looked for
	// again: a submission in doubt is ambiguous at once, as without a Reconciler.
	FindingImpossible
)

var findingNames = []string{"unknown", "present", "absent", "impossible"}

// String returns the finding's name in lower case.
func (f FindingState) String() string { return enumName(findingNames, int(f)) }

// MarshalText writes the name.
func (f FindingState) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads a name; one that is not known reads as FindingUnknown.
func (f *FindingState) UnmarshalText(b []byte) error {
	*f = FindingState(enumValue(findingNames, string(b), int(FindingUnknown)))
	return nil
}

// Finding is what a Lookup found.
type Finding struct {
	State FindingState `json:"state"`
	// ID and Ref are the provider's id and reference of a job that is present. For a
	// submission the ID is required; for a job that has one it is not used.
	ID  string `json:"id,omitempty"`
	Ref string `json:"ref,omitempty"`
	// Report is what the look-up told of the job; it may be zero.
	Report Report `json:"report"`
}

// ability finds an optional interface on a Checker or on what it wraps
// (through an Unwrap() Checker method).
func ability[T any](c Checker) (T, bool) {
	for depth := 0; c != nil && depth < 32; depth++ {
		if v, ok := c.(T); ok {
			return v, true
		}
		u, ok := c.(interface{ Unwrap() Checker })
		if !ok {
			break
		}
		c = u.Unwrap()
	}
	var none T
	return none, false
}

// DecodeOutput reads the Output of an Outcome into a T. The error names route
// and id; it is that of Outcome.Err if the job did not succeed.
func DecodeOutput[T any](o Outcome) (T, error) {
	if err := o.Err(); err != nil {
		var none T
		return none, err
	}
	v, err := decodeOutput[T](&o.Report)
	if err != nil {
		err = fmt.Errorf("jobpoll: %s: %w", o.Job.Key(), err)
	}
	return v, err
}

// DecodeReport reads the Output of a Report into a T, whatever its State: that of an
// Update, a Notice, or a look of one's own. A Report knows no job, so the error says
// what the Report tells instead; one that is pending or has failed has no Output.
func DecodeReport[T any](r Report) (T, error) {
	v, err := decodeOutput[T](&r)
	if err != nil {
		err = fmt.Errorf("jobpoll: a report (%s): %w", r, err)
	}
	return v, err
}

func decodeOutput[T any](r *Report) (v T, err error) {
	switch {
	case len(r.Output) > 0:
		if err := json.Unmarshal(r.Output, &v); err != nil {
			return v, fmt.Errorf("decoding the output: %w", err)
		}
	case r.OutputDropped:
		return v, fmt.Errorf("the output was larger than %d bytes and was dropped: fetch it from the provider", MaxOutput)
	default:
		return v, errors.New("the report carries no output")
	}
	return v, nil
}
