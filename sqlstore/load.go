package sqlstore

import (
	"context"
	"iter"

	"github.com/jobpoll/jobpoll"
)

const (
	loadRows  = 512     // most rows in one page of Load
	loadBytes = 4 << 20 // about so much data in one page
)

// Load goes over the records by kind and id, in pages: while the caller works
// on a page no connection is held, and no transaction is open.
func (s *Store) Load(ctx context.Context) iter.Seq2[jobpoll.Record, error] {
	return func(yield func(jobpoll.Record, error) bool) {
		after := row{kind: -1}
		now := s.clock.Now().UnixMicro()
		for {
			page, more, err := s.page(ctx, after, now)
			if err != nil {
				yield(jobpoll.Record{}, failed("the records could not be read", cause(ctx, err)))
				return
			}
			for i := range page {
				if !yield(page[i].record(), nil) {
					return
				}
			}
			if !more {
				return
			}
			after = page[len(page)-1]
		}
	}
}

// page reads the rows that follow one, and says whether there may be more.
func (s *Store) page(ctx context.Context, after row, now int64) (page []row, more bool, err error) {
	if ctx.Err() != nil {
		return nil, false, context.Cause(ctx)
	}
	rows, err := s.prepared[s.queries.load].QueryContext(ctx, after.kind, after.id, now, loadRows)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	size := 0
	for size < loadBytes && rows.Next() {
		var r row
		if err := rows.Scan(r.targets()...); err != nil {
			return nil, false, err
		}
		size += len(r.data)
		page = append(page, r)
	}
	return page, len(page) == loadRows || size >= loadBytes, rows.Err()
}
