package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// Answer is what came back.
type Answer struct {
	// Status is the HTTP status; 0 where no answer came.
	Status int
	// Header is what it has, with an ellipsis for the credential.
	Header http.Header
	// Hint is the provider's wait: put it into the Report.
	Hint jobpoll.Hint
	// Body is the body, at most Config.MaxBody bytes of it and at most 64 KiB
	// where the answer is no success, with an ellipsis for the credential.
	Body []byte

	at time.Time
}

// Errorf makes the *jobpoll.CheckError of an answer that an adapter cannot take for
// one: the text, and the begin of the body as evidence.
func (a *Answer) Errorf(kind jobpoll.ErrorKind, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if text := jobpoll.Excerpt(string(head(a.Body, 4<<10))); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return &jobpoll.CheckError{Kind: kind, Hint: a.Hint, Status: a.Status, Err: err}
}

// StatusError makes the *jobpoll.CheckError of an answer whose body tells another
// status than its head, as an envelope {"code":404} in a 200 does. A status
// that is none of HTTP's for an error gives a transient one.
func (a *Answer) StatusError(status int) error {
	if status < 400 || status > 599 {
		return a.Errorf(jobpoll.ErrorTransient, "a code in the answer that is not known: %d", status)
	}
	body := io.NopCloser(bytes.NewReader(a.Body))
	_, err := jobpoll.FromResponse(&http.Response{StatusCode: status, Header: a.Header, Body: body}, a.at)
	var ce *jobpoll.CheckError
	if errors.As(err, &ce) {
		ce.Hint.RetryAfter = max(ce.Hint.RetryAfter, a.Hint.RetryAfter)
	}
	return err
}

// receive reads an answer and decodes it.
func (c *Client) receive(ctx context.Context, resp *http.Response, key *secret, into any) (Answer, error) {
	ans := Answer{Status: resp.StatusCode, Header: resp.Header}
	success := resp.StatusCode >= 200 && resp.StatusCode <= 299
	limit := int64(maxErrorBody)
	if success {
		limit = c.cfg.MaxBody
	}
	body, tooLong, readErr := readBody(resp, limit)
	body = key.hide(unmarked(body))
	resp.Status = key.hideText(resp.Status)
	key.hideHeader(resp.Header)
	ans.Body, ans.at = body, c.cfg.Clock.Now()
	resp.Body = &readBodyAgain{Reader: bytes.NewReader(body), Closer: resp.Body}
	hint, err := jobpoll.FromResponse(resp, ans.at)
	ans.Hint = hint
	switch {
	case !success:
		var ce *jobpoll.CheckError
		if c.cfg.Explain != nil && errors.As(err, &ce) {
			c.cfg.Explain(ans, ce)
		}
		return ans, err
	case into == nil:
		return ans, nil
	case err != nil:
		return ans, err
	case readErr != nil:
		return ans, ans.Errorf(jobpoll.ErrorTransient, "the body broke off after %d bytes: %w", len(body), hide("reading", because(ctx, readErr), key))
	case tooLong:
		return ans, ans.Errorf(jobpoll.ErrorTransient, "the body is longer than Config.MaxBody, %d bytes", limit)
	}
	if err := decodeInto(resp.Header, body, into); err != nil {
		return ans, ans.Errorf(jobpoll.ErrorTransient, "%w", hide("no decodable body", err, key))
	}
	return ans, nil
}

// decodeInto decodes a body that is said to be JSON.
func decodeInto(h http.Header, body []byte, into any) error {
	switch why := undecodable(h, body); why {
	case "":
	case emptyBody:
		return errEmptyBody
	default:
		return errors.New(why)
	}
	return json.Unmarshal(body, into)
}

// forgive drops the error of an answer of which all could be read but a field of
// another type, where known tells that what matters is there.
func forgive(err error, known bool) error {
	if err == nil || !known {
		return err
	}
	var other *json.UnmarshalTypeError // only an error is worth an allocation
	if errors.As(err, &other) {
		return nil
	}
	return err
}

// readBodyAgain is a body that has been read already.
type readBodyAgain struct {
	io.Reader
	io.Closer
}

// readBody reads up to limit bytes, and tells whether there are more.
func readBody(resp *http.Response, limit int64) (body []byte, more bool, err error) {
	if resp.StatusCode < http.StatusOK {
		return nil, false, nil // that of a 101 is the connection, which no context ends
	}
	var b bytes.Buffer
	if n := resp.ContentLength; n > 0 && n <= limit {
		b.Grow(int(n) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(resp.Body, limit+1))
	body = b.Bytes()
	if n > limit {
		return body[:limit], true, nil
	}
	return body, false, err
}

// unmarked is a body without the mark that some servers, and proxies that store
// what they pass on, put before UTF-8: it is no JSON, and says nothing.
func unmarked(body []byte) []byte { return bytes.TrimPrefix(body, []byte("\ufeff")) }

const emptyBody = "it is empty"

var errEmptyBody = errors.New(emptyBody)

// undecodable says why a body is no JSON; empty if it may be.
func undecodable(h http.Header, body []byte) string {
	if e := first(h["Content-Encoding"]); e != "" && !strings.EqualFold(e, "identity") {
		return fmt.Sprintf("the encoding %q, which was not asked for", jobpoll.Excerpt(e))
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return emptyBody
	}
	if t := first(h["Content-Type"]); !mayBeJSON(t) {
		return fmt.Sprintf("the content type %q", jobpoll.Excerpt(t))
	}
	return ""
}

// first is what http.Header.Get gives of a name that is in its canonical form
// already: to make it so takes longer than to look.
func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// mayBeJSON reports whether a body of that type is worth a try: servers that do
// not say what they send say text/plain or nothing.
func mayBeJSON(contentType string) bool {
	media := mediaType(contentType)
	switch media {
	case "", jsonMediaType, "text/json", "text/plain", "application/octet-stream":
		return true
	}
	return strings.HasSuffix(media, "+json")
}

// mediaType is a content type in lower case, without its parameters.
func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	if media == jsonMediaType {
		return media
	}
	return strings.ToLower(strings.TrimSpace(media))
}

func head(b []byte, n int) []byte { return b[:min(len(b), n)] }

// decode reads the body of an answer that is no success; one that is no JSON
// leaves v as it is.
func (a *Answer) decode(v any) {
	if mayBeJSON(a.Header.Get("Content-Type")) {
		_ = json.Unmarshal(a.Body, v)
	}
}
