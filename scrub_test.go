package jobpoll

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestScrubTakesSecretsOut(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		// userinfo
		{`Get "https://user:pass@api.example.com/v1": EOF`, `Get "https://…@api.example.com/v1": EOF`},
		{`https://token@host/`, `https://…@host/`},
		{`redis://:p@ss@host:6379/0`, `redis://…@host:6379/0`},
		{`a https://u:p@one b https://u:p@two`, `a https://…@one b https://…@two`},
		// query values
		{`?key=SECRET&x=1`, `?key=…&x=…`},
		{`Get "https://h/p?key=SECRET&x=1": dial tcp: timeout`, `Get "https://h/p?key=…&x=…": dial tcp: timeout`},
		{`https://h/cb#access_token=SECRET`, `https://h/cb#access_token=…`},
		{`{"url":"https://h/p?X-Sig=SECRET\u0026a=b","id":7}`, `{"url":"https://h/p?X-Sig=…","id":7}`},
		{`<a href="https://h/p?key=SECRET&amp;x=1">`, `<a href="https://h/p?key=…&amp;x=…">`},
		{`https://h/?a[]=SECRET&b=SE=CRET`, `https://h/?a[]=…&b=…`},
		// authorization
		{`Authorization: Bearer SECRET`, `Authorization: Bearer …`},
		{`authorization: bearer SECRET, x`, `authorization: bearer …, x`},
		{`Authorization: Basic dTpw`, `Authorization: Basic …`},
		{`Authorization: Key id:SECRET`, `Authorization: Key …`},
		{`Authorization: SECRET`, `Authorization: …`},
		{`Proxy-Authorization=Basic dTpw==`, `Proxy-Authorization=Basic …`},
		{`{"Authorization":"Key id:SECRET","a":1}`, `{"Authorization":"Key …","a":1}`},
		{`{\"authorization\": \"Bearer SECRET\"}`, `{\"authorization\": \"Bearer …"}`},
		{fmt.Sprint(http.Header{"Authorization": {"Bearer SECRET"}, "Z": {"1"}}), `map[Authorization:[Bearer …] Z:[1]]`},
		{`X-Auth: Token SECRET`, `X-Auth: Token …`},
		{`bad token Bearer abcdef.012345-xyz`, `bad token Bearer …`},
		{`auth key 0123456789abcdef is blocked`, `auth key … is blocked`},
		// keys
		{`key sk-0123456789abcdef`, `key sk-…`},
		{`sk-proj-0123456789_abcdef.`, `sk-….`},
		{`(r8_0123456789abcdef)`, `(r8_…)`},
		{`key-0123456789abcdef`, `key-…`},
		{`whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw==`, `whsec_…`},
		{`xai-0123456789abcdef`, `xai-…`},
		{`AIzaSyA0123456789abcdef`, `AIza…`},
		{`jwt eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJ4In0.c2ln end`, `jwt eyJ… end`},
		{`{"api_key":"0123456789","password":"hunter2hunter2"}`, `{"api_key":"…","password":"…"}`},
		{`x-api-key: 0123456789abcdef`, `x-api-key: …`},
		// Hidden by what is taken out anyway.
		{"sk-0123\x00456789abcdef", "sk-…"},
		{"sk-0123\u200b456789abcdef", "sk-…"},
		{"Authorization:\r\n\tBearer SECRET", "Authorization: Bearer …"},
	} {
		assert.Equal(t, c.want, scrub(c.in), "%q", c.in)
		assert.Equal(t, c.want, scrub(c.want), "what is clean stays")
	}
}

func TestScrubLeavesOrdinaryTextAlone(t *testing.T) {
	for _, s := range []string{
		"", "x", "job 42 failed: moderation", "Authorization header missing", "authentication key is invalid", "missing Bearer token",
		"task-0123456789abcdef not found", "risk-assessment-required", "monkey-business-as-usual", "sk-short", "mail me@example.com",
		`see https://example.com/docs and write to me@example.com`, `{"url":"https://h/p","mail":"me@example.com"}`,
		"影片生成失败：内容违规", "a=b, c = d", "why? a=b", "Basic plan only", "key not found", "50% done & counting",
		"0b6f9a54-9a7e-4a4e-8a3e-6c6f1f0f3c1d", "…", "\ufffd",
	} {
		assert.Equal(t, s, scrub(s))
	}
}

func TestScrubGivesOneShortLine(t *testing.T) {
	assert.Equal(t, "a b c d", scrub("\t a\r\nb \u2028c\u00a0\u0085 d \x7f"))
	assert.Equal(t, "ab", scrub("a\x1b\x00\u202e\u200f\ufeffb"))
	assert.Equal(t, "ab", scrub("a\xff\xc3b\xe5\xbd"))
	for _, s := range []string{strings.Repeat("x", 501), strings.Repeat("影", 200), strings.Repeat("x", 100_000), strings.Repeat("a ", 100_000), strings.Repeat("🎬", 5000)} {
		got := scrub(s)
		assert.LessOrEqual(t, len(got), maxScrubbed)
		assert.Greater(t, len(got), maxScrubbed-8)
		assert.True(t, utf8.ValidString(got))
		assert.True(t, strings.HasSuffix(got, "…"))
	}
	exact := strings.Repeat("x", 500)
	assert.Equal(t, exact, scrub(exact))
}

func TestScrubShowsNoHalfOfASecretAtItsBounds(t *testing.T) {
	const secret = "sk-0123456789abcdef"
	for n := maxScrubbed - 40; n < maxScrubbed+5; n++ {
		assert.NotContains(t, scrub(strings.Repeat("x", n)+" "+secret), "0123")
	}
	// The input is cut, and what is before shrinks so that the end comes into sight.
	for n := maxScrubInput - 40; n < maxScrubInput+5; n++ {
		got := scrub("?a=" + strings.Repeat("S", n-len("?a= ")) + " " + "https://user:0123456789@h")
		assert.NotContains(t, got, "0123", "%d", n)
		got = scrub("?a=" + strings.Repeat("S", n-len("?a= ")) + " " + secret)
		assert.NotContains(t, got, "0123", "%d", n)
	}
}

type panickingError struct{ s *string }

func (e *panickingError) Error() string { return *e.s }

func TestScrubErrIsSafeOnAnyError(t *testing.T) {
	assert.Equal(t, "", scrubErr(nil))
	assert.Equal(t, "boom", scrubErr(errors.New("boom\n")))
	var none *panickingError
	assert.Equal(t, "an error whose Error method panics", scrubErr(none))
	assert.Equal(t, "an error whose Error method panics", scrubErr(&panickingError{}))
	err := &url.Error{Op: "Get", URL: "https://u:SECRET@h/?key=SECRET", Err: errors.New("EOF")}
	assert.Equal(t, `Get "https://…@h/?key=…": EOF`, scrubErr(fmt.Errorf("look: %w", err))[len("look: "):])
}

func FuzzScrub(f *testing.F) {
	f.Add("", "")
	f.Add(`Get "`, `": EOF`)
	f.Add("https://a:b@c/?d=e#f=g Authorization: Bearer ", "sk-")
	f.Add(strings.Repeat("x", 480)+"\xff\u202e", strings.Repeat("@", 100))
	f.Add("eyJ://?&=#@", "\"<>'\\")
	const secret = "Zq7Zq7Zq7Zq7Zq7Zq7"
	planted := " https://user:" + secret + "@h/" + "?key=" + secret + " Authorization: Key " + secret + " Bearer " + secret + " sk-" + secret + " whsec_" + secret + " "
	f.Fuzz(func(t *testing.T, before, after string) {
		for _, s := range []string{before, before + after, before + planted + after} {
			got := scrub(s)
			if len(got) > maxScrubbed || !utf8.ValidString(got) {
				t.Fatalf("%d bytes, %q", len(got), got)
			}
			for _, r := range got {
				if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
					t.Fatalf("control character in %q", got)
				}
			}
		}
		if strings.Contains(before, "Zq7") || strings.Contains(after, "Zq7") {
			return
		}
		if got := scrub(before + planted + after); strings.Contains(got, "Zq7") {
			t.Fatalf("secret in %q", got)
		}
	})
}

var sinkScrub string

func BenchmarkScrubPlain(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		sinkScrub = scrub("Internal Server Error: the render farm is busy, try again in a moment")
	}
}

func BenchmarkScrubHuge(b *testing.B) {
	s := strings.Repeat("://a:b?c=d&e=f Authorization: Bearer x ", 100_000)
	b.ReportAllocs()
	for b.Loop() {
		sinkScrub = scrub(s)
	}
}
