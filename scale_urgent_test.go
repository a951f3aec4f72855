package jobpoll_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// callOrder notes the ids in the order in which they are looked at; each look
// takes a while.
type callOrder struct {
	takes time.Duration
	mu    sync.Mutex
	ids   []string
}

func (c *callOrder) Check(_ context.Context, j jobpoll.Job) (jobpoll.Report, error) {
	c.mu.Lock()
	c.ids = append(c.ids, j.ID)
	c.mu.Unlock()
	time.Sleep(c.takes)
	return jobpoll.Report{State: jobpoll.StateRunning}, nil
}

func (c *callOrder) after(n int) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ids[n:])
}

func (c *callOrder) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ids)
}

// Many jobs are due and few workers work them off: what somebody asks for goes
// before them, whether that job is due itself, or not yet, or just watched.
func TestUrgentLooksGoBeforeTheBacklog(t *testing.T) {
	const workers, jobs = 4, 4000
	for name, ask := range map[string]func(p *jobpoll.Poller, k jobpoll.Key) error{
		"PollNow": func(p *jobpoll.Poller, k jobpoll.Key) error { return p.PollNow(k) },
		"a hint": func(p *jobpoll.Poller, k jobpoll.Key) error {
			return p.Notify(context.Background(), jobpoll.Notice{Key: k, Report: jobpoll.Report{State: jobpoll.StateRunning}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *synced) {
				c := &callOrder{takes: time.Second}
				b.check = c.Check
				b.start(func(cfg *jobpoll.Config, r *jobpoll.Route) {
					cfg.Workers = workers
					r.Schedule = jobpoll.Schedule{Delays: []time.Duration{time.Second}, MinDelay: time.Second, Jitter: jobpoll.NoJitter}
				})
				for i := range jobs {
					require.NoError(t, b.Watch(t.Context(), jobOf(fmt.Sprint("j", i))))
				}
				later := jobOf("later")
				later.NotBefore = time.Now().Add(time.Hour)
				require.NoError(t, b.Watch(t.Context(), later))
				b.sleep(10.5)
				require.Greater(t, b.Metrics().Total.Backlog.Jobs, jobs/2)
				n := c.count()
				asked := []string{"j3999", "j2000", "j3000"}
				for _, id := range asked {
					require.NoError(t, ask(b.Poller, jobOf(id).Key()))
					require.NoError(t, ask(b.Poller, jobOf(id).Key()), "twice is once")
				}
				b.sleep(2)
				got := c.after(n)
				require.GreaterOrEqual(t, len(got), workers)
				assert.Subset(t, got[:workers], asked) // the workers come to their calls in any order
				for _, id := range asked {
					assert.Equal(t, 1, countOf(c.after(0), id), "%s is looked at once", id)
				}
				i := b.info("j3999")
				assert.Equal(t, 1, i.Polls)
			})
		})
	}
}

func countOf(all []string, id string) int {
	n := 0
	for _, s := range all {
		if s == id {
			n++
		}
	}
	return n
}

// A backlog that is asked for over and over: each job is still looked at in
// turn, and nothing piles up.
func TestAskingForTheWholeBacklogKeepsItsOrder(t *testing.T) {
	const jobs = 500
	inBubble(t, func(t *testing.T, b *synced) {
		c := &callOrder{takes: 10 * time.Millisecond}
		b.check = c.Check
		b.start(func(cfg *jobpoll.Config, r *jobpoll.Route) {
			cfg.Workers = 1
			r.Schedule = jobpoll.Schedule{Delays: []time.Duration{time.Second}, MinDelay: time.Second, Jitter: jobpoll.NoJitter}
		})
		for i := range jobs {
			require.NoError(t, b.Watch(t.Context(), jobOf(fmt.Sprint("j", i))))
		}
		for range 80 {
			b.sleep(0.1)
			for i := range jobs {
				require.NoError(t, b.PollNow(jobOf(fmt.Sprint("j", i)).Key()))
			}
		}
		seen := map[string]int{}
		for _, id := range c.after(0) {
			seen[id]++
		}
		assert.Len(t, seen, jobs)
		least, most := len(c.ids), 0
		for _, n := range seen {
			least, most = min(least, n), max(most, n)
		}
		assert.LessOrEqual(t, most-least, 1, "all have had as many looks")
		for i := range jobs {
			require.NoError(t, b.Abandon(t.Context(), jobOf(fmt.Sprint("j", i)).Key(), nil))
		}
		b.sleep(1)
		m := b.Metrics().Total
		assert.Zero(t, m.Backlog)
		assert.Zero(t, m.Unresolved)
		synctest.Wait()
	})
}
