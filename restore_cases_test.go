package jobpoll_test

import (
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// B71. A store shows a record before the Put that wrote it has returned.
func TestAWatchAndARestoreOfOneJobAreOneStream(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	store := newShakyStore(clock)
	r := rigOn(t, clock, nil, func(_ *rig, cfg *jobpoll.Config) { cfg.Store = store })
	r.prov.Add("a", "running; at 12s succeeded")
	restored := -1
	store.seen = func([]jobpoll.Record) {
		store.seen = nil
		n, err := r.Restore(t.Context())
		require.NoError(t, err)
		restored = n
	}
	r.watch("a")
	assert.Zero(t, restored)
	m := r.Metrics()
	assert.Equal(t, 1, m.Total.Unresolved)
	assert.Equal(t, 1, m.Budgets["(default)"].Jobs)
	r.to(time.Minute)
	assert.Equal(t, []float64{5, 10, 15}, r.looks("a"))
	r.ended("a", jobpoll.ReasonSucceeded)
	r.atZero()
}

// jobData is the Data of a stored job "x" with more fields.
func jobData(more string) []byte { return []byte(`{"v":1,"job":{"route":"r","id":"x"}` + more + `}`) }

func TestStoredJobsThatContradictThemselvesAreReportedAndLeaveTheOthersAlone(t *testing.T) {
	const outcome = `,"outcome":{"job":{"route":"r","id":"x"},"reason":"deadline"}`
	for name, rec := range map[string]jobpoll.Record{
		"another id":                   {ID: "1:r/y", Data: jobData("")},
		"another's outcome":            {Data: jobData(`,"outcome":{"job":{"route":"r","id":"y"},"reason":"deadline"}`)},
		"nobody's outcome, told":       {Data: jobData(`,"outcome":{},"told":true`)},
		"anew on a route that is none": {Data: jobData(outcome + `,"again":{"route":"s","id":"x"}`)},
		"anew as another":              {Data: jobData(outcome + `,"again":{"route":"r","id":"y"}`)},
		"anew before its end":          {Data: jobData(`,"again":{"route":"r","id":"x"}`)},
		"anew as nobody":               {Data: jobData(outcome + `,"again":{}`)},
	} {
		t.Run(name, func(t *testing.T) {
			store := newShakyStore(nil)
			rec.Kind, rec.Route, rec.Rev = jobpoll.RecordJob, "r", 1
			if rec.ID == "" {
				rec.ID = "1:r/x"
			}
			require.NoError(t, store.Put(t.Context(), []jobpoll.Record{rec, {
				Kind: jobpoll.RecordJob, ID: "1:r/good", Route: "r", Rev: 1, Data: []byte(`{"v":1,"job":{"route":"r","id":"good"}}`),
			}}))
			r := rigOf(t, func(r *rig, cfg *jobpoll.Config) { cfg.Store = store; r.prov.Default("succeeded") })
			r.to(time.Minute)
			r.ended("good", jobpoll.ReasonSucceeded)
			assert.Len(t, r.rec.Outcomes(), 1)
			assert.EqualValues(t, 1, r.Metrics().StoreErrors)
			assert.Zero(t, r.Metrics().Panics)
			r.atZero()
		})
	}
}

func TestWildMemoriesAreTakenUp(t *testing.T) {
	for _, more := range []string{
		`,"track":{"v":1,"looks":-5,"errors":-7,"unchanged":-3,"progress_told":-1,"limited":-9},"polls":-9,"attempts":-3`,
		`,"track":{"v":99,"looks":9223372036854775807,"errors":9223372036854775807,"unchanged":9223372036854775807,"end":"succeeded"}`,
		`,"track":{"looks":3,"last_at":"9999-12-31T23:59:59Z","not_before":"9999-12-31T23:59:59Z","finish_at":"0001-01-01T00:00:01Z"},"due_at":"9999-12-31T23:59:59Z"`,
		`,"track":{"looks":3,"first_at":"0001-01-01T00:00:01Z","last_at":"0001-01-01T00:00:01Z"},"due_at":"0001-01-01T00:00:01Z","first_at":"0001-01-01T00:00:01Z"`,
		`,"rules":{"max_age":-1,"max_errors":-1,"auth_grace":-1}`,
		`,"fetching":true`,
		`,"fetching":true,"report":{"state":"running"}`,
		`,"report":{"state":"no such state","progress":-7,"queue_position":-7}`,
	} {
		t.Run(more, func(t *testing.T) {
			store := newShakyStore(nil)
			require.NoError(t, store.Put(t.Context(), []jobpoll.Record{{Kind: jobpoll.RecordJob, ID: "1:r/x", Route: "r", Rev: 1, Data: jobData(more)}}))
			r := rigOf(t, func(r *rig, cfg *jobpoll.Config) { cfg.Store = store; r.prov.Add("x", "at 1m succeeded") })
			r.to(3 * time.Hour)
			require.Len(t, r.rec.Outcomes(), 1)
			assert.Zero(t, r.Metrics().Panics)
			assert.Zero(t, r.Metrics().StoreErrors)
			r.atZero()
		})
	}
}

// The route had a Fetcher before the restart.
func TestAJobWhoseOutputCannotBeFetchedAnyMoreIsLookedAt(t *testing.T) {
	store := newShakyStore(nil)
	require.NoError(t, store.Put(t.Context(), []jobpoll.Record{{
		Kind: jobpoll.RecordJob, ID: "1:r/x", Route: "r", Rev: 1, Data: jobData(`,"fetching":true,"report":{"state":"succeeded"}`),
	}}))
	r := rigOf(t, func(r *rig, cfg *jobpoll.Config) { cfg.Store = store; r.prov.Add("x", "succeeded") })
	r.to(time.Minute)
	r.ended("x", jobpoll.ReasonSucceeded)
	assert.Zero(t, r.Metrics().Panics)
}

func TestNoticesThatAreRestoredTwiceWaitOnce(t *testing.T) {
	store := newShakyStore(nil)
	a := rigOf(t, func(_ *rig, cfg *jobpoll.Config) { cfg.Store = store })
	require.NoError(t, a.notify(jobpoll.Notice{Key: key("j"), Report: jobpoll.Report{State: jobpoll.StateRunning}}))
	require.NoError(t, a.notify(jobpoll.Notice{Key: jobpoll.Key{Route: "r"}, ClientKey: "c", EventID: "e"}))
	a.Stop()
	b := rigOn(t, a.Clock, a.prov, func(_ *rig, cfg *jobpoll.Config) { cfg.Store = store })
	for range 3 {
		_, err := b.Restore(t.Context())
		require.NoError(t, err)
	}
	assert.Equal(t, 2, b.Metrics().ParkedNotices)
}
