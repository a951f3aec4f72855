package jobpoll

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Where remote jobs are not limited, nothing is kept of those that we have only
// stopped watching.
func TestSlotsAreHeldOnlyWhereTheyAreLimited(t *testing.T) {
	for limit, held := range map[int]int{0: 0, 50: 20} {
		p, err := New(Config{
			Budget: NewBudget("account", Limits{Jobs: limit}),
			Routes: []Route{{Name: "r", Checker: CheckerFunc(func(context.Context, Job) (Report, error) { return Report{}, nil })}},
		})
		require.NoError(t, err)
		for i := range 20 {
			job := Job{Route: "r", ID: fmt.Sprint(i)}
			require.NoError(t, p.Watch(t.Context(), job))
			require.NoError(t, p.Abandon(t.Context(), job.Key(), errors.New("enough")))
		}
		require.Len(t, p.holds.byKey, held, "Limits.Jobs %d", limit)
		require.Equal(t, held, p.budget.jobs)
	}
}
