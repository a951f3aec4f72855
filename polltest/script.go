package polltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jobpoll/jobpoll"
)

// Script is what a Provider tells of one job over time; ParseScript reads it.
//
// Entries are separated by semicolons or line ends. Each begins with the time
// from which on it holds, until the next one; a first entry without a time
// holds from the start. Before the first entry there is no such job.
//
//	at 3s queued pos 4
//	at 8s running 20% eta 30s
//	at 12s error once
//	at 40s succeeded output {"url":"https://cdn.example/a.mp4"} completed
//
// After the time stands one of these:
//
//	queued running succeeded         the job's state
//	failed canceled expired
//	unknown                          no word for the state
//	"IN_REVIEW"                      a word that the adapter does not know
//	error                            a plain error: transient
//	reset                            the connection is reset
//	429, 503, 401, …                 any HTTP status from 400 to 599, as jobpoll.FromResponse reads it
//	panic                            the Checker panics
//	hang                             the look lasts until its context ends
//	broken html                      an answer that cannot be used: any Fault; to a Checker a plain error
//
// and then, in any order, for a state
//
//	"WORD"            the provider's own word; without it the state's name
//	20%               progress
//	pos 3             position in the queue
//	eta 30s           remaining time at the entry's instant; it counts down
//	ref X             reference, in quotes where it has spaces
//	output {"a":1}    output, in JSON
//	filtered          kind of failure: fault, rejected, filtered, quota, policy
//	                  or no-output; a message in quotes may follow
//	completed         CompletedAt is the entry's instant
//	expires 1h        the result expires that long after the entry's instant
//
// for error, panic and an HTTP status
//
//	"some text"       the message
//
// for a state and for an HTTP status
//
//	retry-after 15s   the provider asks to wait
//	job, budget       what has to wait; without it the default: for 429 and 503
//	or account        the budget node, else the job
//
// and for each of them
//
//	slow 9s           the look takes that long on the clock, then answers
//	once, x3          the entry answers only so many looks, after which what was
//	                  there before it shows again
//
// The zero Script has no entry: there is no such job.
type Script struct{ steps []step }

// step is one entry of a Script.
type step struct {
	at         time.Duration
	what       string // a word of the grammar; "" where only raw is given
	fault      Fault  // of broken
	raw        string // in quotes: the provider's own word, or the message of an error
	percent    float64
	pos        int
	eta        time.Duration
	ref        string
	output     json.RawMessage
	failure    string // a word of the grammar
	message    string // of the failure
	completed  bool
	expires    time.Duration
	retryAfter time.Duration
	scope      string // a word of the grammar
	slow       time.Duration
	times      int // 0: no limit
	given      map[string]bool
}

var (
	stateWords = map[string]jobpoll.State{
		"queued": jobpoll.StateQueued, "running": jobpoll.StateRunning, "succeeded": jobpoll.StateSucceeded, "failed": jobpoll.StateFailed,
		"canceled": jobpoll.StateCanceled, "expired": jobpoll.StateExpired, "unknown": jobpoll.StateUnknown,
	}
	failureWords = map[string]jobpoll.FailureKind{
		"fault": jobpoll.FailureFault, "rejected": jobpoll.FailureRejected, "filtered": jobpoll.FailureFiltered,
		"quota": jobpoll.FailureQuota, "policy": jobpoll.FailurePolicy, "no-output": jobpoll.FailureNoOutput,
	}
	scopeWords = map[string]jobpoll.Scope{
		"job": jobpoll.ScopeJob, "budget": jobpoll.ScopeBudget, "account": jobpoll.ScopeAccount,
	}
	errorWords = []string{"error", "reset", "panic", "hang", "broken"}
)

const expectedWhat = `a state (queued, running, succeeded, failed, canceled, expired, unknown, or a word in quotes), ` +
	`an error (error, reset, an HTTP status from 400 to 599), broken, panic or hang`

// isStatus reports whether the word is an HTTP status of an error.
func isStatus(word string) bool {
	n, err := strconv.Atoi(word)
	return err == nil && len(word) == 3 && n >= 400 && n <= 599
}

// ParseScript reads a script. An error names the entry and says what was
// expected there.
func ParseScript(text string) (Script, error) {
	var s Script
	p := scriptParser{rest: text}
	for p.skip(true); p.rest != ""; p.skip(true) {
		entry := p.rest
		st, err := p.entry(len(s.steps) == 0)
		if err == nil && len(s.steps) > 0 && st.at < s.steps[len(s.steps)-1].at {
			err = fmt.Errorf("at %v: expected a time not before that of the entry above, %v", st.at, s.steps[len(s.steps)-1].at)
		}
		if err != nil {
			return Script{}, fmt.Errorf("polltest: script entry %d (%q): %w", len(s.steps)+1, excerpt(entry), err)
		}
		s.steps = append(s.steps, st)
	}
	if len(s.steps) == 0 {
		return Script{}, errors.New("polltest: the script is empty: expected " + expectedWhat)
	}
	return s, nil
}

// excerpt is the begin of an entry, for an error.
func excerpt(text string) string {
	if i := strings.IndexAny(text, ";\n"); i >= 0 {
		text = text[:i]
	}
	if len(text) > 60 {
		text = strings.ToValidUTF8(text[:60], "") + "…"
	}
	return strings.TrimSpace(text)
}

// scriptParser reads words off the front of rest.
type scriptParser struct{ rest string }

// skip passes over spaces and, between entries, over separators.
func (p *scriptParser) skip(between bool) {
	p.rest = strings.TrimLeftFunc(p.rest, func(r rune) bool {
		separator := r == ';' || r == '\n'
		return between && separator || unicode.IsSpace(r) && !separator
	})
}

// atEnd reports whether the entry is over.
func (p *scriptParser) atEnd() bool {
	p.skip(false)
	return p.rest == "" || p.rest[0] == ';' || p.rest[0] == '\n'
}

// word reads a word, or a string in quotes.
func (p *scriptParser) word(expected string) (word string, quoted bool, err error) {
	if p.atEnd() {
		return "", false, fmt.Errorf("the entry ends: expected %s", expected)
	}
	if p.rest[0] == '"' {
		q, err := strconv.QuotedPrefix(p.rest)
		if err != nil {
			return "", false, fmt.Errorf("%s: expected a closing quote, and escapes as in Go", excerpt(p.rest))
		}
		p.rest = p.rest[len(q):]
		word, err = strconv.Unquote(q)
		return word, true, err
	}
	end := strings.IndexFunc(p.rest, func(r rune) bool { return r == ';' || unicode.IsSpace(r) })
	if end < 0 {
		end = len(p.rest)
	}
	word, p.rest = p.rest[:end], p.rest[end:]
	if !utf8.ValidString(word) {
		return "", false, fmt.Errorf("%q: expected text in UTF-8", word)
	}
	return word, false, nil
}

// duration reads a duration that is not negative.
func (p *scriptParser) duration(after string) (time.Duration, error) {
	w, quoted, err := p.word(fmt.Sprintf("a duration such as 30s after %q", after))
	if err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(w)
	if err != nil || quoted || d < 0 {
		return 0, fmt.Errorf("%s %q: expected a duration such as 30s", after, w)
	}
	return d, nil
}

// entry reads one entry.
func (p *scriptParser) entry(first bool) (step, error) {
	st := step{given: make(map[string]bool)}
	ahead := *p
	w, quoted, _ := ahead.word("")
	switch {
	case w == "at" && !quoted:
		*p = ahead
		at, err := p.duration("at")
		if err != nil {
			return st, err
		}
		st.at = at
	case !first:
		return st, fmt.Errorf("%q: expected \"at\" and a time; only the first entry can do without", w)
	}
	said := false // what
	for !p.atEnd() {
		w, quoted, err := p.word("")
		if err != nil {
			return st, err
		}
		if err := p.attribute(&st, w, quoted, &said); err != nil {
			return st, err
		}
	}
	if !said {
		return st, fmt.Errorf("nothing to tell: expected %s", expectedWhat)
	}
	return st, st.check()
}

// attribute reads one part of an entry, of which w has been read.
func (p *scriptParser) attribute(st *step, w string, quoted bool, said *bool) error {
	var err, twice error
	give := func(name string) { // a part that may be given once only
		if st.given[name] {
			twice = fmt.Errorf("%s is given twice", name)
		}
		st.given[name] = true
	}
	_, isState := stateWords[w]
	_, isFailure := failureWords[w]
	_, isScope := scopeWords[w]
	switch {
	case quoted:
		give("a word in quotes")
		st.raw, *said = w, true
	case isState, slices.Contains(errorWords, w), isStatus(w):
		if *said {
			return fmt.Errorf("%q: expected one state or error in an entry", w)
		}
		*said = true
		st.what = w
		if w == "broken" {
			return p.fault(&st.fault)
		}
	case isFailure:
		give("a kind of failure")
		st.failure = w
		if !p.atEnd() && p.rest[0] == '"' {
			st.message, _, err = p.word("")
		}
	case isScope:
		give("a scope")
		st.scope = w
	case strings.HasSuffix(w, "%"):
		give("a percentage")
		st.percent, err = strconv.ParseFloat(strings.TrimSuffix(w, "%"), 64)
		if err != nil || math.IsNaN(st.percent) || math.IsInf(st.percent, 0) || st.percent < 0 {
			return fmt.Errorf("%q: expected a percentage such as 20%%", w)
		}
	case w == "completed":
		give(w)
		st.completed = true
	case w == "once":
		give("a number of looks")
		st.times = 1
	case len(w) > 1 && w[0] == 'x' && w[1] >= '0' && w[1] <= '9':
		give("a number of looks")
		st.times, err = strconv.Atoi(w[1:])
		if err != nil || st.times < 1 {
			return fmt.Errorf("%q: expected a number of looks such as x3", w)
		}
	case w == "pos":
		give(w)
		n, _, err := p.word(`a number after "pos"`)
		if err != nil {
			return err
		}
		if st.pos, err = strconv.Atoi(n); err != nil || st.pos < 1 {
			return fmt.Errorf("pos %q: expected a number from 1 on", n)
		}
	case w == "ref":
		give(w)
		if st.ref, _, err = p.word(`a reference after "ref"`); err != nil {
			return err
		}
	case w == "output":
		give(w)
		err = p.json(&st.output)
	default:
		into, ok := map[string]*time.Duration{"eta": &st.eta, "expires": &st.expires, "retry-after": &st.retryAfter, "slow": &st.slow}[w]
		if !ok {
			if !*said {
				return fmt.Errorf("%q: expected %s", w, expectedWhat)
			}
			return fmt.Errorf("%q: expected a percentage, pos, eta, ref, output, a kind of failure, completed, expires, retry-after, "+
				"job, budget or account, slow, once or a number of looks such as x3", w)
		}
		give(w)
		*into, err = p.duration(w)
	}
	if err != nil {
		return err
	}
	return twice
}

// fault reads how an answer is broken.
func (p *scriptParser) fault(into *Fault) error {
	w, _, err := p.word(`a fault after "broken"`)
	if err != nil {
		return err
	}
	if !slices.Contains(Faults(), Fault(w)) {
		return fmt.Errorf("broken %q: expected one of %v", w, Faults())
	}
	*into = Fault(w)
	return nil
}

// json reads one JSON value.
func (p *scriptParser) json(into *json.RawMessage) error {
	p.skip(false)
	dec := json.NewDecoder(strings.NewReader(p.rest))
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("output %s: expected JSON: %w", excerpt(p.rest), err)
	}
	p.rest = p.rest[dec.InputOffset():]
	return nil
}

// check reports parts that do not go with what the entry tells.
func (st *step) check() error {
	var fits []string
	kind := "hang"
	_, isState := stateWords[st.what]
	switch {
	case isState, st.what == "":
		kind = "a state"
		fits = []string{"a word in quotes", "a percentage", "pos", "eta", "ref", "output", "a kind of failure", "completed", "expires", "retry-after", "a scope"}
	case isStatus(st.what):
		kind = "an HTTP status"
		fits = []string{"a word in quotes", "retry-after", "a scope"}
	case st.what == "error", st.what == "panic":
		kind = st.what
		fits = []string{"a word in quotes"}
	case st.what == "reset", st.what == "broken":
		kind = st.what
	}
	fits = append(fits, "slow", "a number of looks")
	var wrong []string
	for name := range st.given {
		if !slices.Contains(fits, name) {
			wrong = append(wrong, name)
		}
	}
	st.given = nil
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("%s: does not go with %s: expected %s", strings.Join(wrong, ", "), kind, strings.Join(fits, ", "))
	}
	return nil
}

// String returns the script in the same grammar, one entry after the other.
// ParseScript reads it as an equal one.
func (s Script) String() string {
	entries := make([]string, len(s.steps))
	for i, st := range s.steps {
		entries[i] = st.String()
	}
	return strings.Join(entries, "; ")
}

func (st step) String() string {
	b := []string{"at", st.at.String()}
	add := func(given bool, parts ...string) {
		if given {
			b = append(b, parts...)
		}
	}
	add(st.what != "", st.what)
	add(st.fault != "", string(st.fault))
	add(st.raw != "" || st.what == "", strconv.Quote(st.raw))
	add(st.percent != 0, strconv.FormatFloat(st.percent, 'g', -1, 64)+"%")
	add(st.pos != 0, "pos", strconv.Itoa(st.pos))
	add(st.eta != 0, "eta", st.eta.String())
	add(st.ref != "", "ref", strconv.Quote(st.ref))
	add(st.output != nil, "output", string(st.output))
	add(st.failure != "", st.failure)
	add(st.message != "", strconv.Quote(st.message))
	add(st.completed, "completed")
	add(st.expires != 0, "expires", st.expires.String())
	add(st.retryAfter != 0, "retry-after", st.retryAfter.String())
	add(st.scope != "", st.scope)
	add(st.slow != 0, "slow", st.slow.String())
	add(st.times == 1, "once")
	add(st.times > 1, "x"+strconv.Itoa(st.times))
	return strings.Join(b, " ")
}
