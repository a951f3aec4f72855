package polltest

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/jobpoll/jobpoll"
)

// FaultyStore is a Store in front of another one, of which calls fail, take long,
// hang or panic as a test wants it. Make one with NewFaultyStore. Its methods may
// be called from several goroutines at once.
//
//	store := polltest.NewFaultyStore(jobpoll.NewMemoryStore(clock), clock)
//	store.Plan(func(c polltest.StoreCall) polltest.StoreFault {
//		if c.Op == "Put" && c.N > 3 {
//			return polltest.StoreFault{After: errors.New("connection reset")}
//		}
//		return polltest.StoreFault{}
//	})
type FaultyStore struct {
	inner jobpoll.Store
	clock *Clock

	mu    sync.Mutex
	plan  func(StoreCall) StoreFault
	calls []StoreCall
}

var _ jobpoll.Leaser = (*FaultyStore)(nil)

// StoreCall is one call of a Store.
type StoreCall struct {
	// N counts the calls of all methods, from 1.
	N int
	// Op is the method: "Load", "Get", "Put", "Lease".
	Op string
	// Batch are the records of a Put, Kind and ID what Get asks for.
	Batch []jobpoll.Record
	Kind  jobpoll.RecordKind
	ID    string
	// Owner and TTL are those of Lease.
	Owner string
	TTL   time.Duration
}

// StoreFault is what becomes of a call. Zero: it goes through. Of several the
// call is delayed first.
type StoreFault struct {
	// Delay is how long it takes, on the clock, unless its context ends before.
	Delay time.Duration
	// Hang: it returns when its context has ended, and no sooner.
	Hang bool
	// Panic: it panics with this, and has no effect.
	Panic any
	// Err is the error of a call that has no effect.
	Err error
	// After is the error of a call that has its effect nevertheless, as where the
	// connection is lost after the commit. Load gives all records first.
	After error
}

// NewFaultyStore makes one that lets all calls through. Where inner is no
// jobpoll.Leaser, its lease is taken by whoever asks.
func NewFaultyStore(inner jobpoll.Store, clock *Clock) *FaultyStore {
	return &FaultyStore{inner: inner, clock: clock}
}

// Plan makes f say what becomes of each call from now on; nil: all go through.
// It is called without a lock held, for several calls at once.
func (s *FaultyStore) Plan(f func(StoreCall) StoreFault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan = f
}

// Calls are the calls so far, in the order in which they began.
func (s *FaultyStore) Calls() []StoreCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// begin counts a call and lets it fail before it has an effect; after is its
// error once it has had one.
func (s *FaultyStore) begin(ctx context.Context, c StoreCall) (after, err error) {
	s.mu.Lock()
	c.N = len(s.calls) + 1
	s.calls = append(s.calls, c)
	plan := s.plan
	s.mu.Unlock()
	if plan == nil {
		return nil, nil
	}
	f := plan(c)
	if f.Delay > 0 {
		if err := s.clock.Sleep(ctx, f.Delay); err != nil {
			return nil, err
		}
	}
	if f.Hang {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if f.Panic != nil {
		panic(f.Panic)
	}
	return f.After, f.Err
}

// Load goes over the records of the inner store.
func (s *FaultyStore) Load(ctx context.Context) iter.Seq2[jobpoll.Record, error] {
	return func(yield func(jobpoll.Record, error) bool) {
		after, err := s.begin(ctx, StoreCall{Op: "Load"})
		if err == nil {
			for rec, e := range s.inner.Load(ctx) {
				if !yield(rec, e) || e != nil {
					return
				}
			}
			err = after
		}
		if err != nil {
			yield(jobpoll.Record{}, err)
		}
	}
}

// Get asks the inner store.
func (s *FaultyStore) Get(ctx context.Context, kind jobpoll.RecordKind, id string) (jobpoll.Record, error) {
	after, err := s.begin(ctx, StoreCall{Op: "Get", Kind: kind, ID: id})
	if err != nil {
		return jobpoll.Record{}, err
	}
	rec, err := s.inner.Get(ctx, kind, id)
	if after != nil {
		return jobpoll.Record{}, after
	}
	return rec, err
}

// Put writes to the inner store.
func (s *FaultyStore) Put(ctx context.Context, batch []jobpoll.Record) error {
	after, err := s.begin(ctx, StoreCall{Op: "Put", Batch: slices.Clone(batch)})
	if err != nil {
		return err
	}
	if err := s.inner.Put(ctx, batch); err != nil {
		return err
	}
	return after
}

// Lease asks the inner store.
func (s *FaultyStore) Lease(ctx context.Context, owner string, ttl time.Duration) (uint64, error) {
	after, err := s.begin(ctx, StoreCall{Op: "Lease", Owner: owner, TTL: ttl})
	if err != nil {
		return 0, err
	}
	fence := uint64(1)
	if l, ok := s.inner.(jobpoll.Leaser); ok {
		fence, err = l.Lease(ctx, owner, ttl)
	}
	if err == nil && after != nil {
		return 0, after
	}
	return fence, err
}
