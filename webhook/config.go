package webhook

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// Defaults of Config.
const (
	DefaultMaxBody = 1 << 20  // bytes
	DefaultMaxHeld = 64 << 20 // bytes
	// DefaultBodyTimeout is less than fal waits for an answer, which is 15 s.
	DefaultBodyTimeout = 10 * time.Second
	// DefaultNotifyTimeout is less than Luma and Ark wait, the least patient: 5 s.
	DefaultNotifyTimeout = 4 * time.Second
)

// Notifier takes notices over; *jobpoll.Poller is one. Nil means that the notice
// is safe; after any error the sender is asked to send it again. The context
// has Config.NotifyTimeout, and does not end when the sender hangs up.
type Notifier interface {
	Notify(ctx context.Context, n jobpoll.Notice) error
}

// Parser makes a Notice of a body that has been verified. The Route of the notice
// is filled in by the Handler, and so is EventID where the Verifier knows it.
// Trust is TrustAuthoritative where the body holds all that a look would tell.
// A notice that names no job (neither Key.ID nor ClientKey) is an event of
// another kind: it is acknowledged, and goes no further than to Route.Other.
//
// It may be called from several goroutines at once, and must copy what it keeps
// of the body.
type Parser func(body []byte, h http.Header) (jobpoll.Notice, error)

// Config is what a Handler is made of.
type Config struct {
	// Notifier takes the notices: the Poller. Required.
	Notifier Notifier
	// Routes are those that deliveries come for. At least one is required.
	Routes []Route
	// MaxBody is the most bytes of a body; a longer one is answered by 413 without
	// reading on. Zero: 1 MiB. Negative is refused.
	MaxBody int64
	// MaxHeld is the most bytes of bodies in hand at one time, over all routes:
	// what comes while there are more is answered by 503. A body is in hand until
	// its answer is written, however long the Hook takes. Zero: 64 MiB. Negative
	// is refused, as is less than MaxBody.
	MaxHeld int64
	// BodyTimeout bounds how long a body may take to come, on Clock, where the
	// http.ResponseWriter can end a read. Zero: 10 s. Negative: the timeouts of
	// the http.Server alone hold; set those anyway, as they bound the headers too.
	BodyTimeout time.Duration
	// NotifyTimeout bounds Notify, on Clock. Zero: 4 s. Negative: no bound.
	NotifyTimeout time.Duration
	// Clock is the Poller's. Nil: package time.
	Clock jobpoll.Clock
	// Hook, if not nil, is told of each request after it was answered, in the
	// goroutine of the request. A panic in it is contained.
	Hook func(Event)
	// Logger gets what went wrong as warnings, one in ten seconds for a route and
	// a Result, and the rest at the level of debugging; never a secret or a
	// signature. Nil: nothing is logged.
	Logger *slog.Logger
}

// Route is where the deliveries for a route of the Poller come in.
type Route struct {
	// Path is a pattern of http.ServeMux without a method: "/hooks/replicate", or
	// "/hooks/luma/{token}". Empty, where there is one Route only: any path.
	Path string
	// Name is the name of the jobpoll.Route. Required; several paths may lead to one.
	Name string
	// Verifier says what is genuine. Required: there is none that lets all pass.
	Verifier Verifier
	// Parse makes a notice of a body. Required; package provider has those of its
	// adapters.
	Parse Parser
	// Trust is how far notices are believed. Zero: each is a hint, upon which the
	// Poller looks at once and believes the look. TrustAuthoritative: a notice
	// that Parse says is whole, in a body that is signed, is believed like a look.
	// It is refused with a Verifier that proves nothing of the body.
	Trust jobpoll.Trust
	// Challenge, if not nil, looks whether a delivery that was verified is the
	// provider's question whether this is the right place; if so it gives the
	// JSON that answers it. EchoChallenge is MiniMax'.
	Challenge func(body []byte) (answer []byte, ok bool)
	// ClientKey, if not empty, names the parameter of the URL's query, or the
	// wildcard of Path, that holds the job's ClientKey: put it into the URL that
	// you submit. It is not signed, so that it counts only where Parse gives
	// none, and never more than the id in the body.
	ClientKey string
	// Other, if not nil, serves deliveries that were verified and are about no job,
	// in place of an empty 200. It can read the body again.
	Other http.Handler
}

// withDefaults fills what is not set; f collects the faults.
func (cfg Config) withDefaults(f *faults) Config {
	if cfg.Notifier == nil {
		f.add("Notifier", "it is nil: give it the Poller")
	}
	if cfg.MaxBody < 0 {
		f.add("MaxBody", "%d is negative", cfg.MaxBody)
	}
	cfg.MaxBody = cmp.Or(cfg.MaxBody, DefaultMaxBody)
	cfg.MaxHeld = cmp.Or(cfg.MaxHeld, max(DefaultMaxHeld, cfg.MaxBody))
	if cfg.MaxHeld < cfg.MaxBody {
		f.add("MaxHeld", "%d is less than the %d bytes of one body", cfg.MaxHeld, cfg.MaxBody)
	}
	cfg.BodyTimeout = cmp.Or(cfg.BodyTimeout, DefaultBodyTimeout)
	cfg.NotifyTimeout = cmp.Or(cfg.NotifyTimeout, DefaultNotifyTimeout)
	if cfg.Clock == nil {
		cfg.Clock = jobpoll.SystemClock()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if len(cfg.Routes) == 0 {
		f.add("Routes", "there is none")
	}
	return cfg
}

// check adds the faults of a Route.
func (rt *Route) check(f *faults, at string, alone bool) {
	if rt.Name == "" {
		f.add(at+".Name", "it is empty: which route of the Poller is it?")
	}
	switch path := rt.Path; {
	case path == "" && !alone:
		f.add(at+".Path", "it is empty, and there are other routes")
	case strings.ContainsAny(path, " \t"):
		f.add(at+".Path", "%q holds a method or a space", path)
	}
	if rt.Verifier == nil {
		f.at(at+".Verifier", errNoKey)
	}
	if rt.Parse == nil {
		f.add(at+".Parse", "it is nil")
	}
	if h, ok := rt.Verifier.(interface{ hintOnly() string }); ok && rt.Trust == jobpoll.TrustAuthoritative {
		f.add(at+".Trust", "a notice cannot be believed: %s", h.hintOnly())
	}
}

// handle adds a handler to a mux; the error is what the mux panics with.
func handle(mux *http.ServeMux, pattern string, h http.Handler) (err error) {
	defer func() {
		if v := recover(); v != nil { // its text has the place in the source, and lines
			err = fmt.Errorf("%q is no pattern of http.ServeMux, or is that of another route", pattern)
		}
	}()
	mux.Handle(pattern, h)
	return nil
}
