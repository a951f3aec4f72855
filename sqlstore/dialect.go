package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// Dialect is the kind of database.
type Dialect uint8

// The dialects. The zero Dialect asks the database which one it is.
const (
	DetectDialect Dialect = iota
	SQLite                // 3.35 or newer
	PostgreSQL            // 12 or newer
)

// String returns the dialect's name.
func (d Dialect) String() string {
	switch d {
	case SQLite:
		return "SQLite"
	case PostgreSQL:
		return "PostgreSQL"
	}
	return "unknown"
}

// dir is where the dialect's migrations are.
func (d Dialect) dir() string {
	if d == SQLite {
		return "migrations/sqlite"
	}
	return "migrations/postgres"
}

// bind writes the placeholders of a query, $1 and so on, as the dialect has them.
func (d Dialect) bind(query string) string {
	if d == SQLite {
		return strings.ReplaceAll(query, "$", "?")
	}
	return query
}

// now is an expression for the database's own time, in microseconds since 1970.
func (d Dialect) now() string {
	if d == SQLite {
		return "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000"
	}
	return "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
}

// writers is how many writes of one Store go on at once. In SQLite it is quicker
// to wait than to find the database locked; in PostgreSQL a thousand jobs that end
// together must not take a thousand connections.
func (d Dialect) writers() int {
	if d == SQLite {
		return 1
	}
	return 8
}

// share makes a SELECT hold what it reads until the transaction ends. In SQLite
// a transaction that has written does so anyway.
func (d Dialect) share() string {
	if d == SQLite {
		return ""
	}
	return " FOR SHARE"
}

// hasTable is a query that counts the tables of a name.
func (d Dialect) hasTable() string {
	if d == SQLite {
		return "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?1"
	}
	return "SELECT count(*) FROM pg_catalog.pg_class WHERE oid = to_regclass($1)"
}

// detect asks the database which one it is.
func detect(ctx context.Context, db *sql.DB) (Dialect, error) {
	var version string
	err := db.QueryRowContext(ctx, "SELECT version()").Scan(&version) // SQLite has no such function
	if err == nil {
		if strings.HasPrefix(version, "PostgreSQL ") {
			return PostgreSQL, nil
		}
		return 0, fmt.Errorf("jobpoll: sqlstore: the database says that it is %.60q, and only SQLite and PostgreSQL are known; set Config.Dialect if it behaves like one of them", version)
	}
	lite := db.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version)
	if lite == nil {
		return SQLite, nil
	}
	return 0, failed("the database could not be asked which one it is", errors.Join(err, lite))
}
