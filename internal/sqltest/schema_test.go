package sqltest

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/sqlstore"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func TestManyProcessesMayMakeTheTablesAtOnce(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		group, ctx := errgroup.WithContext(t.Context())
		for range 8 {
			db := d.open(t)
			group.Go(func() error {
				s, err := sqlstore.Open(ctx, sqlstore.Config{DB: db})
				if err != nil {
					return err
				}
				return s.Close()
			})
		}
		require.NoError(t, group.Wait())
		var versions int
		require.NoError(t, d.open(t).QueryRow("SELECT count(*) FROM jobpoll_schema").Scan(&versions))
		require.Equal(t, 1, versions)
	})
}

func TestTablesOfANewerVersionAreRefused(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		db := d.open(t)
		d.store(t, sqlstore.Config{DB: db})
		_, err := db.Exec("INSERT INTO jobpoll_schema (version, applied_at) VALUES (99, 0)")
		require.NoError(t, err)
		for _, unmanaged := range []bool{false, true} {
			_, err = sqlstore.Open(t.Context(), sqlstore.Config{DB: db, Unmanaged: unmanaged})
			require.ErrorIs(t, err, sqlstore.ErrNewSchema)
			require.ErrorContains(t, err, "jobpoll_… are of version 99")
			require.ErrorContains(t, err, "update jobpoll")
		}
	})
}

func TestTablesMadeByHandAreEnough(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		db := d.open(t)
		cfg := sqlstore.Config{DB: db, Unmanaged: true, Prefix: "video_"}
		_, err := sqlstore.Open(t.Context(), cfg)
		require.ErrorIs(t, err, sqlstore.ErrOldSchema)
		require.ErrorContains(t, err, "0001_records.sql")
		all, err := sqlstore.Migrations(d.dialect, cfg.Prefix)
		require.NoError(t, err)
		for _, m := range all {
			_, err := db.Exec(m.SQL)
			require.NoError(t, err)
		}
		s := d.store(t, cfg)
		require.NoError(t, s.Put(t.Context(), []jobpoll.Record{record("a", "{}")}))
		require.Len(t, load(t, s), 1)
		d.store(t, sqlstore.Config{DB: db, Prefix: "video_"})
	})
}

func TestStoresWithOtherPrefixesHaveNothingToDoWithEachOther(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		db := d.open(t)
		one, two := d.store(t, sqlstore.Config{DB: db}), d.store(t, sqlstore.Config{DB: db, Prefix: "two_"})
		require.NoError(t, one.Put(t.Context(), []jobpoll.Record{record("a", "{}")}))
		require.Empty(t, load(t, two))
		_, err := one.Lease(t.Context(), "one", 1e9)
		require.NoError(t, err)
		_, err = two.Lease(t.Context(), "two", 1e9)
		require.NoError(t, err)
	})
}

// A migration that fails or is cut off leaves nothing behind.
func TestAMigrationIsDoneAsAWhole(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		db := d.open(t)
		_, err := db.Exec("CREATE TABLE jobpoll_leases (other INTEGER)")
		require.NoError(t, err)
		_, err = sqlstore.Open(t.Context(), sqlstore.Config{DB: db})
		require.ErrorContains(t, err, "migration 0001_records.sql")
		_, err = db.Exec("DROP TABLE jobpoll_leases")
		require.NoError(t, err)
		d.store(t, sqlstore.Config{DB: db})
	})
}

func TestTheDialectIsAskedOfTheDatabase(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		require.Equal(t, d.dialect, d.store(t, sqlstore.Config{}).Dialect())
		require.Equal(t, d.dialect, d.store(t, sqlstore.Config{Dialect: d.dialect}).Dialect())
	})
}

func TestOpenTellsThatADatabaseIsNotThere(t *testing.T) {
	for _, d := range []database{
		{sqlstore.SQLite, "sqlite", SQLiteDSN(filepath.Join(t.TempDir(), "no", "such", "directory", "jobs.db"))},
		{sqlstore.PostgreSQL, "pgx", "host=127.0.0.1 port=1 user=nobody password=secret-word dbname=none sslmode=disable"},
	} {
		for _, dialect := range []sqlstore.Dialect{sqlstore.DetectDialect, d.dialect} {
			_, err := sqlstore.Open(t.Context(), sqlstore.Config{DB: d.open(t), Dialect: dialect})
			require.ErrorIs(t, err, sqlstore.ErrUnreachable)
			require.NotContains(t, err.Error(), "secret-word")
		}
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	eachDialect(t, func(t *testing.T, d database) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := sqlstore.Open(ctx, sqlstore.Config{DB: d.open(t)})
		require.ErrorIs(t, err, context.Canceled)
	})
}
