package polltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

// kitStores tries memory stores that change has altered.
func kitStores(change func(*jobpoll.MemoryStore) jobpoll.Store) Stores {
	return Stores{New: func(c jobpoll.Clock) (jobpoll.Store, error) { return change(jobpoll.NewMemoryStore(c)), nil }}
}

// kitStore is a memory store. Its fields are the places at which the tests break
// it.
type kitStore struct {
	*jobpoll.MemoryStore
	put   func(ctx context.Context, batch []jobpoll.Record) error
	get   func(ctx context.Context, kind jobpoll.RecordKind, id string) (jobpoll.Record, error)
	load  func(ctx context.Context) iter.Seq2[jobpoll.Record, error]
	lease func(ctx context.Context, owner string, ttl time.Duration) (uint64, error)
}

func (s *kitStore) Put(ctx context.Context, batch []jobpoll.Record) error { return s.put(ctx, batch) }

func (s *kitStore) Get(ctx context.Context, kind jobpoll.RecordKind, id string) (jobpoll.Record, error) {
	return s.get(ctx, kind, id)
}

func (s *kitStore) Load(ctx context.Context) iter.Seq2[jobpoll.Record, error] { return s.load(ctx) }

func (s *kitStore) Lease(ctx context.Context, owner string, ttl time.Duration) (uint64, error) {
	return s.lease(ctx, owner, ttl)
}

// kitBroken is a store with a fault.
func kitBroken(breakIt func(s *kitStore)) Stores {
	return kitStores(func(m *jobpoll.MemoryStore) jobpoll.Store {
		s := &kitStore{MemoryStore: m, put: m.Put, get: m.Get, load: m.Load, lease: m.Lease}
		breakIt(s)
		return s
	})
}

// kitWriting breaks what is written of a record.
func kitWriting(change func(r *jobpoll.Record)) func(*kitStore) {
	return func(s *kitStore) {
		s.put = func(ctx context.Context, batch []jobpoll.Record) error {
			batch = slices.Clone(batch)
			for i := range batch {
				change(&batch[i])
			}
			return s.MemoryStore.Put(ctx, batch)
		}
	}
}

// kitReading breaks what Load yields.
func kitReading(change func(n int, r jobpoll.Record, yield func(jobpoll.Record, error) bool) bool) func(*kitStore) {
	return func(s *kitStore) {
		s.load = func(ctx context.Context) iter.Seq2[jobpoll.Record, error] {
			return func(yield func(jobpoll.Record, error) bool) {
				n := 0
				for r, err := range s.MemoryStore.Load(ctx) {
					if err != nil {
						yield(r, err)
						return
					}
					if n++; !change(n, r, yield) {
						return
					}
				}
			}
		}
	}
}

func TestTheMemoryStorePassesTheKit(t *testing.T) {
	var untried []string
	kit := kitStores(func(m *jobpoll.MemoryStore) jobpoll.Store { return m })
	kit.Again = func(s jobpoll.Store) (jobpoll.Store, error) { return s, nil }
	kit.Logf = func(format string, args ...any) { untried = append(untried, fmt.Sprintf(format, args...)) }
	require.NoError(t, TestStore(kit))
	require.Empty(t, untried)
}

func TestAFaultyStoreWithoutAPlanPassesTheKit(t *testing.T) {
	kit := Stores{New: func(c jobpoll.Clock) (jobpoll.Store, error) {
		return NewFaultyStore(jobpoll.NewMemoryStore(c), c.(*Clock)), nil
	}}
	require.NoError(t, TestStore(kit))
}

func TestEachFaultOfAStoreIsFound(t *testing.T) {
	down := errors.New("down")
	for _, tt := range []struct {
		name    string
		breakIt func(s *kitStore)
		found   []string
	}{
		{"the route is dropped", kitWriting(func(r *jobpoll.Record) { r.Route = "" }), []string{"round-trip", "ids"}},
		{"Rev is counted by the store", kitWriting(func(r *jobpoll.Record) { r.Rev = 1 }), []string{"round-trip"}},
		{"times are cut to seconds", kitWriting(func(r *jobpoll.Record) { r.UpdatedAt = r.UpdatedAt.Truncate(time.Second) }), []string{"times"}},
		{"times come back as local ones", kitWriting(func(r *jobpoll.Record) {
			if !r.UpdatedAt.IsZero() {
				r.UpdatedAt = r.UpdatedAt.In(time.FixedZone("local", 3600))
			}
		}), []string{"round-trip"}},
		{"a zero time becomes 1970", kitWriting(func(r *jobpoll.Record) {
			if r.UpdatedAt.IsZero() {
				r.UpdatedAt = time.Unix(0, 0).UTC()
			}
		}), []string{"times"}},
		{"expiry is not kept", kitWriting(func(r *jobpoll.Record) { r.ExpiresAt = time.Time{} }), []string{"expiry"}},
		{"everything expires in an hour", kitWriting(func(r *jobpoll.Record) { r.ExpiresAt = r.UpdatedAt.Add(time.Hour) }), []string{"replace", "expiry"}},
		{"NUL ends an ID", kitWriting(func(r *jobpoll.Record) { r.ID, _, _ = strings.Cut(r.ID, "\x00") }), []string{"ids"}},
		{"IDs are cut to 255 bytes", kitWriting(func(r *jobpoll.Record) { r.ID = r.ID[:min(len(r.ID), 255)] }), []string{"ids"}},
		{"IDs have no case", func(s *kitStore) {
			kitWriting(func(r *jobpoll.Record) { r.ID = strings.ToLower(r.ID) })(s)
			s.get = func(ctx context.Context, kind jobpoll.RecordKind, id string) (jobpoll.Record, error) {
				return s.MemoryStore.Get(ctx, kind, strings.ToLower(id))
			}
		}, []string{"ids"}},
		{"IDs are made UTF-8", kitWriting(func(r *jobpoll.Record) { r.ID = strings.ToValidUTF8(r.ID, "?") }), []string{"ids"}},
		{"the key is the ID alone", func(s *kitStore) {
			kitWriting(func(r *jobpoll.Record) { r.Kind = jobpoll.RecordJob })(s)
		}, []string{"kinds"}},
		{"kinds that are not known are refused", func(s *kitStore) {
			s.put = func(ctx context.Context, batch []jobpoll.Record) error {
				if slices.ContainsFunc(batch, func(r jobpoll.Record) bool { return r.Kind > jobpoll.RecordBudget }) {
					return down
				}
				return s.MemoryStore.Put(ctx, batch)
			}
		}, []string{"kinds"}},
		{"Data is compacted", kitWriting(func(r *jobpoll.Record) {
			if r.Data != nil {
				r.Data = append([]byte{}, bytes.ReplaceAll(r.Data, []byte(" "), nil)...)
			}
		}), []string{"bytes"}},
		{"more than a MiB is cut", kitWriting(func(r *jobpoll.Record) { r.Data = r.Data[:min(len(r.Data), 1<<20)] }), []string{"large"}},
		{"empty data deletes", kitWriting(func(r *jobpoll.Record) {
			if len(r.Data) == 0 {
				r.Data = nil
			}
		}), []string{"delete"}},
		{"nil data does not delete", kitWriting(func(r *jobpoll.Record) {
			if r.Data == nil {
				r.Data = []byte{}
			}
		}), []string{"delete", "batch"}},
		{"the fence is kept", func(s *kitStore) {
			var fences sync.Map
			s.put = func(ctx context.Context, batch []jobpoll.Record) error {
				for _, r := range batch {
					fences.Store(r.ID, r.Fence)
				}
				return s.MemoryStore.Put(ctx, batch)
			}
			s.get = func(ctx context.Context, kind jobpoll.RecordKind, id string) (jobpoll.Record, error) {
				r, err := s.MemoryStore.Get(ctx, kind, id)
				if f, ok := fences.Load(id); ok {
					r.Fence = f.(uint64)
				}
				return r, err
			}
		}, []string{"fence"}},
		{"an older Rev is refused", func(s *kitStore) {
			s.put = func(ctx context.Context, batch []jobpoll.Record) error {
				for _, r := range batch {
					if old, err := s.MemoryStore.Get(ctx, r.Kind, r.ID); err == nil && r.Data != nil && r.Rev < old.Rev {
						return down
					}
				}
				return s.MemoryStore.Put(ctx, batch)
			}
		}, []string{"replace"}},
		{"an empty batch is an error", func(s *kitStore) {
			s.put = func(ctx context.Context, batch []jobpoll.Record) error {
				if len(batch) == 0 {
					return down
				}
				return s.MemoryStore.Put(ctx, batch)
			}
		}, []string{"batch"}},
		{"of one key the first counts", func(s *kitStore) {
			s.put = func(ctx context.Context, batch []jobpoll.Record) error {
				batch = slices.Clone(batch)
				slices.Reverse(batch)
				return s.MemoryStore.Put(ctx, batch)
			}
		}, []string{"batch"}},
		{"the batch is sorted in place", func(s *kitStore) {
			s.put = func(ctx context.Context, batch []jobpoll.Record) error {
				err := s.MemoryStore.Put(ctx, batch)
				slices.Reverse(batch)
				return err
			}
		}, []string{"batch"}},
		{"records are written one by one", func(s *kitStore) {
			s.put = func(ctx context.Context, batch []jobpoll.Record) error {
				for i := range batch {
					if err := s.MemoryStore.Put(ctx, batch[i:i+1]); err != nil {
						return err
					}
				}
				return nil
			}
		}, []string{"fence-whole"}},
		{"what is not there is a zero record", func(s *kitStore) {
			s.get = func(ctx context.Context, kind jobpoll.RecordKind, id string) (jobpoll.Record, error) {
				r, err := s.MemoryStore.Get(ctx, kind, id)
				if errors.Is(err, jobpoll.ErrNotFound) {
					return jobpoll.Record{}, nil
				}
				return r, err
			}
		}, []string{"not-found"}},
		{"what is not there is an error of its own", func(s *kitStore) {
			s.get = func(ctx context.Context, kind jobpoll.RecordKind, id string) (jobpoll.Record, error) {
				r, err := s.MemoryStore.Get(ctx, kind, id)
				if err != nil {
					return r, errors.New("sql: no rows in result set")
				}
				return r, nil
			}
		}, []string{"not-found"}},
		{"Get gives what has expired", func(s *kitStore) {
			var old sync.Map
			s.put = func(ctx context.Context, batch []jobpoll.Record) error {
				for _, r := range batch {
					if !r.ExpiresAt.IsZero() {
						old.Store(r.ID, r)
					}
				}
				return s.MemoryStore.Put(ctx, batch)
			}
			s.get = func(ctx context.Context, kind jobpoll.RecordKind, id string) (jobpoll.Record, error) {
				r, err := s.MemoryStore.Get(ctx, kind, id)
				if o, ok := old.Load(id); ok && err != nil && ctx.Err() == nil {
					return o.(jobpoll.Record), nil
				}
				return r, err
			}
		}, []string{"expiry"}},
		{"Load ends after a page", kitReading(func(n int, r jobpoll.Record, yield func(jobpoll.Record, error) bool) bool {
			return n <= 1000 && yield(r, nil)
		}), []string{"load"}},
		{"Load gives a record at the border of pages twice", kitReading(func(n int, r jobpoll.Record, yield func(jobpoll.Record, error) bool) bool {
			return yield(r, nil) && (n%1000 != 0 || yield(r, nil))
		}), []string{"load", "load-while-writing"}},
		{"Load ends with its context, without a word", func(s *kitStore) {
			s.load = func(ctx context.Context) iter.Seq2[jobpoll.Record, error] {
				return func(yield func(jobpoll.Record, error) bool) {
					for r, err := range s.MemoryStore.Load(ctx) {
						if err != nil || !yield(r, nil) {
							return
						}
					}
				}
			}
		}, []string{"context", "load-context"}},
		{"Load goes on after an error", func(s *kitStore) {
			s.load = func(ctx context.Context) iter.Seq2[jobpoll.Record, error] {
				return func(yield func(jobpoll.Record, error) bool) {
					for r := range s.MemoryStore.Load(context.WithoutCancel(ctx)) {
						if !yield(r, ctx.Err()) {
							return
						}
					}
					if ctx.Err() != nil {
						yield(jobpoll.Record{}, ctx.Err())
					}
				}
			}
		}, []string{"load-context"}},
		{"a loop that is left holds its connection", func(s *kitStore) {
			free := make(chan struct{}, 10)
			s.load = func(ctx context.Context) iter.Seq2[jobpoll.Record, error] {
				return func(yield func(jobpoll.Record, error) bool) {
					select {
					case free <- struct{}{}:
					case <-ctx.Done():
						yield(jobpoll.Record{}, ctx.Err())
						return
					}
					for r, err := range s.MemoryStore.Load(ctx) {
						if !yield(r, err) {
							return
						}
					}
					<-free
				}
			}
		}, []string{"load-left"}},
		{"there is one connection", func(s *kitStore) {
			one := make(chan struct{}, 1)
			take := func(ctx context.Context) error {
				select {
				case one <- struct{}{}:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			s.load = func(ctx context.Context) iter.Seq2[jobpoll.Record, error] {
				return func(yield func(jobpoll.Record, error) bool) {
					if err := take(ctx); err != nil {
						yield(jobpoll.Record{}, err)
						return
					}
					defer func() { <-one }()
					for r, err := range s.MemoryStore.Load(ctx) {
						if !yield(r, err) {
							return
						}
					}
				}
			}
			s.put = func(ctx context.Context, batch []jobpoll.Record) error {
				if err := take(ctx); err != nil {
					return err
				}
				defer func() { <-one }()
				return s.MemoryStore.Put(ctx, batch)
			}
		}, []string{"load-inside"}},
		{"Put does not honour its context", func(s *kitStore) {
			s.put = func(ctx context.Context, batch []jobpoll.Record) error {
				return s.MemoryStore.Put(context.WithoutCancel(ctx), batch)
			}
		}, []string{"context"}},
		{"a batch that is cut off is written in part", func(s *kitStore) {
			s.put = func(ctx context.Context, batch []jobpoll.Record) error {
				for i := range batch {
					if _, err := s.MemoryStore.Get(ctx, jobpoll.RecordJob, ""); i > 0 && err != nil && !errors.Is(err, jobpoll.ErrNotFound) {
						return err
					}
					if len(batch) == 100 { // so that the context of the check ends within it
						<-time.After(100 * time.Microsecond)
					}
					if err := s.MemoryStore.Put(context.WithoutCancel(ctx), batch[i:i+1]); err != nil {
						return err
					}
				}
				return ctx.Err()
			}
		}, []string{"atomic", "fence-whole"}},
		{"the data of the caller is kept", func(s *kitStore) {
			var kept sync.Map
			s.put = func(ctx context.Context, batch []jobpoll.Record) error {
				for _, r := range batch {
					kept.Store(r.ID, r.Data)
				}
				return s.MemoryStore.Put(ctx, batch)
			}
			s.get = func(ctx context.Context, kind jobpoll.RecordKind, id string) (jobpoll.Record, error) {
				r, err := s.MemoryStore.Get(ctx, kind, id)
				if v, ok := kept.Load(id); ok && err == nil && bytes.HasPrefix(v.([]byte), []byte(scribble)) {
					r.Data = v.([]byte)
				}
				return r, err
			}
		}, []string{"no-sharing"}},
		{"Put tells of no new state to others", func(s *kitStore) {
			var mu sync.Mutex
			cache := map[string]jobpoll.Record{}
			s.get = func(ctx context.Context, kind jobpoll.RecordKind, id string) (jobpoll.Record, error) {
				mu.Lock()
				defer mu.Unlock()
				if r, ok := cache[id]; ok && strings.HasPrefix(id, "own-") {
					return r, nil
				}
				r, err := s.MemoryStore.Get(ctx, kind, id)
				if err == nil {
					cache[id] = r
				}
				return r, err
			}
		}, []string{"many-at-once"}},
		{"calls at once fail", func(s *kitStore) {
			var one sync.Mutex
			s.put = func(ctx context.Context, batch []jobpoll.Record) error {
				if !one.TryLock() {
					return errors.New("database is locked")
				}
				defer one.Unlock()
				<-time.After(time.Millisecond)
				return s.MemoryStore.Put(ctx, batch)
			}
		}, []string{"many-at-once", "fence-race"}},
		{"a record is read by halves", func(s *kitStore) {
			s.get = func(ctx context.Context, kind jobpoll.RecordKind, id string) (jobpoll.Record, error) {
				r, err := s.MemoryStore.Get(ctx, kind, id)
				if id == "shared" && err == nil && r.Rev == 3 {
					r.Rev = 2
				}
				return r, err
			}
		}, []string{"many-at-once"}},
		{"the lease is everybody's", func(s *kitStore) {
			s.lease = func(context.Context, string, time.Duration) (uint64, error) { return 1, nil }
		}, []string{"lease", "lease-lapses", "lease-release", "lease-race"}},
		{"a fence is zero", func(s *kitStore) {
			s.lease = func(ctx context.Context, owner string, ttl time.Duration) (uint64, error) {
				_, err := s.MemoryStore.Lease(ctx, owner, ttl)
				return 0, err
			}
		}, []string{"lease", "lease-lapses", "lease-release", "fence", "fence-whole", "fence-race"}},
		{"the lease never lapses", func(s *kitStore) {
			s.lease = func(ctx context.Context, owner string, ttl time.Duration) (uint64, error) {
				if ttl > 0 {
					ttl = 1e6 * time.Hour
				}
				return s.MemoryStore.Lease(ctx, owner, ttl)
			}
		}, []string{"lease-lapses"}},
		{"the lease is not renewed", func(s *kitStore) {
			last := ""
			var mu sync.Mutex
			s.lease = func(ctx context.Context, owner string, ttl time.Duration) (uint64, error) {
				mu.Lock()
				defer mu.Unlock()
				if f, err := s.MemoryStore.Lease(ctx, owner+"?", time.Nanosecond); owner == last && ttl > 0 && err != nil {
					_ = f
					return 1, nil
				}
				f, err := s.MemoryStore.Lease(ctx, owner, ttl)
				if err == nil {
					last = owner
				}
				return f, err
			}
		}, []string{"lease-lapses"}},
		{"fences go round", func(s *kitStore) {
			s.lease = func(ctx context.Context, owner string, ttl time.Duration) (uint64, error) {
				f, err := s.MemoryStore.Lease(ctx, owner, ttl)
				if f > 1 {
					f = 1 + f%2
				}
				return f, err
			}
		}, []string{"lease-lapses", "lease-release"}},
		{"the lease is refused with an error of its own", func(s *kitStore) {
			s.lease = func(ctx context.Context, owner string, ttl time.Duration) (uint64, error) {
				f, err := s.MemoryStore.Lease(ctx, owner, ttl)
				if errors.Is(err, jobpoll.ErrNotOwner) {
					err = errors.New("not mine")
				}
				return f, err
			}
		}, []string{"lease", "lease-lapses", "lease-release", "lease-race"}},
		{"a release is not heard of", func(s *kitStore) {
			s.lease = func(ctx context.Context, owner string, ttl time.Duration) (uint64, error) {
				if ttl <= 0 {
					return 0, nil
				}
				return s.MemoryStore.Lease(ctx, owner, ttl)
			}
		}, []string{"lease-release"}},
		{"anybody releases the lease", func(s *kitStore) {
			last := ""
			var mu sync.Mutex
			s.lease = func(ctx context.Context, owner string, ttl time.Duration) (uint64, error) {
				mu.Lock()
				defer mu.Unlock()
				if ttl <= 0 {
					owner = last
				}
				f, err := s.MemoryStore.Lease(ctx, owner, ttl)
				if err == nil {
					last = owner
				}
				return f, err
			}
		}, []string{"lease-release"}},
		{"fences are not looked at", kitWriting(func(r *jobpoll.Record) { r.Fence = 0 }), []string{"fence", "fence-whole", "lease-release"}},
		{"the first fence of a batch counts", func(s *kitStore) {
			s.put = func(ctx context.Context, batch []jobpoll.Record) error {
				batch = slices.Clone(batch)
				for i := range batch {
					if i > 0 {
						batch[i].Fence = batch[0].Fence
					}
				}
				return s.MemoryStore.Put(ctx, batch)
			}
		}, []string{"fence-whole"}},
		{"a write without a fence is refused", func(s *kitStore) {
			s.put = func(ctx context.Context, batch []jobpoll.Record) error {
				batch = slices.Clone(batch)
				for i := range batch {
					if batch[i].Fence == 0 && batch[i].ID == "fenced" {
						batch[i].Fence = 1 << 40
					}
				}
				return s.MemoryStore.Put(ctx, batch)
			}
		}, []string{"fence"}},
		{"a lapsed lease does not count", func(s *kitStore) {
			var mu sync.Mutex
			var until time.Time
			s.put = func(ctx context.Context, batch []jobpoll.Record) error {
				mu.Lock()
				defer mu.Unlock()
				for _, r := range batch {
					if r.Fence == 0 {
						continue
					}
					if until.IsZero() {
						until = r.UpdatedAt.Add(time.Minute)
					}
					if r.UpdatedAt.After(until) && r.Fence == 1 {
						return jobpoll.ErrNotOwner
					}
				}
				return s.MemoryStore.Put(ctx, batch)
			}
		}, []string{"fence"}},
		{"the fence is looked at before the write", func(s *kitStore) {
			s.put = func(ctx context.Context, batch []jobpoll.Record) error {
				plain := slices.Clone(batch)
				for i := range plain {
					plain[i].Fence = 0
				}
				probe := []jobpoll.Record{{Kind: jobpoll.RecordUnknown, ID: "probe", Fence: 0}}
				for _, r := range batch {
					probe[0].Fence = max(probe[0].Fence, r.Fence)
				}
				if err := s.MemoryStore.Put(ctx, probe); err != nil {
					return err
				}
				if len(batch) == 1 && string(batch[0].Data) == `"old"` {
					<-time.After(2 * time.Millisecond)
				}
				return s.MemoryStore.Put(ctx, plain)
			}
		}, []string{"fence-race"}},
		{"Get panics", func(s *kitStore) {
			s.get = func(context.Context, jobpoll.RecordKind, string) (jobpoll.Record, error) { panic("nil map") }
		}, []string{"round-trip"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kit := kitBroken(tt.breakIt)
			kit.Skip = slices.DeleteFunc(StoreChecks(), func(name string) bool { return slices.Contains(tt.found, name) })
			slices.Sort(tt.found)
			require.Equal(t, tt.found, confChecks(t, testStore(kit, 2*time.Second)))
		})
	}
}

func TestAStoreThatHangsIsLeftBehind(t *testing.T) {
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	kit := kitBroken(func(s *kitStore) {
		s.get = func(context.Context, jobpoll.RecordKind, string) (jobpoll.Record, error) {
			<-over
			return jobpoll.Record{}, nil
		}
	})
	err := testStore(kit, 50*time.Millisecond)
	require.Equal(t, []string{"round-trip"}, confChecks(t, err))
	require.ErrorContains(t, err, "did not return")
}

func TestFindingsOfAStoreAreOfAStore(t *testing.T) {
	err := testStore(kitBroken(kitWriting(func(r *jobpoll.Record) { r.Route = "" })), time.Second)
	require.ErrorContains(t, err, "polltest: TestStore found ")
	require.ErrorContains(t, err, "in the store\nround-trip: Put, then Get\n\tthe store: gave back the Route")
}

func TestStoresThatLackWhatIsRequired(t *testing.T) {
	require.ErrorContains(t, TestStore(Stores{}), "Stores.New is missing")
	require.ErrorContains(t, TestStore(Stores{New: func(jobpoll.Clock) (jobpoll.Store, error) { return nil, nil }}), "gave no store")
	err := TestStore(Stores{New: func(jobpoll.Clock) (jobpoll.Store, error) { return nil, errors.New("no server") }, Skip: []string{"nonsense"}})
	require.ErrorContains(t, err, `"nonsense", which is no check; the checks are round-trip,`)
	err = TestStore(Stores{New: func(jobpoll.Clock) (jobpoll.Store, error) { return nil, errors.New("no server") }})
	require.ErrorContains(t, err, "no server")
}

func TestTheDocumentationListsTheChecksOfStores(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	for _, name := range StoreChecks() {
		require.Regexp(t, regexp.MustCompile(`(?m)^//\s+`+regexp.QuoteMeta(name)+`( \*)?\s{2,}\S`), string(doc), name)
	}
}

func TestStoresAreClosed(t *testing.T) {
	opened, closed := 0, 0
	kit := kitStores(func(m *jobpoll.MemoryStore) jobpoll.Store { opened++; return m })
	kit.Again = func(s jobpoll.Store) (jobpoll.Store, error) { opened++; return s, nil }
	kit.Close = func(jobpoll.Store) error { closed++; return nil }
	kit.Skip = []string{"large"}
	require.NoError(t, TestStore(kit))
	require.Equal(t, opened, closed)
	require.Equal(t, len(StoreChecks())-1+2, opened)
}
