package jobpoll

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var cohortNow = time.Date(2026, 3, 1, 12, 34, 56, 0, time.UTC)

func agesOf(c *cohorts, now time.Time) AgeMetrics {
	c.compact(now)
	return ages(c.list(nil), now)
}

func TestAgesOfNoJobsAreZero(t *testing.T) {
	c := newCohorts()
	assert.Equal(t, AgeMetrics{}, agesOf(&c, cohortNow))
}

func TestAgesByNearestRank(t *testing.T) {
	c := newCohorts()
	for s := 1; s <= 100; s++ {
		c.add(cohortNow.Add(-time.Duration(s) * time.Second))
	}
	assert.Equal(t, AgeMetrics{Oldest: 100 * time.Second, P50: 50 * time.Second, P95: 95 * time.Second}, agesOf(&c, cohortNow))
}

func TestAJobBornInTheFutureIsOfAgeZero(t *testing.T) {
	c := newCohorts()
	c.add(cohortNow.Add(time.Hour))
	assert.Equal(t, AgeMetrics{}, agesOf(&c, cohortNow))
	assert.Equal(t, 1, c.jobs)
}

func TestAbsurdBirthsDoNotOverflow(t *testing.T) {
	c := newCohorts()
	births := []time.Time{{}, time.Unix(0, 0), time.Unix(-1, 0), time.Unix(1<<40, 0)}
	for _, b := range births {
		c.add(b)
	}
	assert.Positive(t, agesOf(&c, cohortNow).Oldest)
	for _, b := range births {
		c.remove(b)
	}
	assert.Zero(t, c.jobs)
	assert.Empty(t, c.list(nil))
}

func TestRemovingAJobThatIsNotThereChangesNothing(t *testing.T) {
	c := newCohorts()
	c.add(cohortNow)
	c.remove(cohortNow.Add(-time.Minute))
	assert.Equal(t, 1, c.jobs)
}

// Jobs come and go for a day and a half under snapshots: the ages stay close to the
// truth, the cohorts few, and nothing is left in the end.
func TestAgesStayCloseToTheTruthWhileCohortsStayFew(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	c := newCohorts()
	var births []time.Time
	now := cohortNow
	add := func(b time.Time) {
		births = append(births, b)
		c.add(b)
	}
	near := func(want, got time.Duration, what string) {
		slack := time.Second
		if want > 24*time.Hour-time.Minute {
			slack = time.Hour + time.Minute
		} else if want > time.Hour-time.Minute {
			slack = time.Minute
		}
		require.True(t, got >= want && got <= want+slack, "%s: want %v, got %v", what, want, got)
	}
	for range 300 {
		now = now.Add(time.Duration(r.Int64N(int64(15 * time.Minute))))
		for range 20 {
			add(now.Add(-time.Duration(r.Int64N(int64(time.Minute)))))
		}
		add(now.Add(-time.Duration(r.Int64N(int64(72 * time.Hour))))) // restored, or told late
		for range 18 {
			i := r.IntN(len(births))
			c.remove(births[i])
			births = slices.Delete(births, i, i+1)
		}
		got := agesOf(&c, now)
		slices.SortFunc(births, func(a, b time.Time) int { return b.Compare(a) })
		n := len(births)
		require.Equal(t, n, c.jobs)
		near(now.Sub(births[n-1]), got.Oldest, "oldest")
		near(now.Sub(births[(n*50+99)/100-1]), got.P50, "p50")
		near(now.Sub(births[(n*95+99)/100-1]), got.P95, "p95")
	}
	for _, b := range births {
		c.remove(b)
	}
	assert.Zero(t, c.jobs)
	assert.Empty(t, c.list(nil))
}

func TestOldBirthsBecomeFewCohorts(t *testing.T) {
	c := newCohorts()
	for i := range 200_000 {
		c.add(cohortNow.Add(-time.Duration(i) * 10 * time.Second)) // 23 days
	}
	c.compact(cohortNow)
	assert.Less(t, len(c.list(nil)), 3600/10+1440+25*24)
	assert.Equal(t, 200_000, c.jobs)
}

func TestAClockThatRunsBackwardsLosesNoJob(t *testing.T) {
	c := newCohorts()
	born := cohortNow.Add(-30 * time.Minute)
	c.add(born)
	c.compact(cohortNow.Add(48 * time.Hour))
	c.compact(cohortNow)
	c.add(born)
	c.remove(born)
	c.remove(born)
	assert.Empty(t, c.list(nil))
}
