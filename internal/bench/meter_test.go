package main

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestIdsAre36BytesAndTellTheirNumber(t *testing.T) {
	for _, n := range []int{0, 7, 123_456, 999_999_999_999} {
		assert.Len(t, idOf(n), 36)
		assert.Equal(t, n, indexOf(idOf(n)))
	}
}

func TestFirstLooksAreSpreadEvenlyOverTheInterval(t *testing.T) {
	m := newMeter(load{Jobs: 4, Interval: time.Second, Lead: time.Minute})
	for i, want := range []time.Duration{0, 250, 500, 750} {
		assert.Equal(t, int64(time.Minute+want*time.Millisecond), m.first(i))
	}
	m.Together = true
	assert.Equal(t, int64(time.Minute), m.first(3))
	assert.Equal(t, never, m.first(4), "beyond the jobs of the load")
}

func TestTheNextLookIsPlannedFromTheEndOfTheLastOrByTheTicker(t *testing.T) {
	m := newMeter(load{Jobs: 1, Interval: time.Hour})
	before := m.now()
	m.look(idOf(0))
	after := m.planned[0].Load()
	assert.GreaterOrEqual(t, after, before+int64(time.Hour))
	assert.LessOrEqual(t, after, m.now()+int64(time.Hour))
	assert.Zero(t, m.unseen())
	assert.EqualValues(t, 1, m.late.counts().total())

	m.tick(idOf(0), 5)
	assert.Equal(t, after+int64(time.Hour), m.planned[0].Load())
	assert.Positive(t, m.late.early.Load(), "it came an hour too early")

	m = newMeter(load{Jobs: 1, Interval: time.Hour})
	m.tick(idOf(0), 5)
	assert.Equal(t, 5+int64(time.Hour), m.planned[0].Load(), "the first is the one at which the ticker was made")
}

func TestAHistogramKeepsValuesToAThirtySecond(t *testing.T) {
	for v := int64(1); v < int64(3*time.Hour); v += v/7 + 1 {
		b := bucketOf(v)
		assert.GreaterOrEqual(t, upper(b), v)
		assert.LessOrEqual(t, upper(b), v+v/subBuckets, "of %d", v)
		assert.Equal(t, b, bucketOf(upper(b)))
		assert.Equal(t, b+1, bucketOf(upper(b)+1), "the next bucket begins behind")
	}
	assert.Less(t, bucketOf(1<<62), buckets)
}

func TestQuantilesOfWhatCameSince(t *testing.T) {
	h := newHistogram()
	h.add(3, int64(time.Hour))
	before := h.counts()
	for ms := range int64(100) {
		h.add(int(ms), (ms+1)*1e6)
	}
	h.add(0, -5)
	c := h.counts().since(before)
	assert.EqualValues(t, 101, c.total())
	assert.InEpsilon(t, 50, c.quantile(0.5), 0.04)
	assert.InEpsilon(t, 99, c.quantile(0.99), 0.04)
	assert.InEpsilon(t, 100, c.quantile(1), 0.04)
	assert.EqualValues(t, 5, h.early.Load())
	assert.Zero(t, new(counts).quantile(0.5))
}

func TestTheHeapGivesTheEarliestFirst(t *testing.T) {
	var h heap4
	var want []int64
	for i := range 1000 {
		due := int64(mixed(i) % 500)
		h.push(entry{due: due, slot: uint32(i)})
		want = append(want, due)
		if i%3 == 2 { // some leave in between
			least := slices.Index(want, slices.Min(want))
			require.Equal(t, want[least], h.pop().due)
			want = slices.Delete(want, least, least+1)
		}
	}
	slices.Sort(want)
	for _, due := range want {
		require.Equal(t, due, h.pop().due)
	}
	assert.Empty(t, h)
}

func TestTheWheelHandsEachJobOutOnceAndNotBeforeItIsDue(t *testing.T) {
	const jobs = 2000
	w := newWheel()
	dues := make([]int64, jobs)
	for i := range dues {
		dues[i] = int64(mixed(i)%100_000) * int64(time.Millisecond) / 3 * 3 // up to three turns
		w.admit(idOf(i), dues[i])
	}
	seen := map[uint32]bool{}
	for now := int64(0); now <= 101*int64(time.Second); now += 7 * int64(time.Millisecond) {
		w.expire(now, func(b batch) {
			for _, slot := range b.slots[:b.n] {
				require.False(t, seen[slot])
				seen[slot] = true
				require.LessOrEqual(t, dues[slot], now)
				require.Less(t, now-dues[slot], int64(9*time.Millisecond))
			}
		})
	}
	assert.Len(t, seen, jobs)
}
