package jobpoll_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// B76
func TestPanicsOfUserCodeEndNeitherTheProcessNorOtherJobs(t *testing.T) {
	g := newRigOnly(t)
	g.run(func(_ *jobpoll.Config, r *jobpoll.Route) {
		r.Callbacks.OnUpdate = func(ctx context.Context, u jobpoll.Update) {
			g.OnUpdate(ctx, u)
			if u.Job.ID == "J7" {
				panic("progress of J7")
			}
		}
	})
	g.watch("J7", "running 10%; at 5s running 50%; at 20s running 90%; at 30s succeeded")
	g.watch("J3", `panic "decode of J3"`)
	for i := range 20 {
		g.watch(fmt.Sprintf("other%d", i), "running; at 30s succeeded")
	}
	g.to(900)
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("J7").Reason)
	assert.Len(t, g.Updates(jobOf("J7").Key()), 3)
	o := g.ended("J3")
	assert.Equal(t, jobpoll.ReasonUnreachable, o.Reason)
	assert.Contains(t, o.Message, "panic in Check: decode of J3")
	assert.Equal(t, []float64{2, 4, 8, 16, 32, 60}, gaps(g.looks("J3"))[:6], "with backoff")
	assert.Len(t, g.Looks("J3"), 10)
	for i := range 20 {
		assert.Equal(t, []float64{2, 6, 14, 30}, g.looks(fmt.Sprintf("other%d", i)))
	}
	assert.Len(t, g.panics, 13)
	assert.EqualValues(t, 13, g.Metrics().Panics)
	for _, p := range g.panics {
		if p.Key.ID == "J7" {
			assert.Equal(t, "OnUpdate", p.Where)
			assert.Equal(t, "progress of J7", p.Value)
			assert.Contains(t, string(p.Stack), "callbacks_test.go")
		}
	}
}

func TestAPanicInAHookIsReported(t *testing.T) {
	g := newRigOnly(t)
	g.run(func(cfg *jobpoll.Config, _ *jobpoll.Route) {
		report := cfg.Hooks.Panicked
		cfg.Hooks = jobpoll.Hooks{
			Looked:    func(jobpoll.LookEvent) { panic("looked") },
			Scheduled: func(jobpoll.ScheduleEvent) { panic("scheduled") },
			Stopped:   func(jobpoll.StopEvent) { panic("stopped") },
			Delivered: func(jobpoll.DeliverEvent) { panic("delivered") },
			Panicked:  func(e jobpoll.PanicEvent) { report(e); panic("panicked") },
		}
	})
	g.watch("a", "running; at 5s succeeded")
	g.to(60)
	assert.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
	where := map[string]int{}
	for _, e := range g.panics {
		where[e.Where]++
	}
	assert.Equal(t, map[string]int{"Hooks.Looked": 2, "Hooks.Scheduled": 2, "Hooks.Stopped": 1, "Hooks.Delivered": 1}, where)
	assert.EqualValues(t, 12, g.Metrics().Panics)
}

// B78
func TestASlowCallbackDelaysNobodyElse(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		begun := time.Now()
		b.check = func(_ context.Context, job jobpoll.Job) (jobpoll.Report, error) {
			n := int(time.Since(begun) / (10 * time.Second))
			if n >= 10 {
				return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
			}
			return jobpoll.Report{State: jobpoll.StateRunning, Progress: float64(n) / 10}, nil
		}
		b.callbacks.OnUpdate = func(_ context.Context, u jobpoll.Update) {
			if u.Job.ID == "J1" {
				time.Sleep(60 * time.Second)
			}
		}
		b.start(fiveSeconds)
		for i := range 20 {
			b.watch(fmt.Sprintf("J%d", i+1))
		}
		b.sleep(400)
		for i := 2; i <= 20; i++ {
			id := fmt.Sprintf("J%d", i)
			require.Len(t, b.updatesOf(id), 10)
			for _, u := range b.updatesOf(id)[1:] {
				assert.Zero(t, u.At.Sub(begun)%(10*time.Second))
			}
			assert.Equal(t, 20, b.ended(id).Polls)
		}
		mine := b.updatesOf("J1")
		require.Len(t, mine, 3)
		assert.InDelta(t, 0, mine[0].Progress, 1e-9)
		assert.InDelta(t, 0.6, mine[1].Progress, 1e-9, "merged to the newest")
		assert.InDelta(t, 0.9, mine[2].Progress, 1e-9)
		assert.True(t, mine[1].Change&jobpoll.ChangeProgress != 0)
		assert.Equal(t, jobpoll.ReasonSucceeded, b.ended("J1").Reason)
		assert.Equal(t, 100*time.Second, b.ended("J1").DetectedAt.Sub(begun))
		m := b.Metrics().Callbacks
		assert.EqualValues(t, 9-2, m.Coalesced)
	})
}

// tries answers OnStop so and so many times before it takes the outcome.
func tries(n int, how func() error) (func(context.Context, jobpoll.Outcome) error, func() []float64) {
	var mu sync.Mutex
	var at []float64
	start := time.Now()
	return func(context.Context, jobpoll.Outcome) error {
			mu.Lock()
			at = append(at, time.Since(start).Seconds())
			last := len(at) > n
			mu.Unlock()
			if last {
				return nil
			}
			return how()
		}, func() []float64 {
			mu.Lock()
			defer mu.Unlock()
			return at
		}
}

func TestOnStopIsCalledUntilItTookTheOutcome(t *testing.T) {
	for name, how := range map[string]func() error{
		"error":  func() error { return errors.New("database down") },
		"panic":  func() error { panic("nil map") },
		"nil":    func() error { panic(nil) },
		"Goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *synced) {
				b.check = states(jobpoll.StateRunning, 0, jobpoll.Report{State: jobpoll.StateSucceeded})
				onStop, at := tries(11, how)
				b.callbacks.OnStop = onStop
				var delivered []jobpoll.DeliverEvent
				b.start(func(cfg *jobpoll.Config, _ *jobpoll.Route) {
					cfg.Hooks.Delivered = func(e jobpoll.DeliverEvent) { delivered = append(delivered, e) }
				})
				b.watch("a")
				b.sleep(3)
				assert.Equal(t, 1, b.Metrics().Callbacks.Undelivered)
				assert.NotNil(t, b.info("a").Outcome)
				assert.False(t, b.info("a").Delivered)
				b.sleep(7200)
				assert.Equal(t, []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}, gaps(at()))
				require.Len(t, delivered, 12)
				for i, e := range delivered {
					assert.Equal(t, i+1, e.Attempt)
					assert.Equal(t, i == 11, e.Err == nil)
				}
				m := b.Metrics().Callbacks
				assert.EqualValues(t, 12, m.Stops)
				assert.EqualValues(t, 11, m.StopFailures)
				assert.Zero(t, m.Undelivered)
				assert.True(t, b.info("a").Delivered)
			})
		})
	}
}

func TestOnUpdateThatEndsItsGoroutineLosesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = climbing()
		b.callbacks.OnUpdate = func(context.Context, jobpoll.Update) {
			time.Sleep(12 * time.Second) // the next change comes meanwhile
			runtime.Goexit()
		}
		b.start(fiveSeconds)
		b.watch("a")
		b.sleep(300)
		assert.GreaterOrEqual(t, len(b.updatesOf("a")), 7)
		assert.Equal(t, jobpoll.ReasonSucceeded, b.ended("a").Reason)
		last := b.updatesOf("a")[len(b.updatesOf("a"))-1]
		assert.InDelta(t, 0.9, last.Progress, 1e-9)
	})
}

func TestCallbacksOfOneJobNeverOverlapAndUpdatesComeFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		var mu sync.Mutex
		in := map[string]int{}
		var order []string
		enter := func(id, what string) {
			mu.Lock()
			in[id]++
			assert.Equal(t, 1, in[id], "two callbacks of a job at once")
			order = append(order, what)
			mu.Unlock()
			time.Sleep(7 * time.Second)
			mu.Lock()
			in[id]--
			mu.Unlock()
		}
		b.check = climbing()
		b.callbacks.OnUpdate = func(_ context.Context, u jobpoll.Update) { enter(u.Job.ID, "update") }
		n := 0
		b.callbacks.OnStop = func(_ context.Context, o jobpoll.Outcome) error {
			enter(o.Job.ID, "stop")
			if n++; n < 4 {
				return errors.New("again")
			}
			return nil
		}
		b.start(fiveSeconds)
		k := b.watch("a")
		b.sleep(99.5)
		b.sleep(4)
		for range 20 { // pokes of all kinds while it is told
			_ = b.PollNow(k)
			_ = b.Abandon(t.Context(), k, nil)
			_ = b.Notify(t.Context(), jobpoll.Notice{Key: k, Report: jobpoll.Report{State: jobpoll.StateFailed}, Trust: jobpoll.TrustAuthoritative})
			b.sleep(1)
		}
		b.sleep(100)
		assert.Equal(t, []string{"stop", "stop", "stop", "stop"}, order[len(order)-4:])
		assert.Equal(t, "update", order[len(order)-5])
		assert.Equal(t, 4, n)
	})
}

func TestCallbacksThatBlockHoldUpNoOtherJob(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = states(jobpoll.StateRunning, 4*time.Second, jobpoll.Report{State: jobpoll.StateSucceeded})
		release := make(chan struct{})
		b.callbacks.OnStop = func(_ context.Context, o jobpoll.Outcome) error {
			if o.Job.Profile == "blocks" {
				<-release
			}
			return nil
		}
		b.start(func(cfg *jobpoll.Config, _ *jobpoll.Route) { cfg.Workers = 2 })
		for i := range 300 {
			job := jobOf(jobID(i))
			if i < 200 {
				job.Profile = "blocks"
			}
			require.NoError(t, b.Watch(t.Context(), job))
		}
		b.sleep(30)
		for i := range 300 {
			assert.Equal(t, jobpoll.ReasonSucceeded, b.ended(jobID(i)).Reason)
		}
		assert.Equal(t, 200, b.Metrics().Callbacks.Undelivered)
		close(release)
		synctest.Wait()
		assert.Zero(t, b.Metrics().Callbacks.Undelivered)
	})
}

// A callback that outlives its Run is not called a second time by the next.
func TestACallbackThatOutlivesItsRunIsNotDoubled(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = states(jobpoll.StateRunning, 0, jobpoll.Report{State: jobpoll.StateSucceeded})
		release := make(chan error)
		b.callbacks.OnStop = func(context.Context, jobpoll.Outcome) error { return <-release }
		b.start(nil)
		b.watch("a")
		b.sleep(3)
		b.cancel()
		require.ErrorContains(t, <-b.ran, "jobpoll: r/a: a callback has not returned")
		b.run()
		b.sleep(60)
		assert.Len(t, b.stops("a"), 1)
		release <- errors.New("not taken")
		b.sleep(0.5)
		assert.Len(t, b.stops("a"), 1)
		b.sleep(2)
		require.Len(t, b.stops("a"), 2, "but once it has failed")
		release <- nil
		b.sleep(400)
		assert.Len(t, b.stops("a"), 2)
		assert.True(t, b.info("a").Delivered)
	})
}

func TestUserCodeMayCallBackIntoThePoller(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		touch := func(k jobpoll.Key) {
			if b.Poller == nil {
				return
			}
			_, _ = b.Job(k)
			_, _ = b.Find("nobody")
			_ = b.PollNow(k)
			_ = b.Metrics()
			for range b.Jobs() {
				break
			}
			for range b.Profiles() {
				break
			}
			for range b.Follow(t.Context(), k) {
				break
			}
			_ = b.Notify(context.Background(), jobpoll.Notice{Key: k, Report: jobpoll.Report{State: jobpoll.StateRunning}})
		}
		inner := states(jobpoll.StateRunning, 20*time.Second, jobpoll.Report{State: jobpoll.StateSucceeded})
		b.check = func(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
			touch(job.Key())
			_ = b.Watch(ctx, jobpoll.Job{Route: "r", ID: "child-of-" + job.ID[:1]})
			return inner(ctx, job)
		}
		b.callbacks.OnUpdate = func(_ context.Context, u jobpoll.Update) { touch(u.Job.Key()) }
		b.callbacks.OnStop = func(ctx context.Context, o jobpoll.Outcome) error {
			touch(o.Job.Key())
			_, err := b.Wait(ctx, o.Job)
			return err
		}
		b.start(func(cfg *jobpoll.Config, r *jobpoll.Route) {
			cfg.Hooks = jobpoll.Hooks{
				Looked:    func(e jobpoll.LookEvent) { touch(e.Job.Key()) },
				Scheduled: func(e jobpoll.ScheduleEvent) { _, _ = b.Job(e.Key); _ = b.Metrics() },
				Stopped:   func(e jobpoll.StopEvent) { touch(e.Outcome.Job.Key()) },
				Delivered: func(e jobpoll.DeliverEvent) { touch(e.Key) },
				Noticed:   func(e jobpoll.NoticeEvent) { _, _ = b.Job(e.Key) },
			}
		})
		b.watch("a")
		b.sleep(200)
		assert.Equal(t, jobpoll.ReasonSucceeded, b.ended("a").Reason)
		assert.Equal(t, jobpoll.ReasonSucceeded, b.ended("child-of-a").Reason)
	})
}

func TestACallbackOfTheRouteReplacesThatOfTheConfig(t *testing.T) {
	g := newRigOnly(t)
	var route []jobpoll.Key
	g.run(func(_ *jobpoll.Config, r *jobpoll.Route) {
		r.Callbacks.OnStop = func(_ context.Context, o jobpoll.Outcome) error { route = append(route, o.Job.Key()); return nil }
	})
	k := g.watch("a", "running; at 5s succeeded")
	g.to(60)
	assert.Equal(t, []jobpoll.Key{k}, route)
	assert.Empty(t, g.Outcomes())
	assert.Len(t, g.Updates(k), 1, "the other one stays")
}
