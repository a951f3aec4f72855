package jobpoll_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
)

// fragile is all the code that a user may bring: what is called where panics, the
// rest does what leads there.
type fragile struct {
	*jobpoll.MemoryStore
	where string
}

func (f *fragile) breaks(where string) {
	if f.where == where {
		panic("in " + where)
	}
}

func (f *fragile) Check(context.Context, jobpoll.Job) (jobpoll.Report, error) {
	f.breaks("Check")
	rep := jobpoll.Report{State: jobpoll.StateSucceeded}
	switch f.where {
	case "Lookup":
		return rep, &jobpoll.CheckError{Kind: jobpoll.ErrorNoSuchJob}
	case "Refresh":
		return rep, &jobpoll.CheckError{Kind: jobpoll.ErrorAuth}
	case "Cancel", "OnUpdate":
		rep.State = jobpoll.StateRunning
	}
	return rep, nil
}

func (f *fragile) CheckBatch(_ context.Context, jobs []jobpoll.Job) (map[string]jobpoll.Result, error) {
	f.breaks("CheckBatch")
	return nil, errors.New("no list")
}

func (f *fragile) MaxBatch() int { return map[bool]int{true: 10}[f.where == "CheckBatch"] }

func (f *fragile) Fetch(context.Context, jobpoll.Job, jobpoll.Report) (jobpoll.Report, error) {
	f.breaks("Fetch")
	return jobpoll.Report{State: jobpoll.StateSucceeded, Output: []byte("1")}, nil
}

func (f *fragile) Lookup(context.Context, jobpoll.Lost) (jobpoll.Finding, error) {
	f.breaks("Lookup")
	return jobpoll.Finding{}, nil
}

func (f *fragile) Refresh(context.Context) error {
	f.breaks("Refresh")
	return nil
}

func (f *fragile) Cancel(context.Context, jobpoll.Job) error {
	f.breaks("Cancel")
	return nil
}

func (f *fragile) Load(ctx context.Context) iter.Seq2[jobpoll.Record, error] {
	f.breaks("Store.Load")
	return f.MemoryStore.Load(ctx)
}

func (f *fragile) Get(ctx context.Context, kind jobpoll.RecordKind, id string) (jobpoll.Record, error) {
	f.breaks("Store.Get")
	return f.MemoryStore.Get(ctx, kind, id)
}

func (f *fragile) Put(ctx context.Context, batch []jobpoll.Record) error {
	f.breaks("Store.Put")
	return f.MemoryStore.Put(ctx, batch)
}

func (f *fragile) Lease(ctx context.Context, owner string, ttl time.Duration) (uint64, error) {
	f.breaks("Store.Lease")
	return f.MemoryStore.Lease(ctx, owner, ttl)
}

func TestAPanicIsToldWithTheNameOfWhatWasCalled(t *testing.T) {
	for _, where := range []string{"Check", "CheckBatch", "Fetch", "Lookup", "Refresh", "Cancel", "Send", "OnUpdate", "OnStop",
		"Store.Load", "Store.Get", "Store.Put", "Store.Lease", "Hooks.Looked", "Hooks.Scheduled", "Hooks.Stopped", "Hooks.Delivered", "Hooks.Submitted"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fragile{MemoryStore: jobpoll.NewMemoryStore(nil), where: where}
				var mu sync.Mutex
				told := map[string]bool{}
				p, err := jobpoll.New(jobpoll.Config{
					Store: f, Routes: []jobpoll.Route{{Name: "r", Checker: f, Schedule: every(time.Second)}},
					Stop: jobpoll.StopRules{MissingGrace: time.Second, MissingLooks: 1, AuthGrace: time.Minute},
					Callbacks: jobpoll.Callbacks{
						OnUpdate: func(context.Context, jobpoll.Update) { f.breaks("OnUpdate") },
						OnStop:   func(context.Context, jobpoll.Outcome) error { f.breaks("OnStop"); return nil },
					},
					Hooks: jobpoll.Hooks{
						Looked:    func(jobpoll.LookEvent) { f.breaks("Hooks.Looked") },
						Scheduled: func(jobpoll.ScheduleEvent) { f.breaks("Hooks.Scheduled") },
						Stopped:   func(jobpoll.StopEvent) { f.breaks("Hooks.Stopped") },
						Delivered: func(jobpoll.DeliverEvent) { f.breaks("Hooks.Delivered") },
						Submitted: func(jobpoll.SubmitEvent) { f.breaks("Hooks.Submitted") },
						Panicked:  func(e jobpoll.PanicEvent) { mu.Lock(); told[e.Where] = true; mu.Unlock() },
					},
				})
				assert.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- p.Run(ctx) }()
				time.Sleep(time.Second)
				for _, id := range []string{"a", "b"} {
					_ = p.Watch(ctx, jobpoll.Job{Route: "r", ID: id})
				}
				_ = p.Cancel(ctx, jobpoll.Key{Route: "r", ID: "a"}, nil)
				go func() {
					_, _ = p.Submit(ctx, jobpoll.Submission{Job: jobpoll.Job{Route: "r", ClientKey: "c"}, Send: func(context.Context) (jobpoll.Sent, error) {
						f.breaks("Send")
						return jobpoll.Sent{ID: "s"}, nil
					}})
				}()
				time.Sleep(30 * time.Second)
				cancel()
				<-ended
				mu.Lock()
				defer mu.Unlock()
				assert.Equal(t, map[string]bool{where: true}, told)
			})
		})
	}
}
