// Package sign signs webhooks as providers do, for tests of a service that takes
// them: beside each Verifier of package webhook stands a Signer.
//
//	signer := sign.Standard{ID: "msg_1", Secrets: []string{secret}}
//	req, err := sign.Request(server.URL+"/hooks/replicate", body, signer, clock.Now())
//
// It shares no code with the verifiers. It is for tests alone: nothing here
// guards a key.
package sign

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Signer puts what a provider sends beside a body into the headers. at is when
// the delivery is signed.
type Signer interface {
	Sign(h http.Header, body []byte, at time.Time) error
}

// Request makes a delivery: a POST of JSON with the signer's headers.
func Request(url string, body []byte, s Signer, at time.Time) (*http.Request, error) {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("jobpoll: sign: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	return req, s.Sign(req.Header, body, at)
}

// Standard signs by Standard Webhooks, with one signature for each key.
type Standard struct {
	// ID is the id of the event, the same for each attempt to deliver it.
	ID string
	// Secrets are those of scheme v1: base64 of the key, after "whsec_" if it is there.
	Secrets []string
	// PrivateKeys are those of scheme v1a: base64 of the seed, or of seed and
	// public key, after "whsk_" if it is there.
	PrivateKeys []string
	// Prefix begins the names of the headers. Empty: "webhook".
	Prefix string
}

// Sign implements Signer. Its error is for a key that is none.
func (s Standard) Sign(h http.Header, body []byte, at time.Time) error {
	content := standardContent(s.ID, at, body)
	var list []string
	for _, secret := range s.Secrets {
		key, err := decode(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			return err
		}
		list = append(list, "v1,"+base64.StdEncoding.EncodeToString(mac(key, content)))
	}
	for _, text := range s.PrivateKeys {
		key, err := privateKey(text)
		if err != nil {
			return err
		}
		list = append(list, "v1a,"+base64.StdEncoding.EncodeToString(ed25519.Sign(key, content)))
	}
	setStandard(h, s.Prefix, s.ID, at, strings.Join(list, " "))
	return nil
}

func standardContent(id string, at time.Time, body []byte) []byte {
	return append([]byte(id+"."+unix(at)+"."), body...)
}

func setStandard(h http.Header, prefix, id string, at time.Time, signatures string) {
	if prefix == "" {
		prefix = "webhook"
	}
	h.Set(prefix+"-id", id)
	h.Set(prefix+"-timestamp", unix(at))
	h.Set(prefix+"-signature", signatures)
}

// WaveSpeed signs as WaveSpeed does.
type WaveSpeed struct {
	ID string
	// Secret begins with "whsec_"; the text after it is the key.
	Secret string
}

// Sign implements Signer.
func (s WaveSpeed) Sign(h http.Header, body []byte, at time.Time) error {
	key := strings.TrimPrefix(s.Secret, "whsec_")
	setStandard(h, "", s.ID, at, "v3,"+hex.EncodeToString(mac([]byte(key), standardContent(s.ID, at, body))))
	return nil
}

// Stripe signs in the format of Stripe, with one signature for each key.
type Stripe struct {
	// Secrets are the keys as they are, a prefix too.
	Secrets []string
	// Header is the header. Empty: Stripe-Signature.
	Header string
}

// Sign implements Signer.
func (s Stripe) Sign(h http.Header, body []byte, at time.Time) error {
	text := "t=" + unix(at)
	for _, key := range s.Secrets {
		text += ",v1=" + hex.EncodeToString(mac([]byte(key), append([]byte(unix(at)+"."), body...)))
	}
	name := s.Header
	if name == "" {
		name = "Stripe-Signature"
	}
	h.Set(name, text)
	return nil
}

// GitHub signs in the format of GitHub, which has no time.
type GitHub struct {
	// Secret is the key as it is.
	Secret string
	// Header is the header. Empty: X-Hub-Signature-256.
	Header string
}

// Sign implements Signer.
func (s GitHub) Sign(h http.Header, body []byte, _ time.Time) error {
	name := s.Header
	if name == "" {
		name = "X-Hub-Signature-256"
	}
	h.Set(name, "sha256="+hex.EncodeToString(mac([]byte(s.Secret), body)))
	return nil
}

// Fal signs as fal does.
type Fal struct {
	Key               ed25519.PrivateKey
	RequestID, UserID string
}

// Sign implements Signer.
func (s Fal) Sign(h http.Header, body []byte, at time.Time) error {
	if len(s.Key) != ed25519.PrivateKeySize {
		return errKey
	}
	sum := sha256.Sum256(body)
	message := strings.Join([]string{s.RequestID, s.UserID, unix(at), hex.EncodeToString(sum[:])}, "\n")
	h.Set("X-Fal-Webhook-Request-Id", s.RequestID)
	h.Set("X-Fal-Webhook-User-Id", s.UserID)
	h.Set("X-Fal-Webhook-Timestamp", unix(at))
	h.Set("X-Fal-Webhook-Signature", hex.EncodeToString(ed25519.Sign(s.Key, []byte(message))))
	return nil
}

// Atlas signs as Atlas Cloud does.
type Atlas struct {
	Key ed25519.PrivateKey
	// KeyID is the id of the key in the key set.
	KeyID string
	// ID is the id of the session, and Event its type.
	ID, Event string
}

// Sign implements Signer.
func (s Atlas) Sign(h http.Header, body []byte, at time.Time) error {
	if len(s.Key) != ed25519.PrivateKeySize {
		return errKey
	}
	sig := ed25519.Sign(s.Key, append([]byte(unix(at)+"."), body...))
	h.Set("X-AtlasCloud-Webhook-Id", s.ID)
	h.Set("X-AtlasCloud-Webhook-Event", s.Event)
	h.Set("X-AtlasCloud-Webhook-Timestamp", unix(at))
	h.Set("X-AtlasCloud-Webhook-Key-Id", s.KeyID)
	h.Set("X-AtlasCloud-Webhook-Signature-Ed25519", base64.RawURLEncoding.EncodeToString(sig))
	return nil
}

// Token sends a shared secret in a header.
type Token struct {
	Header, Token string
}

// Sign implements Signer.
func (s Token) Sign(h http.Header, _ []byte, _ time.Time) error {
	h.Set(s.Header, s.Token)
	return nil
}

var errKey = errors.New("jobpoll: sign: the key is no private key of ed25519")

func unix(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

func mac(key, content []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write(content)
	return m.Sum(nil)
}

func decode(text string) ([]byte, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("jobpoll: sign: the key is no base64")
	}
	return b, nil
}

func privateKey(text string) (ed25519.PrivateKey, error) {
	b, err := decode(strings.TrimPrefix(text, "whsk_"))
	switch {
	case err != nil:
		return nil, err
	case len(b) != ed25519.SeedSize && len(b) != ed25519.PrivateKeySize:
		return nil, errKey
	}
	return ed25519.NewKeyFromSeed(b[:ed25519.SeedSize]), nil
}

// PublicKey is a key that a provider publishes.
type PublicKey struct {
	// ID is its key id. Empty: it has none.
	ID string
	// Key is an ed25519.PublicKey or a *rsa.PublicKey.
	Key any
}

// KeySet is the JSON Web Key Set of some keys, as the providers of Fal, Atlas and
// JWT publish one. Keys of other types are left out.
func KeySet(keys ...PublicKey) []byte {
	list := []map[string]string{}
	for _, k := range keys {
		m := map[string]string{"use": "sig"}
		switch key := k.Key.(type) {
		case ed25519.PublicKey:
			m["kty"], m["crv"], m["alg"], m["x"] = "OKP", "Ed25519", "EdDSA", base64url(key)
		case *rsa.PublicKey:
			m["kty"], m["alg"], m["n"], m["e"] = "RSA", "RS256", base64url(key.N.Bytes()), base64url(big.NewInt(int64(key.E)).Bytes())
		default:
			continue
		}
		if k.ID != "" {
			m["kid"] = k.ID
		}
		list = append(list, m)
	}
	doc, _ := json.Marshal(map[string]any{"keys": list}) // strings alone
	return doc
}

// ServeKeys serves the document of KeySet: give its address to webhook.NewKeySet.
func ServeKeys(keys ...PublicKey) http.Handler {
	doc := KeySet(keys...)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(doc)
	})
}

func base64url(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
