package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestASmallLoadIsTakenAndAccountedFor(t *testing.T) {
	s, err := startService(t.Context(), 200)
	require.NoError(t, err)
	defer s.close()
	o := order{Jobs: 200, Senders: 4, Rate: 500, For: 100 * time.Millisecond, URL: s.url + hookPath}
	f := send(t.Context(), o)
	require.Zero(t, f.Failed, f.Why)
	require.Positive(t, f.Sent)
	o.First, o.Rate, o.For = f.Sent, 0, time.Minute
	rest := send(t.Context(), o)
	require.Zero(t, rest.Failed, rest.Why)
	require.Equal(t, 200, f.Sent+rest.Sent)
	require.NoError(t, s.allTold(t.Context(), 200))
}
