package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// queries are the texts of the statements; s.prepared has each of them.
type queries struct {
	get, load, fence, insert, sweep, lease, holder, release string

	upsert, delete map[int]string // by the number of rows
}

const (
	oneRow    = "($%d, $%d, $%d, $%d, $%d, $%d, $%d, $%d)"
	replacing = " ON CONFLICT (kind, id) DO UPDATE SET full_id = excluded.full_id, route = excluded.route, rev = excluded.rev," +
		" updated_at = excluded.updated_at, expires_at = excluded.expires_at, data = excluded.data"
)

func makeQueries(d Dialect, prefix string, dbTime bool) queries {
	records, leases := prefix+"records", prefix+"leases"
	q := queries{
		get: "SELECT " + columns + " FROM " + records + " WHERE kind = $1 AND id = $2 AND (expires_at IS NULL OR expires_at > $3)",
		load: "SELECT " + columns + " FROM " + records + " WHERE (kind, id) > ($1, $2) AND (expires_at IS NULL OR expires_at > $3)" +
			" ORDER BY kind, id LIMIT $4",
		fence:  "SELECT fence FROM " + leases + " WHERE name = ''" + d.share(),
		sweep:  "DELETE FROM " + records + " WHERE (kind, id) IN (SELECT kind, id FROM " + records + " WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)",
		insert: "INSERT INTO " + records + " AS held (" + columns + ") VALUES " + placeholders(1, oneRow, "") + replacing + " WHERE held.expires_at <= $9",
		upsert: map[int]string{}, delete: map[int]string{},
	}
	q.lease, q.holder, q.release = leaseQueries(d, leases, dbTime)
	for _, size := range chunkSizes {
		q.upsert[size] = "INSERT INTO " + records + " (" + columns + ") VALUES " + placeholders(size, oneRow, ", ") + replacing
		q.delete[size] = "DELETE FROM " + records + " WHERE " + placeholders(size, "kind = $%d AND id = $%d", " OR ")
	}
	for _, text := range []*string{&q.get, &q.load, &q.fence, &q.insert, &q.sweep, &q.lease, &q.holder, &q.release} {
		*text = d.bind(*text)
	}
	for _, size := range chunkSizes {
		q.upsert[size], q.delete[size] = d.bind(q.upsert[size]), d.bind(q.delete[size])
	}
	return q
}

// placeholders repeats a form with numbers that go on counting.
func placeholders(times int, form, between string) string {
	var b strings.Builder
	n := strings.Count(form, "%d")
	for i := range times {
		if i > 0 {
			b.WriteString(between)
		}
		numbers := make([]any, n)
		for j := range numbers {
			numbers[j] = i*n + j + 1
		}
		fmt.Fprintf(&b, form, numbers...)
	}
	return b.String()
}

func (s *Store) prepare(ctx context.Context) error {
	q := &s.queries
	all := []string{q.get, q.load, q.fence, q.insert, q.sweep, q.lease, q.holder, q.release}
	for _, size := range chunkSizes {
		all = append(all, q.upsert[size], q.delete[size])
	}
	s.prepared = make(map[string]*sql.Stmt, len(all))
	for _, text := range all {
		st, err := s.db.PrepareContext(ctx, text)
		if err != nil {
			return failed("a statement could not be prepared", err)
		}
		s.prepared[text] = st
	}
	return nil
}
