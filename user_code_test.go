package jobpoll_test

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unwrapping is a Checker that does something when it is unwrapped.
type unwrapping struct {
	jobpoll.Checker
	unwrap func() jobpoll.Checker
}

func (w unwrapping) Unwrap() jobpoll.Checker { return w.unwrap() }

func TestAWrapperMayCallBackAndPanicWhereItIsUnwrapped(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) { // a deadlock ends it
		b.check = func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
		}
		b.start(nil)
		inner := jobpoll.CheckerFunc(b.check)
		add := func(name string, unwrap func() jobpoll.Checker) error {
			return b.AddRoute(jobpoll.Route{Name: name, Checker: unwrapping{inner, unwrap}})
		}
		calls := 0
		require.NoError(t, add("calls back", func() jobpoll.Checker {
			calls++
			b.Metrics()
			_, _ = b.Job(jobOf("a").Key())
			return inner
		}))
		assert.NotZero(t, calls)
		assert.PanicsWithValue(t, "unwrapped", func() { _ = add("panics", func() jobpoll.Checker { panic("unwrapped") }) })
		loop := unwrapping{Checker: inner}
		loop.unwrap = func() jobpoll.Checker { return loop }
		require.NoError(t, b.AddRoute(jobpoll.Route{Name: "loops", Checker: loop}))

		b.watch("a")
		time.Sleep(time.Minute)
		assert.Equal(t, jobpoll.ReasonSucceeded, b.ended("a").Reason)
	})
}

// badLog is a slog.Handler that panics.
type badLog struct{ slog.Handler }

func (badLog) Enabled(_ context.Context, l slog.Level) bool {
	if l == slog.LevelWarn {
		panic("in Enabled")
	}
	return true
}
func (badLog) Handle(context.Context, slog.Record) error { panic("in Handle") }

func TestRandAndLoggerMayPanic(t *testing.T) {
	for name, change := range map[string]func(*jobpoll.Config){
		"Rand":   func(cfg *jobpoll.Config) { cfg.Rand = func() float64 { panic("in Rand") } },
		"Logger": func(cfg *jobpoll.Config) { cfg.Logger = slog.New(badLog{}) },
		"all": func(cfg *jobpoll.Config) {
			cfg.Rand = func() float64 { panic("in Rand") }
			cfg.Logger = slog.New(badLog{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			failed := false
			r := rigOf(t, func(r *rig, cfg *jobpoll.Config) {
				change(cfg)
				cfg.Callbacks.OnStop = func(ctx context.Context, o jobpoll.Outcome) error {
					if !failed {
						failed = true
						panic("in OnStop")
					}
					return r.rec.Callbacks().OnStop(ctx, o)
				}
			})
			r.prov.Add("a", "running; at 12s succeeded")
			r.watch("a")
			r.Clock.Jump(time.Hour)
			r.to(2 * time.Minute)
			r.ended("a", jobpoll.ReasonSucceeded)
			r.atZero()
			assert.Greater(t, r.Metrics().Panics, uint64(1))
		})
	}
}

// A failed require in a hook ends the goroutine that it runs on. (Where that is
// the one of Run, Run ends.)
func TestAHookThatEndsItsGoroutineLosesNothing(t *testing.T) {
	for name, set := range map[string]func(h *jobpoll.Hooks, die func()){
		"Looked":      func(h *jobpoll.Hooks, die func()) { h.Looked = func(jobpoll.LookEvent) { die() } },
		"Scheduled":   func(h *jobpoll.Hooks, die func()) { h.Scheduled = func(jobpoll.ScheduleEvent) { die() } },
		"UnknownWord": func(h *jobpoll.Hooks, die func()) { h.UnknownWord = func(jobpoll.WordEvent) { die() } },
		"Stopped":     func(h *jobpoll.Hooks, die func()) { h.Stopped = func(jobpoll.StopEvent) { die() } },
		"Delivered":   func(h *jobpoll.Hooks, die func()) { h.Delivered = func(jobpoll.DeliverEvent) { die() } },
	} {
		t.Run(name, func(t *testing.T) {
			died := false
			r := rigOf(t, func(_ *rig, cfg *jobpoll.Config) {
				set(&cfg.Hooks, func() {
					if !died && onTheEngine() {
						died = true
						runtime.Goexit()
					}
				})
				cfg.Store = newShakyStore(cfg.Clock)
			})
			r.prov.Add("a", "\"WHAT\"; at 7s running; at 12s succeeded")
			r.watch("a")
			r.to(time.Minute)
			assert.True(t, died)
			assert.Equal(t, []float64{5, 10, 15}, r.looks("a"))
			r.ended("a", jobpoll.ReasonSucceeded)
			r.atZero()
		})
	}
}

// onTheEngine reports whether the caller is on a goroutine of a look or a callback.
func onTheEngine() bool {
	buf := make([]byte, 64<<10)
	s := string(buf[:runtime.Stack(buf, false)])
	return strings.Contains(s, "worker).work") || strings.Contains(s, "runServing")
}
