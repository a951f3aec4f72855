package polltest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

func newPoller(t *testing.T, cfg jobpoll.Config) *jobpoll.Poller {
	t.Helper()
	p, err := jobpoll.New(cfg)
	require.NoError(t, err)
	return p
}

func TestRunBringsAPollerUpAndEndsIt(t *testing.T) {
	clock := NewClock(time.Time{})
	provider := NewProvider(clock)
	provider.Default("running; at 40s succeeded")
	var seen Recorder
	p := newPoller(t, jobpoll.Config{
		Clock: clock, Callbacks: seen.Callbacks(), Routes: []jobpoll.Route{{Name: "r", Checker: provider}},
	})
	end := Run(clock, p)
	require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "a"}))
	clock.Advance(2 * time.Minute)
	require.Len(t, seen.Outcomes(), 1)
	require.NoError(t, end())
	require.NoError(t, end())
	require.Zero(t, clock.Timers())
}

func TestRunReturnsWhatThePollersRunReturned(t *testing.T) {
	clock := NewClock(time.Time{})
	p := newPoller(t, jobpoll.Config{Clock: clock})
	first := Run(clock, p)
	require.ErrorIs(t, Run(clock, p)(), jobpoll.ErrRunning)
	require.NoError(t, first())
}

func TestEndMovesTheClockOverTheShutdownGrace(t *testing.T) {
	clock := NewClock(time.Time{})
	p := newPoller(t, jobpoll.Config{
		Clock: clock, ShutdownGrace: time.Hour,
		Routes: []jobpoll.Route{{Name: "r", CheckTimeout: 2 * time.Hour, Checker: jobpoll.CheckerFunc(
			func(ctx context.Context, _ jobpoll.Job) (jobpoll.Report, error) {
				return jobpoll.Report{}, clock.Sleep(ctx, 24*time.Hour)
			})}},
	})
	end := Run(clock, p)
	require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "a"}))
	clock.Advance(10 * time.Second) // the look is under way
	require.NoError(t, end())
	require.GreaterOrEqual(t, clock.Monotonic(), time.Hour)
}
