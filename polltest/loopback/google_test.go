package loopback_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/loopback"
)

func TestAVideoOfVeoIsGivenToWhoHasTheKey(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	scripts := []string{"", `running; at 2s succeeded expires 1h`, `running; at 2s failed filtered "unsafe"`}
	server := started(t, loopback.Config{
		Wire: loopback.Veo(), Clock: clock, Credential: "right", Script: func(n int, _ json.RawMessage) string { return scripts[n] },
	})
	c := client(t)
	for range scripts[1:] {
		resp, body := do(t, c, "POST", server.URL()+"/v1beta/models/veo-x:predictLongRunning", `{}`, "X-Goog-Api-Key", "right")
		require.Equal(t, http.StatusOK, resp.StatusCode, body)
	}
	done, filtered := loopback.Veo().ID(1), loopback.Veo().ID(2)
	steps := []struct {
		after    time.Duration
		file     string
		key      string
		expected int
	}{
		{0, done, "right", http.StatusNotFound},
		{3 * time.Second, filtered, "right", http.StatusNotFound},
		{0, done, "wrong", http.StatusUnauthorized},
		{0, "none", "right", http.StatusNotFound},
		{0, done + "/more", "right", http.StatusNotFound},
		{0, done, "right", http.StatusOK},
		{time.Hour, done, "right", http.StatusNotFound},
	}
	for _, s := range steps {
		clock.Advance(s.after)
		resp, body := do(t, c, "GET", server.URL()+"/v1beta/files/"+s.file+":download?alt=media", "", "X-Goog-Api-Key", s.key)
		assert.Equal(t, s.expected, resp.StatusCode, s)
		if s.expected == http.StatusOK {
			assert.Equal(t, "video/mp4", resp.Header.Get("Content-Type"))
			assert.Equal(t, "the video "+done, body)
		}
	}

	vertex := started(t, loopback.Config{Wire: loopback.VertexVeo()})
	resp, _ := do(t, c, "GET", vertex.URL()+"/v1/files/"+done+":download", "")
	assert.Equal(t, http.StatusNotFound, resp.StatusCode)
	assert.Equal(t, 1, vertex.Stats().Unknown)
}
