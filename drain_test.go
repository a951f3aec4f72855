package jobpoll

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestADrainThatHasReturnedIsForgotten(t *testing.T) {
	p, err := New(Config{Routes: []Route{{
		Name: "r", Checker: CheckerFunc(func(context.Context, Job) (Report, error) { return Report{}, nil }),
	}}})
	require.NoError(t, err)
	over, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, p.Drain(over), "nothing is watched")
	require.NoError(t, p.Watch(t.Context(), Job{Route: "r", ID: "a"}))
	for range 3 {
		require.ErrorIs(t, p.Drain(over), context.Canceled, "there is no Run yet, so it waits")
	}
	assert.Empty(t, p.drains)
	require.NoError(t, p.Run(over))
	for range 3 {
		require.ErrorIs(t, p.Drain(t.Context()), ErrShutdown)
	}
	assert.Empty(t, p.drains)
}
