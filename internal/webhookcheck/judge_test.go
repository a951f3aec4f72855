package webhookcheck

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/sign"
	"github.com/jobpoll/jobpoll/webhook"
)

var start = time.Unix(1_767_323_045, 0)

// draw makes a secret, an id and a body.
func draw(r *rand.Rand) (secret, id string, body []byte) {
	key := make([]byte, 24+r.IntN(41))
	for i := range key {
		key[i] = byte(r.Uint32())
	}
	body = make([]byte, r.IntN(300))
	for i := range body {
		body[i] = byte(r.Uint32())
	}
	return "whsec_" + base64.StdEncoding.EncodeToString(key), fmt.Sprintf("msg_%x", r.Uint64()), body
}

func ours(t *testing.T, secret string) *webhook.Standard {
	v, err := webhook.NewStandard(webhook.StandardConfig{Secrets: []string{secret}, Clock: polltest.NewClock(start)})
	require.NoError(t, err)
	return v
}

func theirs(t *testing.T, secret string) *standard.Webhook {
	v, err := standard.NewWebhook(secret)
	require.NoError(t, err)
	return v
}

func request(h http.Header) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header = h
	return r
}

func TestEachVerifiesWhatTheOtherSigns(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		secret, id, body := draw(r)
		h := http.Header{}
		require.NoError(t, sign.Standard{ID: id, Secrets: []string{secret}}.Sign(h, body, start))
		require.NoError(t, theirs(t, secret).VerifyIgnoringTimestamp(body, h))

		sig, err := theirs(t, secret).Sign(id, start, body)
		require.NoError(t, err)
		h.Set("webhook-signature", sig)
		proof, err := ours(t, secret).Verify(request(h), body)
		require.NoError(t, err)
		require.Equal(t, webhook.Proof{Body: true, EventID: id}, proof)
	}
}

func TestNothingPassesHereThatDoesNotPassThere(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	passed, stricter := 0, 0
	for range 20_000 {
		secret, id, body := draw(r)
		_, _, other := draw(r)
		h := http.Header{}
		require.NoError(t, sign.Standard{ID: id, Secrets: []string{secret}}.Sign(h, body, start))
		good := h.Get("webhook-signature")
		switch r.IntN(8) {
		case 0:
			h.Set("webhook-signature", "v1,AAAA "+good+" v2,x")
		case 1:
			h.Set("webhook-signature", spoil(r, good))
		case 2:
			h.Set("webhook-timestamp", spoil(r, h.Get("webhook-timestamp")))
		case 3:
			h.Set("webhook-id", spoil(r, id))
		case 4:
			body = other
		case 5:
			h.Set("webhook-timestamp", "+"+h.Get("webhook-timestamp")) // read as a number there
		case 6:
			h.Set("webhook-signature", good[:r.IntN(len(good))])
		}
		_, err := ours(t, secret).Verify(request(h), body)
		judged := theirs(t, secret).VerifyIgnoringTimestamp(body, h)
		switch {
		case err == nil:
			require.NoError(t, judged, "%v", h)
			passed++
		case judged == nil:
			stricter++
			require.ErrorIs(t, err, webhook.ErrMalformed, "%v", h)
		}
	}
	require.Greater(t, passed, 2000)
	require.Greater(t, stricter, 1000, "timestamps with a sign")
}

// spoil changes a bit of a text, mostly.
func spoil(r *rand.Rand, s string) string {
	b := []byte(s)
	if len(b) > 0 && r.IntN(5) > 0 {
		b[r.IntN(len(b))] ^= 1 << r.IntN(7)
	}
	return string(b)
}

// The reference takes no secret at all for a key that fits everybody.
func TestAnEmptySecretIsRefusedHere(t *testing.T) {
	_, err := standard.NewWebhook("whsec_")
	require.NoError(t, err)
	_, err = webhook.NewStandard(webhook.StandardConfig{Secrets: []string{"whsec_"}})
	require.ErrorContains(t, err, "empty")
}
