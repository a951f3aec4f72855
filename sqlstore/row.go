package sqlstore

import (
	"cmp"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jobpoll/jobpoll"
)

// longestID is the longest id, in bytes, that is a key as it is: an index of
// PostgreSQL refuses keys of more than about 2,700 bytes.
const longestID = 512

// row is a Record as the table has it.
type row struct {
	kind                 int64
	id                   string
	fullID               sql.NullString
	route                string
	rev                  int64
	updatedAt, expiresAt sql.NullInt64
	data                 []byte
}

// columns are those of a row, in the order of its values.
const columns = "kind, id, full_id, route, rev, updated_at, expires_at, data"

// columnCount is how many values a row has.
const columnCount = 8

func (r *row) values() []any {
	return []any{r.kind, r.id, r.fullID, r.route, r.rev, r.updatedAt, r.expiresAt, r.data}
}

func (r *row) targets() []any {
	return []any{&r.kind, &r.id, &r.fullID, &r.route, &r.rev, &r.updatedAt, &r.expiresAt, &r.data}
}

func toRow(rec jobpoll.Record) row {
	r := row{
		kind: int64(rec.Kind), route: escape(rec.Route), rev: int64(min(rec.Rev, math.MaxInt64)),
		updatedAt: toMicros(rec.UpdatedAt), expiresAt: toMicros(rec.ExpiresAt), data: rec.Data,
	}
	r.id, r.fullID = toID(rec.ID)
	return r
}

// record gives the Record of a row. What others have written into the table is
// given as it is: the Poller reports what it cannot read.
func (r *row) record() jobpoll.Record {
	rec := jobpoll.Record{Rev: uint64(max(r.rev, 0)), UpdatedAt: fromMicros(r.updatedAt), ExpiresAt: fromMicros(r.expiresAt), Data: r.data}
	if r.kind >= 0 && r.kind <= math.MaxUint8 {
		rec.Kind = jobpoll.RecordKind(r.kind)
	}
	if rec.Data == nil {
		rec.Data = []byte{} // as which some drivers read no bytes; in a Put it would delete
	}
	rec.ID, rec.Route = unescape(r.id), unescape(r.route)
	if r.fullID.Valid {
		rec.ID = unescape(r.fullID.String)
	}
	return rec
}

// toID gives the key of an id, and where that is not all of it the whole.
func toID(id string) (key string, full sql.NullString) {
	key = escape(id)
	if len(key) <= longestID {
		return key, full
	}
	sum := sha256.Sum256([]byte(key))
	begin := key[:64]
	for !utf8.ValidString(begin) {
		begin = begin[:len(begin)-1]
	}
	// A single backslash before a '#' is in no escaped text.
	return strings.TrimRight(begin, `\`) + `\#` + hex.EncodeToString(sum[:]), sql.NullString{String: key, Valid: true}
}

// escape makes text that any database takes: PostgreSQL has no NUL, and
// nothing that is not UTF-8.
func escape(s string) string {
	if utf8.ValidString(s) && !strings.ContainsAny(s, "\\\x00") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == 0, r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// unescape undoes escape, and leaves as it is what escape does not write.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for {
		plain, rest, found := strings.Cut(s, `\`)
		b.WriteString(plain)
		if !found {
			return b.String()
		}
		if strings.HasPrefix(rest, `\`) {
			b.WriteByte('\\')
			s = rest[1:]
			continue
		}
		if len(rest) >= 3 && rest[0] == 'x' {
			if c, err := hex.DecodeString(rest[1:3]); err == nil {
				b.Write(c)
				s = rest[3:]
				continue
			}
		}
		b.WriteByte('\\')
		s = rest
	}
}

// toMicros is NULL for the zero time.
func toMicros(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMicro(), Valid: !t.IsZero()}
}

func fromMicros(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64).UTC()
}

// recordKey is what a record is found by.
type recordKey struct {
	kind jobpoll.RecordKind
	id   string
}

// arrange splits a batch into the rows to write and those to delete. Of several
// records with one key the last counts. Both are in the order of their keys, so
// that two batches at once cannot wait for each other.
func arrange(batch []jobpoll.Record) (writes, deletes []row) {
	last := make(map[recordKey]int, len(batch))
	for i, rec := range batch {
		last[recordKey{rec.Kind, rec.ID}] = i
	}
	for i, rec := range batch {
		if last[recordKey{rec.Kind, rec.ID}] != i {
			continue
		}
		if r := toRow(rec); rec.Data == nil {
			deletes = append(deletes, r)
		} else {
			writes = append(writes, r)
		}
	}
	byKey := func(a, b row) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id)) }
	slices.SortFunc(writes, byKey)
	slices.SortFunc(deletes, byKey)
	return writes, deletes
}

// chunkSizes are how many rows one statement writes: few sizes, so that few
// statements are prepared, and none with more than the 999 parameters that old
// builds of SQLite take.
var chunkSizes = []int{64, 16, 4, 1}

// chunks cuts rows into pieces of these sizes.
func chunks(rows []row) iter.Seq2[int, []row] {
	return func(yield func(int, []row) bool) {
		for _, size := range chunkSizes {
			for len(rows) >= size {
				if !yield(size, rows[:size]) {
					return
				}
				rows = rows[size:]
			}
		}
	}
}
