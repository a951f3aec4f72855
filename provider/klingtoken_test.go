package provider

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/loopback"
)

const (
	klingAccess = "access-key-0123456789"
	klingSecret = "secret-key-0123456789"
)

func TestAKlingTokenIsWhatALibraryForTokensMakes(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 5, 0, 999, time.UTC)
	got, err := KlingTokens(" "+klingAccess+"\n", klingSecret+"\n")(t.Context(), now)
	require.NoError(t, err)
	require.Equal(t, now.Add(30*time.Minute).Truncate(time.Second), got.Expiry)
	claims := jwt.MapClaims{"iss": klingAccess, "exp": now.Unix() + 1800, "nbf": now.Unix() - 5}

	read, err := jwt.Parse(got.Secret, func(*jwt.Token) (any, error) { return []byte(klingSecret), nil },
		jwt.WithValidMethods([]string{"HS256"}), jwt.WithTimeFunc(func() time.Time { return now }), jwt.WithExpirationRequired())
	require.NoError(t, err)
	require.Equal(t, map[string]any{"alg": "HS256", "typ": "JWT"}, read.Header)
	want, err := json.Marshal(claims)
	require.NoError(t, err)
	held, err := json.Marshal(read.Claims)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(held))

	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(klingSecret))
	require.NoError(t, err)
	require.Equal(t, signed, signHS256(want, []byte(klingSecret)), "byte by byte, of the same claims")

	odd, err := KlingTokens("an \"access\"\u2028 <key>", "s")(t.Context(), now)
	require.NoError(t, err)
	read, _, err = jwt.NewParser().ParseUnverified(odd.Secret, jwt.MapClaims{})
	require.NoError(t, err)
	iss, err := read.Claims.GetIssuer()
	require.NoError(t, err)
	require.Equal(t, "an \"access\"\u2028 <key>", iss)
}

// klingVerified is Kling's wire where tokens can be refused that are good.
type klingVerified struct {
	loopback.Wire

	mu      sync.Mutex
	tokens  map[string]bool // that came; false: taken no more
	refusal int             // the code for what is not taken
}

// authorize is a Config.Authorize.
func (w *klingVerified) authorize(token string, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	good, came := w.tokens[token]
	if !loopback.KlingKeys(klingAccess, klingSecret)(token, now) || came && !good {
		return false
	}
	w.tokens[token] = true
	return true
}

func (w *klingVerified) Error(p loopback.Problem) loopback.Answer {
	if p.Kind != loopback.ProblemUnauthorized {
		return w.Wire.Error(p)
	}
	return loopback.Answer{Status: http.StatusUnauthorized, Body: map[string]any{"code": w.refusal, "message": "no", "request_id": "rq-1"}}
}

// forget makes Kling refuse all tokens that came.
func (w *klingVerified) forget(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refusal = code
	for token := range w.tokens {
		w.tokens[token] = false
	}
}

// came is how many tokens have been used.
func (w *klingVerified) came() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.tokens)
}

// verifiedRig is a Poller with jobs of two hours at a Kling that verifies tokens.
func verifiedRig(t *testing.T) (w *klingVerified, h *polltest.Harness, server *loopback.Server, seen *polltest.Recorder) {
	clock := polltest.NewClock(time.Time{})
	w = &klingVerified{Wire: loopback.Kling(), tokens: map[string]bool{}}
	server = loopback.Start(loopback.Config{Wire: w, Clock: clock, Authorize: w.authorize, Script: func(int, json.RawMessage) string {
		return `queued; at 5m running; at 2h succeeded`
	}})
	t.Cleanup(server.Close)
	kling, err := NewKling(Config{BaseURL: server.URL(), Tokens: KlingTokens(klingAccess, klingSecret), Clock: clock})
	require.NoError(t, err)
	seen = &polltest.Recorder{}
	h = polltest.Start(t, jobpoll.Config{Clock: clock, Callbacks: seen.Callbacks(), Routes: []jobpoll.Route{{Name: "kling", Checker: kling}}})
	for range 5 {
		job, _, err := kling.Submit(t.Context(), Order{Model: "kling-v2", Input: map[string]any{"prompt": "a"}})
		require.NoError(t, err)
		job.Route = "kling"
		require.NoError(t, h.Watch(t.Context(), job))
	}
	return w, h, server, seen
}

func TestKlingIsWatchedForHoursWithoutARefusedToken(t *testing.T) {
	w, h, server, seen := verifiedRig(t)
	h.Clock.Advance(2*time.Hour + 5*time.Minute)
	require.Len(t, seen.Outcomes(), 5)
	for _, o := range seen.Outcomes() {
		require.Equal(t, jobpoll.ReasonSucceeded, o.Reason, "%+v", o)
	}
	require.Zero(t, server.Stats().Unauthorized)
	require.Equal(t, 5, w.came(), "one in 25 minutes")
}

func TestATokenThatKlingRefusesIsMintedAnew(t *testing.T) {
	for _, code := range []int{1000, 1001, 1002, 1003, 1004} {
		w, h, server, seen := verifiedRig(t)
		h.Clock.Advance(10 * time.Minute)
		require.Equal(t, 1, w.came())
		w.forget(code)
		h.Clock.Advance(10 * time.Minute)
		require.Equal(t, 2, w.came(), code)
		refused := server.Stats().Unauthorized
		require.Positive(t, refused)
		require.LessOrEqual(t, refused, 5, "a look of each job at most")
		h.Clock.Advance(2 * time.Hour)
		require.Equal(t, refused, server.Stats().Unauthorized)
		require.Len(t, seen.Outcomes(), 5)
		for _, o := range seen.Outcomes() {
			require.Equal(t, jobpoll.ReasonSucceeded, o.Reason, "%+v", o)
		}
	}
}
