package polltest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// Adapter is what TestChecker has to know of an adapter: how to make one, and
// what its provider really answers.
type Adapter struct {
	// New makes the adapter as a service does, but for a provider at t; one that
	// fetches a token first is given t.Credential as that token. It is called once
	// for each check. Required.
	New func(t Target) jobpoll.Checker

	// Job gives the n-th job at a provider at base, for adapters whose jobs need
	// an id of a certain form, a Ref or a Profile. Each n, from 0, must have an
	// ID of its own, of 6 bytes or more: the kit knows the job that is asked for by
	// the ID, or the Ref, in the request. Nil: jobs with an ID and nothing else.
	Job func(base string, n int) jobpoll.Job

	// Method is the HTTP method of the status call. Empty: GET. A HEAD or GET
	// besides is always in order.
	Method string

	// Pending, Succeeded and Failed are the provider's answers about a job that
	// is queued or running, done, and failed. Required.
	Pending, Succeeded, Failed Answer

	// Canceled, Expired and Filtered are its answers about jobs that ended so
	// (a filtered one is a failed one of kind FailureFiltered), NoOutput is one
	// that says done and has nothing (FailureNoOutput). Nil: not tried.
	Canceled, Expired, Filtered, NoOutput *Answer

	// Output is the answer to the second call, of an adapter that needs one for
	// the output: the one of a jobpoll.Fetcher, or that of Check itself. Nil: an
	// ability to fetch is only tried for what it must never do.
	Output *Answer

	// Cancel is the answer to a request to cancel that was taken. Nil: an ability
	// to cancel is only tried for what it must never do.
	Cancel *Answer

	// Batch makes the answer to CheckBatch of what the provider says of some jobs,
	// each in the form of the Body of Pending, Succeeded or Failed; there may be
	// none. Each Result is compared with what Check makes of the same part: State,
	// RawStatus, Progress, QueuePosition, Failure, Output and Ref. A success without
	// the Output that Check gives is only right where the adapter is a Fetcher. Nil:
	// only what must never be is tried, and what is asked for: each job, by its ID or
	// Ref, by any method, or with an odd ID in neither request nor results. A list
	// that takes no ids is a fault: put "batch" into Skip if its lists are complete.
	Batch func(parts []string) Answer

	// Listed makes of what Check reports what CheckBatch reports of the same job,
	// for a provider whose list tells less than a look: it sets to zero what Batch
	// takes out of the parts, as r.Progress = 0. Of a success whose Output nobody can
	// fetch it makes what the adapter does, StateUnknown, say. Nil: both tell the same.
	Listed func(r jobpoll.Report) jobpoll.Report

	// Errors are answers of the provider that are errors, each with its WantKind,
	// where they differ from, or say more than, their HTTP status (see
	// jobpoll.FromResponse): a 429 for a used-up quota, a word under a 200 that
	// means that there is no such job. Where one has the status of a check of the
	// kit's own ("status-404", say), it is made instead of that.
	Errors []Answer

	// Skip has the names of checks that are not made. Each skipped check is a
	// risk that you take: say why beside it.
	Skip []string

	// Logf is told what was not tried, and why, which is no fault by itself. T.Logf
	// fits. Nil: nobody is.
	Logf func(format string, args ...any)
}

// Target is the provider that an adapter is made for.
type Target struct {
	// URL is where the provider is, "http://127.0.0.1:40000": no slash at its end.
	URL string
	// Client is for all calls. An adapter may copy and change it, but should keep
	// its Transport: the kit sees through it what a server cannot see.
	Client *http.Client
	// Credential is the secret that the adapter sends, whatever the provider calls
	// it. It is nobody's: the kit looks for places where it appears.
	Credential string
}

// Answer is one answer of the provider, as it goes over the wire.
type Answer struct {
	// Status is the HTTP status. Zero: 200.
	Status int
	// Header has the headers that matter. Without a Content-Type it is
	// application/json.
	Header http.Header
	// Body is the body. {id} in it, and in Header, stands for the id of the job,
	// and {base} for the URL of the provider.
	Body string

	// Want is what an adapter makes of it. Fields that are zero are not compared.
	// Of an Output the JSON value is compared, of a Failure kind, code, and
	// whether its message holds Message. {id} and {base} stand in Output and Ref
	// for what they stand for in Body. With the RawStatus, the provider's word in
	// Body, the kit can also try other words.
	Want jobpoll.Report
	// WantKind is the kind of error of an answer in Adapter.Errors.
	WantKind jobpoll.ErrorKind
}

// TestChecker tries an adapter to a provider over HTTP against what jobpoll
// expects of a Checker (and of a Canceler, a Fetcher and a BatchChecker, if it is one). It serves
// the provider's answers, with variations and faults, on a loopback port and
// looks at what the adapter makes of them. It returns nil, or Findings, which are
// all that was found, each with what was tried and why it matters:
//
//	err := polltest.TestChecker(polltest.Adapter{ … })
//	if err != nil {
//		t.Error(err)
//	}
//
// An Adapter that lacks what is required is another error. Run the test with
// -race too: many looks at once are a part of it. It takes about a second, on
// real time and a real network, so it does not belong into a synctest bubble.
// An adapter that hangs is left behind after some seconds, and told.
//
// It makes no request to any other machine. TestChecker may run several times
// at once.
func TestChecker(a Adapter) error {
	return testChecker(a, 5*time.Second)
}

// Checks lists the names of the checks of TestChecker, for Adapter.Skip.
func Checks() []string {
	var names []string
	for _, c := range allChecks() {
		names = append(names, c.name)
	}
	return names
}

// testChecker is TestChecker. A look that has an answer takes less than patience.
func testChecker(a Adapter, patience time.Duration) error {
	if err := a.validate(); err != nil {
		return err
	}
	if a.Logf == nil {
		a.Logf = func(string, ...any) {}
	}
	k := &kit{Adapter: a, patience: patience}
	if err := k.run(); err != nil {
		return err
	}
	if len(k.faults) == 0 {
		return nil
	}
	return k.faults
}

// shortestID is the least length of an id that does not occur in a request by
// chance.
const shortestID = 6

func (a *Adapter) validate() error {
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("polltest: Adapter."+format, args...))
	}
	if a.New == nil {
		wrong("New is missing: it makes the adapter that is tried")
	}
	for _, need := range []struct {
		name   string
		answer Answer
	}{{"Pending", a.Pending}, {"Succeeded", a.Succeeded}, {"Failed", a.Failed}} {
		if need.answer.Status == 0 && need.answer.Body == "" {
			wrong("%s is missing: give the provider's real answer", need.name)
		}
	}
	if s := a.Pending.Want.State; s.Terminal() {
		wrong("Pending.Want.State is %s, which is not pending", s)
	}
	for i, e := range a.Errors {
		if e.WantKind == jobpoll.ErrorNone || e.WantKind >= jobpoll.ErrorUnknown {
			wrong("Errors[%d].WantKind is %s: name the kind of error that it is", i, e.WantKind)
		}
	}
	for _, name := range a.Skip {
		if !slices.Contains(Checks(), name) {
			wrong("Skip has %q, which is no check; the checks are %s", name, strings.Join(Checks(), ", "))
		}
	}
	if a.Job != nil {
		first, second := a.Job("http://127.0.0.1:1", 0), a.Job("http://127.0.0.1:1", 1)
		if len(first.ID) < shortestID || first.ID == second.ID {
			wrong("Job must give each job an ID of its own, of %d bytes or more: %q and %q", shortestID, first.ID, second.ID)
		}
	}
	return errors.Join(errs...)
}

// Findings are all that TestChecker, or TestStore, found. errors.As gives one of them as a
// *Finding, and the Findings themselves.
type Findings []*Finding

// Error tells all of them, the reason of each check once.
func (f Findings) Error() string {
	var b strings.Builder
	kit, subject := "TestChecker", "adapter"
	if len(f) > 0 && f[0].ofStore {
		kit, subject = "TestStore", "store"
	}
	fmt.Fprintf(&b, "polltest: %s found %d fault(s) in the %s", kit, len(f), subject)
	for i, one := range f {
		fmt.Fprintf(&b, "\n%s", one.what())
		if i+1 == len(f) || f[i+1].Check != one.Check {
			fmt.Fprintf(&b, "\n%s", one.reason())
		}
	}
	return b.String()
}

// Unwrap gives them one by one.
func (f Findings) Unwrap() []error {
	errs := make([]error, len(f))
	for i, one := range f {
		errs[i] = one
	}
	return errs
}

// Finding is one thing that an adapter, or a store, does wrong.
type Finding struct {
	// Check is the name of the check, as in Adapter.Skip and Stores.Skip.
	Check string
	// Tried is what the provider answered, or what was asked of the adapter or the
	// store.
	Tried string
	// Did is what it made of it, Want what it should have made of it.
	Did, Want string
	// Why is why that matters, See where the documentation tells of it.
	Why, See string

	ofStore bool
}

// Error tells all of it, a line each.
func (f *Finding) Error() string { return f.what() + "\n" + f.reason() }

func (f *Finding) what() string {
	subject := "adapter"
	if f.ofStore {
		subject = "store"
	}
	return fmt.Sprintf("%s: %s\n\tthe %s: %s\n\texpected: %s", f.Check, f.Tried, subject, f.Did, f.Want)
}

func (f *Finding) reason() string { return fmt.Sprintf("\twhy: %s\n\tsee: %s", f.Why, f.See) }
