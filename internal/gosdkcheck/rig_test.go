package gosdkcheck

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/loopback"
)

const (
	key   = "key-of-gosdkcheck"
	wrong = "wrong-" + key
	// patience is for one test: none comes near it unless a client waits for what
	// does not come.
	patience = 30 * time.Second
)

// The lives of jobs, in seconds of the server.
const (
	succeeds = `queued; at 3s running 20%; at 6s succeeded`
	fails    = `queued; at 2s failed fault "out of memory"`
	rejected = `queued; at 2s failed rejected "no face found"`
	filtered = `queued; at 2s failed filtered "unsafe"`
	canceled = `queued; at 2s canceled`
	expires  = `queued; at 2s expired`
	goesOn   = `queued; at 1s running`
	busy     = `queued; at 2s running; at 3s 429 "busy" retry-after 20ms once; at 6s succeeded`
	gateway  = `queued; at 2s running; at 3s 503 once; at 6s succeeded`
	refused  = `queued; at 1s 429 "busy"`
)

// aim starts a server whose jobs all live by the script. A second passes on its clock
// with each request, so that no client has to wait for the end of a job, and how
// often it looks does not depend on how fast it is.
func aim(t *testing.T, wire loopback.Wire, script string) *loopback.Server {
	clock := polltest.NewClock(time.Time{})
	server := loopback.Start(loopback.Config{
		Wire: wire, Clock: clock, Credential: key, PageSize: 3, Retry: loopback.RetryMillis,
		Script: func(int, json.RawMessage) string { return script },
		Fault: func(int, *http.Request) loopback.Fault {
			clock.Advance(time.Second)
			return loopback.Fault{}
		},
	})
	t.Cleanup(func() {
		assert.Zero(t, server.Stats().Unknown, "requests for what the server has not")
		server.Close()
	})
	return server
}

func limit(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
