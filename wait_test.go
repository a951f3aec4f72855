package jobpoll_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// states answers with a state until an instant after the start of the bubble,
// then with another.
func states(first jobpoll.State, until time.Duration, then jobpoll.Report) func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
	start := time.Now()
	return func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
		if time.Since(start) < until {
			return jobpoll.Report{State: first, RawStatus: first.String()}, nil
		}
		return then, nil
	}
}

func TestWaitGivesNilIffTheJobSucceeded(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = states(jobpoll.StateRunning, 10*time.Second, jobpoll.Report{State: jobpoll.StateSucceeded, Output: []byte(`{"url": "u"}`)})
		b.start(nil)
		o, err := b.Wait(t.Context(), jobOf("a"))
		require.NoError(t, err)
		assert.Equal(t, jobpoll.ReasonSucceeded, o.Reason)
		out, err := jobpoll.DecodeOutput[struct{ URL string }](o)
		require.NoError(t, err)
		assert.Equal(t, "u", out.URL)

		b.check = states(jobpoll.StateRunning, 0, jobpoll.Report{State: jobpoll.StateFailed, RawStatus: "ERR"})
		_, err = b.Wait(t.Context(), jobOf("b"))
		var stop *jobpoll.StopError
		require.ErrorAs(t, err, &stop)
		require.ErrorIs(t, err, jobpoll.ReasonFailed)
		require.NotErrorIs(t, err, jobpoll.ReasonSucceeded)
		assert.Equal(t, "b", stop.Outcome.Job.ID)
		assert.Equal(t, "ERR", stop.Outcome.Report.RawStatus)
	})
}

// B07(b)
func TestTheEndOfAContextTellsWhatIsKnownOfTheJob(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		asked := time.Now()
		b.check = func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			asked = time.Now()
			return jobpoll.Report{}, &jobpoll.CheckError{Kind: jobpoll.ErrorRateLimited, Status: 429, Hint: jobpoll.Hint{RetryAfter: time.Hour}}
		}
		b.start(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		o, err := b.Wait(ctx, jobOf("a"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var stop *jobpoll.StopError
		require.ErrorAs(t, err, &stop)
		assert.Equal(t, jobpoll.ReasonNone, stop.Outcome.Reason)
		assert.Equal(t, jobpoll.ErrorRateLimited, stop.Outcome.ErrorKind)
		assert.Contains(t, stop.Outcome.Message, "429")
		assert.Equal(t, asked.Add(time.Hour).UTC(), stop.Outcome.RetryAt)
		assert.Equal(t, "a", stop.Outcome.Job.ID)
		assert.Zero(t, stop.Outcome.DetectedAt, "no end was detected")
		assert.Equal(t, o, stop.Outcome)
		assert.Contains(t, err.Error(), "waiting ended before the job did")
		assert.Nil(t, b.info("a").Outcome, "the job goes on")
	})
}

func TestACauseOfTheContextIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = states(jobpoll.StateRunning, time.Hour, jobpoll.Report{})
		b.start(nil)
		why := errors.New("the user closed the tab")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		_, err := b.Wait(ctx, jobOf("a"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, why)
	})
}

func TestShutdownEndsWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = states(jobpoll.StateRunning, time.Hour, jobpoll.Report{})
		b.start(nil)
		waited := make(chan error, 1)
		go func() { _, err := b.Wait(t.Context(), jobOf("a")); waited <- err }()
		b.sleep(20)
		began := time.Now()
		b.stop()
		err := <-waited
		assert.Equal(t, began, time.Now())
		require.ErrorIs(t, err, jobpoll.ErrShutdown)
		var stop *jobpoll.StopError
		require.ErrorAs(t, err, &stop)
		assert.Equal(t, jobpoll.StateRunning, stop.Outcome.State)
		assert.Positive(t, stop.Outcome.Polls)
		assert.Empty(t, b.outcomes)
		assert.Nil(t, b.info("a").Outcome)

		// One that begins now would wait for nobody.
		_, err = b.Wait(t.Context(), jobOf("a"))
		require.ErrorIs(t, err, jobpoll.ErrShutdown)
		assert.ErrorContains(t, err, "wait for the same id again")
		b.check = states(jobpoll.StateRunning, 0, jobpoll.Report{State: jobpoll.StateSucceeded})
		b.run()
		synctest.Wait()
		_, err = b.Wait(t.Context(), jobOf("a"))
		require.NoError(t, err)
	})
}

// B71
func TestAllWaitersAreTold(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = states(jobpoll.StateRunning, 30*time.Second, jobpoll.Report{State: jobpoll.StateSucceeded})
		b.start(nil)
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				if i%2 == 1 {
					time.Sleep(time.Duration(i) * time.Second)
				}
				o, err := b.Wait(t.Context(), jobOf("a"))
				assert.NoError(t, err)
				assert.Equal(t, jobpoll.ReasonSucceeded, o.Reason)
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := b.Wait(ctx, jobOf("a"))
		require.ErrorIs(t, err, context.DeadlineExceeded, "one leaves early")
		wg.Wait()
		assert.Len(t, b.stops("a"), 1)
		assert.LessOrEqual(t, b.ended("a").Polls, 6, "one stream")
	})
}

func TestWaitDoesNotWaitForOnStop(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = states(jobpoll.StateRunning, 0, jobpoll.Report{State: jobpoll.StateFailed})
		release := make(chan struct{})
		b.callbacks.OnStop = func(ctx context.Context, o jobpoll.Outcome) error { <-release; return nil }
		b.start(nil)
		_, err := b.Wait(t.Context(), jobOf("a"))
		require.ErrorIs(t, err, jobpoll.ReasonFailed)
		_, err = b.Wait(t.Context(), jobOf("a"))
		require.ErrorIs(t, err, jobpoll.ReasonFailed, "at once")
		close(release)
		synctest.Wait()
		_, err = b.Wait(t.Context(), jobOf("a"))
		require.ErrorIs(t, err, jobpoll.ReasonFailed, "from what is kept")
	})
}

func TestWaitForAnAbandonedJobStartsANewWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = states(jobpoll.StateRunning, 40*time.Second, jobpoll.Report{State: jobpoll.StateSucceeded})
		b.callbacks.OnStop = func(ctx context.Context, o jobpoll.Outcome) error { time.Sleep(20 * time.Second); return nil }
		b.start(nil)
		first := make(chan error, 1)
		go func() { _, err := b.Wait(t.Context(), jobOf("a")); first <- err }()
		b.sleep(3)
		require.NoError(t, b.Abandon(t.Context(), jobOf("a").Key(), nil))
		require.ErrorIs(t, <-first, jobpoll.ReasonAbandoned)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := b.Wait(ctx, jobOf("a"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		o, err := b.Wait(t.Context(), jobOf("a"))
		require.NoError(t, err)
		assert.Equal(t, jobpoll.ReasonSucceeded, o.Reason)
		b.sleep(30)
		assert.Len(t, b.stops("a"), 2)
	})
}

func TestAbandonEndsARenewedWatchToo(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = states(jobpoll.StateRunning, time.Hour, jobpoll.Report{})
		b.callbacks.OnStop = func(ctx context.Context, o jobpoll.Outcome) error { time.Sleep(20 * time.Second); return nil }
		b.start(nil)
		k := b.watch("a")
		b.sleep(3)
		require.NoError(t, b.Abandon(t.Context(), k, nil))
		waited := make(chan error, 1)
		go func() { _, err := b.Wait(t.Context(), jobOf("a")); waited <- err }()
		b.sleep(1)
		require.NoError(t, b.Abandon(t.Context(), k, nil))
		require.ErrorIs(t, <-waited, jobpoll.ReasonAbandoned)
		b.sleep(60)
		assert.Len(t, b.stops("a"), 1)
		assert.True(t, b.info("a").Delivered)
	})
}

func TestTheOneLineWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check := jobpoll.CheckerFunc(states(jobpoll.StateRunning, 100*time.Second, jobpoll.Report{State: jobpoll.StateSucceeded}))
		o, err := jobpoll.Wait(t.Context(), check, jobpoll.Job{ID: "a"})
		require.NoError(t, err)
		assert.Equal(t, jobpoll.ReasonSucceeded, o.Reason)

		check = states(jobpoll.StateRunning, 0, jobpoll.Report{State: jobpoll.StateFailed})
		_, err = jobpoll.Wait(t.Context(), check, jobpoll.Job{Route: "fal", ID: "a"})
		require.ErrorIs(t, err, jobpoll.ReasonFailed)
		assert.Contains(t, err.Error(), "jobpoll: fal/a: ")

		check = states(jobpoll.StateRunning, time.Hour, jobpoll.Report{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = jobpoll.Wait(ctx, check, jobpoll.Job{ID: "a"})
		require.ErrorIs(t, err, context.DeadlineExceeded)

		_, err = jobpoll.Wait(t.Context(), nil, jobpoll.Job{ID: "a"})
		require.ErrorContains(t, err, "Checker")
		_, err = jobpoll.Wait(t.Context(), check, jobpoll.Job{})
		require.ErrorContains(t, err, "Job.ID is empty")
	})
}

var errMine = errors.New("mine")

func TestWaitCarriesTheErrorBehindTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			return jobpoll.Report{}, &jobpoll.CheckError{Kind: jobpoll.ErrorInvalid, Status: 400, Err: errMine}
		}
		b.start(nil)
		_, err := b.Wait(t.Context(), jobOf("a"))
		require.ErrorIs(t, err, jobpoll.ReasonInvalid)
		require.ErrorIs(t, err, errMine)
		var ce *jobpoll.CheckError
		require.ErrorAs(t, err, &ce)
		assert.Equal(t, 400, ce.Status)
	})
}

func TestTheShortWaitEndsWithItsContextWhateverTheCheckerDoes(t *testing.T) {
	for name, takes := range map[string]time.Duration{"heeds the context": 0, "does not": time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *synced) {
				ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
				defer cancel()
				start := time.Now()
				o, err := jobpoll.Wait(ctx, jobpoll.CheckerFunc(func(ctx context.Context, _ jobpoll.Job) (jobpoll.Report, error) {
					if takes == 0 {
						<-ctx.Done()
						return jobpoll.Report{}, ctx.Err()
					}
					time.Sleep(takes)
					return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
				}), jobpoll.Job{ID: "a"})
				assert.Equal(t, 7*time.Second, time.Since(start))
				var stop *jobpoll.StopError
				require.ErrorAs(t, err, &stop)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, jobpoll.ReasonNone, o.Reason)
				assert.Equal(t, "a", o.Job.ID)
				time.Sleep(takes) // what goes on ends with the call
			})
		})
	}
}

func TestDrainWaitsUntilEveryEndHasBeenTaken(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = states(jobpoll.StateRunning, 30*time.Second, jobpoll.Report{State: jobpoll.StateSucceeded})
		b.callbacks.OnStop = func(context.Context, jobpoll.Outcome) error { time.Sleep(10 * time.Second); return nil }
		b.start(fiveSeconds)
		require.NoError(t, b.Drain(t.Context()), "nothing is watched")
		b.watch("a")
		b.watch("b")
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, b.Drain(short), context.DeadlineExceeded)
		require.NoError(t, b.Drain(t.Context()))
		assert.Len(t, b.outcomes, 2)
		b.check = states(jobpoll.StateRunning, time.Hour, jobpoll.Report{})
		b.watch("c")
		failed := make(chan error, 1)
		go func() { failed <- b.Drain(t.Context()) }()
		synctest.Wait()
		b.stop()
		require.ErrorIs(t, <-failed, jobpoll.ErrShutdown)
		require.ErrorIs(t, b.Drain(t.Context()), jobpoll.ErrShutdown)
	})
}
