package provider

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"
)

// Token is a secret that runs out.
type Token struct {
	// Secret is what requests carry; white space around it is cut off.
	Secret string `json:"-"`
	// Expiry is when it runs out, by the wall clock. Zero: never.
	Expiry time.Time
}

// Format prints the Expiry, and an ellipsis for the secret, whatever the verb.
func (t Token) Format(w fmt.State, _ rune) {
	fmt.Fprintf(w, "provider.Token(%s, %s)", redacted, t.Expiry.Format(time.RFC3339))
}

// TokenSource gives a Token that holds for a while yet: it signs one, or asks who
// gives them. now is the time on Config.Clock, to which a life ("expires_in") is
// added. It is called by one goroutine at a time, has to return when ctx ends, and
// must not call the Client.
//
// A source of golang.org/x/oauth2, which gives access tokens of Google and of
// Azure, is one by
//
//	func(context.Context, time.Time) (provider.Token, error) {
//		t, err := source.Token()
//		if err != nil {
//			return provider.Token{}, err
//		}
//		return provider.Token{Secret: t.AccessToken, Expiry: t.Expiry}, nil
//	}
type TokenSource func(ctx context.Context, now time.Time) (Token, error)

// noToken is the TokenSource of a key that is empty, which NewClient refuses.
func noToken(context.Context, time.Time) (Token, error) { return Token{}, errNoSecret }

// empty reports whether s is noToken, without calling it.
func (s TokenSource) empty() bool {
	return reflect.ValueOf(s).Pointer() == reflect.ValueOf(noToken).Pointer()
}

// tokens makes a TokenSource of what cfg has; nil: it has no credentials.
func (cfg *Config) tokens() TokenSource {
	if ask := cfg.Credentials; ask != nil {
		return func(ctx context.Context, _ time.Time) (Token, error) {
			text, err := ask(ctx)
			return Token{Secret: text}, err
		}
	}
	return cfg.Tokens
}

// credentialFaults are what is wrong with Credentials and Tokens.
func (cfg *Config) credentialFaults() []error {
	var faults []error
	if cfg.Credentials != nil && cfg.Tokens != nil {
		faults = append(faults, errors.New("jobpoll: provider.Config.Tokens: set it or Credentials, not both"))
	}
	if cfg.Credentials.empty() {
		faults = append(faults, fmt.Errorf("jobpoll: provider.Config.Credentials: %w", errNoSecret))
	}
	if cfg.Tokens.empty() {
		faults = append(faults, fmt.Errorf("jobpoll: provider.Config.Tokens: %w", errNoSecret))
	}
	return faults
}
