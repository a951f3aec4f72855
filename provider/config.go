package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// Defaults of Config.
const (
	DefaultTimeout   = 30 * time.Second
	DefaultMaxBody   = 8 << 20 // bytes
	DefaultUserAgent = "jobpoll"
)

// Config says how a provider is reached. An adapter fills in BaseURL, Header and
// Scheme where they are empty.
type Config struct {
	// HTTP is the caller's client: its Transport, Jar and Timeout are used. It is
	// not changed; its redirect policy is replaced on a copy. Nil, and where it
	// has no Transport: a transport of the Client's own that keeps 32 idle
	// connections to a host and takes at most 64 KiB of headers. The headers
	// that another Transport takes are bounded by that one.
	HTTP *http.Client
	// BaseURL is where the provider is: scheme, host, and a path that goes
	// before every path of a Request. Required, but for the adapters.
	BaseURL string
	// Hosts are further hosts ("cdn.example" or "cdn.example:8443") that URLs in
	// answers and in Job.Ref may name. They get the credentials too.
	Hosts []string
	// Credentials gives the secret. It is asked before the first request and
	// after a refusal, by Refresh; in between the secret is kept. Nil, and Tokens
	// too: requests carry none, which the adapters refuse. Secret("") is refused
	// by all.
	Credentials Credentials
	// Tokens gives the secret instead of Credentials where it runs out:
	// KlingTokens, access tokens of Google and of Azure. Both is refused.
	//
	// A Token is renewed before its end, so that none is refused: 5 minutes before,
	// or in the last quarter of its life where that is less. One call asks for all
	// and waits for half of Timeout at most; the others go on with the old Token,
	// and so does that one where it gets no other. The next tries when half of
	// what is left has passed. After the end of a Token no call goes out
	// without another one: it fails with the kind ErrorAuth, and with
	// jobpoll.ErrNotSent where it is a Post.
	//
	// Ends are told by the wall clock of Clock. A Token that has ended when it comes
	// is refused, and one that was asked for after now, as the clock was set back,
	// is renewed. One without an Expiry is kept as that of Credentials.
	Tokens TokenSource
	// Header is the header that carries the secret. Empty: Authorization.
	Header string
	// Scheme goes before the secret, with a space ("Bearer", "Key"). Empty:
	// Bearer in Authorization, none in another header.
	Scheme string
	// Timeout bounds one call, credentials and body included, on Clock. Zero: 30 s.
	// Negative: only the caller's context bounds it. Of a Download it bounds only what
	// nothing comes for.
	Timeout time.Duration
	// MaxBody is the most bytes of a body that are read, after decompression;
	// a longer one is a transient error, but for a Download, which has no bound. Zero:
	// 8 MiB. Negative is refused.
	MaxBody int64
	// UserAgent is the header of that name. Empty: "jobpoll".
	UserAgent string
	// Clock is the Poller's clock. Nil: package time.
	Clock jobpoll.Clock
	// Explain, if not nil, may say more of an answer that is no success, from
	// the provider's own codes in Answer.Body: it changes Kind, Hint or Err of
	// the error that jobpoll.FromResponse made. What an adapter has to say itself
	// goes first. It may be called from several goroutines at once.
	Explain func(Answer, *jobpoll.CheckError)
}

// Credentials gives the secret that requests carry, from wherever it is kept;
// white space around it is cut off.
// It is called by one goroutine at a time, and must not call the Client.
type Credentials func(ctx context.Context) (string, error)

// Secret gives the same secret each time. An empty one, of an environment
// variable that is not set, say, is refused by NewClient and by the adapters.
// Credentials of one's own are not asked before the first call: where their
// secret is empty, Submit fails at once with the kind ErrorAuth, but the watch of
// a job goes on for StopRules.AuthGrace, as for a secret that was refused.
func Secret(secret string) Credentials {
	if strings.TrimSpace(secret) == "" {
		return noSecret
	}
	return func(context.Context) (string, error) { return secret, nil }
}

// noSecret is Secret of an empty one.
func noSecret(context.Context) (string, error) { return "", errNoSecret }

var errNoSecret = errors.New("the secret is empty: is the environment variable, or the setting, that it is read from set?")

// empty reports whether c is Secret(""), without calling it: a function of the
// program may ask somebody.
func (c Credentials) empty() bool {
	return reflect.ValueOf(c).Pointer() == reflect.ValueOf(noSecret).Pointer()
}

// orElse fills the fields that an adapter knows.
func (cfg Config) orElse(baseURL, scheme string, explain func(Answer, *jobpoll.CheckError)) Config {
	if cfg.BaseURL == "" {
		cfg.BaseURL = baseURL
	}
	if cfg.Scheme == "" && cfg.Header == "" {
		cfg.Scheme = scheme
	}
	own := cfg.Explain
	switch {
	case own == nil:
		cfg.Explain = explain
	case explain != nil:
		cfg.Explain = func(ans Answer, e *jobpoll.CheckError) {
			explain(ans, e)
			own(ans, e)
		}
	}
	return cfg
}

// withDefaults fills what is not set and reports all faults.
func (cfg Config) withDefaults() (Config, *url.URL, error) {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("jobpoll: provider.Config."+format, args...))
	}
	base, err := parseBase(cfg.BaseURL)
	if err != nil {
		fault("BaseURL: %w", err)
	}
	for _, h := range cfg.Hosts {
		if u, err := url.Parse("//" + h); err != nil || u.Host != h || u.Hostname() == "" {
			fault("Hosts: %q is no host: leave scheme and path away", jobpoll.Excerpt(h))
		}
	}
	faults = append(faults, cfg.credentialFaults()...)
	if cfg.MaxBody < 0 {
		fault("MaxBody %d is negative", cfg.MaxBody)
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = DefaultMaxBody
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = DefaultUserAgent
	}
	if cfg.Clock == nil {
		cfg.Clock = jobpoll.SystemClock()
	}
	if cfg.Header == "" {
		cfg.Header = "Authorization"
		if cfg.Scheme == "" {
			cfg.Scheme = "Bearer"
		}
	}
	if !validName(cfg.Header) {
		fault("Header %q is no name of a header", jobpoll.Excerpt(cfg.Header))
	}
	cfg.Header = textproto.CanonicalMIMEHeaderKey(cfg.Header)
	if !validValue(cfg.Scheme) || !validValue(cfg.UserAgent) {
		fault("Scheme or UserAgent holds what no header can")
	}
	return cfg, base, errors.Join(faults...)
}

func parseBase(s string) (*url.URL, error) {
	if s == "" {
		return nil, errors.New("it is empty")
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, errors.New("it is no URL") // the error would show it, and what stands in it
	case u.Scheme != "https" && u.Scheme != "http", u.Host == "":
		return nil, errors.New("it needs http or https, and a host")
	case u.User != nil:
		return nil, errors.New("it holds a user: use Credentials")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("it holds a query or a fragment")
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	return u, nil
}

// validName reports whether s may name a header.
func validName(s string) bool {
	const signs = "!#$%&'*+-.^_`|~"
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(signs, r)
	})
}

// validValue reports whether s may stand in a header.
func validValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
