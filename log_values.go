package jobpoll

import (
	"fmt"
	"log/slog"
	"time"
)

// What is told of a job is made for programs: it has times that are zero and an
// Output of up to MaxOutput. As a value of a log each is a group of what a reader
// looks for, by the names that encoding/json has: nothing that is zero, of an
// Output its length alone, no Ref, and texts of others as Excerpt gives them. The
// names of a job (route, id, client_key, profile) are whole, to search by. What
// encoding/json writes is not changed by this.

// logGroup collects the attributes of a value of a log, without those that are zero.
type logGroup []slog.Attr

func (g *logGroup) add(a ...slog.Attr) { *g = append(*g, a...) }

// value is the group.
func (g *logGroup) value() slog.Value { return slog.GroupValue(*g...) }

// name adds a text as it is.
func (g *logGroup) name(key, s string) {
	if s != "" {
		g.add(slog.String(key, s))
	}
}

// text adds a text of others.
func (g *logGroup) text(key, s string) { g.name(key, Excerpt(s)) }

// err adds the text of an error.
func (g *logGroup) err(err error) { g.name("error", errorText(err)) }

func (g *logGroup) count(key string, n int) {
	if n != 0 {
		g.add(slog.Int(key, n))
	}
}

func (g *logGroup) part(key string, f float64) {
	if f != 0 {
		g.add(slog.Float64(key, f))
	}
}

func (g *logGroup) yes(key string, is bool) {
	if is {
		g.add(slog.Bool(key, true))
	}
}

func (g *logGroup) took(key string, d time.Duration) {
	if d != 0 {
		g.add(slog.Duration(key, d))
	}
}

func (g *logGroup) at(key string, t time.Time) {
	if !t.IsZero() {
		g.add(slog.Time(key, t))
	}
}

// group adds the group v; one without attributes shows nowhere.
func (g *logGroup) group(key string, v slog.Value) {
	g.add(slog.Attr{Key: key, Value: v})
}

// key adds the job that a Key names.
func (g *logGroup) key(k Key) { g.job(Job{Route: k.Route, ID: k.ID}) }

// job adds the names of a job.
func (g *logGroup) job(j Job) {
	var names logGroup
	names.names(j)
	g.group("job", names.value())
}

func (g *logGroup) names(j Job) {
	g.name("route", j.Route)
	g.name("id", j.ID)
	g.name("client_key", j.ClientKey)
	g.name("profile", j.Profile)
}

// logName adds a value of one of the vocabularies.
func logName[T interface {
	comparable
	fmt.Stringer
}](g *logGroup, key string, v T) {
	var zero T
	if v != zero {
		g.add(slog.String(key, v.String()))
	}
}

// end adds what a Report tells of an end: why it failed, and what came of it.
func (g *logGroup) end(r *Report) {
	if r.Failure != nil {
		g.text("failure", r.Failure.String())
	}
	g.count("output_bytes", len(r.Output))
	g.yes("output_dropped", r.OutputDropped)
}

// errorText is the text of an error of others; empty for nil.
func errorText(err error) string { return Excerpt(scrubErr(err)) }

// LogValue is the Job for package slog: its names, and what is set of its times.
// Its Ref is left out.
func (j Job) LogValue() slog.Value {
	var g logGroup
	g.names(j)
	g.took("expected", j.Expected)
	g.at("submitted_at", j.SubmittedAt)
	g.at("not_before", j.NotBefore)
	g.at("deadline", j.Deadline)
	return g.value()
}

// LogValue is the Report for package slog, with the length of its Output in place
// of it.
func (rep Report) LogValue() slog.Value {
	var g logGroup
	logName(&g, "state", rep.State)
	g.text("raw_status", rep.RawStatus)
	g.part("progress", rep.Progress)
	g.count("queue_position", rep.QueuePosition)
	g.took("remaining", rep.Remaining)
	g.took("retry_after", rep.Hint.RetryAfter)
	logName(&g, "scope", rep.Hint.Scope)
	g.yes("malformed_hint", rep.Hint.Malformed)
	g.at("started_at", rep.StartedAt)
	g.at("completed_at", rep.CompletedAt)
	g.at("result_expires_at", rep.ResultExpiresAt)
	g.end(&rep)
	return g.value()
}

// LogValue is the Outcome for package slog: which job, why its watch ended, after
// how many calls and how late, and of its Report the provider's word, the Failure
// and the length of the Output.
func (o Outcome) LogValue() slog.Value {
	var g logGroup
	g.job(o.Job)
	logName(&g, "reason", o.Reason)
	logName(&g, "state", o.State)
	g.text("raw_status", o.Report.RawStatus)
	g.count("polls", o.Polls)
	g.took("detection_delay", o.DetectionDelay)
	g.yes("delay_exact", o.DelayExact)
	logName(&g, "via", o.Via)
	logName(&g, "error_kind", o.ErrorKind)
	g.text("message", o.Message)
	g.end(&o.Report)
	g.at("detected_at", o.DetectedAt)
	g.at("retry_at", o.RetryAt)
	logName(&g, "resubmit", o.Resubmit)
	g.text("remote_cancel", o.RemoteCancel)
	return g.value()
}

// LogValue is the Update for package slog; of its Report it has the provider's
// word, the Failure and the length of the Output.
func (u Update) LogValue() slog.Value {
	var g logGroup
	g.job(u.Job)
	logName(&g, "state", u.State)
	logName(&g, "change", u.Change)
	g.text("raw_status", u.Report.RawStatus)
	g.part("progress", u.Progress)
	g.count("queue_position", u.QueuePosition)
	g.at("finish_at", u.FinishAt)
	g.count("polls", u.Polls)
	g.end(&u.Report)
	g.at("at", u.At)
	if u.Outcome != nil {
		g.group("outcome", u.Outcome.LogValue())
	}
	return g.value()
}

// LogValue is the JobInfo for package slog, with the Outcome and the Submission as
// theirs.
func (i JobInfo) LogValue() slog.Value {
	var g logGroup
	g.job(i.Job)
	logName(&g, "state", i.State)
	g.text("raw_status", i.RawStatus)
	g.part("progress", i.Progress)
	g.count("queue_position", i.QueuePosition)
	g.count("polls", i.Polls)
	g.at("last_poll_at", i.LastPollAt)
	g.at("next_poll_at", i.NextPollAt)
	logName(&g, "cause", i.Cause)
	g.yes("in_flight", i.InFlight)
	g.count("errors", i.Errors)
	logName(&g, "error_kind", i.ErrorKind)
	g.text("message", i.Message)
	if i.Submission != nil {
		g.group("submission", i.Submission.LogValue())
	}
	if i.Outcome != nil {
		g.group("outcome", i.Outcome.LogValue())
	}
	g.yes("delivered", i.Delivered)
	return g.value()
}

// LogValue is the SubmissionInfo for package slog.
func (v SubmissionInfo) LogValue() slog.Value {
	var g logGroup
	logName(&g, "state", v.State)
	g.at("since", v.Since)
	g.count("position", v.Position)
	g.name("reason", v.Reason)
	g.at("sent_at", v.SentAt)
	g.count("lookups", v.Lookups)
	g.at("next_lookup_at", v.NextLookupAt)
	g.text("message", v.Message)
	return g.value()
}

// LogValue is the Notice for package slog, with its Report as that is.
func (n Notice) LogValue() slog.Value {
	var g logGroup
	g.job(Job{Route: n.Key.Route, ID: n.Key.ID, ClientKey: n.ClientKey})
	g.text("event_id", n.EventID)
	g.group("report", n.Report.LogValue())
	logName(&g, "trust", n.Trust)
	g.at("at", n.At)
	return g.value()
}
