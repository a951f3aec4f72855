package webhook

import (
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// Bounds of a set of keys.
const (
	maxKeySet = 256 << 10 // bytes of the document
	maxKeys   = 32        // keys in it; a sender has two or three

	minRSA = 2048 // bits
	maxRSA = 8192
)

// jwk is one key of a JSON Web Key Set, as far as it matters here.
// Source: RFC 7517, RFC 8037
type jwk struct {
	Kty, Crv, Kid, Use, Alg string
	KeyOps                  []string `json:"key_ops"`
	X, N, E                 string
}

// publicKeyOf is a key of a set: one of the two is set.
type publicKeyOf struct {
	id  string
	ed  ed25519.PublicKey
	rsa *rsa.PublicKey
}

// parseKeySet reads the keys of a set that signatures can be verified with. One
// that is weak, or is for something else, is left out; a set without any other
// is an error, which says why.
func parseKeySet(doc []byte) ([]publicKeyOf, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(doc, &set); err != nil {
		return nil, errors.New("it is no JSON of a key set")
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("it has %d keys, and %d are the most", len(set.Keys), maxKeys)
	}
	var keys []publicKeyOf
	var faults []error
	for i, raw := range set.Keys {
		key, err := parseKey(raw)
		if err != nil {
			faults = append(faults, fmt.Errorf("key %d: %w", i, err))
			continue
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.Join(append(faults, errors.New("it has no key that can be used"))...)
	}
	return keys, nil
}

func parseKey(raw json.RawMessage) (publicKeyOf, error) {
	var k jwk
	if json.Unmarshal(raw, &k) != nil {
		return publicKeyOf{}, errors.New("it is no key")
	}
	if k.Use != "" && k.Use != "sig" || k.KeyOps != nil && !slices.Contains(k.KeyOps, "verify") {
		return publicKeyOf{}, errors.New("it is not for signatures")
	}
	switch k.Kty {
	case "OKP":
		return k.okp()
	case "RSA":
		return k.rsa()
	}
	return publicKeyOf{}, errors.New("it is of a type that is not known")
}

func (k *jwk) okp() (publicKeyOf, error) {
	if k.Crv != "Ed25519" || k.Alg != "" && k.Alg != "EdDSA" && k.Alg != "Ed25519" {
		return publicKeyOf{}, errors.New("it is not for Ed25519")
	}
	x, err := base64.RawURLEncoding.Strict().DecodeString(k.X)
	if err != nil {
		return publicKeyOf{}, errors.New("x is no base64url")
	}
	key, err := newEd25519(x)
	return publicKeyOf{id: k.Kid, ed: key}, err
}

func (k *jwk) rsa() (publicKeyOf, error) {
	if k.Alg != "" && k.Alg != "RS256" {
		return publicKeyOf{}, errors.New("it is not for RS256")
	}
	n, errN := base64.RawURLEncoding.DecodeString(k.N)
	e, errE := base64.RawURLEncoding.DecodeString(k.E)
	if errN != nil || errE != nil {
		return publicKeyOf{}, errors.New("n or e is no base64url")
	}
	modulus, exponent := new(big.Int).SetBytes(n), new(big.Int).SetBytes(e)
	switch bits := modulus.BitLen(); {
	case bits < minRSA, bits > maxRSA:
		return publicKeyOf{}, fmt.Errorf("it has %d bits, and %d to %d are taken", bits, minRSA, maxRSA)
	case modulus.Bit(0) == 0, exponent.Bit(0) == 0, exponent.Cmp(big.NewInt(1<<16)) < 0, exponent.BitLen() > 31:
		return publicKeyOf{}, errors.New("it is weak: its modulus or its exponent is none of a good key")
	}
	return publicKeyOf{id: k.Kid, rsa: &rsa.PublicKey{N: modulus, E: int(exponent.Int64())}}, nil
}
