package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpenTellsAllFaultsOfAConfigAtOnce(t *testing.T) {
	_, err := Open(t.Context(), Config{Dialect: 7, Prefix: "Robert'); DROP TABLE"})
	require.ErrorContains(t, err, "Config.DB is nil")
	require.ErrorContains(t, err, "Config.Dialect: 7")
	require.ErrorContains(t, err, "Config.Prefix")
}

func TestPrefixesThatNeedQuotesAreRefused(t *testing.T) {
	for prefix, good := range map[string]bool{
		"jobpoll_": true, "a": true, "_x9_": true, "": true,
		"Jobs_": false, "9jobs_": false, "jobs-": false, "a.b_": false, "sqlite_x": false, "pg_": false,
		"more_than_thirty_one_letters_long_": false,
	} {
		all, err := Migrations(SQLite, prefix)
		if !good {
			require.ErrorContains(t, err, "Config.Prefix", "%q", prefix)
			continue
		}
		require.NoError(t, err, "%q", prefix)
		require.NotEmpty(t, all)
	}
}

// Both dialects have the same versions, and each file notes its own.
func TestMigrationsOfTheDialectsAgree(t *testing.T) {
	lite, err := Migrations(SQLite, "my_")
	require.NoError(t, err)
	postgres, err := Migrations(PostgreSQL, "my_")
	require.NoError(t, err)
	require.Len(t, postgres, len(lite))
	for i := range lite {
		require.Equal(t, i+1, lite[i].Version)
		require.Equal(t, lite[i].Name, postgres[i].Name)
		for _, m := range []Migration{lite[i], postgres[i]} {
			require.Contains(t, m.Name, fmt.Sprintf("%04d_", m.Version))
			require.Contains(t, m.SQL, fmt.Sprintf("INSERT INTO my_schema (version, applied_at) VALUES (%d, ", m.Version))
			require.NotContains(t, m.SQL, "CREATE TABLE "+DefaultPrefix)
		}
	}
}

type stateError string

func (e stateError) Error() string    { return "driver's words" }
func (e stateError) SQLState() string { return string(e) }

type codeError int

func (e codeError) Error() string { return "driver's words" }
func (e codeError) Code() int     { return int(e) }

func TestErrorsOfDriversAreClassified(t *testing.T) {
	for _, c := range []struct{ err, want error }{
		{stateError("40001"), ErrBusy},
		{stateError("40P01"), ErrBusy},
		{stateError("25006"), ErrReadOnly},
		{stateError("53100"), ErrFull},
		{stateError("57P01"), ErrUnreachable},
		{stateError("08006"), ErrUnreachable},
		{stateError("42P01"), ErrOldSchema},
		{stateError("23505"), nil},
		{stateError(""), nil},
		{codeError(5), ErrBusy},
		{codeError(517), ErrBusy}, // SQLITE_BUSY_SNAPSHOT
		{codeError(8), ErrReadOnly},
		{codeError(13), ErrFull},
		{codeError(778), ErrUnreachable}, // SQLITE_IOERR_WRITE
		{codeError(19), nil},
		{errors.New("database is locked"), ErrBusy},
		{errors.New("attempt to write a readonly database"), ErrReadOnly},
		{errors.New("database or disk is full"), ErrFull},
		{driver.ErrBadConn, ErrUnreachable},
		{io.ErrUnexpectedEOF, ErrUnreachable},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, ErrUnreachable},
		{context.DeadlineExceeded, nil},
		{errors.New("anything"), nil},
	} {
		err := failed("it failed", fmt.Errorf("wrapped: %w", c.err))
		require.ErrorContains(t, err, "jobpoll: sqlstore: it failed")
		require.ErrorIs(t, err, c.err)
		for _, meaning := range []error{ErrBusy, ErrReadOnly, ErrFull, ErrUnreachable, ErrOldSchema, ErrNewSchema} {
			require.Equal(t, c.want == meaning, errors.Is(err, meaning), "%v is %v", c.err, meaning)
		}
	}
	require.NoError(t, failed("nothing", nil))
}
