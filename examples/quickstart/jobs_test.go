package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/polltest"
)

func TestTheSameSeedDrawsTheSameJobs(t *testing.T) {
	require.Equal(t, draw(5, 60, allProviders), draw(5, 60, allProviders))
	require.NotEqual(t, draw(5, 60, allProviders), draw(6, 60, allProviders))
	some, one := draw(5, 60, allProviders), draw(5, 60, []string{"fal"})
	for i := range some {
		require.Equal(t, some[i].script(), one[i].script(), "who makes the video changes nothing of the job")
	}
}

func TestDurationsKeepToTheirClassAndScriptsCanBeRead(t *testing.T) {
	bounds := [][2]time.Duration{{0, 30 * time.Second}, {30 * time.Second, 2 * time.Minute}, {2 * time.Minute, 10 * time.Minute}}
	seen := map[fate]int{}
	for _, o := range draw(1, 600, allProviders) {
		require.Positive(t, o.takes)
		require.GreaterOrEqual(t, o.takes, bounds[o.class][0], o.key())
		require.LessOrEqual(t, o.takes, bounds[o.class][1], o.key())
		require.Less(t, o.takes, patience, "it would be given up in the making")
		s, err := polltest.ParseScript(o.script())
		require.NoError(t, err, o.script())
		last := s.Entries()[len(s.Entries())-1]
		require.Equal(t, o.ends(), last.Ends(), o.script())
		if o.ends() {
			require.Equal(t, o.takes, last.At, o.script())
		}
		seen[o.fate]++
	}
	require.Equal(t, map[fate]int{succeeds: 596, fails: 1, isFiltered: 1, isForgotten: 1, hangs: 1}, seen)
}

func TestTheNumberOfAnOrderIsFoundWhereTheProviderPutsIt(t *testing.T) {
	for body, want := range map[string]int{
		`{"prompt":"a cat","seed":7}`:           7, // fal, Atlas
		`{"input":{"prompt":"a cat","seed":7}}`: 7, // Replicate
		`{}`:                                    0,
		`"no"`:                                  0,
	} {
		require.Equal(t, want, numberOf(json.RawMessage(body)), body)
	}
}
