package sqltest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/sqlstore"
	"github.com/stretchr/testify/require"
)

func TestARecordComesBackAsItWasWritten(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{Clock: polltest.NewClock(start)})
		ids := []string{"", "plain", "5:fal/abc", "nul\x00nul", "\xff\xfe", `back\slash`, `\x00`, "ключ", strings.Repeat("long", 300), strings.Repeat("ы", 600), strings.Repeat("long", 301)}
		var want []jobpoll.Record
		for i, id := range ids {
			want = append(want, jobpoll.Record{
				Kind: jobpoll.RecordKind(i%3) * 100, ID: id, Route: id, Rev: math.MaxInt64, UpdatedAt: start,
				ExpiresAt: start.Add(time.Hour), Data: []byte("{\"a\":\"\xff\x00\"}" + id),
			})
		}
		want = append(want, jobpoll.Record{Kind: jobpoll.RecordJob, ID: "bare", Data: []byte{}})
		require.NoError(t, s.Put(t.Context(), want))
		for _, w := range want {
			got, err := s.Get(t.Context(), w.Kind, w.ID)
			require.NoError(t, err)
			require.Equal(t, w, got)
		}
		require.ElementsMatch(t, want, load(t, s))
	})
}

func TestLoadGoesOverMoreThanAPage(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		var want []string
		var batch []jobpoll.Record
		for i := range 1234 {
			id := fmt.Sprintf("job %d", i)
			want = append(want, id)
			batch = append(batch, record(id, "{}"))
		}
		for _, id := range []string{"big 1", "big 2", "big 3"} {
			want = append(want, id)
			batch = append(batch, record(id, strings.Repeat("x", 3<<20)))
		}
		require.NoError(t, s.Put(t.Context(), batch))
		var got []string
		for _, rec := range load(t, s) {
			got = append(got, rec.ID)
		}
		require.ElementsMatch(t, want, got)
		require.True(t, slices.IsSorted(got))
	})
}

// With a single connection a Load that holds one would wait for itself.
func TestNoConnectionIsHeldWhileTheCallerWorksOnALoad(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		db := d.open(t)
		db.SetMaxOpenConns(1)
		s := d.store(t, sqlstore.Config{DB: db})
		require.NoError(t, s.Put(t.Context(), []jobpoll.Record{record("a", "1"), record("b", "1"), record("c", "1")}))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		n := 0
		for rec, err := range s.Load(ctx) {
			require.NoError(t, err)
			n++
			require.NoError(t, s.Put(ctx, []jobpoll.Record{record(rec.ID, "2")}))
			got, err := s.Get(ctx, rec.Kind, rec.ID)
			require.NoError(t, err)
			require.Equal(t, "2", string(got.Data))
		}
		require.Equal(t, 3, n)
	})
}

func TestTheLeaseOfALateOwnerIsRefusedInTheTransactionThatWrites(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		clock := polltest.NewClock(start)
		one, two := d.store(t, sqlstore.Config{Clock: clock}), d.store(t, sqlstore.Config{Clock: clock})
		first, err := one.Lease(t.Context(), "one", time.Minute)
		require.NoError(t, err)
		_, err = two.Lease(t.Context(), "two", time.Minute)
		require.ErrorIs(t, err, jobpoll.ErrNotOwner)
		require.ErrorContains(t, err, `"one" until 2026-03-04T05:07:07Z`)

		mine := record("a", "by one")
		mine.Fence = first
		require.NoError(t, one.Put(t.Context(), []jobpoll.Record{mine}))
		clock.Advance(time.Minute)
		second, err := two.Lease(t.Context(), "two", time.Minute)
		require.NoError(t, err)
		require.Greater(t, second, first)

		late := record("a", "late")
		late.Fence = first
		err = one.Put(t.Context(), []jobpoll.Record{record("b", "beside"), late})
		require.ErrorIs(t, err, jobpoll.ErrNotOwner)
		require.Len(t, load(t, one), 1)
		got, err := one.Get(t.Context(), jobpoll.RecordJob, "a")
		require.NoError(t, err)
		require.Equal(t, "by one", string(got.Data))

		_, err = two.Lease(t.Context(), "two", 0)
		require.NoError(t, err)
		third, err := one.Lease(t.Context(), "one", time.Minute)
		require.NoError(t, err)
		require.Greater(t, third, second)
	})
}

// Clocks of machines differ: without a Clock the database's counts.
func TestTheLeaseEndsOnTheClockOfTheDatabase(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		_, err := s.Lease(t.Context(), "one", 200*365*24*time.Hour)
		require.NoError(t, err)
		_, err = s.Lease(t.Context(), "two", time.Hour)
		require.ErrorIs(t, err, jobpoll.ErrNotOwner)
		_, err = s.Lease(t.Context(), "one", time.Nanosecond)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			_, err := s.Lease(t.Context(), "two", time.Hour)
			return err == nil
		}, 10*time.Second, time.Millisecond)
	})
}

func TestExpiredRecordsAreSweptInBatches(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		clock := polltest.NewClock(start)
		s := d.store(t, sqlstore.Config{Clock: clock})
		batch := []jobpoll.Record{record("stays", "{}")}
		for i := range 1200 {
			rec := record(fmt.Sprint(i), "{}")
			rec.ExpiresAt = start.Add(time.Hour)
			batch = append(batch, rec)
		}
		require.NoError(t, s.Put(t.Context(), batch))
		rows := func() (n int) {
			require.NoError(t, d.open(t).QueryRow("SELECT count(*) FROM jobpoll_records").Scan(&n))
			return n
		}
		require.Equal(t, 1201, rows())
		clock.Advance(time.Hour)
		require.Len(t, load(t, s), 1)
		require.NoError(t, s.Put(t.Context(), []jobpoll.Record{record("stays", "{}")}))
		require.Equal(t, 701, rows())
		require.NoError(t, s.Put(t.Context(), []jobpoll.Record{record("stays", "{}")}))
		require.Equal(t, 201, rows())
		n, err := s.Sweep(t.Context())
		require.NoError(t, err)
		require.Equal(t, 200, n)
		require.Equal(t, 1, rows())
	})
}
