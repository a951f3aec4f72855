package loopback_test

import (
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// A library for tokens makes them, and says of each what it takes it for.
func TestKlingKeysTakeWhatALibraryForTokensTakes(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC)
	signed := func(method jwt.SigningMethod, key any, claims jwt.MapClaims) string {
		token, err := jwt.NewWithClaims(method, claims).SignedString(key)
		require.NoError(t, err)
		return token
	}
	hs := func(claims jwt.MapClaims) string { return signed(jwt.SigningMethodHS256, []byte("secret"), claims) }
	// raw signs what no library would write.
	raw := func(header, claims string) string {
		text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
		signature, err := jwt.SigningMethodHS256.Sign(text, []byte("secret"))
		require.NoError(t, err)
		return text + "." + base64.RawURLEncoding.EncodeToString(signature)
	}
	const head, body = `{"alg":"HS256","typ":"JWT"}`, `{"iss":"access","exp":9999999999}`
	good := hs(jwt.MapClaims{"iss": "access", "exp": now.Unix() + 1800, "nbf": now.Unix() - 5})
	other := hs(jwt.MapClaims{"iss": "access", "exp": now.Unix() + 3600})
	for name, c := range map[string]struct {
		token string
		want  bool
	}{
		"good":                     {good, true},
		"without nbf":              {other, true},
		"good for a second":        {hs(jwt.MapClaims{"iss": "access", "exp": now.Unix() + 1, "nbf": now.Unix()}), true},
		"times with a fraction":    {hs(jwt.MapClaims{"iss": "access", "exp": float64(now.Unix()) + 1.5}), true},
		"over":                     {hs(jwt.MapClaims{"iss": "access", "exp": now.Unix()}), false},
		"not yet":                  {hs(jwt.MapClaims{"iss": "access", "exp": now.Unix() + 9, "nbf": now.Unix() + 1}), false},
		"without an end":           {hs(jwt.MapClaims{"iss": "access"}), false},
		"an end that is a text":    {hs(jwt.MapClaims{"iss": "access", "exp": "9999999999"}), false},
		"of another":               {hs(jwt.MapClaims{"iss": "other", "exp": now.Unix() + 9}), false},
		"of nobody":                {hs(jwt.MapClaims{"exp": now.Unix() + 9}), false},
		"another secret":           {signed(jwt.SigningMethodHS256, []byte("wrong"), jwt.MapClaims{"iss": "access", "exp": now.Unix() + 9}), false},
		"another algorithm":        {signed(jwt.SigningMethodHS512, []byte("secret"), jwt.MapClaims{"iss": "access", "exp": now.Unix() + 9}), false},
		"not signed":               {signed(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, jwt.MapClaims{"iss": "access", "exp": now.Unix() + 9}), false},
		"the signature of another": {good[:len(good)-43] + other[len(other)-43:], false},
		"by hand":                  {raw(head, body), true},
		"the case of the header":   {raw(`{"ALG":"HS256"}`, body), false},
		"the case of the method":   {raw(`{"alg":"hs256"}`, body), false},
		"the case of the issuer":   {raw(head, `{"Iss":"access","exp":9999999999}`), false},
		"the case of the end":      {raw(head, `{"iss":"access","EXP":9999999999}`), false},
		"an end of null":           {raw(head, `{"iss":"access","exp":null}`), false},
		"a beginning in a text":    {raw(head, `{"iss":"access","exp":9999999999,"nbf":"1"}`), false},
		"an end beyond all":        {raw(head, `{"iss":"access","exp":1e999}`), false},
		"an end before all":        {raw(head, `{"iss":"access","exp":-1}`), false},
		"a list of claims":         {raw(head, `[]`), false},
		"claims of null":           {raw(head, `null`), false},
		"padding":                  {good + "=", false},
		"a dot before it":          {"." + good, false},
		"a part too few":           {good[:len(good)-44], false},
		"a part too many":          {good + ".x", false},
		"nothing":                  {"", false},
		"dots":                     {"..", false},
		"a key":                    {"secret", false},
	} {
		assert.Equal(t, c.want, loopback.KlingKeys(" access\n", "secret\n")(c.token, now), name)
		_, err := jwt.Parse(c.token, func(*jwt.Token) (any, error) { return []byte("secret"), nil }, jwt.WithValidMethods([]string{"HS256"}),
			jwt.WithIssuer("access"), jwt.WithExpirationRequired(), jwt.WithTimeFunc(func() time.Time { return now }))
		assert.Equal(t, c.want, err == nil, "%s: %v", name, err)
	}
	empty := signed(jwt.SigningMethodHS256, []byte(""), jwt.MapClaims{"iss": "", "exp": now.Unix() + 9})
	require.False(t, loopback.KlingKeys("", "")(empty, now))
	require.False(t, loopback.KlingKeys("access", " ")(empty, now))
}

// Whether a credential is right can change with time, and is told as that of one that
// is compared.
func TestACredentialThatRunsOutIsRefusedThen(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	end := clock.Now().Add(time.Minute)
	server := started(t, loopback.Config{
		Wire: loopback.Kling(), Clock: clock, Credential: "of no use",
		Authorize: func(credential string, now time.Time) bool { return credential == "token" && now.Before(end) },
	})
	c := client(t)
	ask := func(header ...string) int {
		resp, _ := do(t, c, "POST", server.URL()+"/v1/videos/text2video", `{}`, header...)
		return resp.StatusCode
	}
	token := []string{"Authorization", "Bearer token"}
	require.Equal(t, http.StatusOK, ask(token...))
	require.Equal(t, http.StatusUnauthorized, ask())
	require.Equal(t, http.StatusUnauthorized, ask("Authorization", "Bearer of no use"))
	clock.Advance(time.Minute)
	require.Equal(t, http.StatusUnauthorized, ask(token...))
	var seen []loopback.Seen
	for _, r := range server.Requests() {
		seen = append(seen, r.Credential)
	}
	require.Equal(t, []loopback.Seen{loopback.SeenRight, loopback.SeenNone, loopback.SeenWrong, loopback.SeenWrong}, seen)
	require.Equal(t, 3, server.Stats().Unauthorized)
}
