package polltest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

func TestAProviderTakesSubmissionsAsItIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		order  polltest.Order
		id     string
		fails  bool
		bought bool
	}{
		"taken":        {polltest.Order{ID: "a", Script: "running"}, "a", false, true},
		"no id":        {polltest.Order{ID: "a", NoID: true}, "", false, true},
		"refused":      {polltest.Order{ID: "a", Answer: "429 retry-after 5s"}, "", true, false},
		"lost":         {polltest.Order{ID: "a", Answer: "reset", Lost: true}, "", true, true},
		"never left":   {polltest.Order{ID: "a", Lost: true, Unsent: true}, "", true, false},
		"done at once": {polltest.Order{ID: "a", Answer: `succeeded output {"x":1}`}, "a", false, true},
	} {
		clock := polltest.NewClock(time.Time{})
		p := polltest.NewProvider(clock)
		sent, err := p.Send("key", c.order)(t.Context())
		assert.Equal(t, c.fails, err != nil, "%s: %v", name, err)
		assert.Equal(t, c.id, sent.ID, name)
		assert.Equal(t, []time.Time{clock.Now()}, p.Sends("key"), name)
		_, err = p.Check(t.Context(), jobpoll.Job{ID: "a"})
		assert.Equal(t, c.bought, err == nil, name)

		lost := jobpoll.Lost{Job: jobpoll.Job{ClientKey: "key"}}
		f, err := p.Finder(3*time.Second).Lookup(t.Context(), lost)
		require.NoError(t, err)
		assert.Equal(t, jobpoll.FindingAbsent, f.State, "%s: not in the list yet", name)
		clock.Advance(3 * time.Second)
		f, err = p.Finder(3*time.Second).Lookup(t.Context(), lost)
		require.NoError(t, err)
		assert.Equal(t, c.bought, f.State == jobpoll.FindingPresent, name)
		assert.Equal(t, []jobpoll.Lost{lost, lost}, p.Lookups())
	}
}

func TestASubmissionThatWaitsDoesNotHoldUpTheClock(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	p := polltest.NewProvider(clock)
	h := polltest.Start(t, jobpoll.Config{Clock: clock, Routes: []jobpoll.Route{{Name: "r", Checker: p}}})
	b := h.BeginSubmit(t.Context(), jobpoll.Submission{
		Job:  jobpoll.Job{Route: "r", ClientKey: "key"},
		Send: p.Send("key", polltest.Order{ID: "a", Answer: "queued slow 10s"}),
	})
	h.Clock.Advance(9 * time.Second)
	assert.False(t, b.Returned())
	h.Clock.Advance(time.Second)
	require.True(t, b.Returned())
	job, err := b.Result()
	require.NoError(t, err)
	assert.Equal(t, "a", job.ID)
}
