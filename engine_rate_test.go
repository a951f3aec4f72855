package jobpoll_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// B47
func TestRateLimitClosesItsRouteForAllJobsAndNoOther(t *testing.T) {
	r := rigOf(t, func(r *rig, c *jobpoll.Config) {
		c.Budget = jobpoll.NewBudget("account", jobpoll.Limits{})
		c.Routes = []jobpoll.Route{r.route("r"), r.route("b")}
	})
	r.prov.Default("running")
	r.prov.Add("a000", "running; at 5s 429 retry-after 30s once")
	a := ids("a", 50)
	r.watch(a[0])
	for _, id := range ids("b", 5) {
		require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "b", ID: id}))
	}
	r.to(4 * time.Second)
	r.watch(a[2:]...) // due at 9
	r.to(5 * time.Second)
	r.watch(a[1]) // due at 10, in the pause
	r.to(12 * time.Second)
	r.watch("a051") // added in the pause
	r.to(34999 * time.Millisecond)
	for _, id := range append(a, "a051") {
		assert.Zero(t, within(r.looks(id), 5.001, 35), "%s in the pause", id)
	}
	assert.Equal(t, []float64{5, 10, 15, 20, 25, 30}, r.looks("b000"), "the other route goes on")
	r.to(4 * time.Minute)
	for _, id := range append(a, "a051") {
		assert.NotZero(t, within(r.looks(id), 35, 240), "%s after the pause", id)
	}
	m := r.Metrics()
	assert.EqualValues(t, 1, m.Total.RateLimited)
	assert.EqualValues(t, 1, m.Routes["r"].LookErrors[jobpoll.ErrorRateLimited])
	assert.Equal(t, 30*time.Second, m.Budgets["account/r"].Status.Cooled)
}

// B48
func TestHerdIsReleasedAtAPaceAfterAPause(t *testing.T) {
	limits := jobpoll.Limits{Total: jobpoll.Limit{Rate: 5, Burst: 5, Concurrent: 10}}
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprintf("limited again %v", again), func(t *testing.T) {
			r := rigOf(t, func(r *rig, c *jobpoll.Config) { c.Budget = jobpoll.NewBudget("account", limits) })
			r.prov.Default("running; at 20s succeeded slow 1s")
			script := "at 5s 429 retry-after 30s x1; at 30s succeeded slow 1s"
			if again {
				script = "at 5s 429 retry-after 30s x1; at 30s 429 slow 1s retry-after 30s x1"
			}
			r.prov.Add("first", script)
			r.watch("first")
			r.to(5 * time.Second)
			r.watch(ids("j", 50)...)
			r.to(34999 * time.Millisecond)
			require.Equal(t, []float64{5}, r.ages(r.prov.Starts()), "closed")
			if again {
				// Whoever goes first meets the limit: make it the scripted one.
				r.to(64 * time.Second)
				assert.Less(t, r.prov.Total()-1, 52, "the route closed again")
				if at := r.looks("first"); len(at) > 1 {
					assert.LessOrEqual(t, within(r.ages(r.prov.Starts()), at[1], at[1]+29), 10, "few leave before it closes")
				}
				return
			}
			r.to(60 * time.Second)
			starts := r.ages(r.prov.Starts())
			for _, s := range starts[1:] {
				assert.LessOrEqual(t, within(starts, s, s+1), 10, "in the second from %v", s)
			}
			assert.LessOrEqual(t, r.prov.MaxInFlight(), 10)
			assert.Len(t, r.rec.Outcomes(), 51)
			r.atZero()
		})
	}
}

func TestRateLimitWithoutAHintDoublesToAMinute(t *testing.T) {
	r := rigOf(t, nil)
	r.prov.Add("j", "429")
	r.watch("j")
	r.to(10 * time.Minute)
	at := r.looks("j")
	require.GreaterOrEqual(t, len(at), 8)
	wait := 2.0
	for i := 1; i < len(at); i++ {
		gap := at[i] - at[i-1]
		assert.GreaterOrEqual(t, gap, wait, "gap %d", i)
		assert.LessOrEqual(t, gap, wait+8, "gap %d", i) // the lift above a floor is small
		wait = min(2*wait, 60)
	}
	info, ok := r.Job(key("j"))
	require.True(t, ok)
	assert.Zero(t, info.Errors, "a rate limit is no step to unreachable")
}

// B49
func TestStatusRateLimitLeavesSubmissionsOpen(t *testing.T) {
	budget := jobpoll.NewBudget("account", jobpoll.Limits{})
	node := budget.Child("r", jobpoll.Limits{})
	r := rigOf(t, func(r *rig, c *jobpoll.Config) {
		c.Budget = budget
		c.Routes[0].Budget = node
	})
	r.prov.Add("j", `at 0s running; at 5s 429 "status fetching rate limit" retry-after 60s`)
	r.watch("j")
	r.to(6 * time.Second)
	require.False(t, r.Metrics().Budgets["account/r"].Status.ClosedUntil.IsZero())
	done, err := node.Acquire(t.Context(), jobpoll.LaneSubmit)
	require.NoError(t, err, "at once")
	done(nil)
	r.to(64 * time.Second)
	assert.Equal(t, []float64{5}, r.looks("j"))
	assert.EqualValues(t, 1, r.Metrics().Budgets["account/r"].Submit.Granted)
}

func TestScopeSaysWhatCoolsDown(t *testing.T) {
	for scope, closed := range map[string][]string{
		"job": {"one"}, "budget": {"one", "two"}, "account": {"one", "two", "other"},
	} {
		t.Run(scope, func(t *testing.T) {
			r := rigOf(t, func(r *rig, c *jobpoll.Config) { c.Routes = append(c.Routes, r.route("o")) })
			r.prov.Default("running")
			r.prov.Add("one", "running; at 5s 429 retry-after 60s once "+scope)
			r.watch("one")
			r.to(time.Second)
			r.watch("two")
			require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "o", ID: "other"}))
			r.to(64 * time.Second)
			for _, id := range []string{"one", "two", "other"} {
				got := within(r.looks(id), 5.5, 64.5)
				if slices.Contains(closed, id) {
					assert.Zero(t, got, id)
				} else {
					assert.GreaterOrEqual(t, got, 11, id)
				}
			}
		})
	}
}

func TestCooldownThatOutlastsDeadlinesParksAllJobsOfTheRoute(t *testing.T) {
	r := rigOf(t, func(r *rig, c *jobpoll.Config) { c.Stop.MaxAge = 30 * time.Minute })
	r.prov.Default("running")
	r.prov.Add("limited", "429 retry-after 3600s")
	r.watch("other", "hooked", "poked")
	r.to(4 * time.Second)
	r.watch("limited") // meets the limit at 9
	r.to(20 * time.Second)
	before := r.prov.Total()
	for _, id := range []string{"limited", "other", "hooked", "poked"} {
		info, ok := r.Job(key(id))
		require.True(t, ok)
		assert.Equal(t, jobpoll.CauseParked, info.Cause, id)
	}
	require.NoError(t, r.PollNow(key("poked")))
	r.to(10 * time.Minute)
	require.NoError(t, r.notify(jobpoll.Notice{Key: key("hooked"), Report: jobpoll.Report{State: jobpoll.StateSucceeded}, Trust: jobpoll.TrustAuthoritative}))
	assert.Equal(t, jobpoll.ViaWebhook, r.ended("hooked", jobpoll.ReasonSucceeded).Via, "a webhook may end a parked job")

	r.to(30*time.Minute - time.Second)
	assert.Len(t, r.rec.Outcomes(), 1, "not stopped early")
	r.to(30 * time.Minute)
	assert.Len(t, r.rec.Outcomes(), 3, "stopped at the deadline")
	r.to(30*time.Minute + 4*time.Second)
	for _, id := range []string{"limited", "other", "poked"} {
		o := r.ended(id, jobpoll.ReasonRateLimited)
		assert.InDelta(t, 3609, o.RetryAt.Sub(r.start).Seconds(), 1, id)
	}
	assert.Equal(t, before, r.prov.Total(), "no look")
	r.atZero()
}

func TestRoutesThatShareABudgetShareItsPaceAndCooldown(t *testing.T) {
	shared := jobpoll.NewBudget("shared", jobpoll.Limits{Total: jobpoll.Limit{Rate: 2, Burst: 1}})
	r := rigOf(t, func(r *rig, c *jobpoll.Config) {
		c.Routes = []jobpoll.Route{r.route("r"), r.route("s")}
		c.Routes[0].Budget, c.Routes[1].Budget = shared, shared
	})
	r.prov.Default("running")
	for _, id := range ids("j", 20) {
		require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "r" + id}))
		require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "s", ID: "s" + id}))
	}
	r.to(time.Minute)
	requirePaced(t, r.prov.Starts(), 2, 1)
	byRoute := map[byte]int{}
	for _, id := range ids("j", 20) {
		byRoute['r'] += len(r.prov.Looks("r" + id))
		byRoute['s'] += len(r.prov.Looks("s" + id))
	}
	assert.InDelta(t, byRoute['r'], byRoute['s'], 3, "first come first served over both")
	assert.InDelta(t, 110, byRoute['r']+byRoute['s'], 3, "all of the rate is used")

	r.prov.Add("rj000", "429 retry-after 120s once")
	require.NoError(t, r.PollNow(jobpoll.Key{Route: "r", ID: "rj000"}))
	r.to(90 * time.Second)
	n := r.prov.Total()
	r.to(110 * time.Second)
	assert.Equal(t, n, r.prov.Total(), "both routes are closed")
}

func TestLimitsCanBeChangedWhileRunning(t *testing.T) {
	budget := jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 1, Burst: 1}})
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) { c.Budget = budget })
	r.prov.Default("running")
	r.watch(ids("j", 100)...)
	r.to(25 * time.Second)
	assert.InDelta(t, 21, r.prov.Total(), 1)
	m := r.Metrics()
	assert.InDelta(t, 95, m.Total.Backlog.Jobs, 2, "those looked at are due again after 5 s")
	assert.InDelta(t, 20, m.Total.Backlog.Lag.Seconds(), 1)
	budget.SetLimits(jobpoll.Limits{Total: jobpoll.Limit{Rate: 100, Burst: 10}})
	r.to(28 * time.Second)
	assert.Zero(t, r.Metrics().Total.Backlog, "at once, without another event")
	for _, id := range ids("j", 100) {
		assert.NotEmpty(t, r.looks(id), id)
	}
}

// A call that hangs holds its worker only until its timeout; one that is
// given up holds nothing but its goroutine.
func TestHungChecksHoldWorkersOnlyUntilTheTimeout(t *testing.T) {
	release := make(chan struct{})
	r := rigOf(t, func(r *rig, c *jobpoll.Config) {
		c.Workers = 3
		c.Routes = append(c.Routes, jobpoll.Route{
			Name: "deaf", CheckTimeout: 10 * time.Second, Schedule: every(5 * time.Second),
			Checker: jobpoll.CheckerFunc(func(ctx context.Context, _ jobpoll.Job) (jobpoll.Report, error) {
				// It ends long after its context.
				_ = r.Clock.Sleep(context.WithoutCancel(ctx), 25*time.Second)
				select {
				case <-release:
				default:
				}
				return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
			}),
		})
	})
	close(release)
	r.prov.Default("running")
	for _, id := range ids("d", 3) {
		require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "deaf", ID: id}))
	}
	r.to(time.Second)
	r.watch("j")
	r.to(14 * time.Second)
	assert.Empty(t, r.looks("j"), "all workers hang")
	assert.Equal(t, 3, r.Metrics().Routes["deaf"].InFlight)
	r.to(15 * time.Second)
	assert.Equal(t, []float64{15}, r.looks("j"), "as soon as they are given up")
	r.to(45 * time.Second)
	m := r.Metrics()
	assert.Zero(t, m.Routes["deaf"].Stops[jobpoll.ReasonSucceeded], "an answer after the timeout counts for nothing")
	assert.Positive(t, m.Routes["deaf"].LookErrors[jobpoll.ErrorTransient])
	for _, id := range ids("d", 3) {
		require.NoError(t, r.Abandon(t.Context(), jobpoll.Key{Route: "deaf", ID: id}, nil))
	}
	require.NoError(t, r.Abandon(t.Context(), key("j"), nil))
	r.to(2 * time.Minute)
	assert.Zero(t, r.Metrics().Total.InFlight)
}

// A route with a flood of due jobs does not keep the workers from another.
func TestWorkersAreSharedFairlyBetweenRoutes(t *testing.T) {
	r := rigOf(t, func(r *rig, c *jobpoll.Config) {
		c.Workers = 4
		c.Routes = []jobpoll.Route{r.route("r"), r.route("few")}
	})
	r.prov.Default("running slow 2s")
	r.watch(ids("flood", 400)...)
	require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "few", ID: "lone"}))
	r.to(60 * time.Second)
	assert.Equal(t, 4, r.prov.MaxInFlight())
	at := r.looks("lone")
	require.NotEmpty(t, at)
	assert.LessOrEqual(t, at[0], 5+3*2.0, "the lone job of the other route waits for a few calls, not for 400")
	assert.GreaterOrEqual(t, len(at), 5)
}

// While all workers are busy a route keeps no token and no slot of its budget.
func TestSaturatedWorkersLeaveTheBudgetToOthers(t *testing.T) {
	budget := jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 1, Burst: 1, Concurrent: 2}})
	r := rigOf(t, func(r *rig, c *jobpoll.Config) {
		c.Budget, c.Workers = budget, 1
		c.Routes[0].CheckTimeout = time.Hour
	})
	r.prov.Default("running slow 600s")
	r.watch("one", "two")
	r.to(30 * time.Second)
	require.Equal(t, 1, r.prov.InFlight())
	m := r.Metrics()
	assert.Equal(t, 1, m.Budgets["account"].Status.InFlight, "no grant is held for the job that waits for a worker")
	assert.Equal(t, 1, m.Total.Backlog.Jobs)
	done, err := budget.Acquire(t.Context(), jobpoll.LaneSubmit)
	require.NoError(t, err)
	done(nil)
}

func TestCooledHookTellsScopeAndEnd(t *testing.T) {
	var told atomic.Pointer[jobpoll.CoolEvent]
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
		c.Budget = jobpoll.NewBudget("account", jobpoll.Limits{})
		c.Hooks.RateLimited = func(e jobpoll.CoolEvent) { told.Store(&e) }
	})
	r.watch("j")
	r.prov.Add("j", "running; at 1s 429 retry-after 30s once")
	r.to(6 * time.Second)
	e := told.Load()
	require.NotNil(t, e)
	assert.Equal(t, "r", e.Route)
	assert.Equal(t, "account/r", e.Budget)
	assert.Equal(t, key("j"), e.Key)
	assert.InDelta(t, 35, e.Until.Sub(r.start).Seconds(), 0.01)
}
