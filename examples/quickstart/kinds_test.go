package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each provider takes an order and tells what becomes of it.
func TestEachProviderTakesAnOrder(t *testing.T) {
	for _, name := range names() {
		o := order{n: 1, provider: name, takes: time.Minute}
		vendors, err := startVendors([]string{name}, []order{o}, newClock(1))
		require.NoError(t, err, name)
		job, _, err := vendors[0].adapter.Submit(t.Context(), o.submission())
		require.NoError(t, err, name)
		job.Route = name
		r, err := vendors[0].adapter.Check(t.Context(), job)
		require.NoError(t, err, name)
		require.False(t, r.State.Terminal(), name)
		require.Zero(t, vendors[0].server.Stats().Unknown, name)
		closeAll(vendors)
	}
}
