package jobpoll_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
)

// A list that always fails, while looks do not, loses no job: not by its errors, not
// where these do not count, and no job waits for it for long.
func TestAListThatAlwaysFailsLosesNoJob(t *testing.T) {
	for name, fail := range map[string]func(context.Context) error{
		"errors": func(context.Context) error { return errors.New("an answer without a list") },
		"panics": func(context.Context) error { panic("in the list") },
		"hangs": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"comes too late": func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		},
	} {
		for _, most := range []int{0, 2, jobpoll.NoCount} {
			t.Run(name, func(t *testing.T) {
				r, b := batchRig(t, 10, func(b *polltest.Batch, _ *jobpoll.Config, rt *jobpoll.Route) {
					rt.Stop.MaxErrors = most
					b.OnBatch = func(ctx context.Context, _ []jobpoll.Job) error { return fail(ctx) }
				})
				batchWatch(r, `running; at 20m succeeded`, ids("j", 30)...)
				r.to(21 * time.Minute)
				for _, id := range ids("j", 30) {
					o := r.ended(id, jobpoll.ReasonSucceeded)
					assert.Less(t, o.DetectedAt.Sub(r.start), 20*time.Minute+10*time.Second)
					assert.LessOrEqual(t, listedIDs(b, id), 10)
				}
				r.atZero()
			})
		}
	}
}

// After the provider was away, jobs go together again at once: a budget of one call a
// second is not enough for a look at each.
func TestAfterAnOutageJobsGoTogetherAgain(t *testing.T) {
	away := false
	r, b := batchRig(t, 20, func(b *polltest.Batch, cfg *jobpoll.Config, rt *jobpoll.Route) {
		cfg.Budget = jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 1, Burst: 1}})
		rt.Checker = &awayList{b, &away}
		rt.Stop.MaxErrors = 30
		rt.Schedule = every(20 * time.Second)
	})
	batchWatch(r, `running; at 30m succeeded`, ids("j", 200)...)
	r.to(time.Minute)
	away = true
	r.to(10 * time.Minute)
	away = false
	lists := len(b.Calls())
	r.to(14 * time.Minute)
	for _, id := range ids("j", 200) {
		looks := r.prov.Looks(id) // that were answered
		assert.Less(t, r.Clock.Now().Sub(looks[len(looks)-1]), 2*time.Minute, id)
	}
	assert.Greater(t, len(b.Calls()), lists+50)
	r.to(35 * time.Minute)
	for _, id := range ids("j", 200) {
		r.ended(id, jobpoll.ReasonSucceeded)
	}
	r.atZero()
}

// awayList is of a provider that may be away.
type awayList struct {
	*polltest.Batch
	away *bool
}

var errAway = errors.New("no answer")

func (l *awayList) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	if *l.away {
		return jobpoll.Report{}, errAway
	}
	return l.Batch.Check(ctx, job)
}

func (l *awayList) CheckBatch(ctx context.Context, jobs []jobpoll.Job) (map[string]jobpoll.Result, error) {
	if *l.away {
		return nil, errAway
	}
	return l.Batch.CheckBatch(ctx, jobs)
}

// deniedList is a list that our credentials are not good for.
type deniedList struct {
	*polltest.Batch
	refreshed int
	good      bool
}

func (l *deniedList) CheckBatch(ctx context.Context, jobs []jobpoll.Job) (map[string]jobpoll.Result, error) {
	all, err := l.Batch.CheckBatch(ctx, jobs)
	if err != nil || l.good {
		return all, err
	}
	return nil, &jobpoll.CheckError{Kind: jobpoll.ErrorAuth}
}

func (l *deniedList) Refresh(context.Context) error { l.refreshed++; return nil }

func TestAListThatRefusesCredentialsWhichAreGoodIsAskedNoMoreForAWhile(t *testing.T) {
	var list *deniedList
	r, b := batchRig(t, 10, func(b *polltest.Batch, _ *jobpoll.Config, rt *jobpoll.Route) {
		list = &deniedList{Batch: b}
		rt.Checker = list
	})
	batchWatch(r, `running; at 20m succeeded`, ids("j", 30)...)
	r.to(21 * time.Minute)
	for _, id := range ids("j", 30) {
		o := r.ended(id, jobpoll.ReasonSucceeded)
		assert.Less(t, o.DetectedAt.Sub(r.start), 20*time.Minute+10*time.Second)
	}
	assert.LessOrEqual(t, len(b.Calls()), 12, "three at a time")
	assert.LessOrEqual(t, list.refreshed, 3)

	before := len(b.Calls())
	list.good = true // somebody has given us the right
	batchWatch(r, `running; at 3h succeeded`, ids("k", 30)...)
	r.to(59 * time.Minute)
	assert.Len(t, b.Calls(), before, "not yet")
	r.to(90 * time.Minute)
	assert.Greater(t, len(b.Calls()), before+100)
	r.to(4 * time.Hour)
	r.atZero()
}

// A list that leaves out one or another now and then goes on to save calls: only a job
// that it leaves out twice in a row stays with looks of its own.
func TestAListThatLeavesOutOneNowAndThenIsStillOfUse(t *testing.T) {
	var n atomic.Int64
	r, b := shortRig(t, func(_ *rig, id string) (jobpoll.Result, bool) {
		if id == "old" {
			return jobpoll.Result{}, false
		}
		return jobpoll.Result{}, n.Add(1)%20 != 0
	})
	batchWatch(r, `running; at 10m succeeded`, append(ids("j", 30), "old")...)
	r.to(11 * time.Minute)
	for _, id := range append(ids("j", 30), "old") {
		r.ended(id, jobpoll.ReasonSucceeded)
	}
	assert.Equal(t, 2, listedIDs(b, "old"))
	m := r.Metrics().Total
	assert.Less(t, int(m.Calls), int(m.Looks)/2)
	r.atZero()
}
