package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// SecretForm is how a secret is written. The same prefix, "whsec_", stands before
// secrets of each form, so that it is told and never guessed.
type SecretForm uint8

// The forms.
const (
	// SecretBase64 is base64 of the key, after "whsec_" where that is there: the
	// form of Standard Webhooks (Replicate, OpenAI, Kling, Gemini, svix).
	SecretBase64 SecretForm = iota
	// SecretText is the key itself, all of it, a prefix too (Stripe, GitHub).
	SecretText
	// SecretSuffix is the key itself after "whsec_", which must be there (WaveSpeed).
	SecretSuffix
)

var secretForms = []string{"base64", "text", "suffix"}

// String returns the name in lower case.
func (f SecretForm) String() string {
	if int(f) < len(secretForms) {
		return secretForms[f]
	}
	return "unknown"
}

const (
	secretPrefix = "whsec_"
	// minDecoded is the least length of a key that is written in base64, in bytes.
	// Source: https://github.com/standard-webhooks/standard-webhooks, 24 to 64 bytes
	minDecoded = 24
	// minText is that of a key which is text.
	minText = 16
	// maxKey is the most: more is no key.
	maxKey = 4 << 10
)

// key gives the bytes of a secret. Its errors do not show it.
func (f SecretForm) key(secret string) ([]byte, error) {
	rest, prefixed := strings.CutPrefix(secret, secretPrefix)
	least := minText
	var key []byte
	switch f {
	case SecretBase64:
		decoded, ok := decodeBase64(rest)
		if !ok {
			return nil, errors.New("it is no base64; if it is text, say so by its form")
		}
		key, least = decoded, minDecoded
	case SecretText:
		key = []byte(secret)
	case SecretSuffix:
		if !prefixed && secret != "" {
			return nil, fmt.Errorf("it does not begin with %s", secretPrefix)
		}
		key = []byte(rest)
	default:
		return nil, fmt.Errorf("there is no form %d", f)
	}
	switch {
	case len(key) == 0:
		return nil, errors.New("it is empty: is the environment variable, or the setting, that it is read from set?")
	case len(key) < least:
		return nil, fmt.Errorf("its %d bytes are too short, %d are the least", len(key), least)
	case len(key) > maxKey:
		return nil, fmt.Errorf("its %d bytes are too long, %d are the most", len(key), maxKey)
	case f != SecretBase64 && strings.TrimSpace(secret) != secret:
		return nil, errors.New("white space stands around it")
	}
	return key, nil
}

// decodeBase64 reads standard base64, padded or not, in the one form that bytes
// have: of two texts that differ one would otherwise do as well as the other.
func decodeBase64(s string) ([]byte, bool) {
	if strings.ContainsAny(s, "\r\n") { // which the decoder skips
		return nil, false
	}
	enc := base64.StdEncoding
	if !strings.HasSuffix(s, "=") {
		enc = base64.RawStdEncoding
	}
	b, err := enc.Strict().DecodeString(s)
	return b, err == nil
}

// secrets are keys of an HMAC: all that are good now.
type secrets [][]byte

// newSecrets reads the secrets of the field of that name.
func newSecrets(f *faults, field string, form SecretForm, texts []string) secrets {
	var keys secrets
	for i, s := range texts {
		key, err := form.key(s)
		f.at(fmt.Sprintf("%s[%d]", field, i), err)
		keys = append(keys, key)
	}
	return keys
}

// signed reports whether one of the signatures is that of the parts under one
// of the keys. Signatures are compared as they are written, so that there is
// one way to write each. What it does depends on the number of keys and of
// signatures alone, also where there is no signature to compare.
func (s secrets) signed(encode func([]byte) string, signatures []string, parts ...[]byte) bool {
	good := 0
	for _, key := range s {
		mac := hmac.New(sha256.New, key)
		for _, p := range parts {
			mac.Write(p)
		}
		want := []byte(encode(mac.Sum(nil)))
		for _, sig := range signatures {
			good |= subtle.ConstantTimeCompare(want, []byte(sig))
		}
	}
	return good == 1
}

// How many signatures of one delivery are looked at. There is one for each
// active key; those of ed25519 cost a hash of the body each.
const (
	maxSignatures = 16
	maxEd25519    = 4
)

func base64Text(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
func hexText(b []byte) string    { return hex.EncodeToString(b) }
