package jobpoll

import (
	"fmt"
	"log/slog"
)

// The events of Hooks as values of a log: see log_values.go.

// LogValue is the event for package slog.
func (e LookEvent) LogValue() slog.Value {
	var g logGroup
	g.job(e.Job)
	logName(&g, "state", e.State)
	g.text("raw_status", e.RawStatus)
	logName(&g, "error_kind", e.Kind)
	g.err(e.Err)
	g.took("took", e.Took)
	g.took("late", e.Late)
	g.count("polls", e.Polls)
	g.at("at", e.At)
	return g.value()
}

// LogValue is the event for package slog.
func (e ScheduleEvent) LogValue() slog.Value {
	var g logGroup
	g.job(Job{Route: e.Key.Route, ID: e.Key.ID, ClientKey: e.ClientKey})
	g.at("at", e.At)
	logName(&g, "cause", e.Cause)
	return g.value()
}

// LogValue is that of the Outcome.
func (e StopEvent) LogValue() slog.Value { return e.Outcome.LogValue() }

// LogValue is the event for package slog.
func (e CoolEvent) LogValue() slog.Value {
	var g logGroup
	g.name("route", e.Route)
	g.name("budget", e.Budget)
	if e != (CoolEvent{}) {
		g.name("lane", e.Lane.String()) // that of looks is zero
	}
	logName(&g, "scope", e.Scope)
	logName(&g, "kind", e.Kind)
	g.at("until", e.Until)
	g.key(e.Key)
	return g.value()
}

// LogValue is the event for package slog.
func (e NoticeEvent) LogValue() slog.Value {
	var g logGroup
	g.job(Job{Route: e.Key.Route, ID: e.Key.ID, ClientKey: e.ClientKey})
	g.text("event_id", e.EventID)
	logName(&g, "kind", e.Kind)
	return g.value()
}

// LogValue is the event for package slog. Of what was told before it has the Reason.
func (e LateEvent) LogValue() slog.Value {
	var g logGroup
	g.job(e.Job)
	logName(&g, "reason", e.Outcome.Reason)
	logName(&g, "state", e.State)
	g.text("raw_status", e.Report.RawStatus)
	g.end(&e.Report)
	logName(&g, "via", e.Via)
	logName(&g, "trust", e.Trust)
	g.at("at", e.At)
	return g.value()
}

// LogValue is the event for package slog. From and To are there also where they
// are zero.
func (e CoverageEvent) LogValue() slog.Value {
	var g logGroup
	g.name("route", e.Route)
	g.add(slog.Float64("from", e.From), slog.Float64("to", e.To))
	g.at("at", e.At)
	return g.value()
}

// LogValue is the event for package slog.
func (e WordEvent) LogValue() slog.Value {
	var g logGroup
	g.job(e.Job)
	g.text("word", e.Word)
	return g.value()
}

// LogValue is the event for package slog.
func (e SubmitEvent) LogValue() slog.Value {
	var g logGroup
	g.job(e.Job)
	logName(&g, "state", e.State)
	g.err(e.Err)
	g.at("at", e.At)
	return g.value()
}

// LogValue is the event for package slog. Its Value is one line of text.
func (e PanicEvent) LogValue() slog.Value {
	var g logGroup
	g.key(e.Key)
	g.name("where", e.Where)
	g.name("value", e.text())
	g.name("stack", string(e.Stack))
	return g.value()
}

// text is the Value for people.
func (e *PanicEvent) text() string {
	if e.Value == nil {
		return ""
	}
	return Excerpt(fmt.Sprint(e.Value))
}

// LogValue is the event for package slog.
func (e StoreEvent) LogValue() slog.Value {
	var g logGroup
	g.name("op", e.Op)
	g.err(e.Err)
	return g.value()
}

// LogValue is the StoreHealth for package slog. Failing is there also where it is
// false.
func (h StoreHealth) LogValue() slog.Value {
	var g logGroup
	g.add(slog.Bool("failing", h.Failing))
	g.at("since", h.Since)
	g.err(h.Err)
	g.count("behind", h.Behind)
	g.took("age", h.Age)
	return g.value()
}

// LogValue is the event for package slog. Owner is there also where it is false.
func (e OwnerEvent) LogValue() slog.Value {
	var g logGroup
	g.add(slog.Bool("owner", e.Owner))
	g.name("name", e.Name)
	g.at("at", e.At)
	return g.value()
}

// LogValue is the event for package slog.
func (e DeliverEvent) LogValue() slog.Value {
	var g logGroup
	g.job(Job{Route: e.Key.Route, ID: e.Key.ID, ClientKey: e.ClientKey})
	logName(&g, "reason", e.Reason)
	g.count("attempt", e.Attempt)
	g.err(e.Err)
	return g.value()
}

// LogValue is the event for package slog.
func (e JumpEvent) LogValue() slog.Value {
	var g logGroup
	g.took("by", e.By)
	g.at("at", e.At)
	return g.value()
}
