package jobpoll_test

import (
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
)

// coalesced watches a job, and another after a while, and gives when they were
// looked at in the first 16 s.
func coalesced(t *testing.T, after time.Duration, change func(*jobpoll.Config)) (first, second []float64) {
	t.Helper()
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
		c.Coalesce = 4 * time.Millisecond
		if change != nil {
			change(c)
		}
	})
	r.prov.Default("running")
	r.watch("a")
	r.Clock.Advance(after)
	r.watch("b")
	r.to(16 * time.Second)
	return r.looks("a"), r.looks("b")
}

func TestLooksThatAreDueSoonGoAlongWithOneThatIsDue(t *testing.T) {
	a, b := coalesced(t, 3*time.Millisecond, nil)
	assert.Equal(t, []float64{5, 10, 15}, a)
	assert.Equal(t, []float64{5.003, 10, 15}, b, "all but the first, and from then on they are due together")

	a, b = coalesced(t, 4500*time.Microsecond, nil)
	assert.Equal(t, []float64{5, 10, 15}, a)
	assert.Equal(t, []float64{5.0045, 10.0045, 15.0045}, b, "not soon enough")
}

func TestNoLookGoesAlongBeforeAFloorOrFarTooEarly(t *testing.T) {
	for name, change := range map[string]func(*jobpoll.Config){
		"no coalescing": func(c *jobpoll.Config) { c.Coalesce = -1 },
		"MinDelay":      func(c *jobpoll.Config) { c.Routes[0].Schedule.MinDelay = 5 * time.Second },
		"published pace": func(c *jobpoll.Config) {
			c.Routes[0].Guidance = map[string]jobpoll.Guidance{"": {Floor: 5 * time.Second}}
		},
		"pace of another profile": func(c *jobpoll.Config) {
			c.Routes[0].Guidance = map[string]jobpoll.Guidance{"slow": {Floor: 5 * time.Second}}
		},
	} {
		a, b := coalesced(t, 3*time.Millisecond, change)
		assert.Equal(t, []float64{5, 10, 15}, a, name)
		assert.Equal(t, []float64{5.003, 10.003, 15.003}, b, name)
	}
	_, b := coalesced(t, 3*time.Millisecond, func(c *jobpoll.Config) { c.Routes[0].Schedule = every(2 * time.Second) })
	assert.Equal(t, []float64{2.003, 4.003, 6.003, 8.003, 10.003, 12.003, 14.003}, b, "3 ms are more than a thousandth of the gap")
}

func TestAWaitThatTheProviderAskedForIsKeptToTheLast(t *testing.T) {
	for _, wait := range []string{"5s", "4999ms"} { // the second is less than the schedule's
		r := rigOf(t, func(_ *rig, c *jobpoll.Config) { c.Coalesce = 4 * time.Millisecond })
		r.prov.Default("running")
		r.prov.Add("b", "running; at 5s running retry-after "+wait)
		r.watch("a")
		r.Clock.Advance(3 * time.Millisecond)
		r.watch("b")
		r.to(11 * time.Second)
		assert.Equal(t, []float64{5, 10}, r.looks("a"), wait)
		assert.Equal(t, []float64{5.003, 10.003}, r.looks("b"), wait)
	}
}
