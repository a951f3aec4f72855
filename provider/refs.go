package provider

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// URL joins BaseURL and the segments of a path, each of them escaped: a slash in
// an id stays in the id.
func (c *Client) URL(segments ...string) string {
	var b strings.Builder
	b.WriteString(c.prefix)
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

// Ref returns rawURL, a URL out of an answer, if calls to it may be made: it is
// absolute, on the host of BaseURL or one of Config.Hosts, no less safe than
// BaseURL, and without user or fragment. Else it returns "": build the URL from
// the id then.
func (c *Client) Ref(rawURL string) string {
	if len(rawURL) > maxURL || !strings.Contains(rawURL, "://") {
		return ""
	}
	if u, err := url.Parse(rawURL); err != nil || c.allow(u) != nil {
		return ""
	}
	return rawURL
}

// maxURL bounds URLs out of answers, in bytes.
const maxURL = 4 << 10

// allow says why a call to u may not be made.
func (c *Client) allow(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https", u.Scheme == "http" && c.base.Scheme == "https":
		return fmt.Errorf("%w: the scheme %q where BaseURL has %s", ErrForeignHost, jobpoll.Excerpt(u.Scheme), c.base.Scheme)
	case u.User != nil, u.Fragment != "":
		return fmt.Errorf("%w: it holds a user or a fragment", ErrForeignHost)
	case sameOrigin(c.base, u), slices.Contains(c.hosts, hostOf(u)):
	default:
		return fmt.Errorf("%w: %q; Config.Hosts allows more hosts than that of BaseURL", ErrForeignHost, jobpoll.Excerpt(u.Host))
	}
	for s := range strings.SplitSeq(u.Path, "/") {
		if s == "." || s == ".." {
			return fmt.Errorf("jobpoll: a path with the segment %q", s)
		}
	}
	return nil
}

// target makes the URL of a request.
func (c *Client) target(r *Request) (*url.URL, error) {
	raw := r.URL
	if strings.HasPrefix(raw, "/") {
		raw = c.prefix + raw
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("jobpoll: %q is neither a path that begins with a slash nor a whole URL", jobpoll.Excerpt(r.URL))
	}
	if err := c.allow(u); err != nil {
		return nil, err
	}
	if len(r.Query) > 0 {
		q := r.Query.Encode()
		if u.RawQuery != "" {
			q = u.RawQuery + "&" + q
		}
		u.RawQuery = q
	}
	return u, nil
}
