package polltest

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/jobpoll/jobpoll"
)

// Fault is a way in which the answer to a request can be broken, by its word in
// a Script. Package polltest/loopback serves each of them over HTTP.
type Fault string

// The faults.
const (
	FaultReset        Fault = "reset"         // the connection is reset in the middle of the body
	FaultHang         Fault = "hang"          // no answer until the client leaves
	FaultHTML         Fault = "html"          // 502 with the HTML page of a gateway
	FaultCut          Fault = "cut"           // the connection ends in the middle of the body
	FaultGzip         Fault = "gzip"          // a body said to be gzip that is not
	FaultEndless      Fault = "endless"       // a body that does not end
	FaultRedirect     Fault = "redirect"      // 302 to another host
	FaultRedirectLoop Fault = "redirect-loop" // 302 to the same place
	FaultType         Fault = "type"          // the right body under a wrong Content-Type
	FaultEmpty        Fault = "empty"         // 200 without a body
	FaultHuge         Fault = "huge"          // the right members and one of 10 MB more
	FaultNested       Fault = "nested"        // the right members and one nested 100,000 deep more
	FaultInside       Fault = "inside"        // 200 with an error as its body
)

// Faults returns every Fault that "broken" in a Script can name.
func Faults() []Fault {
	return []Fault{
		FaultReset, FaultHang, FaultHTML, FaultCut, FaultGzip, FaultEndless, FaultRedirect, FaultRedirectLoop,
		FaultType, FaultEmpty, FaultHuge, FaultNested, FaultInside,
	}
}

// Entry is one entry of a Script, for code that plays scripts in another way
// than a Provider does. It tells a state, unless Fault, Status or Err says that
// a look fails.
type Entry struct {
	At     time.Duration // from which on it holds, since the script began
	Fault  Fault         // how the answer is broken; empty: it is not. "panic" is a FaultReset
	Status int           // of an HTTP error, 400 to 599; zero: none
	Err    bool          // a plain error

	State      jobpoll.State
	Word       string  // the provider's own word, or the message of an error; empty: none given
	Progress   float64 // 0 to 1; zero: not told
	Position   int     // in the queue, from 1 on; zero: not told
	Remaining  time.Duration
	Ref        string
	Output     json.RawMessage  // nil: none given
	Failure    *jobpoll.Failure // nil: none given
	Completed  bool             // the job was completed when the entry began
	Expires    time.Duration    // the result, since the entry began; zero: not told
	RetryAfter time.Duration    // zero: not told
	Scope      jobpoll.Scope
	Slow       time.Duration // the look takes that long
	Times      int           // how many looks it answers; zero: no limit
}

// Fails reports whether the entry is an error of the look and tells no state.
func (e Entry) Fails() bool { return e.Fault != "" || e.Status != 0 || e.Err }

// Ends reports whether the entry tells a state that a job does not leave.
func (e Entry) Ends() bool { return !e.Fails() && e.State.Terminal() }

func (st step) entry() Entry {
	e := Entry{
		At: st.at, Fault: st.fault, Err: st.what == "error",
		State: stateWords[st.what], Word: st.raw, Progress: st.percent / 100, Position: st.pos, Remaining: st.eta,
		Ref: st.ref, Output: slices.Clone(st.output), Completed: st.completed, Expires: st.expires,
		RetryAfter: st.retryAfter, Scope: scopeWords[st.scope], Slow: st.slow, Times: st.times,
	}
	if st.failure != "" {
		e.Failure = &jobpoll.Failure{Kind: failureWords[st.failure], Message: st.message}
	}
	switch {
	case st.what == "hang":
		e.Fault = FaultHang
	case st.what == "reset", st.what == "panic":
		e.Fault = FaultReset
	case isStatus(st.what):
		e.Status, _ = strconv.Atoi(st.what)
	}
	return e
}

// Entries returns the entries of the script in their order.
func (s Script) Entries() []Entry {
	all := make([]Entry, len(s.steps))
	for i, st := range s.steps {
		all[i] = st.entry()
	}
	return all
}

// Play is the performance of a Script for one job. It must not be used by
// several goroutines at once.
type Play struct {
	script Script
	used   []int // how often each entry answered
}

// Play begins a performance of the script.
func (s Script) Play() *Play { return &Play{script: s, used: make([]int, len(s.steps))} }

// Look returns the entry that answers a look at the age of the job. It counts
// as an answer for entries with "once" or a number of looks. Not ok: there is
// no such job.
func (p *Play) Look(age time.Duration) (e Entry, ok bool) {
	st, ok := p.look(age)
	return st.entry(), ok
}

func (p *Play) look(age time.Duration) (step, bool) {
	for i, st := range slices.Backward(p.script.steps) {
		if st.at <= age && p.left(i) {
			p.used[i]++
			return st, true
		}
	}
	return step{}, false
}

// State returns the state entry that holds at the age of the job, whatever
// errors a look would meet. It does not count as an answer. Not ok: no state has
// been told by then.
func (p *Play) State(age time.Duration) (e Entry, ok bool) {
	for i, st := range slices.Backward(p.script.steps) {
		if e := st.entry(); st.at <= age && p.left(i) && !e.Fails() {
			return e, true
		}
	}
	return Entry{}, false
}

// left reports whether the entry can answer another look.
func (p *Play) left(i int) bool {
	st := &p.script.steps[i]
	return st.times == 0 || p.used[i] < st.times
}
