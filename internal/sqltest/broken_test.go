package sqltest

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/sqlstore"
	"github.com/stretchr/testify/require"
)

var errInjected = errors.New("injected")

// breakage is a way in which a call of the driver fails.
type breakage struct {
	name          string
	before, after func() error
}

// breakages of calls that are made with a context, which cancel ends.
func breakages(cancel func()) []breakage {
	fail := func() error { return errInjected }
	lost := func() error { return driver.ErrBadConn }
	ended := func() error { cancel(); return nil }
	return []breakage{
		{"an error", fail, nil},
		{"an error after it took effect", nil, fail},
		{"the connection lost", lost, nil},
		{"the connection lost after it took effect", nil, lost},
		{"the context ended before it", ended, nil},
		{"the context ended after it", nil, ended},
	}
}

// allWays is how many breakages there are.
var allWays = len(breakages(nil))

// atEachCall does an operation again and again, with one call of the driver
// after the other broken in each of the first ways. prepare comes before, check after.
func atEachCall(t *testing.T, f *faults, ways int, prepare func(), operation func(ctx context.Context) error, check func(err error)) {
	for way := range ways {
		for at := int64(1); ; at++ {
			f.disarm()
			prepare()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			b := breakages(cancel)[way]
			f.arm(at, b.before, b.after)
			err := operation(ctx)
			made := f.calls.Load()
			f.disarm()
			cancel()
			check(err)
			if t.Failed() {
				t.Fatalf("with %s at call %d", b.name, at)
			}
			if made < at {
				require.NoError(t, err)
				require.Greater(t, at, int64(1))
				break
			}
			require.Less(t, at, int64(500), "%s: the calls do not end", b.name)
		}
	}
}

// contents are the records of a store by id.
func contents(t *testing.T, s jobpoll.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, rec := range load(t, s) {
		all[rec.ID] = string(rec.Data)
	}
	return all
}

func TestAPutIsWholeOrNothingWhicheverCallFails(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		db, f := d.faulty(t)
		s := d.store(t, sqlstore.Config{DB: db})
		fence, err := s.Lease(t.Context(), "me", time.Hour)
		require.NoError(t, err)
		old := map[string]string{"kept": "1", "gone": "1"}
		now := map[string]string{"kept": "2"}
		batch := []jobpoll.Record{record("kept", "2"), {Kind: jobpoll.RecordJob, ID: "gone"}}
		for i := range 20 {
			id := fmt.Sprint("new ", i)
			now[id] = "2"
			batch = append(batch, record(id, "2"))
		}
		for i := range batch {
			batch[i].Fence = fence
		}
		atEachCall(t, f, allWays, func() {
			_, err := db.Exec("DELETE FROM jobpoll_records")
			require.NoError(t, err)
			require.NoError(t, s.Put(t.Context(), []jobpoll.Record{record("kept", "1"), record("gone", "1")}))
		}, func(ctx context.Context) error {
			return s.Put(ctx, batch)
		}, func(err error) {
			got := contents(t, s)
			if err == nil || len(got) != len(old) {
				require.Equal(t, now, got)
			} else {
				require.Equal(t, old, got)
			}
			require.NoError(t, s.Put(t.Context(), batch), "it does not heal")
			require.Equal(t, now, contents(t, s))
			require.Zero(t, db.Stats().InUse, "a connection was not given back")
		})
	})
}

func TestALoadTellsOfEachFailureAndFreesWhatItHolds(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		db, f := d.faulty(t)
		s := d.store(t, sqlstore.Config{DB: db})
		want := map[string]string{"a": "1", "b": "2", "c": "3"}
		for id, data := range want {
			require.NoError(t, s.Put(t.Context(), []jobpoll.Record{record(id, data)}))
		}
		atEachCall(t, f, allWays, func() {}, func(ctx context.Context) error {
			got := map[string]string{}
			for rec, err := range s.Load(ctx) {
				if err != nil {
					return err
				}
				got[rec.ID] = string(rec.Data)
			}
			require.Equal(t, want, got)
			return nil
		}, func(error) {
			require.Equal(t, want, contents(t, s))
			require.Zero(t, db.Stats().InUse, "a connection was not given back")
		})
	})
}

// Whichever call fails, there is one owner, and the next try makes it known.
func TestALeaseHasOneOwnerWhicheverCallFails(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		db, f := d.faulty(t)
		s := d.store(t, sqlstore.Config{DB: db})
		var before uint64
		atEachCall(t, f, allWays, func() {
			var err error
			before, err = s.Lease(t.Context(), "one", time.Hour)
			require.NoError(t, err)
			_, err = s.Lease(t.Context(), "one", 0)
			require.NoError(t, err)
		}, func(ctx context.Context) error {
			_, err := s.Lease(ctx, "two", time.Hour)
			return err
		}, func(error) {
			fence, err := s.Lease(t.Context(), "two", time.Hour)
			require.NoError(t, err)
			require.Equal(t, before+1, fence)
			_, err = s.Lease(t.Context(), "one", time.Hour)
			require.ErrorIs(t, err, jobpoll.ErrNotOwner)
			_, err = s.Lease(t.Context(), "two", 0)
			require.NoError(t, err)
			require.Zero(t, db.Stats().InUse, "a connection was not given back")
		})
	})
}

func TestTablesAreMadeAsAWholeWhicheverCallFails(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		db, f := d.faulty(t)
		atEachCall(t, f, 2, func() {
			for _, table := range []string{"schema", "records", "leases"} {
				_, err := db.Exec("DROP TABLE IF EXISTS jobpoll_" + table)
				require.NoError(t, err)
			}
		}, func(ctx context.Context) error {
			s, err := sqlstore.Open(ctx, sqlstore.Config{DB: db})
			if err != nil {
				return err
			}
			return s.Close()
		}, func(error) {
			s := d.store(t, sqlstore.Config{DB: db})
			require.NoError(t, s.Put(t.Context(), []jobpoll.Record{record("a", "1")}))
			require.Zero(t, db.Stats().InUse, "a connection was not given back")
		})
	})
}
