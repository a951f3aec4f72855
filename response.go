package jobpoll

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	hdrContentEncoding = "Content-Encoding"
	hdrContentType     = "Content-Type"
	hdrShouldRetry     = "X-Should-Retry"
)

const (
	maxErrorBody  = 4 << 10 // bytes read of a body for the excerpt
	maxExcerpt    = 200     // runes of it in the error
	maxEmptyReads = 16      // a body that gives neither bytes nor an error is left
)

// FromResponse reads what an HTTP answer means for the polling of a job, before
// its body is decoded: the provider's wait, and whether there is an answer to
// decode. now is the time of the answer; it is used for hints that are dates
// where the answer has no Date of its own.
//
// The error is nil for a 2xx that can be decoded, and its body is not touched.
// Otherwise it is a *CheckError, with the same Hint, the status, and a cause
// that names the status and shows the begin of the body, cleared of what looks
// like a secret. At most 4 KiB are read for that; resp.Body is replaced so that
// all of it can still be read, by an adapter that knows the provider's own
// codes and can say more (a 429 for a used-up quota, say). Closing resp.Body
// stays with the caller.
//
//	2xx                        nil
//	204, 205, 2xx of text/html ErrorTransient: nothing to decode
//	401, 407                   ErrorAuth
//	402                        ErrorQuota
//	403, 451                   ErrorPolicy
//	404                        ErrorNoSuchJob
//	410                        ErrorGone
//	408, 409, 421, 425         ErrorTransient
//	429                        ErrorRateLimited; with X-Should-Retry: false ErrorQuota
//	other 4xx                  ErrorInvalid; with X-Should-Retry: true ErrorTransient
//	all else, a nil resp       ErrorTransient
//
// X-Should-Retry: false does not make a 5xx permanent. It speaks of sending
// that request again; the next look is a new request, about a job that the
// provider goes on with, and the error budget bounds how many there are.
//
// Hint.RetryAfter is the longest of Retry-After (seconds, fraction, date),
// Retry-After-Ms, X-RateLimit-Retry-After and OpenAI-Poll-After-Ms; where none
// of them asks for a wait, the reset of a used-up rate limit (RateLimit,
// RateLimit-Reset, X-RateLimit-Reset and kin). Hint.Scope is ScopeBudget on a
// 429 and, with a wait, on a 503; with a wait ScopeJob on any other status;
// else ScopeDefault.
func FromResponse(resp *http.Response, now time.Time) (Hint, error) {
	if resp == nil {
		return Hint{}, &CheckError{Kind: ErrorTransient, Err: errors.New("no response")}
	}
	code := resp.StatusCode
	hint := responseHint(resp.Header, code, now)

	var cause string
	if code >= 200 && code <= 299 {
		if cause = undecodable(resp); cause == "" {
			return hint, nil
		}
	} else {
		cause = httpStatusText(resp)
		if text := bodyExcerpt(resp); text != "" {
			cause += ": " + text
		}
	}
	return hint, &CheckError{
		Kind:   statusKind(code, shouldRetryHeader(resp.Header)),
		Hint:   hint,
		Status: code,
		Err:    errors.New(cause),
	}
}

// responseHint reads the hint and says what it binds.
func responseHint(h http.Header, code int, now time.Time) Hint {
	wait, malformed := retryHint(h, code, now)
	hint := Hint{RetryAfter: wait, Malformed: malformed}
	switch {
	case code == http.StatusTooManyRequests:
		hint.Scope = ScopeBudget // also without a wait: it cools the scope all the same
	case wait == 0:
	case code == http.StatusServiceUnavailable:
		hint.Scope = ScopeBudget
	default:
		hint.Scope = ScopeJob
	}
	return hint
}

// statusKind says what a status means that is not one of success, or one of
// success with nothing to decode. retry is X-Should-Retry in lower case.
func statusKind(code int, retry string) ErrorKind {
	switch code {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired:
		return ErrorAuth
	case http.StatusPaymentRequired:
		return ErrorQuota
	case http.StatusForbidden, http.StatusUnavailableForLegalReasons:
		return ErrorPolicy
	case http.StatusNotFound:
		return ErrorNoSuchJob
	case http.StatusGone:
		return ErrorGone
	case http.StatusTooManyRequests:
		if retry == "false" {
			return ErrorQuota
		}
		return ErrorRateLimited
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusMisdirectedRequest, http.StatusTooEarly:
		return ErrorTransient
	}
	if code >= 400 && code <= 499 && retry != "true" {
		return ErrorInvalid
	}
	return ErrorTransient
}

func shouldRetryHeader(h http.Header) string {
	if v := h[hdrShouldRetry]; len(v) > 0 {
		return strings.ToLower(trimOWS(v[0]))
	}
	return ""
}

// undecodable says why there is nothing to decode in an answer of success;
// empty if there may be.
func undecodable(resp *http.Response) string {
	switch {
	case resp.StatusCode == http.StatusNoContent, resp.StatusCode == http.StatusResetContent:
		return "no decodable body: " + http.StatusText(resp.StatusCode)
	case isHTML(resp.Header):
		return "no decodable body: an HTML page"
	default:
		return ""
	}
}

func isHTML(h http.Header) bool {
	v := h[hdrContentType]
	if len(v) == 0 {
		return false
	}
	media, _, _ := strings.Cut(v[0], ";")
	media = trimOWS(media)
	return strings.EqualFold(media, "text/html") || strings.EqualFold(media, "application/xhtml+xml")
}

// httpStatusText names the status, by the registered name where there is one.
func httpStatusText(resp *http.Response) string {
	if s := http.StatusText(resp.StatusCode); s != "" {
		return s
	}
	if s := scrub(resp.Status); s != "" {
		return "status " + s
	}
	return "no known status"
}

// bodyExcerpt shows the begin of the body of an answer that is an error, and puts
// back what it read.
func bodyExcerpt(resp *http.Response) string {
	if isHTML(resp.Header) {
		return "an HTML page"
	}
	// The body of a 101 is the connection: a read would wait for the other side.
	if resp.Body == nil || resp.Body == http.NoBody || resp.StatusCode >= 100 && resp.StatusCode <= 199 {
		return ""
	}
	if v := resp.Header[hdrContentEncoding]; len(v) > 0 && v[0] != "" && !strings.EqualFold(v[0], "identity") {
		return "" // nothing that can be read by people
	}
	head, err := readHead(resp.Body, maxErrorBody)
	resp.Body = &replayedBody{head: head, err: err, rest: resp.Body}
	text := string(head)
	if len(head) == maxErrorBody {
		text = dropLastWord(text, maxCutToken)
	}
	return excerptText(text)
}

// excerptText makes one short line of the begin of a body.
func excerptText(s string) string {
	s = redact(s)
	const longestTag = 16
	start, _ := firstBytes(s, longestTag)
	start = strings.ToLower(start)
	for _, tag := range []string{"<!doctype html", "<html", "<head", "<body"} {
		if strings.HasPrefix(start, tag) {
			return "an HTML page"
		}
	}
	return cutRunes(s, maxExcerpt)
}

// readHead reads up to n bytes. The error is what the reader gave with or
// after the last of them; nil if it may have more.
func readHead(r io.Reader, n int) ([]byte, error) {
	buf := make([]byte, n)
	got, empty := 0, 0
	for got < n && empty < maxEmptyReads {
		m, err := r.Read(buf[got:])
		if m > 0 {
			got = min(got+m, n)
		} else {
			empty++
		}
		if err != nil {
			return buf[:got], err
		}
	}
	return buf[:got], nil
}

// replayedBody gives bytes again that were read of a body, then the error that
// ended them or the rest of the body. Close holds no state of its own, so that
// it may be called while a Read waits, as that of net/http may.
type replayedBody struct {
	head []byte
	err  error
	rest io.ReadCloser
}

func (r *replayedBody) Read(p []byte) (int, error) {
	if len(r.head) > 0 {
		n := copy(p, r.head)
		r.head = r.head[n:]
		return n, nil
	}
	if r.err != nil {
		return 0, r.err
	}
	return r.rest.Read(p)
}

func (r *replayedBody) Close() error { return r.rest.Close() }
