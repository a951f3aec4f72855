package jobpoll_test

import (
	"encoding/json"
	"expvar"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// B79(a)
func TestMetricLabelsDoNotGrowWithJobsOrWords(t *testing.T) {
	n := scaled(10_000, 2000)
	r := rigOf(t, func(r *rig, c *jobpoll.Config) { c.Routes = []jobpoll.Route{r.route("r"), r.route("s"), r.route("u")} })
	for i := range n {
		id := fmt.Sprintf("5f0c2a9e-%06d", i)
		r.prov.Add(id, fmt.Sprintf(`"WORD_%c%c"; at 8s succeeded`, 'A'+i%50/10, 'A'+i%10))
		require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: []string{"r", "s", "u"}[i%3], ID: id}))
	}
	r.to(11 * time.Second)
	m := r.Metrics()
	assert.EqualValues(t, n, m.Total.Stops[jobpoll.ReasonSucceeded])
	assert.Len(t, m.Routes, 3)
	for name, route := range m.Routes {
		assert.LessOrEqual(t, len(route.UnknownWords), 34, name)
		assert.Positive(t, route.UnknownWords["other"])
	}
	text, err := json.Marshal(m)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "5f0c2a9e")
	assert.Less(t, len(text), 64<<10)
	r.atZero()
}

// B79(b)
func TestOneJobCountsOnce(t *testing.T) {
	r := rigOf(t, nil)
	r.prov.Add("j", "running; at 1s 503; at 35s succeeded")
	r.watch("j")
	for len(r.rec.Outcomes()) == 0 {
		r.Clock.Advance(time.Second)
	}
	polls := uint64(r.prov.Total())
	n := told("j", jobpoll.StateSucceeded)
	require.NoError(t, r.notify(n))
	m := r.Metrics()
	assert.Equal(t, polls, m.Total.Looks)
	assert.Equal(t, polls-1, m.Total.LookErrors[jobpoll.ErrorTransient])
	assert.EqualValues(t, 1, m.Total.Stops[jobpoll.ReasonSucceeded])
	assert.EqualValues(t, 1, m.Total.Watched)
	assert.EqualValues(t, 1, m.Total.Webhook.Duplicates)
	assert.EqualValues(t, 1, m.Total.PollsPerCompletion.Count)
	assert.EqualValues(t, polls, m.Total.PollsPerCompletion.Sum)
	assert.EqualValues(t, 1, m.Callbacks.Stops)
}

// B45(c), as far as metrics go
func TestFailureStreakIsVisibleBeforeTheStop(t *testing.T) {
	r := rigOf(t, nil)
	r.prov.Add("bad", "503")
	r.prov.Default("running")
	r.watch("bad", "good")
	seen := 0
	for len(r.rec.Outcomes()) == 0 {
		r.Clock.Advance(time.Second)
		m := r.Metrics()
		info, _ := r.Job(key("bad"))
		if info.Outcome == nil {
			require.Equal(t, info.Errors, m.Total.LongestStreak)
			require.Equal(t, boolInt(info.Errors > 0), m.Total.Failing)
		}
		seen = max(seen, m.Total.LongestStreak)
	}
	assert.Equal(t, 9, seen)
	assert.Equal(t, jobpoll.ErrorTransient, r.ended("bad", jobpoll.ReasonUnreachable).ErrorKind)
	m := r.Metrics()
	assert.Zero(t, m.Total.Failing+m.Total.LongestStreak)
}

func TestGaugesReturnToZeroWhateverTheEnd(t *testing.T) {
	scripts := map[string]string{
		"succeeded": "running; at 8s succeeded", "failed": "failed", "canceled": "canceled", "expired": "expired", "unreachable": "503",
		"limited": "429 retry-after 9h job", "invalid": "400", "quota": "402", "policy": "403", "lost": "404", "gone": "410", "auth": "401",
		"word": `"HUH"`, "panics": "panic", "hangs": "running slow 100s", "deadline": "running", "late output": "succeeded slow 3s", "abandoned": "running",
		"in flight": "running slow 100s", "hooked": "running",
	}
	reasons := map[jobpoll.Reason]bool{}
	r := rigOf(t, func(r *rig, c *jobpoll.Config) {
		c.Stop.MaxAge = 30 * time.Minute
		c.Routes = nil
		c.Budget = jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Concurrent: 50}, Jobs: 100})
		for name := range scripts { // each of its own, so that holds do not mix
			c.Routes = append(c.Routes, r.route(name))
		}
	})
	for name, script := range scripts {
		r.prov.Add(name, script)
		require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: name, ID: name}))
	}
	r.to(7 * time.Second)
	m := r.Metrics()
	assert.Positive(t, m.Total.InFlight)
	in := jobpoll.Key{Route: "in flight", ID: "in flight"}
	require.NoError(t, r.Abandon(t.Context(), in, nil))
	require.NoError(t, r.Abandon(t.Context(), jobpoll.Key{Route: "abandoned", ID: "abandoned"}, nil))
	require.NoError(t, r.notify(jobpoll.Notice{Key: jobpoll.Key{Route: "hooked", ID: "hooked"}, Trust: jobpoll.TrustAuthoritative, Report: jobpoll.Report{State: jobpoll.StateFailed}}))
	r.to(45 * time.Minute)
	require.Len(t, r.rec.Outcomes(), len(scripts))
	for _, o := range r.rec.Outcomes() {
		reasons[o.Reason] = true
	}
	assert.GreaterOrEqual(t, len(reasons), 14, "%v", reasons)
	r.atZero()
	m = r.Metrics()
	sum := map[jobpoll.Reason]uint64{}
	looks := uint64(0)
	for _, route := range m.Routes {
		looks += route.Looks
		for reason, n := range route.Stops {
			sum[reason] += n
		}
	}
	assert.Equal(t, m.Total.Stops, sum)
	assert.Equal(t, m.Total.Looks, looks)
	assert.EqualValues(t, len(scripts), m.Total.Watched)
	assert.EqualValues(t, 0, m.Total.Age.Oldest)
	errs := uint64(0)
	for _, n := range m.Total.LookErrors {
		errs += n
	}
	assert.Less(t, errs, m.Total.Looks)
}

func TestBacklogShowsAScarceBudget(t *testing.T) {
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
		c.Budget = jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 1, Burst: 1}})
		c.Routes[0].Schedule = every(10 * time.Minute)
	})
	r.prov.Default("running")
	r.watch(ids("j", 60)...)
	r.to(10 * time.Minute)
	assert.Equal(t, 59, r.Metrics().Total.Backlog.Jobs)
	r.to(10*time.Minute + 30*time.Second + time.Millisecond)
	m := r.Metrics()
	assert.Equal(t, 29, m.Total.Backlog.Jobs)
	assert.InDelta(t, 30, m.Total.Backlog.Lag.Seconds(), 0.01)
	assert.Equal(t, 1, m.Budgets["account"].Status.Waiting, "one standing interest of the route, not one of each job")
	// Jobs that end while they wait are not counted on.
	for _, id := range ids("j", 60)[40:] {
		require.NoError(t, r.Abandon(t.Context(), key(id), nil))
	}
	r.Clock.Settle()
	assert.Equal(t, 9, r.Metrics().Total.Backlog.Jobs)
	r.to(11 * time.Minute)
	m = r.Metrics()
	assert.Zero(t, m.Total.Backlog)
	assert.Zero(t, m.Budgets["account"].Status.Waiting)
	assert.InDelta(t, 39*40/2, m.Total.Lateness.Sum, 1)
}

func TestExactAndBoundedDelaysAreKeptApart(t *testing.T) {
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) { c.Routes[0].Schedule = every(30 * time.Second) })
	r.prov.Add("exact", "running; at 50s succeeded completed")
	r.prov.Add("bound", "running; at 50s succeeded")
	r.prov.Add("hooked", "running")
	r.watch("exact", "bound", "hooked")
	r.to(40 * time.Second)
	require.NoError(t, r.notify(told("hooked", jobpoll.StateSucceeded)))
	r.to(61 * time.Second)
	exact, bound := r.ended("exact", jobpoll.ReasonSucceeded), r.ended("bound", jobpoll.ReasonSucceeded)
	assert.True(t, exact.DelayExact)
	assert.Equal(t, 10*time.Second, exact.DetectionDelay)
	assert.False(t, bound.DelayExact)
	assert.Equal(t, 30*time.Second, bound.DetectionDelay, "since the look that saw it unfinished")
	m := r.Metrics()
	assert.EqualValues(t, 1, m.Total.DelayExact.Count)
	assert.InDelta(t, 10, m.Total.DelayExact.Sum, 1e-9)
	assert.EqualValues(t, 2, m.Total.DelayBound.Count)
	assert.InDelta(t, 1.0/3, m.Total.Webhook.Coverage, 1e-9)
	assert.EqualValues(t, 1, m.Total.Webhook.Ends)
}

func TestMetricsArePublishedAsTheyAre(t *testing.T) {
	r := rigOf(t, nil)
	r.prov.Add("j", "succeeded")
	r.watch("j")
	r.to(6 * time.Second)
	v := expvar.Func(func() any { return r.Metrics() })
	var back jobpoll.Metrics
	require.NoError(t, json.Unmarshal([]byte(v.String()), &back))
	assert.EqualValues(t, 1, back.Routes["r"].Stops[jobpoll.ReasonSucceeded])
	assert.True(t, strings.Contains(v.String(), `"unresolved":0`))
	// A snapshot belongs to its reader.
	m := r.Metrics()
	m.Total.Stops[jobpoll.ReasonSucceeded] = 99
	assert.EqualValues(t, 1, r.Metrics().Total.Stops[jobpoll.ReasonSucceeded])
}
