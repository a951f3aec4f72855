package webhook

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// SecretConfig says how deliveries that carry an HMAC are verified.
type SecretConfig struct {
	// Secrets are the keys, as the provider shows them; several are good at once,
	// so that they can be exchanged. At least one is required; those shorter than
	// 16 bytes are refused.
	Secrets []string
	// Header is the header of the signature, where it has another name than the
	// format gives it. Empty: that one.
	Header string
	// Tolerance is how far the time of signing may be off, either way, its bound
	// included. Zero: DefaultTolerance. Negative is refused.
	Tolerance time.Duration
	// Clock is what that time is compared with. Nil: package time.
	Clock jobpoll.Clock
}

// common makes what the verifiers with a SecretConfig have in common.
func (cfg SecretConfig) common(what, header string) (secrets, times, string, error) {
	f := &faults{what: what}
	keys := newSecrets(f, "Secrets", SecretText, cfg.Secrets)
	if len(keys) == 0 {
		f.at("Secrets", errNoKey)
	}
	header = cmp.Or(cfg.Header, header)
	if !validName(header) {
		f.add("Header", "%q is no name of a header", header)
	}
	t := newTimes(f, cfg.Clock, cfg.Tolerance)
	return keys, t, header, f.join()
}

// Stripe verifies the format of Stripe, which others use too (Sync.so, in the
// header Sync-Signature): "t=seconds,v1=hexadecimal", with an entry v1 for each
// active key. Unlike Stripe's own libraries it takes no timestamp from the
// future either. The whole body is signed, and no id of the event.
//
// Source: https://github.com/stripe/stripe-node, Webhooks
type Stripe struct {
	name
	times
	secrets secrets
	header  string
}

// NewStripe makes the Verifier, and reports all faults of cfg joined. The key is
// the whole secret, its prefix too. Header is Stripe-Signature if empty.
func NewStripe(cfg SecretConfig) (*Stripe, error) {
	keys, t, h, err := cfg.common("NewStripe", "Stripe-Signature")
	if err != nil {
		return nil, err
	}
	return &Stripe{"webhook.Stripe", t, keys, h}, nil
}

// Verify implements Verifier.
func (s *Stripe) Verify(r *http.Request, body []byte) (Proof, error) {
	text, err := header(r.Header, s.header)
	h := readStripe(text)
	at, timely := unixTime(h.stamp)
	good := s.secrets.signed(hexText, h.signatures, []byte(h.stamp), []byte("."), body)
	switch {
	case err != nil:
		return Proof{}, err
	case h.doubled, !timely:
		return Proof{}, ErrMalformed
	case len(h.signatures) == 0:
		return Proof{}, ErrNoScheme
	case !good:
		return Proof{}, ErrSignature
	case !s.near(at):
		return Proof{}, ErrTimestamp
	}
	return Proof{Body: true}, nil
}

// stripeHeader is what stands in a header of Stripe's format.
type stripeHeader struct {
	stamp      string
	doubled    bool // the stamp is there twice
	signatures []string
}

func readStripe(text string) (h stripeHeader) {
	for entry := range strings.SplitSeq(text, ",") {
		switch k, v, _ := strings.Cut(entry, "="); {
		case k == "t":
			h.doubled = h.doubled || h.stamp != ""
			h.stamp = v
		case k == "v1" && len(h.signatures) < maxSignatures:
			h.signatures = append(h.signatures, v)
		}
	}
	return h
}

// GitHub verifies the format of GitHub, which many use: "sha256=hexadecimal" in
// X-Hub-Signature-256, of the body alone. Nothing tells when a delivery was
// signed, so that one which was seen once can be sent again for ever; as a
// notice only moves a job forward, that changes nothing.
//
// Source: https://github.com/octokit/webhooks-methods.js
type GitHub struct {
	name
	secrets secrets
	header  string
}

// NewGitHub makes the Verifier, and reports all faults of cfg joined. The key is
// the whole secret. Header is X-Hub-Signature-256 if empty; Tolerance and Clock
// are not used.
func NewGitHub(cfg SecretConfig) (*GitHub, error) {
	keys, _, h, err := cfg.common("NewGitHub", "X-Hub-Signature-256")
	if err != nil {
		return nil, err
	}
	return &GitHub{"webhook.GitHub", keys, h}, nil
}

// Verify implements Verifier.
func (g *GitHub) Verify(r *http.Request, body []byte) (Proof, error) {
	text, err := header(r.Header, g.header)
	sig, known := strings.CutPrefix(text, "sha256=")
	good := g.secrets.signed(hexText, []string{sig}, body)
	switch {
	case err != nil:
		return Proof{}, err
	case !known:
		return Proof{}, ErrNoScheme
	case !good:
		return Proof{}, ErrSignature
	}
	return Proof{Body: true}, nil
}

// validName reports whether s may name a header.
func validName(s string) bool {
	const signs = "!#$%&'*+-.^_`|~"
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(signs, r)
	})
}
