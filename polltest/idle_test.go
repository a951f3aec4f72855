package polltest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeTB is a testing.TB that only notes failures.
type fakeTB struct {
	testing.TB
	mu       sync.Mutex
	fatal    []string
	errors   []string
	cleanups []func()
}

func (f *fakeTB) Helper() {}
func (f *fakeTB) Cleanup(fn func()) {
	f.cleanups = append(f.cleanups, fn)
}
func (f *fakeTB) Fatal(args ...any) {
	f.mu.Lock()
	f.fatal = append(f.fatal, fmt.Sprint(args...))
	f.mu.Unlock()
	runtime.Goexit()
}
func (f *fakeTB) Fatalf(format string, args ...any) { f.Fatal(fmt.Sprintf(format, args...)) }
func (f *fakeTB) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

// run runs fn as a test would, and then the cleanups.
func (f *fakeTB) run(fn func()) {
	for _, step := range []func(){fn, func() {
		for i := len(f.cleanups) - 1; i >= 0; i-- {
			f.cleanups[i]()
		}
	}} {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			step()
		}()
		<-ended
	}
}

// loop is a worker loop such as an engine's: a timer wakes it, and it hands
// work to a goroutine of its own, announced on the clock all the way.
type loop struct {
	clock *Clock
	work  func(ctx context.Context)
	limit time.Duration // of one piece of work
	wake  chan func()
	count atomic.Int64
}

// start runs the loop: a piece of work every second.
func (l *loop) start(ctx context.Context) (wait func()) {
	l.wake = make(chan func(), 1)
	var wg sync.WaitGroup
	up := l.clock.Busy(func() string { return "start" })
	wg.Go(func() {
		timer := l.clock.AfterFunc(time.Second, func() {
			l.wake <- l.clock.Busy(func() string { return "tick" })
		})
		up()
		for {
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case done := <-l.wake:
				began := l.clock.Busy(func() string { return "handing over" })
				wg.Go(func() { l.one(ctx, began) })
				timer.Reset(time.Second)
				done()
			}
		}
	})
	return wg.Wait
}

func (l *loop) one(ctx context.Context, began func()) {
	if l.limit > 0 {
		limited, cancel := context.WithCancel(ctx)
		timer := l.clock.AfterFunc(l.limit, cancel)
		defer timer.Stop()
		ctx = limited
	}
	n := l.count.Add(1)
	ctx, done := l.clock.BusyContext(ctx, func() string { return fmt.Sprintf("work %d", n) })
	defer done()
	began()
	l.work(ctx)
}

// B81: advancing right after the start, a thousand times, also from two
// goroutines: the same count in each run.
func TestAdvanceRightAfterStartCountsTheSameEachTime(t *testing.T) {
	for _, goroutines := range []int{1, 2} {
		for range 1000 {
			ctx, cancel := context.WithCancel(t.Context())
			done := 0 // not guarded: Advance returns when the work is done
			l := &loop{clock: NewClock(time.Time{}), work: func(context.Context) { runtime.Gosched(); done++ }}
			wait := l.start(ctx)
			var wg sync.WaitGroup
			for range goroutines {
				wg.Go(func() { l.clock.Advance(2 * time.Second) })
			}
			wg.Wait()
			require.Equal(t, 2*goroutines, done)
			require.Equal(t, 1, l.clock.Timers())
			cancel()
			wait()
			require.Zero(t, l.clock.Timers())
		}
	}
}

func TestWorkThatSleepsOnTheClockCountsAsIdle(t *testing.T) {
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var ends []time.Duration
		l := &loop{clock: NewClock(time.Time{})}
		l.work = func(ctx context.Context) {
			ctx, cancel := context.WithCancel(ctx) // a context made from it will do
			defer cancel()
			for range 2 {
				if l.clock.Sleep(ctx, 750*time.Millisecond) != nil {
					return
				}
			}
			runtime.Gosched()
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, l.clock.Monotonic())
		}
		wait := l.start(ctx)
		l.clock.Advance(3500 * time.Millisecond)
		require.Equal(t, []time.Duration{2500 * time.Millisecond, 3500 * time.Millisecond}, ends)
		cancel()
		wait()
		require.Zero(t, l.clock.Timers())
	}
}

func TestWorkThatWaitsForItsContextCountsAsIdleAndIsWaitedForAtItsLimit(t *testing.T) {
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var ends []time.Duration
		l := &loop{clock: NewClock(time.Time{}), limit: 2500 * time.Millisecond}
		l.work = func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(time.Millisecond) // it is waited for once its context has ended
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, l.clock.Monotonic())
		}
		wait := l.start(ctx)
		began := time.Now()
		l.clock.Advance(4600 * time.Millisecond)
		assert.Less(t, time.Since(began), 2*time.Second, "far from the limit of 5 s")
		mu.Lock()
		require.Equal(t, []time.Duration{3500 * time.Millisecond, 4500 * time.Millisecond}, ends)
		mu.Unlock()
		cancel()
		wait()
	}
}

func TestWorkThatWaitsForTheTestIsWaitedForAgainOnceItIsReleased(t *testing.T) {
	for range 20 {
		c := NewClock(time.Time{})
		release := make(chan struct{})
		done := false
		ctx, end := startWork(t.Context(), c, func(ctx context.Context) {
			select {
			case <-release:
				time.Sleep(3 * time.Millisecond)
				done = true
			case <-ctx.Done():
			}
		})
		c.Advance(time.Hour)
		c.Advance(time.Hour) // known to wait by now
		close(release)
		c.Settle()
		require.True(t, done)
		require.NoError(t, ctx.Err())
		<-end
	}
}

// startWork starts one piece of work.
func startWork(ctx context.Context, c *Clock, work func(context.Context)) (context.Context, <-chan struct{}) {
	began := c.Busy(nil)
	end := make(chan struct{})
	go func() {
		defer close(end)
		busy, done := c.BusyContext(ctx, func() string { return "the work" })
		defer done()
		began()
		work(busy)
	}()
	return ctx, end
}

func TestWorkOfSeveralGoroutinesIsIdleWhenAllWait(t *testing.T) {
	c := NewClock(time.Time{})
	var woke, helper atomic.Int64
	_, end := startWork(t.Context(), c, func(ctx context.Context) {
		var wg sync.WaitGroup
		for i := range 3 {
			sub, done := c.BusyContext(ctx, nil)
			wg.Go(func() {
				defer done()
				_ = c.Sleep(sub, time.Duration(i+1)*time.Second)
				woke.Add(1)
			})
		}
		answer := make(chan struct{})
		go func() { // is at work while this goroutine selects
			time.Sleep(30 * time.Millisecond)
			helper.Add(1)
			close(answer)
		}()
		select {
		case <-answer:
		case <-ctx.Done():
		}
		wg.Wait()
	})
	c.Settle()
	assert.EqualValues(t, 1, helper.Load())
	for i := range 3 {
		assert.EqualValues(t, i, woke.Load())
		c.Advance(time.Second)
	}
	<-end
	assert.EqualValues(t, 3, woke.Load())
}

func TestWorkThatBlocksOnAnythingElseIsNamed(t *testing.T) {
	for name, block := range map[string]func(release chan struct{}){
		"chan receive":    func(release chan struct{}) { <-release },
		"sync.Mutex.Lock": func(release chan struct{}) { blockOnMutex(release) },
	} {
		t.Run(name, func(t *testing.T) {
			c := NewClock(time.Time{})
			c.limit = 50 * time.Millisecond
			release := make(chan struct{})
			_, end := startWork(t.Context(), c, func(ctx context.Context) {
				if name != "chan receive" {
					_ = ctx.Done() // asking is not enough
				}
				block(release)
			})
			asleep, wakeUp := c.BusyContext(t.Context(), func() string { return "a sleeper" })
			go func() { _ = c.Sleep(asleep, time.Hour); wakeUp() }()

			tb := &fakeTB{}
			tb.run(func() {
				c.Report(tb)
				c.Settle()
				t.Error("not reached")
			})
			require.Len(t, tb.fatal, 1)
			text, stack, _ := strings.Cut(tb.fatal[0], "\n\n")
			assert.Equal(t, "polltest: after 50ms of real time still busy: the work (goroutine in "+name+
				"); a check must wait on the clock (Clock.Sleep, its context) or return", text)
			assert.Contains(t, stack, "TestWorkThatBlocksOnAnythingElseIsNamed")

			c.Settle() // it is named once, and not waited for again
			close(release)
			<-end
			c.Advance(time.Hour)
		})
	}
}

func blockOnMutex(release chan struct{}) {
	var mu sync.Mutex
	mu.Lock()
	go func() { <-release; mu.Unlock() }()
	mu.Lock()
	defer mu.Unlock()
}

func TestWithoutATestBusyWorkPanics(t *testing.T) {
	c := NewClock(time.Time{})
	c.limit = 20 * time.Millisecond
	done := c.Busy(func() string { return "a tick" })
	assert.PanicsWithValue(t, "polltest: after 20ms of real time still busy: a tick; a check must wait on the clock (Clock.Sleep, its context) or return", c.Settle)
	done()
	done() // more than once
	c.Settle()
}

func TestAReportHoldsUntilItsTestEnds(t *testing.T) {
	c := NewClock(time.Time{})
	tb := &fakeTB{}
	tb.run(func() { c.Report(tb) })
	assert.Panics(t, func() { c.fail("text") })
	assert.Empty(t, tb.fatal)
}

func TestARequestToLoopbackIsWaitedFor(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half, ")
		_ = http.NewResponseController(w).Flush()
		time.Sleep(20 * time.Millisecond) // the world takes its time
		_, _ = io.WriteString(w, "whole")
	}))
	defer server.Close()
	for range 10 {
		c := NewClock(time.Time{})
		var body string
		_, end := startWork(t.Context(), c, func(ctx context.Context) { body, _ = get(ctx, server) })
		c.Settle()
		require.Equal(t, "half, whole", body)
		<-end
	}
}

func get(ctx context.Context, server *httptest.Server) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	if err != nil {
		return "", err
	}
	resp, err := server.Client().Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestAHandlerThatWaitsOnTheClockMakesItsRequestIdle(t *testing.T) {
	c := NewClock(time.Time{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.Sleep(r.Context(), 5*time.Second) == nil {
			_, _ = io.WriteString(w, "at last")
		}
	}))
	defer server.Close()
	for range 5 {
		var body string
		_, end := startWork(t.Context(), c, func(ctx context.Context) { body, _ = get(ctx, server) })
		c.Advance(4 * time.Second)
		require.Empty(t, body)
		c.Advance(time.Second)
		require.Equal(t, "at last", body)
		<-end
	}
}

func TestAHandlerCalledWithoutANetworkMayWaitForTheContext(t *testing.T) {
	c := NewClock(time.Time{})
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }).ServeHTTP(httptest.NewRecorder(), r)
		return nil, context.Cause(r.Context())
	})
	ctx, cancel := context.WithCancel(t.Context())
	var err error
	_, end := startWork(ctx, c, func(ctx context.Context) {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://provider.example", nil)
		_, err = (&http.Client{Transport: transport}).Do(req)
	})
	c.Advance(time.Hour)
	c.AfterFunc(time.Second, cancel)
	c.Advance(time.Second)
	assert.ErrorIs(t, err, context.Canceled)
	<-end
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestADumpIsRead(t *testing.T) {
	all := parseDump(`goroutine 1 [running]:
main.main()
	/src/main.go:3 +0x1

goroutine 18 gp=0xc000 m=nil [select, 2 minutes, locked to thread]:
net/http.(*persistConn).roundTrip(0xc0001, 0xc0002)
	/go/src/net/http/transport.go:1 +0x2
main.check({0x1, 0x2})
	/src/main.go:9 +0x1
created by main.main in goroutine 1
	/src/main.go:4 +0x1

goroutine 19 [chan receive (durable), synctest bubble 3]:
main.one(...)
	/src/main.go:9 +0x1

goroutine 20 [chan receive (nil chan)]:
`)
	require.Len(t, all, 4)
	g := all[18]
	assert.Equal(t, "select", g.state)
	assert.EqualValues(t, 1, g.parent)
	assert.Equal(t, []string{"net/http.(*persistConn).roundTrip", "main.check"}, g.frames)
	assert.True(t, g.network())
	g = all[19]
	assert.True(t, g.parked())
	assert.Equal(t, []string{"main.one"}, g.frames)
	g = all[20]
	assert.False(t, g.parked(), "for ever")
	g = all[1]
	assert.Equal(t, "running", g.state)
}

func TestTheClockWorksInASynctestBubble(t *testing.T) {
	outer := NewClock(time.Time{}) // made outside
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var done atomic.Int64
		l := &loop{clock: outer, work: func(ctx context.Context) {
			time.Sleep(time.Second) // the bubble's time
			if outer.Sleep(ctx, time.Minute) == nil {
				done.Add(1)
			}
		}}
		wait := l.start(ctx)
		outer.Advance(time.Second)
		assert.Zero(t, done.Load())
		outer.Advance(time.Minute)
		assert.EqualValues(t, 1, done.Load())
		cancel()
		outer.Settle()
		wait()
	})
}
