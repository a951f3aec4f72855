package webhook_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/sign"
	"github.com/jobpoll/jobpoll/webhook"
)

const hookBody = `{"id":"pred-1","status":"completed"}`

func TestEachVerifierTakesWhatItsSignerMakes(t *testing.T) {
	for _, s := range hookSchemes() {
		t.Run(s.name, func(t *testing.T) {
			v := s.verifier(t, newHookClock())
			proof, err := v.Verify(s.signed(t, hookBody, hookStart), []byte(hookBody))
			require.NoError(t, err)
			require.Equal(t, s.body, proof.Body)
			_, err = v.Verify(s.signed(t, "", hookStart), nil)
			require.NoError(t, err, "an empty body")
		})
	}
}

func TestTheEventIDIsGivenWhereItIsSigned(t *testing.T) {
	want := map[string]string{"standard v1": "msg_1", "standard v1a": "msg_1", "svix": "msg_1", "wavespeed": "pred-1", "jwt": "jti-1"}
	for _, s := range hookSchemes() {
		proof, err := s.verifier(t, newHookClock()).Verify(s.signed(t, hookBody, hookStart), []byte(hookBody))
		require.NoError(t, err)
		require.Equal(t, want[s.name], proof.EventID, s.name)
	}
}

func TestNoSchemeVerifiesWithABitChanged(t *testing.T) {
	for _, s := range hookSchemes() {
		if s.name == "standard v1a" || s.name == "fal" || s.name == "atlas" {
			continue // they cost most, and have vectors of which the same is tried
		}
		t.Run(s.name, func(t *testing.T) {
			v := s.verifier(t, newHookClock())
			good := s.signed(t, hookBody, hookStart)
			if s.body {
				flips(hookBody, func(body string) {
					_, err := v.Verify(good, []byte(body))
					require.Error(t, err)
				})
			}
			for _, h := range s.headers {
				flips(good.Header.Get(h), func(changed string) {
					r := good.Clone(t.Context())
					r.Header[http.CanonicalHeaderKey(h)] = []string{changed}
					_, err := v.Verify(r, []byte(hookBody))
					require.Error(t, err, "%s: %q", h, changed)
				})
			}
		})
	}
}

func TestAHeaderThatIsMissingDoubledOrCutIsRefused(t *testing.T) {
	for _, s := range hookSchemes() {
		for _, h := range s.headers {
			v := s.verifier(t, newHookClock())
			good := s.signed(t, hookBody, hookStart)
			value := good.Header.Get(h)
			for what, c := range map[string]struct {
				values []string
				want   error
			}{
				"missing": {nil, webhook.ErrNoSignature},
				"empty":   {[]string{""}, webhook.ErrNoSignature},
				"doubled": {[]string{value, value}, webhook.ErrMalformed},
				"long":    {[]string{value + strings.Repeat(" ", 9000)}, webhook.ErrMalformed},
				"line":    {[]string{value + "\n"}, webhook.ErrMalformed},
			} {
				r := good.Clone(t.Context())
				r.Header[http.CanonicalHeaderKey(h)] = c.values
				_, err := v.Verify(r, []byte(hookBody))
				require.ErrorIs(t, err, c.want, "%s: %s: %s", s.name, h, what)
			}
			for cut := 1; cut < len(value); cut++ {
				r := good.Clone(t.Context())
				r.Header.Set(h, value[:cut])
				_, err := v.Verify(r, []byte(hookBody))
				require.Error(t, err, "%s: %s: %q", s.name, h, value[:cut])
			}
		}
	}
}

// B58: what is signed at a time that is further off than the tolerance, either way.
func TestTheTimeOfSigningIsBoundedOnBothSides(t *testing.T) {
	for _, s := range hookSchemes() {
		if !s.timed {
			continue
		}
		v := s.verifier(t, newHookClock())
		for off, good := range map[time.Duration]bool{-299: true, -300: true, -301: false, 299: true, 300: true, 301: false} {
			_, err := v.Verify(s.signed(t, hookBody, hookStart.Add(off*time.Second)), []byte(hookBody))
			if good {
				require.NoError(t, err, "%s: %d", s.name, off)
			} else {
				require.ErrorIs(t, err, webhook.ErrTimestamp, "%s: %d", s.name, off)
			}
		}
	}
}

// B58: stamps that are none.
func TestATimestampHasOneForm(t *testing.T) {
	for _, s := range hookSchemes() {
		for _, stamp := range []string{"abc", "-1", "+1767323045", "01767323045", "1767323045.0", "1767323045 ", "0x69", "1e9", "99999999999999999999", "176732304500"} {
			at := ""
			for _, h := range s.headers {
				if strings.HasSuffix(strings.ToLower(h), "timestamp") {
					at = h
				}
			}
			if at == "" {
				continue
			}
			r := s.signed(t, hookBody, hookStart)
			r.Header.Set(at, stamp)
			_, err := s.verifier(t, newHookClock()).Verify(r, []byte(hookBody))
			require.ErrorIs(t, err, webhook.ErrMalformed, "%s: %q", s.name, stamp)
		}
	}
}

func TestAToleranceOfOnesOwn(t *testing.T) {
	v, err := webhook.NewStandard(webhook.StandardConfig{Secrets: []string{hookSecret}, Tolerance: time.Minute, Clock: newHookClock()})
	require.NoError(t, err)
	s := hookScheme{signer: sign.Standard{ID: "m", Secrets: []string{hookSecret}}}
	_, err = v.Verify(s.signed(t, hookBody, hookStart.Add(-time.Minute)), []byte(hookBody))
	require.NoError(t, err)
	_, err = v.Verify(s.signed(t, hookBody, hookStart.Add(-61*time.Second)), []byte(hookBody))
	require.ErrorIs(t, err, webhook.ErrTimestamp)
}

// B57: a list of signatures, of several keys and schemes.
func TestOneGoodSignatureOfAListIsEnough(t *testing.T) {
	v, err := webhook.NewStandard(webhook.StandardConfig{Secrets: []string{hookSecret, hookOldSecret}, Clock: newHookClock()})
	require.NoError(t, err)
	one := func(secret string) string {
		s := hookScheme{signer: sign.Standard{ID: "msg_1", Secrets: []string{secret}}}
		return s.signed(t, hookBody, hookStart).Header.Get("webhook-signature")
	}
	isNew, isOld := one(hookSecret), one(hookOldSecret)
	bad := "v1,YmFkYmFkYmFkYmFkYmFkYmFkYmFkYmFkYmFkYmFkYmE="
	for list, want := range map[string]error{
		isNew:                               nil,
		isOld:                               nil,
		bad + " " + isOld:                   nil,
		"v1a,X " + isNew:                    nil,
		"v2,? v1a v1, " + isNew + "  ":      nil,
		strings.Repeat(bad+" ", 15) + isNew: nil,
		strings.Repeat(bad+" ", 16) + isNew: webhook.ErrSignature, // the work is bounded
		"v1a,X":                             webhook.ErrNoScheme,
		"V1," + isNew[3:]:                   webhook.ErrNoScheme,
		isNew[3:]:                           webhook.ErrNoScheme,
		"v1,":                               webhook.ErrSignature,
		"v1":                                webhook.ErrSignature,
		bad:                                 webhook.ErrSignature,
		"v1, " + isNew[3:]:                  webhook.ErrSignature,
		strings.ReplaceAll(isNew, "=", ""):  webhook.ErrSignature,
		strings.Repeat("v1,AAAA ", 10_000):  webhook.ErrMalformed,
	} {
		s := hookScheme{signer: sign.Standard{ID: "msg_1", Secrets: []string{hookSecret}}}
		r := s.signed(t, hookBody, hookStart)
		r.Header.Set("webhook-signature", list)
		_, err := v.Verify(r, []byte(hookBody))
		if want == nil {
			require.NoError(t, err, list)
		} else {
			require.ErrorIs(t, err, want, "%.100s", list)
		}
	}
}

func TestKeysOfBothSchemesAreGoodAtOnce(t *testing.T) {
	schemes := hookSchemes()
	hmacOnly, edOnly := schemes[0], schemes[1]
	pub := "whpk_" + sign64(hookPublic(1))
	v, err := webhook.NewStandard(webhook.StandardConfig{Secrets: []string{hookSecret}, PublicKeys: []string{pub, "whpk_" + sign64(hookPublic(3))}, Clock: newHookClock()})
	require.NoError(t, err)
	for _, s := range []hookScheme{hmacOnly, edOnly} {
		_, err := v.Verify(s.signed(t, hookBody, hookStart), []byte(hookBody))
		require.NoError(t, err, s.name)
	}
}

func TestAnIDWithADotIsRefused(t *testing.T) {
	s := hookScheme{signer: sign.Standard{ID: "msg.1", Secrets: []string{hookSecret}}}
	v := hookSchemes()[0].verifier(t, newHookClock())
	_, err := v.Verify(s.signed(t, hookBody, hookStart), []byte(hookBody))
	require.ErrorIs(t, err, webhook.ErrMalformed)
}

// A secret that begins with whsec_ is read as it is said to be, and not as another
// convention would read it.
func TestTheFormOfASecretIsToldAndNotGuessed(t *testing.T) {
	for _, c := range []struct {
		form   webhook.SecretForm
		secret string
		key    string // of the signature that verifies
	}{
		{webhook.SecretBase64, hookSecret, hookSecret},
		{webhook.SecretBase64, strings.TrimPrefix(hookSecret, "whsec_"), hookSecret},
		{webhook.SecretText, hookSecret, "whsec_" + sign64([]byte(hookSecret))},
		{webhook.SecretSuffix, hookSecret, "whsec_" + sign64([]byte(strings.TrimPrefix(hookSecret, "whsec_")))},
	} {
		v, err := webhook.NewStandard(webhook.StandardConfig{Secrets: []string{c.secret}, Form: c.form, Clock: newHookClock()})
		require.NoError(t, err)
		for _, key := range []string{hookSecret, "whsec_" + sign64([]byte(hookSecret)), "whsec_" + sign64([]byte(strings.TrimPrefix(hookSecret, "whsec_")))} {
			s := hookScheme{signer: sign.Standard{ID: "m", Secrets: []string{key}}}
			_, err := v.Verify(s.signed(t, hookBody, hookStart), []byte(hookBody))
			require.Equal(t, key == c.key, err == nil, "%s %s", c.form, key)
		}
	}
}

func TestStripesHeaderIsReadStrictly(t *testing.T) {
	s := hookScheme{signer: sign.Stripe{Secrets: []string{hookOldSecret, hookSecret}}}
	v, err := webhook.NewStripe(webhook.SecretConfig{Secrets: []string{hookSecret}, Clock: newHookClock()})
	require.NoError(t, err)
	good := s.signed(t, hookBody, hookStart).Header.Get("Stripe-Signature")
	stamp, sigs, _ := strings.Cut(good, ",")
	for text, want := range map[string]error{
		good:                                nil,
		sigs + "," + stamp:                  nil,
		good + ",v0=00,scheme=x,,=":         nil,
		stamp + "," + good:                  webhook.ErrMalformed,
		sigs:                                webhook.ErrMalformed,
		"t=," + sigs:                        webhook.ErrMalformed,
		stamp:                               webhook.ErrNoScheme,
		stamp + ",v0=" + sigs[3:67]:         webhook.ErrNoScheme,
		stamp + ",v1=":                      webhook.ErrSignature,
		strings.ToUpper(good):               webhook.ErrMalformed,
		strings.Replace(good, ",", ", ", 2): webhook.ErrNoScheme,
	} {
		r := s.signed(t, hookBody, hookStart)
		r.Header.Set("Stripe-Signature", text)
		_, err := v.Verify(r, []byte(hookBody))
		if want == nil {
			require.NoError(t, err, text)
		} else {
			require.ErrorIs(t, err, want, text)
		}
	}
}

func TestATokenIsInTheHeaderTheQueryOrThePath(t *testing.T) {
	request := func(target string) *http.Request {
		var got *http.Request
		mux := http.NewServeMux()
		mux.HandleFunc("/hooks/{token}", func(_ http.ResponseWriter, r *http.Request) { got = r })
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, target, nil))
		return got
	}
	tokens := []string{"token-new-0123456789", "token-old-0123456789"}
	query, err := webhook.NewToken(webhook.TokenConfig{Query: "key", Tokens: tokens})
	require.NoError(t, err)
	path, err := webhook.NewToken(webhook.TokenConfig{Path: "token", Tokens: tokens})
	require.NoError(t, err)
	for _, c := range []struct {
		v      webhook.Verifier
		target string
		want   error
	}{
		{query, "/hooks/x?key=token-new-0123456789", nil},
		{query, "/hooks/x?a=b&key=token-old-0123456789", nil},
		{query, "/hooks/x?key=token-new-0123456789&key=token-new-0123456789", webhook.ErrMalformed},
		{query, "/hooks/x?key=token-new-012345678", webhook.ErrSignature},
		{query, "/hooks/x?key=token-new-0123456789%20", webhook.ErrSignature},
		{query, "/hooks/x?key=", webhook.ErrNoSignature},
		{query, "/hooks/x?KEY=token-new-0123456789", webhook.ErrNoSignature},
		{path, "/hooks/token-old-0123456789", nil},
		{path, "/hooks/token-old-0123456788", webhook.ErrSignature},
		{path, "/hooks/Token-old-0123456789", webhook.ErrSignature},
	} {
		proof, err := c.v.Verify(request(c.target), nil)
		require.ErrorIs(t, err, c.want, c.target)
		require.Zero(t, proof)
	}
}

func TestBadKeysAreRefusedAllAtOnce(t *testing.T) {
	secrets := []string{"", "whsec_", "short", "whsec_c2hvcnQ=", "whsec_not*base64*not*base64*not*base64"}
	clear := hookSecret + " "
	for name, make := range map[string]func() error{
		"NewStandard": func() error {
			_, err := webhook.NewStandard(webhook.StandardConfig{Secrets: secrets, PublicKeys: []string{"", "whpk_AAAA", "whpk_" + sign64(make0(32))}, Tolerance: -1, Prefix: "a b"})
			return err
		},
		"NewWaveSpeed": func() error {
			_, err := webhook.NewWaveSpeed(webhook.SecretConfig{Secrets: []string{"", "whsec_", "short", "whsec_short", "0123456789abcdef0123456789abcdef"}, Tolerance: -1})
			return err
		},
		"NewStripe": func() error {
			_, err := webhook.NewStripe(webhook.SecretConfig{Secrets: []string{"", "short", clear, strings.Repeat("x", 5000)}, Tolerance: -1, Header: "a:b"})
			return err
		},
		"NewGitHub": func() error {
			_, err := webhook.NewGitHub(webhook.SecretConfig{Secrets: []string{"", "short", clear}, Tolerance: -1, Header: "a:b"})
			return err
		},
		"NewToken": func() error {
			_, err := webhook.NewToken(webhook.TokenConfig{Tokens: []string{"", "short", clear}, Header: "a b", Query: "q"})
			return err
		},
		"NewJWT": func() error { _, err := webhook.NewJWT(webhook.JWTConfig{Tolerance: -1, Header: "a b"}); return err },
		"NewKeySet": func() error {
			_, err := webhook.NewKeySet(webhook.KeySetConfig{URL: "ftp://x", Timeout: -1, MaxAge: -1, Floor: -1})
			return err
		},
		"NewFal": func() error { _, err := webhook.NewFal(webhook.KeysConfig{Tolerance: -1}); return err },
	} {
		err := make()
		require.Error(t, err, name)
		lines := strings.Split(err.Error(), "\n")
		want := map[string]int{"NewStandard": 10, "NewWaveSpeed": 6, "NewStripe": 6, "NewGitHub": 5, "NewToken": 5, "NewJWT": 5, "NewKeySet": 4, "NewFal": 1}
		require.Len(t, lines, want[name], "%s: %v", name, err)
		for _, l := range lines {
			require.True(t, strings.HasPrefix(l, "jobpoll: "+name+": "), l)
			for _, s := range append(secrets, hookSecret) {
				if len(s) > 8 {
					require.NotContains(t, l, s)
				}
			}
		}
	}
	for name, err := range map[string]error{
		"NewStandard": second(webhook.NewStandard(webhook.StandardConfig{})),
		"NewStripe":   second(webhook.NewStripe(webhook.SecretConfig{})),
		"NewGitHub":   second(webhook.NewGitHub(webhook.SecretConfig{})),
		"NewToken":    second(webhook.NewToken(webhook.TokenConfig{Header: "X"})),
	} {
		require.ErrorContains(t, err, "there is no key", name)
	}
}

func second[V any](_ V, err error) error { return err }

func make0(n int) []byte { return make([]byte, n) }

func TestAVerifierDoesNotPrintItsKeys(t *testing.T) {
	for _, s := range hookSchemes() {
		v := s.verifier(t, polltest.NewClock(hookStart))
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			text := fmt.Sprintf(verb, v)
			require.True(t, strings.HasPrefix(text, "webhook."), "%s: %s", s.name, text)
			require.Less(t, len(text), 20)
		}
	}
}
