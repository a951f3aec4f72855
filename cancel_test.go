package jobpoll_test

import (
	"context"
	"errors"
	"net/url"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCancelAsksTheProviderAndGoesOnWatching(t *testing.T) {
	g := newRigOnly(t)
	g.OnCancel = func(_ context.Context, job jobpoll.Job) error { g.Add(job.ID, "canceled"); return nil }
	g.run(func(_ *jobpoll.Config, r *jobpoll.Route) { r.Checker = wrapped{wrapped{g.Provider}} })
	k := g.watch("a", "running")
	g.to(3)
	require.NoError(t, g.Poller.Cancel(t.Context(), k, errors.New("changed my mind")))
	require.Len(t, g.Cancels("a"), 1)
	g.to(3.5)
	assert.Equal(t, []float64{2, 3}, g.looks("a"), "a look as soon as the floors allow")
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonCanceled, o.Reason)
	assert.Equal(t, jobpoll.ViaPoll, o.Via)
	require.ErrorIs(t, g.Poller.Cancel(t.Context(), k, nil), jobpoll.ErrUnknownJob)
}

func TestAResultWinsOverACancel(t *testing.T) {
	g := newRig(t, nil)
	k := g.watch("a", "running; at 3s succeeded")
	g.to(2.5)
	require.NoError(t, g.Poller.Cancel(t.Context(), k, nil))
	g.to(10)
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
}

func TestARefusedCancelIsTold(t *testing.T) {
	g := newRigOnly(t)
	g.OnCancel = func(context.Context, jobpoll.Job) error {
		return &jobpoll.CheckError{Kind: jobpoll.ErrorRateLimited, Status: 429, Hint: jobpoll.Hint{RetryAfter: 20 * time.Second}}
	}
	g.run(nil)
	k := g.watch("a", "running")
	g.to(3)
	err := g.Poller.Cancel(t.Context(), k, nil)
	var ce *jobpoll.CheckError
	require.ErrorAs(t, err, &ce)
	assert.Contains(t, err.Error(), "jobpoll: r/a: cancel: ")
	g.to(60)
	assert.Empty(t, g.Outcomes())
	for _, at := range g.looks("a") {
		assert.False(t, at > 3 && at < 23, "the 429 cools the route: a look at %v", at)
	}
}

// Some providers do not know any more what was canceled.
func TestAJobThatIsGoneAfterItsCancelIsCanceled(t *testing.T) {
	forget := func(p *polltest.Provider) {
		p.OnCancel = func(_ context.Context, job jobpoll.Job) error { p.Add(job.ID, "404"); return nil }
	}
	g := newRigOnly(t)
	forget(g.Provider)
	g.run(nil)
	k := g.watch("a", "running")
	g.to(3)
	require.NoError(t, g.Poller.Cancel(t.Context(), k, nil))
	g.to(3.5)
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonCanceled, o.Reason)
	assert.Equal(t, jobpoll.StateCanceled, o.State)

	store := newShakyStore(nil)
	before := onStore(t, store, nil, nil)
	forget(before.prov)
	before.learnWatch("r", "b", "", time.Hour)
	require.NoError(t, before.Cancel(t.Context(), key("b"), nil))
	after := onStore(t, store, before, nil)
	after.Clock.Advance(5 * time.Minute)
	assert.Equal(t, jobpoll.ReasonCanceled, after.rec.Outcomes()[0].Reason, "it is remembered")
}

// Most refuse to cancel what has ended: then the end is near to be seen.
func TestACancelThatIsRefusedAsTooLateLooksAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		looks bool
	}{
		"invalid":     {&jobpoll.CheckError{Kind: jobpoll.ErrorInvalid, Status: 400}, true},
		"not known":   {&jobpoll.CheckError{Kind: jobpoll.ErrorNoSuchJob, Status: 404}, true},
		"unavailable": {&jobpoll.CheckError{Kind: jobpoll.ErrorTransient, Status: 503}, false},
		"policy":      {&jobpoll.CheckError{Kind: jobpoll.ErrorPolicy, Status: 403}, false},
		"plain":       {errors.New("reset"), false},
	} {
		g := newRigOnly(t)
		g.OnCancel = func(context.Context, jobpoll.Job) error { return c.err }
		g.run(nil)
		k := g.watch("a", "running; at 2500ms succeeded")
		g.to(3)
		require.ErrorIs(t, g.Poller.Cancel(t.Context(), k, nil), c.err, name)
		g.to(3.5)
		if want := []float64{2, 3}; c.looks {
			assert.Equal(t, want, g.looks("a"), name)
			assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason, name)
		} else {
			assert.Equal(t, want[:1], g.looks("a"), name)
		}
	}
}

func TestCancelWithoutACancelerOrAJob(t *testing.T) {
	g := newRigOnly(t)
	g.run(func(_ *jobpoll.Config, r *jobpoll.Route) { r.Checker = jobpoll.CheckerFunc(g.Check) })
	k := g.watch("a", "running")
	require.ErrorIs(t, g.Poller.Cancel(t.Context(), k, nil), jobpoll.ErrNoCanceler)
	k.ID = "b"
	require.ErrorIs(t, g.Poller.Cancel(t.Context(), k, nil), jobpoll.ErrUnknownJob)
	require.ErrorIs(t, g.Abandon(t.Context(), k, nil), jobpoll.ErrUnknownJob)
	require.ErrorIs(t, g.PollNow(k), jobpoll.ErrUnknownJob)
}

// A Canceler that panics or ends its goroutine gives its place in the budget back.
func TestACancelThatPanicsLeavesNothingBehind(t *testing.T) {
	g := newRigOnly(t)
	how := func() { panic("cancel") }
	g.OnCancel = func(context.Context, jobpoll.Job) error { how(); return nil }
	g.run(func(cfg *jobpoll.Config, _ *jobpoll.Route) {
		cfg.Budget = jobpoll.NewBudget("acc", jobpoll.Limits{Total: jobpoll.Limit{Concurrent: 1}})
	})
	k := g.watch("a", "running; at 5s succeeded")
	require.ErrorContains(t, g.Poller.Cancel(t.Context(), k, nil), "panic in Cancel")
	assert.Len(t, g.panics, 1)
	how = runtime.Goexit
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Poller.Cancel(context.Background(), k, nil)
	}()
	<-done
	g.to(10)
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
}

func TestACancelLastsNoLongerThanACallMay(t *testing.T) {
	for name, hang := range map[string]func(context.Context){
		"heeds its context": func(ctx context.Context) { <-ctx.Done() },
		"does not":          func(context.Context) { time.Sleep(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *synced) {
				b.check = func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
					return jobpoll.Report{State: jobpoll.StateRunning}, nil
				}
				b.start(func(_ *jobpoll.Config, r *jobpoll.Route) {
					r.CheckTimeout = 3 * time.Second
					r.Checker = hangingCanceler{r.Checker, hang}
				})
				k := b.watch("a")
				start := time.Now()
				err := b.Cancel(t.Context(), k, nil)
				assert.Equal(t, 3*time.Second, time.Since(start))
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.ErrorContains(t, err, "jobpoll: r/a: cancel: ")

				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start = time.Now()
				require.ErrorIs(t, b.Cancel(ctx, k, nil), context.DeadlineExceeded)
				assert.Equal(t, time.Second, time.Since(start), "or the end of ctx")
				assert.Zero(t, b.Metrics().Budgets["(default)"].Status.InFlight)
				time.Sleep(time.Hour)
			})
		})
	}
}

type hangingCanceler struct {
	jobpoll.Checker
	hang func(context.Context)
}

func (c hangingCanceler) Cancel(ctx context.Context, _ jobpoll.Job) error {
	c.hang(ctx)
	return context.Cause(ctx)
}

func TestAbandonIsLocalAndStopsACallUnderWay(t *testing.T) {
	g := newRig(t, nil)
	k := g.watch("a", "hang")
	g.to(5)
	require.Equal(t, 1, g.InFlight())
	require.NoError(t, g.Abandon(t.Context(), k, errors.New("the customer left")))
	g.Clock.Settle()
	assert.Zero(t, g.InFlight())
	o := g.ended("a")
	assert.Equal(t, jobpoll.ReasonAbandoned, o.Reason)
	assert.Equal(t, jobpoll.ViaLocal, o.Via)
	assert.Equal(t, "the customer left", o.Message)
	assert.Equal(t, 1, o.Polls)
	assert.Empty(t, g.Cancels("a"))
	require.ErrorIs(t, g.Abandon(t.Context(), k, nil), jobpoll.ErrUnknownJob, "it is told already")
	g.to(100)
	assert.Len(t, g.Looks("a"), 1)
	m := g.Metrics().Routes["r"]
	assert.Zero(t, m.InFlight)
	assert.Zero(t, m.Unresolved)
}

// B75
func TestAStopForTimeCancelsTheRemoteJobOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		cancel func(g *trial) func(context.Context, jobpoll.Job) error
		result string
		at     float64
	}{
		"ok": {func(*trial) func(context.Context, jobpoll.Job) error { return nil }, "ok", 60},
		"hangs": {func(*trial) func(context.Context, jobpoll.Job) error {
			return func(ctx context.Context, _ jobpoll.Job) error { <-ctx.Done(); return context.Cause(ctx) }
		}, "the call timed out", 65},
		"fails": {func(*trial) func(context.Context, jobpoll.Job) error {
			return func(context.Context, jobpoll.Job) error { return errors.New("404 not found, api_key=abcdefghijklmnop") }
		}, "404 not found", 60},
		"panics": {func(*trial) func(context.Context, jobpoll.Job) error {
			return func(context.Context, jobpoll.Job) error { panic("no") }
		}, "panic in Cancel: no", 60},
		"exits": {func(*trial) func(context.Context, jobpoll.Job) error {
			return func(context.Context, jobpoll.Job) error { runtime.Goexit(); return nil }
		}, "ended its goroutine", 60},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRigOnly(t)
			g.OnCancel = tc.cancel(g)
			g.run(func(_ *jobpoll.Config, r *jobpoll.Route) { r.Stop.MaxAge, r.Stop.CancelRemote = time.Minute, true })
			g.watch("a", "running")
			g.to(200)
			require.Len(t, g.Cancels("a"), 1)
			o := g.ended("a")
			assert.Equal(t, jobpoll.ReasonDeadline, o.Reason)
			assert.Contains(t, o.RemoteCancel, tc.result)
			assert.NotContains(t, o.RemoteCancel, "abcdefghijklmnop")
			assert.Equal(t, 60.0, g.after(o))
		})
	}
}

// B75
func TestNothingIsSentWithoutCancelRemote(t *testing.T) {
	g := newRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) { r.Stop.MaxAge = time.Minute })
	g.watch("a", "running")
	g.to(200)
	assert.Empty(t, g.Cancels("a"))
	assert.Empty(t, g.ended("a").RemoteCancel)
}

func TestARemoteCancelThatIgnoresItsContextIsCutOff(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		hung := make(chan struct{})
		b.check = states(jobpoll.StateRunning, time.Hour, jobpoll.Report{})
		b.start(func(_ *jobpoll.Config, r *jobpoll.Route) {
			r.Stop.MaxAge, r.Stop.CancelRemote = time.Minute, true
			r.Checker = struct {
				jobpoll.Checker
				jobpoll.Canceler
			}{r.Checker, cancelFunc(func(context.Context, jobpoll.Job) error { <-hung; return nil })}
		})
		b.watch("a")
		b.sleep(66)
		assert.Equal(t, jobpoll.ReasonDeadline, b.ended("a").Reason)
		assert.Equal(t, "the call timed out", b.ended("a").RemoteCancel)
		close(hung)
		synctest.Wait()
	})
}

type cancelFunc func(context.Context, jobpoll.Job) error

func (f cancelFunc) Cancel(ctx context.Context, job jobpoll.Job) error { return f(ctx, job) }

func TestPollNowKeepsToTheFloors(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		change func(*jobpoll.Config, *jobpoll.Route)
		job    func(*jobpoll.Job, time.Time)
		next   float64
	}{
		"the least gap": {"running", nil, nil, 3},
		"a longer gap":  {"running", func(_ *jobpoll.Config, r *jobpoll.Route) { r.Schedule.MinDelay = 3 * time.Second }, nil, 5},
		"a published pace": {"running", func(_ *jobpoll.Config, r *jobpoll.Route) {
			r.Guidance = map[string]jobpoll.Guidance{"": {Floor: 3500 * time.Millisecond}}
		}, nil, 5.5},
		"a hint":      {"running retry-after 20s", nil, nil, 22},
		"a cool-down": {"429 retry-after 20s", nil, nil, 22},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, tc.change)
			k := g.watch("a", tc.script)
			g.to(2.2)
			for range 5 {
				require.NoError(t, g.PollNow(k))
			}
			g.to(24)
			require.GreaterOrEqual(t, len(g.looks("a")), 2)
			assert.GreaterOrEqual(t, g.looks("a")[1], tc.next)
			assert.LessOrEqual(t, g.looks("a")[1], tc.next+1)
		})
	}
}

func TestPollNowDuringALookAsksForOneMore(t *testing.T) {
	g := newRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) { r.Schedule.Delays = secs(10) })
	k := g.watch("a", "slow 3s running")
	g.to(11)
	require.Equal(t, 1, g.InFlight())
	require.NoError(t, g.PollNow(k))
	require.NoError(t, g.PollNow(k))
	g.to(40)
	assert.Equal(t, []float64{10, 14, 27, 40}, g.looks("a"))
}

func TestTheErrorOfACancelShowsNoSecret(t *testing.T) {
	cause := &url.Error{Op: "Post", URL: "https://u:hunter2@api.example/cancel?key=abcdefgh12345678", Err: context.DeadlineExceeded}
	g := newRigOnly(t)
	g.OnCancel = func(context.Context, jobpoll.Job) error { return cause }
	g.run(nil)
	k := g.watch("a", "running")
	err := g.Poller.Cancel(t.Context(), k, nil)
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Contains(t, err.Error(), "jobpoll: r/a: cancel: ")
	assert.NotContains(t, err.Error(), "hunter2")
	assert.NotContains(t, err.Error(), "abcdefgh")
}
