package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

// Fal verifies fal's deliveries: ed25519 over the ids of request and user, the
// time, and the hash of the body. The keys have no ids, so that each is tried.
// The whole body is signed, and no id of the event.
//
// Source: https://fal.ai/docs/documentation/model-apis/inference/webhooks.md
type Fal struct {
	name
	times
	keys *KeySet
}

// NewFal makes the Verifier, and reports all faults of cfg joined.
func NewFal(cfg KeysConfig) (*Fal, error) {
	keys, t, err := cfg.common("NewFal", FalKeysURL)
	if err != nil {
		return nil, err
	}
	return &Fal{"webhook.Fal", t, keys}, nil
}

// Verify implements Verifier.
func (v *Fal) Verify(r *http.Request, body []byte) (Proof, error) {
	values, err := headers(r.Header, "X-Fal-Webhook-Request-Id", "X-Fal-Webhook-User-Id", "X-Fal-Webhook-Timestamp", "X-Fal-Webhook-Signature")
	sum := sha256.Sum256(body)
	message := strings.Join(append(values[:3:3], hex.EncodeToString(sum[:])), "\n")
	sig, ok := decodeHex(values[3])
	if err == nil && !ok {
		err = ErrMalformed
	}
	err = v.judge(values[2], err)
	return v.keys.signed(r.Context(), err, anyKey, []byte(message), sig)
}

// decodeHex reads hexadecimal in lower case, the one form that is sent.
func decodeHex(s string) ([]byte, bool) {
	b, err := hex.DecodeString(s)
	return b, err == nil && strings.ToLower(s) == s
}
