package jobpoll_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A look asks its budget under the lock of the engine, and may be the first to
// see that a submission's turn has come.
func TestALookMayLetASubmissionGo(t *testing.T) {
	for _, step := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
		r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
			c.Routes[0].Schedule = every(time.Second)
			c.Budget = jobpoll.NewBudget("account", jobpoll.Limits{Submit: jobpoll.LaneLimits{Limit: jobpoll.Limit{Rate: 0.1, Burst: 1}}})
		})
		r.prov.Default("running")
		for i := range 20 {
			r.watch(fmt.Sprint("j", i))
		}
		var all []*polltest.Submitting
		for i := range 5 {
			all = append(all, r.BeginSubmit(t.Context(), submitOf(r, fmt.Sprint("c", i), polltest.Order{Script: "running"})))
		}
		for range time.Minute / step {
			r.Clock.Advance(step)
		}
		for i, b := range all {
			_, err := submitted(t, b)
			require.Nil(t, err)
			assert.Equal(t, []float64{float64(10 * i)}, r.ages(r.prov.Sends(fmt.Sprint("c", i))))
		}
	}
}
