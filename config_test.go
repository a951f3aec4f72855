package jobpoll_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// backOff is a BackOff of any function.
type backOff func(n int) time.Duration

func (f backOff) Reset() {}

func (f backOff) NextBackOff() time.Duration { return f(0) }

func idleChecker(context.Context, jobpoll.Job) (jobpoll.Report, error) {
	return jobpoll.Report{State: jobpoll.StateRunning}, nil
}

// refused checks that New and AddRoute refuse a route and name the field.
func refused(t *testing.T, field string, change func(r *jobpoll.Route)) {
	t.Helper()
	r := jobpoll.Route{Name: "fal", Checker: jobpoll.CheckerFunc(idleChecker)}
	change(&r)
	_, err := jobpoll.New(jobpoll.Config{Routes: []jobpoll.Route{r}})
	require.Error(t, err)
	assert.Contains(t, err.Error(), "jobpoll: ")
	assert.Contains(t, err.Error(), field)
	p, none := jobpoll.New(jobpoll.Config{})
	require.NoError(t, none)
	err = p.AddRoute(r)
	require.Error(t, err)
	assert.Contains(t, err.Error(), field)
	require.ErrorIs(t, p.Watch(t.Context(), jobpoll.Job{Route: "fal", ID: "a"}), jobpoll.ErrUnknownRoute, "it was not added")
}

func TestEachFaultOfARouteIsNamed(t *testing.T) {
	span := func(a, b int) jobpoll.Span {
		return jobpoll.Span{Min: time.Duration(a) * time.Second, Max: time.Duration(b) * time.Second}
	}
	for field, change := range map[string]func(r *jobpoll.Route){
		".Name":                        func(r *jobpoll.Route) { r.Name = "" },
		".Checker":                     func(r *jobpoll.Route) { r.Checker = nil },
		".Checker: is nil":             func(r *jobpoll.Route) { r.Checker = jobpoll.CheckerFunc(nil) },
		".CheckTimeout":                func(r *jobpoll.Route) { r.CheckTimeout = -1 },
		".Stop.MaxAge":                 func(r *jobpoll.Route) { r.Stop.MaxAge = -1 },
		".Stop.MaxQueued":              func(r *jobpoll.Route) { r.Stop.MaxQueued = -1 },
		".Stop.MaxProcessing":          func(r *jobpoll.Route) { r.Stop.MaxProcessing = -1 },
		".Stop.NoProgress":             func(r *jobpoll.Route) { r.Stop.NoProgress = -1 },
		".Stop.MaxErrors":              func(r *jobpoll.Route) { r.Stop.MaxErrors = -1 },
		".Stop.MissingGrace":           func(r *jobpoll.Route) { r.Stop.MissingGrace = -1 },
		".Stop.MissingLooks":           func(r *jobpoll.Route) { r.Stop.MissingLooks = -1 },
		".Stop.UnknownFor":             func(r *jobpoll.Route) { r.Stop.UnknownFor = -1 },
		".Stop.UnknownLooks":           func(r *jobpoll.Route) { r.Stop.UnknownLooks = -1 },
		".Stop.AuthGrace":              func(r *jobpoll.Route) { r.Stop.AuthGrace = -1 },
		".Schedule.Queued":             func(r *jobpoll.Route) { r.Schedule.Queued = -1 },
		".Schedule.NearEnd":            func(r *jobpoll.Route) { r.Schedule.NearEnd = -1 },
		".Schedule.PollCost":           func(r *jobpoll.Route) { r.Schedule.PollCost = -2 },
		".Schedule.MinDelay":           func(r *jobpoll.Route) { r.Schedule.MinDelay = -1 },
		".Schedule.MaxDelay":           func(r *jobpoll.Route) { r.Schedule.MaxDelay = -1 },
		".Schedule.MaxDelay: the cap":  func(r *jobpoll.Route) { r.Schedule.MaxDelay = time.Millisecond },
		"under the base 9s (Delays[0]": func(r *jobpoll.Route) { r.Schedule.Delays, r.Schedule.MaxDelay = secs(9), 3*time.Second },
		".Schedule.Jitter: NaN":        func(r *jobpoll.Route) { r.Schedule.Jitter = math.NaN() },
		".Schedule.Jitter: +Inf":       func(r *jobpoll.Route) { r.Schedule.Jitter = math.Inf(1) },
		".Schedule.Jitter: 1.5":        func(r *jobpoll.Route) { r.Schedule.Jitter = 1.5 },
		".Schedule.Jitter: -0.5":       func(r *jobpoll.Route) { r.Schedule.Jitter = -0.5 },
		".Schedule.Delays[1]: is zero": func(r *jobpoll.Route) { r.Schedule.Delays = secs(1, 0) },
		".Schedule.Delays[0]: -1s":     func(r *jobpoll.Route) { r.Schedule.Delays = secs(-1) },
		"stops at once":                func(r *jobpoll.Route) { r.Schedule.Delays = jobpoll.Ladder(&backoff.StopBackOff{}) },
		"Delays[0]: is zero":           func(r *jobpoll.Route) { r.Schedule.Delays = jobpoll.Ladder(&backoff.ZeroBackOff{}) },
		"Delays[0]: -5s": func(r *jobpoll.Route) {
			r.Schedule.Delays = jobpoll.Ladder(backOff(func(int) time.Duration { return -5 * time.Second }))
		},
		"is random": func(r *jobpoll.Route) { r.Schedule.Delays = jobpoll.Ladder(backoff.NewExponentialBackOff()) },
		"BackOff is random": func(r *jobpoll.Route) {
			r.Schedule.Delays = jobpoll.Ladder(backOff(func(int) time.Duration { return time.Duration(rand.Int64N(1 << 40)) }))
		},
		".Schedule.Buckets[0].First.Min": func(r *jobpoll.Route) { r.Schedule.Buckets = []jobpoll.Bucket{{Later: span(1, 2)}} },
		".Schedule.Buckets[0].First.Max": func(r *jobpoll.Route) { r.Schedule.Buckets = []jobpoll.Bucket{{First: span(2, 1), Later: span(3, 4)}} },
		".Schedule.Buckets[0].Later":     func(r *jobpoll.Route) { r.Schedule.Buckets = []jobpoll.Bucket{{First: span(5, 6), Later: span(3, 4)}} },
		".Schedule.Buckets[0].UpTo: is zero": func(r *jobpoll.Route) {
			r.Schedule.Buckets = []jobpoll.Bucket{{First: span(1, 2), Later: span(3, 4)}, {First: span(1, 2), Later: span(3, 4)}}
		},
		".Schedule.Buckets[0].UpTo: -1ns is": func(r *jobpoll.Route) {
			r.Schedule.Buckets = []jobpoll.Bucket{{UpTo: -1, First: span(1, 2), Later: span(3, 4)}}
		},
		".Schedule.Buckets[1].UpTo": func(r *jobpoll.Route) {
			r.Schedule.Buckets = []jobpoll.Bucket{{UpTo: 9, First: span(1, 2), Later: span(3, 4)}, {UpTo: 9, First: span(1, 2), Later: span(3, 4)}}
		},
		".Schedule.Unknown.Later":       func(r *jobpoll.Route) { r.Schedule.Unknown = jobpoll.Bucket{First: span(5, 6), Later: span(3, 4)} },
		`.Guidance["x"].First`:          func(r *jobpoll.Route) { r.Guidance = map[string]jobpoll.Guidance{"x": {First: -1}} },
		`.Guidance["x"].Floor`:          func(r *jobpoll.Route) { r.Guidance = map[string]jobpoll.Guidance{"x": {Floor: -1}} },
		`.Guidance["x"].Expected`:       func(r *jobpoll.Route) { r.Guidance = map[string]jobpoll.Guidance{"x": {Expected: -1}} },
		`.Guidance["x"].Cap: the cap`:   func(r *jobpoll.Route) { r.Guidance = map[string]jobpoll.Guidance{"x": {First: 9, Cap: 3}} },
		`Cap: the cap 3ns is under the`: func(r *jobpoll.Route) { r.Guidance = map[string]jobpoll.Guidance{"x": {Floor: 9, Cap: 3}} },
		"Status.Reserve.Rate 9 exceeds Total.Rate 5": func(r *jobpoll.Route) {
			r.Budget = jobpoll.NewBudget("acc", jobpoll.Limits{Total: jobpoll.Limit{Rate: 5}, Status: jobpoll.LaneLimits{Reserve: jobpoll.Limit{Rate: 9}}})
		},
	} {
		t.Run(field, func(t *testing.T) { refused(t, field, change) })
	}
}

func TestNewReportsAllFaultsAtOnce(t *testing.T) {
	account := jobpoll.NewBudget("acc", jobpoll.Limits{Total: jobpoll.Limit{Rate: -1}})
	_, err := jobpoll.New(jobpoll.Config{
		Workers: -1, ShutdownGrace: -1, Stop: jobpoll.StopRules{MaxAge: -1, MaxErrors: -2}, Budget: account,
		Routes: []jobpoll.Route{
			{}, {Name: "a", Checker: jobpoll.CheckerFunc(idleChecker)},
			{Name: "a", CheckTimeout: -1, Schedule: jobpoll.Schedule{Jitter: 7, MinDelay: -1}, Budget: account.Child("x", jobpoll.Limits{Jobs: -3})},
		},
	})
	require.Error(t, err)
	for _, want := range []string{
		"jobpoll: Config.Workers: -1 is negative", "jobpoll: Config.ShutdownGrace: -1ns is negative",
		"Config.Stop.MaxAge", "Config.Stop.MaxErrors", "Config.Routes[0].Name", "Config.Routes[0].Checker",
		`Config.Routes[2].Name: "a" is already the name of another route`, `Config.Routes[2] ("a").Checker`,
		`Config.Routes[2] ("a").CheckTimeout`, `Config.Routes[2] ("a").Schedule.Jitter`, `Config.Routes[2] ("a").Schedule.MinDelay`,
		`budget "acc": Total.Rate -1 is negative`, `budget "acc/x": Jobs -3 is negative`,
	} {
		assert.Contains(t, err.Error(), want)
	}
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok)
	assert.Len(t, joined.Unwrap(), 13, "each once")
}

func TestAddRouteReportsAllFaultsAtOnce(t *testing.T) {
	p, err := jobpoll.New(jobpoll.Config{Routes: []jobpoll.Route{{Name: "a", Checker: jobpoll.CheckerFunc(idleChecker)}}})
	require.NoError(t, err)
	err = p.AddRoute(jobpoll.Route{Name: "a", CheckTimeout: -1})
	require.Error(t, err)
	for _, want := range []string{"Route.Name", "is already the name", ".Checker", ".CheckTimeout"} {
		assert.Contains(t, err.Error(), want)
	}
}

func TestOneBudgetUnderTwoClocksIsRefused(t *testing.T) {
	account := jobpoll.NewBudget("acc", jobpoll.Limits{})
	route := jobpoll.Route{Name: "a", Checker: jobpoll.CheckerFunc(idleChecker)}
	one, two := polltest.NewClock(time.Time{}), polltest.NewClock(time.Time{})
	_, err := jobpoll.New(jobpoll.Config{Clock: one, Budget: account})
	require.NoError(t, err)
	_, err = jobpoll.New(jobpoll.Config{Clock: two, Budget: account})
	require.ErrorContains(t, err, "Config.Budget: ")
	require.ErrorContains(t, err, `budget "acc": already used with another clock`)
	route.Budget = account.Child("fal", jobpoll.Limits{})
	_, err = jobpoll.New(jobpoll.Config{Clock: two, Routes: []jobpoll.Route{route}})
	require.ErrorContains(t, err, "Config.Routes[0].Budget: ")
	p, err := jobpoll.New(jobpoll.Config{Clock: two})
	require.NoError(t, err)
	require.ErrorContains(t, p.AddRoute(route), "Route.Budget: ")
	p, err = jobpoll.New(jobpoll.Config{Clock: one})
	require.NoError(t, err)
	require.NoError(t, p.AddRoute(route), "the same clock")
}

// A Poller made outside of a bubble works inside one, and New starts nothing.
func TestNewStartsNothing(t *testing.T) {
	before := goroutines()
	clock := polltest.NewClock(time.Time{})
	for range 100 {
		_, err := jobpoll.New(jobpoll.Config{Clock: clock, Routes: []jobpoll.Route{{Name: "a", Checker: jobpoll.CheckerFunc(idleChecker)}}})
		require.NoError(t, err)
	}
	assert.Zero(t, clock.Timers())
	assert.LessOrEqual(t, goroutines(), before)

	p, err := jobpoll.New(jobpoll.Config{Routes: []jobpoll.Route{{Name: "a", Checker: jobpoll.CheckerFunc(
		func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
		})}}})
	require.NoError(t, err)
	for i := range 2 { // and in a second one, after that
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			ran := make(chan error, 1)
			go func() { ran <- p.Run(ctx) }()
			synctest.Wait()
			_, err := p.Wait(ctx, jobpoll.Job{Route: "a", ID: jobID(i)})
			require.NoError(t, err)
			cancel()
			require.NoError(t, <-ran)
		})
	}
}

func TestTheConfigurationIsCopied(t *testing.T) {
	g := newRigOnly(t)
	delays := secs(5)
	guidance := map[string]jobpoll.Guidance{"": {Floor: 5 * time.Second}}
	g.run(func(_ *jobpoll.Config, r *jobpoll.Route) { r.Schedule.Delays, r.Guidance = delays, guidance })
	delays[0] = time.Hour
	guidance[""] = jobpoll.Guidance{Floor: time.Hour}
	g.watch("a", "running")
	g.to(16)
	assert.Equal(t, []float64{5, 10, 15}, g.looks("a"))
}

func TestARouteAddedWhileRunningIsUsedAtOnce(t *testing.T) {
	g := newRig(t, nil)
	r := caseRoute(g.Provider)
	r.Name = "late"
	require.ErrorIs(t, g.Watch(t.Context(), jobpoll.Job{Route: "late", ID: "x"}), jobpoll.ErrUnknownRoute)
	require.NoError(t, g.AddRoute(r))
	g.Add("x", "succeeded")
	require.NoError(t, g.Watch(t.Context(), jobpoll.Job{Route: "late", ID: "x"}))
	g.to(3)
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("x").Reason)
	assert.Contains(t, g.Metrics().Routes, "late")
}
