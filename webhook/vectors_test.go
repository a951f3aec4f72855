package webhook_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/webhook"
)

// hookVector is one file of testdata/webhooks.
type hookVector struct {
	About, Scheme, Secret, Body string
	PublicKey                   string `json:"public_key"`
	Keys                        json.RawMessage
	Headers                     map[string]string
	Time                        int64
}

func readHookVectors(t *testing.T) map[string]hookVector {
	files, err := filepath.Glob(filepath.Join("..", "testdata", "webhooks", "*.json"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 8)
	all := map[string]hookVector{}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		require.NoError(t, err)
		var v hookVector
		require.NoError(t, json.Unmarshal(raw, &v), f)
		all[strings.TrimSuffix(filepath.Base(f), ".json")] = v
	}
	return all
}

// verifier makes the Verifier of a vector; the error is that of its key.
func (v *hookVector) verifier(t *testing.T, clock *polltest.Clock) (webhook.Verifier, error) {
	cfg := webhook.SecretConfig{Secrets: []string{v.Secret}, Clock: clock}
	keys := func() webhook.KeysConfig {
		k := newHookKeys(t)
		k.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(v.Keys) }))
		return webhook.KeysConfig{Clock: clock, Keys: k.set(t, webhook.KeySetConfig{Clock: clock})}
	}
	switch v.Scheme {
	case "standard":
		c := webhook.StandardConfig{Clock: clock}
		if v.Secret != "" {
			c.Secrets = []string{v.Secret}
		} else {
			c.PublicKeys = []string{v.PublicKey}
		}
		return orNil(webhook.NewStandard(c))
	case "wavespeed":
		return orNil(webhook.NewWaveSpeed(cfg))
	case "stripe":
		return orNil(webhook.NewStripe(cfg))
	case "github":
		return orNil(webhook.NewGitHub(cfg))
	case "fal":
		return orNil(webhook.NewFal(keys()))
	case "atlas":
		return orNil(webhook.NewAtlas(keys()))
	}
	t.Fatalf("the scheme %q", v.Scheme)
	return nil, nil
}

func orNil[V webhook.Verifier](v V, err error) (webhook.Verifier, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

func (v *hookVector) request() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/hook", nil)
	for k, val := range v.Headers {
		r.Header.Set(k, val)
	}
	return r
}

func TestVectorsVerifyWithinTheToleranceAndNotBeyond(t *testing.T) {
	for name, v := range readHookVectors(t) {
		t.Run(name, func(t *testing.T) {
			for off, good := range map[time.Duration]bool{
				0: true, 5 * time.Minute: true, -5 * time.Minute: true,
				5*time.Minute + 1: false, -5*time.Minute - 1: false, 301 * time.Second: false, -301 * time.Second: false, 365 * 24 * time.Hour: false,
			} {
				verifier, err := v.verifier(t, polltest.NewClock(time.Unix(v.Time, 0).Add(off)))
				require.NoError(t, err)
				proof, err := verifier.Verify(v.request(), []byte(v.Body))
				if good || v.Scheme == "github" { // which tells no time
					require.NoError(t, err, off)
					require.True(t, proof.Body)
				} else {
					require.ErrorIs(t, err, webhook.ErrTimestamp, off)
					require.Zero(t, proof)
				}
			}
		})
	}
}

// flips calls do with each text that differs from s in one bit.
func flips(s string, do func(string)) {
	b := []byte(s)
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			do(string(b))
			b[i] ^= 1 << bit
		}
	}
}

func TestNoVectorVerifiesWithABitChanged(t *testing.T) {
	unsigned := map[string]bool{"X-AtlasCloud-Webhook-Id": true, "X-AtlasCloud-Webhook-Event": true} // not looked at
	for name, v := range readHookVectors(t) {
		t.Run(name, func(t *testing.T) {
			clock := polltest.NewClock(time.Unix(v.Time, 0))
			verifier, err := v.verifier(t, clock)
			require.NoError(t, err)
			refused := func(r *http.Request, body string) {
				t.Helper()
				proof, err := verifier.Verify(r, []byte(body))
				require.Error(t, err)
				require.Zero(t, proof)
			}
			_, err = verifier.Verify(v.request(), []byte(v.Body))
			require.NoError(t, err)
			flips(v.Body, func(body string) { refused(v.request(), body) })
			for h, val := range v.Headers {
				if unsigned[h] {
					continue
				}
				flips(val, func(changed string) {
					r := v.request()
					r.Header[http.CanonicalHeaderKey(h)] = []string{changed}
					refused(r, v.Body)
				})
			}
			key := v.Secret + v.PublicKey
			flips(key, func(changed string) {
				other := v
				if v.Secret != "" {
					other.Secret = changed
				} else {
					other.PublicKey = changed
				}
				if verifier, err := other.verifier(t, clock); err == nil { // many are no key at all
					_, err = verifier.Verify(v.request(), []byte(v.Body))
					require.Error(t, err, changed)
				}
			})
		})
	}
}

func TestNoVectorOfPublishedKeysVerifiesWithABitOfTheKeyChanged(t *testing.T) {
	const x = "A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg"
	for name, v := range readHookVectors(t) {
		if v.Keys == nil {
			continue
		}
		require.Contains(t, string(v.Keys), x)
		for i := 0; i < len(x); i += 5 {
			for bit := range 8 {
				changed := []byte(x)
				changed[i] ^= 1 << bit
				text, _ := json.Marshal(string(changed)) // valid JSON, whatever it is
				other := v
				other.Keys = bytes.Replace(v.Keys, []byte(`"`+x+`"`), text, 1)
				verifier, err := other.verifier(t, polltest.NewClock(time.Unix(v.Time, 0)))
				require.NoError(t, err)
				_, err = verifier.Verify(v.request(), []byte(v.Body))
				require.Error(t, err, "%s: %q", name, changed)
			}
		}
	}
}
