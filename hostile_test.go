package jobpoll_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hostileRig watches one job of a Checker that answers with f.
func hostileRig(t *testing.T, f func(n int) (jobpoll.Report, error)) *trial {
	g := newRigOnly(t)
	n := 0
	store := jobpoll.NewMemoryStore(g.Clock)
	g.run(func(cfg *jobpoll.Config, r *jobpoll.Route) {
		cfg.Store = store
		r.Stop.UnknownLooks = 4
		r.Checker = jobpoll.CheckerFunc(func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			n++
			return f(n)
		})
	})
	g.watch("a", "")
	return g
}

// survives checks that what became of the job can be stored, told and read back.
func survives(t *testing.T, g *trial) jobpoll.Outcome {
	t.Helper()
	g.to(1900)
	o := g.ended("a")
	data, err := json.Marshal(o)
	require.NoError(t, err)
	require.True(t, utf8.Valid(data))
	var back jobpoll.Outcome
	require.NoError(t, json.Unmarshal(data, &back))
	assert.Equal(t, o.Reason, back.Reason)
	info, ok := g.Job(jobOf("a").Key())
	require.True(t, ok)
	_, err = json.Marshal(info)
	require.NoError(t, err)
	assert.Zero(t, g.Metrics().StoreErrors)
	assert.Zero(t, g.Metrics().Total.InFlight)
	assert.Zero(t, g.Metrics().Total.Unresolved)
	at := g.Clock.Now()
	assert.False(t, o.DetectedAt.After(at))
	assert.GreaterOrEqual(t, o.DetectionDelay, time.Duration(0))
	return o
}

func TestWildReportsAreTamed(t *testing.T) {
	for name, r := range map[string]jobpoll.Report{
		"NaN":               {State: jobpoll.StateRunning, Progress: math.NaN()},
		"infinite progress": {State: jobpoll.StateRunning, Progress: math.Inf(1)},
		"negative":          {State: jobpoll.StateQueued, Progress: -3, QueuePosition: -7, Remaining: -time.Hour, Hint: jobpoll.Hint{RetryAfter: -time.Hour}},
		"huge":              {State: jobpoll.StateQueued, Progress: math.MaxFloat64, QueuePosition: math.MaxInt, Remaining: math.MaxInt64},
		"year 9999": {State: jobpoll.StateRunning, StartedAt: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
			CompletedAt: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), ResultExpiresAt: time.Unix(math.MaxInt64/2, 0)},
		"year 0":                   {State: jobpoll.StateRunning, StartedAt: time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), CompletedAt: time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)},
		"a zone that JSON refuses": {State: jobpoll.StateRunning, StartedAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.FixedZone("x", 30*3600))},
		"a state out of range":     {State: 250, RawStatus: "x"},
		"a scope out of range":     {State: jobpoll.StateRunning, Hint: jobpoll.Hint{RetryAfter: time.Second, Scope: 99}},
		"a long word":              {State: jobpoll.StateUnknown, RawStatus: strings.Repeat("\xffABC\xc3", 200_000)},
		"a long reference":         {State: jobpoll.StateRunning, Ref: strings.Repeat("r", 10<<20)},
		"a bad reference":          {State: jobpoll.StateRunning, Ref: "\xff"},
		"a failure out of range":   {State: jobpoll.StateFailed, Failure: &jobpoll.Failure{Kind: 77, Code: strings.Repeat("c", 1<<20), Message: "\xff\xfe" + strings.Repeat("m", 1<<20)}},
		"a large output":           {State: jobpoll.StateSucceeded, Output: bytes.Repeat([]byte(" "), 100<<20)},
		"no JSON":                  {State: jobpoll.StateSucceeded, Output: []byte("<html>\x00\xff")},
		"half a JSON":              {State: jobpoll.StateSucceeded, Output: []byte(`{"url":"`)},
		"JSON that is no UTF-8":    {State: jobpoll.StateSucceeded, Output: []byte("{\"url\":\"\xff\"}")},
		"no JSON that grows":       {State: jobpoll.StateSucceeded, Output: bytes.Repeat([]byte{0}, 1<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			o := survives(t, hostileRig(t, func(int) (jobpoll.Report, error) { return r, nil }))
			assert.LessOrEqual(t, len(o.Report.RawStatus), 128)
			assert.LessOrEqual(t, len(o.Job.Ref), 64<<10)
			assert.LessOrEqual(t, len(o.Report.Output), jobpoll.MaxOutput)
			if len(r.Output) > 0 {
				assert.Equal(t, jobpoll.ReasonSucceeded, o.Reason)
				assert.True(t, json.Valid(o.Report.Output) || o.Report.OutputDropped)
			}
			if o.Report.Failure != nil {
				assert.Equal(t, jobpoll.FailureUnknown, o.Report.Failure.Kind)
				assert.True(t, utf8.ValidString(o.Report.Failure.Message))
			}
			assert.True(t, o.Report.Progress >= 0 && o.Report.Progress <= 1)
		})
	}
}

// nasty is an error of which every method is a trap.
type nasty struct{ how func() }

func (e nasty) Error() string { e.how(); return "nasty" }
func (e nasty) Unwrap() error { e.how(); return nil }
func (e nasty) Is(error) bool { e.how(); return false }
func (e nasty) As(any) bool   { e.how(); return false }

func TestErrorsWhoseMethodsMisbehave(t *testing.T) {
	var self *trial
	for name, err := range map[string]error{
		"panics":         nasty{func() { panic("in a method of an error") }},
		"calls back":     nasty{func() { _ = self.PollNow(jobOf("a").Key()); self.Job(jobOf("a").Key()); self.Metrics() }},
		"a nil pointer":  (*jobpoll.CheckError)(nil),
		"an odd kind":    &jobpoll.CheckError{Kind: 200, Hint: jobpoll.Hint{RetryAfter: -5, Scope: 44}},
		"a panic inside": &jobpoll.CheckError{Kind: jobpoll.ErrorTransient, Err: nasty{func() { panic("inner") }}},
		"a long text":    errors.New(strings.Repeat("\xff long ", 1<<20)),
	} {
		t.Run(name, func(t *testing.T) {
			g := hostileRig(t, func(int) (jobpoll.Report, error) { return jobpoll.Report{}, err })
			self = g
			o := survives(t, g)
			assert.Equal(t, jobpoll.ReasonUnreachable, o.Reason)
			assert.Equal(t, jobpoll.ErrorTransient, o.ErrorKind)
			assert.LessOrEqual(t, len(o.Message), 500)
			assert.True(t, utf8.ValidString(o.Message))
		})
	}
}

func TestAnAbandonCauseThatMisbehaves(t *testing.T) {
	g := newRig(t, nil)
	k := g.watch("a", "running")
	require.NoError(t, g.Abandon(t.Context(), k, nasty{func() { g.Job(k); panic("cause") }}))
	g.to(1)
	assert.Equal(t, jobpoll.ReasonAbandoned, g.ended("a").Reason)
}

func TestACheckThatPanicsOrEndsItsGoroutineIsATransientError(t *testing.T) {
	for name, how := range map[string]func(){
		"panic":              func() { panic(errors.New("boom")) },
		"panic of nil":       func() { panic(nil) },
		"panic of a trap":    func() { panic(nasty{func() { panic("again") }}) },
		"runtime.Goexit":     runtime.Goexit,
		"a nil map":          func() { noMap()["a"]++ },
		"an index":           func() { _ = []int{}[len(name0)] },
		"panic with secrets": func() { panic("api_key=abcdefghijklmnopqrstuvw") },
	} {
		t.Run(name, func(t *testing.T) {
			g := hostileRig(t, func(n int) (jobpoll.Report, error) {
				if n <= 3 {
					how()
				}
				return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
			})
			g.to(15)
			i := g.pending("a")
			assert.Equal(t, 3, i.Errors)
			assert.Equal(t, jobpoll.ErrorTransient, i.ErrorKind)
			assert.NotEmpty(t, i.Message)
			assert.NotContains(t, i.Message, "abcdefghijklmnop")
			assert.Equal(t, jobpoll.ReasonSucceeded, survives(t, g).Reason)
		})
	}
}

const name0 = "x"

// The engine keeps copies: an adapter may use its buffers again.
func TestAnAnswerMayBeChangedAfterItWasGiven(t *testing.T) {
	buffer := []byte(`{"progress":10}`)
	failure := &jobpoll.Failure{Kind: jobpoll.FailureFault, Message: "as told"}
	g := hostileRig(t, func(n int) (jobpoll.Report, error) {
		copy(buffer, "###############")
		copy(buffer, `{"progress":`)
		buffer[12], buffer[13], buffer[14] = '1', byte('0'+n), '}'
		if n == 3 {
			return jobpoll.Report{State: jobpoll.StateFailed, Output: buffer, Failure: failure}, nil
		}
		return jobpoll.Report{State: jobpoll.StateRunning, Progress: float64(n) / 10, Output: buffer}, nil
	})
	g.to(60)
	copy(buffer, "###############")
	failure.Message, failure.Kind = "changed", jobpoll.FailureQuota
	o := survives(t, g)
	assert.Equal(t, `{"progress":13}`, string(o.Report.Output))
	assert.Equal(t, "as told", o.Report.Failure.Message)
	info, _ := g.Job(jobOf("a").Key())
	assert.Equal(t, `{"progress":13}`, string(info.Outcome.Report.Output))
	for i, u := range g.Updates(jobOf("a").Key()) {
		assert.Equal(t, `{"progress":1`+string(rune('1'+i))+`}`, string(u.Report.Output))
	}
}

func TestAnOutputIsTheSameBytesByAllWays(t *testing.T) {
	const raw = `{ "url": "https://cdn.example/a.mp4?a=1&b=<2>", "n": 1.50 }`
	const want = `{"url":"https://cdn.example/a.mp4?a=1&b=<2>","n":1.50}`
	g := newRigOnly(t)
	store := jobpoll.NewMemoryStore(g.Clock)
	g.run(func(cfg *jobpoll.Config, _ *jobpoll.Route) { cfg.Store = store })
	k := g.watch("looked", "succeeded output "+raw)
	g.to(3)
	assert.Equal(t, want, string(g.ended("looked").Report.Output))
	k.ID = "noticed"
	g.watch("noticed", "running")
	require.NoError(t, g.Notify(t.Context(), jobpoll.Notice{Key: k, Trust: jobpoll.TrustAuthoritative,
		Report: jobpoll.Report{State: jobpoll.StateSucceeded, Output: []byte(raw)}}))
	g.Clock.Settle()
	assert.Equal(t, want, string(g.ended("noticed").Report.Output))
	p := another(t, g, store)
	for _, id := range []string{"looked", "noticed"} {
		o, err := p.Wait(t.Context(), jobOf(id))
		require.NoError(t, err)
		assert.Equal(t, want, string(o.Report.Output), "from the store")
	}
}

func TestALongWordDoesNotKeepTheAnswerAlive(t *testing.T) {
	const jobs = 50
	g := newRig(t, func(_ *jobpoll.Config, r *jobpoll.Route) {
		r.Checker = jobpoll.CheckerFunc(func(_ context.Context, job jobpoll.Job) (jobpoll.Report, error) {
			return jobpoll.Report{State: jobpoll.StateRunning, RawStatus: job.ID + strings.Repeat("w", 1<<20)}, nil
		})
	})
	for i := range jobs {
		g.watch(jobID(i), "")
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	g.to(3)
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(jobs<<20/4))
}

// noMap hides from linters that writing to it panics.
func noMap() map[string]int { return nil }
