package jobpoll

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// rung is when the alarm rings within d.
func rung(a *alarm, d time.Duration) []time.Duration {
	var at []time.Duration
	start := time.Now()
	for end := time.After(d); ; {
		select {
		case <-a.rings:
			at = append(at, time.Since(start))
		case <-end:
			return at
		}
	}
}

func TestTheAlarmRingsAtTheLatestWhenItIsSetFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAlarm(systemClock{}, nil)
		defer a.set(-1)
		a.set(-1)
		require.Empty(t, rung(a, time.Hour), "never")
		a.set(0)
		require.NotEmpty(t, rung(a, time.Millisecond), "at once")
		for _, d := range []time.Duration{5 * sec, 5 * sec, sec, 0, time.Millisecond, time.Millisecond, mnt} {
			a.set(d)
			at := rung(a, max(d, shortestAlarm)+1)
			require.NotEmpty(t, at, d)
			a.set(-1)
			require.Empty(t, rung(a, time.Hour))
		}
		a.set(2 * sec)
		require.Equal(t, []time.Duration{2 * sec}, rung(a, 3*sec))
		a.set(2 * sec) // as after each ring: it goes on by itself
		require.NotEmpty(t, rung(a, 2*sec+1))
	})
}

// A Poller that had nothing to do is woken by a job that is overdue at once.
func TestAnOverdueJobWakesAnIdlePoller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looked := make(chan struct{}, 100)
		p, err := New(Config{Routes: []Route{{Name: "r", Checker: CheckerFunc(func(_ context.Context, _ Job) (Report, error) {
			looked <- struct{}{}
			return Report{State: StateSucceeded}, nil
		})}}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- p.Run(ctx) }()
		synctest.Wait()
		time.Sleep(time.Hour)
		require.NoError(t, p.Watch(ctx, Job{Route: "r", ID: "a", SubmittedAt: time.Now().Add(-time.Minute)}))
		synctest.Wait()
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Len(t, looked, 1)
		cancel()
		require.NoError(t, <-ran)
	})
}
