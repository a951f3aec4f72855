package jobpoll_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
)

// shortList is a list that says of some jobs what it likes; looks are right.
type shortList struct {
	*polltest.Batch
	say func(id string) (res jobpoll.Result, there bool)
}

func (l *shortList) CheckBatch(ctx context.Context, jobs []jobpoll.Job) (map[string]jobpoll.Result, error) {
	all, err := l.Batch.CheckBatch(ctx, jobs)
	for _, job := range jobs { // in an order that is the same each time
		id := job.ID
		if _, found := all[id]; !found {
			continue
		}
		if res, there := l.say(id); !there {
			delete(all, id)
		} else if res.Err != nil {
			all[id] = res
		}
	}
	return all, err
}

func shortRig(t *testing.T, say func(r *rig, id string) (jobpoll.Result, bool), change ...func(*jobpoll.Config)) (*rig, *polltest.Batch) {
	t.Helper()
	var list *shortList
	r, b := batchRig(t, 10, func(b *polltest.Batch, cfg *jobpoll.Config, rt *jobpoll.Route) {
		for _, f := range change {
			f(cfg)
		}
		list = &shortList{Batch: b}
		rt.Checker = list
		rt.Stop.MissingGrace, rt.Stop.MissingLooks = 30*time.Second, 3
		rt.Stop.MaxErrors = 5
	})
	list.say = func(id string) (jobpoll.Result, bool) { return say(r, id) }
	return r, b
}

// listedIDs counts in how many lists a job was asked for.
func listedIDs(b *polltest.Batch, id string) (n int) {
	for _, c := range b.Calls() {
		for _, one := range c.IDs {
			if one == id {
				n++
			}
		}
	}
	return n
}

// A list that ends at seven days, shows nothing, or lags does not lose a job that
// a look of its own finds.
func TestNoJobIsLostByListsAlone(t *testing.T) {
	t.Run("it is never in the list", func(t *testing.T) {
		r, b := shortRig(t, func(_ *rig, id string) (jobpoll.Result, bool) { return jobpoll.Result{}, id != "old" })
		batchWatch(r, `running; at 10m succeeded`, "old", "a", "b")
		r.to(11 * time.Minute)
		for _, id := range []string{"old", "a", "b"} {
			r.ended(id, jobpoll.ReasonSucceeded)
		}
		assert.Equal(t, 2, listedIDs(b, "old"), "then it stays with looks of its own")
		assert.Greater(t, listedIDs(b, "a"), 10)
		r.atZero()
	})
	t.Run("the list lags", func(t *testing.T) {
		r, b := shortRig(t, func(r *rig, id string) (jobpoll.Result, bool) {
			return jobpoll.Result{}, id != "young" || r.Clock.Now().Sub(r.start) > 7*time.Second
		})
		batchWatch(r, `running; at 10m succeeded`, "young", "a")
		r.to(11 * time.Minute)
		r.ended("young", jobpoll.ReasonSucceeded)
		r.ended("a", jobpoll.ReasonSucceeded)
		assert.GreaterOrEqual(t, listedIDs(b, "young"), listedIDs(b, "a")-1, "it goes with the others again")
		r.atZero()
	})
	t.Run("nobody knows it", func(t *testing.T) {
		r, b := shortRig(t, func(*rig, string) (jobpoll.Result, bool) { return jobpoll.Result{}, true })
		batchWatch(r, `404`, "gone")
		batchWatch(r, `running; at 10m succeeded`, "a", "b")
		r.to(11 * time.Minute)
		r.ended("gone", jobpoll.ReasonLost)
		assert.Equal(t, 1, listedIDs(b, "gone"))
		r.atZero()
	})
}

// What a list cannot tell of a job is asked by a look of its own, so that a list
// with an odd item in it ends no job by MaxErrors.
func TestAJobThatAListTellsAnErrorOfIsLookedAtByItself(t *testing.T) {
	r, b := shortRig(t, func(_ *rig, id string) (jobpoll.Result, bool) {
		if id == "odd" {
			return jobpoll.Result{Err: errors.New("no word")}, true
		}
		return jobpoll.Result{}, true
	})
	batchWatch(r, `running; at 10m succeeded`, "odd", "a", "b")
	r.to(11 * time.Minute)
	for _, id := range []string{"odd", "a", "b"} {
		r.ended(id, jobpoll.ReasonSucceeded)
	}
	assert.Equal(t, 2, listedIDs(b, "odd"))
	r.atZero()
}

// A list that tells of the end of a job by an error may be wrong about it, or about
// all: it is a look of its own that ends the job.
func TestAnErrorInAListEndsNoJob(t *testing.T) {
	for name, err := range map[string]error{
		"gone":      &jobpoll.CheckError{Kind: jobpoll.ErrorGone},
		"invalid":   &jobpoll.CheckError{Kind: jobpoll.ErrorInvalid},
		"policy":    &jobpoll.CheckError{Kind: jobpoll.ErrorPolicy},
		"quota":     &jobpoll.CheckError{Kind: jobpoll.ErrorQuota},
		"permanent": backoff.Permanent(errors.New("no")),
	} {
		t.Run(name, func(t *testing.T) {
			r, b := shortRig(t, func(_ *rig, id string) (jobpoll.Result, bool) {
				if id == "odd" {
					return jobpoll.Result{Err: err}, true
				}
				return jobpoll.Result{}, true
			})
			batchWatch(r, `running; at 10m succeeded`, "odd", "a", "b")
			batchWatch(r, `410`, "gone")
			r.to(11 * time.Minute)
			for _, id := range []string{"odd", "a", "b"} {
				r.ended(id, jobpoll.ReasonSucceeded)
			}
			r.ended("gone", jobpoll.ReasonResultExpired)
			assert.Len(t, r.looks("gone"), 2, "the second is its own")
			assert.Equal(t, 2, listedIDs(b, "odd"))
			r.atZero()
		})
	}
}

// A list may leave the output of a job away that a look shows.
func TestAJobThatAListShowsNoOutputOfIsLookedAtByItself(t *testing.T) {
	var list *bareList
	r, b := batchRig(t, 10, func(b *polltest.Batch, _ *jobpoll.Config, rt *jobpoll.Route) {
		list = &bareList{Batch: b}
		rt.Checker = list
	})
	batchWatch(r, `running; at 20s succeeded`, "a", "b", "c")
	batchWatch(r, `running; at 20s failed no-output`, "empty")
	r.to(time.Minute)
	for _, id := range []string{"a", "b", "c"} {
		o := r.ended(id, jobpoll.ReasonSucceeded)
		assert.Less(t, o.DetectedAt.Sub(r.start), 30*time.Second)
	}
	r.ended("empty", jobpoll.ReasonFailed)
	assert.Equal(t, 4, listedIDs(b, "empty"), "the last look at it was its own")
	r.atZero()
}

// bareList is a list that shows no outputs.
type bareList struct{ *polltest.Batch }

func (l *bareList) CheckBatch(ctx context.Context, jobs []jobpoll.Job) (map[string]jobpoll.Result, error) {
	all, err := l.Batch.CheckBatch(ctx, jobs)
	for id, res := range all {
		if res.Report.State == jobpoll.StateSucceeded {
			res.Report.State, res.Report.Output = jobpoll.StateFailed, nil
			res.Report.Failure = &jobpoll.Failure{Kind: jobpoll.FailureNoOutput}
			all[id] = res
		}
	}
	return all, err
}

// What a list tells nothing of, or by a word that is not known, a look may know.
func TestAJobThatAListTellsNothingOfIsLookedAtByItself(t *testing.T) {
	for name, rep := range map[string]jobpoll.Report{"nothing": {}, "a word": {RawStatus: "listed"}} {
		t.Run(name, func(t *testing.T) {
			var list *vagueList
			r, b := batchRig(t, 10, func(b *polltest.Batch, _ *jobpoll.Config, rt *jobpoll.Route) {
				list = &vagueList{b, rep}
				rt.Checker = list
			})
			batchWatch(r, `running; at 30m succeeded`, "a", "b", "c")
			r.to(31 * time.Minute)
			for _, id := range []string{"a", "b", "c"} {
				r.ended(id, jobpoll.ReasonSucceeded)
			}
			assert.Less(t, listedIDs(b, "a"), 200, "half of the looks")
			r.atZero()
		})
	}
}

// vagueList is a list that tells the same of all.
type vagueList struct {
	*polltest.Batch
	rep jobpoll.Report
}

func (l *vagueList) CheckBatch(ctx context.Context, jobs []jobpoll.Job) (map[string]jobpoll.Result, error) {
	all, err := l.Batch.CheckBatch(ctx, jobs)
	for id := range all {
		all[id] = jobpoll.Result{Report: l.rep}
	}
	return all, err
}
