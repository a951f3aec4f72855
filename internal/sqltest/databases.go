// Package sqltest tries package sqlstore with real databases. It is a module of
// its own because of the drivers. Its tests need a PostgreSQL, whose DSN is in
// the environment variable JOBPOLL_POSTGRES: .ci/postgres starts one.
package sqltest

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"
)

// SQLiteDSN is how a program should open a file for a Store.
func SQLiteDSN(file string) string {
	return "file:" + (&url.URL{Path: file}).EscapedPath() + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)"
}

// PostgresDSN is that of the server for tests.
func PostgresDSN() (string, error) {
	if dsn := os.Getenv("JOBPOLL_POSTGRES"); dsn != "" {
		return dsn, nil
	}
	return "", errors.New(`no PostgreSQL: export JOBPOLL_POSTGRES=$(.ci/postgres start) first, or leave these tests out with go test -skip 'PostgreSQL|/PostgreSQL'`)
}

// NewPostgres makes an empty schema on the server for tests, and gives the DSN
// of connections that see only that, and what drops it. A database of its own would
// take ten times as long.
func NewPostgres(name string) (dsn string, drop func() error, err error) {
	server, err := PostgresDSN()
	if err != nil {
		return "", nil, err
	}
	admin, err := sql.Open("pgx", server)
	if err != nil {
		return "", nil, err
	}
	name = fmt.Sprintf("%s_%d", strings.ToLower(name), os.Getpid())
	if _, err := admin.Exec("CREATE SCHEMA " + name); err != nil {
		return "", nil, errors.Join(err, admin.Close())
	}
	drop = func() error {
		_, err := admin.Exec("DROP SCHEMA " + name + " CASCADE")
		return errors.Join(err, admin.Close())
	}
	return server + " search_path=" + name, drop, nil
}
