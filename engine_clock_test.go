package jobpoll_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// B14(a)
func TestSuspendedMachineLooksSoonAfterWaking(t *testing.T) {
	var jumps atomic.Int64
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
		c.Routes[0].Schedule = every(time.Hour)
		c.Hooks.ClockJumped = func(e jobpoll.JumpEvent) { jumps.Add(int64(e.By)) }
	})
	r.prov.Default("running")
	r.watch("j")
	r.to(10 * time.Minute)
	r.Clock.Suspend(50*time.Minute, false)
	require.Empty(t, r.looks("j"))
	r.to(10*time.Minute + 30*time.Second)
	require.Len(t, r.looks("j"), 1, "within 30 s of waking")
	assert.Equal(t, int64(50*time.Minute), jumps.Load())
	assert.EqualValues(t, 1, r.Metrics().ClockJumps)
	r.to(11 * time.Minute)
	assert.Len(t, r.looks("j"), 1, "one look, not a burst")
}

// B14(b), B14(c)
func TestJobsAreLookedAtBeforeASuspendStopsThem(t *testing.T) {
	for _, monotonicRuns := range []bool{true, false} {
		t.Run(fmt.Sprintf("monotonic runs %v", monotonicRuns), func(t *testing.T) {
			r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
				c.Budget = jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 5, Burst: 5, Concurrent: 10}})
				c.Stop.MaxAge = 2 * time.Hour
				c.Routes[0].Schedule = every(20 * time.Minute)
			})
			r.prov.Default("running")
			r.watch(ids("j", 200)...)
			r.to(10 * time.Minute)
			for _, id := range ids("j", 150) {
				r.prov.Add(id, "succeeded")
			}
			r.Clock.Suspend(8*time.Hour, monotonicRuns)
			r.Clock.Advance(90 * time.Second)
			m := r.Metrics()
			assert.Equal(t, 200, r.prov.Total(), "each has one look")
			requirePaced(t, r.prov.Starts(), 5, 5)
			assert.EqualValues(t, 150, m.Total.Stops[jobpoll.ReasonSucceeded])
			if monotonicRuns {
				assert.EqualValues(t, 50, m.Total.Stops[jobpoll.ReasonDeadline])
			} else {
				assert.Equal(t, 50, m.Total.Unresolved, "no limit has run out on the monotonic clock")
				r.Clock.Advance(2 * time.Hour)
				assert.EqualValues(t, 50, r.Metrics().Total.Stops[jobpoll.ReasonDeadline])
			}
			r.Clock.Settle()
			r.atZero()
		})
	}
}

// B15
func TestClockStepForwardStopsNoJob(t *testing.T) {
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
		c.Stop.MaxAge = 30 * time.Minute
		c.Routes[0].Schedule = every(20 * time.Second)
	})
	r.prov.Add("j", "running; at 120s succeeded")
	r.watch("j")
	r.to(time.Minute)
	r.Clock.Jump(2 * time.Hour)
	r.to(61 * time.Second)
	info, ok := r.Job(key("j"))
	require.True(t, ok)
	assert.Nil(t, info.Outcome, "alive")
	r.to(145 * time.Second)
	o := r.ended("j", jobpoll.ReasonSucceeded)
	assert.LessOrEqual(t, o.Polls, 8, "one extra look at most")
	assert.InDelta(t, 120, o.DetectedAt.Sub(o.FirstPollAt).Seconds(), 21)
	for pr := range r.Profiles() {
		assert.InDelta(t, 120, pr.P50.Seconds(), 25, "the step is not learned as a duration")
	}
	assert.Equal(t, r.Clock.Now().Day(), o.DetectedAt.Day(), "told times are wall times")
}

func TestClockStepBackDelaysNothing(t *testing.T) {
	var jumps []time.Duration
	var mu sync.Mutex
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
		c.Hooks.ClockJumped = func(e jobpoll.JumpEvent) { mu.Lock(); jumps = append(jumps, e.By); mu.Unlock() }
	})
	r.prov.Add("j", "running; at 33s succeeded")
	r.watch("j")
	r.to(12 * time.Second)
	r.Clock.Jump(-3 * time.Hour)
	r.to(36 * time.Second)
	o := r.ended("j", jobpoll.ReasonSucceeded)
	assert.Equal(t, 7, o.Polls, "at 5, 10, 15, … as if nothing had happened")
	mu.Lock()
	assert.Equal(t, []time.Duration{-3 * time.Hour}, jumps)
	mu.Unlock()
	assert.EqualValues(t, 1, r.Metrics().ClockJumps)
	r.atZero()
}

// plainClock is a settable clock without a monotonic reading of any kind.
type plainClock struct {
	mu  sync.Mutex
	off time.Duration
}

func (c *plainClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.off).Round(0)
}

func (c *plainClock) AfterFunc(d time.Duration, f func()) jobpoll.Timer {
	return time.AfterFunc(d, f)
}

func (c *plainClock) set(d time.Duration) { c.mu.Lock(); c.off += d; c.mu.Unlock() }

func TestClockWithoutMonotonicSurvivesStepsBothWays(t *testing.T) {
	for _, step := range []time.Duration{-6 * time.Hour, 6 * time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			clock := &plainClock{}
			bubble(t, func(prov *polltest.Provider) jobpoll.Config {
				prov.Default("running")
				return jobpoll.Config{Clock: clock, Stop: jobpoll.StopRules{MaxAge: 2 * time.Hour},
					Budget: jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 5, Burst: 5}}),
					Routes: []jobpoll.Route{{Name: "r", Checker: prov, Schedule: every(30 * time.Second)}}}
			}, func(t *testing.T, p *jobpoll.Poller, prov *polltest.Provider, start time.Time) {
				require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "j"}))
				time.Sleep(65 * time.Second)
				require.Len(t, prov.Looks("j"), 2)
				prov.Add("j", "succeeded")
				clock.set(step)
				for _, id := range ids("more", 20) { // more than the burst
					prov.Add(id, "succeeded")
					require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id}))
				}
				time.Sleep(60 * time.Second)
				synctest.Wait()
				assert.EqualValues(t, 21, p.Metrics().Total.Stops[jobpoll.ReasonSucceeded])
				info, ok := p.Job(key("j"))
				require.True(t, ok)
				require.NotNil(t, info.Outcome, "looked at soon, %d looks", info.Polls)
				assert.Equal(t, jobpoll.ReasonSucceeded, info.Outcome.Reason)
			})
		})
	}
}

// B81
func TestAdvanceRightAfterStartIsTheSameInEachRun(t *testing.T) {
	rounds := 1000
	if testing.Short() {
		rounds = 200
	}
	for i := range rounds {
		clock := polltest.NewClock(time.Time{})
		prov := polltest.NewProvider(clock)
		prov.Default("running")
		p, err := jobpoll.New(jobpoll.Config{Clock: clock, Rand: func() float64 { return 0.5 },
			Routes: []jobpoll.Route{{Name: "r", Checker: prov, Schedule: every(time.Second)}}})
		require.NoError(t, err)
		require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "j"}))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		// Announced before it starts, which is what Advance waits for.
		starting := clock.Busy(func() string { return "starting" })
		go func() { ended <- p.Run(ctx) }()
		require.Eventually(t, func() bool { return clock.Timers() > 0 }, 5*time.Second, 10*time.Microsecond)
		starting()
		if i%2 == 0 {
			clock.Advance(2 * time.Second)
		} else {
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() { clock.Advance(time.Second) })
			}
			wg.Wait()
		}
		require.Equal(t, 2, prov.Total(), "round %d", i)
		cancel()
		require.NoError(t, <-ended)
		require.Zero(t, clock.Timers())
	}
}

// B83(a)
func TestADayInABubble(t *testing.T) {
	bubble(t, func(prov *polltest.Provider) jobpoll.Config {
		prov.Default("running")
		return jobpoll.Config{Stop: jobpoll.StopRules{MaxAge: 23 * time.Hour},
			Budget: jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 5, Burst: 5, Concurrent: 10}}),
			Routes: []jobpoll.Route{{Name: "r", Checker: prov}}}
	}, func(t *testing.T, p *jobpoll.Poller, prov *polltest.Provider, start time.Time) {
		for i, id := range ids("j", 100) {
			prov.AddAt(id, start, fmt.Sprintf("queued; at 5m running; at %dm succeeded", 6+i))
			require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id, Expected: time.Duration(6+i) * time.Minute}))
		}
		require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "never"}))
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		m := p.Metrics()
		assert.EqualValues(t, 100, m.Total.Stops[jobpoll.ReasonSucceeded])
		assert.EqualValues(t, 1, m.Total.Stops[jobpoll.ReasonDeadline])
		t.Logf("%d looks in 24 h", prov.Total())
	})
}

// B83(b): with a clock at 2001-01-01 all that the engine tells is on it.
func TestAllTimesFollowTheInjectedClock(t *testing.T) {
	store := newShakyStore(nil)
	var stamps []time.Time
	var mu sync.Mutex
	store.seen = func(batch []jobpoll.Record) {
		mu.Lock()
		defer mu.Unlock()
		for _, rec := range batch {
			stamps = append(stamps, rec.UpdatedAt)
			if !rec.ExpiresAt.IsZero() {
				stamps = append(stamps, rec.ExpiresAt.Add(-30*24*time.Hour))
			}
		}
	}
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
		c.Store = store
		c.Budget = jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 1, Burst: 1}})
		c.Stop.MaxAge = 10 * time.Minute
	})
	r.prov.Default("running")
	r.prov.Add("j", "running; at 20s succeeded completed expires 1h")
	r.prov.Add("limited", "429 retry-after 1h")
	r.watch("j")
	r.to(25 * time.Second)
	r.watch("limited", "limit")
	r.to(11 * time.Minute)
	day := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	near := func(what string, at time.Time) {
		t.Helper()
		assert.WithinDuration(t, day, at, 2*time.Hour, what)
	}
	for _, o := range r.rec.Outcomes() {
		near("submitted", o.Job.SubmittedAt)
		if o.Polls > 0 {
			near("first", o.FirstPollAt)
			near("last", o.LastPollAt)
		}
		near("detected", o.DetectedAt)
		if o.Job.ID == "limited" {
			near("retry at", o.RetryAt)
		}
	}
	assert.Len(t, r.rec.Outcomes(), 3)
	m := r.Metrics()
	near("metrics", m.At)
	near("closed", m.Budgets["account/r"].Status.ClosedUntil)
	for pr := range r.Profiles() {
		near("profile", pr.LastAt)
	}
	mu.Lock()
	defer mu.Unlock()
	require.NotEmpty(t, stamps)
	for _, at := range stamps {
		near("record", at)
	}
}

// B83(b): the package reads the system's time in clock.go only.
func TestOnlyTheClockReadsTheSystemTime(t *testing.T) {
	banned := map[string]bool{"Now": true, "After": true, "Sleep": true, "NewTimer": true, "Tick": true, "NewTicker": true,
		"AfterFunc": true, "Since": true, "Until": true}
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	files := 0
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || name == "clock.go" {
			continue
		}
		files++
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, 0)
		require.NoError(t, err)
		pkg := ""
		for _, imp := range f.Imports {
			if path, _ := strconv.Unquote(imp.Path.Value); path == "time" {
				if pkg = "time"; imp.Name != nil {
					pkg = imp.Name.Name
				}
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && banned[sel.Sel.Name] {
				if id, ok := sel.X.(*ast.Ident); ok && pkg != "" && id.Name == pkg {
					t.Errorf("%s: time.%s outside clock.go", fset.Position(n.Pos()), sel.Sel.Name)
				}
			}
			return true
		})
	}
	require.Greater(t, files, 20)
}

// A Poller that was built outside of any bubble works inside one, and in the
// next one, which begins at the same instant again.
func TestPollerBuiltOutsideRunsInTwoBubbles(t *testing.T) {
	prov := polltest.NewProvider(bubbleClock{})
	rec := &polltest.Recorder{}
	for name, budget := range map[string]*jobpoll.Budget{
		"no limits": nil, "limits": jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 5, Burst: 2}}),
	} {
		t.Run(name, func(t *testing.T) {
			p, err := jobpoll.New(jobpoll.Config{Budget: budget, Callbacks: rec.Callbacks(),
				Routes: []jobpoll.Route{{Name: "r", Checker: prov, Schedule: every(5 * time.Second)}}})
			require.NoError(t, err)
			for round := range 2 {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					ended := make(chan error)
					go func() { ended <- p.Run(ctx) }()
					for _, id := range ids(fmt.Sprintf("%s%d-", name, round), 10) {
						prov.Add(id, "running; at 60s succeeded")
						require.NoError(t, p.Watch(ctx, jobpoll.Job{Route: "r", ID: id}))
					}
					time.Sleep(time.Duration(10-8*round) * time.Minute)
					synctest.Wait()
					m := p.Metrics()
					assert.EqualValues(t, 10*(round+1), m.Total.Stops[jobpoll.ReasonSucceeded])
					assert.Zero(t, m.Total.Unresolved)
					assert.Less(t, m.Total.Lateness.Sum, 20.0, "no look waits for the time of the bubble before")
					cancel()
					require.NoError(t, <-ended)
				})
			}
		})
	}
}
