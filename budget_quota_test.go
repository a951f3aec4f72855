package jobpoll

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// B44(a): a used-up quota holds the submissions of the node and no looks; a look
// that says so holds nothing.
func TestAUsedUpQuotaHoldsSubmissionsAlone(t *testing.T) {
	root := NewBudget("account", Limits{})
	b := root.Child("provider", Limits{})
	spent := &CheckError{Kind: ErrorQuota}
	call := func(lane Lane, err error) {
		g, ok := b.tryAcquire(atSec(1), lane)
		require.True(t, ok)
		g.tree.mu.Lock()
		g.tree.last = atSec(1)
		_, changed := b.answered(atSec(1), lane, atSec(1), readBudgetSignal(err))
		g.tree.mu.Unlock()
		require.Equal(t, lane == LaneSubmit, changed)
		g.done(nil)
	}
	call(LaneStatus, spent)
	require.True(t, b.check(atSec(1), LaneStatus).ok)
	call(LaneSubmit, spent)
	require.False(t, b.check(atSec(60), LaneSubmit).ok)
	require.True(t, b.check(atSec(60), LaneStatus).ok, "looks go on")
	require.True(t, root.check(atSec(60), LaneSubmit).ok, "other providers too")
	require.True(t, b.check(atSec(61).Add(time.Second), LaneSubmit).ok)
	require.Equal(t, 5*mnt, readBudgetSignal(&CheckError{Kind: ErrorQuota, Hint: Hint{RetryAfter: 5 * mnt}}).hint, "a longer wait is obeyed")
}
