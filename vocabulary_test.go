package jobpoll_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

var someWords = jobpoll.Words{
	"pending": jobpoll.StateQueued, "in_progress": jobpoll.StateRunning, "succeeded": jobpoll.StateSucceeded, "completed": jobpoll.StateSucceeded,
	"failed": jobpoll.StateFailed, "aborted": jobpoll.StateCanceled, "expired": jobpoll.StateExpired,
}

func TestWordsAreFoundWhateverTheirCaseAndSpaces(t *testing.T) {
	for word, want := range map[string]jobpoll.State{
		"succeeded": jobpoll.StateSucceeded, " Succeeded ": jobpoll.StateSucceeded, "COMPLETED": jobpoll.StateSucceeded, "\tFailed\n": jobpoll.StateFailed,
		"EXPIRED": jobpoll.StateExpired, "": jobpoll.StateUnknown, " ": jobpoll.StateUnknown, "succeed": jobpoll.StateUnknown, "NOT_START": jobpoll.StateUnknown,
		"in progress": jobpoll.StateUnknown, "\x00": jobpoll.StateUnknown,
	} {
		assert.Equal(t, want, someWords.State(word), "%q", word)
	}
	assert.Equal(t, jobpoll.StateUnknown, jobpoll.Words(nil).State("succeeded"))
}

// B31
func TestAGatewaysFormOfAWordEndsTheJob(t *testing.T) {
	for word, want := range map[string]jobpoll.Reason{
		" Succeeded ": jobpoll.ReasonSucceeded, "COMPLETED": jobpoll.ReasonSucceeded, "EXPIRED": jobpoll.ReasonExpired,
	} {
		var seen polltest.Recorder
		h := polltest.Start(t, jobpoll.Config{Callbacks: seen.Callbacks(), Routes: []jobpoll.Route{{Name: "r", Checker: jobpoll.CheckerFunc(
			func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
				return jobpoll.Report{State: someWords.State(word), RawStatus: word}, nil
			})}}})
		job := jobpoll.Job{Route: "r", ID: "a"}
		require.NoError(t, h.Watch(t.Context(), job))
		h.Clock.Advance(10 * time.Second)
		o, ok := seen.Outcome(job.Key())
		require.True(t, ok, "%q", word)
		assert.Equal(t, want, o.Reason, "%q", word)
		assert.Equal(t, 1, o.Polls)
		assert.Equal(t, word, o.Report.RawStatus)
		assert.Equal(t, want != jobpoll.ReasonSucceeded, o.Err() != nil)
	}
}
