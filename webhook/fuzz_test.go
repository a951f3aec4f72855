package webhook_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/jobpoll/jobpoll/webhook"
)

// fuzzScheme fuzzes the headers of a scheme: nothing panics, and nothing passes
// but what the signer made.
func fuzzScheme(f *testing.F, name string, seeds ...string) {
	var s hookScheme
	for _, c := range hookSchemes() {
		if c.name == name {
			s = c
		}
	}
	v := s.verifier(f, newHookClock())
	good := s.signed(f, hookBody, hookStart)
	values := make([]string, 4)
	for i, h := range s.headers {
		values[i] = good.Header.Get(h)
	}
	f.Add(values[0], values[1], values[2], values[3], hookBody)
	for _, seed := range seeds {
		for i := range s.headers {
			changed := append([]string(nil), values...)
			changed[i] = seed
			f.Add(changed[0], changed[1], changed[2], changed[3], hookBody)
		}
	}
	f.Fuzz(func(t *testing.T, a, b, c, d, body string) {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		got := []string{a, b, c, d}
		same := !s.body || body == hookBody
		for i, h := range s.headers {
			r.Header[http.CanonicalHeaderKey(h)] = []string{got[i]}
			same = same && sameFuzzed(s.name, got[i], values[i])
		}
		proof, err := v.Verify(r, []byte(body))
		if (err == nil) != same || err != nil && proof != (webhook.Proof{}) {
			t.Fatalf("%q: %+v, %v", got, proof, err)
		}
	})
}

// sameFuzzed reports whether a value says what the good one does: a list may
// have more in it.
func sameFuzzed(scheme, got, good string) bool {
	if got == good {
		return true
	}
	if len(got) > 8<<10 || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r > '~' }) {
		return false
	}
	switch scheme {
	case "standard v1", "standard v1a":
		return strings.Contains(" "+got+" ", " "+good+" ") && strings.HasPrefix(good, "v1")
	case "stripe":
		entries := "," + got + ","
		stamp, sig, _ := strings.Cut(good, ",")
		return strings.Count(entries, ",t=") == 1 && strings.Contains(entries, ","+stamp+",") && strings.Contains(entries, ","+sig+",")
	}
	return false
}

func FuzzStandardHeaders(f *testing.F) {
	fuzzScheme(f, "standard v1", "", "a.b", "0", "-1", "v1,", "v1,x v1,y", "v1a,AAAA v1", strings.Repeat("v1,A ", 2000))
}

func FuzzStandardEd25519Headers(f *testing.F) {
	fuzzScheme(f, "standard v1a", "", "v1a,", "v1a,====", "v1a,AAAA v1a,BBBB", "v1,AAAA")
}

func FuzzWaveSpeedHeaders(f *testing.F) { fuzzScheme(f, "wavespeed", "", "v3,", "v3,zz", "v1,00") }

func FuzzStripeHeader(f *testing.F) {
	fuzzScheme(f, "stripe", "", "t=", "t=1,t=1", "v1=,v1=", "t=1767323045,v1=00,v0=00", ",,,=", "t")
}

func FuzzGitHubHeader(f *testing.F) { fuzzScheme(f, "github", "", "sha256=", "sha1=00", "sha256=zz") }

func FuzzFalHeaders(f *testing.F) { fuzzScheme(f, "fal", "", "00", "0g", "a\nb", "99999999999") }

func FuzzAtlasHeaders(f *testing.F) { fuzzScheme(f, "atlas", "", "AA", "A=", "k2", "99999999999") }

func FuzzJWTHeader(f *testing.F) {
	fuzzScheme(f, "jwt", "", "..", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", url64([]byte(`{"alg":"RS256","kid":"r1"}`))+".e30.AA")
}

func FuzzTokenQuery(f *testing.F) {
	const token = "token-0123456789ab"
	v, err := webhook.NewToken(webhook.TokenConfig{Query: "key", Tokens: []string{token}})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"key=" + token, "key=%74oken-0123456789ab", "key", "key=&key=", "a=b;key=" + token, "%zz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		_, err := v.Verify(&http.Request{URL: &url.URL{Path: "/", RawQuery: query}}, nil)
		values, _ := url.ParseQuery(query)
		if want := len(values["key"]) == 1 && values.Get("key") == token; want != (err == nil) {
			t.Fatalf("%q: %v", query, err)
		}
	})
}

func FuzzEchoChallenge(f *testing.F) {
	for _, seed := range []string{`{"challenge":"x"}`, `{"challenge":1}`, `{"challenge":{}}`, `{"challenge":"<"}`, ``, `{"challenge":"\ud800"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		answer, ok := webhook.EchoChallenge(body)
		if ok != (len(answer) > 0) || len(answer) > 7000 || strings.ContainsAny(string(answer), "<>\n") {
			t.Fatalf("%q gives %q", body, answer)
		}
	})
}
