package jobpoll_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Strings that user code was given are good for ever, whatever becomes of the
// memory that their job was in.
func TestStringsOutliveTheirJobs(t *testing.T) {
	kept, churn := scaled(10_000, 1000), scaled(25_000, 5000)
	inBubble(t, func(t *testing.T, b *synced) {
		type given struct{ s, clone string }
		var mu sync.Mutex
		var all []given
		keep := func(ss ...string) {
			mu.Lock()
			defer mu.Unlock()
			for _, s := range ss {
				all = append(all, given{s, strings.Clone(s)})
			}
		}
		b.check = func(_ context.Context, j jobpoll.Job) (jobpoll.Report, error) {
			if strings.HasPrefix(j.ID, "keep") {
				keep(j.ID, j.ClientKey, j.Profile, j.Ref)
				return jobpoll.Report{State: jobpoll.StateRunning, RawStatus: "word of " + j.ID, Ref: "ref of " + j.ID}, nil
			}
			return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
		}
		b.make(func(cfg *jobpoll.Config, r *jobpoll.Route) {
			cfg.Callbacks = jobpoll.Callbacks{}
			r.Schedule = every(10 * time.Second)
		})
		b.run()
		for i := range kept {
			job := jobOf(fmt.Sprint("keep", i))
			job.ClientKey, job.Profile = "client of "+job.ID, "profile of "+job.ID
			require.NoError(t, b.Watch(t.Context(), job))
		}
		b.sleep(25)
		for i := range b.Jobs() {
			keep(i.Job.ID, i.Job.ClientKey, i.Job.Profile, i.Job.Ref, i.RawStatus)
		}
		for i := range kept {
			require.NoError(t, b.Abandon(t.Context(), jobOf(fmt.Sprint("keep", i)).Key(), nil))
		}
		for i := range churn {
			require.NoError(t, b.Watch(t.Context(), jobOf(fmt.Sprint("churn", i))))
			if i%5000 == 0 {
				b.sleep(15)
			}
		}
		b.sleep(60)
		assert.Zero(t, b.Metrics().Total.Unresolved)
		require.GreaterOrEqual(t, len(all), 9*kept)
		for _, g := range all {
			if g.s != g.clone {
				t.Fatalf("%q has become %q", g.clone, g.s)
			}
		}
	})
}

// After a crowd has ended only the bounded tombstones stay, and the next crowd
// costs no more than the first.
func TestMemoryFallsAfterACrowd(t *testing.T) {
	jobs := scaled(15_000, 5000) // more than there are tombstones
	inBubble(t, func(t *testing.T, b *synced) {
		var over atomic.Bool
		b.check = func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			if over.Load() {
				return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
			}
			return jobpoll.Report{State: jobpoll.StateRunning}, nil
		}
		b.make(func(cfg *jobpoll.Config, r *jobpoll.Route) {
			cfg.Callbacks = jobpoll.Callbacks{}
			r.Schedule = every(20 * time.Second)
		})
		b.run()
		var after [6]uint64 // what the collector leaves differs by a megabyte from time to time: the least counts
		before := heapNow()
		for round := range after {
			over.Store(false)
			for i := range jobs {
				require.NoError(t, b.Watch(t.Context(), jobOf(fmt.Sprintf("crowd-%d-%030d", round, i))))
			}
			b.sleep(25)
			full := heapNow()
			if !raceEnabled {
				assert.LessOrEqual(t, full-min(before, full), uint64(jobs)*420+8<<20, "round %d", round)
			}
			over.Store(true)
			b.sleep(60)
			require.Zero(t, b.Metrics().Total.Unresolved)
			after[round] = heapNow()
		}
		early, late := min(after[0], after[1], after[2]), min(after[3], after[4], after[5])
		t.Logf("heap %d KiB before, then %d KiB, then %d KiB", before>>10, early>>10, late>>10)
		assert.LessOrEqual(t, early, before+10<<20, "4096 tombstones and little else")
		assert.LessOrEqual(t, late, early+2<<20, "45 bytes of each job that has gone")
	})
}

// Jobs goes over the jobs while others come and go: one that is there all the
// time is seen, once.
func TestJobsWhileJobsComeAndGo(t *testing.T) {
	const lasting, rounds = 1000, 8
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = func(_ context.Context, j jobpoll.Job) (jobpoll.Report, error) {
			if j.ID[0] == 'l' {
				return jobpoll.Report{State: jobpoll.StateRunning}, nil
			}
			return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
		}
		b.start(func(_ *jobpoll.Config, r *jobpoll.Route) { r.Schedule = every(time.Second) })
		for i := range lasting {
			require.NoError(t, b.Watch(t.Context(), jobOf(fmt.Sprint("l", i))))
		}
		n := 0
		for range rounds {
			seen := map[string]int{}
			for i := range b.Jobs() {
				if seen[i.Job.ID]++; len(seen)%50 == 0 {
					n++
					require.NoError(t, b.Watch(t.Context(), jobOf(fmt.Sprint("come", n))))
					if n%3 == 0 {
						time.Sleep(300 * time.Millisecond)
					}
				}
			}
			for i := range lasting {
				require.Equal(t, 1, seen[fmt.Sprint("l", i)])
			}
		}
		for i := range lasting {
			require.NoError(t, b.Abandon(t.Context(), jobOf(fmt.Sprint("l", i)).Key(), nil))
		}
		b.sleep(30)
		for range b.Jobs() {
			t.Error("a job is left")
		}
	})
}

func TestAJobWatchedEndedAndWatchedAgain(t *testing.T) {
	rounds := scaled(10_000, 2000)
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			return jobpoll.Report{State: jobpoll.StateRunning}, nil
		}
		told := 0
		b.make(func(cfg *jobpoll.Config, r *jobpoll.Route) {
			r.Schedule = every(time.Hour)
			cfg.Callbacks.OnUpdate = nil
			cfg.Callbacks.OnStop = func(context.Context, jobpoll.Outcome) error { told++; return nil }
		})
		b.run()
		before := heapNow()
		for n := range rounds {
			job := jobOf("again")
			job.ClientKey = fmt.Sprint("key ", n%3)
			require.NoError(t, b.Watch(t.Context(), job))
			if n%2 == 0 {
				synctest.Wait()
			}
			i, ok := b.Find(job.ClientKey)
			require.True(t, ok)
			require.Equal(t, "again", i.Job.ID)
			require.NoError(t, b.Abandon(t.Context(), job.Key(), errors.New("enough")))
			if n%4 != 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		m := b.Metrics()
		assert.Zero(t, m.Total.Unresolved)
		assert.EqualValues(t, m.Total.Watched, told)
		assert.Greater(t, told, rounds/2)
		assert.LessOrEqual(t, heapNow(), before+1<<20)
	})
}

func TestClientKeysOfManyJobs(t *testing.T) {
	jobs := scaled(4000, 1500) // so few that all are remembered after their ends
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = func(_ context.Context, j jobpoll.Job) (jobpoll.Report, error) {
			return jobpoll.Report{State: jobpoll.StateRunning}, nil
		}
		b.start(func(_ *jobpoll.Config, r *jobpoll.Route) { r.Schedule = every(10 * time.Second) })
		job := func(i int) jobpoll.Job {
			j := jobOf(fmt.Sprint("j", i))
			j.ClientKey = fmt.Sprint("c", i)
			return j
		}
		for i := range jobs {
			require.NoError(t, b.Watch(t.Context(), job(i)))
		}
		b.sleep(15)
		has := func(client, id string) {
			t.Helper()
			i, ok := b.Find(client)
			require.True(t, ok, client)
			require.Equal(t, id, i.Job.ID)
		}
		for i := range jobs {
			has(fmt.Sprint("c", i), fmt.Sprint("j", i))
			other := jobOf(fmt.Sprint("other", i))
			other.ClientKey = fmt.Sprint("c", i)
			require.ErrorIs(t, b.Watch(t.Context(), other), jobpoll.ErrDuplicateKey)
			require.NoError(t, b.Notify(t.Context(), jobpoll.Notice{Key: jobpoll.Key{Route: "r"}, ClientKey: other.ClientKey}))
		}
		for i := range jobs {
			require.NoError(t, b.Abandon(t.Context(), job(i).Key(), nil))
		}
		b.sleep(1)
		last := min(jobs, 1000)
		for i := jobs - last; i < jobs; i++ { // also after the end
			has(fmt.Sprint("c", i), fmt.Sprint("j", i))
			again := job(i)
			again.ClientKey = fmt.Sprint("new", i)
			require.NoError(t, b.Watch(t.Context(), again))
			has(again.ClientKey, again.ID)
			_, ok := b.Find(fmt.Sprint("c", i))
			require.False(t, ok, "the old key is free")
			other := jobOf(fmt.Sprint("other", i))
			other.ClientKey = fmt.Sprint("c", i)
			require.NoError(t, b.Watch(t.Context(), other))
			has(other.ClientKey, other.ID)
		}
		assert.Equal(t, 2*last, b.Metrics().Total.Unresolved)
	})
}

func TestRoutesAddedWhileRunning(t *testing.T) {
	const routes, jobs = 50, 40
	inBubble(t, func(t *testing.T, b *synced) {
		b.check = func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
		}
		b.start(nil)
		var all sync.WaitGroup
		for i := range routes {
			all.Go(func() {
				name := fmt.Sprint("added", i)
				require.NoError(t, b.AddRoute(jobpoll.Route{Name: name, Checker: jobpoll.CheckerFunc(b.check)}))
				for n := range jobs {
					require.NoError(t, b.Watch(t.Context(), jobpoll.Job{Route: name, ID: fmt.Sprint(n)}))
				}
			})
		}
		all.Wait()
		b.sleep(120)
		assert.Len(t, b.outcomes, routes*jobs)
		m := b.Metrics()
		assert.Len(t, m.Routes, routes+1)
		assert.Zero(t, m.Total.Unresolved)
	})
}

func TestManyJobsOutliveManyRuns(t *testing.T) {
	jobs := scaled(20_000, 4000)
	inBubble(t, func(t *testing.T, b *synced) {
		var looks atomic.Int64
		var over atomic.Bool
		b.check = func(ctx context.Context, _ jobpoll.Job) (jobpoll.Report, error) {
			looks.Add(1)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return jobpoll.Report{}, ctx.Err()
			}
			if over.Load() {
				return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
			}
			return jobpoll.Report{State: jobpoll.StateRunning}, nil
		}
		told := map[string]int{}
		b.callbacks.OnStop = func(_ context.Context, o jobpoll.Outcome) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			told[o.Job.ID]++
			return nil
		}
		b.make(func(cfg *jobpoll.Config, r *jobpoll.Route) {
			cfg.Workers = 256
			cfg.Callbacks.OnUpdate = nil
			r.Schedule = every(30 * time.Second)
		})
		for i := range jobs {
			require.NoError(t, b.Watch(t.Context(), jobOf(fmt.Sprint(i))))
		}
		for range 5 {
			b.run()
			b.sleep(7.5) // some are waiting, some due, some being looked at
			b.stop()
			m := b.Metrics().Total
			require.Equal(t, jobs, m.Unresolved)
			require.Zero(t, m.InFlight)
			require.Zero(t, m.Backlog.Jobs)
		}
		over.Store(true)
		b.run()
		b.sleep(600)
		assert.Len(t, told, jobs)
		for id, n := range told {
			require.Equal(t, 1, n, id)
		}
	})
}

func TestRestoreOfManyJobs(t *testing.T) {
	jobs := scaled(6000, 800)
	inBubble(t, func(t *testing.T, b *synced) {
		store := jobpoll.NewMemoryStore(nil)
		var over atomic.Bool
		b.check = func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			if over.Load() {
				return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
			}
			return jobpoll.Report{State: jobpoll.StateRunning, Ref: "a reference"}, nil
		}
		change := func(cfg *jobpoll.Config, r *jobpoll.Route) {
			cfg.Store = store
			cfg.Callbacks.OnUpdate = nil
			r.Schedule = every(20 * time.Second)
		}
		b.start(change)
		for i := range jobs {
			job := jobOf(fmt.Sprint(i))
			job.ClientKey = fmt.Sprint("c", i)
			require.NoError(t, b.Watch(t.Context(), job))
		}
		b.sleep(30)
		b.stop()
		b.make(change)
		n, err := b.Restore(t.Context())
		require.NoError(t, err)
		require.Equal(t, jobs, n)
		for i := range jobs {
			info, ok := b.Find(fmt.Sprint("c", i))
			require.True(t, ok)
			require.Equal(t, fmt.Sprint(i), info.Job.ID)
			require.Equal(t, "a reference", info.Job.Ref)
			require.Equal(t, 1, info.Polls)
		}
		over.Store(true)
		b.run()
		b.sleep(60)
		m := b.Metrics().Total
		assert.EqualValues(t, jobs, m.Restored)
		assert.Zero(t, m.Unresolved)
		assert.Len(t, b.outcomes, jobs)
	})
}

// The wall clock jumps while many jobs wait for hours: each is looked at once.
func TestAClockJumpWithManyJobs(t *testing.T) {
	jobs := scaled(20_000, 4000)
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
		c.Routes[0].Schedule = every(6 * time.Hour)
		c.Stop.MaxAge = jobpoll.NoLimit
		c.Callbacks = jobpoll.Callbacks{}
	})
	r.prov.Default("running")
	for i := range jobs {
		require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: fmt.Sprint(i)}))
	}
	r.to(time.Minute)
	require.Zero(t, r.Metrics().Total.Looks)
	r.Clock.Jump(12 * time.Hour)
	r.to(2 * time.Minute)
	m := r.Metrics()
	assert.EqualValues(t, 1, m.ClockJumps)
	assert.EqualValues(t, jobs, m.Total.Looks)
	assert.Equal(t, jobs, m.Total.Unresolved)
	assert.Zero(t, m.Total.Backlog.Jobs)
}
