//go:build unix

// A process can send itself a signal on these systems only.

package main

import (
	"net/http"
	"os"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

func TestTheServiceWatchesAllJobsAndEndsOnASignal(t *testing.T) {
	const jobs = 40
	var log output
	ended := make(chan error, 1)
	go func() { ended <- run(t.Context(), []string{"-jobs", "40", "-for", "1m"}, &log) }()

	var url string
	await(t, "it does not say where it serves", func() bool {
		if m := regexp.MustCompile(`url=(\S+)`).FindStringSubmatch(log.String()); m != nil {
			url = m[1]
		}
		return url != ""
	})

	// What was watched is, in the end, all told, and every gauge is back at zero.
	var m jobpoll.Metrics
	await(t, "not all jobs ended", func() bool {
		m = read(t, url)
		for _, b := range m.Budgets {
			if b.Jobs > 0 { // the slot of a job is free a moment after its end was told
				return false
			}
		}
		return m.Total.Watched == jobs && m.Callbacks.Stops == jobs && m.Callbacks.Undelivered == 0
	})
	require.EqualValues(t, jobs, m.Total.PollsPerCompletion.Count)
	require.EqualValues(t, jobs, m.Total.Stops[jobpoll.ReasonSucceeded]+m.Total.Stops[jobpoll.ReasonFailed])
	require.Positive(t, m.Total.Looks)
	for name, route := range m.Routes {
		for gauge, n := range map[string]int{
			"unresolved": route.Unresolved, "in flight": route.InFlight, "backlog": route.Backlog.Jobs, "failing": route.Failing,
		} {
			require.Zero(t, n, "%s of %s", gauge, name)
		}
	}
	for name, b := range m.Budgets {
		for gauge, n := range map[string]int{
			"jobs": b.Jobs, "looks in flight": b.Status.InFlight, "submissions in flight": b.Submit.InFlight,
			"looks waiting": b.Status.Waiting, "submissions waiting": b.Submit.Waiting,
		} {
			require.Zero(t, n, "%s of %s", gauge, name)
		}
	}
	require.Zero(t, m.ParkedNotices)

	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	require.NoError(t, self.Signal(syscall.SIGTERM))
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(30 * time.Second):
		t.Fatal("SIGTERM does not end it")
	}
	require.Contains(t, log.String(), "unresolved=0")
	_, err = http.Get(url)
	require.Error(t, err, "it still serves")
}
