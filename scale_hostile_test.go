package jobpoll_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLongIDsAreKeptWhole(t *testing.T) {
	for name, tc := range map[string]struct{ bytes, jobs int }{
		"1 KB":              {1 << 10, 1000},
		"as long as may be": {4096 - len("client 00000000/"), 300},
	} {
		t.Run(name, func(t *testing.T) {
			before := heapNow()
			inBubble(t, func(t *testing.T, b *synced) {
				looked := map[string]int{}
				var mu sync.Mutex
				b.check = func(_ context.Context, j jobpoll.Job) (jobpoll.Report, error) {
					mu.Lock()
					defer mu.Unlock()
					if looked[j.ID]++; looked[j.ID] < 3 {
						return jobpoll.Report{State: jobpoll.StateRunning, Ref: "ref of " + j.ID[:9]}, nil
					}
					return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
				}
				b.start(nil)
				long := strings.Repeat("x", tc.bytes)
				for i := range tc.jobs {
					job := jobOf(fmt.Sprintf("%08d/%s", i, long))
					job.ClientKey = "client " + job.ID
					require.NoError(t, b.Watch(t.Context(), job))
				}
				b.sleep(3)
				for i := range tc.jobs {
					id := fmt.Sprintf("%08d/%s", i, long)
					got, ok := b.Find("client " + id)
					require.True(t, ok)
					require.True(t, got.Job.ID == id)
				}
				b.sleep(120)
				require.Len(t, b.outcomes, tc.jobs)
				for _, o := range b.outcomes {
					assert.Len(t, o.Job.ID, tc.bytes+9)
					assert.Equal(t, 3, looked[o.Job.ID])
				}
				b.outcomes, b.updates = nil, nil
				clear(looked)
			})
			assert.LessOrEqual(t, heapNow(), before+2<<20, "and nothing of them stays with the Poller")
		})
	}
}

// A provider that tells a new word at each look, of jobs that each have a
// profile of their own: nothing is lost, and what stays is bounded.
func TestDistinctProfilesAndWordsAreBoundedAndExact(t *testing.T) {
	jobs := scaled(20_000, 5000)
	inBubble(t, func(t *testing.T, b *synced) {
		word := func(id string, n int) string { return fmt.Sprintf("word-%s-%d", id, n) }
		b.check = func(_ context.Context, j jobpoll.Job) (jobpoll.Report, error) {
			return jobpoll.Report{State: jobpoll.StateRunning, RawStatus: word(j.ID, 1)}, nil
		}
		b.make(func(cfg *jobpoll.Config, r *jobpoll.Route) {
			cfg.Callbacks.OnStop = nil
			cfg.Callbacks.OnUpdate = b.onUpdate
			r.Schedule = every(time.Hour)
			r.Stop.MaxAge = jobpoll.NoLimit
		})
		before := heapNow()
		b.run()
		for i := range jobs {
			job := jobOf(fmt.Sprint(i))
			job.Profile = fmt.Sprintf("profile of job %d", i)
			require.NoError(t, b.Watch(t.Context(), job))
		}
		b.sleep(3700)
		require.Len(t, b.updates, jobs)
		for _, u := range b.updates {
			if u.Report.RawStatus != word(u.Job.ID, 1) || u.Job.Profile != "profile of job "+u.Job.ID {
				t.Fatalf("update of %s tells %q of %q", u.Job.ID, u.Report.RawStatus, u.Job.Profile)
			}
		}
		seen := 0
		for i := range b.Jobs() {
			seen++
			if i.RawStatus != word(i.Job.ID, 1) || i.Job.Profile != "profile of job "+i.Job.ID {
				t.Fatalf("%s has %q of %q", i.Job.ID, i.RawStatus, i.Job.Profile)
			}
		}
		require.Equal(t, jobs, seen)
		for i := range jobs {
			require.NoError(t, b.Abandon(t.Context(), jobOf(fmt.Sprint(i)).Key(), nil))
		}
		b.sleep(1)
		m := b.Metrics()
		assert.Zero(t, m.Total.Unresolved)
		assert.LessOrEqual(t, len(m.Total.UnknownWords), 33)
		b.mu.Lock()
		b.updates, b.outcomes = nil, nil
		b.mu.Unlock()
		b.stop()
		assert.LessOrEqual(t, heapNow(), before+16<<20)
	})
}

// A Checker that answers at once, for very many jobs on the real clock.
func TestACheckerThatReturnsAtOnce(t *testing.T) {
	jobs := scaled(30_000, 5000)
	done := make(chan struct{})
	var mu sync.Mutex
	told := make(map[string]int, jobs)
	p, err := jobpoll.New(jobpoll.Config{
		Routes: []jobpoll.Route{{Name: "r", Schedule: jobpoll.Schedule{Delays: []time.Duration{time.Microsecond}, MinDelay: time.Microsecond},
			Checker: jobpoll.CheckerFunc(func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
				return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
			})}},
		Callbacks: jobpoll.Callbacks{OnStop: func(_ context.Context, o jobpoll.Outcome) error {
			mu.Lock()
			defer mu.Unlock()
			if told[o.Job.ID]++; len(told) == jobs {
				close(done)
			}
			return nil
		}},
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
	for id, n := range told {
		require.Equal(t, 1, n, id)
	}
	m := p.Metrics().Total
	assert.Zero(t, m.Unresolved)
	assert.Zero(t, m.InFlight)
	assert.EqualValues(t, jobs, m.Looks)
}
