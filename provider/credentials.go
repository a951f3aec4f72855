package provider

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/jobpoll/jobpoll"
)

// vault keeps the secret, and asks for it once at a time whoever needs it.
type vault struct {
	ask     Credentials
	turn    chan struct{} // held while ask runs; unlike a mutex a context can leave it
	current atomic.Pointer[secret]
}

func newVault(ask Credentials) *vault {
	return &vault{ask: ask, turn: make(chan struct{}, 1)}
}

// get returns the secret that is kept, and asks for the first one.
// It is nil where there are no credentials.
func (v *vault) get(ctx context.Context) (*secret, error) {
	if s := v.current.Load(); s != nil || v.ask == nil {
		return s, nil
	}
	if err := v.renew(ctx, nil); err != nil {
		return nil, err
	}
	return v.current.Load(), nil
}

// renew asks for another secret than old, unless somebody else did meanwhile.
func (v *vault) renew(ctx context.Context, old *secret) error {
	if v.ask == nil {
		return errors.New("there are no credentials to renew")
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case v.turn <- struct{}{}:
		defer func() { <-v.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if v.current.Load() != old {
		return nil
	}
	text, err := v.ask(ctx)
	text = strings.TrimSpace(text) // as net/http sends it, and without the end of a file's line
	switch {
	case err != nil:
		return err
	case text == "":
		return errors.New("the secret is empty")
	case !validValue(text):
		return errors.New("the secret holds a line break or another control character")
	}
	v.current.Store(newSecret(text))
	return nil
}

// Refresh asks Config.Credentials for the secret anew: the engine calls it once
// for all jobs of a route after a refusal. Calls at the same time share one
// answer. Where it fails the old secret stays.
func (c *Client) Refresh(ctx context.Context) error {
	old := c.vault.current.Load()
	if err := c.vault.renew(ctx, old); err != nil {
		return &jobpoll.CheckError{Kind: jobpoll.ErrorAuth, Err: hide("credentials could not be renewed", err, old)}
	}
	return nil
}
