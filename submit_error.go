package jobpoll

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// What an error of Submission.Send can match with errors.Is to say what it means,
// where that is not seen from the error itself. What matches ErrAmbiguous is
// ambiguous, whatever else it matches.
var (
	// ErrAmbiguous: the provider may have taken the job.
	ErrAmbiguous = errors.New("jobpoll: the submission may have been taken")
	// ErrNotSent: nothing has reached the provider.
	ErrNotSent = errors.New("jobpoll: the submission was not sent")
	// ErrAlreadySubmitted: the provider refuses the submission as a repeat of one with
	// the same key (often a 409 or a 422). The first one exists: Sent.ID, if it is
	// set, is its id, else the Reconciler looks for it.
	ErrAlreadySubmitted = errors.New("jobpoll: the provider has a job of that key")
)

// SubmitMeaning is what the error of a Submit says of the job.
type SubmitMeaning uint8

// The meanings. Ambiguous is the safe one.
const (
	SubmitAmbiguous SubmitMeaning = iota // the provider may have the job: a person has to look, see Poller.Resolve
	SubmitUnderWay                       // only the waiting has ended: Submit the same key again, or wait for OnStop
	SubmitUnstored                       // taken and watched, but the Store has failed: it is tried again until Run ends
	SubmitResolved                       // a job of that key was submitted before and has ended: Err is a *ResolvedError
	SubmitNotSent                        // surely nothing was sent
	SubmitRefused                        // the provider has refused it: nothing was bought
	SubmitAbsent                         // its answer was lost, and then it was surely not there
)

var submitMeanings = []string{"ambiguous", "under way", "unstored", "resolved", "not sent", "refused", "absent"}

// String returns the meaning in lower case.
func (m SubmitMeaning) String() string { return enumName(submitMeanings, int(m)) }

// MarshalText writes the name.
func (m SubmitMeaning) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads a name; one that is not known reads as SubmitAmbiguous.
func (m *SubmitMeaning) UnmarshalText(b []byte) error {
	*m = SubmitMeaning(enumValue(submitMeanings, string(b), int(SubmitAmbiguous)))
	return nil
}

// SubmitError is what Submit returns for all that is not a job which is now
// watched. It matches with errors.Is what Err wraps, ErrAmbiguous where the
// provider may have the job, ReasonAmbiguous and ReasonNotSent.
//
// What an error of Send means is read like this:
//
//	matches ErrAlreadySubmitted                        exists: Sent.ID, else looked for
//	matches ErrAmbiguous                               ambiguous
//	matches ErrNotSent                                 not sent
//	*CheckError: rate limited, concurrency, quota,     refused
//	auth, invalid, policy
//	*CheckError with another 4xx than 408 and 409      refused
//	no connection: dialing, a proxy, a name, a         not sent
//	certificate
//	everything else: timeouts, cut connections, 408,   ambiguous
//	409, 5xx, no id, panics, unknown errors
type SubmitError struct {
	// Job is the job, with its ID where that is known.
	Job     Job
	Meaning SubmitMeaning
	// ErrorKind is what a refusal means, ErrorNone where it is none. A rate limit,
	// a limit of concurrent jobs and a used-up quota close the submit lane of the
	// route's budget, so that the next Submit waits.
	ErrorKind ErrorKind
	// RetryAt is from when on the submission may be made again, as a wall time: what
	// the provider asked for, and the end of the lane's cool-down. Zero: at once, if
	// it may be (Safe). One that was refused as invalid or for a policy will be
	// refused again.
	RetryAt time.Time
	// Err is the cause; it may be nil.
	Err error

	text string // of Err, where that is the user's
}

// cause is the text of Err. No code of the user's is called.
func (e *SubmitError) cause() string {
	if e.text != "" {
		return e.text
	}
	return scrubErr(e.Err)
}

// Safe reports whether the same work may be submitted again, under the same
// ClientKey, without being bought twice.
func (e *SubmitError) Safe() bool { return e.Meaning >= SubmitNotSent && e.Meaning <= SubmitAbsent }

// Error names route and key, says what the error means and what can be done.
func (e *SubmitError) Error() string {
	s := fmt.Sprintf("jobpoll: %s: submission %q: ", e.Job.Route, clip(e.Job.ClientKey, 64))
	switch e.Meaning {
	case SubmitUnderWay:
		s += "under way"
	case SubmitUnstored:
		s += "taken as " + e.Job.ID + " and watched, but not stored"
	case SubmitResolved:
		s += "made before"
	default:
		s += e.Meaning.String()
	}
	if e.ErrorKind != ErrorNone {
		s += " (" + e.ErrorKind.String() + ")"
	}
	if e.Err != nil {
		s += ": " + strings.TrimPrefix(e.cause(), "jobpoll: ")
	}
	switch {
	case e.Meaning == SubmitAmbiguous:
		s += "; look for it at the provider and call Resolve, do not submit it anew"
	case e.Meaning == SubmitUnderWay:
		s += "; submit the same ClientKey again to wait for it, and no other"
	case e.Meaning == SubmitUnstored:
		s += "; do not submit it anew"
	case e.ErrorKind == ErrorInvalid || e.ErrorKind == ErrorPolicy:
	case !e.RetryAt.IsZero():
		s += "; it may be submitted again from " + e.RetryAt.UTC().Format(time.RFC3339) + " on"
	case e.Safe():
		s += "; it may be submitted again"
	}
	return s
}

// Unwrap returns the cause.
func (e *SubmitError) Unwrap() error { return e.Err }

// Is matches ErrAmbiguous and ErrNotSent, and the Reason that OnStop would be told.
func (e *SubmitError) Is(target error) bool {
	switch target {
	case ErrAmbiguous:
		return e.Meaning == SubmitAmbiguous || e.Meaning == SubmitUnderWay
	case ErrNotSent:
		return e.Safe()
	case ReasonAmbiguous:
		return e.Meaning == SubmitAmbiguous
	case ReasonNotSent:
		return e.Safe()
	}
	return false
}

// sendVerdict is what the return of a Send says of the job.
type sendVerdict uint8

const (
	sendDoubtful sendVerdict = iota
	sendTaken
	sendExists
	sendRefused
	sendUnsent
)

// judgeSend says what the return of a Send means. It calls methods of the user's
// error, so never under the lock.
func judgeSend(id string, err error) (v sendVerdict) {
	defer func() {
		if recover() != nil {
			v = sendDoubtful
		}
	}()
	usable := usableID(id)
	switch {
	case err == nil && usable:
		return sendTaken
	case err == nil:
		return sendDoubtful
	case errors.Is(err, ErrAlreadySubmitted):
		if usable {
			return sendTaken
		}
		return sendExists
	case errors.Is(err, ErrAmbiguous):
		return sendDoubtful
	case errors.Is(err, ErrNotSent), neverLeft(err):
		return sendUnsent
	case refused(err):
		return sendRefused
	}
	return sendDoubtful
}

// refused reports whether an answer says that the job was not taken.
func refused(err error) bool {
	var c *CheckError
	if !errors.As(err, &c) || c == nil {
		return false
	}
	switch c.Kind {
	case ErrorRateLimited, ErrorConcurrency, ErrorQuota, ErrorAuth, ErrorInvalid, ErrorPolicy:
		return true
	}
	return c.Status >= 400 && c.Status <= 499 && c.Status != http.StatusRequestTimeout && c.Status != http.StatusConflict
}

// neverLeft reports whether no byte of a request can have reached the provider:
// there was no connection, or none that could be trusted.
func neverLeft(err error) bool {
	var call *url.Error
	if errors.As(err, &call) && (call.Op == "Get" || call.Op == "Head") {
		return false // not the call that buys, but one after it
	}
	var op *net.OpError
	var name *net.DNSError
	var untrusted *tls.CertificateVerificationError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") || errors.As(err, &name) ||
		errors.As(err, &untrusted) || errors.Is(err, syscall.ECONNREFUSED)
}
