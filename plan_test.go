package jobpoll

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// planLearner has seen n jobs of about a minute, give or take a quarter.
func planLearner(n int, change func(i int, s *Sample)) *Learner {
	l, r := NewLearner(0), rand.New(rand.NewPCG(4, 4))
	for i := range n {
		d := 60 * math.Exp(r.NormFloat64()*0.25)
		s := Sample{Family: "fal", Profile: "p", After: time.Duration(d * 0.97e9), By: time.Duration(d * 1.03e9), At: t0}
		if change != nil {
			change(i, &s)
		}
		l.Observe(s)
		if change != nil { // what is compared is compared by the latest plan
			l.Plan(s.Family, s.Profile, Schedule{})
		}
	}
	return l
}

func planInput(p *Plan, age time.Duration) Input {
	return Input{Job: Job{Route: "fal", ID: "job-1", SubmittedAt: t0}, Plan: p, Now: after(age), Rand: 0.5}
}

func TestLearnedPlanLooksWhenTheJobIsLikelyDone(t *testing.T) {
	l := planLearner(4, nil)
	require.Nil(t, l.Plan("fal", "p", Schedule{}), "four jobs are too few")
	l = planLearner(200, nil)
	in := planInput(l.Plan("fal", "p", Schedule{}), 0)
	d := Schedule{}.Next(in)
	require.Equal(t, CausePlan, d.Cause)
	require.InDelta(t, 48, d.At.Sub(t0).Seconds(), 6, "in the lower tail")
	for range 6 {
		before := in.Now
		in.Now = d.At
		in.Track, _ = in.Track.Observe(Report{State: StateRunning}, nil, in.Now)
		d = Schedule{}.Next(in)
		require.True(t, d.At.After(in.Now) && in.Now.After(before))
		require.Equal(t, CausePlan, d.Cause)
	}
	dear := planInput(l.Plan("fal", "p", Schedule{PollCost: 20 * sec}), 0)
	require.True(t, Schedule{}.Next(dear).At.After(Schedule{}.Next(planInput(in.Plan, 0)).At), "where looks are dear, later")
	require.InDelta(t, 60, planMedian(t, l), 8)
}

func planMedian(t *testing.T, l *Learner) float64 {
	t.Helper()
	for p := range l.Profiles() {
		return p.P50.Seconds()
	}
	require.Fail(t, "no profile")
	return 0
}

// From any age the next look is ahead, not at once and not never.
func TestLearnedPlanHoldsFromAnyAge(t *testing.T) {
	for _, s := range []Schedule{{}, {MaxDelay: 3 * sec}, {PollCost: time.Millisecond}, {PollCost: 1000 * time.Hour}} {
		p := planLearner(100, nil).Plan("fal", "p", s)
		require.NotNil(t, p)
		for age := sec; age < 100*time.Hour; age = age*5/4 + sec {
			for _, price := range []float64{0, 1, 9, 1e6, math.NaN(), math.Inf(1)} {
				in := planInput(p, age)
				in.Price, in.Stop.MaxAge = price, NoLimit
				in.Track, _ = in.Track.Observe(Report{State: StateRunning}, nil, in.Now)
				d := s.Next(in)
				require.Equal(t, ReasonNone, d.Stop)
				require.GreaterOrEqual(t, d.At.Sub(in.Now), DefaultMinDelay, "%v at %v", s, age)
				require.LessOrEqual(t, d.At.Sub(in.Now), 240*time.Hour, "%v at %v", s, age)
				if age > time.Hour {
					require.LessOrEqual(t, d.At.Sub(in.Now), maxPlanGap*11/10)
				}
			}
		}
	}
}

func TestPlannedLookIsMovedByATenthOfTheSmallerGap(t *testing.T) {
	p := planLearner(200, nil).Plan("fal", "p", Schedule{})
	at := func(s Schedule, rnd float64) time.Duration {
		in := planInput(p, 0)
		in.Rand = rnd
		return s.Next(in).At.Sub(t0)
	}
	middle := at(Schedule{Jitter: NoJitter}, 0)
	require.Equal(t, middle, at(Schedule{Jitter: NoJitter}, 0.999))
	spread := at(Schedule{}, 0.999) - at(Schedule{}, 0)
	require.Greater(t, spread, 300*time.Millisecond)
	require.Less(t, spread, 4*sec, "the gap after it is some 15 s, the age near a minute")
	require.Equal(t, spread, at(Schedule{Jitter: 0.9}, 0.999)-at(Schedule{Jitter: 0.9}, 0))
	require.InDelta(t, spread.Seconds()/2, (at(Schedule{Jitter: 0.1}, 0.999) - at(Schedule{Jitter: 0.1}, 0)).Seconds(), 0.01)

	hand := &Plan{Looks: secs(50, 60, 90)}
	for rnd, want := range map[float64]time.Duration{0: 49 * sec, 0.5: 50 * sec} {
		in := planInput(hand, 0)
		in.Rand = rnd
		require.Equal(t, after(want), Schedule{}.Next(in).At)
	}
}

func TestLearnedEstimateIsCorrected(t *testing.T) {
	// The provider says half of what it takes.
	p := planLearner(60, func(_ int, s *Sample) {
		s.Told = Estimate{Age: sec, Left: (s.After+s.By)/4 - sec/2}
	}).Plan("fal", "p", Schedule{})
	in := planInput(p, 5*sec)
	in.Track, _ = in.Track.Observe(Report{State: StateRunning, Remaining: 25 * sec}, nil, in.Now)
	d := Schedule{}.Next(in)
	require.Equal(t, CauseEta, d.Cause)
	require.InDelta(t, 50, d.At.Sub(in.Now).Seconds(), 6)
	e, told := in.Track.EstimateIn(t0)
	require.True(t, told)
	require.Equal(t, Estimate{Age: 5 * sec, Left: 25 * sec}, e)

	// What it says has nothing to do with what happens.
	r := rand.New(rand.NewPCG(1, 1))
	p = planLearner(100, func(_ int, s *Sample) {
		s.Told = Estimate{Age: sec, Left: time.Duration(math.Exp(r.NormFloat64()*2+3) * 1e9)}
	}).Plan("fal", "p", Schedule{})
	in.Plan = p
	require.Equal(t, CausePlan, Schedule{}.Next(in).Cause)
}

func TestPlanFromTheStartOfRunning(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	p := planLearner(100, func(_ int, s *Sample) {
		queue := time.Duration(5e9 + r.ExpFloat64()*200e9)
		s.Running, s.After, s.By = queue, s.After+queue, s.By+queue
	}).Plan("fal", "p", Schedule{})
	in := planInput(p, 300*sec)
	in.Track, _ = in.Track.Observe(Report{State: StateQueued}, nil, after(290*sec))
	in.Track, _ = in.Track.Observe(Report{State: StateRunning}, nil, in.Now)
	d := Schedule{}.Next(in)
	require.Equal(t, CausePlan, d.Cause)
	require.InDelta(t, 48, d.At.Sub(in.Now).Seconds(), 9, "a minute from when it began, whatever the age")
}

func TestWorthOfALookGrowsWithWhatHasAccrued(t *testing.T) {
	p := planLearner(200, nil).Plan("fal", "p", Schedule{})
	var fresh Track
	early, late := p.Worth(fresh, t0, after(20*sec)), p.Worth(fresh, t0, after(80*sec))
	require.Less(t, early, sec)
	require.Greater(t, late, 10*sec)
	seen, _ := fresh.Observe(Report{State: StateRunning}, nil, after(75*sec))
	require.Less(t, p.Worth(seen, t0, after(80*sec)), late)
	require.Zero(t, (*Plan)(nil).Worth(seen, t0, after(80*sec)))
	require.Zero(t, p.Worth(fresh, time.Time{}, after(80*sec)))
	require.GreaterOrEqual(t, p.Worth(seen, t0.Add(-1e6*time.Hour), after(-80*sec)), time.Duration(0))
}

func TestLearnedPlanSurvivesJSON(t *testing.T) {
	p := planLearner(100, func(_ int, s *Sample) { s.Told = Estimate{sec, s.By} }).Plan("fal", "p", Schedule{MaxDelay: mnt})
	b, err := json.Marshal(p)
	require.NoError(t, err)
	var back Plan
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, p, &back)
	for _, bad := range []string{
		`{"learned":{}}`, `{"looks":1}`,
		`{"learned":{"age":{"cost":1,"ages":[0,1],"alive":[1,2],"areas":[0],"levels":[8,8,8,8,8,8]}}}`,
		`{"learned":{"age":{"cost":1,"ages":[0,1],"alive":[1,0],"area":[0,1],"next":[[8,8],[8,8],[8,8],[8,8],[8,8]]}}}`, // of an earlier version
	} {
		require.Error(t, json.Unmarshal([]byte(bad), &back), bad)
	}
	require.Equal(t, p, &back, "unchanged")
}

func TestLearnerSurvivesStoring(t *testing.T) {
	l, back := planLearner(100, nil), NewLearner(0)
	data, ok := l.Export("fal", "p")
	require.True(t, ok)
	require.NoError(t, back.Import(data))
	require.InDelta(t, planMedian(t, l), planMedian(t, back), 4)
	require.NotNil(t, back.Plan("fal", "p", Schedule{}))
	require.Error(t, back.Import([]byte("?")))
	_, ok = l.Export("fal", "another")
	require.False(t, ok)
}

func TestPlannedNextDoesNotAllocate(t *testing.T) {
	p := planLearner(100, nil).Plan("fal", "p", Schedule{})
	in := planInput(p, 40*sec)
	in.Track, _ = in.Track.Observe(Report{State: StateRunning}, nil, in.Now)
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = Schedule{}.Next(in); p.Worth(in.Track, t0, in.Now) }))
}

func BenchmarkLearner(b *testing.B) {
	b.Run("Observe", func(b *testing.B) {
		l := planLearner(100, nil)
		b.ReportAllocs()
		for b.Loop() {
			l.Observe(Sample{Family: "fal", Profile: "p", After: 50 * sec, By: 60 * sec})
		}
	})
	b.Run("Plan", func(b *testing.B) {
		l, c := planLearner(100, nil), 0
		b.ReportAllocs()
		for b.Loop() {
			c++ // another cost each time: made anew
			l.Plan("fal", "p", Schedule{PollCost: 2*sec + time.Duration(c)})
		}
	})
}

// Looks behind a narrow place cannot tell that jobs end earlier: a few jobs are
// looked at before it too.
func TestAFewJobsOfAlmostNoSpreadAreLookedAtEarly(t *testing.T) {
	l := NewLearner(0)
	for i := range 60 {
		end := 400*time.Second + time.Duration(i%9)*100*time.Millisecond
		l.Observe(Sample{Family: "f", Profile: "p", After: end - sec/2, By: end, At: time.Unix(int64(i), 0)})
	}
	s := Schedule{Jitter: NoJitter}
	p := l.Plan("f", "p", s)
	submitted := time.Unix(1e6, 0)
	probed, at := 0, submitted.Add(time.Duration(p.learned.Probe*1e9))
	require.InDelta(t, 399, p.learned.Probe, 1.5)
	for i := range 1600 {
		in := Input{Job: Job{Route: "r", ID: fmt.Sprint(i), SubmittedAt: submitted}, Plan: p, Rand: 0.5}
		in.Now = at.Add(-time.Minute)
		in.Track, _ = in.Track.Observe(Report{State: StateRunning}, nil, in.Now)
		if d := s.Next(in); d.At.Sub(at).Abs() < 10*time.Millisecond {
			probed++
		}
		in.Price = 4
		require.NotEqual(t, at, s.Next(in).At, "not where looks are dear")
	}
	require.InDelta(t, 100, probed, 35, "one in sixteen")
}
