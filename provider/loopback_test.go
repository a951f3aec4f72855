package provider

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// Adapter, engine and a provider's wire agree on how a job ends, over HTTP.
func TestAJobIsSubmittedAndFollowedToItsEnd(t *testing.T) {
	type end struct {
		reason  jobpoll.Reason
		failure jobpoll.FailureKind
	}
	scripts := map[string]end{
		"queued; at 5s running 20%; at 40s succeeded":                                {reason: jobpoll.ReasonSucceeded},
		`queued; at 5s running; at 20s failed filtered "moderation"`:                 {jobpoll.ReasonFailed, jobpoll.FailureFiltered},
		`running; at 20s failed`:                                                     {reason: jobpoll.ReasonFailed},
		"running; at 10s 503 once; at 15s 429 retry-after 3s once; at 30s succeeded": {reason: jobpoll.ReasonSucceeded},
	}
	for name, wire := range map[string]loopback.Wire{
		"runway": loopback.Runway(), "kling": loopback.Kling(), "minimax": loopback.MiniMax(), "dashscope": loopback.DashScope(), "veo": loopback.Veo(),
	} {
		t.Run(name, func(t *testing.T) {
			clock := polltest.NewClock(time.Time{})
			next := ""
			server := loopback.Start(loopback.Config{
				Wire: wire, Clock: clock, Credential: fixtureKey, Script: func(int, json.RawMessage) string { return next },
			})
			t.Cleanup(server.Close)
			base := server.URL()
			if name == "veo" {
				base += "/v1beta"
			}
			a := newAdapterFor(t, name, Config{BaseURL: base, Credentials: Secret(fixtureKey), Clock: clock})
			var seen polltest.Recorder
			h := polltest.Start(t, jobpoll.Config{Clock: clock, Callbacks: seen.Callbacks(), Routes: []jobpoll.Route{{Name: name, Checker: a}}})
			ends := map[jobpoll.Key]string{}
			for script := range scripts {
				next = script
				job, _, err := a.Submit(t.Context(), Order{Model: "veo-loopback", Input: map[string]any{"prompt": script}})
				require.NoError(t, err)
				job.Route = name
				require.NoError(t, h.Watch(t.Context(), job))
				ends[job.Key()] = script
			}
			clock.Advance(10 * time.Minute)
			for key, script := range ends {
				o, ok := seen.Outcome(key)
				require.True(t, ok, "%s has not ended: %s", key, script)
				want := scripts[script]
				require.Equal(t, want.reason, o.Reason, "%s: %v", script, o.Err())
				require.Equal(t, want.reason == jobpoll.ReasonSucceeded, HasOutput(o.Report.Output), script)
				if want.failure != jobpoll.FailureUnknown {
					require.Equal(t, want.failure, o.Report.Failure.Kind, script)
				}
			}
			require.Zero(t, server.Stats().Duplicates)
		})
	}
}
