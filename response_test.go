package jobpoll

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answer builds a response with a body and headers from key, value, …
func answer(code int, body string, kv ...string) *http.Response {
	return &http.Response{StatusCode: code, Header: headerOf(kv...), Body: io.NopCloser(strings.NewReader(body))}
}

func asCheckError(t *testing.T, err error) *CheckError {
	t.Helper()
	var ce *CheckError
	require.ErrorAs(t, err, &ce)
	return ce
}

func TestStatusSaysWhatAFailedLookMeans(t *testing.T) {
	const retry, stop = "true", "false"
	for _, c := range []struct {
		code   int
		retry  string
		expect ErrorKind
	}{
		{204, "", ErrorTransient}, {205, "", ErrorTransient},
		{100, "", ErrorTransient}, {101, "", ErrorTransient}, {103, "", ErrorTransient},
		{300, "", ErrorTransient}, {301, "", ErrorTransient}, {302, "", ErrorTransient}, {304, "", ErrorTransient}, {308, "", ErrorTransient},
		{400, "", ErrorInvalid}, // B42
		{401, "", ErrorAuth}, {407, "", ErrorAuth},
		{402, "", ErrorQuota},
		{403, "", ErrorPolicy}, // B42
		{451, "", ErrorPolicy},
		{404, "", ErrorNoSuchJob}, {410, "", ErrorGone},
		{405, "", ErrorInvalid}, {406, "", ErrorInvalid}, {413, "", ErrorInvalid}, {415, "", ErrorInvalid}, {422, "", ErrorInvalid}, {499, "", ErrorInvalid},
		{408, "", ErrorTransient}, {409, "", ErrorTransient}, {421, "", ErrorTransient}, {425, "", ErrorTransient},
		{429, "", ErrorRateLimited}, // B44 b
		{500, "", ErrorTransient}, {501, "", ErrorTransient}, {502, "", ErrorTransient}, {503, "", ErrorTransient}, {504, "", ErrorTransient}, {529, "", ErrorTransient}, {599, "", ErrorTransient},
		{0, "", ErrorTransient}, {-1, "", ErrorTransient}, {99, "", ErrorTransient}, {600, "", ErrorTransient}, {999, "", ErrorTransient}, {-429, "", ErrorTransient},

		{429, stop, ErrorQuota}, {429, " False ", ErrorQuota}, {429, retry, ErrorRateLimited}, {429, "maybe", ErrorRateLimited},
		{400, retry, ErrorTransient}, {422, "TRUE", ErrorTransient}, {400, stop, ErrorInvalid}, {400, "", ErrorInvalid},
		{409, stop, ErrorTransient}, {408, stop, ErrorTransient},
		{500, stop, ErrorTransient}, {503, stop, ErrorTransient}, {302, stop, ErrorTransient},
		{401, retry, ErrorAuth}, {402, retry, ErrorQuota}, {403, retry, ErrorPolicy}, {404, retry, ErrorNoSuchJob}, {410, retry, ErrorGone},
	} {
		resp := answer(c.code, "")
		if c.retry != "" {
			resp.Header.Set("X-Should-Retry", c.retry)
		}
		hint, err := FromResponse(resp, hintNow)
		ce := asCheckError(t, err)
		assert.Equal(t, c.expect, ce.Kind, "%d retry %q", c.code, c.retry)
		assert.Equal(t, c.code, ce.Status)
		assert.Equal(t, hint, ce.Hint)
		assert.Zero(t, hint.RetryAfter)
		require.Error(t, ce.Err)
		assert.True(t, strings.HasPrefix(err.Error(), "jobpoll: "+c.expect.String()), err.Error())
		assert.Equal(t, 1, strings.Count(err.Error(), "jobpoll: "))
	}
}

func TestAnswerOfSuccessIsLeftToTheDecoder(t *testing.T) {
	for _, code := range []int{200, 201, 202, 203, 206, 226, 299} {
		read := &countingBody{Reader: strings.NewReader(`{"status":"processing"}`)}
		hint, err := FromResponse(&http.Response{StatusCode: code, Header: headerOf("Content-Type", "application/json"), Body: read}, hintNow)
		require.NoError(t, err)
		assert.Equal(t, Hint{}, hint)
		assert.Zero(t, read.reads, "the body is not touched")
	}
	hint, err := FromResponse(answer(202, "", "Retry-After", "20"), hintNow) // B06 b
	require.NoError(t, err)
	assert.Equal(t, Hint{RetryAfter: 20 * time.Second, Scope: ScopeJob}, hint)

	hint, err = FromResponse(answer(200, "", "Retry-After", "soon"), hintNow)
	require.NoError(t, err)
	assert.Equal(t, Hint{Malformed: true}, hint)
}

type countingBody struct {
	io.Reader
	reads, closes int
}

func (b *countingBody) Read(p []byte) (int, error) { b.reads++; return b.Reader.Read(p) }
func (b *countingBody) Close() error               { b.closes++; return nil }

func TestSuccessWithAPageIsTransient(t *testing.T) { // B41
	for _, media := range []string{"text/html", "text/html; charset=utf-8", "TEXT/HTML ;x", " text/html", "application/xhtml+xml"} {
		read := &countingBody{Reader: strings.NewReader("<html>")}
		hint, err := FromResponse(&http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {media}, "Retry-After": {"7"}}, Body: read}, hintNow)
		ce := asCheckError(t, err)
		assert.Equal(t, ErrorTransient, ce.Kind, media)
		assert.Equal(t, Hint{RetryAfter: 7 * time.Second, Scope: ScopeJob}, hint)
		assert.Contains(t, err.Error(), "no decodable body")
		assert.Contains(t, err.Error(), "an HTML page")
		assert.Zero(t, read.reads)
	}
	for _, media := range []string{"", "text/plain", "application/json", "text/html-ish"} {
		_, err := FromResponse(answer(200, "{}", "Content-Type", media), hintNow)
		assert.NoError(t, err, media)
	}
}

func TestHintBindsTheScopeThatTheStatusNames(t *testing.T) { // B06 b
	for code, scope := range map[int]Scope{
		200: ScopeJob, 202: ScopeJob, 204: ScopeJob, 302: ScopeJob, 404: ScopeJob, 409: ScopeJob, 500: ScopeJob, 502: ScopeJob,
		429: ScopeBudget, 503: ScopeBudget,
	} {
		want := Hint{RetryAfter: 15 * time.Second, Scope: scope}
		hint, err := FromResponse(answer(code, "", "Retry-After", "15"), hintNow)
		assert.Equal(t, want, hint, "%d", code)
		if err != nil {
			assert.Equal(t, want, asCheckError(t, err).Hint, "%d", code)
		}
	}
	hint, _ := FromResponse(answer(429, ""), hintNow)
	assert.Equal(t, Hint{Scope: ScopeBudget}, hint, "a 429 cools the scope also without a wait")
	hint, _ = FromResponse(answer(503, ""), hintNow)
	assert.Equal(t, Hint{}, hint, "a 503 without a wait is no hint")
	hint, _ = FromResponse(answer(429, "", "Retry-After", "-5", "X-Should-Retry", "false"), hintNow) // B03 b
	assert.Equal(t, Hint{Scope: ScopeBudget, Malformed: true}, hint)
}

func TestNothingInAResponsePanics(t *testing.T) {
	hint, err := FromResponse(nil, hintNow)
	assert.Equal(t, Hint{}, hint)
	ce := asCheckError(t, err)
	assert.Equal(t, ErrorTransient, ce.Kind)
	assert.Zero(t, ce.Status)

	for _, code := range []int{math.MinInt, -1, 0, 99, 101, 199, 204, 302, 404, 429, 503, 600, 999, math.MaxInt} {
		for _, resp := range []*http.Response{
			{StatusCode: code},
			{StatusCode: code, Header: http.Header{}, Body: http.NoBody},
			{StatusCode: code, Header: http.Header{"Content-Type": nil, "Content-Encoding": nil, "X-Should-Retry": nil, "Retry-After": {}}},
		} {
			assert.NotPanics(t, func() { _, err = FromResponse(resp, time.Time{}) }, "%d", code)
			assert.Error(t, err)
		}
	}
	_, err = FromResponse(&http.Response{StatusCode: 200}, hintNow)
	assert.NoError(t, err)
}

func TestErrorShowsStatusAndBodyInOneShortLine(t *testing.T) { // B42
	for _, c := range []struct {
		name string
		resp *http.Response
		want string
	}{
		{"text", answer(400, " invalid\r\n\tid \x00\x1b[31m"), "jobpoll: invalid (HTTP 400): Bad Request: invalid id [31m"},
		{"json", answer(403, "{\"error\":\n  \"not allowed\"}\n"), `jobpoll: policy (HTTP 403): Forbidden: {"error": "not allowed"}`},
		{"empty", answer(404, ""), "jobpoll: no such job (HTTP 404): Not Found"},
		{"no body", &http.Response{StatusCode: 410}, "jobpoll: gone (HTTP 410): Gone"},
		{"page by type", answer(502, "<p>secret</p>", "Content-Type", "text/html"), "jobpoll: transient (HTTP 502): Bad Gateway: an HTML page"}, // B41
		{"page by look", answer(502, "\n <!DOCTYPE html><title>x</title>"), "jobpoll: transient (HTTP 502): Bad Gateway: an HTML page"},         // B41
		{"page with a mark", answer(502, "\ufeff<HTML lang=en>x"), "jobpoll: transient (HTTP 502): Bad Gateway: an HTML page"},
		{"compressed", answer(500, "\x1f\x8bjunk", "Content-Encoding", "gzip"), "jobpoll: transient (HTTP 500): Internal Server Error"},
		{"not UTF-8", answer(400, "a\xff\xfeb"), "jobpoll: invalid (HTTP 400): Bad Request: ab"},
		{"secrets", answer(400, `no such url https://u:pw@h/v?key=S3CRET&x=1`), "jobpoll: invalid (HTTP 400): Bad Request: no such url https://…@h/v?key=…&x=…"},
		{"secret of an old key", answer(401, `Incorrect API key provided: sk-abcdef0123456789`), "jobpoll: auth (HTTP 401): Unauthorized: Incorrect API key provided: sk-…"},
		{"reason of its own", &http.Response{StatusCode: 499, Status: "499 Client\n Closed ?key=S3CRET"}, "jobpoll: invalid (HTTP 499): status 499 Client Closed ?key=…"},
		{"no reason", &http.Response{StatusCode: 999}, "jobpoll: transient (HTTP 999): no known status"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := FromResponse(c.resp, hintNow)
			assert.EqualError(t, err, c.want)
		})
	}

	for name, body := range map[string]string{"ascii": strings.Repeat("x", 300), "runes": strings.Repeat("影片", 3000), "cut in a rune": "a" + strings.Repeat("影", 2000)} {
		_, err := FromResponse(answer(400, body), hintNow)
		text := strings.TrimPrefix(err.Error(), "jobpoll: invalid (HTTP 400): Bad Request: ")
		assert.True(t, utf8.ValidString(text), name)
		assert.Equal(t, 201, utf8.RuneCountInString(text), name)
		assert.True(t, strings.HasSuffix(text, "…"), name)
	}

	// What is read of the body may end within a secret that is next to be shown.
	for n := maxErrorBody - 60; n < maxErrorBody; n++ {
		body := "https://h/?key=" + strings.Repeat("S", n-len("https://h/?key=")) + " https://user:hunter2@h/"
		_, err := FromResponse(answer(400, body), hintNow)
		assert.NotContains(t, err.Error(), "hunt", "%d", n)
	}
}

func TestBodyStaysReadable(t *testing.T) {
	for _, size := range []int{0, 1, maxErrorBody - 1, maxErrorBody, maxErrorBody + 1, 3 * maxErrorBody} {
		body := strings.Repeat("0123456789", size/10+1)[:size]
		for name, r := range map[string]io.Reader{
			"plain": strings.NewReader(body), "one byte": iotest.OneByteReader(strings.NewReader(body)),
			"data with EOF": iotest.DataErrReader(strings.NewReader(body)),
		} {
			orig := &countingBody{Reader: r}
			resp := &http.Response{StatusCode: 422, Body: orig}
			_, err := FromResponse(resp, hintNow)
			require.Error(t, err)
			assert.Zero(t, orig.closes, "closing stays with the caller")
			got, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			assert.Equal(t, body, string(got), "%s, %d bytes", name, size)
			n, err := resp.Body.Read(make([]byte, 1))
			assert.Zero(t, n)
			assert.Equal(t, io.EOF, err, "the end stays the end")
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, 1, orig.closes)
		}
	}

	resp := answer(422, `{"code":"insufficient_quota"}`)
	_, err := FromResponse(resp, hintNow)
	_, again := FromResponse(resp, hintNow)
	assert.EqualError(t, again, err.Error(), "also for a second call")
}

func TestBrokenBodyOnlyEndsTheExcerpt(t *testing.T) { // B41
	broken := errors.New("connection reset")
	resp := &http.Response{StatusCode: 500, Body: io.NopCloser(io.MultiReader(strings.NewReader("half an ans"), iotest.ErrReader(broken)))}
	_, err := FromResponse(resp, hintNow)
	assert.EqualError(t, err, "jobpoll: transient (HTTP 500): Internal Server Error: half an ans")
	got, err := io.ReadAll(resp.Body)
	assert.Equal(t, "half an ans", string(got))
	assert.Equal(t, broken, err, "the reader of the rest learns of it")

	once := &onceBroken{err: broken}
	resp = &http.Response{StatusCode: 500, Body: once}
	_, _ = FromResponse(resp, hintNow)
	_, err = resp.Body.Read(make([]byte, 8))
	assert.Equal(t, broken, err, "also where the body would go on as if nothing had been")

	idle := &countingBody{Reader: idleReader{}}
	_, err = FromResponse(&http.Response{StatusCode: 500, Body: idle}, hintNow)
	require.Error(t, err)
	assert.LessOrEqual(t, idle.reads, maxEmptyReads, "a body that gives nothing is left")
}

// onceBroken fails its first read only.
type onceBroken struct{ err error }

func (o *onceBroken) Read(p []byte) (int, error) {
	err := o.err
	o.err = nil
	if err != nil {
		return 0, err
	}
	return copy(p, "more"), nil
}

func (o *onceBroken) Close() error { return nil }

type idleReader struct{}

func (idleReader) Read([]byte) (int, error) { return 0, nil }

func TestConnectionOfASwitchedProtocolIsNotRead(t *testing.T) {
	body := &countingBody{Reader: strings.NewReader("frames")}
	_, err := FromResponse(&http.Response{StatusCode: 101, Body: body}, hintNow)
	assert.Equal(t, ErrorTransient, asCheckError(t, err).Kind)
	assert.Zero(t, body.reads)
}

func TestFromResponseOnRealAnswers(t *testing.T) {
	answers := map[string]http.HandlerFunc{
		"/page": func(w http.ResponseWriter, _ *http.Request) { // B41
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(502)
			_, _ = io.WriteString(w, "<html><body>bad gateway</body></html>")
		},
		"/half": func(w http.ResponseWriter, _ *http.Request) { // B41: the connection ends within the body
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(500)
			_, _ = io.WriteString(w, `{"stat`)
		},
		"/limited": func(w http.ResponseWriter, _ *http.Request) { // B03 e
			w.Header().Add("retry-after", "7")
			w.Header().Add("retry-after", "20")
			w.WriteHeader(429)
			_, _ = io.WriteString(w, `{"code":"insufficient_quota"}`)
		},
		"/date": func(w http.ResponseWriter, _ *http.Request) { // B01
			w.Header().Set("Date", "Thu, 01 Jan 2026 00:00:00 GMT")
			w.Header().Set("Retry-After", "Thu, 01 Jan 2026 00:01:30 GMT")
			w.WriteHeader(503)
		},
		"/openai": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("openai-poll-after-ms", "2500")
			w.Header().Set("x-ratelimit-remaining-requests", "0")
			w.Header().Set("x-ratelimit-reset-requests", "1h")
			_, _ = io.WriteString(w, `{"status":"in_progress"}`)
		},
		"/ratelimit": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ratelimit", `"default";r=0;t=30`)
			_, _ = io.WriteString(w, `{"status":"in_progress"}`)
		},
		"/empty": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
		"/moved": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/empty", http.StatusFound) },
		"/refuse": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "key sk-0123456789abcdef is blocked", http.StatusForbidden)
		}, // B42
		"/long": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(400)
			_, _ = w.Write(bytes.Repeat([]byte("long "), 20_000))
		},
	}
	mux := http.NewServeMux()
	for path, h := range answers {
		mux.HandleFunc(path, h)
	}
	srv := httptest.NewServer(mux)
	defer srv.Close()
	client := srv.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

	for _, c := range []struct {
		path string
		hint Hint
		err  string
		body string
	}{
		{"/page", Hint{}, "jobpoll: transient (HTTP 502): Bad Gateway: an HTML page", "<html><body>bad gateway</body></html>"},
		{"/half", Hint{}, `jobpoll: transient (HTTP 500): Internal Server Error: {"stat`, `{"stat`},
		{"/limited", Hint{RetryAfter: 20 * time.Second, Scope: ScopeBudget}, `jobpoll: rate limited (HTTP 429): Too Many Requests: {"code":"insufficient_quota"}`, `{"code":"insufficient_quota"}`},
		{"/date", Hint{RetryAfter: 90 * time.Second, Scope: ScopeBudget}, "jobpoll: transient (HTTP 503): Service Unavailable", ""},
		{"/openai", Hint{RetryAfter: 2500 * time.Millisecond, Scope: ScopeJob}, "", `{"status":"in_progress"}`},
		{"/ratelimit", Hint{RetryAfter: 30 * time.Second, Scope: ScopeJob}, "", `{"status":"in_progress"}`},
		{"/empty", Hint{}, "jobpoll: transient (HTTP 204): no decodable body: No Content", ""},
		{"/moved", Hint{}, "jobpoll: transient (HTTP 302): Found: an HTML page", "<a href=\"/empty\">Found</a>.\n\n"},
		{"/refuse", Hint{}, "jobpoll: policy (HTTP 403): Forbidden: key sk-… is blocked", "key sk-0123456789abcdef is blocked\n"},
		{"/long", Hint{}, "jobpoll: invalid (HTTP 400): Bad Request: " + strings.Repeat("long ", 40) + "…", strings.Repeat("long ", 20_000)},
	} {
		t.Run(c.path, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+c.path, nil)
			require.NoError(t, err)
			resp, err := client.Do(req)
			require.NoError(t, err)
			defer func() { require.NoError(t, resp.Body.Close()) }()

			hint, err := FromResponse(resp, time.Now())
			assert.Equal(t, c.hint, hint)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.err)
			}
			body, err := io.ReadAll(resp.Body)
			if c.path == "/half" {
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			} else {
				require.NoError(t, err)
			}
			assert.Equal(t, c.body, string(body))
		})
	}
}

func FuzzFromResponse(f *testing.F) {
	f.Add(429, "429 Too Many Requests", "application/json", "20", "false", []byte(`{"error":"slow down"}`), int64(0), uint16(0))
	f.Add(200, "", "text/html", "", "", []byte("<html>"), int64(946684800), uint16(3))
	f.Add(-7, "\xff", "text/plain", "nan", "true", bytes.Repeat([]byte("é"), maxErrorBody), int64(-62135596800), uint16(5000))
	f.Fuzz(func(t *testing.T, code int, status, media, after, retry string, body []byte, at int64, cut uint16) {
		var src io.Reader = bytes.NewReader(body)
		broken := int(cut) < len(body)
		if broken {
			src = io.MultiReader(bytes.NewReader(body[:cut]), iotest.ErrReader(io.ErrUnexpectedEOF))
			body = body[:cut]
		}
		resp := &http.Response{StatusCode: code, Status: status, Body: io.NopCloser(src), Header: http.Header{
			"Content-Type": {media}, "Retry-After": {after}, "X-Should-Retry": {retry}, "Ratelimit": {after}}}
		hint, err := FromResponse(resp, time.Unix(at, 0))
		if hint.RetryAfter < 0 || hint.RetryAfter > MaxRetryAfter {
			t.Fatalf("hint %v is out of bounds", hint)
		}
		if hint.RetryAfter == 0 && hint.Scope == ScopeJob || hint.RetryAfter > 0 && hint.Scope == ScopeDefault {
			t.Fatalf("hint %v has the wrong scope", hint)
		}
		if _, jsonErr := json.Marshal(hint); jsonErr != nil {
			t.Fatal(jsonErr)
		}
		if err != nil {
			var ce *CheckError
			if !errors.As(err, &ce) || ce.Hint != hint || ce.Status != code || ce.Err == nil {
				t.Fatalf("error %#v", err)
			}
			if ce.Kind == ErrorNone || ce.Kind >= ErrorUnknown {
				t.Fatalf("kind %v", ce.Kind)
			}
			text := err.Error()
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\n\r\x00\x1b") || len(text) > maxScrubbed+4*maxExcerpt+100 {
				t.Fatalf("text %q", text)
			}
		} else if code < 200 || code > 299 {
			t.Fatalf("no error for %d", code)
		}
		got, readErr := io.ReadAll(resp.Body)
		if !bytes.Equal(got, body) || broken != (readErr != nil) {
			t.Fatalf("body %q is now %q, %v", body, got, readErr)
		}
	})
}
