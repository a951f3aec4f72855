package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jobpoll/jobpoll"
)

// leaseQueries are those on the one row of the lease. They set and compare in
// one statement. With dbTime the database says what time it is, otherwise the
// last argument does.
func leaseQueries(d Dialect, table string, dbTime bool) (lease, holder, release string) {
	now := "CAST($3 AS BIGINT)"
	if dbTime {
		now = d.now()
	}
	lease = "INSERT INTO " + table + " AS held (name, owner, fence, expires_at) VALUES ('', $1, 1, " + now + " + $2)" +
		" ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at," +
		" fence = held.fence + CASE WHEN held.owner = excluded.owner THEN 0 ELSE 1 END" +
		" WHERE held.owner = excluded.owner OR held.expires_at <= " + now +
		" RETURNING fence"
	holder = "SELECT owner, expires_at FROM " + table + " WHERE name = ''"
	release = "UPDATE " + table + " SET expires_at = 0 WHERE name = '' AND owner = $1"
	return lease, holder, release
}

// longestLease is a hundred years: with the time of now it fits into the column.
const longestLease = 100 * 365 * 24 * time.Hour

// micros is the length of a lease in whole microseconds, at least one.
func micros(ttl time.Duration) int64 { return max(min(ttl, longestLease).Microseconds(), 1) }

// Lease takes, renews or releases the lease of the store, as jobpoll.Leaser
// tells. The lease ends on the database's clock, unless Config.Clock is set.
func (s *Store) Lease(ctx context.Context, owner string, ttl time.Duration) (uint64, error) {
	done, err := s.takeTurn(ctx)
	if err != nil {
		return 0, failed("no lease", err)
	}
	defer done()
	if ttl <= 0 {
		_, err := s.prepared[s.queries.release].ExecContext(ctx, escape(owner))
		return 0, failed("the lease could not be released", cause(ctx, err))
	}
	fence, err := s.takeLease(ctx, owner, ttl)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, s.held(ctx)
	}
	return fence, failed("no lease", cause(ctx, err))
}

func (s *Store) takeLease(ctx context.Context, owner string, ttl time.Duration) (uint64, error) {
	args := []any{escape(owner), micros(ttl)}
	if !s.dbTime {
		args = append(args, s.clock.Now().UnixMicro())
	}
	var fence int64
	err := s.prepared[s.queries.lease].QueryRowContext(ctx, args...).Scan(&fence)
	return uint64(fence), err
}

// held is the error for a lease that another has.
func (s *Store) held(ctx context.Context) error {
	var owner string
	var until int64
	if err := s.prepared[s.queries.holder].QueryRowContext(ctx).Scan(&owner, &until); err != nil {
		return failed("no lease", errors.Join(jobpoll.ErrNotOwner, cause(ctx, err)))
	}
	return fmt.Errorf("jobpoll: sqlstore: the lease is that of %q until %s: %w", unescape(owner), time.UnixMicro(until).UTC().Format(time.RFC3339), jobpoll.ErrNotOwner)
}
