package sqlstore

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/require"
)

func FuzzEscapedTextComesBackAndIsPlain(f *testing.F) {
	for _, s := range []string{"", "plain", `back\slash`, "nul\x00", "\xff", `\x00`, `\\x`, "ключ", strings.Repeat("ы", 300)} {
		f.Add(s, "other")
	}
	f.Fuzz(func(t *testing.T, s, other string) {
		plain := escape(s)
		require.True(t, utf8.ValidString(plain))
		require.NotContains(t, plain, "\x00")
		require.Equal(t, s, unescape(plain))

		key, full := toID(s)
		require.LessOrEqual(t, len(key), longestID)
		require.True(t, utf8.ValidString(key))
		if full.Valid {
			require.Equal(t, plain, full.String)
		}
		if otherKey, _ := toID(other); s != other {
			require.NotEqual(t, key, otherKey)
		}
		unescape(s) // of what others wrote
	})
}

func TestOfOneKeyTwiceInABatchTheLaterCounts(t *testing.T) {
	rec := func(id, data string) jobpoll.Record {
		return jobpoll.Record{Kind: jobpoll.RecordJob, ID: id, Data: []byte(data)}
	}
	gone := func(id string) jobpoll.Record { return jobpoll.Record{Kind: jobpoll.RecordJob, ID: id} }
	writes, deletes := arrange([]jobpoll.Record{
		rec("c", "1"), rec("a", "1"), gone("a"), gone("b"), rec("b", "1"), rec("b", "2"), gone("d"),
	})
	var got []string
	for _, w := range writes {
		got = append(got, "write "+w.id+" "+string(w.data))
	}
	for _, d := range deletes {
		got = append(got, "delete "+d.id)
	}
	require.Equal(t, []string{"write b 2", "write c 1", "delete a", "delete d"}, got)
}

func TestTimesComeBackToTheMicrosecond(t *testing.T) {
	for _, c := range []struct{ in, want time.Time }{
		{time.Time{}, time.Time{}},
		{time.Unix(0, 0), time.Unix(0, 0).UTC()},
		{time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)},
		{time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)},
		{time.Date(2026, 1, 2, 3, 4, 5, 6789, time.FixedZone("east", 3600)), time.Date(2026, 1, 2, 2, 4, 5, 6000, time.UTC)},
	} {
		require.Equal(t, c.want, fromMicros(toMicros(c.in)), "%s", c.in)
	}
}

func TestRowsAreCutIntoPiecesOfFewSizes(t *testing.T) {
	for n := range 200 {
		rows := make([]row, n)
		for i := range rows {
			rows[i].rev = int64(i)
		}
		var got []row
		for size, some := range chunks(rows) {
			require.Len(t, some, size)
			require.Contains(t, chunkSizes, size)
			got = append(got, some...)
		}
		require.Len(t, got, n)
		for i := range got {
			require.EqualValues(t, i, got[i].rev)
		}
	}
}

// A row that others wrote is given as it is, for the Poller to report.
func TestAForeignRowIsNoFault(t *testing.T) {
	r := row{kind: 1 << 20, id: `odd \x`, rev: -5}
	require.Equal(t, jobpoll.Record{ID: `odd \x`, Data: []byte{}}, r.record())
}
