package jobpoll_test

import (
	"context"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheHookOfAnEndIsCalledOnceInEachProcessThatTellsIt(t *testing.T) {
	store := newShakyStore(nil)
	told, taken := map[string]int{}, false
	with := func(r *rig, c *jobpoll.Config) {
		c.Hooks.Stopped = func(e jobpoll.StopEvent) { told[e.Outcome.Job.ID+e.Outcome.Job.ClientKey]++ }
		c.Callbacks.OnStop = func(context.Context, jobpoll.Outcome) error {
			if taken {
				return nil
			}
			return errMine
		}
	}
	a := onStore(t, store, nil, with)
	a.prov.Add("job", "succeeded")
	a.watch("job")
	_, err := submit(a, "order", polltest.Order{Answer: "reset"})
	require.NotNil(t, err)
	a.to(time.Hour)
	assert.Equal(t, map[string]int{"job": 1, "order": 1}, told, "OnStop is called again and again, the hook is not")
	clear(told)
	b := onStore(t, store, a, with)
	b.to(90 * time.Minute)
	assert.Equal(t, map[string]int{"job": 1, "order": 1}, told)
	taken = true
	b.to(3 * time.Hour)
	clear(told)
	c := onStore(t, store, b, with)
	c.to(4 * time.Hour)
	assert.Empty(t, told)
}
