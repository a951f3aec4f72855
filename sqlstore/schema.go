package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"regexp"
	"strings"
)

//go:embed migrations
var files embed.FS

// DefaultPrefix begins the names of the tables where Config.Prefix is empty.
const DefaultPrefix = "jobpoll_"

// A Migration makes the tables of one version from those of the version before.
type Migration struct {
	Version int    // from 1 on, without a gap
	Name    string // of the file: 0001_records.sql
	// SQL is one or more statements. The last one notes the version.
	SQL string
}

// prefixes that need no quotes in either dialect, and leave room for a name.
var goodPrefix = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,30}$`)

func checkPrefix(prefix string) error {
	if !goodPrefix.MatchString(prefix) || strings.HasPrefix(prefix, "sqlite_") || strings.HasPrefix(prefix, "pg_") {
		return fmt.Errorf("jobpoll: sqlstore: Config.Prefix: %q cannot begin the name of a table here; it has at most 31 small letters, digits and _, begins with no digit, and not with sqlite_ or pg_", prefix)
	}
	return nil
}

// Migrations lists what Open runs on an empty database, oldest first, for those
// who run it with a tool of their own: see Config.Unmanaged. An empty prefix
// means DefaultPrefix; a dialect that is not SQLite is PostgreSQL.
func Migrations(d Dialect, prefix string) ([]Migration, error) {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	if err := checkPrefix(prefix); err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, d.dir()+"/*.sql")
	if err != nil {
		return nil, err
	}
	all := make([]Migration, len(names))
	for i, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		all[i] = Migration{Version: i + 1, Name: strings.TrimPrefix(name, d.dir()+"/"), SQL: strings.ReplaceAll(string(text), DefaultPrefix, prefix)}
	}
	return all, nil
}

// querier is what *sql.DB, *sql.Conn and *sql.Tx have in common.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// version is that of the tables; 0: there are none.
func (s *Store) version(ctx context.Context, q querier) (int, error) {
	var n int
	if err := q.QueryRowContext(ctx, s.dialect.hasTable(), s.prefix+"schema").Scan(&n); err != nil {
		return 0, failed("the tables could not be looked for", err)
	}
	if n == 0 {
		return 0, nil
	}
	if err := q.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM "+s.prefix+"schema").Scan(&n); err != nil {
		return 0, failed("the version of the tables could not be read", err)
	}
	return n, nil
}

// behind lists the migrations that tables of a version still need, and refuses
// those of a newer one.
func (s *Store) behind(version int) ([]Migration, error) {
	all, err := Migrations(s.dialect, s.prefix)
	if err != nil {
		return nil, err
	}
	if version > len(all) {
		return nil, fmt.Errorf("jobpoll: sqlstore: the tables %s… are of version %d, this program knows up to %d: update jobpoll in it, or give it another Config.Prefix or database: %w", s.prefix, version, len(all), ErrNewSchema)
	}
	return all[version:], nil
}

// prepareSchema brings the tables to the version that this package knows.
func (s *Store) prepareSchema(ctx context.Context, managed bool) error {
	version, err := s.version(ctx, s.db)
	if err != nil {
		return err
	}
	todo, err := s.behind(version)
	if err != nil || len(todo) == 0 {
		return err
	}
	if !managed {
		return fmt.Errorf("jobpoll: sqlstore: the tables %s… are of version %d (0: there are none): run %s and what follows of sqlstore.Migrations, or leave Config.Unmanaged false: %w", s.prefix, version, todo[0].Name, ErrOldSchema)
	}
	return s.exclusively(ctx, func(conn *sql.Conn) error {
		version, err := s.version(ctx, conn) // another process may have been here meanwhile
		if err != nil {
			return err
		}
		todo, err := s.behind(version)
		for _, m := range todo {
			if _, err := conn.ExecContext(ctx, m.SQL); err != nil {
				return failed("migration "+m.Name, err)
			}
		}
		return err
	})
}

// migrationWait is how long Open waits in SQLite while another process makes
// the tables, in milliseconds.
const migrationWait = 10_000

// exclusively runs f in a transaction that no other process's exclusively runs
// beside. It writes BEGIN itself, as database/sql has none that takes the lock of
// SQLite at once.
func (s *Store) exclusively(ctx context.Context, f func(*sql.Conn) error) (err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return failed("no connection", err)
	}
	defer conn.Close()
	begin := []string{"BEGIN", fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", s.lockID())}
	if s.dialect == SQLite {
		var wait int
		if err := conn.QueryRowContext(ctx, "PRAGMA busy_timeout").Scan(&wait); err != nil {
			return failed("PRAGMA busy_timeout", err)
		}
		if wait < migrationWait {
			defer conn.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf("PRAGMA busy_timeout = %d", wait))
			begin = []string{fmt.Sprintf("PRAGMA busy_timeout = %d", migrationWait)}
		} else {
			begin = nil
		}
		begin = append(begin, "BEGIN IMMEDIATE")
	}
	defer func() {
		if err == nil {
			return
		}
		if _, undone := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK"); undone != nil {
			// The pool must not give out a connection within a transaction.
			err = errors.Join(err, conn.Raw(func(any) error { return driver.ErrBadConn }))
		}
	}()
	for _, q := range begin {
		if _, err := conn.ExecContext(ctx, q); err != nil {
			return failed("the tables could not be locked for a migration", err)
		}
	}
	if err := f(conn); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "COMMIT"); err != nil {
		return failed("the migration could not be committed", err)
	}
	return nil
}

// lockID is that of the advisory lock in PostgreSQL: one for each prefix.
func (s *Store) lockID() int64 {
	h := fnv.New64a()
	h.Write([]byte("jobpoll sqlstore " + s.prefix))
	return int64(h.Sum64())
}
