package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jobpoll/jobpoll"
)

const (
	maxErrorBody  = 64 << 10 // bytes kept of the body of an answer that is no success
	maxHeaders    = 64 << 10 // bytes of headers, on the transport of our own
	maxIdlePeer   = 32       // idle connections to a host, likewise
	maxConns      = 8        // connections for one call: net/http takes another as long as servers of HTTP/2 send it away
	jsonMediaType = "application/json"
)

// Client calls one provider. It is safe for concurrent use; its zero value is
// not ready, see NewClient.
type Client struct {
	cfg    Config
	http   *http.Client
	base   *url.URL
	prefix string   // base as text, without a slash at the end
	hosts  []string // as hostOf gives them
	vault  *vault
}

// NewClient makes a Client. It copies what it needs of cfg and reports all faults
// joined; it makes no call.
func NewClient(cfg Config) (*Client, error) {
	cfg, base, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, base: base, prefix: base.String(), vault: newVault(&cfg), http: &http.Client{}}
	for _, h := range cfg.Hosts {
		c.hosts = append(c.hosts, hostOf(&url.URL{Scheme: base.Scheme, Host: h}))
	}
	if cfg.HTTP != nil {
		*c.http = *cfg.HTTP
	}
	if c.http.Transport == nil {
		c.http.Transport = newTransport()
	}
	c.http.CheckRedirect = checkRedirect
	return c, nil
}

func newTransport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport // replaced by the program
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = maxIdlePeer
	t.MaxResponseHeaderBytes = maxHeaders
	return t
}

// String names the provider's address, and nothing that is secret.
func (c *Client) String() string { return "provider.Client(" + c.prefix + ")" }

// GoString is String.
func (c *Client) GoString() string { return c.String() }

// Now is the time on Config.Clock.
func (c *Client) Now() time.Time { return c.cfg.Clock.Now() }

// Request is one call.
type Request struct {
	// Method is the HTTP method. Empty: GET, with a Body POST.
	Method string
	// URL is a path below BaseURL that begins with a slash, escaped, or an
	// absolute URL on an allowed host: what Client.URL and Client.Ref give.
	URL string
	// Query is added to the query of URL.
	Query url.Values
	// Header are more headers. The Client sets Accept (application/json, of a Download
	// */*), User-Agent (Config.UserAgent), Content-Type where there is a Body, and
	// that of the credentials (Config.Header). Of these only an Accept that stands here
	// wins over the Client's.
	Header http.Header
	// Body is sent as JSON; a json.RawMessage as it is, and a Form as
	// multipart/form-data. Nil: no body.
	Body any
	// Hold is how long the provider may hold the call open; it is added to
	// Config.Timeout.
	Hold time.Duration

	accept string // where Header has none; empty: JSON
}

// Get is Do for a GET of one URL.
func (c *Client) Get(ctx context.Context, url string, into any) (Answer, error) {
	return c.Do(ctx, Request{URL: url}, into)
}

// Do makes one call and decodes the JSON of a success into into; where into is
// nil the body of a success is not looked at. Redirects are followed on the same
// host, for GET only. Nothing is sent twice, but for what has no body: net/http
// repeats a GET on a kept connection that turns out to be closed, and whatever
// a server of HTTP/2 says that it did not look at. Eight connections are the most.
//
// The error is a *jobpoll.CheckError: for an answer that is no success what
// jobpoll.FromResponse and Config.Explain make of it; transient where no answer
// came, or none that can be decoded, or where a refusal (a 400, a 403) is a page of
// HTML: that is of somebody in between, and ends no job. The Answer is what there is
// of one, also with an error.
func (c *Client) Do(ctx context.Context, r Request, into any) (Answer, error) {
	ans, _, err := c.do(ctx, &r, into)
	return ans, refusedByAPage(&ans, err)
}

// refusedByAPage makes a refusal that is a page one that may pass: no API tells
// by HTML what it thinks of a job, but firewalls and proxies do.
func refusedByAPage(ans *Answer, err error) error {
	var ce *jobpoll.CheckError
	if err == nil || !errors.As(err, &ce) || ce.Kind != jobpoll.ErrorPolicy && ce.Kind != jobpoll.ErrorInvalid {
		return err
	}
	if media := mediaType(first(ans.Header["Content-Type"])); media != "text/html" && media != "application/xhtml+xml" {
		return err
	}
	passing := *ce
	passing.Kind = jobpoll.ErrorTransient
	return &passing
}

// do is Do. sent is false where the provider surely saw nothing.
func (c *Client) do(ctx context.Context, r *Request, into any) (ans Answer, sent bool, err error) {
	ctx, end := c.limit(ctx, r.Hold)
	defer end()
	resp, key, sent, err := c.open(ctx, r)
	if err != nil {
		return ans, sent, err
	}
	// receive reads to the end or to a bound: there is nothing left to drain.
	defer resp.Body.Close()
	ans, err = c.receive(ctx, resp, key, into)
	return ans, true, err
}

// open makes one call up to the body of its answer. sent is false where the provider
// surely saw nothing.
func (c *Client) open(ctx context.Context, r *Request) (resp *http.Response, key *secret, sent bool, err error) {
	key, err = c.vault.get(ctx)
	if err != nil {
		kind := jobpoll.ErrorAuth
		if ctx.Err() != nil {
			kind = jobpoll.ErrorTransient // that says nothing of the credentials
		}
		return nil, nil, false, &jobpoll.CheckError{Kind: kind, Err: hide("no credentials", err, c.vault.last())}
	}
	req, err := c.request(ctx, r, key)
	if err != nil {
		return nil, nil, false, &jobpoll.CheckError{Kind: jobpoll.ErrorInvalid, Err: err}
	}
	if ctx.Err() != nil {
		return nil, nil, false, &jobpoll.CheckError{Kind: jobpoll.ErrorTransient, Err: hide("not sent", context.Cause(ctx), key)}
	}
	resp, err = c.http.Do(req)
	if err != nil {
		return nil, nil, !neverSent(err), &jobpoll.CheckError{Kind: jobpoll.ErrorTransient, Err: hide("no answer", because(ctx, err), key)}
	}
	return resp, key, true, nil
}

var (
	errTimeout  = fmt.Errorf("jobpoll: no whole answer within Config.Timeout: %w", context.DeadlineExceeded)
	errSentAway = fmt.Errorf("jobpoll: no answer on %d connections", maxConns)
)

// limit bounds a call: in time, on the clock, and in what net/http does on its own.
func (c *Client) limit(ctx context.Context, hold time.Duration) (context.Context, func()) {
	ctx, cancel := limitConns(ctx)
	if c.cfg.Timeout < 0 {
		return ctx, func() { cancel(nil) }
	}
	timer := c.cfg.Clock.AfterFunc(c.patience(hold), func() { cancel(errTimeout) })
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// patience is Config.Timeout of a call that may be held open.
func (c *Client) patience(hold time.Duration) time.Duration {
	return c.cfg.Timeout + min(max(hold, 0), math.MaxInt64-c.cfg.Timeout)
}

// limitConns bounds how many connections net/http takes for one call.
func limitConns(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	var conns atomic.Int32
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		if conns.Add(1) > maxConns {
			cancel(errSentAway)
		}
	}})
	return ctx, cancel
}

func (c *Client) request(ctx context.Context, r *Request, key *secret) (*http.Request, error) {
	u, err := c.target(r)
	if err != nil {
		return nil, err
	}
	method, body, contentType := r.Method, io.Reader(nil), ""
	if r.Body != nil {
		raw, kind, err := encodeBody(r.Body)
		if err != nil {
			return nil, err
		}
		body, contentType = bytes.NewReader(raw), kind
		if method == "" {
			method = http.MethodPost
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, errors.New("jobpoll: no request can be made of it")
	}
	// net/http sends a request again on its own where it can get the body again
	// and an Idempotency-Key says that it may, and for a 307.
	req.GetBody = nil
	for k, v := range r.Header {
		if !validName(k) || slices.ContainsFunc(v, func(s string) bool { return !validValue(s) }) {
			return nil, fmt.Errorf("jobpoll: the header %q cannot be sent: its name or its value holds what no header can", jobpoll.Excerpt(k))
		}
		k = http.CanonicalHeaderKey(k)
		if strings.HasSuffix(k, "Idempotency-Key") { // without a body it is all that net/http asks for
			k = strings.ToLower(k)
		}
		req.Header[k] = v
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", either(r.accept, jsonMediaType))
	}
	req.Header.Set("User-Agent", c.cfg.UserAgent)
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	if key != nil {
		value := key.text
		if c.cfg.Scheme != "" {
			value = c.cfg.Scheme + " " + value
		}
		req.Header[c.cfg.Header] = []string{value}
	}
	return req, nil
}

// because adds why ctx ended to an error that does not say it.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// hide makes an error whose text holds no secret. What it matches stays.
func hide(what string, err error, key *secret) error {
	return &hidden{text: what + ": " + jobpoll.Excerpt(key.hideText(err.Error())), err: err}
}

// hidden is an error of others under a text of our own. It has no Unwrap: what
// prints each error of a chain would print the text that is hidden.
type hidden struct {
	text string
	err  error
}

func (h *hidden) Error() string        { return h.text }
func (h *hidden) Is(target error) bool { return errors.Is(h.err, target) }
func (h *hidden) As(target any) bool   { return errors.As(h.err, target) }
