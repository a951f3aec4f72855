package webhook

import (
	"encoding/json"
	"log/slog"

	"github.com/jobpoll/jobpoll"
)

// text is what Err says, in one line; empty where there is none.
func (e *Event) text() string {
	if e.Err == nil {
		return ""
	}
	return jobpoll.Excerpt(e.Err.Error())
}

// MarshalJSON writes the event with Err as text, and without it where there is none:
// encoding/json makes {} of an error.
func (e Event) MarshalJSON() ([]byte, error) {
	type fields Event
	return json.Marshal(struct {
		fields
		Err string `json:",omitempty"`
	}{fields(e), e.text()})
}

// LogValue is the event for package slog, without what is zero.
func (e Event) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("route", e.Route), slog.String("result", e.Result.String())}
	for _, a := range []slog.Attr{
		slog.String("error", e.text()), slog.String("id", e.Key.ID), slog.String("client_key", e.ClientKey), slog.String("event_id", jobpoll.Excerpt(e.EventID)),
	} {
		if a.Value.String() != "" {
			attrs = append(attrs, a)
		}
	}
	if e.Trust != jobpoll.TrustHint {
		attrs = append(attrs, slog.String("trust", e.Trust.String()))
	}
	attrs = append(attrs, slog.Int("bytes", e.Bytes), slog.Duration("took", e.Took))
	return slog.GroupValue(attrs...)
}
