package jobpoll

import (
	"context"
	"errors"
	"iter"
	"time"
)

// RecordKind tells what a Record holds.
type RecordKind uint8

// The kinds of record. A kind that a version of this package does not know is
// passed over and left where it is.
const (
	RecordUnknown    RecordKind = iota
	RecordJob                   // a watched job, or its outcome until and after it was told
	RecordNotice                // a notice taken over for a job that is not watched yet
	RecordSubmission            // a submission, by its ClientKey: the intent, then what came of it
	RecordProfile               // learned durations of a profile
	RecordBudget                // the cool-downs of a budget node
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
	Kind RecordKind
	// ID is any string: it may be empty, long, or no UTF-8.
	ID string
	// Route is for people who read the table; it does not belong to the key.
	Route string
	// Rev grows with each Put of the same record. It is data like the rest: a
	// Store keeps it and does not compare it.
	Rev uint64
	// UpdatedAt and ExpiresAt are UTC wall times; a zero ExpiresAt never ends.
	// A Store keeps them at least to the microsecond.
	UpdatedAt, ExpiresAt time.Time
	// Data is JSON written by this package, versioned. Nil in a Put deletes;
	// empty and not nil is a record without data.
	Data []byte
	// Fence is that of the lease under which a Put is made; zero: of none. It
	// is not kept, and is zero in what Load and Get give.
	Fence uint64
}

// Store keeps what must outlive the process. NewMemoryStore is one that lives
// in the process; polltest.TestStore tries one of your own against all that
// follows.
//
// All methods may be called from several goroutines at once, must end soon after
// ctx does, with an error, and must not keep or change the slices they are given,
// nor give out such as they keep. An error says that the call may have had an
// effect or not; it is called again. A kind that a Store does not know is kept
// like the others.
//
// A Store that several processes share should be a Leaser too.
type Store interface {
	// Load goes over all records that have not expired, in any order, each once.
	// What is put or deleted while it goes on may be seen or not, but a record
	// that is there all the time is seen, and never half of a change to it. Put
	// and Get work while it goes on, from within the loop too. An error ends it
	// and is its last pair; leaving the loop early frees what it holds.
	Load(ctx context.Context) iter.Seq2[Record, error]
	// Get returns one record, or an error that matches ErrNotFound if there is
	// none, or if it has expired. What a Put has written before it returned nil
	// is seen by every Get and Load that begins afterwards.
	Get(ctx context.Context, kind RecordKind, id string) (Record, error)
	// Put writes a batch, all of it or nothing, durably: when it returns nil,
	// no crash undoes it. A Record replaces the one of the same kind and ID as
	// a whole, or deletes it if Data is nil; to delete what is not there is no
	// error, and of one key twice in a batch the later counts. An empty batch is
	// nil. The Poller writes up to 128 records at once, and a single one may hold
	// an output of some MB; more than a Store can take is an error and no part
	// of the batch.
	//
	// In a Leaser, a batch with a Record whose Fence is not zero and not that of
	// the newest lease is refused as a whole, with an error that matches
	// ErrNotOwner: in the same transaction that would have written it, so that an
	// owner that was replaced writes nothing any more. A lease that has lapsed or
	// was released but has not been taken by another still counts.
	Put(ctx context.Context, batch []Record) error
}

// Leaser is an optional ability of a Store that several processes share: it
// lends the right to poll and tell to one of them at a time. A Poller whose Store
// is a Leaser takes the lease before it restores, renews it, and waits while
// another has it. See Config.Owner and Config.LeaseTTL.
type Leaser interface {
	// Lease takes the lease for owner, for ttl from now on, if nobody has it, if
	// it has lapsed, or if owner has it already, which renews it. It returns the
	// fence, never zero: the same as long as the owner is the same, a larger one
	// each time it is another; that never starts anew, no matter how often the lease
	// lapses or the process restarts. While another owner has it, it returns an error
	// that matches ErrNotOwner.
	//
	// A ttl of zero or less releases the lease, if owner has it, and returns a
	// fence of zero and nil; if owner does not, it does nothing, and is no error.
	Lease(ctx context.Context, owner string, ttl time.Duration) (fence uint64, err error)
}

// Errors of a Store, for errors.Is.
var (
	// ErrNotFound is matched by the error of Store.Get for a record that is not there.
	ErrNotFound = errors.New("jobpoll: no such record")
	// ErrNotOwner is matched by the error of Leaser.Lease while another owner has
	// the lease, by that of Store.Put under a lease that another has taken over,
	// and by those of a Poller that waits for its lease.
	ErrNotOwner = errors.New("another owner has the lease of the store")
)
