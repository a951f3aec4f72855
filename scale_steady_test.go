package jobpoll_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A look in the steady state allocates nothing of ours.
func TestALookAllocatesNothing(t *testing.T) {
	const jobs = 2000
	looks, warm := uint64(scaled(100_000, 10_000)), uint64(20_000)
	var n atomic.Uint64
	warmed, done := make(chan struct{}), make(chan struct{})
	p, err := jobpoll.New(jobpoll.Config{
		Workers: 8, Budget: jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 1e9, Burst: 1e9}}),
		Stop: jobpoll.StopRules{MaxAge: jobpoll.NoLimit},
		Routes: []jobpoll.Route{{Name: "r", Schedule: jobpoll.Schedule{Delays: []time.Duration{5 * time.Millisecond}, MinDelay: time.Microsecond},
			Checker: jobpoll.CheckerFunc(func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
				switch n.Add(1) {
				case warm:
					close(warmed)
				case warm + looks:
					close(done)
				}
				return jobpoll.Report{State: jobpoll.StateRunning}, nil
			})}},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	for i := range jobs {
		require.NoError(t, p.Watch(ctx, jobpoll.Job{Route: "r", ID: fmt.Sprint(i), Profile: fmt.Sprint(i % 100)}))
	}
	<-warmed
	var before, after runtime.MemStats
	from := n.Load()
	runtime.ReadMemStats(&before)
	<-done
	runtime.ReadMemStats(&after)
	count := n.Load() - from
	cancel()
	require.NoError(t, <-ran)
	each := float64(after.Mallocs-before.Mallocs) / float64(count)
	t.Logf("%.4f allocations a look", each)
	if !raceEnabled {
		assert.Less(t, each, 0.05)
	}
}

type keptKey struct{}

// User code may keep the context of a call. Whatever it does with it, another
// call is not ended by it, and it ends with Run at the latest.
func TestContextsThatAreKeptAfterTheirCall(t *testing.T) {
	run, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var kept []context.Context
	var early atomic.Int64
	var calls atomic.Int64
	enough := make(chan struct{})
	ask := func(ctx context.Context) {
		_ = ctx.Err()
		_, _ = ctx.Deadline()
		_ = ctx.Value("x")
		select {
		case <-ctx.Done():
		default:
		}
	}
	p, err := jobpoll.New(jobpoll.Config{
		Workers: 4, Stop: jobpoll.StopRules{MaxAge: jobpoll.NoLimit, MaxErrors: jobpoll.NoCount},
		Routes: []jobpoll.Route{{Name: "r", CheckTimeout: 10 * time.Second,
			Schedule: jobpoll.Schedule{Delays: []time.Duration{time.Millisecond}, MinDelay: time.Microsecond},
			Checker: jobpoll.CheckerFunc(func(ctx context.Context, j jobpoll.Job) (jobpoll.Report, error) {
				n := calls.Add(1)
				if n == 3000 {
					close(enough)
				}
				if n > 3000 {
					return jobpoll.Report{State: jobpoll.StateRunning}, nil
				}
				mu.Lock()
				kept = append(kept, ctx)
				old := kept[int(n*7919)%len(kept)]
				mu.Unlock()
				switch n % 4 {
				case 0:
					own, cancel := context.WithCancel(ctx)
					cancel()
					<-own.Done()
				case 1:
					go ask(old)
				case 2:
					ask(context.WithValue(old, keptKey{}, "v"))
				}
				if ctx.Err() != nil && run.Err() == nil {
					early.Add(1)
				}
				return jobpoll.Report{State: jobpoll.StateRunning}, nil
			})}},
	})
	require.NoError(t, err)
	ran := make(chan error, 1)
	go func() { ran <- p.Run(run) }()
	for i := range 100 {
		require.NoError(t, p.Watch(run, jobpoll.Job{Route: "r", ID: fmt.Sprint(i)}))
	}
	<-enough
	cancel()
	require.NoError(t, <-ran)
	assert.Zero(t, early.Load(), "calls whose context had ended under them")
	mu.Lock()
	defer mu.Unlock()
	for _, c := range kept {
		<-c.Done()
		require.Error(t, c.Err())
	}
}

// Every hook and callback panics or ends its goroutine now and then, on real
// workers: no job is lost and nothing is left over.
func TestUserCodeThatDiesOnWorkers(t *testing.T) {
	const jobs = 300
	for name, die := range map[string]func(){
		"panics":             func() { panic("in user code") },
		"ends its goroutine": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			var n, told atomic.Int64
			now := func() {
				if n.Add(1)%5 == 0 && onTheEngine() {
					die()
				}
			}
			done := make(chan struct{})
			looks := sync.Map{}
			var seen atomic.Int64
			p, err := jobpoll.New(jobpoll.Config{
				Workers: 16, Stop: jobpoll.StopRules{MaxErrors: jobpoll.NoCount},
				Callbacks: jobpoll.Callbacks{
					OnUpdate: func(context.Context, jobpoll.Update) { now() },
					OnStop: func(_ context.Context, o jobpoll.Outcome) error {
						if _, again := looks.LoadOrStore("stop "+o.Job.ID, true); !again {
							now()
						}
						if told.Add(1) == jobs {
							close(done)
						}
						return nil
					},
				},
				Hooks: jobpoll.Hooks{
					Looked: func(jobpoll.LookEvent) { now() }, Scheduled: func(jobpoll.ScheduleEvent) { now() }, Stopped: func(jobpoll.StopEvent) { now() },
					Noticed: func(jobpoll.NoticeEvent) { now() }, UnknownWord: func(jobpoll.WordEvent) { now() }, Delivered: func(jobpoll.DeliverEvent) { now() },
					Late: func(jobpoll.LateEvent) { now() }, Panicked: func(jobpoll.PanicEvent) { now() },
				},
				Routes: []jobpoll.Route{{Name: "r", Schedule: jobpoll.Schedule{Delays: []time.Duration{5 * time.Millisecond}, MinDelay: time.Millisecond},
					Checker: jobpoll.CheckerFunc(func(_ context.Context, j jobpoll.Job) (jobpoll.Report, error) {
						seen.Add(1)
						c, _ := looks.LoadOrStore(j.ID, new(atomic.Int64))
						switch c.(*atomic.Int64).Add(1) {
						case 1:
							return jobpoll.Report{State: jobpoll.StateRunning}, nil
						case 2:
							return jobpoll.Report{RawStatus: "word " + j.ID}, nil
						}
						return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
					})}},
			})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			ran := make(chan error, 1)
			go func() { ran <- p.Run(ctx) }()
			for i := range jobs {
				require.NoError(t, p.Watch(ctx, jobpoll.Job{Route: "r", ID: fmt.Sprint(i)}))
			}
			<-done
			cancel()
			require.NoError(t, <-ran)
			m := p.Metrics().Total
			assert.Zero(t, m.Unresolved)
			assert.Zero(t, m.InFlight)
			assert.Zero(t, m.Hung)
			assert.Zero(t, m.Backlog)
			assert.EqualValues(t, jobs, m.Stops[jobpoll.ReasonSucceeded])
			assert.GreaterOrEqual(t, seen.Load(), int64(3*jobs))
		})
	}
}

// A burst of very many due jobs, with all workers in calls: what users do
// meanwhile has its answer, and what they ask for goes first.
func TestABurstLeavesTheAPIResponsive(t *testing.T) {
	const workers = 64
	jobs := scaled(60_000, 8000)
	var looks atomic.Int64
	var during atomic.Int64 // looks when the request was made
	asked := make(chan int64, 1)
	gate := make(chan struct{})
	p, err := jobpoll.New(jobpoll.Config{
		Workers: workers,
		Routes: []jobpoll.Route{{Name: "r", Schedule: jobpoll.Schedule{Delays: []time.Duration{time.Millisecond, time.Hour}, MinDelay: time.Millisecond},
			Stop: jobpoll.StopRules{MaxAge: jobpoll.NoLimit},
			Checker: jobpoll.CheckerFunc(func(ctx context.Context, j jobpoll.Job) (jobpoll.Report, error) {
				n := looks.Add(1)
				if j.ID == "asked" {
					asked <- n - during.Load()
				}
				if n > 200 {
					<-gate
				}
				return jobpoll.Report{State: jobpoll.StateRunning}, nil
			})}},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	for i := range jobs {
		require.NoError(t, p.Watch(ctx, jobpoll.Job{Route: "r", ID: fmt.Sprint(i)}))
	}
	require.NoError(t, p.Watch(ctx, jobpoll.Job{Route: "r", ID: "asked"}))
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	for looks.Load() < 200+workers { // all are in a call
		runtime.Gosched()
	}
	during.Store(looks.Load())
	require.NoError(t, p.PollNow(jobpoll.Key{Route: "r", ID: "asked"}))
	for i := range 50 {
		k := jobpoll.Key{Route: "r", ID: fmt.Sprint("extra", i)}
		require.NoError(t, p.Watch(ctx, jobpoll.Job{Route: "r", ID: k.ID}))
		_, ok := p.Job(k)
		require.True(t, ok)
		require.NoError(t, p.Notify(ctx, jobpoll.Notice{Key: k, Trust: jobpoll.TrustAuthoritative, Report: jobpoll.Report{State: jobpoll.StateQueued}}))
		require.NoError(t, p.Abandon(ctx, k, errors.New("enough")))
		p.Metrics()
	}
	assert.EqualValues(t, 200+workers, looks.Load(), "the burst stands still")
	assert.LessOrEqual(t, runtime.NumGoroutine(), 2*workers+80)
	close(gate)
	assert.LessOrEqual(t, <-asked, int64(6*workers), "it has gone before the burst")
	cancel()
	require.NoError(t, <-ran)
}
