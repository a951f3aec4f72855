package sqltest

import (
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/sqlstore"
	"github.com/stretchr/testify/require"
)

func TestAnEnlistedRecordIsThereIfAndOnlyIfTheTransactionIsCommitted(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		app := d.open(t) // not the DB of the store
		_, err := app.Exec("CREATE TABLE orders (id TEXT)")
		require.NoError(t, err)
		order := func(id string) *jobpoll.Record {
			rec := record(id, "{}")
			return &rec
		}
		for _, commit := range []bool{false, true} {
			tx, err := app.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			_, err = tx.Exec("INSERT INTO orders (id) VALUES ('a')")
			require.NoError(t, err)
			require.NoError(t, s.Enlist(t.Context(), tx, *order("a"), *order("b")))
			if commit {
				require.NoError(t, tx.Commit())
			} else {
				require.NoError(t, tx.Rollback())
			}
			var orders int
			require.NoError(t, app.QueryRow("SELECT count(*) FROM orders").Scan(&orders))
			require.Len(t, load(t, s), 2*orders)
		}
	})
}

// It would make a job that was bought one that was not.
func TestEnlistReplacesNothingButWhatHasExpired(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		clock := polltest.NewClock(start)
		db := d.open(t)
		s := d.store(t, sqlstore.Config{DB: db, Clock: clock})
		bought := record("a", "bought")
		bought.ExpiresAt = start.Add(time.Hour)
		require.NoError(t, s.Put(t.Context(), []jobpoll.Record{bought}))
		enlist := func() error {
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			if err := s.Enlist(t.Context(), tx, record("a", "new")); err != nil {
				require.NoError(t, tx.Rollback())
				return err
			}
			return tx.Commit()
		}
		require.ErrorIs(t, enlist(), sqlstore.ErrExists)
		require.Equal(t, map[string]string{"a": "bought"}, contents(t, s))
		clock.Advance(time.Hour)
		require.NoError(t, enlist())
		require.Equal(t, map[string]string{"a": "new"}, contents(t, s))
		require.ErrorIs(t, enlist(), sqlstore.ErrExists)
		require.ErrorContains(t, s.Enlist(t.Context(), nil, jobpoll.Record{Kind: jobpoll.RecordJob, ID: "x"}), "no Data")
	})
}
