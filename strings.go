package jobpoll

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// One line for people of what is told of a job, so that %v of it is one too. The
// texts may change: compare fields, and use a Key as a key.

// String names the job: "route/id", or "route: submission "client key"" before it
// has an id.
func (j Job) String() string {
	if j.ID == "" && j.ClientKey != "" {
		return printable(j.Route) + fmt.Sprintf(": submission %q", clip(j.ClientKey, 64))
	}
	return printable(j.Key().String())
}

// printable is a name as it is, but for what would end the line or steer a terminal:
// that is escaped as in Go. Ids are others' texts.
func printable(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) {
		return name
	}
	quoted := strconv.Quote(name)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// String says in one line what the provider told, with the length of the Output in
// place of it: `running "processing", 40 %, queue position 3`.
func (rep Report) String() string {
	var s said
	s.state(rep.State, rep.RawStatus)
	s.progress(rep.Progress, rep.QueuePosition)
	if rep.Remaining > 0 {
		s.add("%s left", brief(rep.Remaining))
	}
	if rep.Hint.RetryAfter > 0 {
		s.add("asks to wait %s", brief(rep.Hint.RetryAfter))
	}
	s.end(&rep)
	return s.String()
}

// String says in one line which job ended, why, and how late that was seen:
// "fal/abc: succeeded after 7 looks, found 3.2s late".
func (o Outcome) String() string {
	var s said
	s.WriteString(o.Job.String() + ": ")
	if o.Reason == ReasonNone {
		s.WriteString("not ended, ")
		s.state(o.State, o.Report.RawStatus)
	} else {
		s.WriteString(o.Reason.String())
		if !o.Reason.byProvider() {
			s.WriteString(" (" + o.State.String() + ")")
		}
	}
	s.looks(o.Polls)
	switch {
	case o.DetectionDelay <= 0:
	case o.DelayExact:
		s.add("found %s late", brief(o.DetectionDelay))
	default:
		s.add("found at most %s late", brief(o.DetectionDelay))
	}
	s.end(&o.Report)
	if o.Message != "" && o.Report.Failure == nil {
		s.WriteString(": " + Excerpt(strings.TrimPrefix(o.Message, "jobpoll: ")))
	}
	return s.String()
}

// byProvider reports whether the reason is a state that the provider told.
func (r Reason) byProvider() bool { return r >= ReasonSucceeded && r <= ReasonExpired }

// String says in one line which job it is of and how far that is, and of the last
// Update what the Outcome says.
func (u Update) String() string {
	if u.Outcome != nil {
		return u.Outcome.String()
	}
	var s said
	s.WriteString(u.Job.String() + ": ")
	s.state(u.State, u.Report.RawStatus)
	s.progress(u.Progress, u.QueuePosition)
	s.looks(u.Polls)
	return s.String()
}

// String says in one line which job it is and how far: what the Outcome says of one
// whose watch has ended, what the Submission says of one that has no id yet.
func (i JobInfo) String() string {
	switch {
	case i.Outcome != nil:
		return i.Outcome.String()
	case i.Submission != nil:
		return i.Job.String() + ": " + i.Submission.String()
	}
	var s said
	s.WriteString(i.Job.String() + ": ")
	s.state(i.State, i.RawStatus)
	s.progress(i.Progress, i.QueuePosition)
	s.looks(i.Polls)
	if i.ErrorKind != ErrorNone {
		s.add("last error %s", i.ErrorKind)
	}
	switch {
	case i.InFlight:
		s.add("a call is under way")
	case !i.NextPollAt.IsZero():
		s.add("next look at %s (%s)", instant(i.NextPollAt), i.Cause)
	}
	return s.String()
}

// String says in one line how far the submission is.
func (v SubmissionInfo) String() string {
	var s said
	s.WriteString(v.State.String())
	if v.Position > 0 {
		s.add("place %d in the line", v.Position)
	}
	if v.Reason != "" {
		s.add("%s", v.Reason)
	}
	if v.Lookups > 0 {
		s.add("looked for %s", counted(v.Lookups, "time"))
	}
	if v.Message != "" {
		s.WriteString(": " + Excerpt(strings.TrimPrefix(v.Message, "jobpoll: ")))
	}
	return s.String()
}

// String says what was decided: "look at 2026-01-02T03:04:05Z (backoff)", or
// "stop: deadline".
func (d Decision) String() string {
	switch {
	case d.Stop != ReasonNone:
		return "stop: " + d.Stop.String()
	case d.At.IsZero():
		return "no decision"
	case d.Cause == CauseParked:
		return "decide again at " + instant(d.At) + " (parked)"
	}
	return "look at " + instant(d.At) + " (" + d.Cause.String() + ")"
}

// said is one line that grows.
type said struct{ strings.Builder }

// add adds a part after a comma.
func (s *said) add(format string, args ...any) { fmt.Fprintf(s, ", "+format, args...) }

// state says the state, and the provider's word where it is another.
func (s *said) state(state State, word string) {
	s.WriteString(state.String())
	if word = Excerpt(word); word != "" && !strings.EqualFold(word, state.String()) {
		fmt.Fprintf(s, " %q", word)
	}
}

func (s *said) progress(part float64, position int) {
	if part > 0 { // not for NaN
		s.add("%d %%", int(min(part, 1)*100+1e-6))
	}
	if position > 0 {
		s.add("queue position %d", position)
	}
}

func (s *said) looks(n int) {
	if n > 0 {
		s.WriteString(" after " + counted(n, "look"))
	}
}

// end says what a Report tells of an end.
func (s *said) end(r *Report) {
	if n := len(r.Output); n > 0 {
		s.add("output of %s", counted(n, "byte"))
	}
	if r.OutputDropped {
		s.add("output dropped")
	}
	if r.Failure != nil {
		s.WriteString(": " + Excerpt(r.Failure.String()))
	}
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// brief is a duration to a tenth of a second, and a short one to the millisecond.
func brief(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
