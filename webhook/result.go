package webhook

import (
	"net/http"
	"time"

	"github.com/jobpoll/jobpoll"
)

// Result is what became of a request.
type Result uint8

// The results, each with the status that answers it.
const (
	ResultUnknown     Result = iota // none, and that of a newer version
	ResultTaken                     // 200: the notice has been taken over
	ResultIgnored                   // 200: genuine, and about no job
	ResultChallenged                // 200: the provider's challenge was answered
	ResultProbed                    // 200: GET or HEAD, which asks whether somebody is there
	ResultRefused                   // 401: not verified
	ResultUnreadable                // 400: genuine, but Parse could make nothing of it
	ResultBroken                    // 408: the body did not come, or not in time
	ResultTooLarge                  // 413: longer than Config.MaxBody
	ResultEncoded                   // 415: compressed, which no provider does
	ResultMethod                    // 405: neither POST, GET nor HEAD
	ResultBusy                      // 503: Config.MaxHeld bytes are in hand
	ResultUnavailable               // 503: it cannot be verified now, for want of keys
	ResultNotTaken                  // 503: Notify returned an error
	ResultPanicked                  // 500: the Verifier, Parse, Challenge or Notify panicked
	results
)

var resultNames = [results]string{
	"unknown", "taken", "ignored", "challenged", "probed", "refused", "unreadable", "broken", "too large", "encoded",
	"method", "busy", "unavailable", "not taken", "panicked",
}

var resultStatus = [results]int{
	http.StatusInternalServerError, http.StatusOK, http.StatusOK, http.StatusOK, http.StatusOK,
	http.StatusUnauthorized, http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
	http.StatusUnsupportedMediaType, http.StatusMethodNotAllowed, http.StatusServiceUnavailable,
	http.StatusServiceUnavailable, http.StatusServiceUnavailable, http.StatusInternalServerError,
}

func (r Result) known() Result {
	if r < results {
		return r
	}
	return ResultUnknown
}

// String returns the name in lower case.
func (r Result) String() string { return resultNames[r.known()] }

// MarshalText writes the name.
func (r Result) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a name; one that is not known reads as ResultUnknown.
func (r *Result) UnmarshalText(b []byte) error {
	*r = ResultUnknown
	for i, n := range resultNames {
		if n == string(b) {
			*r = Result(i)
		}
	}
	return nil
}

// Status is the HTTP status that answers it.
func (r Result) Status() int { return resultStatus[r.known()] }

// good reports whether nothing is wrong.
func (r Result) good() bool { return r.Status() == http.StatusOK }

// readAll reports whether the body has been read to its end.
func (r Result) readAll() bool {
	switch r {
	case ResultBroken, ResultTooLarge, ResultEncoded, ResultMethod, ResultBusy:
		return false
	}
	return true
}

// Event is what a Hook is told of a request.
type Event struct {
	Route  string // Route.Name
	Result Result
	// Err says why, where Result is no success. It holds no secret and no signature.
	Err error
	// Key, ClientKey, EventID and Trust are those of the notice, once there is one.
	Key                jobpoll.Key
	ClientKey, EventID string
	Trust              jobpoll.Trust
	// Bytes is the length of the body, as far as it was read.
	Bytes int
	// Took is how long it took until the answer.
	Took time.Duration
}
