package jobpoll_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// charged is a route with a budget of its own; nil for that of the account.
func charged(name string, b *jobpoll.Budget) jobpoll.Route {
	return jobpoll.Route{Name: name, Budget: b, Checker: jobpoll.CheckerFunc(func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
		return jobpoll.Report{State: jobpoll.StateRunning}, nil
	})}
}

func TestTwoNodesOfOneNameAreRefused(t *testing.T) {
	none := jobpoll.Limits{}
	root := func(name string) *jobpoll.Budget { return jobpoll.NewBudget(name, none) }
	shared, twins := root("shared"), root("twins")
	_, twin := twins.Child("x", none), twins.Child("x", none)
	withChild := root("a")
	child := withChild.Child("b", none)
	deep := root("a")
	deep.Child("b", none).Child("c", none)
	for name, c := range map[string]struct {
		budget *jobpoll.Budget
		routes []jobpoll.Route
		want   []string // in the error; nil: none
	}{
		"two accounts of two routes":         {nil, []jobpoll.Route{charged("r", root("acc")), charged("s", root("acc"))}, []string{`"acc"`, `route "r"`, `route "s"`}},
		"the account and that of a route":    {root("acc"), []jobpoll.Route{charged("r", root("acc"))}, []string{`"acc"`, "Config.Budget", `route "r"`}},
		"a child and a route of one name":    {withChild, []jobpoll.Route{charged("x", child), charged("b", nil)}, []string{`"a/b"`, `route "b"`}},
		"the same, the other way round":      {withChild, []jobpoll.Route{charged("b", nil), charged("x", child)}, []string{`"a/b"`, `route "b"`}},
		"a child that no route uses":         {withChild, []jobpoll.Route{charged("b", nil)}, []string{`"a/b"`, `route "b"`, "Config.Budget"}},
		"two children of one name":           {nil, []jobpoll.Route{charged("r", twin)}, []string{`"twins/x"`, `route "r"`}},
		"a name with a slash and a child":    {deep, []jobpoll.Route{charged("b/c", nil)}, []string{`"a/b/c"`, `route "b/c"`, "Config.Budget"}},
		"a root that is called as a child":   {withChild, []jobpoll.Route{charged("x", root("a/b"))}, []string{`"a/b"`, `route "x"`}},
		"the name of the default account":    {nil, []jobpoll.Route{charged("r", root("(default)"))}, []string{`"(default)"`, "a nil Config.Budget", `route "r"`}},
		"a name like account beside default": {nil, []jobpoll.Route{charged("r", root("account")), charged("s", nil)}, nil},
		"one node for several routes":        {shared, []jobpoll.Route{charged("r", shared), charged("s", shared), charged("t", nil)}, nil},
		"nodes of one tree":                  {nil, []jobpoll.Route{charged("r", child), charged("s", withChild)}, nil},
		"a route that is called as its root": {root("acc"), []jobpoll.Route{charged("acc", nil)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(err error) {
				if c.want == nil {
					require.NoError(t, err)
					return
				}
				require.ErrorContains(t, err, "jobpoll: budget ")
				for _, s := range append(c.want, "another name", "same *Budget") {
					assert.ErrorContains(t, err, s)
				}
			}
			_, err := jobpoll.New(jobpoll.Config{Budget: c.budget, Routes: c.routes})
			check(err)

			p, err := jobpoll.New(jobpoll.Config{Budget: c.budget})
			require.NoError(t, err)
			var all error
			for _, r := range c.routes {
				err := p.AddRoute(r)
				if all = errors.Join(all, err); err != nil { // nothing of it has stayed
					require.NoError(t, p.AddRoute(charged(r.Name, jobpoll.NewBudget("free", none))))
				}
			}
			check(all)
		})
	}
}

// A tree is gone over once, however many routes are charged to it.
func TestAFaultOfABudgetIsToldOnceForAllItsRoutes(t *testing.T) {
	twins := jobpoll.NewBudget("twins", jobpoll.Limits{})
	nodes := []*jobpoll.Budget{twins.Child("x", jobpoll.Limits{}), twins.Child("x", jobpoll.Limits{}), twins}
	for _, account := range []*jobpoll.Budget{nil, twins} {
		_, err := jobpoll.New(jobpoll.Config{Budget: account, Routes: []jobpoll.Route{charged("r", nodes[0]), charged("s", nodes[1]), charged("t", nodes[2])}})
		require.Error(t, err)
		assert.Equal(t, 1, strings.Count(err.Error(), `budget "twins/x"`), err)
	}
}

func TestANodeThatIsMadeAfterNewIsSeenByTheNextRoute(t *testing.T) {
	account := jobpoll.NewBudget("a", jobpoll.Limits{})
	p, err := jobpoll.New(jobpoll.Config{Budget: account})
	require.NoError(t, err)
	account.Child("late", jobpoll.Limits{})
	require.ErrorContains(t, p.AddRoute(charged("late", nil)), `"a/late"`)
}

func TestABudgetOfTwoPollersHasOneNodeForARouteOfBoth(t *testing.T) {
	account := jobpoll.NewBudget("a", jobpoll.Limits{})
	for range 3 {
		p, err := jobpoll.New(jobpoll.Config{Budget: account, Routes: []jobpoll.Route{charged("r", nil)}})
		require.NoError(t, err)
		require.NoError(t, p.AddRoute(charged("s", nil)))
		assert.Len(t, p.Metrics().Budgets, 3)
	}
}

// The account of a route beside that of the Poller, and two accounts of routes.
func TestStoredCoolDownsOfAllNodesGoOn(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	store := jobpoll.NewMemoryStore(clock)
	limited := true
	start := func(names ...string) *polltest.Harness {
		cfg := jobpoll.Config{Clock: clock, Store: store}
		for _, name := range names {
			cfg.Routes = append(cfg.Routes, jobpoll.Route{Name: name, Budget: jobpoll.NewBudget(name, jobpoll.Limits{}), Checker: jobpoll.CheckerFunc(func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
				if limited && name != "free" {
					return jobpoll.Report{}, &jobpoll.CheckError{Kind: jobpoll.ErrorRateLimited, Hint: jobpoll.Hint{RetryAfter: 20 * time.Minute}}
				}
				return jobpoll.Report{State: jobpoll.StateRunning}, nil
			})})
		}
		return polltest.Start(t, cfg)
	}
	names := []string{"account", "free", "other"}
	h := start(names...)
	for _, name := range names {
		require.NoError(t, h.Watch(t.Context(), jobpoll.Job{Route: name, ID: "first"}))
	}
	clock.Advance(30 * time.Second)
	h.Stop()
	limited = false
	slices.Reverse(names)
	h = start(names...)
	for _, name := range names {
		require.NoError(t, h.Watch(t.Context(), jobpoll.Job{Route: name, ID: "second"}))
	}
	clock.Advance(5 * time.Minute)
	budgets := h.Metrics().Budgets
	for _, name := range names {
		info, known := h.Job(jobpoll.Key{Route: name, ID: "second"})
		require.True(t, known)
		assert.Equal(t, name != "free", info.Polls == 0, name)
		assert.Equal(t, name != "free", !budgets[name].Status.ClosedUntil.IsZero(), name)
	}
	assert.Contains(t, budgets, "(default)")
}
