package jobpoll_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wildList is a list that does all that user code may do.
type wildList struct {
	looks sync.Map // id → *atomic.Int64
	calls atomic.Int64
}

func (l *wildList) Check(_ context.Context, j jobpoll.Job) (jobpoll.Report, error) { return l.of(j) }

func (l *wildList) MaxBatch() int { return 20 }

func (l *wildList) of(j jobpoll.Job) (jobpoll.Report, error) {
	n, _ := l.looks.LoadOrStore(j.ID, new(atomic.Int64))
	switch n := n.(*atomic.Int64).Add(1); {
	case n < 3:
		return jobpoll.Report{State: jobpoll.StateRunning}, nil
	case n == 3:
		return jobpoll.Report{}, errors.New("odd")
	}
	return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
}

func (l *wildList) CheckBatch(ctx context.Context, jobs []jobpoll.Job) (map[string]jobpoll.Result, error) {
	switch l.calls.Add(1) % 9 {
	case 1:
		panic("in the list")
	case 2:
		runtime.Goexit()
	case 3:
		return nil, &jobpoll.CheckError{Kind: jobpoll.ErrorInvalid}
	case 4:
		<-ctx.Done()
		return nil, ctx.Err()
	case 5:
		return map[string]jobpoll.Result{"nobody": {}}, nil
	}
	all := map[string]jobpoll.Result{}
	for _, j := range jobs {
		rep, err := l.of(j)
		all[j.ID] = jobpoll.Result{Report: rep, Err: err}
	}
	return all, nil
}

// Batches on real workers, with user code that dies and jobs that end at any
// time: each job ends once, and nothing is left over.
func TestBatchesOnWorkers(t *testing.T) {
	for name, draw := range map[string]func() float64{"own": nil, "the user's": rand.Float64} {
		t.Run(name, func(t *testing.T) {
			const jobs = 400
			var told atomic.Int64
			var stops sync.Map
			done := make(chan struct{})
			p, err := jobpoll.New(jobpoll.Config{
				Workers: 8, Rand: draw,
				Hooks: jobpoll.Hooks{Looked: func(jobpoll.LookEvent) {}},
				Callbacks: jobpoll.Callbacks{OnStop: func(_ context.Context, o jobpoll.Outcome) error {
					_, again := stops.LoadOrStore(o.Job.ID, true)
					assert.False(t, again, o.Job.ID)
					if told.Add(1) == jobs {
						close(done)
					}
					return nil
				}},
				Routes: []jobpoll.Route{{Name: "r", Checker: &wildList{}, CheckTimeout: 20 * time.Millisecond,
					Stop:     jobpoll.StopRules{MaxErrors: jobpoll.NoCount},
					Schedule: jobpoll.Schedule{Delays: []time.Duration{5 * time.Millisecond}, MinDelay: time.Millisecond}}},
			})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			ran := make(chan error, 1)
			go func() { ran <- p.Run(ctx) }()
			for i := range jobs {
				k := jobpoll.Key{Route: "r", ID: fmt.Sprint(i)}
				require.NoError(t, p.Watch(ctx, jobpoll.Job{Route: "r", ID: k.ID}))
				switch i % 10 {
				case 3:
					require.NoError(t, p.PollNow(k))
				case 5:
					require.NoError(t, p.Abandon(ctx, k, errors.New("enough")))
				case 7:
					require.NoError(t, p.Notify(ctx, jobpoll.Notice{Key: k, Report: jobpoll.Report{State: jobpoll.StateSucceeded}}))
				}
			}
			<-done
			m := p.Metrics().Total
			assert.Zero(t, m.Unresolved)
			assert.Less(t, m.Calls, m.Looks)
			cancel()
			require.NoError(t, <-ran)
			m = p.Metrics().Total
			assert.Zero(t, m.InFlight)
			assert.Zero(t, m.Hung)
			assert.Zero(t, m.Backlog)
		})
	}
}
