package webhook

import (
	"errors"
	"net/http"
	"time"

	"github.com/jobpoll/jobpoll"
)

// Verifier says whether a delivery comes from the provider. It is called with
// the bytes of the body as they were sent, and with the request, whose own Body
// has been read. It must be safe for concurrent use, and its error must hold
// nothing secret and no signature.
//
// An error that matches ErrUnavailable says that it cannot be told now; the
// sender is asked to try again. Any other error is a refusal.
type Verifier interface {
	Verify(r *http.Request, body []byte) (Proof, error)
}

// VerifierFunc is a function as a Verifier.
type VerifierFunc func(r *http.Request, body []byte) (Proof, error)

// Verify calls the function.
func (f VerifierFunc) Verify(r *http.Request, body []byte) (Proof, error) { return f(r, body) }

// Proof is what a verification has shown of a delivery. The zero value, that it
// knows a shared secret and no more, makes its notice a hint.
type Proof struct {
	// Body says that the whole body is signed. Without it no notice of the
	// delivery is believed further than to look at once.
	Body bool
	// EventID is the sender's id of the event, if it is signed: the same for
	// each attempt to deliver it. Empty: there is none.
	EventID string
}

// What is wrong with a delivery. A sender is told none of it, see Handler; a
// Hook can match them by errors.Is.
var (
	// ErrNoSignature is for a header that is missing.
	ErrNoSignature = errors.New("the signature, or a header that it needs, is missing")
	// ErrMalformed is for a header that is there twice, or is not what it has to be.
	ErrMalformed = errors.New("a header of the signature is malformed")
	// ErrNoScheme is for signatures that are all of a kind that the Verifier has no key for.
	ErrNoScheme = errors.New("no supported scheme of signature")
	// ErrTimestamp is for a time of signing that is further off than the tolerance.
	ErrTimestamp = errors.New("the time of signing is outside of the tolerance")
	// ErrSignature is for a signature, or a token, that belongs to no key.
	ErrSignature = errors.New("the signature does not belong to any key")
	// ErrUnavailable is for keys that could not be fetched.
	ErrUnavailable = errors.New("the keys are not available")
)

// DefaultTolerance is how far the time of signing may be off, either way.
// Source: all that name one (Standard Webhooks, Stripe, fal, Atlas Cloud,
// WaveSpeed, Kling) name five minutes.
const DefaultTolerance = 5 * time.Minute

// name is a type that tells its name and not what it holds, which is keys.
type name string

// String gives the name alone.
func (n name) String() string { return string(n) }

// GoString is String.
func (n name) GoString() string { return string(n) }

// times judges when a delivery was signed.
type times struct {
	clock     jobpoll.Clock
	tolerance time.Duration
}

// newTimes fills the defaults.
func newTimes(f *faults, clock jobpoll.Clock, tolerance time.Duration) times {
	if clock == nil {
		clock = jobpoll.SystemClock()
	}
	if tolerance == 0 {
		tolerance = DefaultTolerance
	}
	if tolerance < 0 {
		f.add("Tolerance", "%v is negative: what is good for ever can be sent again for ever", tolerance)
	}
	return times{clock, tolerance}
}

// near reports whether at is within the tolerance, its bounds included.
func (t times) near(at time.Time) bool {
	off := t.clock.Now().Sub(at)
	return off >= -t.tolerance && off <= t.tolerance
}

// maxSeconds is the longest number of a timestamp; 11 digits reach the year 5138.
const maxSeconds = 11

// unixTime reads whole seconds since 1970, in the one form that they can have:
// the text is part of what is signed.
func unixTime(s string) (time.Time, bool) {
	if s == "" || len(s) > maxSeconds || s[0] == '0' && len(s) > 1 {
		return time.Time{}, false
	}
	var n int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return time.Time{}, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return time.Unix(n, 0), true
}

// maxValue bounds the headers of a signature, in bytes: what is longer is
// malformed. A list of a dozen signatures is a tenth of it.
const maxValue = 8 << 10

// header gives the one value of a header.
func header(h http.Header, name string) (string, error) {
	values := h[http.CanonicalHeaderKey(name)]
	switch {
	case len(values) == 0, len(values) == 1 && values[0] == "":
		return "", ErrNoSignature
	case len(values) > 1, len(values[0]) > maxValue:
		return "", ErrMalformed
	}
	for i := range len(values[0]) {
		if c := values[0][i]; c < ' ' || c > '~' {
			return "", ErrMalformed
		}
	}
	return values[0], nil
}

// headers gives the values of several, in their order, and the first fault.
func headers(h http.Header, names ...string) ([]string, error) {
	values := make([]string, len(names))
	var first error
	for i, n := range names {
		v, err := header(h, n)
		if first == nil {
			first = err
		}
		values[i] = v
	}
	return values, first
}
