package sim

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

// engine plays jobs through a real Poller on a clock of the test.
type engine struct {
	jobs  []Job
	clock *polltest.Clock

	mu    sync.Mutex
	rand  *rand.Rand
	seen  []Seen
	wait  []time.Duration // the longest time between two looks
	last  []time.Time
	ended int
}

// play gives how the end of each job was learnt. limits are those of the
// budget.
func (e *engine) play(t *testing.T, s jobpoll.Schedule, limits jobpoll.Limits) []Seen {
	t.Helper()
	e.seen, e.last, e.wait, e.ended = make([]Seen, len(e.jobs)), make([]time.Time, len(e.jobs)), make([]time.Duration, len(e.jobs)), 0
	e.clock = polltest.NewClock(epoch)
	h := polltest.Start(t, jobpoll.Config{
		Clock: e.clock, Stop: unlimited, Budget: jobpoll.NewBudget("account", limits),
		Callbacks: jobpoll.Callbacks{OnStop: e.stopped},
		Routes:    []jobpoll.Route{{Name: "sim", Family: Family, Schedule: s, Checker: jobpoll.CheckerFunc(e.check)}},
		Rand: func() float64 {
			e.mu.Lock()
			defer e.mu.Unlock()
			return e.rand.Float64()
		},
	})
	defer h.Stop()
	for i, j := range e.jobs {
		e.clock.AdvanceTo(epoch.Add(j.Start))
		require.NoError(t, h.Watch(t.Context(), jobpoll.Job{Route: "sim", ID: strconv.Itoa(i), Profile: j.Name, Expected: j.Expected}))
	}
	for e.over() < len(e.jobs) {
		e.clock.Advance(time.Hour)
	}
	assert.Zero(t, h.Metrics().Total.Backlog.Jobs)
	return e.seen
}

func (e *engine) over() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended
}

func (e *engine) check(_ context.Context, j jobpoll.Job) (jobpoll.Report, error) {
	i, _ := strconv.Atoi(j.ID)
	now := e.clock.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.last[i].IsZero() {
		e.wait[i] = max(e.wait[i], now.Sub(e.last[i]))
	}
	e.last[i] = now
	if now.Before(epoch.Add(e.jobs[i].Start + e.jobs[i].Takes)) {
		return jobpoll.Report{State: jobpoll.StateRunning}, nil
	}
	return jobpoll.Report{State: jobpoll.StateSucceeded, Output: []byte("{}")}, nil
}

func (e *engine) stopped(_ context.Context, o jobpoll.Outcome) error {
	i, _ := strconv.Atoi(o.Job.ID)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended++
	e.seen[i] = Seen{o.Polls, o.DetectedAt.Sub(epoch.Add(e.jobs[i].Start + e.jobs[i].Takes)).Seconds()}
	return nil
}

// engineJobs is how many jobs the Poller plays, unless the environment wants more.
func engineJobs(t *testing.T, n int) int {
	t.Helper()
	if v := os.Getenv("JOBPOLL_ENGINE_JOBS"); v != "" {
		more, err := strconv.Atoi(v)
		require.NoError(t, err)
		return more
	}
	return n
}

// The jobs of the image service, from the first on, cost through the Poller
// what they cost in the simulator, and that is little above the optimum.
func TestThePollerPlaysAsTheSimulatorDoes(t *testing.T) {
	images, _, _, _ := Measured()
	jobs := AtOnce(images, engineJobs(t, 1500), 4, Random(1000))
	for _, c := range []float64{0.5, 2, 10} {
		s := jobpoll.Schedule{PollCost: Seconds(c)}
		optimum := Cost(PlayLooks(Optima(images, c), jobs), c)
		w := &Watcher{Schedule: s, Learner: jobpoll.NewLearner(0), Rand: Random(1)}
		simulated := Cost(w.Play(jobs), c)
		e := &engine{jobs: jobs, rand: Random(1)}
		played := Cost(e.play(t, s, jobpoll.Limits{}), c)
		t.Logf("c = %g: cost over the optimum %.3f, simulated %.3f", c, played/optimum, simulated/optimum)
		assert.InEpsilon(t, simulated, played, 0.05, "c = %g", c)
	}
}

// Where the budget allows less than the demand, the delay of the Poller stays
// near what no policy can be below.
func TestThePollerSharesABudgetWell(t *testing.T) {
	const c = 2.0
	set := Mixed()
	shares := make([]Share, len(set.Profiles))
	for i, p := range set.Profiles {
		shares[i] = Share{Part: p.Weight, Dist: p.Dist}
	}
	jobs := Rate(set, engineJobs(t, 4000), 1, Random(1))
	settling := len(jobs) / 10
	perSecond := float64(len(jobs)) / jobs[len(jobs)-1].Start.Seconds()
	s := jobpoll.Schedule{PollCost: Seconds(c)}
	e := &engine{jobs: jobs, rand: Random(1)}
	demand, _ := Mean(e.play(t, s, jobpoll.Limits{})[settling:])
	for _, part := range []struct{ of, most float64 }{{0.75, 1.25}, {0.5, 1.45}} {
		looks := part.of * demand
		w := &Watcher{Schedule: s, Learner: jobpoll.NewLearner(0), Rand: Random(1)}
		_, simulated := Mean(w.PlayShared(jobs, looks*perSecond, WorthFirst)[settling:])
		e := &engine{jobs: jobs, rand: Random(1)}
		seen := e.play(t, s, jobpoll.Limits{Total: jobpoll.Limit{Rate: looks * perSecond, Burst: 1}})
		n, late := Mean(seen[settling:])
		bound, _ := Bound(shares, looks)
		t.Logf("%g of the demand of %.2f looks: %.2f looks, delay over the bound %.3f, simulated %.3f", part.of, demand, n, late/bound, simulated/bound)
		assert.LessOrEqual(t, late/bound, part.most, "%g of the demand", part.of)
	}
}
