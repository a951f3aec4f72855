package jobpoll

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// Somebody asks a context that was kept for its end after the call and before
// the next one of that worker: it ends then, and the next call has another.
func TestAContextAskedBetweenTwoCallsEnds(t *testing.T) {
	base, cancel := context.WithCancel(t.Context())
	defer cancel()
	var none *callContext
	c := none.renew(base)
	c.release()
	done := c.Done()
	next := c.renew(base)
	require.NotSame(t, c, next)
	select {
	case <-done:
	default:
		t.Fatal("it stays among the children of the Run's context")
	}
	require.NoError(t, next.Err())
	next.release()
	require.Same(t, next, next.renew(base), "one that nobody has asked is used again")
}
