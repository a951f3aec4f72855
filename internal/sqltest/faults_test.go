package sqltest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// faults is a database/sql connector around a driver, whose calls can be made
// to fail: each goes through call.
type faults struct {
	inner driver.Driver
	dsn   string

	calls  atomic.Int64 // since arm
	at     int64        // which of them fails; 0: none
	before func() error // comes first; with an error the call is not made
	after  func() error // comes once the call has had its effect
}

// faulty opens a database through faults.
func (d database) faulty(t *testing.T) (*sql.DB, *faults) {
	t.Helper()
	f := &faults{inner: d.open(t).Driver(), dsn: d.dsn}
	db := sql.OpenDB(f)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db, f
}

// arm makes one of the calls from now on fail, and counts from 1 on.
func (f *faults) arm(at int64, before, after func() error) {
	f.at, f.before, f.after = at, before, after
	f.calls.Store(0)
}

func (f *faults) disarm() { f.arm(0, nil, nil) }

func (f *faults) call(do func() error) error {
	hit := f.calls.Add(1) == f.at
	if hit && f.before != nil {
		if err := f.before(); err != nil {
			return err
		}
	}
	err := do()
	if hit && f.after != nil && err == nil {
		err = f.after()
	}
	return err
}

// made is a call that makes something, which undo takes back if the call
// fails after it took effect.
func made[T any](f *faults, do func() (T, error), undo func(T) error) (got T, err error) {
	effect := false
	err = f.call(func() error {
		v, err := do()
		if err == nil {
			got, effect = v, true
		}
		return err
	})
	if err != nil && effect {
		err = errors.Join(err, undo(got))
	}
	return got, err
}

func (f *faults) Driver() driver.Driver { return f.inner }

func (f *faults) Connect(context.Context) (driver.Conn, error) {
	return made(f, func() (driver.Conn, error) {
		inner, err := f.inner.Open(f.dsn)
		if err != nil {
			return nil, err
		}
		return &faultyConn{inner.(conn), f}, nil
	}, driver.Conn.Close)
}

// conn is what the drivers' connections can do.
type conn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

type faultyConn struct {
	conn
	f *faults
}

func (c *faultyConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	return made(c.f, func() (driver.Tx, error) {
		tx, err := c.conn.BeginTx(ctx, o)
		return &faultyTx{tx, c.f}, err
	}, driver.Tx.Rollback)
}

func (c *faultyConn) PrepareContext(ctx context.Context, q string) (driver.Stmt, error) {
	return made(c.f, func() (driver.Stmt, error) {
		st, err := c.conn.PrepareContext(ctx, q)
		if err != nil {
			return nil, err
		}
		return &faultyStmt{st.(stmt), c.f}, nil
	}, driver.Stmt.Close)
}

func (c *faultyConn) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Result, error) {
	return made(c.f, func() (driver.Result, error) { return c.conn.ExecContext(ctx, q, args) }, forget)
}

func forget(driver.Result) error { return nil }

func (c *faultyConn) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Rows, error) {
	return made(c.f, func() (driver.Rows, error) {
		r, err := c.conn.QueryContext(ctx, q, args)
		return &faultyRows{r, c.f}, err
	}, driver.Rows.Close)
}

// stmt is what the drivers' statements can do.
type stmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type faultyStmt struct {
	stmt
	f *faults
}

func (s *faultyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return made(s.f, func() (driver.Result, error) { return s.stmt.ExecContext(ctx, args) }, forget)
}

func (s *faultyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return made(s.f, func() (driver.Rows, error) {
		r, err := s.stmt.QueryContext(ctx, args)
		return &faultyRows{r, s.f}, err
	}, driver.Rows.Close)
}

type faultyRows struct {
	driver.Rows
	f *faults
}

func (r *faultyRows) Next(to []driver.Value) error {
	return r.f.call(func() error { return r.Rows.Next(to) })
}

type faultyTx struct {
	driver.Tx
	f *faults
}

// Drivers end the transaction when a Commit fails, as database/sql takes it.
func (x *faultyTx) Commit() error {
	ended := false
	err := x.f.call(func() error { ended = true; return x.Tx.Commit() })
	if !ended {
		err = errors.Join(err, x.Tx.Rollback())
	}
	return err
}

func (x *faultyTx) Rollback() error {
	return errors.Join(x.f.call(func() error { return nil }), x.Tx.Rollback())
}
