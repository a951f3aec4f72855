package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jobpoll/jobpoll"
)

// renewBefore is how long before its end a secret is renewed, but not in the first
// three quarters of its life. A source that keeps its token until shortly before
// the end gives it again, and is asked again in a fraction of what is left.
const renewBefore = 5 * time.Minute

// kept is a secret with the time in which it holds, by the wall clock.
type kept struct {
	*secret
	asked  time.Time // a clock before that was set back
	due    time.Time // to be renewed
	expiry time.Time // zero: never
}

// newKept is a secret that was asked for at that time.
func newKept(text string, asked, expiry time.Time) *kept {
	k := &kept{secret: newSecret(text), asked: asked, expiry: expiry}
	if !expiry.IsZero() {
		k.due = expiry.Add(-min(renewBefore, expiry.Sub(asked)/4))
	}
	return k
}

// later is k where it could not be renewed: half of what is left has to pass.
func (k *kept) later(now time.Time) *kept {
	l := *k
	l.asked, l.due = now, now.Add(k.expiry.Sub(now)/2)
	return &l
}

// fresh reports whether nothing is to be done yet.
func (k *kept) fresh(now time.Time) bool { return now.Before(k.due) && !now.Before(k.asked) }

// holds reports whether the secret can be sent.
func (k *kept) holds(now time.Time) bool { return now.Before(k.expiry) }

// failure is an answer that was no secret.
type failure struct{ err error }

// vault keeps the secret, and asks for it once at a time whoever needs it.
type vault struct {
	ask      TokenSource // nil: requests carry none
	clock    jobpoll.Clock
	patience time.Duration // for a secret that is not needed yet; zero and less: the context's
	turn     chan struct{} // held while ask runs; unlike a mutex a context can leave it
	current  atomic.Pointer[kept]
	failed   atomic.Pointer[failure] // the last
}

func newVault(cfg *Config) *vault {
	return &vault{ask: cfg.tokens(), clock: cfg.Clock, patience: cfg.Timeout / 2, turn: make(chan struct{}, 1)}
}

// now is the wall clock: an Expiry that was read has nothing else, and a monotonic
// reading stands still while a machine is suspended.
func (v *vault) now() time.Time { return v.clock.Now().Round(0) }

// last is the secret that was kept last; nil: none was.
func (v *vault) last() *secret {
	if k := v.current.Load(); k != nil {
		return k.secret
	}
	return nil
}

// get returns a secret that can be sent. Before its end, and after a clock was set
// back, the first to come renews it, and has the old one where that fails; the
// others do not wait. It is nil where there are no credentials.
func (v *vault) get(ctx context.Context) (*secret, error) {
	if v.ask == nil {
		return nil, nil
	}
	var old *secret
	if k := v.current.Load(); k != nil { // before the clock is read, or that might seem to have been set back
		if k.expiry.IsZero() {
			return k.secret, nil
		}
		switch now := v.now(); {
		case !k.holds(now):
			old = k.secret
		case k.fresh(now):
			return k.secret, nil
		default:
			return v.early(ctx, k, now), nil
		}
	}
	if err := v.renew(ctx, old); err != nil {
		return nil, err
	}
	return v.last(), nil
}

// early renews a secret that still holds.
func (v *vault) early(ctx context.Context, k *kept, now time.Time) *secret {
	select {
	case v.turn <- struct{}{}:
		defer func() { <-v.turn }()
	default:
		return k.secret // somebody is at it
	}
	if v.current.Load() != k {
		return v.last()
	}
	if v.patience > 0 {
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		defer end()
		defer v.clock.AfterFunc(v.patience, end).Stop()
	}
	if v.mint(ctx) != nil {
		v.current.Store(k.later(now))
	}
	return v.last()
}

// renew asks for another secret than old, unless somebody else did meanwhile: then
// it shares the answer.
func (v *vault) renew(ctx context.Context, old *secret) error {
	if v.ask == nil {
		return errors.New("there are no credentials to renew")
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	before := v.failed.Load()
	select {
	case v.turn <- struct{}{}:
		defer func() { <-v.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if v.last() != old {
		return nil
	}
	if f := v.failed.Load(); f != before {
		return f.err
	}
	err := v.mint(ctx)
	if err != nil && ctx.Err() == nil { // else it is an answer for this caller alone
		v.failed.Store(&failure{err})
	}
	return err
}

// mint asks for a secret and keeps it. It is called by who has the turn.
func (v *vault) mint(ctx context.Context) error {
	asked := v.now()
	t, err := v.ask(ctx, asked)
	text := strings.TrimSpace(t.Secret) // as net/http sends it, and without the end of a file's line
	expiry := t.Expiry.Round(0)
	switch {
	case err != nil:
		return err
	case text == "":
		return errors.New("the secret is empty")
	case !validValue(text):
		return errors.New("the secret holds a line break or another control character")
	case !expiry.IsZero() && !v.now().Before(expiry):
		return fmt.Errorf("the token has expired already, at %s: is the clock right?", expiry.UTC().Format(time.RFC3339))
	}
	v.current.Store(newKept(text, asked, expiry))
	return nil
}

// Refresh asks Config.Credentials, or Config.Tokens, for the secret anew: the engine
// calls it once for all jobs of a route after a refusal. Calls at the same time
// share one answer. Where it fails the old secret stays.
func (c *Client) Refresh(ctx context.Context) error {
	old := c.vault.last()
	if err := c.vault.renew(ctx, old); err != nil {
		return &jobpoll.CheckError{Kind: jobpoll.ErrorAuth, Err: hide("credentials could not be renewed", err, old)}
	}
	return nil
}
