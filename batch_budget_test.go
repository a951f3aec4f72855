package jobpoll_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBatchesWhereTheBudgetIsShort(t *testing.T) {
	r, b := batchRig(t, 20, func(_ *polltest.Batch, cfg *jobpoll.Config, _ *jobpoll.Route) {
		cfg.Budget = jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 1, Burst: 1}})
	})
	batchWatch(r, `running; at 30s succeeded`, ids("j", 200)...)
	r.to(26 * time.Second)
	for _, id := range ids("j", 200) {
		require.GreaterOrEqual(t, len(r.looks(id)), 2, id)
	}
	r.to(3 * time.Minute)
	assert.EqualValues(t, 200, r.Metrics().Total.Stops[jobpoll.ReasonSucceeded])
	var at []time.Time
	for _, c := range b.Calls() {
		at = append(at, c.At)
	}
	requirePaced(t, at, 1, 1)
	assert.LessOrEqual(t, 15*len(at), int(r.Metrics().Total.Looks))
	r.atZero()
}

// guardedList refuses all calls until it is good, and counts the looks at one job.
type guardedList struct {
	*polltest.Batch
	good   bool
	probes int
}

func (g *guardedList) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	if g.good {
		return g.Batch.Check(ctx, job)
	}
	g.probes++
	return jobpoll.Report{}, &jobpoll.CheckError{Kind: jobpoll.ErrorAuth}
}

func TestRefusedCredentialsAreProbedByOneJob(t *testing.T) {
	var g *guardedList
	r, b := batchRig(t, 20, func(b *polltest.Batch, _ *jobpoll.Config, rt *jobpoll.Route) {
		g = &guardedList{Batch: b}
		rt.Checker = g
		b.OnBatch = func(context.Context, []jobpoll.Job) error {
			if g.good {
				return nil
			}
			return &jobpoll.CheckError{Kind: jobpoll.ErrorAuth}
		}
	})
	batchWatch(r, `running; at 30s succeeded`, ids("j", 30)...)
	r.to(200 * time.Second)
	assert.Len(t, b.Calls(), 2, "the first two went out together")
	assert.LessOrEqual(t, g.probes, 4, "one probe a minute")
	assert.GreaterOrEqual(t, g.probes, 2)
	g.good = true
	r.to(300 * time.Second)
	assert.EqualValues(t, 30, r.Metrics().Total.Stops[jobpoll.ReasonSucceeded])
	r.atZero()
}

func TestABatchThatAShutdownCutsOffIsNoAnswer(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	prov := polltest.NewProvider(clock)
	b := polltest.Batched(prov, 10)
	p, err := jobpoll.New(jobpoll.Config{Clock: clock, Routes: []jobpoll.Route{{Name: "r", Checker: b, Schedule: every(5 * time.Second)}}})
	require.NoError(t, err)
	prov.Default(`running slow 20s`)
	for _, id := range ids("j", 5) {
		require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id}))
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	for p.Metrics().Total.InFlight < 5 { // Run has begun, and they are due
		clock.Advance(time.Second)
		runtime.Gosched()
	}
	cancel()
	require.NoError(t, <-ran)
	m := p.Metrics().Total
	assert.Zero(t, m.InFlight)
	assert.Zero(t, m.Failing)
	for _, id := range ids("j", 5) {
		info, ok := p.Job(key(id))
		require.True(t, ok)
		assert.Zero(t, info.Polls, "it counts as no look")
	}
}

// Jobs that are looked at by themselves do not cut the batches of the others short.
func TestJobsThatListsDoNotKnowKeepBatchesFull(t *testing.T) {
	r, b := shortRig(t, func(_ *rig, id string) (jobpoll.Result, bool) { return jobpoll.Result{}, !strings.HasPrefix(id, "old") },
		func(cfg *jobpoll.Config) {
			cfg.Budget = jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 2, Burst: 1}})
		})
	for i := range 20 {
		batchWatch(r, `running; at 30m succeeded`, ids(fmt.Sprintf("new%02d", i), 9)...)
		batchWatch(r, `running; at 30m succeeded`, fmt.Sprintf("old%02d", i))
	}
	r.to(20 * time.Minute)
	lists := len(b.Calls())
	r.to(25 * time.Minute)
	listed := 0
	for _, c := range b.Calls()[lists:] {
		listed += len(c.IDs)
	}
	assert.Greater(t, float64(listed), 9.5*float64(len(b.Calls())-lists), "of 10")
	for i := range 20 {
		looks := r.prov.Looks(fmt.Sprintf("old%02d", i))
		assert.Less(t, r.Clock.Now().Sub(looks[len(looks)-1]), 30*time.Second, "20 of its kind and 18 lists, 2 a second")
	}
	r.to(40 * time.Minute)
	assert.EqualValues(t, 200, r.Metrics().Total.Stops[jobpoll.ReasonSucceeded])
	r.atZero()
}
