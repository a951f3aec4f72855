package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jobpoll/jobpoll"
)

// ErrExists is matched by the error of Enlist for a record that is there already.
var ErrExists = errors.New("there is such a record already; it is left as it is")

// Enlist writes new records in a transaction of your own, so that they are there
// if and only if what else it does is. Commit or roll it back as you like; until
// then nobody else sees them. jobpoll.Intent makes a record for it.
//
// It replaces nothing: for a record that is there already the error matches
// ErrExists, as for a ClientKey that has been submitted before. Roll back then, as
// after any other error. The tables must be in the database of tx. In SQLite do not
// call the Poller or the Store while tx is open: they wait for it.
func (s *Store) Enlist(ctx context.Context, tx *sql.Tx, records ...jobpoll.Record) error {
	now := s.clock.Now().UnixMicro()
	for _, rec := range records {
		if rec.Data == nil {
			return fmt.Errorf("jobpoll: sqlstore: %s %q not written: it has no Data", rec.Kind, rec.ID)
		}
		r := toRow(rec)
		// Not one of the prepared statements: tx may be of another *sql.DB.
		result, err := tx.ExecContext(ctx, s.queries.insert, append(r.values(), now)...)
		var n int64
		if err == nil {
			n, err = result.RowsAffected()
		}
		if err == nil && n == 0 {
			err = ErrExists
		}
		if err != nil {
			return failed(fmt.Sprintf("%s %q not written", rec.Kind, rec.ID), cause(ctx, err))
		}
	}
	return nil
}
