package loopback_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// plainWire is a wire of somebody else: ids in the body, the state in the
// status code, and a result that is no JSON.
type plainWire struct{}

func (plainWire) ID(n int) string { return strconv.Itoa(n) }

func (plainWire) Read(r *http.Request, body json.RawMessage) loopback.Call {
	var sent struct{ ID string }
	_ = json.Unmarshal(body, &sent)
	if sent.ID == "" {
		return loopback.Call{Op: loopback.OpSubmit}
	}
	return loopback.Call{Op: loopback.OpStatus, ID: sent.ID}
}

func (plainWire) Write(r loopback.Reply) loopback.Answer {
	if r.Entry.State != jobpoll.StateSucceeded {
		return loopback.Answer{Status: http.StatusAccepted, Body: r.Entry.Remaining.Seconds()}
	}
	return loopback.Answer{Status: http.StatusOK, Header: http.Header{"Content-Type": {"video/mp4"}}, Body: []byte("\x00\x01")}
}

func (plainWire) Error(p loopback.Problem) loopback.Answer {
	return loopback.Answer{Status: http.StatusNotFound, Body: []string{p.Message}}
}

func TestAWireOfSomebodyElsesIsServed(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	server := started(t, loopback.Config{
		Wire: plainWire{}, Clock: clock, Script: func(int, json.RawMessage) string { return "succeeded; at 0s running eta 30s once" },
	})
	c := client(t)
	do(t, c, "POST", server.URL(), `{}`)
	clock.Advance(8 * time.Second)
	resp, body := do(t, c, "POST", server.URL(), `{"id":"1"}`)
	assert.Equal(t, http.StatusAccepted, resp.StatusCode)
	assert.Equal(t, "22", body)
	resp, body = do(t, c, "POST", server.URL(), `{"id":"1"}`)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	assert.Equal(t, "video/mp4", resp.Header.Get("Content-Type"))
	assert.Equal(t, "\x00\x01", body)
	resp, _ = do(t, c, "POST", server.URL(), `{"id":"2"}`)
	assert.Equal(t, http.StatusNotFound, resp.StatusCode)
}
