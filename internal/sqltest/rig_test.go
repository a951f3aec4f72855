package sqltest

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/sqlstore"
	"github.com/stretchr/testify/require"
)

// database is an empty one for a test.
type database struct {
	dialect     sqlstore.Dialect
	driver, dsn string
}

var databases atomic.Int64

// eachDialect runs a test with a database of each dialect.
func eachDialect(t *testing.T, test func(t *testing.T, d database)) {
	t.Run("SQLite", func(t *testing.T) {
		test(t, database{sqlstore.SQLite, "sqlite", SQLiteDSN(filepath.Join(t.TempDir(), "jobs.db")) + "&_pragma=synchronous(OFF)"})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		dsn, drop, err := NewPostgres(fmt.Sprintf("sqltest%d", databases.Add(1)))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, drop()) })
		test(t, database{sqlstore.PostgreSQL, "pgx", dsn})
	})
}

func (d database) open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open(d.driver, d.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func (d database) store(t testing.TB, cfg sqlstore.Config) *sqlstore.Store {
	t.Helper()
	if cfg.DB == nil {
		cfg.DB = d.open(t)
	}
	s, err := sqlstore.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func record(id, data string) jobpoll.Record {
	return jobpoll.Record{Kind: jobpoll.RecordJob, ID: id, Route: "fal", Rev: 1, UpdatedAt: start, Data: []byte(data)}
}

var start = time.Date(2026, 3, 4, 5, 6, 7, 891234000, time.UTC)

func load(t *testing.T, s jobpoll.Store) []jobpoll.Record {
	t.Helper()
	var all []jobpoll.Record
	for rec, err := range s.Load(t.Context()) {
		require.NoError(t, err)
		all = append(all, rec)
	}
	return all
}
