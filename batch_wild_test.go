package jobpoll_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/require"
)

// oddList is a list that does badly by so many calls in a hundred, and by so many jobs of
// the others. Looks are right. Neither shows an output: that is fetched.
type oddList struct {
	*polltest.Batch
	rand *rand.Rand
	bad  int
}

func (l *oddList) Refresh(context.Context) error { return nil }

func (l *oddList) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	rep, err := l.Batch.Check(ctx, job)
	rep.Output = nil
	return rep, err
}

func (l *oddList) Fetch(_ context.Context, _ jobpoll.Job, rep jobpoll.Report) (jobpoll.Report, error) {
	rep.Output = []byte(`{}`)
	return rep, nil
}

// fails makes an error of any kind.
func (l *oddList) fails() error {
	err := &jobpoll.CheckError{Kind: jobpoll.ErrorKind(l.rand.IntN(12))}
	err.Hint = jobpoll.Hint{RetryAfter: time.Duration(l.rand.IntN(5)) * time.Second, Scope: jobpoll.Scope(l.rand.IntN(5))}
	if l.rand.IntN(3) == 0 {
		err.Err = backoff.Permanent(errors.New("for good"))
	}
	return err
}

func (l *oddList) CheckBatch(ctx context.Context, jobs []jobpoll.Job) (map[string]jobpoll.Result, error) {
	all, err := l.Batch.CheckBatch(ctx, jobs)
	if err != nil {
		return nil, err
	}
	if l.rand.IntN(100) < l.bad {
		if l.rand.IntN(4) == 0 {
			panic("in the list")
		}
		return all, l.fails()
	}
	for _, job := range jobs {
		res := all[job.ID]
		res.Report.Output = nil
		all[job.ID] = res
		if l.rand.IntN(100) >= l.bad {
			continue
		}
		switch l.rand.IntN(4) {
		case 0:
			delete(all, job.ID)
		case 1:
			all[job.ID] = jobpoll.Result{Err: l.fails()}
		case 2:
			all[job.ID] = jobpoll.Result{Report: jobpoll.Report{RawStatus: "odd"}}
		default:
			if res.Report.State == jobpoll.StateSucceeded {
				res.Report.State, res.Report.Failure = jobpoll.StateFailed, &jobpoll.Failure{Kind: jobpoll.FailureNoOutput}
				all[job.ID] = res
			}
		}
	}
	return all, nil
}

// Whatever lists do, all jobs end as looks tell, with a budget that is short.
func TestNoJobIsLostWhateverListsDo(t *testing.T) {
	for seed := range scaled(30, 10) {
		bad := []int{2, 5, 20, 50, 100}[seed%5]
		r, _ := batchRig(t, 20, func(b *polltest.Batch, cfg *jobpoll.Config, rt *jobpoll.Route) {
			rt.Checker = &oddList{Batch: b, rand: rand.New(rand.NewPCG(uint64(seed), 0)), bad: bad}
			cfg.Workers = 1
			cfg.Budget = jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 5, Burst: 1}})
		})
		for i := range 100 {
			id := fmt.Sprint("j", i)
			r.prov.Add(id, `running; at 20m succeeded`)
			require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id}))
		}
		r.to(30 * time.Minute)
		require.EqualValues(t, 100, r.Metrics().Total.Stops[jobpoll.ReasonSucceeded], "seed %d, %d %%", seed, bad)
		r.atZero()
	}
}
