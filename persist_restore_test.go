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

// B67(a): also the route stays closed.
func TestARestartKeepsTheCoolDownOfARoute(t *testing.T) {
	store := newShakyStore(nil)
	slow := func(_ *rig, c *jobpoll.Config) {
		c.Routes[0].Schedule = every(60 * time.Second)
	}
	a := onStore(t, store, nil, slow)
	a.prov.Default("running")
	a.prov.Add("cools", "at 59s 429 retry-after 70s once; at 61s running")
	a.watch("cools", "other")
	a.to(100 * time.Second)
	before := len(a.looks("other"))
	require.Len(t, a.looks("cools"), 1)
	a.to(110 * time.Second)
	b := onStore(t, store, a, slow)
	closed := b.Metrics().Budgets["(default)/r"].Status.ClosedUntil
	assert.WithinDuration(t, b.start.Add(130*time.Second), closed, time.Second)
	b.to(129 * time.Second)
	assert.Len(t, b.looks("other"), before, "no poll before it opens")
	b.to(140 * time.Second)
	assert.Len(t, b.looks("other"), before+1)
	b.to(300 * time.Second)
	assert.Greater(t, len(b.looks("cools")), 1)
}

func TestTheBackoffOfARouteGoesOnAfterARestart(t *testing.T) {
	store := newShakyStore(nil)
	a := onStore(t, store, nil, nil)
	a.prov.Add("j", "429")
	a.watch("j")
	a.to(20 * time.Second) // 5: 2 s, 7+: 4 s, …
	first := a.Metrics().Budgets["(default)/r"].Status
	require.GreaterOrEqual(t, int(first.RateLimited), 2)
	b := onStore(t, store, a, nil)
	b.to(10 * time.Minute)
	at := b.prov.Looks("j")
	var most time.Duration
	for i := 1; i < len(at); i++ {
		gap := at[i].Sub(at[i-1])
		assert.GreaterOrEqual(t, gap+time.Second, most*9/10, "gaps grow across the restart: %v", at)
		most = max(most, gap)
	}
}

// A route that comes later, with a node of its own.
func TestACoolDownWaitsForItsNode(t *testing.T) {
	store := newShakyStore(nil)
	a := onStore(t, store, nil, nil)
	a.prov.Default("429 retry-after 10m")
	a.watch("j")
	a.to(10 * time.Second)
	b := onStore(t, store, a, func(_ *rig, c *jobpoll.Config) { c.Routes = nil })
	require.NoError(t, b.AddRoute(b.route("r")))
	assert.False(t, b.Metrics().Budgets["(default)/r"].Status.ClosedUntil.IsZero())
}

func TestStoredBudgetsThatCannotBeAreHarmless(t *testing.T) {
	for _, data := range []string{
		``, `{`, `[]`, `null`, `{"v":99}`, `{"v":1,"status":{"until":"9999-01-01T00:00:00Z","in_a_row":-5,"part":-1,"observed":-1}}`,
		`{"v":1,"status":{"until":"2024-01-01T00:01:00Z","in_a_row":999999999,"part":1e300,"observed":1e308,"good":true,"capacity":true}}`,
		`{"v":1,"status":{"until":"0001-01-01T00:00:00Z"},"more":{"x":1}}`,
	} {
		store := newShakyStore(nil)
		require.NoError(t, store.Put(t.Context(), []jobpoll.Record{{Kind: jobpoll.RecordBudget, ID: "(default)/r", Rev: 1, Data: []byte(data)}}))
		r := rigOf(t, func(r *rig, cfg *jobpoll.Config) { cfg.Store, cfg.LeaseTTL = store, -1; r.prov.Add("x", "succeeded") })
		r.watch("x")
		r.to(40 * 24 * time.Hour)
		require.Len(t, r.rec.Outcomes(), 1, data)
		assert.Zero(t, r.Metrics().Panics)
	}
}

// What is stored can be of any version, damaged, or from a clock that was ahead.
func TestStoredJobsOfAnyMakeAreTakenUpOrReported(t *testing.T) {
	for name, tt := range map[string]struct {
		data string
		err  string // empty: it is watched
	}{
		"of this version":       {data: `{"v":1,"job":{"route":"r","id":"x"}}`},
		"of no version":         {data: `{"job":{"route":"r","id":"x"}}`},
		"with unknown fields":   {data: `{"v":1,"job":{"route":"r","id":"x","new":[1]},"newer":{"a":null}}`},
		"with one key twice":    {data: `{"v":1,"polls":1,"job":{"route":"r","id":"x"},"polls":2}`},
		"about two jobs":        {data: `{"v":1,"job":{"route":"r","id":"x"},"job":{"route":"r","id":"y"}}`, err: "several jobs"},
		"of a newer version":    {data: `{"v":2,"job":{"route":"r","id":"x"}}`, err: "version 2, this library reads up to 1: update it"},
		"cut short":             {data: `{"v":1,"job":{"route":"r","id":"x"`, err: "cannot be read"},
		"empty":                 {data: ``, err: "cannot be read"},
		"no object":             {data: `[1,2]`, err: "stored job"},
		"with bytes behind it":  {data: `{"v":1,"job":{"route":"r","id":"x"}}{}`, err: "cannot be read"},
		"from a clock ahead":    {data: `{"v":1,"job":{"route":"r","id":"x","submitted_at":"2001-02-01T00:00:00Z"},"due_at":"2001-02-01T00:00:05Z","last_at":"2001-02-01T00:00:00Z","first_at":"2001-02-01T00:00:00Z","polls":1,"track":{"v":1,"looks":1,"last_at":"2001-02-01T00:00:00Z","good_at":"2001-02-01T00:00:00Z","state":"running"}}`},
		"from another century":  {data: `{"v":1,"job":{"route":"r","id":"x","submitted_at":"1901-02-01T00:00:00Z"},"due_at":"1901-02-01T00:00:05Z"}`},
		"with fields of no fit": {data: `{"v":1,"job":{"route":"r","id":"x"},"polls":"many","track":7}`},
	} {
		t.Run(name, func(t *testing.T) {
			store := newShakyStore(nil)
			require.NoError(t, store.Put(t.Context(), []jobpoll.Record{
				{Kind: jobpoll.RecordJob, ID: "1:r/x", Route: "r", Rev: 1, Data: []byte(tt.data)},
				{Kind: jobpoll.RecordJob, ID: "1:r/good", Route: "r", Rev: 1, Data: []byte(`{"v":1,"job":{"route":"r","id":"good"}}`)},
				{Kind: 99, ID: "of a kind to come", Data: []byte(`{"v":7}`)},
			}))
			r := rigOf(t, func(r *rig, cfg *jobpoll.Config) { cfg.Store = store; r.prov.Default("succeeded") })
			r.to(time.Minute)
			r.ended("good", jobpoll.ReasonSucceeded)
			if tt.err == "" {
				r.ended("x", jobpoll.ReasonSucceeded)
				assert.Zero(t, r.Metrics().StoreErrors)
				return
			}
			assert.Len(t, r.rec.Outcomes(), 1)
			assert.EqualValues(t, 1, r.Metrics().StoreErrors)
			assert.False(t, r.Health().Store.Failing, "it is the record, not the store")
			err := r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "x"})
			require.ErrorContains(t, err, tt.err)
			rec, err := store.Get(t.Context(), jobpoll.RecordJob, "1:r/x")
			require.NoError(t, err)
			assert.Equal(t, tt.data, string(rec.Data), "it is left as it was")
		})
	}
}

// Yesterday's backup: jobs that have ended since are looked at again, told as
// what the provider says now, and never submitted.
func TestAStoreFromYesterdayEndsWithWhatTheProviderSaysNow(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	store := newShakyStore(clock)
	a := rigOn(t, clock, nil, func(_ *rig, c *jobpoll.Config) { c.Store = store; c.Stop.MaxAge = 72 * time.Hour })
	a.prov.Add("done", "running; at 1h succeeded")
	a.prov.Add("expired", "running; at 1h succeeded; at 20h 410")
	a.prov.Add("unknown", "running; at 1h succeeded; at 20h 404")
	a.watch("done", "expired", "unknown")
	a.to(30 * time.Minute)
	var backup []jobpoll.Record
	for rec, err := range store.Load(t.Context()) {
		require.NoError(t, err)
		backup = append(backup, rec)
	}
	a.to(2 * time.Hour)
	require.Len(t, a.rec.Outcomes(), 3)
	a.Stop()
	a.to(24 * time.Hour)
	old := newShakyStore(clock)
	require.NoError(t, old.Put(t.Context(), backup))
	b := onStore(t, old, a, func(_ *rig, c *jobpoll.Config) { c.Stop.MaxAge = 72 * time.Hour })
	b.to(25 * time.Hour)
	b.ended("done", jobpoll.ReasonSucceeded)
	o := b.ended("expired", jobpoll.ReasonResultExpired)
	assert.Equal(t, jobpoll.AdviceDoNotResubmit, o.Resubmit)
	b.ended("unknown", jobpoll.ReasonLost)
}

// Of overdue jobs those go first that are likely to have ended; and all at the
// pace of the budget.
func TestARestartLooksFirstAtWhatIsLikelyToHaveEnded(t *testing.T) {
	store := newShakyStore(nil)
	a := onStore(t, store, nil, func(_ *rig, c *jobpoll.Config) { c.Routes[0].Schedule = every(time.Minute) })
	a.prov.Default("running")
	for i := range 20 { // the long ones are the more overdue
		require.NoError(t, a.Watch(t.Context(), jobpoll.Job{Route: "r", ID: fmt.Sprintf("long-%d", i), Expected: 10 * time.Hour}))
	}
	a.to(30 * time.Second)
	for i := range 20 {
		require.NoError(t, a.Watch(t.Context(), jobpoll.Job{Route: "r", ID: fmt.Sprintf("short-%d", i), Expected: 5 * time.Minute}))
	}
	a.to(2 * time.Minute)
	a.Stop()
	a.to(20 * time.Minute)
	began := a.Clock.Now()
	b := onStore(t, store, a, func(_ *rig, c *jobpoll.Config) {
		c.Budget = jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 1, Burst: 1}})
		c.Routes[0].Schedule = every(time.Minute)
	})
	b.Clock.Advance(20 * time.Second)
	shorts, longs := 0, 0
	for i := range 20 {
		for _, at := range b.prov.Looks(fmt.Sprintf("short-%d", i)) {
			if !at.Before(began) {
				shorts++
			}
		}
		for _, at := range b.prov.Looks(fmt.Sprintf("long-%d", i)) {
			if !at.Before(began) {
				longs++
			}
		}
	}
	assert.Equal(t, 20, shorts)
	assert.LessOrEqual(t, longs, 1)
	b.Clock.Advance(60 * time.Second)
	for i := range 20 {
		at := b.prov.Looks(fmt.Sprintf("long-%d", i))
		assert.False(t, at[len(at)-1].Before(began), "nobody is left out")
	}
}

func TestRetentionIsConfigured(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	store := newShakyStore(clock)
	r := rigOn(t, clock, nil, func(_ *rig, c *jobpoll.Config) { c.Store, c.Retention = store, 2*time.Hour })
	r.prov.Add("j", "succeeded")
	r.watch("j")
	r.to(time.Hour)
	require.Equal(t, 2, store.Len(), "the job, and how long it took")
	r.to(3 * time.Hour)
	for range store.Load(t.Context()) {
		require.Fail(t, "it has expired")
	}
	_, err := jobpoll.New(jobpoll.Config{Retention: -1})
	require.ErrorContains(t, err, "Config.Retention: -1ns is negative; zero means 720h")
}
