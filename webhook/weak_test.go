package webhook

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Under a weak key the signature of zeros, or of one and zeros, is that of many a
// message, so that anybody has one.
func TestAnybodyCouldSignForAWeakKeyAndNoneIsTaken(t *testing.T) {
	for _, text := range weakPoints {
		forged := 0
		for _, sign := range []byte{0, 0x80} {
			key, err := hex.DecodeString(text)
			require.NoError(t, err)
			key[31] |= sign
			_, err = newEd25519(key)
			require.ErrorContains(t, err, "weak", text)
			for n := range 16 {
				for _, r := range []string{weakPoints[1], weakPoints[0], weakPoints[4]} {
					sig, _ := hex.DecodeString(r)
					sig = append(sig, make([]byte, 32)...)
					if ed25519.Verify(key, fmt.Appendf(nil, "message %d", n), sig) {
						forged++
					}
				}
			}
		}
		require.Positive(t, forged, text)
	}
}

func TestAKeySetTakesTheKeysThatItCanUse(t *testing.T) {
	const good = `{"kty":"OKP","crv":"Ed25519","x":"A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg","kid":"k"`
	for doc, want := range map[string]int{
		`{"keys":[` + good + `}]}`:                                                                    1,
		`{"keys":[` + good + `},` + good + `}]}`:                                                      2,
		`{"keys":[{"kty":"EC"},7,null,` + good + `}]}`:                                                1,
		`{"keys":[` + good + `,"use":"sig","key_ops":["verify"]}]}`:                                   1,
		`{"keys":[` + good + `,"alg":"EdDSA"}]}`:                                                      1,
		`{"keys":[` + good + `,"use":"enc"}]}`:                                                        0,
		`{"keys":[` + good + `,"key_ops":["sign"]}]}`:                                                 0,
		`{"keys":[` + good + `,"alg":"ES256"}]}`:                                                      0,
		`{"keys":[{"kty":"OKP","crv":"X25519","x":"A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg"}]}`:   0,
		`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbh"}]}`:  0, // bits that do not count are set
		`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="}]}`: 0,
		`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`:                                              0,
		`{"keys":[]}`: 0, `{}`: 0, `[]`: 0, ``: 0, `{"keys":{}}`: 0, `null`: 0,
	} {
		keys, err := parseKeySet([]byte(doc))
		require.Len(t, keys, want, doc)
		require.Equal(t, want == 0, err != nil, doc)
	}
}

func FuzzKeySet(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg","kid":"k"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB","alg":"RS256"},{"key_ops":[]},null,[]]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		keys, err := parseKeySet(doc)
		if (err == nil) != (len(keys) > 0) || len(keys) > maxKeys {
			t.Fatalf("%d keys and %v", len(keys), err)
		}
		for _, k := range keys {
			if (k.ed == nil) == (k.rsa == nil) || k.ed != nil && len(k.ed) != ed25519.PublicKeySize || k.rsa != nil && k.rsa.N.BitLen() < minRSA {
				t.Fatalf("%+v", k)
			}
		}
	})
}
