package jobpoll

import (
	"context"
	"errors"
	"iter"
	"time"
)

// RecordKind tells what a Record holds.
type RecordKind uint8

// The kinds of record. Those of submissions, profiles and budgets are reserved:
// this version writes none and passes them over.
const (
	RecordUnknown    RecordKind = iota
	RecordJob                   // a watched job, or its outcome until and after it was told
	RecordNotice                // a notice taken over for a job that is not watched yet
	RecordSubmission            // the intent of a submission
	RecordProfile               // learned durations of a profile
	RecordBudget                // a cool-down of a budget node
)

var recordNames = []string{"unknown", "job", "notice", "submission", "profile", "budget"}

// String returns the kind's name in lower case.
func (k RecordKind) String() string { return enumName(recordNames, int(k)) }

// MarshalText writes the name.
func (k RecordKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a name; one that is not known reads as RecordUnknown.
func (k *RecordKind) UnmarshalText(b []byte) error {
	*k = RecordKind(enumValue(recordNames, string(b), int(RecordUnknown)))
	return nil
}

// Record is one row of a Store. Kind and ID together are its key.
type Record struct {
	Kind  RecordKind
	ID    string
	Route string
	// Rev grows by one with each Put of the same record.
	Rev uint64
	// UpdatedAt and ExpiresAt are UTC wall times; a zero ExpiresAt never ends.
	UpdatedAt, ExpiresAt time.Time
	// Data is JSON written by this package, versioned. Nil in a Put deletes.
	Data []byte
}

// Store keeps what must outlive the process. All methods may be called from
// several goroutines at once and should honour ctx.
//
// Durable stores, ownership by lease and submissions build on this interface;
// NewMemoryStore is one that lives in the process, for tests and for handing
// state from one Poller to the next.
type Store interface {
	// Load goes over all records that have not expired.
	Load(ctx context.Context) iter.Seq2[Record, error]
	// Get returns one record, or an error that matches ErrNotFound.
	Get(ctx context.Context, kind RecordKind, id string) (Record, error)
	// Put writes a batch, all or nothing. A Record with nil Data deletes.
	Put(ctx context.Context, batch []Record) error
}

// Leaser is an optional ability of a Store that several processes share: the
// lease of a single owner. The fence grows with each new owner. It is reserved:
// this version asks for no lease.
type Leaser interface {
	Lease(ctx context.Context, owner string, ttl time.Duration) (fence uint64, err error)
}

// ErrNotFound is matched by the error of Store.Get for a record that is not there.
var ErrNotFound = errors.New("jobpoll: no such record")
