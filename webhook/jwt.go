package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/jobpoll/jobpoll"
)

// JWTConfig says which tokens are taken.
type JWTConfig struct {
	// Keys are those that sign the tokens, RSA. Required; Gemini's are at
	// GeminiKeysURL.
	Keys *KeySet
	// Issuer is what the claim "iss" must be. Required.
	Issuer string
	// Audience is what the claim "aud" must hold. Required.
	Audience string
	// Header is the header that the token is in. Empty: Webhook-Signature, which
	// is Gemini's.
	Header string
	// Tolerance is how far the sender's clock may be off: that much after "exp",
	// and before "nbf" and "iat". Zero: DefaultTolerance. Negative is refused.
	Tolerance time.Duration
	// Clock is what those times are compared with. Nil: package time.
	Clock jobpoll.Clock
}

// JWT verifies deliveries that carry a JSON Web Token, signed by RS256 with a key
// that the token names: what Gemini sends to a URL that was given with a
// request. Issuer, audience and expiry must be right. The claim "jti" is the id
// of the event. Nothing ties the token to the body, so that a notice is a hint;
// Gemini's bodies are thin besides.
//
// Source: https://ai.google.dev/gemini-api/docs/webhooks
type JWT struct {
	name
	keys   *KeySet
	parser *jwt.Parser
	header string
}

// NewJWT makes the Verifier, and reports all faults of cfg joined.
func NewJWT(cfg JWTConfig) (*JWT, error) {
	f := &faults{what: "NewJWT"}
	if cfg.Keys == nil {
		f.at("Keys", errNoKey)
	}
	if cfg.Issuer == "" {
		f.add("Issuer", "it is empty: tokens that the same keys sign for others would pass")
	}
	if cfg.Audience == "" {
		f.add("Audience", "it is empty: tokens that the same keys sign for others would pass")
	}
	header := cmp.Or(cfg.Header, "Webhook-Signature")
	if !validName(header) {
		f.add("Header", "%q is no name of a header", header)
	}
	t := newTimes(f, cfg.Clock, cfg.Tolerance)
	if err := f.join(); err != nil {
		return nil, err
	}
	return &JWT{
		name: "webhook.JWT", keys: cfg.Keys, header: header,
		parser: jwt.NewParser(
			jwt.WithValidMethods([]string{jwt.SigningMethodRS256.Alg()}), jwt.WithStrictDecoding(),
			jwt.WithIssuer(cfg.Issuer), jwt.WithAudience(cfg.Audience), jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
			jwt.WithTimeFunc(t.clock.Now),
			jwt.WithLeeway(t.tolerance+1), // the bound is within the tolerance, as that of other verifiers
		),
	}, nil
}

// Verify implements Verifier.
func (v *JWT) Verify(r *http.Request, _ []byte) (Proof, error) {
	text, err := header(r.Header, v.header)
	if err != nil {
		return Proof{}, err
	}
	if !tokenText(text) {
		return Proof{}, ErrMalformed
	}
	held, err := v.keys.keys(r.Context())
	if err != nil {
		return Proof{}, err
	}
	proof, known, err := v.parse(text, held)
	if !errors.Is(err, jwt.ErrTokenUnverifiable) && !errors.Is(err, jwt.ErrTokenSignatureInvalid) {
		return proof, whyNot(err)
	}
	newer, fetchErr := v.keys.newer(r.Context(), held)
	switch {
	case fetchErr != nil && !known: // the key that it names may be a new one
		return Proof{}, fmt.Errorf("%w: %w", ErrUnavailable, fetchErr)
	case newer != nil:
		proof, _, err = v.parse(text, newer)
	}
	return proof, whyNot(err)
}

// parse checks a token. known tells whether there is the key that it names.
func (v *JWT) parse(text string, held *heldKeys) (_ Proof, known bool, err error) {
	var claims jwt.RegisteredClaims
	if _, err := v.parser.ParseWithClaims(text, &claims, held.find(&known)); err != nil {
		return Proof{}, known, err
	}
	return Proof{EventID: claims.ID}, known, nil
}

var errNoSuchKey = errors.New("no key of that id")

// find gives the keys that a token names, and tells whether there was one.
func (h *heldKeys) find(known *bool) jwt.Keyfunc {
	return func(t *jwt.Token) (any, error) {
		id, _ := t.Header["kid"].(string)
		var set jwt.VerificationKeySet
		for i := range h.keys {
			if k := &h.keys[i]; k.rsa != nil && id != "" && k.id == id {
				set.Keys = append(set.Keys, k.rsa)
			}
		}
		if *known = len(set.Keys) > 0; !*known {
			return nil, errNoSuchKey
		}
		return set, nil
	}
}

// whyNot says what is wrong with a token, without anything that stands in it.
func whyNot(err error) error {
	if err == nil {
		return nil
	}
	for _, is := range []struct{ theirs, ours error }{
		{jwt.ErrTokenMalformed, ErrMalformed},
		{jwt.ErrTokenExpired, ErrTimestamp},
		{jwt.ErrTokenNotValidYet, ErrTimestamp},
		{jwt.ErrTokenUsedBeforeIssued, ErrTimestamp},
		{jwt.ErrTokenInvalidIssuer, fmt.Errorf("%w: the issuer is another", ErrSignature)},
		{jwt.ErrTokenInvalidAudience, fmt.Errorf("%w: the audience is another", ErrSignature)},
		{jwt.ErrTokenRequiredClaimMissing, fmt.Errorf("%w: a claim is missing", ErrMalformed)},
	} {
		if errors.Is(err, is.theirs) {
			return is.ours
		}
	}
	return ErrSignature
}

// hintOnly says why nothing that passes is believed.
func (v *JWT) hintOnly() string { return "the token is not tied to the body" }

// tokenText reports whether s is made of what a token is made of.
func tokenText(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	})
}
