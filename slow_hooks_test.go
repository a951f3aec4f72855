package jobpoll_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A hook that takes longer than a call may is slow for its worker, and for
// nothing else: no answer is lost, and no call ends before it was made.
func TestSlowHooksLoseNoAnswerAndNoCall(t *testing.T) {
	slow := func() { time.Sleep(time.Minute) } // CheckTimeout is 10 s
	for name, hooks := range map[string]jobpoll.Hooks{
		"looked":    {Looked: func(jobpoll.LookEvent) { slow() }},
		"scheduled": {Scheduled: func(jobpoll.ScheduleEvent) { slow() }},
		"stopped":   {Stopped: func(jobpoll.StopEvent) { slow() }},
	} {
		for _, workers := range []int{1, 3} {
			for _, most := range []int{1, 10} { // jobs in a call
				t.Run(fmt.Sprint(name, workers, most), func(t *testing.T) {
					slowHooks(t, hooks, workers, most)
				})
			}
		}
	}
}

func slowHooks(t *testing.T, hooks jobpoll.Hooks, workers, most int) {
	const jobs = 7
	inBubble(t, func(t *testing.T, b *synced) {
		looks := map[string]int{}
		b.check = func(_ context.Context, job jobpoll.Job) (jobpoll.Report, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if looks[job.ID]++; looks[job.ID] < 3 {
				return jobpoll.Report{State: jobpoll.StateRunning}, nil
			}
			return jobpoll.Report{State: jobpoll.StateSucceeded, Output: []byte(`"x"`)}, nil
		}
		b.start(func(c *jobpoll.Config, r *jobpoll.Route) {
			c.Hooks, c.Workers = hooks, workers
			if most > 1 {
				r.Checker = slowHooksBatch{b, most}
			}
		})
		for i := range jobs {
			b.watch(fmt.Sprint("j", i))
		}
		time.Sleep(2 * time.Hour)
		for i := range jobs {
			id := fmt.Sprint("j", i)
			require.Len(t, b.stops(id), 1)
			assert.Equal(t, jobpoll.ReasonSucceeded, b.ended(id).Reason)
			assert.Equal(t, 3, looks[id], id)
		}
		m := b.Metrics().Total
		assert.EqualValues(t, 3*jobs, m.Looks)
		for kind, n := range m.LookErrors {
			assert.Zero(t, n, kind)
		}
	})
}

// A job that came due while all workers were calling waits for none of their hooks.
func TestALookThatIsDueWaitsForNoHookOfAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			time.Sleep(time.Second)
			return jobpoll.Report{State: jobpoll.StateRunning}, nil
		}
		var most time.Duration
		var slow atomic.Bool
		b.start(func(c *jobpoll.Config, _ *jobpoll.Route) {
			c.Workers = 1
			c.Hooks = jobpoll.Hooks{
				Looked: func(e jobpoll.LookEvent) {
					b.mu.Lock()
					defer b.mu.Unlock()
					most = max(most, e.Late)
				},
				Scheduled: func(jobpoll.ScheduleEvent) {
					if slow.Load() {
						time.Sleep(5 * time.Minute)
					}
				},
			}
		})
		b.watch("a")
		b.watch("b")
		slow.Store(true)
		b.sleep(20)
		slow.Store(false)
		b.sleep(600)
		b.mu.Lock()
		defer b.mu.Unlock()
		assert.LessOrEqual(t, most, 1100*time.Millisecond) // the call of the other
	})
}

// The answer to a submission is given to its caller whatever a hook does with it.
func TestASubmissionThatIsRefusedWaitsForNoHook(t *testing.T) {
	for name, hook := range map[string]func(){"slow": func() { time.Sleep(time.Hour) }, "ends its goroutine": runtime.Goexit} {
		for _, err := range []error{
			&jobpoll.CheckError{Kind: jobpoll.ErrorRateLimited, Status: 429},
			&jobpoll.CheckError{Kind: jobpoll.ErrorTransient, Status: 503, Hint: jobpoll.Hint{RetryAfter: time.Minute}},
		} {
			t.Run(fmt.Sprint(name, err), func(t *testing.T) {
				inBubble(t, func(t *testing.T, b *synced) {
					b.start(func(c *jobpoll.Config, _ *jobpoll.Route) {
						c.Hooks.RateLimited = func(jobpoll.CoolEvent) { hook() }
					})
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					begun := time.Now()
					_, got := b.Submit(ctx, jobpoll.Submission{Job: jobpoll.Job{Route: "r", ClientKey: "k"}, Send: func(context.Context) (jobpoll.Sent, error) {
						return jobpoll.Sent{}, err
					}})
					var se *jobpoll.SubmitError
					require.ErrorAs(t, got, &se)
					assert.NotErrorIs(t, got, context.DeadlineExceeded)
					assert.Less(t, time.Since(begun), time.Second)
					assert.False(t, se.Meaning == jobpoll.SubmitRefused && se.RetryAt.IsZero())
					b.sleep(2 * 3600)
				})
			})
		}
	}
}

// Hooks that do not return hold some goroutines, not one for each look, and all
// goes on once they do.
func TestHooksThatDoNotReturnHoldFewGoroutines(t *testing.T) {
	for name, hooks := range map[string]func(wait func()) jobpoll.Hooks{
		"looked": func(wait func()) jobpoll.Hooks { return jobpoll.Hooks{Looked: func(jobpoll.LookEvent) { wait() }} },
		"scheduled": func(wait func()) jobpoll.Hooks {
			return jobpoll.Hooks{Scheduled: func(jobpoll.ScheduleEvent) { wait() }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *synced) {
				var looks atomic.Int32
				var stuck atomic.Bool
				over := make(chan struct{})
				b.check = func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
					looks.Add(1)
					return jobpoll.Report{State: jobpoll.StateRunning}, nil
				}
				b.start(func(c *jobpoll.Config, _ *jobpoll.Route) {
					c.Workers = 2
					c.Hooks = hooks(func() {
						if stuck.Load() {
							<-over
						}
					})
				})
				for i := range 100 {
					b.watch(fmt.Sprint("j", i))
				}
				before := runtime.NumGoroutine()
				stuck.Store(true)
				b.sleep(600)
				assert.Less(t, runtime.NumGoroutine(), before+40)
				stuck.Store(false)
				close(over)
				seen := looks.Load()
				b.sleep(60)
				assert.Greater(t, looks.Load(), seen+100)
			})
		})
	}
}

// slowHooksBatch is a list of up to so many jobs.
type slowHooksBatch struct {
	b    *synced
	most int
}

func (c slowHooksBatch) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	return c.b.check(ctx, job)
}

func (c slowHooksBatch) MaxBatch() int { return c.most }

func (c slowHooksBatch) CheckBatch(ctx context.Context, jobs []jobpoll.Job) (map[string]jobpoll.Result, error) {
	all := map[string]jobpoll.Result{}
	for _, job := range jobs {
		rep, err := c.b.check(ctx, job)
		all[job.ID] = jobpoll.Result{Report: rep, Err: err}
	}
	return all, nil
}

// A hook, or whoever is told by one, may end the watch and begin another before
// the answer is taken in.
func TestAWaitBindsFromTheMomentThatItsLookIsTold(t *testing.T) {
	for name, err := range map[string]error{
		"pending": nil,
		"error":   &jobpoll.CheckError{Kind: jobpoll.ErrorTransient, Hint: jobpoll.Hint{RetryAfter: time.Minute, Scope: jobpoll.ScopeJob}},
	} {
		inBubble(t, func(t *testing.T, b *synced) {
			var looks []time.Time
			look := func(more ...time.Time) []time.Time {
				b.mu.Lock()
				defer b.mu.Unlock()
				looks = append(looks, more...)
				return slices.Clone(looks)
			}
			b.check = func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
				look(time.Now())
				return jobpoll.Report{State: jobpoll.StateRunning, Hint: jobpoll.Hint{RetryAfter: time.Minute}}, err
			}
			b.start(func(c *jobpoll.Config, _ *jobpoll.Route) {
				c.Hooks.Looked = func(e jobpoll.LookEvent) {
					if len(look()) == 1 {
						assert.NoError(t, b.Abandon(t.Context(), e.Job.Key(), nil))
						assert.NoError(t, b.Watch(t.Context(), e.Job))
					}
				}
			})
			b.watch("a")
			time.Sleep(5 * time.Minute)
			at := look()
			require.Greater(t, len(at), 1, name)
			assert.GreaterOrEqual(t, at[1].Sub(at[0]), time.Minute, name)
		})
	}
}
