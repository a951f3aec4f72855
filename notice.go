package jobpoll

import (
	"errors"
	"time"
)

// Trust is how far a notice is believed.
type Trust uint8

// The degrees of trust. A hint is the safe one.
const (
	TrustHint          Trust = iota // look at once and believe the look
	TrustAuthoritative              // signed, with the whole result: believe it
)

var trustNames = []string{"hint", "authoritative"}

// String returns the name in lower case.
func (t Trust) String() string { return enumName(trustNames, int(t)) }

// MarshalText writes the name.
func (t Trust) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads a name; one that is not known reads as TrustHint.
func (t *Trust) UnmarshalText(b []byte) error {
	*t = Trust(enumValue(trustNames, string(b), int(TrustHint)))
	return nil
}

// Notice is word of a job that did not come by a look, such as a webhook. It
// names the job by Key or by ClientKey.
type Notice struct {
	Key       Key    `json:"key"`
	ClientKey string `json:"client_key,omitempty"`
	// EventID, if the sender gives one, makes repeats of the same event no-ops. Of one
	// that is longer than 1 KiB, or no UTF-8, a digest is kept and told.
	EventID string `json:"event_id,omitempty"`
	Report  Report `json:"report"`
	// At is when the sender made it, zero if not told. A progress notice that
	// is older than what is known is stale.
	At    time.Time `json:"at,omitzero"`
	Trust Trust     `json:"trust,omitempty"`
}

// ErrNotTaken is matched by the error of Notify for a notice that could not be
// taken over: the sender should try again.
var ErrNotTaken = errors.New("the notice was not taken over, send it again")
