package webhook_test

import (
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/sign"
	"github.com/jobpoll/jobpoll/webhook"
)

// hookFal is a Verifier of fal on keys that can be changed.
type hookFal struct {
	*hookKeys
	clock *polltest.Clock
	v     *webhook.Fal
}

func newHookFal(t testing.TB, cfg webhook.KeySetConfig, keys ...sign.PublicKey) *hookFal {
	f := &hookFal{hookKeys: newHookKeys(t, keys...), clock: newHookClock()}
	cfg.Clock = f.clock
	v, err := webhook.NewFal(webhook.KeysConfig{Keys: f.set(t, cfg), Clock: f.clock})
	require.NoError(t, err)
	f.v = v
	return f
}

// verify tries what the key of that byte signs.
func (f *hookFal) verify(t testing.TB, key byte) error {
	s := hookScheme{signer: sign.Fal{Key: hookKey(key), RequestID: "r", UserID: "u"}}
	_, err := f.v.Verify(s.signed(t, hookBody, f.clock.Now()), []byte(hookBody))
	return err
}

func down(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }

func TestKeysAreFetchedOnceADay(t *testing.T) {
	f := newHookFal(t, webhook.KeySetConfig{}, sign.PublicKey{Key: hookPublic(1)})
	require.Zero(t, f.count())
	for range 10 {
		require.NoError(t, f.verify(t, 1))
	}
	require.Equal(t, 1, f.count())
	f.clock.Advance(24*time.Hour - 1)
	require.NoError(t, f.verify(t, 1))
	require.Equal(t, 1, f.count())
	f.clock.Advance(1)
	require.NoError(t, f.verify(t, 1))
	require.Equal(t, 2, f.count())
}

func TestKeysThatWereExchangedAreFetchedUponTheFirstSignature(t *testing.T) {
	f := newHookFal(t, webhook.KeySetConfig{}, sign.PublicKey{Key: hookPublic(1)})
	require.NoError(t, f.verify(t, 1))
	f.serve(sign.ServeKeys(sign.PublicKey{Key: hookPublic(2)}))
	f.clock.Advance(time.Minute)
	require.NoError(t, f.verify(t, 2))
	require.Equal(t, 2, f.count())
	f.clock.Advance(time.Minute)
	require.ErrorIs(t, f.verify(t, 1), webhook.ErrSignature, "the old key is gone")
}

func TestForgeriesDoNotMakeMoreThanOneFetchAMinute(t *testing.T) {
	f := newHookFal(t, webhook.KeySetConfig{}, sign.PublicKey{Key: hookPublic(1)})
	require.NoError(t, f.verify(t, 1))
	for range 50 {
		require.ErrorIs(t, f.verify(t, 9), webhook.ErrSignature)
		f.clock.Advance(6 * time.Second)
	}
	require.Equal(t, 1+4, f.count(), "in the first five minutes")
}

func TestWhatIsMalformedOrTooOldMakesNoFetch(t *testing.T) {
	f := newHookFal(t, webhook.KeySetConfig{}, sign.PublicKey{Key: hookPublic(1)})
	s := hookScheme{signer: sign.Fal{Key: hookKey(9), RequestID: "r", UserID: "u"}}
	_, err := f.v.Verify(s.signed(t, hookBody, hookStart.Add(-time.Hour)), []byte(hookBody))
	require.ErrorIs(t, err, webhook.ErrTimestamp)
	_, err = f.v.Verify(httptest.NewRequest(http.MethodPost, "/", nil), nil)
	require.ErrorIs(t, err, webhook.ErrNoSignature)
	require.Zero(t, f.count())
}

func TestOldKeysStayWhileTheEndpointFails(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"down":    down,
		"empty":   func(w http.ResponseWriter, _ *http.Request) {},
		"no keys": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":[]}`) },
		"html":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `<html>`) },
		"huge": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"keys":[], "x":"`+strings.Repeat("x", 300<<10)+`"}`)
		},
		"many": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"keys":[`+strings.Repeat(`{},`, 40)+`{}]}`)
		},
		"cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "900")
			fmt.Fprint(w, `{"keys"`)
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.example/", http.StatusFound)
		},
		"weak": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newHookFal(t, webhook.KeySetConfig{}, sign.PublicKey{Key: hookPublic(1)})
			require.NoError(t, f.verify(t, 1))
			f.serve(h)
			f.clock.Advance(48 * time.Hour)
			require.NoError(t, f.verify(t, 1))
			require.ErrorIs(t, f.verify(t, 9), webhook.ErrSignature)
			require.Equal(t, 2, f.count())
			f.serve(sign.ServeKeys(sign.PublicKey{Key: hookPublic(9)}))
			f.clock.Advance(time.Minute)
			require.NoError(t, f.verify(t, 9))
		})
	}
}

func TestWithoutAnyKeyItCannotBeTold(t *testing.T) {
	f := newHookFal(t, webhook.KeySetConfig{})
	f.serve(http.HandlerFunc(down))
	for range 10 {
		require.ErrorIs(t, f.verify(t, 1), webhook.ErrUnavailable)
	}
	require.Equal(t, 1, f.count())
	f.serve(sign.ServeKeys(sign.PublicKey{Key: hookPublic(1)}))
	f.clock.Advance(5 * time.Second)
	require.NoError(t, f.verify(t, 1))
}

func TestASlowEndpointIsLeftAtTheTimeout(t *testing.T) {
	f := newHookFal(t, webhook.KeySetConfig{})
	begun, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	f.serve(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(begun); <-end }))
	done := make(chan error, 1)
	go func() { done <- f.verify(t, 1) }()
	<-begun
	f.clock.Advance(3 * time.Second)
	err := <-done
	require.ErrorIs(t, err, webhook.ErrUnavailable)
}

func TestCallersShareAFetchAndNoneEndsItForTheOthers(t *testing.T) {
	f := newHookFal(t, webhook.KeySetConfig{})
	begun, end := make(chan struct{}), make(chan struct{})
	f.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(begun) // a second fetch would panic
		<-end
		sign.ServeKeys(sign.PublicKey{Key: hookPublic(1)}).ServeHTTP(w, r)
	}))
	s := hookScheme{signer: sign.Fal{Key: hookKey(1), RequestID: "r", UserID: "u"}}
	first := s.signed(t, hookBody, hookStart)
	ctx, cancel := contextWithCancel(t)
	gone := make(chan error, 1)
	go func() {
		_, err := f.v.Verify(first.Clone(ctx), []byte(hookBody))
		gone <- err
	}()
	<-begun
	cancel()
	require.ErrorIs(t, <-gone, webhook.ErrUnavailable)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := f.verify(t, 1); err != nil {
				t.Error(err)
			}
		})
	}
	close(end)
	all.Wait()
	require.Equal(t, 1, f.count())
}

func TestAnUnknownKeyIDIsLookedForOnceAMinute(t *testing.T) {
	clock := newHookClock()
	keys := newHookKeys(t, sign.PublicKey{ID: "k1", Key: hookPublic(1)})
	v, err := webhook.NewAtlas(webhook.KeysConfig{Keys: keys.set(t, webhook.KeySetConfig{Clock: clock}), Clock: clock})
	require.NoError(t, err)
	try := func(id string, key byte) error {
		s := hookScheme{signer: sign.Atlas{Key: hookKey(key), KeyID: id}}
		_, err := v.Verify(s.signed(t, hookBody, clock.Now()), []byte(hookBody))
		return err
	}
	require.NoError(t, try("k1", 1))
	require.ErrorIs(t, try("k2", 1), webhook.ErrSignature, "a good key under another id")
	require.ErrorIs(t, try("k2", 2), webhook.ErrSignature)
	require.Equal(t, 1, keys.count())
	keys.serve(http.HandlerFunc(down))
	clock.Advance(time.Minute)
	require.ErrorIs(t, try("k2", 2), webhook.ErrUnavailable, "it may be a new key")
	require.ErrorIs(t, try("k2", 2), webhook.ErrUnavailable)
	require.NoError(t, try("k1", 1))
	require.Equal(t, 2, keys.count())
	keys.serve(sign.ServeKeys(sign.PublicKey{ID: "k2", Key: hookPublic(2)}))
	clock.Advance(time.Minute)
	require.NoError(t, try("k2", 2))
}

func TestOnlyAddressesThatCanBeTrustedHaveKeys(t *testing.T) {
	for address, good := range map[string]bool{
		"https://keys.example/jwks.json": true, "http://127.0.0.1:8080/k": true, "http://[::1]/k": true, "http://localhost/k": true,
		"http://keys.example/jwks.json": false, "": false, "keys.example": false, "https://": false, "https://a:b@keys.example/": false,
		"file:///etc/keys": false, "http://127.0.0.1.example/": false, "%zz": false,
	} {
		_, err := webhook.NewKeySet(webhook.KeySetConfig{URL: address})
		require.Equal(t, good, err == nil, address)
	}
}

// hookJWT is a Verifier of tokens on one RSA key.
func hookJWT(t testing.TB, clock *polltest.Clock, keys ...sign.PublicKey) *webhook.JWT {
	set := newHookKeys(t, keys...).set(t, webhook.KeySetConfig{Clock: clock})
	v, err := webhook.NewJWT(webhook.JWTConfig{Keys: set, Issuer: "iss", Audience: "aud", Clock: clock})
	require.NoError(t, err)
	return v
}

func TestATokenIsOfTheIssuerForTheAudienceAndInTime(t *testing.T) {
	clock := newHookClock()
	v := hookJWT(t, clock, sign.PublicKey{ID: "r1", Key: &hookRSA().PublicKey})
	good := sign.JWT{Key: hookRSA(), KeyID: "r1", ID: "jti", Issuer: "iss", Audience: "aud", Life: time.Minute}
	with := func(change func(*sign.JWT)) sign.Signer {
		s := good
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		signer sign.Signer
		at     time.Duration
		want   error
	}{
		"good":             {good, 0, nil},
		"at the tolerance": {good, -6 * time.Minute, nil},
		"expired":          {good, -6*time.Minute - time.Second, webhook.ErrTimestamp},
		"issued ahead":     {good, 5 * time.Minute, nil},
		"issued far ahead": {good, 5*time.Minute + time.Second, webhook.ErrTimestamp},
		"another issuer":   {with(func(s *sign.JWT) { s.Issuer = "other" }), 0, webhook.ErrSignature},
		"another audience": {with(func(s *sign.JWT) { s.Audience = "other" }), 0, webhook.ErrSignature},
		"no issuer":        {with(func(s *sign.JWT) { s.Issuer = "" }), 0, webhook.ErrMalformed},
		"no audience":      {with(func(s *sign.JWT) { s.Audience = "" }), 0, webhook.ErrMalformed},
		"another key's id": {with(func(s *sign.JWT) { s.KeyID = "r2" }), 0, webhook.ErrSignature},
		"no key id":        {with(func(s *sign.JWT) { s.KeyID = "" }), 0, webhook.ErrSignature},
		"another key":      {with(func(s *sign.JWT) { s.Key = hookOtherRSA() }), 0, webhook.ErrSignature},
	} {
		s := hookScheme{signer: c.signer}
		_, err := v.Verify(s.signed(t, hookBody, hookStart.Add(c.at)), []byte(hookBody))
		require.ErrorIs(t, err, c.want, name)
	}
}

var hookOtherRSA = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// A token whose head names another algorithm: none, or an HMAC with the public
// key as its secret.
func TestTheAlgorithmOfATokenIsNotTheSendersToChoose(t *testing.T) {
	clock := newHookClock()
	v := hookJWT(t, clock, sign.PublicKey{ID: "r1", Key: &hookRSA().PublicKey})
	s := hookScheme{signer: sign.JWT{Key: hookRSA(), KeyID: "r1", Issuer: "iss", Audience: "aud"}}
	good := s.signed(t, hookBody, hookStart)
	parts := strings.Split(good.Header.Get("Webhook-Signature"), ".")
	for _, head := range []string{`{"alg":"none","kid":"r1"}`, `{"alg":"HS256","kid":"r1"}`, `{"alg":"rs256","kid":"r1"}`, `{"alg":"RS512","kid":"r1"}`, `{"kid":"r1"}`, `{"alg":"RS256","kid":["r1"]}`, `null`, `[`} {
		for _, sig := range []string{"", parts[2]} {
			r := good.Clone(t.Context())
			r.Header.Set("Webhook-Signature", url64([]byte(head))+"."+parts[1]+"."+sig)
			_, err := v.Verify(r, []byte(hookBody))
			require.Error(t, err, head)
		}
	}
}

func TestWeakKeysOfRSAAreLeftOut(t *testing.T) {
	clock := newHookClock()
	even := *hookRSA()
	even.N = new(big.Int).Lsh(even.N, 1)
	short := new(big.Int).Rsh(hookRSA().N, 1)
	short.SetBit(short, 0, 1)
	for name, key := range map[string]*rsa.PublicKey{
		"short":     {N: short, E: 65537},
		"even":      {N: even.N, E: 65537},
		"exponent":  {N: hookRSA().N, E: 3},
		"exponent1": {N: hookRSA().N, E: 1},
		"huge":      {N: new(big.Int).SetBit(big.NewInt(1), 9000, 1), E: 65537},
	} {
		v := hookJWT(t, clock, sign.PublicKey{ID: "r1", Key: key})
		s := hookScheme{signer: sign.JWT{Key: hookRSA(), KeyID: "r1", Issuer: "iss", Audience: "aud"}}
		_, err := v.Verify(s.signed(t, hookBody, hookStart), []byte(hookBody))
		require.ErrorIs(t, err, webhook.ErrUnavailable, name)
		require.ErrorContains(t, err, "no key that can be used", name)
	}
}

func TestAFailedFetchShowsWhy(t *testing.T) {
	clock := newHookClock()
	set, err := webhook.NewKeySet(webhook.KeySetConfig{URL: "https://keys.example/", Clock: clock, HTTP: &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("no route to host")
	})}})
	require.NoError(t, err)
	v, err := webhook.NewFal(webhook.KeysConfig{Keys: set, Clock: clock})
	require.NoError(t, err)
	s := hookScheme{signer: sign.Fal{Key: hookKey(1), RequestID: "r", UserID: "u"}}
	_, err = v.Verify(s.signed(t, hookBody, hookStart), []byte(hookBody))
	require.ErrorIs(t, err, webhook.ErrUnavailable)
	require.ErrorContains(t, err, "no route to host")
}

func TestATransportThatPanicsIsContained(t *testing.T) {
	clock := newHookClock()
	set, err := webhook.NewKeySet(webhook.KeySetConfig{URL: "https://keys.example/", Clock: clock, HTTP: &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		panic("oh")
	})}})
	require.NoError(t, err)
	v, err := webhook.NewFal(webhook.KeysConfig{Keys: set, Clock: clock})
	require.NoError(t, err)
	s := hookScheme{signer: sign.Fal{Key: hookKey(1), RequestID: "r", UserID: "u"}}
	_, err = v.Verify(s.signed(t, hookBody, hookStart), []byte(hookBody))
	require.ErrorIs(t, err, webhook.ErrUnavailable)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
