package jobpoll

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheBacklogKeepsTheNewestOfEachKeyAndIsBounded(t *testing.T) {
	var b backlog
	rec := func(id string, rev uint64) Record { return Record{Kind: RecordNotice, ID: id, Rev: rev} }
	b.add(rec("a", 1))
	b.add(rec("b", 1))
	b.add(rec("a", 2))
	require.Equal(t, 2, b.len())
	taken := b.take(1)
	require.Equal(t, []Record{rec("a", 2)}, taken)
	b.add(rec("a", 3))
	b.giveBack(taken) // it could not be written, and is outdated
	b.giveBack([]Record{rec("c", 1)})
	require.Equal(t, []Record{rec("b", 1), rec("a", 3), rec("c", 1)}, b.take(10))
	require.Empty(t, b.take(10))

	for i := range maxBacklog + 100 {
		b.add(rec(fmt.Sprint(i), 1))
	}
	require.Equal(t, maxBacklog, b.len())
	require.Equal(t, "100", b.take(1)[0].ID, "the oldest went")
	require.LessOrEqual(t, len(b.order), maxBacklog)
}

func FuzzJobRecordKey(f *testing.F) {
	f.Add("r", "x")
	f.Add("", "")
	f.Add("a/b:1", "01:r/x")
	f.Fuzz(func(t *testing.T, route, id string) {
		k, ok := jobRecordKey(jobRecordID(Key{route, id}))
		assert.True(t, ok)
		assert.Equal(t, Key{route, id}, k)
		if k, ok := jobRecordKey(id); ok {
			assert.Equal(t, id, jobRecordID(k), "one way to write it")
		}
	})
}
