package jobpoll_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// leaseSubmit begins a Submit; what it returned is given by result once it has.
func leaseSubmit(h *leaseHouse, p *jobpoll.Poller, client string, send func(context.Context) (jobpoll.Sent, error)) (result func() (jobpoll.Job, *jobpoll.SubmitError)) {
	h.t.Helper()
	type returned struct {
		job jobpoll.Job
		err error
	}
	ended := make(chan returned, 1)
	go func() {
		job, err := p.Submit(h.t.Context(), jobpoll.Submission{Job: jobpoll.Job{Route: "r", ClientKey: client}, Send: send})
		ended <- returned{job, err}
	}()
	return func() (jobpoll.Job, *jobpoll.SubmitError) {
		h.t.Helper()
		r := <-ended
		if r.err == nil {
			return r.job, nil
		}
		var e *jobpoll.SubmitError
		require.ErrorAs(h.t, r.err, &e)
		return r.job, e
	}
}

// leaseSent waits until somebody has sent a submission n times.
func leaseSent(h *leaseHouse, client string, n int) {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return len(h.prov.Sends(client)) == n }, 5*time.Second, time.Millisecond)
}

func leaseConfig(h *leaseHouse, name string) jobpoll.Config {
	return jobpoll.Config{Clock: h.clock, Store: h.store, Owner: name, Routes: []jobpoll.Route{{Name: "r", Checker: h.prov, Schedule: every(5 * time.Second)}},
		Callbacks: jobpoll.Callbacks{OnStop: func(_ context.Context, o jobpoll.Outcome) error {
			h.note(&h.told, name+" "+o.Job.ClientKey+" "+o.Reason.String())
			return nil
		}}}
}

// A machine that wakes up: the lease has lapsed, and the turn has come.
func TestASubmissionWhoseTurnComesWhileTheLeaseIsInDoubtIsSentOnceItIsSure(t *testing.T) {
	for _, monotonicRuns := range []bool{true, false} {
		h := newLeaseHouse(t)
		h.prov.Default("running")
		a, store := h.enters("a", func(c *jobpoll.Config) {
			c.Budget = jobpoll.NewBudget("account", jobpoll.Limits{Submit: jobpoll.LaneLimits{Limit: jobpoll.Limit{Rate: 0.1, Burst: 1}}})
		})
		require.NoError(t, a.Watch(t.Context(), jobpoll.Job{Route: "r", ID: "j"}))
		first := leaseSubmit(h, a.Poller, "first", h.prov.Send("first", polltest.Order{ID: "F"}))
		_, err := first()
		require.Nil(t, err)
		second := leaseSubmit(h, a.Poller, "second", h.prov.Send("second", polltest.Order{ID: "S"}))
		require.Eventually(t, func() bool { i, ok := a.Find("second"); return ok && i.Submission != nil }, 5*time.Second, time.Millisecond)
		store.Plan(func(c polltest.StoreCall) polltest.StoreFault {
			if c.Op == "Lease" {
				return polltest.StoreFault{Delay: 5 * time.Second}
			}
			return polltest.StoreFault{}
		})
		h.clock.Suspend(5*time.Minute, monotonicRuns)
		h.after(time.Second)
		h.after(time.Minute)
		job, err := second()
		require.Nil(t, err, "monotonic time runs: %v", monotonicRuns)
		assert.Equal(t, "S", job.ID)
		assert.Len(t, h.prov.Sends("second"), 1)
	}
}

// Before the first Run nobody renews the lease: another may take over while Send
// is under way. It must neither buy the job again nor say that it may be.
func TestASendThatOutlivesItsLeaseIsNotTakenForAbsentByTheNextOwner(t *testing.T) {
	h := newLeaseHouse(t)
	h.prov.Default("running")
	early, err := jobpoll.New(leaseConfig(h, "early"))
	require.NoError(t, err)
	began := make(chan struct{})
	send := h.prov.Send("c", polltest.Order{ID: "R-c"})
	first := leaseSubmit(h, early, "c", func(ctx context.Context) (jobpoll.Sent, error) {
		close(began)
		if err := h.clock.Sleep(context.WithoutCancel(ctx), 100*time.Second); err != nil {
			return jobpoll.Sent{}, err
		}
		return send(ctx)
	})
	<-began
	h.after(35 * time.Second)
	b, _ := h.enters("b", func(c *jobpoll.Config) { c.Routes[0].Reconciler = h.prov.Finder(0) })
	require.True(t, b.Health().Owner)
	second := leaseSubmit(h, b.Poller, "c", h.prov.Send("c", polltest.Order{ID: "twice"}))
	for range 100 {
		h.after(time.Second)
	}
	job, serr := first()
	require.NotNil(t, serr)
	assert.Equal(t, jobpoll.SubmitUnstored, serr.Meaning, "the caller gets the id")
	assert.Equal(t, "R-c", job.ID)
	h.after(time.Minute)
	job, serr = second()
	require.Nil(t, serr)
	assert.Equal(t, "R-c", job.ID)
	assert.Len(t, h.prov.Sends("c"), 1)
}

func TestAPollerThatWaitsForTheLeaseSendsNothingBeforeItIsTheOwner(t *testing.T) {
	h := newLeaseHouse(t)
	h.prov.Default("running")
	a, _ := h.enters("a", nil)
	b, _ := h.enters("b", nil)
	_, err := leaseSubmit(h, b.Poller, "c", h.prov.Send("c", polltest.Order{ID: "B"}))()
	require.ErrorIs(t, err, jobpoll.ErrNotOwner)
	assert.True(t, err.Safe())
	require.ErrorIs(t, b.Resolve(t.Context(), "c", ""), jobpoll.ErrNotOwner)
	_, err = leaseSubmit(h, a.Poller, "c", h.prov.Send("c", polltest.Order{ID: "A"}))()
	require.Nil(t, err)
	a.Stop()
	h.after(jobpoll.DefaultLeaseTTL / 3)
	job, err := leaseSubmit(h, b.Poller, "c", h.prov.Send("c", polltest.Order{ID: "B"}))()
	require.Nil(t, err)
	assert.Equal(t, "A", job.ID, "what the other has bought")
	assert.Len(t, h.prov.Sends("c"), 1)
	_, err = leaseSubmit(h, a.Poller, "d", h.prov.Send("d", polltest.Order{ID: "D"}))()
	require.ErrorIs(t, err, jobpoll.ErrShutdown)
	assert.Empty(t, h.prov.Sends("d"))
}

func TestASubmitBeforeTheFirstRunDoesNotWaitForAStoreThatHangs(t *testing.T) {
	h := newLeaseHouse(t)
	store := polltest.NewFaultyStore(h.store, h.clock)
	store.Plan(func(c polltest.StoreCall) polltest.StoreFault { return polltest.StoreFault{Hang: c.Op == "Lease"} })
	cfg := leaseConfig(h, "a")
	cfg.Store = store
	p, err := jobpoll.New(cfg)
	require.NoError(t, err)
	result := leaseSubmit(h, p, "c", h.prov.Send("c", polltest.Order{ID: "A"}))
	require.Eventually(t, func() bool { return len(store.Calls()) > 0 }, 5*time.Second, time.Millisecond)
	h.after(jobpoll.DefaultLeaseTTL / 2)
	_, serr := result()
	require.NotNil(t, serr)
	assert.Equal(t, jobpoll.SubmitNotSent, serr.Meaning)
	assert.Empty(t, h.prov.Sends("c"))
	store.Plan(nil)
	_, serr = leaseSubmit(h, p, "c", h.prov.Send("c", polltest.Order{ID: "A"}))()
	require.Nil(t, serr)
	_, err = h.store.Lease(t.Context(), "b", time.Minute)
	require.ErrorIs(t, err, jobpoll.ErrNotOwner, "it has the lease")
}

// What another owner could tell too is not told.
func TestAnEndOfASubmissionIsNotToldWithoutTheLease(t *testing.T) {
	h := newLeaseHouse(t)
	h.prov.Default("running")
	a, store := h.enters("a", func(c *jobpoll.Config) { c.Routes[0].SubmitTimeout = 50 * time.Second })
	result := leaseSubmit(h, a.Poller, "c", h.prov.Send("c", polltest.Order{Answer: "hang", Lost: true}))
	leaseSent(h, "c", 1)
	store.Plan(func(c polltest.StoreCall) polltest.StoreFault {
		if c.Op == "Lease" {
			return polltest.StoreFault{Err: errStoreDown}
		}
		return polltest.StoreFault{}
	})
	for range 90 {
		h.after(time.Second)
	}
	_, err := result()
	require.NotNil(t, err)
	assert.Equal(t, jobpoll.SubmitAmbiguous, err.Meaning)
	assert.Empty(t, h.seen(&h.told))
	store.Plan(nil)
	h.after(time.Minute)
	assert.Len(t, h.seen(&h.told), 1)
}

// Two owners in turn, with submissions in all states at each hand-over.
func TestSubmissionsAreBoughtOnceHoweverOftenTheOwnerChanges(t *testing.T) {
	h := newLeaseHouse(t)
	h.prov.Default("running; at 20s succeeded")
	withLookUp := func(c *jobpoll.Config) {
		c.Routes[0].Reconciler = h.prov.Finder(2 * time.Second)
		c.Routes[0].SubmitTimeout = 5 * time.Second
		c.ShutdownGrace = time.Second
		c.Budget = jobpoll.NewBudget("account", jobpoll.Limits{Submit: jobpoll.LaneLimits{Limit: jobpoll.Limit{Rate: 1, Burst: 2}}, Jobs: 6})
	}
	answers := []string{"queued", "reset", "hang", "503", "queued slow 3s", "429 retry-after 2s", "panic"}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var all sync.WaitGroup
	var bought []string
	for round := range 6 {
		p, _ := h.enters("owner", withLookUp)
		for i := range 12 {
			client := string(rune('a'+i)) + "-key"
			answer := answers[(i+round)%len(answers)]
			o := polltest.Order{ID: "R-" + client, Answer: answer, Lost: i%2 == 0 && answer[0] != '4', Script: "running; at 20s succeeded"}
			send := h.prov.Send(client, o)
			name := func() string { return "Submit of " + client }
			started := h.clock.Busy(name) // so that the clock waits until it waits
			all.Go(func() {
				ctx, idle := h.clock.BusyContext(ctx, name)
				started()
				defer idle()
				_, _ = p.Submit(ctx, jobpoll.Submission{Job: jobpoll.Job{Route: "r", ClientKey: client}, Send: func(ctx context.Context) (jobpoll.Sent, error) {
					if o.Lost || strings.HasPrefix(answer, "queued") {
						h.note(&bought, client)
					}
					return send(ctx)
				}})
			})
		}
		for range 3 + round {
			h.after(time.Second)
		}
		p.Stop()
	}
	end()
	all.Wait()
	p, _ := h.enters("owner", withLookUp)
	for range 300 {
		h.after(time.Second)
	}
	for i := range p.Submissions() {
		assert.Fail(t, "it has not come to an end", "%s: %+v", i.Job.ClientKey, i.Submission)
	}
	times := map[string]int{}
	for _, client := range h.seen(&bought) {
		times[client]++
	}
	assert.NotEmpty(t, times)
	for client, n := range times {
		assert.Equal(t, 1, n, client)
	}
	for name, m := range p.Metrics().Budgets {
		assert.Zero(t, m.Jobs, name)
	}
}
