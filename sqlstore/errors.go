package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// What a failed call means, for errors.Is. The driver's error is in the chain
// too. A Poller goes on polling with any of them and tries again; these are for
// those who are to mend the database.
var (
	// ErrBusy: another connection holds what the call needs.
	ErrBusy = errors.New("the database is locked by another writer; it is tried again, and with SQLite a busy_timeout helps")
	// ErrReadOnly: the database, or the user of the connection, may not write.
	ErrReadOnly = errors.New("the database is read-only; nothing can be stored until it is writable")
	// ErrFull: there is no space left.
	ErrFull = errors.New("the database is out of space; make room, or nothing can be stored")
	// ErrUnreachable: the database is down, or the connection was lost. The call
	// may have had its effect.
	ErrUnreachable = errors.New("the database cannot be reached")
	// ErrOldSchema: the tables are missing or of an older version, and
	// Config.Unmanaged keeps Open from making them.
	ErrOldSchema = errors.New("the tables are missing or of an older version")
	// ErrNewSchema: the tables are of a newer version than this package knows.
	ErrNewSchema = errors.New("the tables are of a newer version")
)

// failed says what a call was about, and what its error means.
func failed(what string, err error) error {
	if err == nil {
		return nil
	}
	if meaning := classify(err); meaning != nil {
		return fmt.Errorf("jobpoll: sqlstore: %s: %w: %w", what, meaning, err)
	}
	return fmt.Errorf("jobpoll: sqlstore: %s: %w", what, err)
}

// sqliteCodes are primary result codes of SQLite.
var sqliteCodes = map[int]error{
	5: ErrBusy, 6: ErrBusy, // SQLITE_BUSY, SQLITE_LOCKED
	8:  ErrReadOnly,    // SQLITE_READONLY
	13: ErrFull,        // SQLITE_FULL
	10: ErrUnreachable, // SQLITE_IOERR
	14: ErrUnreachable, // SQLITE_CANTOPEN
}

// postgresCodes are SQLSTATEs of PostgreSQL, or the two characters of a class.
var postgresCodes = map[string]error{
	"40001": ErrBusy, // serialization failure
	"40P01": ErrBusy, // deadlock detected
	"55P03": ErrBusy, // lock not available
	"25006": ErrReadOnly,
	"53100": ErrFull,        // disk full
	"53300": ErrUnreachable, // too many connections
	"57P01": ErrUnreachable, // admin shutdown
	"57P02": ErrUnreachable, // crash shutdown
	"57P03": ErrUnreachable, // cannot connect now
	"08":    ErrUnreachable, // connection exception
	"42P01": ErrOldSchema,   // undefined table
	"42703": ErrOldSchema,   // undefined column
}

// texts are those of SQLite, for drivers whose errors have no code.
var texts = []struct {
	text    string
	meaning error
}{
	{"database is locked", ErrBusy},
	{"database table is locked", ErrBusy},
	{"readonly database", ErrReadOnly},
	{"database or disk is full", ErrFull},
	{"disk I/O error", ErrUnreachable},
	{"unable to open database file", ErrUnreachable},
	{"no such table", ErrOldSchema},
	{"no such column", ErrOldSchema},
}

// classify gives the meaning of a driver's error; nil: not known. No driver is
// imported: modernc.org/sqlite has a method Code, pgx and lib/pq have SQLState.
func classify(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	var postgres interface{ SQLState() string }
	if errors.As(err, &postgres) {
		code := postgres.SQLState()
		if m := postgresCodes[code]; m != nil {
			return m
		}
		return postgresCodes[code[:min(2, len(code))]]
	}
	var sqlite interface{ Code() int }
	if errors.As(err, &sqlite) {
		if m := sqliteCodes[sqlite.Code()&0xff]; m != nil {
			return m
		}
	}
	for _, t := range texts {
		if strings.Contains(err.Error(), t.text) {
			return t.meaning
		}
	}
	var network net.Error
	if errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrUnreachable
	}
	return nil
}
