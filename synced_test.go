package jobpoll_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/require"
)

// synced is a Poller in a testing/synctest bubble, with one route "r": for what
// the manual clock cannot wait for, such as code that ignores its context.
type synced struct {
	*jobpoll.Poller
	t         *testing.T
	check     func(context.Context, jobpoll.Job) (jobpoll.Report, error)
	callbacks jobpoll.Callbacks // besides recording
	cancel    context.CancelFunc
	ran       chan error

	mu       sync.Mutex
	outcomes []jobpoll.Outcome
	updates  []jobpoll.Update
}

// inBubble calls f in a bubble. What f starts must end before f returns; a Run
// is ended by it.
func inBubble(t *testing.T, f func(t *testing.T, b *synced)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &synced{t: t}
		f(t, b)
		b.stop()
	})
}

func (b *synced) start(change func(*jobpoll.Config, *jobpoll.Route)) {
	b.t.Helper()
	b.make(change)
	b.run()
}

func (b *synced) make(change func(*jobpoll.Config, *jobpoll.Route)) {
	b.t.Helper()
	r := caseRoute(jobpoll.CheckerFunc(func(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) { return b.check(ctx, job) }))
	cfg := jobpoll.Config{Rand: func() float64 { return 0.5 }, Callbacks: jobpoll.Callbacks{OnUpdate: b.onUpdate, OnStop: b.onStop}}
	if change != nil {
		change(&cfg, &r)
	}
	cfg.Routes = append(cfg.Routes, r)
	p, err := jobpoll.New(cfg)
	require.NoError(b.t, err)
	b.Poller = p
}

func (b *synced) run() {
	ctx, cancel := context.WithCancel(b.t.Context())
	b.cancel, b.ran = cancel, make(chan error, 1)
	go func() { b.ran <- b.Run(ctx) }()
	synctest.Wait()
}

func (b *synced) stop() {
	b.t.Helper()
	if b.cancel == nil {
		return
	}
	b.cancel()
	b.cancel = nil
	select {
	case err := <-b.ran:
		require.NoError(b.t, err)
	case <-time.After(time.Hour):
		b.t.Error("Run does not return")
	}
	synctest.Wait()
}

func (b *synced) onUpdate(ctx context.Context, u jobpoll.Update) {
	b.mu.Lock()
	b.updates = append(b.updates, u)
	b.mu.Unlock()
	if b.callbacks.OnUpdate != nil {
		b.callbacks.OnUpdate(ctx, u)
	}
}

func (b *synced) onStop(ctx context.Context, o jobpoll.Outcome) error {
	b.mu.Lock()
	b.outcomes = append(b.outcomes, o)
	b.mu.Unlock()
	if b.callbacks.OnStop != nil {
		return b.callbacks.OnStop(ctx, o)
	}
	return nil
}

func (b *synced) watch(id string) jobpoll.Key {
	b.t.Helper()
	require.NoError(b.t, b.Watch(b.t.Context(), jobOf(id)))
	synctest.Wait()
	return jobOf(id).Key()
}

func (b *synced) sleep(seconds float64) {
	time.Sleep(secs(seconds)[0])
	synctest.Wait()
}

func (b *synced) info(id string) jobpoll.JobInfo {
	b.t.Helper()
	i, ok := b.Job(jobOf(id).Key())
	require.True(b.t, ok)
	return i
}

func (b *synced) stops(id string) []jobpoll.Outcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []jobpoll.Outcome
	for _, o := range b.outcomes {
		if o.Job.ID == id {
			found = append(found, o)
		}
	}
	return found
}

func (b *synced) updatesOf(id string) []jobpoll.Update {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []jobpoll.Update
	for _, u := range b.updates {
		if u.Job.ID == id {
			found = append(found, u)
		}
	}
	return found
}

func (b *synced) ended(id string) jobpoll.Outcome {
	b.t.Helper()
	found := b.stops(id)
	require.Len(b.t, found, 1)
	return found[0]
}
