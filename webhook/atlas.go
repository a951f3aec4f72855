package webhook

import (
	"encoding/base64"
	"net/http"
)

// Atlas verifies Atlas Cloud's deliveries: ed25519 over the time and the body,
// by the key that the delivery names. The older signature beside it, which is to
// become the same, is not looked at. The whole body is signed, and the id of the
// event in it.
//
// Source: https://atlascloud.ai/docs/en/webhooks
type Atlas struct {
	name
	times
	keys *KeySet
}

// NewAtlas makes the Verifier, and reports all faults of cfg joined.
func NewAtlas(cfg KeysConfig) (*Atlas, error) {
	keys, t, err := cfg.common("NewAtlas", AtlasKeysURL)
	if err != nil {
		return nil, err
	}
	return &Atlas{"webhook.Atlas", t, keys}, nil
}

// Verify implements Verifier.
func (v *Atlas) Verify(r *http.Request, body []byte) (Proof, error) {
	values, err := headers(r.Header, "X-AtlasCloud-Webhook-Timestamp", "X-AtlasCloud-Webhook-Key-Id", "X-AtlasCloud-Webhook-Signature-Ed25519")
	message := append([]byte(values[0]+"."), body...)
	sig, encErr := base64.RawURLEncoding.Strict().DecodeString(values[2])
	if err == nil && encErr != nil {
		err = ErrMalformed
	}
	err = v.judge(values[0], err)
	return v.keys.signed(r.Context(), err, func(k *publicKeyOf) bool { return k.id == values[1] }, message, sig)
}
