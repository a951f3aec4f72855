package provider

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// maxRedirects bounds the redirects of one call.
const maxRedirects = 3

// Errors of a Client, for errors.Is.
var (
	// ErrForeignHost is matched where a URL of an answer, of a redirect or of
	// Job.Ref names a host that the credentials are not for, or leaves https.
	// Config.Hosts allows more hosts, for all but redirects.
	ErrForeignHost = errors.New("jobpoll: a URL names a host that is not allowed")
	// ErrRedirects is matched where a call is redirected more than three times.
	ErrRedirects = errors.New("jobpoll: too many redirects")
)

// checkRedirect follows a few redirects on the same host, and none of a call that
// changes something.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	if first.Method != http.MethodGet && first.Method != http.MethodHead {
		return http.ErrUseLastResponse // the redirect itself is the answer
	}
	if len(via) > maxRedirects {
		return fmt.Errorf("%w: %d", ErrRedirects, len(via))
	}
	if !sameOrigin(first.URL, req.URL) || req.URL.User != nil {
		return fmt.Errorf("%w: a redirect to %s://%s", ErrForeignHost, req.URL.Scheme, req.URL.Host)
	}
	return nil
}

// sameOrigin reports whether to is the host of from, and no less safe.
func sameOrigin(from, to *url.URL) bool {
	if from.Scheme != to.Scheme && (from.Scheme != "http" || to.Scheme != "https") {
		return false
	}
	if from.Scheme != to.Scheme && from.Port() == "" && to.Port() == "" {
		return nameOf(from) == nameOf(to)
	}
	return hostOf(from) == hostOf(to)
}

// hostOf gives host and port in lower case, the port always.
func hostOf(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return nameOf(u) + ":" + port
}

// nameOf gives the name of the host in lower case, as far as ASCII goes: package
// strings makes an i of an İ too, and DNS another name.
func nameOf(u *url.URL) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}, strings.TrimSuffix(u.Hostname(), "."))
}
