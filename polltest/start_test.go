package polltest

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var jobA = jobpoll.Job{Route: "fal", ID: "a"}

func watching(clock *Clock, c jobpoll.Checker) jobpoll.Config {
	cfg := jobpoll.Config{Routes: []jobpoll.Route{{Name: "fal", Checker: c}}}
	if clock != nil {
		cfg.Clock = clock
	}
	return cfg
}

func TestStartRunsAPollerOnTheClock(t *testing.T) {
	clock := NewClock(time.Time{})
	p := NewProvider(clock)
	p.Add("a", `queued; at 8s running 20% eta 30s; at 40s succeeded output {"url":"u"} completed`)
	var seen Recorder
	cfg := watching(clock, p)
	cfg.Callbacks = seen.Callbacks()
	h := Start(t, cfg)
	assert.Same(t, clock, h.Clock)
	require.NoError(t, h.Watch(t.Context(), jobA))
	h.Clock.Advance(39 * time.Second)
	assert.Empty(t, seen.Outcomes())
	h.Clock.Advance(10 * time.Minute)

	out, ok := seen.Outcome(jobA.Key())
	require.True(t, ok)
	assert.Equal(t, jobpoll.ReasonSucceeded, out.Reason)
	assert.Len(t, seen.Outcomes(), 1)
	assert.NotEmpty(t, seen.Updates(jobA.Key()))
	assert.Empty(t, seen.Updates(jobpoll.Key{Route: "fal", ID: "other"}))
	_, ok = seen.Outcome(jobpoll.Key{Route: "fal", ID: "other"})
	assert.False(t, ok)
	h.Stop()
	assert.Zero(t, clock.Timers())
}

// B81
func TestStartThenAdvanceLooksTheSameNumberOfTimes(t *testing.T) {
	looks := -1
	for range 1000 {
		tb := &fakeTB{}
		tb.run(func() {
			clock := NewClock(time.Time{})
			p := NewProvider(clock)
			p.Add("a", "queued; at 1m succeeded")
			h := Start(tb, watching(clock, p))
			require.NoError(t, h.Watch(t.Context(), jobA))
			h.Clock.Advance(2 * time.Minute)
			if looks < 0 {
				looks = p.Total()
			}
			require.Equal(t, looks, p.Total())
		})
		require.Empty(t, tb.fatal)
		require.Empty(t, tb.errors)
	}
	assert.Positive(t, looks)
}

func TestStartMakesAClockWhereThereIsNone(t *testing.T) {
	h := Start(t, watching(nil, NewProvider(NewClock(time.Time{}))))
	assert.Equal(t, year2001, h.Clock.Now())
}

func TestStartRefusesAForeignClockAndAFaultyConfig(t *testing.T) {
	tb := &fakeTB{}
	cfg := watching(nil, NewProvider(NewClock(time.Time{})))
	cfg.Clock = plainClock{NewClock(time.Time{})}
	tb.run(func() { Start(tb, cfg) })
	require.Len(t, tb.fatal, 1)
	assert.Contains(t, tb.fatal[0], "Start needs a *polltest.Clock, or none, as Config.Clock; it is a polltest.plainClock")

	tb = &fakeTB{}
	tb.run(func() { Start(tb, jobpoll.Config{Workers: -1, Routes: []jobpoll.Route{{}}}) })
	require.NotEmpty(t, tb.fatal)
	assert.Contains(t, tb.fatal[0], "polltest: Start: ")
}

// A look that lasts as long as its context does not keep a test from ending.
func TestStopMovesTheClockUntilRunReturns(t *testing.T) {
	clock := NewClock(time.Time{})
	p := NewProvider(clock)
	p.Add("a", "hang")
	p.Add("b", "slow 5m queued")
	tb := &fakeTB{}
	tb.run(func() {
		h := Start(tb, watching(clock, p))
		_ = h.Watch(t.Context(), jobA)
		_ = h.Watch(t.Context(), jobpoll.Job{Route: "fal", ID: "b"})
		for range 100 {
			if clock.Advance(time.Second); p.InFlight() == 2 {
				break
			}
		}
	})
	assert.Empty(t, tb.fatal)
	assert.Empty(t, tb.errors)
	assert.Zero(t, p.InFlight())
	assert.Zero(t, clock.Timers())
}

func TestStartNamesACheckThatBlocks(t *testing.T) {
	clock := NewClock(time.Time{})
	clock.limit = 200 * time.Millisecond
	release := make(chan struct{})
	tb := &fakeTB{}
	tb.run(func() {
		h := Start(tb, watching(clock, jobpoll.CheckerFunc(func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			<-release
			return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
		})))
		_ = h.Watch(t.Context(), jobA)
		defer close(release)
		clock.Advance(time.Minute)
		t.Error("not reached")
	})
	require.Len(t, tb.fatal, 1)
	assert.Contains(t, tb.fatal[0], "still busy: check of fal/a (goroutine in chan receive)")
}

func TestATimerLeftOnTheClockFailsTheTest(t *testing.T) {
	clock := NewClock(time.Time{})
	clock.AfterFunc(time.Hour, func() {}) // was there before
	tb := &fakeTB{}
	tb.run(func() {
		Start(tb, watching(clock, NewProvider(clock)))
		clock.AfterFunc(time.Hour, func() {})
	})
	assert.Empty(t, tb.fatal)
	assert.Equal(t, []string{"polltest: 1 timers more are left on the clock than before Run"}, tb.errors)
}

func TestStopLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 10 {
		h := Start(t, watching(nil, NewProvider(NewClock(time.Time{}))))
		h.Stop()
	}
	for range 1000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}
