package webhook

import (
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// StandardConfig says how the deliveries of one sender are signed. At least one
// secret or public key is required; several are good at once, so that keys can
// be exchanged without a gap.
type StandardConfig struct {
	// Secrets are those of HMAC-SHA256 (scheme v1). Keys shorter than 24 bytes,
	// or 16 where they are text, are refused.
	Secrets []string
	// Form is how the secrets are written. Zero: base64, as the standard says.
	Form SecretForm
	// PublicKeys are those of ed25519 (scheme v1a): base64 of 32 bytes, after
	// "whpk_" where that is there.
	PublicKeys []string
	// Prefix begins the names of the three headers. Empty: "webhook", for
	// webhook-id, webhook-timestamp and webhook-signature. Older senders on svix
	// use "svix".
	Prefix string
	// Tolerance is how far the timestamp may be off, either way, its bound
	// included. Zero: DefaultTolerance. Negative is refused.
	Tolerance time.Duration
	// Clock is what the timestamp is compared with. Nil: package time.
	Clock jobpoll.Clock
}

// Standard verifies what is signed by Standard Webhooks: Replicate, OpenAI,
// Kling where a secret is set, Gemini's endpoints of a project, and svix. It
// takes schemes v1 and v1a, and skips others in the list. The whole body is
// signed, and the id of the event with it.
//
// Source: https://github.com/standard-webhooks/standard-webhooks, spec 1.0.0
type Standard struct {
	name
	times
	secrets secrets
	keys    []ed25519.PublicKey
	headers [3]string
	version string // of the HMAC scheme
	encode  func([]byte) string
}

// NewStandard makes the Verifier, and reports all faults of cfg joined.
func NewStandard(cfg StandardConfig) (*Standard, error) {
	return newStandard("NewStandard", cfg, "v1", base64Text)
}

// NewWaveSpeed makes the Verifier of WaveSpeed's deliveries: headers and signed
// text are those of Standard Webhooks, but the scheme is v3, the signature
// hexadecimal, and the key the text after "whsec_". Header is not used.
//
// Source: https://wavespeed.ai/docs/verify-webhooks
func NewWaveSpeed(cfg SecretConfig) (*Standard, error) {
	return newStandard("NewWaveSpeed", StandardConfig{
		Secrets: cfg.Secrets, Form: SecretSuffix, Tolerance: cfg.Tolerance, Clock: cfg.Clock,
	}, "v3", hexText)
}

func newStandard(what string, cfg StandardConfig, version string, encode func([]byte) string) (*Standard, error) {
	f := &faults{what: what}
	prefix := cmp.Or(cfg.Prefix, "webhook")
	s := &Standard{
		name:    "webhook.Standard",
		times:   newTimes(f, cfg.Clock, cfg.Tolerance),
		secrets: newSecrets(f, "Secrets", cfg.Form, cfg.Secrets),
		headers: [3]string{prefix + "-id", prefix + "-timestamp", prefix + "-signature"},
		version: version,
		encode:  encode,
	}
	for i, text := range cfg.PublicKeys {
		key, err := publicKey(text)
		f.at(fmt.Sprintf("PublicKeys[%d]", i), err)
		s.keys = append(s.keys, key)
	}
	if len(cfg.Secrets)+len(cfg.PublicKeys) == 0 {
		f.at("Secrets", errNoKey)
	}
	if !validName(prefix) {
		f.add("Prefix", "%q cannot begin the name of a header", prefix)
	}
	if err := f.join(); err != nil {
		return nil, err
	}
	return s, nil
}

// publicKey reads a public key of scheme v1a.
func publicKey(text string) (ed25519.PublicKey, error) {
	b, ok := decodeBase64(strings.TrimPrefix(text, "whpk_"))
	if !ok {
		return nil, errors.New("it is no base64")
	}
	return newEd25519(b)
}

// Verify implements Verifier.
func (s *Standard) Verify(r *http.Request, body []byte) (Proof, error) {
	v, err := headers(r.Header, s.headers[:]...)
	id, stamp, list := v[0], v[1], v[2]
	at, timely := unixTime(stamp)
	if err == nil && (!timely || strings.ContainsRune(id, '.')) {
		err = ErrMalformed
	}
	macs, signatures, some := s.signatures(list)
	good := s.signed(id, stamp, body, macs, signatures)
	switch {
	case err != nil:
		return Proof{}, err
	case !some:
		return Proof{}, ErrNoScheme
	case !good:
		return Proof{}, ErrSignature
	case !s.near(at):
		return Proof{}, ErrTimestamp
	}
	return Proof{Body: true, EventID: id}, nil
}

// signatures takes those of a list that there are keys for: some is false where
// the list has none of them.
func (s *Standard) signatures(list string) (macs []string, signatures [][]byte, some bool) {
	for entry := range strings.SplitSeq(list, " ") {
		version, text, _ := strings.Cut(entry, ",")
		switch {
		case version == s.version && len(s.secrets) > 0 && len(macs) < maxSignatures:
			macs, some = append(macs, text), true
		case version == "v1a" && len(s.keys) > 0 && len(signatures) < maxEd25519:
			some = true
			if b, ok := decodeBase64(text); ok && strings.HasSuffix(text, "=") {
				signatures = append(signatures, b)
			}
		}
	}
	return macs, signatures, some
}

// signed checks the signatures, in the same way whatever is wrong besides.
func (s *Standard) signed(id, stamp string, body []byte, macs []string, signatures [][]byte) bool {
	head := []byte(id + "." + stamp + ".")
	good := s.secrets.signed(s.encode, macs, head, body)
	if len(s.keys) > 0 {
		message := append(head[:len(head):len(head)], body...)
		good = signedBy(s.keys, message, signatures) || good
	}
	return good
}
