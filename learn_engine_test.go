package jobpoll_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// learnRig is a rig whose routes go by learned plans.
func learnRig(t testing.TB, change func(*rig, *jobpoll.Config)) *rig {
	return rigOf(t, learnConfig(change))
}

func learnConfig(change func(*rig, *jobpoll.Config)) func(*rig, *jobpoll.Config) {
	return func(r *rig, c *jobpoll.Config) {
		c.Routes[0].Schedule = jobpoll.Schedule{Jitter: jobpoll.NoJitter}
		if change != nil {
			change(r, c)
		}
	}
}

// learnWatch watches a job that takes so long.
func (r *rig) learnWatch(route, id, profile string, takes time.Duration) {
	r.t.Helper()
	r.prov.Add(id, fmt.Sprintf("running; at %v succeeded", takes))
	require.NoError(r.t, r.Watch(r.t.Context(), jobpoll.Job{Route: route, ID: id, Profile: profile}))
	r.Clock.Settle()
}

// learnFrom lets n jobs of a profile, of about a minute, end.
func (r *rig) learnFrom(route, profile string, n int) {
	r.t.Helper()
	for i := range n {
		r.learnWatch(route, fmt.Sprintf("%s/%s%v", route, profile, r.Clock.Monotonic()), profile, time.Minute+time.Duration(i%7)*time.Second)
		r.Clock.Advance(5 * time.Minute)
	}
}

// learnCause is why the next look at a new job of a profile is when it is.
func (r *rig) learnCause(route, profile string) jobpoll.Cause {
	r.t.Helper()
	id := fmt.Sprintf("new/%s/%s", route, profile)
	r.learnWatch(route, id, profile, time.Hour)
	k := jobpoll.Key{Route: route, ID: id}
	info, ok := r.Job(k)
	require.True(r.t, ok)
	require.NoError(r.t, r.Abandon(r.t.Context(), k, errors.New("enough")))
	r.Clock.Settle()
	return info.Cause
}

// learnProfiles are the profiles of a Poller by name.
func learnProfiles(p *jobpoll.Poller) map[string]jobpoll.ProfileInfo {
	all := map[string]jobpoll.ProfileInfo{}
	for i := range p.Profiles() {
		all[i.Family+"/"+i.Profile] = i
	}
	return all
}

func TestLooksGoByThePlanAfterFiveEnds(t *testing.T) {
	r := learnRig(t, nil)
	r.learnFrom("r", "p", 4)
	assert.Equal(t, jobpoll.CauseFirst, r.learnCause("r", "p"), "four are too few")
	r.learnWatch("r", "fifth", "p", time.Minute)
	r.Clock.Advance(5 * time.Minute)
	assert.Equal(t, jobpoll.CausePlan, r.learnCause("r", "p"))
	assert.Equal(t, jobpoll.CausePlan, r.learnCause("r", "other"), "an unknown profile goes by its family")

	r.learnFrom("r", "p", 40)
	r.learnWatch("r", "last", "p", time.Minute)
	r.Clock.Advance(5 * time.Minute)
	assert.LessOrEqual(t, len(r.looks("last")), 3, "%v", r.looks("last"))
}

// Previews that end in seconds say nothing of a film that takes minutes.
func TestWhatAJobIsExpectedToTakeCountsForMoreThanItsFamily(t *testing.T) {
	r := learnRig(t, func(_ *rig, c *jobpoll.Config) {
		c.Routes[0].Guidance = map[string]jobpoll.Guidance{"guided": {Expected: time.Hour}, "": {Expected: time.Hour}}
	})
	r.learnFrom("r", "p", 6) // of about a minute
	for i, c := range []struct {
		profile  string
		expected time.Duration
		want     jobpoll.Cause
	}{
		{"new", 5 * time.Minute, jobpoll.CauseFirst},
		{"new", 20 * time.Second, jobpoll.CauseFirst},
		{"new", time.Duration(math.MaxInt64), jobpoll.CauseFirst},
		{"new", 90 * time.Second, jobpoll.CausePlan},
		{"new", 40 * time.Second, jobpoll.CausePlan},
		{"new", 0, jobpoll.CausePlan},  // the guidance of all others is not about this profile
		{"new", -1, jobpoll.CausePlan}, // as zero
		{"guided", 0, jobpoll.CauseFirst},
		{"guided", time.Minute, jobpoll.CausePlan},
		{"p", 5 * time.Minute, jobpoll.CausePlan}, // its own kind has been seen
	} {
		id := fmt.Sprint("expected-", i)
		r.prov.Add(id, "running")
		require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id, Profile: c.profile, Expected: c.expected}))
		r.Clock.Settle()
		info, ok := r.Job(jobpoll.Key{Route: "r", ID: id})
		require.True(t, ok)
		assert.Equal(t, c.want, info.Cause, "%+v", c)
	}
}

// What is expected of a job that is not like the others of its family is not
// paid for: it is looked at as if the others had not been.
func TestAFilmAmongPreviewsIsLookedAtAsIfItWereAlone(t *testing.T) {
	looks := func(previews int) int {
		r := learnRig(t, nil)
		for i := range previews {
			r.learnWatch("r", fmt.Sprint("preview-", i), "preview", time.Duration(8+i%5)*time.Second)
			r.Clock.Advance(time.Minute)
		}
		for i := range 4 {
			id := fmt.Sprint("film-", i)
			r.prov.Add(id, "running; at 300s succeeded")
			require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id, Profile: "film", Expected: 5 * time.Minute}))
		}
		r.Clock.Advance(15 * time.Minute)
		return len(r.looks("film-0")) + len(r.looks("film-1")) + len(r.looks("film-2")) + len(r.looks("film-3"))
	}
	alone := looks(0)
	for _, previews := range []int{5, 10, 20} {
		assert.LessOrEqual(t, looks(previews), alone+4, "beside %d previews", previews)
	}
}

func TestRoutesThatGoByNoPlanKeepTheirTable(t *testing.T) {
	r := learnRig(t, func(r *rig, c *jobpoll.Config) {
		add := func(name string, s jobpoll.Schedule) {
			rt := r.route(name)
			rt.Family, rt.Schedule = "r", s
			c.Routes = append(c.Routes, rt)
		}
		ladder := secs(7, 9)
		add("none", jobpoll.Schedule{PollCost: jobpoll.NoPlan, Jitter: jobpoll.NoJitter})
		add("ladder", jobpoll.Schedule{Delays: ladder, Jitter: jobpoll.NoJitter})
		add("priced", jobpoll.Schedule{Delays: ladder, PollCost: time.Second, Jitter: jobpoll.NoJitter})
		add("pooled", jobpoll.Schedule{Jitter: jobpoll.NoJitter})
		rt := r.route("stranger")
		rt.Schedule = jobpoll.Schedule{}
		c.Routes = append(c.Routes, rt)
	})
	r.learnFrom("r", "p", 5)
	assert.Equal(t, jobpoll.CauseFirst, r.learnCause("none", "p"))
	assert.Equal(t, jobpoll.CauseFirst, r.learnCause("ladder", "p"))
	assert.Equal(t, jobpoll.CausePlan, r.learnCause("priced", "p"))
	assert.Equal(t, jobpoll.CausePlan, r.learnCause("pooled", "p"), "two routes of one family pool what they learn")
	assert.Equal(t, jobpoll.CauseFirst, r.learnCause("stranger", "p"), "another family knows nothing of it")
}

func TestARouteThatComesLaterGoesByWhatItsFamilyKnows(t *testing.T) {
	r := learnRig(t, nil)
	r.learnFrom("r", "p", 6)
	rt := r.route("late")
	rt.Family, rt.Schedule = "r", jobpoll.Schedule{}
	require.NoError(t, r.AddRoute(rt))
	r.Clock.Settle()
	assert.Equal(t, jobpoll.CausePlan, r.learnCause("late", "p"))
}

// A schedule that takes each end to be where it was seen gets later each time.
func TestLearningFromOwnLooksDoesNotRatchet(t *testing.T) {
	r := learnRig(t, nil)
	const jobs = 500
	random := rand.New(rand.NewPCG(1, 2))
	var took []float64
	var medians []float64
	for i := range jobs {
		d := 50 + 20*random.Float64()
		took = append(took, d)
		r.learnWatch("r", strconv.Itoa(i), "p", time.Duration(d*1e9))
		r.Clock.Advance(5 * time.Minute)
		if i >= 50 {
			medians = append(medians, learnProfiles(r.Poller)["r/p"].P50.Seconds())
		}
	}
	slices.Sort(took)
	mean := 0.0
	for _, m := range medians {
		mean += m / float64(len(medians))
	}
	assert.InDelta(t, took[jobs/2], mean, 2.0)
	p := learnProfiles(r.Poller)["r/p"]
	assert.Equal(t, jobs, p.Count)
	assert.InDelta(t, took[jobs/10], p.P10.Seconds(), 4)
	assert.InDelta(t, took[jobs*9/10], p.P90.Seconds(), 4)
	assert.True(t, p.P10 <= p.P50 && p.P50 <= p.P90 && p.P90 <= p.P99)
	assert.WithinDuration(t, r.Clock.Now(), p.LastAt, 6*time.Minute)
}

func TestKnownEndsAreLearnedAsPoints(t *testing.T) {
	for name, end := range map[string]func(*rig, string){
		"finish time": func(r *rig, id string) {
			r.prov.Add(id, "running; at 47s succeeded completed")
			require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id, Profile: "p"}))
			r.Clock.Advance(5 * time.Minute)
		},
		"webhook": func(r *rig, id string) {
			r.prov.Add(id, "running")
			require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id, Profile: "p"}))
			r.Clock.Advance(47 * time.Second)
			require.NoError(t, r.notify(told(id, jobpoll.StateSucceeded)))
		},
		"look for a webhook": func(r *rig, id string) {
			r.prov.Add(id, "running; at 46500ms succeeded")
			require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id, Profile: "p"}))
			r.Clock.Advance(47 * time.Second)
			n := told(id, jobpoll.StateSucceeded)
			n.Trust = jobpoll.TrustHint
			require.NoError(t, r.notify(n))
			r.Clock.Advance(5 * time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := learnRig(t, func(_ *rig, c *jobpoll.Config) { c.Routes[0].Schedule.PollCost = 100 * time.Second })
			for i := range 30 {
				end(r, strconv.Itoa(i))
			}
			p := learnProfiles(r.Poller)["r/p"]
			assert.Equal(t, 30, p.Count)
			assert.InDelta(t, 47, p.P10.Seconds(), 0.6)
			assert.InDelta(t, 47, p.P90.Seconds(), 0.6)
		})
	}
}

// Jobs that were not seen to succeed took longer than they were watched: they
// count as no completion, and move the percentiles up rather than down.
func TestEndsWithoutASuccessAreCensored(t *testing.T) {
	for name, end := range map[string]func(*rig, string){
		"failed": func(r *rig, id string) {
			r.prov.Add(id, "running; at 200s failed")
			r.watchProfile(id, jobpoll.Job{})
			r.Clock.Advance(time.Hour)
		},
		"abandoned": func(r *rig, id string) {
			r.prov.Add(id, "running")
			r.watchProfile(id, jobpoll.Job{})
			r.Clock.Advance(200 * time.Second)
			require.NoError(t, r.Abandon(t.Context(), key(id), errors.New("enough")))
			r.Clock.Settle()
		},
		"deadline": func(r *rig, id string) {
			r.prov.Add(id, "running")
			r.watchProfile(id, jobpoll.Job{Deadline: r.Clock.Now().Add(200 * time.Second)})
			r.Clock.Advance(time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := learnRig(t, nil)
			r.learnFrom("r", "p", 20)
			before := learnProfiles(r.Poller)["r/p"]
			for i := range 40 {
				end(r, fmt.Sprint("x", i))
			}
			after := learnProfiles(r.Poller)["r/p"]
			assert.Equal(t, before.Count, after.Count)
			assert.Greater(t, after.P90, before.P90+30*time.Second)
		})
	}
}

func (r *rig) watchProfile(id string, j jobpoll.Job) {
	r.t.Helper()
	j.Route, j.ID, j.Profile = "r", id, "p"
	require.NoError(r.t, r.Watch(r.t.Context(), j))
	r.Clock.Settle()
}

// The output that cannot be had changes nothing about when the job succeeded.
func TestASuccessWithoutItsOutputIsLearned(t *testing.T) {
	r := learnRig(t, func(r *rig, c *jobpoll.Config) {
		c.Routes[0].Checker = learnLostOutputs{r.prov}
		c.Stop.MaxErrors = 2
	})
	r.learnFrom("r", "p", 8)
	require.NotEmpty(t, r.rec.Outcomes())
	for _, o := range r.rec.Outcomes() {
		require.NotEqual(t, jobpoll.ReasonSucceeded, o.Reason)
	}
	assert.Equal(t, 8, learnProfiles(r.Poller)["r/p"].Count)
}

type learnLostOutputs struct{ jobpoll.Checker }

func (learnLostOutputs) Fetch(context.Context, jobpoll.Job, jobpoll.Report) (jobpoll.Report, error) {
	return jobpoll.Report{}, errors.New("no such file")
}

func TestProfilesSurviveARestart(t *testing.T) {
	store := newShakyStore(nil)
	a := onStore(t, store, nil, learnConfig(nil))
	a.learnFrom("r", "p", 12)
	a.learnFrom("r", "q", 3)
	want := learnProfiles(a.Poller)
	require.Len(t, want, 2)
	assert.Equal(t, 1, len(learnStored(t, store, "p")), "stored each minute")
	a.learnWatch("r", "waits", "p", 3*time.Minute)
	a.Clock.Advance(10 * time.Second)
	before, ok := a.Job(key("waits"))
	require.True(t, ok)
	require.Equal(t, jobpoll.CausePlan, before.Cause)

	b := onStore(t, store, a, learnConfig(nil))
	got := learnProfiles(b.Poller)
	for name, w := range want {
		assert.Equal(t, w.Count, got[name].Count, name)
		assert.InEpsilon(t, w.P50.Seconds(), got[name].P50.Seconds(), 0.02, name)
	}
	after, ok := b.Job(key("waits"))
	require.True(t, ok)
	assert.Equal(t, jobpoll.CausePlan, after.Cause, "a restored job goes by the plan")
	assert.WithinDuration(t, before.NextPollAt, after.NextPollAt, time.Second)
	assert.Equal(t, jobpoll.CausePlan, b.learnCause("r", "p"))
	b.Clock.Advance(time.Hour)
	b.ended("waits", jobpoll.ReasonSucceeded)

	_, err := b.Restore(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 13, learnProfiles(b.Poller)["r/p"].Count, "restored twice it is not counted twice")
}

// An owner that comes back goes by what the other has learned meanwhile.
func TestAnOwnerThatComesBackTakesUpWhatTheOtherLearned(t *testing.T) {
	h := newLeaseHouse(t)
	byPlan := func(c *jobpoll.Config) { c.Routes[0].Schedule = jobpoll.Schedule{Jitter: jobpoll.NoJitter} }
	learn := func(p leasePoller, n int, takes time.Duration) {
		for i := range n {
			id := fmt.Sprint(takes, i)
			h.prov.Add(id, fmt.Sprintf("running; at %v succeeded", takes))
			require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id, Profile: "p"}))
			h.after(takes + 5*time.Minute)
		}
	}
	first := func(p leasePoller, id string) time.Duration {
		h.prov.Add(id, "running; at 1h succeeded")
		require.NoError(t, p.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id, Profile: "p"}))
		h.after(0)
		info, ok := p.Job(key(id))
		require.True(t, ok)
		require.Equal(t, jobpoll.CausePlan, info.Cause)
		return info.NextPollAt.Sub(h.clock.Now())
	}
	a, cut := h.enters("a", byPlan)
	learn(a, 10, time.Minute)
	stale := first(a, "stale")
	cut.Plan(func(polltest.StoreCall) polltest.StoreFault { return polltest.StoreFault{Err: errStoreDown} })
	h.after(2 * jobpoll.DefaultLeaseTTL)
	b, _ := h.enters("b", byPlan)
	h.after(time.Minute)
	require.Equal(t, 10, learnProfiles(b.Poller)["r/p"].Count)
	cut.Plan(nil)
	h.after(time.Minute)
	learn(b, 60, 20*time.Second)
	want := first(b, "for b")
	require.Greater(t, stale, 2*want)
	require.Equal(t, 10, learnProfiles(a.Poller)["r/p"].Count, "it waits")

	b.Stop()
	h.after(time.Minute)
	require.Equal(t, []string{"a owns", "b owns", "a waits", "a owns"}, h.seen(&h.owner))
	got := learnProfiles(a.Poller)["r/p"]
	assert.Equal(t, learnProfiles(b.Poller)["r/p"].Count, got.Count)
	assert.Less(t, got.P50, 30*time.Second)
	assert.InEpsilon(t, want.Seconds(), first(a, "for a").Seconds(), 0.1, "its plan is the other's too")
}

// learnStored are the stored records of a profile.
func learnStored(t *testing.T, s jobpoll.Store, profile string) (all []jobpoll.Record) {
	t.Helper()
	for rec, err := range s.Load(t.Context()) {
		require.NoError(t, err)
		if rec.Kind == jobpoll.RecordProfile && strings.HasSuffix(rec.ID, "/"+profile) {
			all = append(all, rec)
		}
	}
	return all
}

// A hook that takes its time lies between the end of a job and its being learned.
func TestWhatIsLearnedWhileProfilesAreStoredIsStoredToo(t *testing.T) {
	inBubble(t, func(t *testing.T, b *synced) {
		store := jobpoll.NewMemoryStore(nil)
		b.check = func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			return jobpoll.Report{State: jobpoll.StateSucceeded}, nil
		}
		b.start(func(c *jobpoll.Config, _ *jobpoll.Route) {
			c.Store = store
			c.Hooks.Looked = func(e jobpoll.LookEvent) {
				if e.Job.ID == "slow" {
					time.Sleep(5 * time.Minute)
				}
			}
		})
		for _, id := range []string{"a", "b", "slow"} {
			require.NoError(t, b.Watch(t.Context(), jobpoll.Job{Route: "r", ID: id, Profile: "p"}))
			time.Sleep(10 * time.Minute)
		}
		b.stop()
		stored := learnStored(t, store, "p")
		require.Len(t, stored, 1)
		var v struct{ State []byte }
		require.NoError(t, json.Unmarshal(stored[0].Data, &v))
		l := jobpoll.NewLearner(0)
		require.NoError(t, l.Import(v.State))
		for i := range l.Profiles() {
			assert.Equal(t, 3, i.Count)
		}
	})
}

func TestProfilesAreStoredOnceAMinuteAndAtTheEnd(t *testing.T) {
	store := newShakyStore(nil)
	r := onStore(t, store, nil, learnConfig(nil))
	writes := 0
	var mu sync.Mutex
	store.seen = func(recs []jobpoll.Record) {
		mu.Lock()
		defer mu.Unlock()
		for _, rec := range recs {
			if rec.Kind == jobpoll.RecordProfile {
				writes++
			}
		}
	}
	for i := range 600 { // one a second
		r.learnWatch("r", strconv.Itoa(i), "p", 10*time.Second)
		r.Clock.Advance(time.Second)
	}
	mu.Lock()
	n := writes
	mu.Unlock()
	assert.InDelta(t, 10, n, 2)
	r.learnWatch("r", "last", "new", 10*time.Second)
	for len(learnStored(t, store, "new")) == 0 {
		r.Clock.Advance(time.Second)
	}
	r.learnWatch("r", "very last", "newest", time.Second)
	r.Clock.Advance(30 * time.Second)
	require.Empty(t, learnStored(t, store, "newest"), "not yet")
	r.Stop()
	assert.Len(t, learnStored(t, store, "newest"), 1)
}

func TestBadStoredProfilesAreReportedAndHarmless(t *testing.T) {
	good := newShakyStore(nil)
	a := onStore(t, good, nil, learnConfig(nil))
	a.learnFrom("r", "p", 12)
	a.Stop()
	rec := learnStored(t, good, "p")[0]
	change := func(f func(m map[string]any)) []byte {
		var m map[string]any
		require.NoError(t, json.Unmarshal(rec.Data, &m))
		f(m)
		b, err := json.Marshal(m)
		require.NoError(t, err)
		return b
	}
	for name, data := range map[string][]byte{
		"no JSON":        []byte("{"),
		"another kind":   []byte(`[1,2,3]`),
		"newer":          change(func(m map[string]any) { m["v"] = 99 }),
		"no state":       change(func(m map[string]any) { delete(m, "state") }),
		"damaged state":  change(func(m map[string]any) { m["state"] = []byte{1, 2, 3} }),
		"a later state":  change(func(m map[string]any) { m["state"] = []byte{200, 2, 3} }),
		"other contents": change(func(m map[string]any) { m["profile"] = "q" }),
	} {
		t.Run(name, func(t *testing.T) {
			store := newShakyStore(nil)
			bad := rec
			bad.Data, bad.Rev = data, 0
			require.NoError(t, store.Put(t.Context(), []jobpoll.Record{bad}))
			var told []error
			b := onStore(t, store, nil, learnConfig(func(_ *rig, c *jobpoll.Config) {
				c.Hooks.StoreFailed = func(e jobpoll.StoreEvent) { told = append(told, e.Err) }
			}))
			require.Len(t, told, 1)
			assert.ErrorContains(t, told[0], "jobpoll: ")
			assert.Empty(t, learnProfiles(b.Poller))
			b.learnFrom("r", "p", 6)
			assert.Equal(t, jobpoll.CausePlan, b.learnCause("r", "p"))
		})
	}
}

// Estimates are judged by what became of them.
func TestEstimatesThatProveWrongAreFollowedLess(t *testing.T) {
	looks := func(cost time.Duration) int {
		r := learnRig(t, func(r *rig, c *jobpoll.Config) {
			c.Routes[0].Schedule.PollCost = cost
			c.Routes[0].Checker = jobpoll.CheckerFunc(func(ctx context.Context, j jobpoll.Job) (jobpoll.Report, error) {
				rep, err := r.prov.Check(ctx, j)
				if rep.State == jobpoll.StateRunning {
					rep.Remaining = 3 * time.Second
				}
				return rep, err
			})
		})
		for i := range 60 {
			id := strconv.Itoa(i)
			r.learnWatch("r", id, "p", time.Duration(58+i%5)*time.Second)
			r.Clock.Advance(time.Hour)
		}
		return len(r.looks("59"))
	}
	assert.Less(t, looks(0), looks(jobpoll.NoPlan))
}

func TestWebhookRoutesLearn(t *testing.T) {
	r := learnRig(t, func(_ *rig, c *jobpoll.Config) { c.Routes[0].Webhook.Mode = jobpoll.WebhookExpected })
	for i := range 30 {
		id := strconv.Itoa(i)
		r.prov.Add(id, "running")
		r.watchProfile(id, jobpoll.Job{})
		r.Clock.Advance(time.Duration(40+i%5) * time.Second)
		require.NoError(t, r.notify(told(id, jobpoll.StateSucceeded)))
	}
	p := learnProfiles(r.Poller)["r/p"]
	assert.Equal(t, 30, p.Count)
	assert.InDelta(t, 42, p.P50.Seconds(), 1)
}

// Plans are read and made by many goroutines at once.
func TestManyEndAtOnce(t *testing.T) {
	r := learnRig(t, func(r *rig, c *jobpoll.Config) {
		rt := r.route("dear")
		rt.Family, rt.Schedule = "r", jobpoll.Schedule{PollCost: 10 * time.Second}
		c.Routes = append(c.Routes, rt)
	})
	for i := range 300 {
		route := []string{"r", "dear"}[i%2]
		r.prov.Add(strconv.Itoa(i), "running; at 30s succeeded")
		require.NoError(t, r.Watch(t.Context(), jobpoll.Job{Route: route, ID: strconv.Itoa(i), Profile: strconv.Itoa(i % 40)}))
	}
	r.Clock.Advance(time.Hour)
	assert.Len(t, learnProfiles(r.Poller), 40)
	for i := range 40 {
		assert.Equal(t, jobpoll.CausePlan, r.learnCause("r", strconv.Itoa(i)))
	}
	r.atZero()
}
