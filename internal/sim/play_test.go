package sim

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

func TestPeersWaitAsTheirSourcesSay(t *testing.T) {
	want := map[string][]float64{
		"fal (JS), Replicate (JS), 0.5 s":  {0, 0.5, 0.5},
		"Replicate (Go), 1 s":              {1, 1, 1},
		"Vercel ai@7, 5 s":                 {5, 5, 5},
		"Azure Go, botocore RDS, 30 s":     {0, 30, 30},
		"Azure .NET management, 1 to 32 s": {0, 1, 1, 1, 2, 4, 8, 16, 32, 32},
		"Google Rust, 1 to 60 s":           {1, 2, 4, 8, 16, 32, 60, 60},
		"Temporal, 1 to 100 s":             {0, 1, 2, 4, 8, 16, 32, 64, 100, 100},
		"Terraform, 0.2 to 10 s":           {0, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10},
	}
	for _, p := range Peers {
		for n, w := range want[p.Name] {
			assert.Equal(t, w, p.Wait(n, Random(1)), "%s, wait %d", p.Name, n)
		}
		delete(want, p.Name)
	}
	assert.Empty(t, want, "peers that are no more")
}

func TestRandomWaitsOfPeersStayInTheirRanges(t *testing.T) {
	type span struct{ lo, hi float64 }
	want := map[string]map[int]span{
		"Runway, 6 ± 1.5 s":             {0: {4.5, 7.5}, 9: {4.5, 7.5}},
		"AWS waiter, 5 to 120 s":        {0: {0, 0}, 1: {5, 5}, 2: {5, 10}, 5: {5, 80}, 6: {5, 120}, 50: {5, 120}},
		"Google Go, 1 to 60 s":          {0: {0, 0}, 1: {0, 1}, 3: {0, 4}, 99: {0, 60}},
		"cenkalti/backoff, 0.5 to 60 s": {0: {0, 0}, 1: {0.25, 0.75}, 99: {30, 90}},
		"River retry, n⁴ s":             {0: {0, 0}, 1: {0.9, 1.1}, 3: {72.9, 89.1}},
		"asynq retry, n⁴ + 15 s":        {1: {15, 44}, 3: {31, 118}},
	}
	r := Random(2)
	for _, p := range Peers {
		for n, s := range want[p.Name] {
			lo, hi := math.Inf(1), 0.0
			for range 2000 {
				v := p.Wait(n, r)
				lo, hi = min(lo, v), max(hi, v)
			}
			assert.True(t, lo >= s.lo-1e-9 && hi <= s.hi+1e-9, "%s, wait %d: %v to %v", p.Name, n, lo, hi)
			assert.InDelta(t, s.hi-s.lo, hi-lo, 0.05*(s.hi-s.lo)+0.01, "%s, wait %d uses its range", p.Name, n)
		}
		delete(want, p.Name)
		for n := 1; n < 300; n++ {
			v := p.Wait(n, r)
			require.True(t, v > 0 && v < 1e11, "%s, wait %d: %v", p.Name, n, v)
		}
	}
	assert.Empty(t, want, "peers that are no more")
}

func simJobs(seconds ...float64) []Job {
	jobs := make([]Job, len(seconds))
	for i, s := range seconds {
		jobs[i] = Job{Name: "p", Start: time.Duration(i) * time.Hour, Takes: Seconds(s)}
	}
	return jobs
}

func TestAFixedIntervalIsCounted(t *testing.T) {
	seen := FixedPeer("", 5).Play(simJobs(12, 15, 0.1), Random(1))
	assert.Equal(t, []Seen{{3, 3}, {3, 0}, {1, 4.9}}, seen)
	assert.InDelta(t, 2*7/3.0+7.9/3, Cost(seen, 2), 1e-9)
}

func TestWatcherLooksAsTheScheduleSays(t *testing.T) {
	s := jobpoll.Schedule{Delays: []time.Duration{3 * time.Second, 10 * time.Second}, Jitter: jobpoll.NoJitter}
	w := &Watcher{Schedule: s, Rand: Random(1)}
	assert.Equal(t, []Seen{{1, 2}, {2, 1}, {2, 0.5}}, w.Play(simJobs(1, 12, 12.5)))
}

func simLearn(t *testing.T, w *Watcher, jobs []Job) {
	t.Helper()
	for _, s := range w.Play(jobs) {
		require.GreaterOrEqual(t, s.Looks, 1)
		require.GreaterOrEqual(t, s.Late, 0.0)
	}
}

func TestWatcherLearns(t *testing.T) {
	r := Random(1)
	set := Generated()[1]
	w := &Watcher{Learner: jobpoll.NewLearner(0), Rand: r}
	assert.Nil(t, w.Learner.Plan(Family, set.Name, w.Schedule))
	jobs := OneByOne(set, 100, r)
	before := Cost((&Watcher{Rand: r}).Play(jobs), 2)
	simLearn(t, w, jobs)
	assert.NotNil(t, w.Learner.Plan(Family, set.Name, w.Schedule))
	assert.Less(t, Cost(w.Play(jobs), 2), 0.6*before)

	count := func() (n int) {
		for p := range w.Learner.Profiles() {
			n += p.Count
		}
		return n
	}
	n := count()
	w.Frozen = true
	simLearn(t, w, jobs)
	assert.Equal(t, n, count(), "frozen, it learns no more")
}

func TestTheSameSeedPlaysTheSame(t *testing.T) {
	images, _, _, _ := Measured()
	play := func(seed uint64) []Seen {
		r := Random(seed)
		w := &Watcher{Learner: jobpoll.NewLearner(0), Rand: r}
		return w.Play(AtOnce(images, 300, 4, r))
	}
	assert.Equal(t, play(1), play(1))
	assert.NotEqual(t, play(1), play(2))
}

func TestASharedBudgetIsKept(t *testing.T) {
	for _, order := range []Order{InTurn, WorthFirst} {
		r := Random(1)
		jobs := Rate(Mixed(), 400, 1, r)
		w := &Watcher{Learner: jobpoll.NewLearner(0), Rand: r}
		const perSecond = 1.5
		seen := w.PlayShared(jobs, perSecond, order)
		looks, first, last := 0, time.Duration(math.MaxInt64), time.Duration(0)
		for i, s := range seen {
			require.GreaterOrEqual(t, s.Looks, 1, "every job is looked at")
			require.GreaterOrEqual(t, s.Late, 0.0)
			looks += s.Looks
			first = min(first, jobs[i].Start)
			last = max(last, jobs[i].Start+jobs[i].Takes+Seconds(s.Late))
		}
		assert.LessOrEqual(t, float64(looks), perSecond*(last-first).Seconds()+1)
	}
}

func TestABudgetThatIsFreeChangesLittle(t *testing.T) {
	jobs := Rate(Mixed(), 400, 1, Random(1))
	free := Cost((&Watcher{Rand: Random(2)}).Play(jobs), 2)
	for _, order := range []Order{InTurn, WorthFirst} {
		shared := Cost((&Watcher{Rand: Random(2)}).PlayShared(jobs, 1e4, order), 2)
		assert.InEpsilon(t, free, shared, 0.05)
	}
}

func TestPressureRisesWithABacklogAndFallsWithoutOne(t *testing.T) {
	p := 1.0
	for range 10 {
		next := pressure(p, time.Minute, time.Second)
		assert.Greater(t, next, p)
		p = next
	}
	for range 10 {
		next := pressure(p, 0, time.Second)
		assert.LessOrEqual(t, next, p)
		p = next
	}
	assert.Equal(t, 1.0, pressure(1, 0, time.Second))
	for range 10_000 {
		p = pressure(p, time.Hour, time.Second)
	}
	assert.LessOrEqual(t, p, 1e4)
}

func TestOddDurationsNeitherMakeALoopNorAWaitForEver(t *testing.T) {
	odd := []time.Duration{0, 1, time.Microsecond, time.Millisecond, time.Second, time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}
	const each = 12
	r := Random(9)
	for name, pick := range map[string]func(i int) time.Duration{
		"all at random":        func(int) time.Duration { return odd[r.IntN(len(odd))] },
		"short, then long":     func(i int) time.Duration { return odd[i/each] },
		"long, then short":     func(i int) time.Duration { return odd[len(odd)-1-i/each] },
		"all in no time":       func(int) time.Duration { return 0 },
		"in thousandths of it": func(int) time.Duration { return time.Duration(12_000+r.IntN(9000)) * time.Second },
	} {
		for _, cost := range []time.Duration{100 * time.Millisecond, 2 * time.Second, time.Hour} {
			jobs := make([]Job, each*len(odd))
			var at time.Duration
			for i := range jobs {
				jobs[i] = Job{Name: "p", Start: at, Takes: pick(i)}
				at += time.Hour
			}
			w := &Watcher{Schedule: jobpoll.Schedule{PollCost: cost}, Learner: jobpoll.NewLearner(0), Rand: r}
			for i, s := range w.Play(jobs) {
				takes := jobs[i].Takes.Seconds()
				require.LessOrEqual(t, s.Looks, int(takes)+3, "%s at %v: %v", name, cost, jobs[i].Takes)
				require.LessOrEqual(t, s.Late, takes+24*3600, "%s at %v: %v", name, cost, jobs[i].Takes)
			}
		}
	}
}

func TestManyProfilesAreBounded(t *testing.T) {
	const profiles = 20_000
	jobs := make([]Job, profiles)
	for i := range jobs {
		jobs[i] = Job{Name: strconv.Itoa(i), Takes: 12 * time.Second}
	}
	w := &Watcher{Learner: jobpoll.NewLearner(100), Rand: Random(1)}
	simLearn(t, w, jobs)
	n := 0
	for range w.Learner.Profiles() {
		n++
	}
	assert.Equal(t, 100, n)
}
