package polltest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
)

// endPatience is how long, in real time, Run may take to return before the
// clock is moved for it.
const endPatience = 100 * time.Millisecond

// Harness is a Poller that runs in a test, and its clock.
type Harness struct {
	*jobpoll.Poller
	Clock *Clock

	t      testing.TB
	cancel context.CancelFunc
	ended  chan struct{} // Run returned
	err    error         // what it returned; valid once ended is closed
	timers int           // on the clock before Run
	stop   sync.Once
}

// Start makes a Poller from cfg, runs it until the test ends, and returns when
// it is up and idle. The clock is cfg.Clock, which must be a *Clock then, or a
// new one. Without a Config.Rand there is no jitter, so that a test sees the
// same looks each time. Work that neither ends nor waits on the clock fails the test, as
// Clock.Report says; so does what Stop finds, which is called when the test
// ends.
func Start(t testing.TB, cfg jobpoll.Config) *Harness {
	t.Helper()
	clock, ok := cfg.Clock.(*Clock)
	switch {
	case cfg.Clock == nil:
		clock = NewClock(time.Time{})
		cfg.Clock = clock
	case !ok:
		t.Fatalf("polltest: Start needs a *polltest.Clock, or none, as Config.Clock; it is a %T", cfg.Clock)
	}
	if cfg.Rand == nil {
		cfg.Rand = func() float64 { return 0.5 }
	}
	clock.Report(t)
	p, err := jobpoll.New(cfg)
	if err != nil {
		t.Fatalf("polltest: Start: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h := &Harness{Poller: p, Clock: clock, t: t, cancel: cancel, ended: make(chan struct{}), timers: clock.Timers()}
	t.Cleanup(h.Stop)

	begun := clock.begunCount()
	go func() {
		defer close(h.ended)
		h.err = p.Run(ctx)
	}()
	if !clock.awaitBegun(begun, h.ended) {
		select {
		case <-h.ended:
			t.Fatalf("polltest: Run returned at once: %v", h.err)
		default:
			t.Fatalf("polltest: Run did not begin to work within %v of real time\n\n%s", clock.realLimit(), stacks())
		}
	}
	clock.Settle()
	return h
}

// Stop ends the context of Run and waits until Run has returned. Where Run
// waits for something on the clock, a grace for looks under way, say, Stop
// moves the clock on. It fails the test if Run returns an error, or does not
// return within 5 s of real time, or leaves timers on the clock. Only the
// first call does something; a test that does not call it need not.
func (h *Harness) Stop() {
	h.t.Helper()
	h.stop.Do(h.end)
}

func (h *Harness) end() {
	h.t.Helper()
	h.cancel()
	if !h.Clock.awaitEnd(h.ended) {
		h.t.Errorf("polltest: Run did not return within %v of real time after its context ended\n\n%s", h.Clock.realLimit(), stacks())
		return
	}
	if h.err != nil {
		h.t.Errorf("polltest: Run: %v", h.err)
	}
	if n := h.Clock.Timers() - h.timers; n > 0 {
		h.t.Errorf("polltest: %d timers more are left on the clock than before Run", n)
	}
}

// awaitEnd waits until ended is closed, and moves the clock from timer to timer
// while it is not.
func (c *Clock) awaitEnd(ended <-chan struct{}) bool {
	limit := time.NewTimer(c.realLimit())
	defer limit.Stop()
	for {
		c.Settle() // what was cancelled returns first
		patience := time.NewTimer(endPatience)
		select {
		case <-ended:
			patience.Stop()
			return true
		case <-limit.C:
			patience.Stop()
			return false
		case <-patience.C:
		}
		if d, ok := c.next(); ok {
			c.Advance(d)
		}
	}
}

// awaitBegun waits until work was begun on the clock, beyond the first so many
// pieces. It reports false where nothing began until ended was closed, or
// within the limit of real time.
func (c *Clock) awaitBegun(begun uint64, ended <-chan struct{}) bool {
	over := make(chan struct{})
	defer close(over)
	gaveUp := false
	wake := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		gaveUp = true
		c.broadcast()
	}
	go func() {
		select {
		case <-ended:
			wake()
		case <-over:
		}
	}()
	alarm := time.AfterFunc(c.realLimit(), wake)
	defer alarm.Stop()

	c.mu.Lock()
	defer c.mu.Unlock()
	for c.begun == begun && !gaveUp {
		c.wait()
	}
	return c.begun != begun
}

// stacks returns the stacks of all goroutines.
func stacks() string {
	var b strings.Builder
	for _, g := range sortedGoroutines() {
		b.WriteString(g.text)
		b.WriteString("\n\n")
	}
	return b.String()
}

// Recorder remembers what a Poller tells. Its zero value is ready to use, for
// several Pollers too, and a Recorder must not be copied. Methods may be called
// from several goroutines at once.
type Recorder struct {
	mu       sync.Mutex
	updates  []jobpoll.Update
	outcomes []jobpoll.Outcome
}

// Callbacks returns the Recorder's methods, for a Config or a Route.
func (r *Recorder) Callbacks() jobpoll.Callbacks {
	return jobpoll.Callbacks{OnUpdate: r.OnUpdate, OnStop: r.OnStop}
}

// OnUpdate records the update.
func (r *Recorder) OnUpdate(_ context.Context, u jobpoll.Update) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.updates = append(r.updates, u)
}

// OnStop records the outcome and returns nil.
func (r *Recorder) OnStop(_ context.Context, o jobpoll.Outcome) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcomes = append(r.outcomes, o)
	return nil
}

// Updates returns the updates of a job in the order in which they came.
func (r *Recorder) Updates(k jobpoll.Key) []jobpoll.Update {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.updates), func(u jobpoll.Update) bool { return u.Job.Key() != k })
}

// Outcomes returns all outcomes in the order in which they came.
func (r *Recorder) Outcomes() []jobpoll.Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.outcomes)
}

// Outcome returns the last outcome of a job, and whether there is one.
func (r *Recorder) Outcome(k jobpoll.Key) (jobpoll.Outcome, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range slices.Backward(r.outcomes) {
		if o.Job.Key() == k {
			return o, true
		}
	}
	return jobpoll.Outcome{}, false
}
