package jobpoll

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"github.com/cenkalti/backoff/v4"
)

// guard calls user code; a panic becomes an error and is reported.
func (p *Poller) guard(k Key, where string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = p.panicked(k, where, v)
		}
	}()
	return f()
}

// panicked reports a panic of user code that was recovered from.
func (p *Poller) panicked(k Key, where string, v any) error {
	stack := debug.Stack()
	text := scrub(fmt.Sprint(v))
	p.meters.panics.Add(1)
	p.log.Error("a panic was contained", "job", k.String(), "in", where, "panic", text)
	if h := p.hooks.Panicked; h != nil {
		p.hook("Panicked", k, func() { h(PanicEvent{Key: k, Where: where, Value: v, Stack: stack}) })
	}
	return &panicError{where: where, text: text}
}

// hook calls a telemetry hook; a panic in one is contained and reported, one in
// Panicked only counted.
func (p *Poller) hook(name string, k Key, f func()) {
	defer func() {
		if v := recover(); v != nil {
			stack := debug.Stack()
			p.meters.panics.Add(1)
			p.log.Error("a hook panicked", "hook", name, "job", k.String(), "panic", scrub(fmt.Sprint(v)))
			if h := p.hooks.Panicked; h != nil && name != "Panicked" {
				p.hook("Panicked", k, func() { h(PanicEvent{Key: k, Where: "Hooks." + name, Value: v, Stack: stack}) })
			}
		}
	}()
	f()
}

// guardRand gives the middle for a number whose making panics. No hook is
// called: it might draw one too.
func (p *Poller) guardRand(f func() float64) func() float64 {
	return func() (r float64) {
		defer func() {
			if v := recover(); v != nil {
				p.meters.panics.Add(1)
				p.log.Error("a panic was contained", "in", "Config.Rand", "panic", scrub(fmt.Sprint(v)))
				r = 0.5
			}
		}()
		return f()
	}
}

// guardedLog is the handler of the user's logger, with panics contained and
// counted.
type guardedLog struct {
	slog.Handler
	panics *atomic.Uint64
}

func (l *guardedLog) contain() {
	if recover() != nil {
		l.panics.Add(1)
	}
}

func (l *guardedLog) Enabled(ctx context.Context, level slog.Level) bool {
	defer l.contain()
	return l.Handler.Enabled(ctx, level)
}

func (l *guardedLog) Handle(ctx context.Context, r slog.Record) error {
	defer l.contain()
	return l.Handler.Handle(ctx, r)
}

type panicError struct{ where, text string }

func (e *panicError) Error() string { return "jobpoll: panic in " + e.where + ": " + e.text }

// lookError is the error of a look as the engine keeps it: what it means has
// been read, so that none of its methods is the user's code.
type lookError struct {
	CheckError        // kind and hint
	text       string // scrubbed
	original   error  // for the user alone
}

// originalError is the error as the user's code returned it.
func originalError(err error) error {
	if e, ok := err.(*lookError); ok {
		return e.original
	}
	return err
}

// Error is the text of the error that was read.
func (e *lookError) Error() string { return e.text }

// As lets errors.As find the kind and the hint.
func (e *lookError) As(target any) bool {
	ce, ok := target.(**CheckError)
	if ok {
		*ce = &e.CheckError
	}
	return ok
}

// Unwrap gives the mark of backoff.Permanent, if there was one.
func (e *lookError) Unwrap() error { return e.Err }

// readError reads an error of the user's code. An error whose methods panic is
// a transient one.
func readError(err error) error {
	if err == nil {
		return nil
	}
	e := &lookError{text: scrubErr(err), original: err}
	func() {
		defer func() {
			if recover() != nil {
				e.CheckError = CheckError{Kind: ErrorTransient}
			}
		}()
		kind, hint, permanent := classify(err)
		if hint.Scope > ScopeAccount {
			hint.Scope = ScopeDefault
		}
		e.Kind, e.Hint = kind, hint
		if permanent {
			e.Err = &backoff.PermanentError{Err: errors.New(e.text)}
		}
	}()
	return e
}
