package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

func TestWhatWasSubmittedIsWatchedWhenTheServiceEndsEarly(t *testing.T) {
	var log output
	require.NoError(t, run(t.Context(), []string{"-jobs", "1000", "-for", "1s"}, &log))
	require.Regexp(t, `unresolved=[1-9]`, log.String(), "they are told as unresolved, not lost in silence")
}

func TestAnUnknownFlagIsAnError(t *testing.T) {
	var log output
	require.Error(t, run(t.Context(), []string{"-nonsense"}, &log))
	require.Contains(t, log.String(), "-jobs")
}

// await waits, in real time, for what the service does by itself.
func await(t *testing.T, otherwise string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(otherwise)
		}
	}
}

func read(t *testing.T, url string) jobpoll.Metrics {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	var vars struct{ Jobpoll jobpoll.Metrics }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&vars))
	return vars.Jobpoll
}

// output is a log that can be read while it is written.
type output struct {
	mu sync.Mutex
	b  strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
