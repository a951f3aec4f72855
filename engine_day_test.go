package jobpoll_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The day: six hours on the manual clock with all that goes wrong in one.
// A day of 10,000 jobs takes 40 s on two cores: that is for JOBPOLL_DAY_JOBS.
const (
	dayLength     = 6 * time.Hour
	dayRate       = 12.0
	dayBurst      = 10
	dayConcurrent = 20
	dayTimeout    = 10 * time.Second
)

// fate is what becomes of a job at the provider.
type fate uint8

const (
	succeeds fate = iota
	fails
	neverEnds
	isLost
	isBroken
)

// dayJob is one job of the plan. All is drawn from the seed before the day
// begins; what a look answers is drawn from id and number of the look.
type dayJob struct {
	job    jobpoll.Job
	from   time.Duration
	ends   time.Duration
	fate   fate
	rough  bool // some looks fail or hang
	hooked bool
}

// dayEvent is what the service, the provider's webhooks, or the machine do.
type dayEvent struct {
	at time.Duration
	do func(*day)
}

// armedClock counts the timers that were made, which tells that Run has begun.
type armedClock struct {
	*polltest.Clock
	armed atomic.Int64
}

func (c *armedClock) AfterFunc(d time.Duration, f func()) jobpoll.Timer {
	c.armed.Add(1)
	return c.Clock.AfterFunc(d, f)
}

type day struct {
	t      *testing.T
	clock  *armedClock
	store  jobpoll.Store
	p      *jobpoll.Poller
	budget *jobpoll.Budget
	stop   func()
	events []dayEvent

	mu       sync.Mutex
	jobs     map[string]*dayJob
	looks    map[string]int
	canceled map[string]bool
	calls    []time.Duration // of each Poller in turn
	inFlight int
	most     int
	attempts map[string]int
	taken    map[string]jobpoll.Outcome
	doubled  []string
	past     daySums
}

// daySums are the totals of a day.
type daySums struct {
	Stops                                              map[jobpoll.Reason]int
	Looks, Watched, Notices, Applied, Jumps, Conflicts uint64
	Late, Early, Limited, Calls, Polls, Webhooks       int
}

// roll is a number in [0, 1) from words and a number, always the same.
func roll(n int, words ...string) float64 {
	h := fnv.New64a()
	for _, w := range words {
		_, _ = h.Write([]byte(w))
	}
	_, _ = fmt.Fprint(h, n)
	return rand.New(rand.NewPCG(h.Sum64(), uint64(n))).Float64()
}

func (d *day) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	now := d.clock.Monotonic()
	d.mu.Lock()
	d.calls = append(d.calls, now)
	d.inFlight++
	d.most = max(d.most, d.inFlight)
	j := d.jobs[job.ID]
	d.looks[job.ID]++
	n := d.looks[job.ID]
	canceled := d.canceled[job.ID]
	d.mu.Unlock()
	defer func() { d.mu.Lock(); d.inFlight--; d.mu.Unlock() }()
	// No two answers come at one instant: the order of goroutines decides nothing.
	if err := d.clock.Sleep(ctx, 50*time.Millisecond+time.Duration(roll(n, job.ID)*float64(200*time.Millisecond))); err != nil {
		return jobpoll.Report{}, err
	}
	// A pause of the provider: one minute in forty.
	now = d.clock.Monotonic()
	if now%(40*time.Minute) > 39*time.Minute {
		d.mu.Lock()
		d.past.Limited++
		d.mu.Unlock()
		return jobpoll.Report{}, &jobpoll.CheckError{Kind: jobpoll.ErrorRateLimited, Hint: jobpoll.Hint{RetryAfter: 20 * time.Second, Scope: jobpoll.ScopeBudget}}
	}
	if j.rough {
		switch x := roll(n, job.ID, "rough"); {
		case x < 0.05:
			if err := d.clock.Sleep(ctx, time.Hour); err != nil {
				return jobpoll.Report{}, err
			}
		case x < 0.25:
			return jobpoll.Report{}, errors.New("502 from a proxy")
		case x < 0.28:
			panic("a decoder's fault")
		case x < 0.6:
			_ = d.clock.Sleep(ctx, time.Duration(x*3*float64(time.Second)))
		}
	}
	state := jobpoll.StateRunning
	switch {
	case j.fate == isLost:
		return jobpoll.Report{}, &jobpoll.CheckError{Kind: jobpoll.ErrorNoSuchJob, Status: 404}
	case j.fate == isBroken:
		return jobpoll.Report{}, &jobpoll.CheckError{Kind: jobpoll.ErrorTransient, Status: 503}
	case canceled:
		state = jobpoll.StateCanceled
	case j.fate == neverEnds:
	case now >= j.ends:
		state = j.end()
	case now < j.from+(j.ends-j.from)/4:
		state = jobpoll.StateQueued
	}
	return jobpoll.Report{State: state, Output: dayOutput(state)}, nil
}

func dayOutput(s jobpoll.State) []byte {
	if s == jobpoll.StateSucceeded {
		return []byte(`{"url":"https://cdn.example/v.mp4"}`)
	}
	return nil
}

func (j *dayJob) end() jobpoll.State {
	if j.fate == fails {
		return jobpoll.StateFailed
	}
	return jobpoll.StateSucceeded
}

func (d *day) Cancel(_ context.Context, job jobpoll.Job) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, d.clock.Monotonic())
	if j := d.jobs[job.ID]; j.fate == neverEnds || d.clock.Monotonic() < j.ends {
		d.canceled[job.ID] = true
	}
	return nil
}

func (d *day) onStop(_ context.Context, o jobpoll.Outcome) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := o.Job.ID
	d.attempts[id]++
	if roll(d.attempts[id], id, "stop") < 0.1 {
		return errors.New("the queue is down")
	}
	if _, twice := d.taken[id]; twice {
		d.doubled = append(d.doubled, id)
	}
	d.taken[id] = o
	return nil
}

// start runs a Poller: a new one if p is nil.
func (d *day) start() {
	if d.p == nil {
		d.budget = jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: dayRate, Burst: dayBurst, Concurrent: dayConcurrent}, Jobs: 500})
		var routes []jobpoll.Route
		for _, name := range []string{"preview", "standard", "long"} {
			routes = append(routes, jobpoll.Route{Name: name, Checker: d, CheckTimeout: dayTimeout})
		}
		var err error
		d.p, err = jobpoll.New(jobpoll.Config{Clock: d.clock, Budget: d.budget, Store: d.store, Routes: routes, Rand: func() float64 { return 0.5 },
			Callbacks: jobpoll.Callbacks{OnStop: d.onStop, OnUpdate: func(context.Context, jobpoll.Update) {}},
			Hooks:     jobpoll.Hooks{Late: func(jobpoll.LateEvent) { d.mu.Lock(); d.past.Late++; d.mu.Unlock() }}})
		require.NoError(d.t, err)
	}
	require.Zero(d.t, d.clock.Timers())
	ctx, cancel := context.WithCancel(context.Background())
	ended, armed := make(chan error, 1), d.clock.armed.Load()
	go func() { ended <- d.p.Run(ctx) }()
	for d.clock.armed.Load() == armed { // Run makes one when it begins
		runtime.Gosched()
	}
	d.clock.Settle()
	d.stop = func() {
		cancel()
		require.NoError(d.t, <-ended)
		require.Zero(d.t, d.clock.Timers(), "no timer is left")
	}
}

// sum takes the counts of a Poller before it goes.
func (d *day) sum() {
	m := d.p.Metrics()
	s := &d.past
	for reason, n := range m.Total.Stops {
		if n > 0 {
			s.Stops[reason] += int(n)
		}
	}
	s.Looks += m.Total.Looks
	s.Watched += m.Total.Watched
	s.Notices += m.Total.Webhook.Notices
	s.Applied += m.Total.Webhook.Applied
	s.Conflicts += m.Total.Webhook.Conflicts
	s.Jumps += m.ClockJumps
	s.Early += int(m.Total.Webhook.Early)
	d.checkCalls()
}

// checkCalls fails on any breach of the budget by the calls of one Poller.
func (d *day) checkCalls() {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := make([]time.Time, len(d.calls))
	for i, c := range d.calls {
		at[i] = time.Unix(0, 0).Add(c)
	}
	requirePaced(d.t, at, dayRate, dayBurst)
	d.past.Calls += len(d.calls)
	d.calls = nil
	// A call that was given up has ended here too: it honours its context.
	d.t.Logf("at most %d calls at once", d.most)
	assert.LessOrEqual(d.t, d.most, dayConcurrent)
}

// plan draws the whole day from the seed.
func (d *day) plan(seed uint64, n int) {
	r := rand.New(rand.NewPCG(seed, 17))
	between := func(a, b time.Duration) time.Duration { return a + time.Duration(r.Float64()*float64(b-a)) }
	add := func(at time.Duration, do func(*day)) { d.events = append(d.events, dayEvent{at, do}) }
	shapes := []struct {
		route    string
		expected time.Duration
	}{{"preview", 20 * time.Second}, {"standard", 90 * time.Second}, {"long", 6 * time.Minute}}
	for i := range n {
		s := shapes[r.IntN(len(shapes))]
		id := fmt.Sprintf("%s-%05d", s.route, i)
		from := between(0, dayLength-time.Hour)
		j := &dayJob{from: from, ends: from + between(s.expected/2, 2*s.expected), rough: r.IntN(5) == 0, hooked: r.IntN(5) < 2}
		switch x := r.IntN(100); {
		case x < 10:
			j.fate = fails
		case x < 13:
			j.fate = neverEnds
		case x < 14:
			j.fate = isLost
		case x < 15:
			j.fate = isBroken
		}
		j.job = jobpoll.Job{Route: s.route, ID: id, Expected: s.expected, Profile: s.route}
		d.jobs[id] = j
		add(from, func(d *day) { require.NoError(d.t, d.p.Watch(context.Background(), j.job)) })
		notice := func(at time.Duration, s jobpoll.State, trust jobpoll.Trust, event string) {
			add(at, func(d *day) {
				d.past.Webhooks++
				require.NoError(d.t, d.p.Notify(context.Background(), jobpoll.Notice{Key: j.job.Key(), EventID: event, Trust: trust,
					Report: jobpoll.Report{State: s, Output: dayOutput(s)}}))
			})
		}
		if j.hooked && j.fate <= fails {
			at := j.ends + between(0, 5*time.Second)
			notice(at, j.end(), jobpoll.TrustAuthoritative, id)
			switch r.IntN(6) {
			case 0:
				notice(at+between(0, time.Minute), j.end(), jobpoll.TrustAuthoritative, id) // a repeat
			case 1:
				notice(at+between(0, time.Minute), jobpoll.StateCanceled, jobpoll.TrustAuthoritative, "") // a conflict
			case 2:
				notice(at+between(0, time.Minute), jobpoll.StateRunning, jobpoll.TrustAuthoritative, "") // an old one
			case 3:
				notice(from-between(0, time.Second), jobpoll.StateQueued, jobpoll.TrustAuthoritative, "") // an early one
			case 4:
				notice(at-time.Second, j.end(), jobpoll.TrustHint, "") // a thin one
			}
		}
		if j.fate == neverEnds && r.IntN(2) == 0 { // far beyond its limit
			notice(from+70*time.Minute, jobpoll.StateSucceeded, jobpoll.TrustAuthoritative, id)
		}
		key := j.job.Key()
		switch r.IntN(40) {
		case 0:
			add(between(from, j.ends), func(d *day) { _ = d.p.Abandon(context.Background(), key, errors.New("user left")) })
		case 1, 2:
			add(between(from, j.ends), func(d *day) { _ = d.p.PollNow(key) })
		case 3:
			add(between(from, j.ends), func(d *day) { d.cancelJob(key) })
		}
	}
	for i := range 6 {
		add(between(0, dayLength), func(d *day) { d.clock.Jump([]time.Duration{time.Hour, -time.Hour, 8 * time.Second}[i%3]) })
	}
	for range 2 {
		add(between(time.Hour, dayLength), func(d *day) { d.clock.Suspend(3*time.Minute, false) })
	}
	for range 5 {
		add(between(0, dayLength), func(d *day) { d.stop(); d.start() })
	}
	add(dayLength/2, func(d *day) { // the process is replaced
		d.stop()
		d.sum()
		d.p = nil
		d.start()
	})
	slices.SortStableFunc(d.events, func(a, b dayEvent) int { return cmp.Compare(a.at, b.at) })
}

// cancelJob asks for a cancel as a handler of the service would: it may have
// to wait for the budget, and thus for the clock.
func (d *day) cancelJob(k jobpoll.Key) {
	p := d.p
	what := func() string { return "cancel of " + k.String() }
	begun := d.clock.Busy(what)
	go func() {
		ctx, done := d.clock.BusyContext(context.Background(), what)
		defer done()
		begun()
		_ = p.Cancel(ctx, k, errors.New("user changed his mind"))
	}()
	d.clock.Settle()
}

func runDay(t *testing.T, seed uint64, n int) daySums {
	clock := &armedClock{Clock: polltest.NewClock(time.Time{})}
	clock.Report(t)
	d := &day{t: t, clock: clock, store: jobpoll.NewMemoryStore(clock), jobs: map[string]*dayJob{}, looks: map[string]int{},
		canceled: map[string]bool{}, attempts: map[string]int{}, taken: map[string]jobpoll.Outcome{}, past: daySums{Stops: map[jobpoll.Reason]int{}}}
	d.plan(seed, n)
	goroutines := runtime.NumGoroutine()
	d.start()
	for _, e := range d.events {
		if ahead := e.at - clock.Monotonic(); ahead > 0 {
			clock.Advance(ahead)
		}
		e.do(d)
	}
	clock.Advance(dayLength + 3*time.Hour - clock.Monotonic())

	require.Empty(t, d.doubled, "told twice")
	require.Len(t, d.taken, n, "each job is told once")
	for id, o := range d.taken {
		j := d.jobs[id]
		switch o.Reason {
		case jobpoll.ReasonSucceeded:
			// After a restart ages are told by the wall clock, which was set: a
			// limit may come later than the webhook.
			require.True(t, j.fate == succeeds || j.fate == neverEnds && o.Via == jobpoll.ViaWebhook, id)
			require.NotEmpty(t, o.Report.Output, id)
		case jobpoll.ReasonFailed:
			require.Equal(t, fails, j.fate, id)
		case jobpoll.ReasonDeadline:
			require.Equal(t, neverEnds, j.fate, id)
		case jobpoll.ReasonLost:
			require.Equal(t, isLost, j.fate, id)
		case jobpoll.ReasonUnreachable:
			require.True(t, j.fate == isBroken || j.rough, id)
		}
		d.past.Polls += o.Polls
	}
	m := d.p.Metrics()
	assert.Zero(t, m.Total.Unresolved)
	assert.Zero(t, m.Total.InFlight)
	assert.Zero(t, m.Total.Backlog)
	assert.Zero(t, m.Total.Failing)
	assert.Zero(t, m.Callbacks.Undelivered)
	assert.Zero(t, m.ParkedNotices)
	for name, b := range m.Budgets {
		assert.Zero(t, b.Jobs, name)
		assert.Zero(t, b.Status.InFlight+b.Status.Waiting, name)
	}
	d.stop()
	d.sum()
	for range 100 { // those that are on their way out
		if runtime.NumGoroutine() <= goroutines {
			break
		}
		time.Sleep(time.Millisecond)
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
	assert.EqualValues(t, n, d.past.Watched)
	ends := 0
	for _, v := range d.past.Stops {
		ends += v
	}
	assert.Equal(t, n, ends, "each end is counted once")
	return d.past
}

func TestADayInTheLife(t *testing.T) {
	n := scaled(2_000, 500)
	if s := os.Getenv("JOBPOLL_DAY_JOBS"); s != "" {
		var err error
		n, err = strconv.Atoi(s)
		require.NoError(t, err, "JOBPOLL_DAY_JOBS")
	}
	began := time.Now()
	sums := runDay(t, 1, n)
	t.Logf("%d jobs, %v: %+v", n, time.Since(began).Round(time.Millisecond), sums)
	for _, reason := range []jobpoll.Reason{jobpoll.ReasonSucceeded, jobpoll.ReasonFailed, jobpoll.ReasonCanceled, jobpoll.ReasonDeadline, jobpoll.ReasonLost, jobpoll.ReasonUnreachable, jobpoll.ReasonAbandoned} {
		assert.Positive(t, sums.Stops[reason], reason)
	}
	assert.Positive(t, sums.Limited)
	assert.Positive(t, sums.Late)
	assert.Positive(t, sums.Early)
	assert.Positive(t, sums.Conflicts)
}

func TestTheSameSeedGivesTheSameDay(t *testing.T) {
	n := scaled(500, 200)
	a, b := runDay(t, 7, n), runDay(t, 7, n)
	// Calls that a shutdown cuts off end in any order, which may cost a look.
	assert.InDelta(t, a.Calls, b.Calls, 10)
	assert.InDelta(t, a.Looks, b.Looks, 10)
	assert.InDelta(t, a.Polls, b.Polls, 10)
	assert.InDelta(t, a.Limited, b.Limited, 10)
	b.Calls, b.Looks, b.Polls, b.Limited = a.Calls, a.Looks, a.Polls, a.Limited
	assert.Equal(t, a, b)
}
