package main

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestTheWorkerSeesTheJobSucceed(t *testing.T) {
	s, err := simulate(start)
	require.NoError(t, err)
	require.Equal(t, jobpoll.ReasonSucceeded, s.Track.End)
	require.Equal(t, "/v2/status/job-1", s.Job.Ref, "the new reference was kept")
	require.LessOrEqual(t, s.Track.Looks, int32(8))
	require.LessOrEqual(t, s.Track.LastAt.Time().Sub(start), 55*time.Second)
}

func TestStateSurvivesJSONBetweenTicks(t *testing.T) {
	kept, err := load(filepath.Join(t.TempDir(), "none.json"), start)
	require.NoError(t, err)
	stored := kept
	for now := start; ; now = kept.Due {
		var done, storedDone bool
		kept, done, err = tick(kept, now, 0.5)
		require.NoError(t, err)
		stored, storedDone, err = tick(stored, now, 0.5)
		require.NoError(t, err)

		b, err := json.Marshal(stored)
		require.NoError(t, err)
		stored = state{}
		require.NoError(t, json.Unmarshal(b, &stored))
		require.Equal(t, kept, stored)
		require.Equal(t, done, storedDone)
		if done {
			return
		}
	}
}

func TestNothingIsDoneBeforeItIsDue(t *testing.T) {
	s, err := load("", start)
	require.NoError(t, err)
	s, _, err = tick(s, start, 0.5)
	require.NoError(t, err)
	require.True(t, s.Due.After(start), "the first look is due later")
	same, done, err := tick(s, s.Due.Add(-1), 0.5)
	require.NoError(t, err)
	require.False(t, done)
	require.Equal(t, s, same)
}

func TestAWaitOfTheProviderIsObeyed(t *testing.T) {
	s, err := load("", start)
	require.NoError(t, err)
	for now := start; s.Track.Limited == 0; now = s.Due {
		s, _, err = tick(s, now, 0)
		require.NoError(t, err)
	}
	require.GreaterOrEqual(t, s.Due.Sub(s.Track.LastAt.Time()), 10*time.Second)
}

func TestAStopSaysWhy(t *testing.T) {
	s, err := load("", start)
	require.NoError(t, err)
	s.Track.End = jobpoll.ReasonLost
	_, done, err := tick(s, start, 0.5)
	require.True(t, done)
	require.ErrorIs(t, err, jobpoll.ReasonLost)
	require.ErrorContains(t, err, "demo/job-1")
}
