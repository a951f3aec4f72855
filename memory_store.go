package jobpoll

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"
)

// MemoryStore is a Store in the process. It is for tests, and for handing jobs
// from one Poller to the next; it does not outlive the process. Make one with
// NewMemoryStore. It is safe for concurrent use.
type MemoryStore struct {
	clock Clock

	mu    sync.Mutex
	recs  map[recordKey]Record
	owner string // who has the lease, or had it last
	until time.Time
	fence uint64
}

var _ Leaser = (*MemoryStore)(nil)

type recordKey struct {
	kind RecordKind
	id   string
}

// NewMemoryStore makes an empty store. Records expire on the clock; nil means
// package time.
func NewMemoryStore(c Clock) *MemoryStore {
	return &MemoryStore{clock: clockOrSystem(c), recs: map[recordKey]Record{}}
}

func expired(r Record, now time.Time) bool { return !r.ExpiresAt.IsZero() && !r.ExpiresAt.After(now) }

// Load goes over a copy of what is there when it is called, by kind and id.
func (s *MemoryStore) Load(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		now := s.clock.Now()
		s.mu.Lock()
		all := make([]Record, 0, len(s.recs))
		for k, r := range s.recs {
			if expired(r, now) {
				delete(s.recs, k)
				continue
			}
			all = append(all, clone(r))
		}
		s.mu.Unlock()
		slices.SortFunc(all, func(a, b Record) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID)) })
		for _, r := range all {
			if err := ctx.Err(); err != nil {
				yield(Record{}, contextError(ctx))
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

func clone(r Record) Record {
	r.Data = append([]byte{}, r.Data...) // nil would delete
	r.Fence = 0
	return r
}

// Get returns a record, or ErrNotFound.
func (s *MemoryStore) Get(ctx context.Context, kind RecordKind, id string) (Record, error) {
	if ctx.Err() != nil {
		return Record{}, contextError(ctx)
	}
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.recs[recordKey{kind, id}]
	if !ok || expired(r, now) {
		return Record{}, fmt.Errorf("jobpoll: %s %q: %w", kind, id, ErrNotFound)
	}
	return clone(r), nil
}

// Put writes a batch at once, unless it is of an owner that was replaced.
func (s *MemoryStore) Put(ctx context.Context, batch []Record) error {
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range batch {
		if r.Fence != 0 && r.Fence != s.fence {
			return fmt.Errorf("jobpoll: memory store: the write has the fence %d, the lease %d: %w", r.Fence, s.fence, ErrNotOwner)
		}
	}
	for _, r := range batch {
		k := recordKey{r.Kind, r.ID}
		if r.Data == nil {
			delete(s.recs, k)
			continue
		}
		s.recs[k] = clone(r)
	}
	return nil
}

// Lease takes, renews or releases the lease.
func (s *MemoryStore) Lease(ctx context.Context, owner string, ttl time.Duration) (uint64, error) {
	if ctx.Err() != nil {
		return 0, contextError(ctx)
	}
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ttl <= 0:
		if s.owner == owner {
			s.until = time.Time{}
		}
		return 0, nil
	case s.fence == 0 || s.owner != owner:
		if s.until.After(now) {
			return 0, fmt.Errorf("jobpoll: memory store: the lease is that of %q until %s: %w", s.owner, s.until.UTC().Format(time.RFC3339), ErrNotOwner)
		}
		s.owner = owner
		s.fence++
	}
	s.until = now.Add(ttl)
	return s.fence, nil
}

// Len is how many records there are.
func (s *MemoryStore) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.recs)
}
