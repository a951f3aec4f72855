package jobpoll

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A call's place goes to the next of the same kind, but not past anything that
// would hold the next one up.
func TestAPlaceInTheBudgetIsHandedOnOnlyWhereTheNextCallMayGo(t *testing.T) {
	wide := Limits{Total: Limit{Rate: 100, Burst: 100, Concurrent: 3}}
	for name, tt := range map[string]struct {
		limits  Limits
		between func(b *Budget)
		ok      bool
	}{
		"nothing in the way":  {wide, func(*Budget) {}, true},
		"its own slot is all": {Limits{Total: Limit{Concurrent: 2}}, func(*Budget) {}, true},
		"no token":            {Limits{Total: Limit{Rate: 0.1, Burst: 2}}, func(*Budget) {}, false},
		"fewer slots": {wide, func(b *Budget) {
			b.SetLimits(Limits{Total: Limit{Rate: 100, Burst: 100, Concurrent: 1}})
		}, false},
		"a slower lane": {wide, func(b *Budget) {
			b.SetLimits(Limits{Total: wide.Total, Status: LaneLimits{Limit: Limit{Concurrent: 1}}})
		}, false},
		"a cool-down": {wide, func(b *Budget) {
			g, _ := b.tryNow(b.tree.source.Load().read(), LaneStatus)
			g.done(&CheckError{Kind: ErrorRateLimited})
		}, false},
		"somebody waits": {wide, func(b *Budget) {
			b.tree.mu.Lock()
			defer b.tree.mu.Unlock()
			b.tree.add(&waiter{wake: func(grant) {}}, b, LaneSubmit)
		}, false},
		"it has ended already": {wide, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBudget("account", tt.limits)
			g, ok := b.tryNow(b.tree.source.Load().read(), LaneStatus)
			require.True(t, ok)
			other, ok := b.tryNow(b.tree.source.Load().read(), LaneStatus)
			require.True(t, ok)
			used := 2
			if tt.between == nil {
				g.done(nil)
				used--
			} else {
				tt.between(b)
			}
			next, ok := g.again(b.tree.source.Load().read())
			require.Equal(t, tt.ok, ok)
			require.Equal(t, used, b.lane[LaneStatus].inFlight)
			if ok {
				g.done(nil) // it means nothing any more
				require.Equal(t, 2, b.lane[LaneStatus].inFlight)
				next.done(nil)
			} else {
				g.done(nil)
			}
			other.done(nil)
			require.Zero(t, b.lane[LaneStatus].inFlight)
		})
	}
}
