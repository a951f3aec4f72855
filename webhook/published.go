package webhook

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"time"

	"github.com/jobpoll/jobpoll"
)

// KeysConfig says how deliveries that are signed by published keys are verified.
type KeysConfig struct {
	// Keys are the provider's. Nil: those at the address that the provider names
	// in its documents, on Clock.
	Keys *KeySet
	// Tolerance is how far the time of signing may be off, either way, its bound
	// included. Zero: DefaultTolerance. Negative is refused.
	Tolerance time.Duration
	// Clock is what that time is compared with. Nil: package time.
	Clock jobpoll.Clock
}

func (cfg KeysConfig) common(what, keysURL string) (*KeySet, times, error) {
	f := &faults{what: what}
	t := newTimes(f, cfg.Clock, cfg.Tolerance)
	if cfg.Keys == nil {
		keys, err := NewKeySet(KeySetConfig{URL: keysURL, Clock: cfg.Clock})
		f.at("Keys", err)
		cfg.Keys = keys
	}
	return cfg.Keys, t, f.join()
}

// judge adds what is wrong with the time of signing.
func (t times) judge(stamp string, err error) error {
	at, timely := unixTime(stamp)
	switch {
	case err != nil:
		return err
	case !timely:
		return ErrMalformed
	case !t.near(at):
		return ErrTimestamp
	}
	return nil
}

func anyKey(*publicKeyOf) bool { return true }

// signed verifies a signature with those keys that may have made it, and with
// newer ones if it belongs to none. Where something else is wrong already it
// does the same work on the keys that are there, and fetches none for it.
func (s *KeySet) signed(ctx context.Context, wrong error, mayBe func(*publicKeyOf) bool, message, sig []byte) (Proof, error) {
	if wrong != nil {
		if held := s.held.Load(); held != nil {
			signedBy(held.ed25519(mayBe), message, [][]byte{sig})
		}
		return Proof{}, wrong
	}
	held, err := s.keys(ctx)
	if err != nil {
		return Proof{}, err
	}
	keys := held.ed25519(mayBe)
	if signedBy(keys, message, [][]byte{sig}) {
		return Proof{Body: true}, nil
	}
	newer, err := s.newer(ctx, held)
	switch {
	case err != nil && len(keys) == 0: // the key that it names may be a new one
		return Proof{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case newer != nil && signedBy(newer.ed25519(mayBe), message, [][]byte{sig}):
		return Proof{Body: true}, nil
	}
	return Proof{}, ErrSignature
}

// ed25519 gives the keys of that kind which pass.
func (h *heldKeys) ed25519(pass func(*publicKeyOf) bool) []ed25519.PublicKey {
	var keys []ed25519.PublicKey
	for i := range h.keys {
		if k := &h.keys[i]; k.ed != nil && pass(k) {
			keys = append(keys, k.ed)
		}
	}
	return keys
}
