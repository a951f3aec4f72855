package jobpoll_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// batchRig is a rig whose provider tells of up to most jobs in one call.
func batchRig(t testing.TB, most int, change func(*polltest.Batch, *jobpoll.Config, *jobpoll.Route)) (*rig, *polltest.Batch) {
	t.Helper()
	var b *polltest.Batch
	r := rigOf(t, func(r *rig, cfg *jobpoll.Config) {
		b = polltest.Batched(r.prov, most)
		cfg.Routes[0].Checker = b
		if change != nil {
			change(b, cfg, &cfg.Routes[0])
		}
	})
	return r, b
}

func batchSizes(b *polltest.Batch) []int {
	var n []int
	for _, c := range b.Calls() {
		n = append(n, len(c.IDs))
	}
	slices.Sort(n) // those of one instant come in any order
	return n
}

// batchWatch gives all jobs the script and watches them before anything is looked at.
func batchWatch(r *rig, script string, ids ...string) {
	r.t.Helper()
	for _, id := range ids {
		r.prov.Add(id, script)
		require.NoError(r.t, r.Watch(r.t.Context(), jobpoll.Job{Route: "r", ID: id}))
	}
	r.Clock.Settle()
}

func TestJobsThatAreDueTogetherAreLookedAtInOneCall(t *testing.T) {
	r, b := batchRig(t, 4, nil)
	batchWatch(r, `running; at 8s succeeded`, ids("j", 10)...)
	r.to(5 * time.Second)
	assert.Equal(t, []int{2, 4, 4}, batchSizes(b))
	r.to(20 * time.Second)
	assert.Equal(t, []int{2, 2, 4, 4, 4, 4}, batchSizes(b))
	for _, id := range ids("j", 10) {
		r.ended(id, jobpoll.ReasonSucceeded)
	}
	m := r.Metrics()
	assert.EqualValues(t, 20, m.Total.Looks)
	assert.EqualValues(t, 6, m.Total.Calls)
	assert.EqualValues(t, 6, m.Budgets["(default)/r"].Status.Granted, "the budget counts calls")
	r.atZero()
}

// 10⁴ jobs at all times, in batches of 50: far fewer calls, no later detection.
func TestBatchesOfManyJobsDetectNoLater(t *testing.T) {
	n := scaled(10_000, 2_000)
	play := func(most int) (looks, calls uint64, delay time.Duration) {
		r := rigOf(t, func(r *rig, cfg *jobpoll.Config) {
			cfg.Workers = 64
			cfg.Routes[0].Checker = polltest.Batched(r.prov, most)
			cfg.Routes[0].Schedule = jobpoll.Schedule{Delays: []time.Duration{20 * time.Second}}
		})
		for i := range n {
			id, ago := fmt.Sprint("j", i), time.Duration(i)*20*time.Second/time.Duration(n)
			r.prov.Add(id, fmt.Sprintf(`running; at %dms succeeded completed`, 60_000+i*10_007%40_000))
			require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id, SubmittedAt: r.start.Add(-ago)}))
		}
		r.Clock.Advance(4 * time.Minute)
		outcomes := r.rec.Outcomes()
		require.Len(t, outcomes, n)
		for _, o := range outcomes {
			require.True(t, o.DelayExact)
			delay += o.DetectionDelay
		}
		r.atZero()
		m := r.Metrics().Total
		return m.Looks, m.Calls, delay / time.Duration(n)
	}
	looks, calls, delay := play(1)
	require.Equal(t, looks, calls)
	together, fewer, sooner := play(50)
	t.Logf("singly: %d looks, %d calls, %v; in batches: %d looks, %d calls, %v", looks, calls, delay, together, fewer, sooner)
	assert.LessOrEqual(t, 20*fewer, together, "calls for looks")
	assert.LessOrEqual(t, 20*fewer, looks)
	assert.LessOrEqual(t, sooner, delay+delay/100, "the mean delay of detection")
	assert.LessOrEqual(t, float64(together), 1.12*float64(looks), "looks")
}

func TestALookJoinsABatchOnlyWhereItsFloorsAllow(t *testing.T) {
	r, b := batchRig(t, 10, func(_ *polltest.Batch, cfg *jobpoll.Config, rt *jobpoll.Route) {
		rt.Schedule = every(100 * time.Second)
		rt.Schedule.MinDelay = 95 * time.Second
	})
	batchWatch(r, `running`, "a")
	r.to(4 * time.Second)
	batchWatch(r, `running`, "b")
	for id, j := range map[string]struct {
		at     time.Duration
		script string
	}{
		"late": {104 * time.Second, `running`},
		"bare": {107 * time.Second, `running`},
		"asks": {104 * time.Second, `running retry-after 99s`},
	} {
		r.prov.Add(id, j.script)
		require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id, NotBefore: r.start.Add(j.at)}))
	}
	r.to(99 * time.Second)
	require.Empty(t, b.Calls())
	r.to(250 * time.Second)
	assert.Equal(t, []float64{100, 200}, r.looks("a"))
	assert.Equal(t, []float64{100, 200}, r.looks("b"), "due at 104, taken along")
	assert.Equal(t, []float64{104, 200}, r.looks("late"), "NotBefore binds; due at 204 and free from 199 on")
	assert.Equal(t, []float64{107, 204}, r.looks("bare"), "due at 207 and free from 202 on: not at 200")
	assert.Equal(t, []float64{104, 204}, r.looks("asks"), "free from 203 on, by what the provider asked for")
}

func TestAJobThatABatchLeavesOutIsLostOnlyAfterTheGrace(t *testing.T) {
	r, b := batchRig(t, 10, func(_ *polltest.Batch, _ *jobpoll.Config, rt *jobpoll.Route) {
		rt.Stop.MissingGrace, rt.Stop.MissingLooks = 30*time.Second, 3
	})
	batchWatch(r, `404`, "gone")
	batchWatch(r, `404; at 12s running; at 40s succeeded`, "late")
	batchWatch(r, `running; at 40s succeeded`, "there")
	r.to(29 * time.Second)
	require.Empty(t, r.rec.Outcomes())
	r.to(2 * time.Minute)
	assert.Equal(t, jobpoll.ErrorNoSuchJob, r.ended("gone", jobpoll.ReasonLost).ErrorKind)
	r.ended("late", jobpoll.ReasonSucceeded)
	r.ended("there", jobpoll.ReasonSucceeded)
	for _, c := range b.Calls() {
		require.NotEmpty(t, c.IDs)
	}
	r.atZero()
}

func TestAFailedBatchIsATransientErrorOfEachJob(t *testing.T) {
	for name, fail := range map[string]error{
		"a plain error": errors.New("reset"),
		"a panic":       nil,
	} {
		t.Run(name, func(t *testing.T) {
			r, b := batchRig(t, 10, func(b *polltest.Batch, cfg *jobpoll.Config, rt *jobpoll.Route) {
				cfg.Budget = jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 1, Burst: 2}})
				n := 0
				b.OnBatch = func(context.Context, []jobpoll.Job) error {
					if n++; n > 1 {
						return nil
					}
					if fail == nil {
						panic("in the list")
					}
					return fail
				}
			})
			batchWatch(r, `running; at 20s succeeded`, ids("j", 8)...)
			r.to(6 * time.Second)
			m := r.Metrics()
			assert.EqualValues(t, 8, m.Total.LookErrors[jobpoll.ErrorTransient])
			assert.Equal(t, 8, m.Total.Failing)
			assert.EqualValues(t, 1, m.Budgets["account"].Status.Granted, "one token")
			r.to(2 * time.Minute)
			for _, id := range ids("j", 8) {
				r.ended(id, jobpoll.ReasonSucceeded)
			}
			assert.Len(t, b.Calls(), int(r.Metrics().Total.Calls), "all of them in batches")
			r.atZero()
		})
	}
}

func TestABatchThatMeetsARateLimitCoolsOnce(t *testing.T) {
	var told []jobpoll.CoolEvent
	r, b := batchRig(t, 10, func(b *polltest.Batch, cfg *jobpoll.Config, _ *jobpoll.Route) {
		cfg.Hooks.RateLimited = func(e jobpoll.CoolEvent) { told = append(told, e) }
		n := 0
		b.OnBatch = func(context.Context, []jobpoll.Job) error {
			if n++; n == 1 {
				return &jobpoll.CheckError{Kind: jobpoll.ErrorRateLimited, Hint: jobpoll.Hint{RetryAfter: 30 * time.Second}}
			}
			return nil
		}
	})
	batchWatch(r, `running; at 20s succeeded`, ids("j", 8)...)
	r.to(34 * time.Second)
	require.Len(t, told, 1)
	assert.Len(t, b.Calls(), 1)
	assert.EqualValues(t, 1, r.Metrics().Budgets["(default)/r"].Status.RateLimited)
	r.to(3 * time.Minute)
	for _, id := range ids("j", 8) {
		r.ended(id, jobpoll.ReasonSucceeded)
	}
	r.atZero()
}

type refreshingBatch struct {
	*polltest.Batch
	refreshed int
	bad       bool
}

func (f *refreshingBatch) Refresh(context.Context) error { f.refreshed++; f.bad = false; return nil }

func TestABatchWithRefusedCredentialsRefreshesOnce(t *testing.T) {
	var f *refreshingBatch
	r, b := batchRig(t, 10, func(b *polltest.Batch, _ *jobpoll.Config, rt *jobpoll.Route) {
		f = &refreshingBatch{Batch: b, bad: true}
		rt.Checker = f
		b.OnBatch = func(context.Context, []jobpoll.Job) error {
			if f.bad {
				return &jobpoll.CheckError{Kind: jobpoll.ErrorAuth}
			}
			return nil
		}
	})
	batchWatch(r, `running; at 7s succeeded`, ids("j", 8)...)
	r.to(30 * time.Second)
	assert.Equal(t, 1, f.refreshed)
	for _, id := range ids("j", 8) {
		r.ended(id, jobpoll.ReasonSucceeded)
	}
	assert.LessOrEqual(t, len(b.Calls()), 3)
	r.atZero()
}

func TestTheErrorOfAResultIsThatJobsOwn(t *testing.T) {
	r, _ := batchRig(t, 10, nil)
	batchWatch(r, `running; at 12s succeeded`, ids("j", 3)...)
	batchWatch(r, `400 "bad"`, "invalid")
	batchWatch(r, `401`, "foreign") // another account's: ours is good
	batchWatch(r, `429 retry-after 60s account; at 20s succeeded`, "limited")
	batchWatch(r, `error "odd"; at 8s succeeded`, "odd")
	r.to(20 * time.Second)
	for _, id := range ids("j", 3) {
		assert.Equal(t, 15*time.Second, r.ended(id, jobpoll.ReasonSucceeded).DetectedAt.Sub(r.start), "nobody holds them up")
	}
	r.ended("invalid", jobpoll.ReasonInvalid)
	r.ended("odd", jobpoll.ReasonSucceeded)
	r.to(90 * time.Second)
	assert.Equal(t, []float64{5, 65}, r.looks("limited"))
	r.ended("limited", jobpoll.ReasonSucceeded)
	r.to(time.Hour)
	r.ended("foreign", jobpoll.ReasonAuth)
	r.atZero()
}

// One id makes the provider refuse the whole list: the others do not suffer, and
// that one ends by what is said of it alone.
func TestABatchThatIsRefusedForOneOfItsJobs(t *testing.T) {
	for name, refusal := range map[string]error{
		"no such job": &jobpoll.CheckError{Kind: jobpoll.ErrorNoSuchJob},
		"invalid":     &jobpoll.CheckError{Kind: jobpoll.ErrorInvalid},
		"gone":        &jobpoll.CheckError{Kind: jobpoll.ErrorGone},
		"quota":       &jobpoll.CheckError{Kind: jobpoll.ErrorQuota},
		"permanent":   backoff.Permanent(errors.New("no")),
	} {
		t.Run(name, func(t *testing.T) {
			r, b := batchRig(t, 50, func(b *polltest.Batch, _ *jobpoll.Config, _ *jobpoll.Route) {
				b.OnBatch = func(_ context.Context, jobs []jobpoll.Job) error {
					for _, j := range jobs {
						if j.ID == "bad" {
							return refusal
						}
					}
					return nil
				}
			})
			batchWatch(r, `running; at 100s succeeded`, ids("j", 20)...)
			batchWatch(r, `400 "bad"`, "bad")
			r.to(3 * time.Minute)
			for _, id := range ids("j", 20) {
				r.ended(id, jobpoll.ReasonSucceeded)
			}
			r.ended("bad", jobpoll.ReasonInvalid)
			m := r.Metrics().Total
			assert.EqualValues(t, 21, m.Calls-uint64(len(b.Calls())), "each was looked at by itself once")
			r.atZero()
		})
	}
}

func TestUrgentLooksTakeOthersAlong(t *testing.T) {
	r, b := batchRig(t, 10, func(_ *polltest.Batch, _ *jobpoll.Config, rt *jobpoll.Route) { rt.Schedule = every(100 * time.Second) })
	batchWatch(r, `running`, ids("j", 4)...)
	r.to(50 * time.Second)
	require.NoError(t, r.PollNow(key("j001")))
	r.Clock.Settle()
	require.Equal(t, []float64{50}, r.looks("j001"))
	require.Empty(t, b.Calls(), "the others are not due for long: it is looked at by itself")
	r.to(92 * time.Second)
	require.NoError(t, r.PollNow(key("j002")))
	r.Clock.Settle()
	require.Equal(t, []int{3}, batchSizes(b))
	require.Equal(t, "j002", b.Calls()[0].IDs[0])
}

// What ends a job while it is looked at with others ends it alone.
func TestJobsThatEndWhileTheirBatchIsUnderWay(t *testing.T) {
	r, b := batchRig(t, 10, nil)
	batchWatch(r, `running slow 4s; at 5s succeeded slow 4s`, ids("j", 6)...)
	r.to(6 * time.Second)
	require.Equal(t, 6, r.Metrics().Total.InFlight)
	require.NoError(t, r.Abandon(t.Context(), key("j000"), errors.New("enough")))
	require.NoError(t, r.notify(jobpoll.Notice{Key: key("j001"), Trust: jobpoll.TrustAuthoritative, Report: jobpoll.Report{State: jobpoll.StateFailed}}))
	require.NoError(t, r.Cancel(t.Context(), key("j002"), errors.New("stop")))
	r.Clock.Settle()
	m := r.Metrics()
	assert.Equal(t, 4, m.Total.InFlight)
	assert.Zero(t, m.Total.Hung)
	assert.Equal(t, 1, m.Budgets["(default)/r"].Status.InFlight)
	r.to(30 * time.Second)
	r.ended("j000", jobpoll.ReasonAbandoned)
	r.ended("j001", jobpoll.ReasonFailed)
	for _, id := range ids("j", 6)[2:] {
		r.ended(id, jobpoll.ReasonSucceeded)
	}
	assert.Len(t, b.Calls(), 1)
	r.atZero()
}

// All jobs of a batch end: its context ends.
func TestABatchOfWhichAllJobsHaveEnded(t *testing.T) {
	var cause error
	r, _ := batchRig(t, 10, func(b *polltest.Batch, _ *jobpoll.Config, _ *jobpoll.Route) {
		b.OnBatch = func(ctx context.Context, _ []jobpoll.Job) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		}
	})
	batchWatch(r, `running`, "a", "b")
	r.to(6 * time.Second)
	require.NoError(t, r.Abandon(t.Context(), key("a"), errors.New("enough")))
	r.Clock.Settle()
	require.NoError(t, cause)
	require.NoError(t, r.Abandon(t.Context(), key("b"), errors.New("enough")))
	r.Clock.Settle()
	require.ErrorContains(t, cause, "the watch ended")
	assert.Zero(t, r.Metrics().Total.Hung)
	r.atZero()
}

func TestABatchThatHangsTimesOutOnce(t *testing.T) {
	hang := true
	r, b := batchRig(t, 10, func(b *polltest.Batch, cfg *jobpoll.Config, _ *jobpoll.Route) {
		clock := cfg.Clock.(*polltest.Clock)
		b.OnBatch = func(ctx context.Context, _ []jobpoll.Job) error {
			if hang {
				hang = false
				return clock.Sleep(context.WithoutCancel(ctx), 25*time.Second) // deaf to its context
			}
			return nil
		}
	})
	batchWatch(r, `running; at 1m succeeded`, ids("j", 6)...)
	r.to(14 * time.Second)
	assert.Equal(t, 6, r.Metrics().Total.InFlight)
	r.to(16 * time.Second) // CheckTimeout is 10 s
	m := r.Metrics()
	assert.Zero(t, m.Total.InFlight)
	assert.Equal(t, 1, m.Total.Hung, "it is one call")
	assert.EqualValues(t, 6, m.Total.LookErrors[jobpoll.ErrorTransient])
	assert.EqualValues(t, 1, m.Budgets["(default)/r"].Status.Granted)
	assert.Zero(t, m.Budgets["(default)/r"].Status.InFlight)
	r.to(29 * time.Second)
	assert.Len(t, b.Calls(), 1, "no second call for a job whose call has not returned")
	r.to(30 * time.Second)
	assert.Zero(t, r.Metrics().Total.Hung)
	r.to(3 * time.Minute)
	for _, id := range ids("j", 6) {
		r.ended(id, jobpoll.ReasonSucceeded)
	}
	r.atZero()
}

func TestNoBatchesWhereTheyWouldBeOfOne(t *testing.T) {
	for _, most := range []int{-1, 0, 1} {
		r, b := batchRig(t, most, nil)
		batchWatch(r, `running; at 3s succeeded`, ids("j", 3)...)
		r.to(6 * time.Second)
		assert.Empty(t, b.Calls())
		m := r.Metrics().Total
		assert.EqualValues(t, 3, m.Looks)
		assert.EqualValues(t, 3, m.Calls)
	}
}

func TestBatchesAreBounded(t *testing.T) {
	r, b := batchRig(t, 1<<30, nil)
	batchWatch(r, `running; at 3s succeeded`, ids("j", 1500)...)
	r.to(6 * time.Second)
	assert.Equal(t, []int{500, 1000}, batchSizes(b))
	r.atZero()
}
