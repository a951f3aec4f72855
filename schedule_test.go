package jobpoll

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// first gives the decision on the first look of a job.
func first(s Schedule, expected time.Duration, change ...func(*Input)) Decision {
	in := Input{Job: Job{Route: "fal", ID: "job-1", Expected: expected, SubmittedAt: t0}, Now: t0, Rand: 0.5}
	for _, f := range change {
		f(&in)
	}
	return s.Next(in)
}

// next gives the decision after one answer at an age.
func next(s Schedule, expected, age time.Duration, a any, change ...func(*Input)) Decision {
	in := Input{Job: Job{Route: "fal", ID: "job-1", Expected: expected, SubmittedAt: t0}, Now: after(age), Rand: 0.5}
	r, err := script(a)(0, 0)
	in.Track, _ = in.Track.Observe(r, err, in.Now)
	for _, f := range change {
		f(&in)
	}
	return s.Next(in)
}

func TestBucketsByExpectedDuration(t *testing.T) {
	row := func(e time.Duration) Bucket { return *(&Schedule{}).bucket(e, 0) }
	b := DefaultBuckets()
	for e, want := range map[time.Duration]Bucket{
		-sec: DefaultUnknown(), 0: DefaultUnknown(), 1: b[0], 12 * sec: b[0], 30*sec - 1: b[0],
		30 * sec: b[1], 2 * mnt: b[1], 2*mnt + 1: b[2], 10 * mnt: b[2], 10*mnt + 1: b[3], math.MaxInt64: b[3],
	} {
		require.Equal(t, want, row(e), e.String())
	}
	// The table of the documentation.
	require.Equal(t, Bucket{UpTo: 30*sec - 1, First: Span{2 * sec, 4 * sec}, Later: Span{5 * sec, 8 * sec}}, b[0])
	require.Equal(t, Bucket{UpTo: 2 * mnt, First: Span{4 * sec, 8 * sec}, Later: Span{10 * sec, 20 * sec}}, b[1])
	require.Equal(t, Bucket{UpTo: 10 * mnt, First: Span{10 * sec, 20 * sec}, Later: Span{30 * sec, 60 * sec}}, b[2])
	require.Equal(t, Bucket{First: Span{20 * sec, 40 * sec}, Later: Span{60 * sec, 120 * sec}}, b[3])
	require.Equal(t, Bucket{First: Span{5 * sec, 5 * sec}, Later: Span{60 * sec, 60 * sec}}, DefaultUnknown())
	b[0].UpTo = 0
	require.NotEqual(t, b, DefaultBuckets(), "a copy")
}

func TestAJobThatOutlivesItsBucketMovesToTheNext(t *testing.T) {
	s, b := &Schedule{}, DefaultBuckets()
	require.Equal(t, b[0], *s.bucket(12*sec, 30*sec-1))
	require.Equal(t, b[1], *s.bucket(12*sec, 30*sec))
	require.Equal(t, b[2], *s.bucket(12*sec, 2*mnt+1))
	require.Equal(t, b[3], *s.bucket(12*sec, time.Hour))
	require.Equal(t, b[2], *s.bucket(5*mnt, sec), "age below the expectation changes nothing")
	require.Equal(t, DefaultUnknown(), *s.bucket(0, 24*time.Hour), "the unknown row has no next")

	own := Schedule{Buckets: []Bucket{{UpTo: mnt, First: Span{sec, sec}, Later: Span{2 * sec, 2 * sec}}, {First: Span{9 * sec, 9 * sec}, Later: Span{90 * sec, 90 * sec}}},
		Unknown: Bucket{First: Span{3 * sec, 3 * sec}, Later: Span{7 * sec, 7 * sec}}}
	require.Equal(t, own.Buckets[0], *own.bucket(mnt, 0))
	require.Equal(t, own.Buckets[1], *own.bucket(mnt, mnt+1))
	require.Equal(t, own.Unknown, *own.bucket(0, 0))
}

func TestGuidanceExpectedStandsInForTheCallers(t *testing.T) {
	require.Equal(t, mnt, expected(0, &Guidance{Expected: mnt}))
	require.Equal(t, 5*mnt, expected(5*mnt, &Guidance{Expected: mnt}))
	require.Zero(t, expected(-1, &Guidance{Expected: -1}))
}

// Unchanged looks double the base up to the cap: min(cap, base · 2^unchanged).
func TestUnchangedLooksDoubleTheGapUpToTheCap(t *testing.T) {
	s := Schedule{Jitter: NoJitter, Buckets: []Bucket{{First: Span{3 * sec, 3 * sec}, Later: Span{40 * sec, 40 * sec}}}}
	r := game{schedule: s, expected: mnt, provider: until(150*sec, script(StateRunning))}.play(t)
	require.Equal(t, secs(3, 6, 12, 24, 40, 40, 40), r.gaps())
	require.Equal(t, CauseFirst, r.looks[0].cause)
	require.Equal(t, CauseBackoff, r.looks[4].cause)

	unknown := game{schedule: Schedule{Jitter: NoJitter}, provider: until(200*sec, script(StateRunning))}.play(t)
	require.Equal(t, secs(5, 10, 20, 40, 60, 60, 60), unknown.gaps())
}

func TestProgressStartsTheGrowthAnew(t *testing.T) {
	s := Schedule{Jitter: NoJitter, Buckets: []Bucket{{First: Span{3 * sec, 3 * sec}, Later: Span{40 * sec, 40 * sec}}}}
	p := script(StateRunning, StateRunning, StateRunning, Report{State: StateRunning, Progress: 0.1}, Report{State: StateRunning, Progress: 0.1}, StateSucceeded)
	r := game{schedule: s, expected: mnt, provider: p}.play(t)
	require.Equal(t, secs(3, 6, 12, 24, 3, 6), r.gaps())
}

func TestQueuedIsSlow(t *testing.T) {
	cap40 := Schedule{Jitter: NoJitter, Buckets: []Bucket{{First: Span{3 * sec, 3 * sec}, Later: Span{40 * sec, 40 * sec}}}}
	for name, tt := range map[string]struct {
		s    Schedule
		want time.Duration
	}{
		"the cap of the bucket":  {cap40, 40 * sec},
		"the longest of Delays":  {fixed(secs(2, 9, 4)...), 9 * sec},
		"Schedule.Queued":        {Schedule{Jitter: NoJitter, Queued: 25 * sec}, 25 * sec},
		"never over MaxDelay":    {Schedule{Jitter: NoJitter, Queued: 25 * sec, MaxDelay: 10 * sec}, 10 * sec},
		"nor the cap over it":    {Schedule{Jitter: NoJitter, Buckets: cap40.Buckets, MaxDelay: 10 * sec}, 10 * sec},
		"Queued beside Delays":   {Schedule{Jitter: NoJitter, Queued: 25 * sec, Delays: secs(2)}, 25 * sec},
		"an estimate is ignored": {cap40, 40 * sec},
	} {
		t.Run(name, func(t *testing.T) {
			d := next(tt.s, mnt, 3*sec, Report{State: StateQueued, Remaining: 5 * sec})
			require.Equal(t, CauseQueued, d.Cause)
			require.Equal(t, after(3*sec+tt.want), d.At)
		})
	}
	// From the queue to work is an advance: the growth starts at the base.
	r := game{schedule: cap40, expected: mnt, provider: script(StateQueued, StateQueued, StateRunning, StateRunning, StateSucceeded)}.play(t)
	require.Equal(t, secs(3, 40, 40, 3, 6), r.gaps())
}

func TestDelaysReplaceTheBuckets(t *testing.T) {
	r := game{schedule: fixed(secs(2, 3, 7)...), expected: mnt, provider: until(40*sec, script(StateRunning))}.play(t)
	require.Equal(t, secs(2, 3, 7, 7, 7, 7, 7), r.gaps())
	require.Equal(t, CauseFirst, r.looks[0].cause)
	require.Equal(t, CauseLadder, r.looks[1].cause)

	one := game{schedule: fixed(5 * sec), provider: until(20*sec, script(StateRunning))}.play(t)
	require.Equal(t, secs(5, 5, 5, 5), one.gaps())

	falling := game{schedule: fixed(secs(9, 3)...), provider: until(15*sec, script(StateRunning))}.play(t)
	require.Equal(t, secs(9, 3, 3), falling.gaps())

	capped := game{schedule: fixed(secs(2, 30)...), guidance: Guidance{Cap: 10 * sec}, provider: until(20*sec, script(StateRunning))}.play(t)
	require.Equal(t, secs(2, 10, 10), capped.gaps())
}

func TestErrorsBackOffFromTheBase(t *testing.T) {
	s := Schedule{Jitter: NoJitter, Buckets: []Bucket{{First: Span{3 * sec, 3 * sec}, Later: Span{40 * sec, 40 * sec}}}}
	fails := append(repeat(6, errPlain), StateSucceeded)
	r := game{schedule: s, expected: mnt, provider: script(fails...)}.play(t)
	require.Equal(t, secs(3, 3, 6, 12, 24, 40, 40), r.gaps())
	require.Equal(t, CauseError, r.looks[1].cause)

	// A cap that is equal to the base would make the backoff inert.
	r = game{schedule: fixed(5 * sec), expected: mnt, provider: script(fails...)}.play(t)
	rise := r.gaps()
	require.Equal(t, secs(5, 5, 10), rise[:3])
	require.Equal(t, rise[4], rise[5])
	require.LessOrEqual(t, rise[5], 20*sec)

	r = game{schedule: fixed(5 * sec), expected: mnt, guidance: Guidance{Cap: 8 * sec}, provider: script(fails...)}.play(t)
	require.Equal(t, secs(5, 5, 8, 8, 8, 8, 8), r.gaps(), "never over the published cap")

	s.MaxDelay = 4 * sec
	r = game{schedule: s, expected: mnt, provider: script(fails...)}.play(t)
	require.Equal(t, secs(3, 3, 4, 4, 4, 4, 4), r.gaps())
}

func TestEstimatesPlanTheLook(t *testing.T) {
	s := Schedule{Jitter: NoJitter, Buckets: []Bucket{{First: Span{3 * sec, 3 * sec}, Later: Span{40 * sec, 40 * sec}}}}
	left := func(d time.Duration) Report { return Report{State: StateRunning, Remaining: d} }
	for name, tt := range map[string]struct {
		a     any
		gap   time.Duration
		cause Cause
	}{
		"Remaining":                {left(17 * sec), 17 * sec, CauseEta},
		"Remaining over the cap":   {left(17 * mnt), 40 * sec, CauseEta},
		"Remaining under a second": {left(1), sec, CauseFloor},
		"not while unknown":        {Report{Remaining: 17 * sec}, 6 * sec, CauseBackoff},
		"progress with a start":    {Report{State: StateRunning, Progress: 0.5, StartedAt: after(sec)}, 9 * sec, CauseProgress},
	} {
		t.Run(name, func(t *testing.T) {
			d := next(s, 5*mnt, 10*sec, tt.a)
			require.Equal(t, tt.cause, d.Cause)
			require.Equal(t, after(10*sec+tt.gap), d.At)
		})
	}

	// An estimate that stands still is dropped for the backoff, and comes back.
	r := game{schedule: s, expected: 5 * mnt, provider: script(left(30*sec), left(30*sec), left(20*sec), StateSucceeded)}.play(t)
	require.Equal(t, []Cause{CauseFirst, CauseEta, CauseBackoff, CauseEta}, causes(r))
	require.Equal(t, secs(3, 30, 12, 20), r.gaps())

	// While the estimate holds it plans; progress moves only the fallback.
	r = game{schedule: s, expected: 5 * mnt, provider: script(
		Report{State: StateRunning, Progress: 0.1, Remaining: 30 * sec}, Report{State: StateRunning, Progress: 0.2, Remaining: 25 * sec}, StateSucceeded)}.play(t)
	require.Equal(t, secs(3, 30, 25), r.gaps())
}

func causes(r result) []Cause {
	var c []Cause
	for _, l := range r.looks {
		c = append(c, l.cause)
	}
	return c
}

func TestPlanComesBeforeTheTable(t *testing.T) {
	plan := &Plan{Looks: secs(50, 60, 90)}
	s := Schedule{Jitter: NoJitter}
	r := game{schedule: s, expected: mnt, plan: plan, provider: until(120*sec, script(StateRunning))}.play(t)
	require.Equal(t, secs(50, 60, 90), r.ages()[:3])
	require.Equal(t, []Cause{CausePlan, CausePlan, CausePlan, CauseBackoff}, causes(r)[:4])

	require.Equal(t, after(60*sec), next(s, mnt, 50*sec, StateRunning, func(in *Input) { in.Plan = plan }).At, "at a planned age the next one")
	require.Equal(t, after(60*sec), next(s, mnt, 51*sec, StateRunning, func(in *Input) { in.Plan = plan }).At, "a late look needs no correction")
	require.Equal(t, after(50*sec), first(Schedule{Jitter: NoJitter, MaxDelay: 9 * sec}, mnt, func(in *Input) { in.Plan = plan }).At, "a plan keeps MaxDelay in its own way")
	require.Equal(t, after(90*sec), next(s, mnt, 50*sec, StateRunning, func(in *Input) { in.Plan, in.Price = plan, 4 }).At, "dear looks are fewer")
	eta := next(s, mnt, 51*sec, Report{State: StateRunning, Remaining: 4 * sec}, func(in *Input) { in.Plan = plan })
	require.Equal(t, CauseEta, eta.Cause, "the estimate goes first")
	require.Equal(t, CauseQueued, next(s, mnt, 10*sec, StateQueued, func(in *Input) { in.Plan = plan }).Cause)
	require.Equal(t, CauseError, next(s, mnt, 10*sec, errPlain, func(in *Input) { in.Plan = plan }).Cause)

	for name, p := range map[string]*Plan{"nil": nil, "empty": {}, "past": {Looks: secs(1, 2)}} {
		require.Equal(t, CauseBackoff, next(s, mnt, 10*sec, StateRunning, func(in *Input) { in.Plan = p }).Cause, name)
	}
	late := Input{Job: Job{Route: "fal", ID: "job-1", SubmittedAt: t0}, Plan: plan, Now: after(70 * sec), Rand: 0.5}
	require.Equal(t, after(70*sec), s.Next(late).At, "a job found late is looked at at once")
}

func TestPlanLookup(t *testing.T) {
	p := &Plan{Looks: secs(10, 20, 20, 30)}
	for age, want := range map[time.Duration]time.Duration{0: 10 * sec, 10*sec - 1: 10 * sec, 10 * sec: 20 * sec, 20 * sec: 30 * sec, 30*sec - 1: 30 * sec} {
		got, ok := p.next(age, 1)
		require.True(t, ok)
		require.Equal(t, want, got.at)
	}
	_, ok := p.next(30*sec, 1)
	require.False(t, ok)
	for dear, want := range map[float64]time.Duration{1: 10 * sec, 1.5: 15 * sec, 2: 20 * sec, 3.5: 25 * sec, 4: 30 * sec, 1e150: 30 * sec} {
		got, ok := p.next(0, dear)
		require.True(t, ok)
		require.Equal(t, want, got.at, "%v times the gap", dear)
	}
	_, ok = (*Plan)(nil).next(0, 1)
	require.False(t, ok)
}

func TestGuidance(t *testing.T) {
	g := func(g Guidance) func(*Input) { return func(in *Input) { in.Guidance = g } }
	s := Schedule{Jitter: NoJitter}
	require.Equal(t, after(90*sec), first(s, mnt, g(Guidance{First: 90 * sec, Cap: 5 * sec})).At, "the first look is not cut at the cap")
	require.Equal(t, after(5*sec), first(Schedule{Jitter: NoJitter, MaxDelay: 5 * sec}, mnt, g(Guidance{First: 90 * sec})).At, "but at MaxDelay")
	require.Equal(t, after(15*sec), next(s, mnt, 10*sec, StateRunning, g(Guidance{First: 90 * sec, Cap: 5 * sec})).At, "a First over the cap grows no further")
	require.Equal(t, after(22*sec), next(s, mnt, 10*sec, StateRunning, g(Guidance{First: 6 * sec, Cap: 50 * sec})).At, "First starts the growth")
	require.Equal(t, Decision{At: after(40 * sec), Cause: CauseFloor}, next(s, mnt, 10*sec, StateRunning, g(Guidance{Floor: 30 * sec, Cap: 5 * sec})), "the floor wins over the cap")
	require.Equal(t, after(10*sec), first(s, mnt, g(Guidance{First: 10 * sec, Floor: mnt})).At, "the pace is between looks, not before the first")

	// No jitter reaches under a floor: 0 is the lowest draw.
	d := next(Schedule{}, mnt, 10*sec, StateRunning, g(Guidance{Floor: 12 * sec}), func(in *Input) { in.Rand = 0 })
	require.False(t, d.At.Before(after(22*sec)))
	// An absurd First is no early look.
	d = first(s, mnt, g(Guidance{First: math.MaxInt64}), func(in *Input) { in.Stop.MaxAge = NoLimit })
	require.True(t, d.At.After(after(time.Hour)))
}

func TestPriceStretchesEveryGapByItsRoot(t *testing.T) {
	price := func(p float64) func(*Input) { return func(in *Input) { in.Price = p } }
	row := Schedule{Jitter: NoJitter, Buckets: []Bucket{{First: Span{3 * sec, 3 * sec}, Later: Span{40 * sec, 40 * sec}}}}
	for name, tt := range map[string]struct {
		s    Schedule
		a    any
		p    float64
		want time.Duration
	}{
		"usual":               {row, StateRunning, 1, 6 * sec},
		"cheap":               {row, StateRunning, 0.1, 6 * sec},
		"not a number":        {row, StateRunning, math.NaN(), 6 * sec},
		"infinite":            {row, StateRunning, math.Inf(1), 6 * sec},
		"negative":            {row, StateRunning, -4, 6 * sec},
		"four times":          {row, StateRunning, 4, 12 * sec},
		"nine times, errors":  {row, errPlain, 9, 9 * sec},
		"queued, the cap":     {row, StateQueued, 4, 80 * sec},
		"queued, its own":     {Schedule{Jitter: NoJitter, Queued: 25 * sec}, StateQueued, 4, 50 * sec},
		"a ladder":            {fixed(secs(2, 5)...), StateRunning, 4, 10 * sec},
		"never over MaxDelay": {Schedule{Jitter: NoJitter, Buckets: row.Buckets, MaxDelay: 7 * sec}, StateRunning, 100, 7 * sec},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, after(10*sec+tt.want), next(tt.s, mnt, 10*sec, tt.a, price(tt.p)).At)
		})
	}
	d := next(row, mnt, 10*sec, StateRunning, price(math.MaxFloat64), func(in *Input) { in.Stop.MaxAge = NoLimit })
	require.Equal(t, after(10*sec+24*time.Hour), d.At, "bounded")
}

func TestHintsAndCoolDownsAreFloors(t *testing.T) {
	s := Schedule{Jitter: NoJitter}
	cool := func(age time.Duration) func(*Input) { return func(in *Input) { in.NotBefore = after(age) } }
	hint := func(d time.Duration) Report { return Report{State: StateRunning, Hint: Hint{RetryAfter: d}} }
	require.Equal(t, Decision{At: after(40 * sec), Cause: CauseHint}, next(s, mnt, 10*sec, hint(30*sec)))
	require.Equal(t, CauseBackoff, next(s, mnt, 10*sec, hint(sec)).Cause, "a hint shorter than the own delay")
	require.Equal(t, Decision{At: after(70 * sec), Cause: CauseCooldown}, next(s, mnt, 10*sec, StateRunning, cool(70*sec)))
	require.Equal(t, CauseHint, next(s, mnt, 10*sec, hint(70*sec), cool(70*sec)).Cause, "the later of the two")
	require.Equal(t, CauseCooldown, next(s, mnt, 10*sec, hint(50*sec), cool(70*sec)).Cause)
	require.Equal(t, CauseBackoff, next(s, mnt, 10*sec, StateRunning, cool(-time.Hour)).Cause, "a cool-down of the past")
	require.Equal(t, Decision{At: after(70 * sec), Cause: CauseCooldown}, first(s, mnt, cool(70*sec)))

	job := func(in *Input) { in.Job.NotBefore = after(70 * sec) } // B06(a)
	require.Equal(t, Decision{At: after(70 * sec), Cause: CauseCooldown}, first(s, mnt, job))
	require.Equal(t, CauseBackoff, next(s, mnt, 10*sec, StateRunning, job).Cause, "it is for the first look only")
}

func TestNoLookIsCloserThanTheMinimumGap(t *testing.T) {
	for s, want := range map[*Schedule]time.Duration{
		{Delays: secs(0.01), Jitter: NoJitter}:                         sec,
		{Delays: secs(0.01), Jitter: NoJitter, MinDelay: 3 * sec}:      3 * sec,
		{Delays: secs(0.01), Jitter: NoJitter, MinDelay: -1}:           sec,
		{Delays: secs(9), Jitter: NoJitter, MaxDelay: time.Nanosecond}: sec,
		{Delays: []time.Duration{sec - 1}, Jitter: NoJitter}:           sec,
		{Delays: []time.Duration{0}, Jitter: NoJitter}:                 sec,
		{Delays: []time.Duration{-5}, Jitter: 1}:                       sec,
		{Delays: secs(20), Jitter: 1, MinDelay: 12 * sec}:              12 * sec,
	} {
		for _, rnd := range []float64{0, 0.1} {
			d := next(*s, mnt, 10*sec, StateRunning, func(in *Input) { in.Rand = rnd })
			require.Equal(t, after(10*sec+want), d.At, "%+v", s)
		}
	}
}

func TestNearTheExpectedEndLooksAreClose(t *testing.T) {
	s := Schedule{Jitter: NoJitter, NearEnd: 5 * sec, Delays: secs(40)}
	r := game{schedule: s, expected: 100 * sec, provider: until(160*sec, script(StateRunning))}.play(t)
	require.Equal(t, secs(40, 80, 90, 95, 100, 105, 110, 150, 190), r.ages())
	require.Equal(t, []Cause{CauseFirst, CauseLadder, CauseNear, CauseNear, CauseNear, CauseNear, CauseNear, CauseLadder, CauseLadder}, causes(r))

	// With jitter: at most NearEnd late for the window, and inside it no longer gap.
	s.Jitter = 0.5
	for rnd := 0.0; rnd < 1; rnd += 0.0625 {
		r := game{schedule: s, expected: 100 * sec, rand: always(rnd), provider: until(160*sec, script(StateRunning))}.play(t)
		in := false
		for i, l := range r.looks {
			before := l.age - l.gap
			if before < 90*sec && l.age >= 90*sec {
				require.LessOrEqual(t, l.age, 95*sec)
				in = true
			}
			if before >= 90*sec && before < 110*sec {
				require.LessOrEqual(t, l.gap, 5*sec, "look %d with %v", i, rnd)
			}
		}
		require.True(t, in)
	}

	// A cap binds here too.
	d := next(Schedule{NearEnd: 5 * sec, Delays: secs(70), MaxDelay: 20 * sec}, 100*sec, 72*sec, StateRunning, func(in *Input) { in.Rand = 0.999 })
	require.Equal(t, CauseNear, d.Cause)
	require.LessOrEqual(t, d.At, after(92*sec))
	d = next(Schedule{Jitter: NoJitter, NearEnd: 5 * sec, Delays: secs(70), MaxDelay: 20 * sec}, 100*sec, 30*sec, StateRunning)
	require.Equal(t, after(50*sec), d.At)
	// Nothing expected, nothing near; and no end of the number line is jumped.
	require.Equal(t, CauseBackoff, next(Schedule{NearEnd: sec}, 0, 30*sec, StateRunning).Cause)
	d = next(Schedule{NearEnd: sec, Delays: []time.Duration{math.MaxInt64}}, 100*sec, 30*sec, StateRunning)
	require.Equal(t, CauseNear, d.Cause)
}

func TestJitterIsDownwardAtTheCap(t *testing.T) {
	s := &Schedule{}
	require.Equal(t, 8*sec, s.jitter(10*sec, never, 0))
	require.Equal(t, 10*sec, s.jitter(10*sec, never, 0.5))
	require.Equal(t, 12*sec, s.jitter(10*sec, never, 1-1e-12).Round(time.Millisecond))
	require.Equal(t, 8*sec, s.jitter(10*sec, 10*sec, 0))
	require.Equal(t, 9*sec, s.jitter(10*sec, 10*sec, 0.5))
	require.LessOrEqual(t, s.jitter(10*sec, 10*sec, 0.999999), 10*sec)
	require.LessOrEqual(t, s.jitter(10*sec, 11*sec, 0.999999), 11*sec)
	for _, bad := range []float64{-1, 1, 7, math.NaN(), math.Inf(1)} {
		require.Equal(t, 10*sec, s.jitter(10*sec, never, bad), "a draw out of range is none")
	}
	for _, j := range []float64{NoJitter, -0.1, 1.5, math.NaN()} {
		require.Equal(t, 10*sec, (&Schedule{Jitter: j}).jitter(10*sec, never, 0))
	}
	require.Zero(t, s.jitter(0, never, 0.9))
	require.Equal(t, time.Duration(-5), s.jitter(-5, 10, 0.9))
}

// Decisions about memories from a clock that ran ahead.
func TestAClockThatWentBackDelaysNothing(t *testing.T) {
	s := Schedule{Jitter: NoJitter, Delays: secs(10)}
	back := func(in *Input) { in.Now = after(0) }
	require.Equal(t, after(10*sec), next(s, mnt, 2*time.Hour, StateRunning, back).At)
	hint := Report{State: StateRunning, Hint: Hint{RetryAfter: 30 * sec}}
	require.Equal(t, Decision{At: after(30 * sec), Cause: CauseHint}, next(s, mnt, 2*time.Hour, hint, back), "a wait is as long as it was")
	require.Equal(t, CauseLadder, next(s, mnt, 2*time.Hour, StateRunning, back, func(in *Input) { in.Job.SubmittedAt = after(time.Hour) }).Cause)
	in := Input{Job: Job{SubmittedAt: after(time.Hour)}, Now: t0, Rand: 0.5}
	require.Equal(t, after(10*sec), s.Next(in).At, "submitted in the future counts as now")
	q := in.question()
	require.Zero(t, q.age())
}

func TestAgeWithoutASubmission(t *testing.T) {
	q := question{now: mark(mnt), track: &Track{}}
	require.Zero(t, q.age(), "never looked at")
	q.track.FirstAt = mark(20 * sec)
	require.Equal(t, 40*sec, q.age(), "since the first look")
	q.submitted = mark(0)
	require.Equal(t, mnt, q.age())
	require.Equal(t, after(mnt+5*sec), Schedule{Jitter: NoJitter}.Next(Input{Now: after(mnt)}).At)
}

func TestALateDecisionDoesNotAddToTheDelay(t *testing.T) {
	s := fixed(10 * sec)
	d := next(s, mnt, 20*sec, StateRunning, func(in *Input) { in.Now = after(24 * sec) })
	require.Equal(t, after(30*sec), d.At)
	d = next(s, mnt, 20*sec, StateRunning, func(in *Input) { in.Now = after(50 * sec) })
	require.Equal(t, after(50*sec), d.At, "overdue: now")
}

func TestCausesOfLooks(t *testing.T) {
	s := Schedule{Jitter: NoJitter}
	none := Report{State: StateFailed, Failure: &Failure{Kind: FailureNoOutput}}
	require.Equal(t, CauseFirst, first(s, mnt).Cause)
	for want, a := range map[Cause]any{
		CauseBackoff: StateRunning, CauseQueued: StateQueued, CauseError: errPlain, CauseMissing: kindErr(ErrorNoSuchJob),
		CauseAuth: kindErr(ErrorAuth), CauseConfirm: none, CauseHint: limited(mnt),
		CauseEta: Report{State: StateRunning, Remaining: 9 * sec}, CauseEnded: StateSucceeded,
	} {
		require.Equal(t, want.String(), next(s, mnt, 10*sec, a).Cause.String())
	}
	require.Equal(t, CauseDeadline, next(s, mnt, 10*sec, StateRunning, func(in *Input) { in.Job.Deadline = after(12 * sec) }).Cause)
	require.Equal(t, CauseParked, next(s, mnt, 10*sec, limited(mnt), func(in *Input) { in.Job.Deadline = after(12 * sec) }).Cause)
	require.Equal(t, after(70*sec), next(s, mnt, 10*sec, kindErr(ErrorAuth)).At, "one probe a minute")
}

func TestScheduleAndDecisionSurviveJSON(t *testing.T) {
	s := Schedule{Buckets: DefaultBuckets(), Unknown: DefaultUnknown(), Delays: secs(1, 2), Queued: 3, NearEnd: 4, PollCost: 5, MinDelay: 6, MaxDelay: 7, Jitter: 0.5}
	var back Schedule
	require.NoError(t, json.Unmarshal([]byte(mustJSON(t, s)), &back))
	require.Equal(t, s, back)
	require.Equal(t, "{}", mustJSON(t, Schedule{}))
	d := Decision{At: t0, Cause: CauseParked, Stop: ReasonQuota}
	var dback Decision
	require.NoError(t, json.Unmarshal([]byte(mustJSON(t, d)), &dback))
	require.Equal(t, d, dback)
	p, g := Plan{Looks: secs(1, 2)}, Guidance{1, 2, 3, 4}
	var pback Plan
	var gback Guidance
	require.NoError(t, json.Unmarshal([]byte(mustJSON(t, p)), &pback))
	require.NoError(t, json.Unmarshal([]byte(mustJSON(t, g)), &gback))
	require.Equal(t, p, pback)
	require.Equal(t, g, gback)
}
