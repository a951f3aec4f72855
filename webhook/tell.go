package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jobpoll/jobpoll"
)

// quiet is the least time between two warnings of a kind: who sends rubbish does
// not write the log.
const quiet = 10 * time.Second

// lastLine is when a warning of a kind was written, and how many were not since.
type lastLine struct {
	mu   sync.Mutex
	at   time.Time
	more int
}

// due reports whether a warning may be written, and how many were left out.
func (l *lastLine) due(now time.Time) (more int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.at.IsZero() && within(now, l.at, quiet) {
		l.more++
		return 0, false
	}
	more, l.more, l.at = l.more, 0, now
	return more, true
}

// tell tells the log and the Hook of a request.
func (m *mounted) tell(ctx context.Context, e Event) {
	m.log(ctx, e)
	if m.h.cfg.Hook == nil {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			m.h.cfg.Logger.Error("a hook panicked", "hook", "webhook", "route", e.Route, "panic", jobpoll.Excerpt(fmt.Sprint(v)))
		}
	}()
	m.h.cfg.Hook(e)
}

func (m *mounted) log(ctx context.Context, e Event) {
	log, level, text := m.h.cfg.Logger, slog.LevelDebug, "webhook"
	if !e.Result.good() {
		level, text = slog.LevelWarn, "webhook not taken"
	}
	if !log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("route", e.Route), slog.String("result", e.Result.String())}
	if e.Key.ID != "" {
		attrs = append(attrs, slog.String("job", e.Key.String()))
	}
	if e.EventID != "" {
		attrs = append(attrs, slog.String("event", jobpoll.Excerpt(e.EventID)))
	}
	if e.Err != nil {
		more, due := m.said[e.Result.known()].due(m.h.cfg.Clock.Now())
		if !due {
			return
		}
		attrs = append(attrs, slog.String("error", jobpoll.Excerpt(e.Err.Error())), slog.Int("more", more))
	}
	log.LogAttrs(ctx, level, text, attrs...)
}
