package jobpoll_test

import (
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Some say the end of the year 9999 for never. The nanoseconds since 1970 are
// an int64 up to 2262 only, a Duration from now goes on to 2318.
func TestATimeHoweverFarOffIsKept(t *testing.T) {
	for _, year := range []int{2200, 2261, 2262, 2263, 2317, 2319, 2500, 2900, 5000, 9000, 9999} {
		far := time.Date(year, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
		for name, job := range map[string]jobpoll.Job{
			"not before":              {NotBefore: far},
			"not before the deadline": {NotBefore: far, Deadline: far},
			"long ago":                {NotBefore: far, SubmittedAt: time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)},
		} {
			store := newShakyStore(nil)
			r := rigOf(t, func(_ *rig, cfg *jobpoll.Config) {
				cfg.Store = store
				cfg.Stop = jobpoll.StopRules{MaxAge: jobpoll.NoLimit}
			})
			job.Route, job.ID = "r", "a"
			r.prov.Add("a", "succeeded")
			require.NoError(t, r.Watch(t.Context(), job))
			require.NoError(t, r.PollNow(job.Key()))
			r.to(time.Hour)
			r.Clock.Jump(24 * time.Hour)
			r.to(2 * time.Hour)
			require.NoError(t, r.PollNow(job.Key()), "%s, %d", name, year)
			r.to(3 * time.Hour)
			assert.Empty(t, r.looks("a"), "%s, %d", name, year)
			assert.Equal(t, 1, store.Len(), "%s, %d", name, year)
			r.Stop()

			after := rigOn(t, r.Clock, r.prov, func(_ *rig, cfg *jobpoll.Config) { cfg.Store = store })
			after.Clock.Advance(time.Hour)
			_, known := after.Job(job.Key())
			assert.True(t, known, "%s, %d", name, year)
			assert.Empty(t, after.looks("a"), "%s, %d: after a restart", name, year)
			after.Stop()
		}
	}
}
