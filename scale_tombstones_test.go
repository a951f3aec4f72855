package jobpoll

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is kept of ended jobs is bounded in bytes, however long their ids are.
func TestTombstonesOfLongIDsAreBounded(t *testing.T) {
	var s tombstones
	for i := range maxTombstones {
		long := fmt.Sprint(i, strings.Repeat("x", 10<<10))
		s.add(tombstone{outcome: Outcome{Job: Job{Route: "r", ID: long, ClientKey: "c" + long, Profile: long}}})
	}
	total := 0
	for k, t := range s.byKey {
		total += len(k.ID) + len(t.outcome.Job.ClientKey) + len(t.outcome.Job.Profile)
	}
	assert.LessOrEqual(t, total, maxTombstoneBytes)
	assert.Greater(t, len(s.byKey), 100)
}

// A string of an ended job must not hold the piece of memory that thousands of
// others were kept in.
func TestTombstonesHoldNoMemoryOfTheTable(t *testing.T) {
	p, err := New(Config{Routes: []Route{{Name: "r", Checker: CheckerFunc(answersNothing)}}})
	require.NoError(t, err)
	const jobs = 20_000
	before := heapAfterGC()
	pad := strings.Repeat("p", 300)
	var ids [jobs]string
	for i := range jobs {
		ids[i] = fmt.Sprintf("%06d", i)
		require.NoError(t, p.Watch(t.Context(), Job{Route: "r", ID: ids[i] + pad}))
	}
	full := heapAfterGC()
	// They end so that those which are remembered lie all over the table.
	end := func(i int) {
		now, _ := p.lock()
		r := p.find(Key{Route: "r", ID: ids[i] + pad})
		r.track.State = StateFailed // else its slot of the budget is held on
		p.finish(r, ending{reason: ReasonFailed}, now)
		p.undelivered--
		p.bury(tombstone{outcome: *r.outcome})
		p.dropRecord(r)
		p.unlock()
	}
	for _, last := range []bool{false, true} {
		for i := range jobs {
			if (i%20 == 0) == last {
				end(i)
			}
		}
	}
	after := heapAfterGC()
	t.Logf("heap %d KiB before, %d KiB with %d jobs, %d KiB after", before>>10, full>>10, jobs, after>>10)
	assert.LessOrEqual(t, after, before+maxTombstones*1500)
	for _, i := range []int{0, 20, jobs - 20} {
		_, ok := p.Job(Key{Route: "r", ID: ids[i] + pad})
		assert.True(t, ok)
	}
}
