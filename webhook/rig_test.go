package webhook_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/sign"
	"github.com/jobpoll/jobpoll/webhook"
)

// hookStart is when the tests begin.
var hookStart = time.Unix(1_767_323_045, 0).UTC()

const (
	hookSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	hookOldSecret = "whsec_b2xkLXNlY3JldC1vbGQtc2VjcmV0LW9sZC1zZWNyZXQ="
)

// hookKey is a private key of ed25519 of one byte.
func hookKey(b byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{b}, ed25519.SeedSize))
}

func hookPublic(b byte) ed25519.PublicKey { return hookKey(b).Public().(ed25519.PublicKey) }

var hookRSA = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// hookKeys serves a key set that can be changed.
type hookKeys struct {
	*httptest.Server
	mu      sync.Mutex
	handler http.Handler
	fetches int
}

func newHookKeys(t testing.TB, keys ...sign.PublicKey) *hookKeys {
	k := &hookKeys{handler: sign.ServeKeys(keys...)}
	k.Server = httptest.NewServer(k)
	t.Cleanup(k.Close)
	return k
}

func (k *hookKeys) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	k.fetches++
	h := k.handler
	k.mu.Unlock()
	h.ServeHTTP(w, r)
}

func (k *hookKeys) serve(h http.Handler) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.handler = h
}

func (k *hookKeys) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fetches
}

func (k *hookKeys) set(t testing.TB, cfg webhook.KeySetConfig) *webhook.KeySet {
	cfg.URL = k.URL
	s, err := webhook.NewKeySet(cfg)
	require.NoError(t, err)
	return s
}

// hookScheme is a way to sign, and the Verifier to it.
type hookScheme struct {
	name     string
	signer   sign.Signer
	verifier func(testing.TB, jobpoll.Clock) webhook.Verifier
	headers  []string
	timed    bool // it refuses what was signed too long ago
	body     bool // it signs the body
}

func made[V webhook.Verifier](t testing.TB) func(V, error) webhook.Verifier {
	return func(v V, err error) webhook.Verifier {
		require.NoError(t, err)
		return v
	}
}

var standardHeaders = []string{"webhook-id", "webhook-timestamp", "webhook-signature"}

func hookSchemes() []hookScheme {
	seed := base64.StdEncoding.EncodeToString(hookKey(1).Seed())
	public := "whpk_" + base64.StdEncoding.EncodeToString(hookPublic(1))
	keysOf := func(t testing.TB, clock jobpoll.Clock, keys ...sign.PublicKey) *webhook.KeySet {
		return newHookKeys(t, keys...).set(t, webhook.KeySetConfig{Clock: clock})
	}
	return []hookScheme{
		{"standard v1", sign.Standard{ID: "msg_1", Secrets: []string{hookSecret}}, func(t testing.TB, c jobpoll.Clock) webhook.Verifier {
			return made[*webhook.Standard](t)(webhook.NewStandard(webhook.StandardConfig{Secrets: []string{hookSecret}, Clock: c}))
		}, standardHeaders, true, true},
		{"standard v1a", sign.Standard{ID: "msg_1", PrivateKeys: []string{"whsk_" + seed}}, func(t testing.TB, c jobpoll.Clock) webhook.Verifier {
			return made[*webhook.Standard](t)(webhook.NewStandard(webhook.StandardConfig{PublicKeys: []string{public}, Clock: c}))
		}, standardHeaders, true, true},
		{"svix", sign.Standard{ID: "msg_1", Secrets: []string{hookSecret}, Prefix: "svix"}, func(t testing.TB, c jobpoll.Clock) webhook.Verifier {
			return made[*webhook.Standard](t)(webhook.NewStandard(webhook.StandardConfig{Secrets: []string{hookSecret}, Prefix: "svix", Clock: c}))
		}, []string{"svix-id", "svix-timestamp", "svix-signature"}, true, true},
		{"wavespeed", sign.WaveSpeed{ID: "pred-1", Secret: hookSecret}, func(t testing.TB, c jobpoll.Clock) webhook.Verifier {
			return made[*webhook.Standard](t)(webhook.NewWaveSpeed(webhook.SecretConfig{Secrets: []string{hookSecret}, Clock: c}))
		}, standardHeaders, true, true},
		{"stripe", sign.Stripe{Secrets: []string{hookSecret}}, func(t testing.TB, c jobpoll.Clock) webhook.Verifier {
			return made[*webhook.Stripe](t)(webhook.NewStripe(webhook.SecretConfig{Secrets: []string{hookSecret}, Clock: c}))
		}, []string{"Stripe-Signature"}, true, true},
		{"sync.so", sign.Stripe{Secrets: []string{hookSecret}, Header: "Sync-Signature"}, func(t testing.TB, c jobpoll.Clock) webhook.Verifier {
			return made[*webhook.Stripe](t)(webhook.NewStripe(webhook.SecretConfig{Secrets: []string{hookSecret}, Header: "Sync-Signature", Clock: c}))
		}, []string{"Sync-Signature"}, true, true},
		{"github", sign.GitHub{Secret: hookSecret}, func(t testing.TB, c jobpoll.Clock) webhook.Verifier {
			return made[*webhook.GitHub](t)(webhook.NewGitHub(webhook.SecretConfig{Secrets: []string{hookSecret}, Clock: c}))
		}, []string{"X-Hub-Signature-256"}, false, true},
		{"fal", sign.Fal{Key: hookKey(1), RequestID: "req-1", UserID: "user-1"}, func(t testing.TB, c jobpoll.Clock) webhook.Verifier {
			keys := keysOf(t, c, sign.PublicKey{Key: hookPublic(2)}, sign.PublicKey{Key: hookPublic(1)})
			return made[*webhook.Fal](t)(webhook.NewFal(webhook.KeysConfig{Keys: keys, Clock: c}))
		}, []string{"X-Fal-Webhook-Request-Id", "X-Fal-Webhook-User-Id", "X-Fal-Webhook-Timestamp", "X-Fal-Webhook-Signature"}, true, true},
		{"atlas", sign.Atlas{Key: hookKey(1), KeyID: "k1", ID: "sess-1", Event: "video.task.terminal"}, func(t testing.TB, c jobpoll.Clock) webhook.Verifier {
			keys := keysOf(t, c, sign.PublicKey{ID: "k2", Key: hookPublic(2)}, sign.PublicKey{ID: "k1", Key: hookPublic(1)})
			return made[*webhook.Atlas](t)(webhook.NewAtlas(webhook.KeysConfig{Keys: keys, Clock: c}))
		}, []string{"X-AtlasCloud-Webhook-Timestamp", "X-AtlasCloud-Webhook-Key-Id", "X-AtlasCloud-Webhook-Signature-Ed25519"}, true, true},
		{"jwt", sign.JWT{Key: hookRSA(), KeyID: "r1", ID: "jti-1", Issuer: "https://issuer.example", Audience: "aud-1", Life: time.Second}, func(t testing.TB, c jobpoll.Clock) webhook.Verifier {
			keys := keysOf(t, c, sign.PublicKey{ID: "r1", Key: &hookRSA().PublicKey})
			return made[*webhook.JWT](t)(webhook.NewJWT(webhook.JWTConfig{Keys: keys, Issuer: "https://issuer.example", Audience: "aud-1", Clock: c}))
		}, []string{"Webhook-Signature"}, false, false},
		{"token", sign.Token{Header: "X-Token", Token: hookSecret}, func(t testing.TB, c jobpoll.Clock) webhook.Verifier {
			return made[*webhook.Token](t)(webhook.NewToken(webhook.TokenConfig{Header: "X-Token", Tokens: []string{hookSecret}}))
		}, []string{"X-Token"}, false, false},
	}
}

// signed makes a delivery.
func (s *hookScheme) signed(t testing.TB, body string, at time.Time) *http.Request {
	r, err := sign.Request("http://service.example/hook", []byte(body), s.signer, at)
	require.NoError(t, err)
	return r
}

// hookNotices is a Notifier that keeps what it gets.
type hookNotices struct {
	mu  sync.Mutex
	all []jobpoll.Notice
	err error
	do  func(context.Context, jobpoll.Notice) error
}

func (n *hookNotices) Notify(ctx context.Context, got jobpoll.Notice) error {
	n.mu.Lock()
	n.all = append(n.all, got)
	err, do := n.err, n.do
	n.mu.Unlock()
	if do != nil {
		return do(ctx, got)
	}
	return err
}

func (n *hookNotices) got() []jobpoll.Notice {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]jobpoll.Notice(nil), n.all...)
}

func newHookClock() *polltest.Clock { return polltest.NewClock(hookStart) }

func sign64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func url64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func contextWithCancel(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}
