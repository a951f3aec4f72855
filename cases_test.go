package jobpoll

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The bug reports that concern the two pure calls, each played against them.
// The ids are those of the case list.

// draws are the lowest, the middle and the highest jitter.
var draws = []float64{0, 0.5, 1 - 1e-9}

// B02: seconds are seconds.
func TestAHintOnAPendingAnswerIsObeyedInItsUnit(t *testing.T) {
	for _, rnd := range draws {
		r := game{schedule: Schedule{Delays: secs(10, 2)}, rand: always(rnd), now: true, provider: func(_ int, age time.Duration) (Report, error) {
			if age == 0 {
				return Report{State: StateRunning, Hint: Hint{RetryAfter: 30 * sec}}, nil
			}
			return Report{State: StateSucceeded}, nil
		}}.play(t)
		require.GreaterOrEqual(t, r.looks[1].age, 30*sec)
		require.LessOrEqual(t, r.looks[1].age, 30*sec+2*sec)
	}
}

// B04: however large the figure is, there is no look before the limit, and
// the reason names the rate limit.
func TestAbsurdWaitsNeverFireEarly(t *testing.T) {
	for _, wait := range []time.Duration{MaxRetryAfter, 9223372036 * sec, 1<<63 - 1} {
		for _, rnd := range draws {
			r := game{schedule: Schedule{}, stop: StopRules{MaxAge: 30 * mnt}, expected: mnt, rand: always(rnd), provider: script(limited(wait))}.play(t)
			require.Len(t, r.looks, 1)
			require.Equal(t, 30*mnt, r.endAge)
			require.ErrorIs(t, r.err(t), ReasonRateLimited)
			require.Contains(t, r.err(t).Error(), "fal/job-1")
			require.Contains(t, r.err(t).Error(), "rate limited")
		}
	}
	// Without any limit the wait is long, and still not negative.
	in := Input{Stop: StopRules{MaxAge: NoLimit, NoProgress: NoLimit}, Now: t0, Rand: 0.99, NotBefore: t0.AddDate(500, 0, 0)}
	d := Schedule{Jitter: 1, Delays: []time.Duration{1<<63 - 1}}.Next(in)
	require.True(t, d.At.After(t0.AddDate(250, 0, 0)), "%v", d.At)
}

// B05: a hint binds the next look only.
func TestAHintBindsTheNextLookOnly(t *testing.T) {
	hint := func(d time.Duration) Report { return Report{State: StateRunning, Hint: Hint{RetryAfter: d}} }
	r := game{schedule: fixed(5 * sec), provider: script(hint(sec), hint(20*sec), StateRunning, StateSucceeded)}.play(t)
	require.Equal(t, secs(5, 5), r.gaps()[:2])
	require.InDelta(t, 20, r.gaps()[2].Seconds(), 1)
	require.GreaterOrEqual(t, r.gaps()[2], 20*sec)
	require.Equal(t, 5*sec, r.gaps()[3])
}

// B07(a): parked, stopped at the limit with the time to come back.
func TestALongWaitStopsTheJobAtItsLimit(t *testing.T) {
	r := game{schedule: fixed(60 * sec), stop: StopRules{MaxAge: 15 * mnt}, provider: script(limited(1800 * sec))}.play(t)
	require.Len(t, r.looks, 1)
	require.Equal(t, 60*sec, r.parked)
	require.Equal(t, 15*mnt, r.endAge)
	err := r.err(t)
	require.ErrorIs(t, err, ReasonRateLimited)
	require.Equal(t, after(1860*sec), err.Outcome.RetryAt)
	require.Contains(t, err.Error(), "2026-01-01T00:31:00Z")
	require.Contains(t, err.Error(), "fal/job-1")
}

// B07(c): no cap shortens a wait of the provider.
func TestACapDoesNotShortenAWait(t *testing.T) {
	s := Schedule{MaxDelay: mnt, Delays: secs(10)}
	r := game{schedule: s, stop: StopRules{MaxAge: 24 * time.Hour}, provider: script(limited(time.Hour), StateSucceeded)}.play(t)
	require.GreaterOrEqual(t, r.gaps()[1], time.Hour)
	require.LessOrEqual(t, r.gaps()[1], time.Hour+2*sec)
}

// B08: a date in the past is no wait (the adapter gives zero or less).
func TestAWaitOfThePastLeavesTheOwnBackoff(t *testing.T) {
	for _, rnd := range draws {
		r := game{schedule: Schedule{Delays: secs(1)}, rand: always(rnd),
			provider: script(limited(0), limited(0), limited(0), limited(-60*sec), StateSucceeded)}.play(t)
		require.GreaterOrEqual(t, r.gaps()[4], 12800*time.Millisecond)
		require.LessOrEqual(t, r.gaps()[4], 16*sec+200*time.Millisecond)
	}
}

// B10: jitter only lengthens a wait.
func TestJitterNeverShortensAWait(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 1000 {
		rnd := rng.Float64()
		if i < len(draws) {
			rnd = draws[i]
		}
		d := next(Schedule{}, mnt, 10*sec, limited(30*sec), func(in *Input) { in.Rand = rnd })
		gap := d.At.Sub(after(10 * sec))
		require.GreaterOrEqual(t, gap, 30*sec)
		require.LessOrEqual(t, gap, 30*sec+8*sec/5)
		d = next(Schedule{}, mnt, 10*sec, limited(2*time.Hour), func(in *Input) { in.Rand, in.Stop.MaxAge = rnd, time.Hour })
		require.Equal(t, CauseParked, d.Cause, "decided on the wait, not on the draw")
	}
}

// B11: no growth wraps.
func TestGrowthNeverWraps(t *testing.T) {
	before := time.Duration(0)
	for n := range 10_001 { // (a)
		d := grow(100*time.Millisecond, int32(n), mnt)
		require.Greater(t, d, time.Duration(0))
		require.LessOrEqual(t, d, mnt)
		require.GreaterOrEqual(t, d, before)
		before = d
	}
	require.Equal(t, time.Duration(1), grow(1, 7, 1)) // (b)
	require.Equal(t, sec, grow(mnt, 7, sec))
	require.Equal(t, never, grow(never, 7, never))
	require.Equal(t, never-1, grow(time.Hour*1e5, 1<<30, never-1))
	require.Zero(t, grow(-5, 7, sec))

	for _, rnd := range draws { // (c)
		r := game{schedule: Schedule{Delays: secs(0.1)}, stop: StopRules{MaxAge: 2 * time.Hour, MaxErrors: NoCount}, rand: always(rnd), provider: script(errPlain)}.play(t)
		require.Equal(t, ReasonDeadline, r.end.Stop)
		for _, l := range r.looks[1:] {
			require.GreaterOrEqual(t, l.gap, sec)
		}
	}
}

// B13: jitter keeps the cap, and no wait is more than 2.5 times the one before.
func TestJitterKeepsTheCap(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	s := Schedule{Delays: secs(60), Jitter: 0.5}
	for range 10_000 { // (a)
		d := next(s, 0, 10*sec, StateRunning, func(in *Input) { in.Rand = rng.Float64() })
		require.LessOrEqual(t, d.At, after(70*sec))
		require.GreaterOrEqual(t, d.At, after(40*sec))
	}
	for _, expected := range []time.Duration{0, 12 * sec, mnt, 5 * mnt, 20 * mnt} { // (c)
		for seed := range uint64(200) {
			rng := rand.New(rand.NewPCG(5, seed))
			r := game{expected: expected, stop: StopRules{MaxAge: 300 * sec}, rand: rng.Float64, provider: script(StateRunning)}.play(t)
			require.Equal(t, ReasonDeadline, r.end.Stop)
			for i, l := range r.looks {
				require.LessOrEqual(t, l.gap, 2*mnt)
				if i > 0 {
					require.LessOrEqual(t, l.gap, r.looks[i-1].gap*5/2, "look %d of %v", i, expected)
				}
			}
		}
	}
}

// B15, as far as it is pure: after a step of the clock the stop waits for a
// fresh answer, and a result ends the job well.
func TestAForwardStepDecidesNothingWithoutAFreshAnswer(t *testing.T) {
	in := Input{Job: Job{Route: "fal", ID: "job-1", SubmittedAt: t0}, Stop: StopRules{MaxAge: 30 * mnt}, Now: after(60 * sec), Rand: 0.5}
	in.Track, _ = in.Track.Observe(Report{State: StateRunning}, nil, in.Now)
	in.Now = in.Now.Add(2 * time.Hour)
	d := fixed(10 * sec).Next(in)
	require.Equal(t, Decision{At: in.Now, Cause: CauseLadder}, d)
	in.Track, _ = in.Track.Observe(Report{State: StateSucceeded}, nil, in.Now)
	require.Equal(t, ReasonSucceeded, fixed(10*sec).Next(in).Stop)
}

// B18
func TestDefaultLimitsAreFiniteAndFollowTheExpectation(t *testing.T) {
	r := game{provider: script(Report{State: StateRunning, RawStatus: "processing"})}.play(t) // (a)
	require.Equal(t, 2*time.Hour, r.endAge)
	err := r.err(t)
	require.ErrorIs(t, err, ReasonDeadline)
	require.Equal(t, StateRunning, err.Outcome.State)
	require.Contains(t, err.Error(), "fal/job-1")
	require.Contains(t, err.Error(), `"processing"`)

	r = game{expected: 240 * sec, provider: until(404*sec, script(StateRunning))}.play(t) // (b)
	require.Equal(t, ReasonSucceeded, r.end.Stop)
}

// B21
func TestTheLastLookIsAtTheLimit(t *testing.T) {
	r := game{schedule: fixed(5 * sec), takes: 10 * sec, stop: StopRules{MaxAge: mnt}, provider: script(StateRunning)}.play(t) // (a)
	require.Equal(t, secs(5, 20, 35, 50), r.ages())
	require.Equal(t, 60*sec, r.endAge)
	require.Equal(t, ReasonDeadline, r.end.Stop)

	r = game{schedule: fixed(14 * sec), stop: StopRules{MaxAge: mnt}, provider: until(58*sec, script(StateRunning))}.play(t) // (b)
	require.Equal(t, secs(14, 28, 42, 56, 60), r.ages())
	require.Equal(t, ReasonSucceeded, r.end.Stop)
}

// B23
func TestALookAtOnceIsNotMadeTwice(t *testing.T) {
	r := game{schedule: fixed(2 * sec), now: true, deadline: 5 * sec, provider: script(StateRunning)}.play(t)
	require.Equal(t, secs(0, 2, 4, 5), r.ages())
	require.Equal(t, ReasonDeadline, r.end.Stop)
}

// B24
func TestQueueAndWorkHaveLimitsOfTheirOwn(t *testing.T) {
	stop := StopRules{MaxQueued: time.Hour, MaxProcessing: 10 * mnt, MaxAge: NoLimit}
	phases := func(queued, done time.Duration) provider {
		return func(_ int, age time.Duration) (Report, error) {
			switch {
			case age < queued:
				return Report{State: StateQueued}, nil
			case age < done:
				return Report{State: StateRunning, StartedAt: after(queued)}, nil
			}
			return Report{State: StateSucceeded}, nil
		}
	}
	r := game{stop: stop, expected: 5 * mnt, provider: phases(40*mnt, 48*mnt)}.play(t) // (a)
	require.Equal(t, ReasonSucceeded, r.end.Stop)
	r = game{stop: stop, expected: 5 * mnt, provider: phases(40*mnt, 24*time.Hour)}.play(t) // (b)
	require.Equal(t, ReasonProcessingLimit, r.end.Stop)
	require.Equal(t, 50*mnt, r.endAge)
	r = game{stop: stop, expected: 5 * mnt, provider: phases(24*time.Hour, 25*time.Hour)}.play(t) // (c)
	require.Equal(t, ReasonQueueLimit, r.end.Stop)
	require.Equal(t, time.Hour, r.endAge)
}

// B25
func TestAYoungJobMayNotBeVisibleYet(t *testing.T) {
	missing := kindErr(ErrorNoSuchJob)
	r := game{schedule: fixed(2 * sec), provider: script(missing, missing, StateQueued, StateRunning, StateSucceeded)}.play(t)
	require.Equal(t, ReasonSucceeded, r.end.Stop)
	require.Equal(t, secs(2, 4, 8), r.ages()[:3])
}

// B28(a)
func TestAJobThatIsNeverFoundIsLost(t *testing.T) {
	r := game{expected: mnt, provider: script(kindErr(ErrorNoSuchJob))}.play(t)
	require.LessOrEqual(t, len(r.looks), 6)
	require.GreaterOrEqual(t, len(r.looks), 3)
	require.GreaterOrEqual(t, r.endAge-r.looks[0].age, 30*sec)
	err := r.err(t)
	require.ErrorIs(t, err, ReasonLost)
	require.Contains(t, err.Error(), "fal/job-1")
	require.Equal(t, AdviceDoNotResubmit, err.Outcome.Resubmit, "only a Reconciler can say that it is surely absent")
}

// B29
func TestACanceledJobEndsOnThatLook(t *testing.T) {
	r := game{provider: script(Report{State: StateCanceled, RawStatus: "aborted"})}.play(t)
	require.Len(t, r.looks, 1)
	err := r.err(t)
	require.ErrorIs(t, err, ReasonCanceled)
	require.NotErrorIs(t, err, ReasonAbandoned)
	require.Equal(t, "aborted", err.Outcome.Report.RawStatus)
}

// B30
func TestAWordThatIsNotKnownIsNotAnEnd(t *testing.T) {
	word := func(w string) Report { return Report{RawStatus: w} }
	r := game{expected: mnt, provider: script(word("NOT_START"), word("NOT_START"), Report{State: StateRunning, RawStatus: "in_progress"}, StateSucceeded)}.play(t) // (a)
	require.Equal(t, ReasonSucceeded, r.end.Stop)
	require.Len(t, r.looks, 4)

	r = game{provider: script(word("incomplete"))}.play(t) // (b)
	require.ErrorIs(t, r.err(t), ReasonUnknownStatus)
	require.Contains(t, r.err(t).Error(), `"incomplete"`)
	require.GreaterOrEqual(t, len(r.looks), 10)
	require.GreaterOrEqual(t, r.endAge, 10*mnt)
	require.LessOrEqual(t, r.endAge, 12*mnt)
	var told int
	var tr Track
	for range 5 {
		var c Change
		if tr, c = tr.Observe(word("incomplete"), nil, t0); c.Notable() {
			told++
		}
	}
	require.Equal(t, 1, told, "told once")
}

// B32: a queue word in an answer is a state, not a rate limit.
func TestAThrottledJobIsAQueuedJob(t *testing.T) {
	throttled := Report{State: StateQueued, RawStatus: "THROTTLED"}
	answers := append([]any{Report{State: StateQueued, RawStatus: "queued"}}, repeat(5, throttled)...)
	for _, rnd := range draws {
		r := game{schedule: Schedule{Queued: 30 * sec}, expected: mnt, rand: always(rnd), provider: script(append(answers, StateRunning, StateSucceeded)...)}.play(t)
		require.Equal(t, ReasonSucceeded, r.end.Stop)
		for _, gap := range r.gaps()[1:7] {
			require.GreaterOrEqual(t, gap, 24*sec)
		}
		require.Zero(t, r.track.Limited)
		require.Zero(t, r.track.NotBefore)
	}
}

// B34
func TestAFailedJobEndsOnThatLook(t *testing.T) {
	r := game{provider: script(Report{State: StateFailed, Failure: &Failure{Kind: FailureFiltered, Code: "moderation", Message: "M"}})}.play(t)
	require.Len(t, r.looks, 1)
	err := r.err(t)
	require.ErrorIs(t, err, ReasonFailed)
	require.Equal(t, AdviceDoNotResubmit, err.Outcome.Resubmit)
	require.Contains(t, err.Error(), "filtered")
}

// B35
func TestDoneWithoutOutput(t *testing.T) {
	none := Report{State: StateFailed, Failure: &Failure{Kind: FailureNoOutput}}
	r := game{expected: mnt, provider: script(StateRunning, none)}.play(t) // (a)
	require.Len(t, r.looks, 3)
	require.Equal(t, CauseConfirm, r.looks[2].cause)
	require.LessOrEqual(t, r.looks[2].gap, 10*sec, "soon")
	require.ErrorIs(t, r.err(t), ReasonFailed)
	require.Contains(t, r.err(t).Error(), "no output")

	r = game{provider: script(Report{State: StateFailed, Failure: &Failure{Kind: FailureFiltered}})}.play(t) // (b)
	require.Len(t, r.looks, 1)

	r = game{provider: script(&CheckError{Kind: ErrorTransient, Status: 200}, StateRunning, StateSucceeded)}.play(t) // (c)
	require.Equal(t, ReasonSucceeded, r.end.Stop)
}

// B36
func TestAStuckJobIsToldFromASlowOne(t *testing.T) {
	stop := StopRules{NoProgress: 5 * mnt, MaxAge: time.Hour}
	slow := func(_ int, age time.Duration) (Report, error) { // (a)
		if age >= 40*mnt {
			return Report{State: StateSucceeded}, nil
		}
		return Report{State: StateRunning, Progress: 0.05 * float64(age/(2*mnt))}, nil
	}
	r := game{stop: stop, expected: 5 * mnt, provider: slow}.play(t)
	require.Equal(t, ReasonSucceeded, r.end.Stop)

	stuck := func(_ int, age time.Duration) (Report, error) { // (b)
		if age >= 2*mnt {
			return Report{State: StateRunning, Progress: 0.2}, nil
		}
		return Report{State: StateRunning}, nil
	}
	r = game{stop: stop, expected: 5 * mnt, provider: stuck}.play(t)
	require.ErrorIs(t, r.err(t), ReasonNoProgress)
	require.GreaterOrEqual(t, r.endAge, 7*mnt)
	require.LessOrEqual(t, r.endAge, 8*mnt)
}

// B38
func TestLooksFollowTheExpectation(t *testing.T) {
	s := Schedule{Jitter: NoJitter, NearEnd: 5 * sec}
	r := game{schedule: s, expected: 600 * sec, provider: until(610*sec, script(StateRunning))}.play(t) // (a)
	require.LessOrEqual(t, r.looks[len(r.looks)-1].age, 620*sec)
	require.LessOrEqual(t, len(r.looks), 40)

	r = game{schedule: s, expected: 80 * sec, stop: StopRules{MaxAge: 120 * sec}, provider: until(77400*time.Millisecond, script(StateRunning))}.play(t) // (b)
	require.Equal(t, ReasonSucceeded, r.end.Stop)
	require.LessOrEqual(t, r.looks[len(r.looks)-1].age, 87400*time.Millisecond)

	r = game{schedule: s, expected: 80 * sec, provider: until(300*sec, script(StateRunning))}.play(t) // (c)
	require.LessOrEqual(t, r.looks[len(r.looks)-1].age, 360*sec)
	require.LessOrEqual(t, len(r.looks), 40)
	for i, l := range r.looks {
		require.LessOrEqual(t, l.gap, 60*sec)
		if i > 0 && l.age-l.gap > 88*sec && r.looks[i-1].age-r.looks[i-1].gap > 88*sec {
			require.GreaterOrEqual(t, l.gap, r.looks[i-1].gap, "the gaps widen")
		}
	}
}

// B39
func TestAGoodAnswerResetsTheErrorBackoff(t *testing.T) {
	s := Schedule{Buckets: []Bucket{{First: Span{2 * sec, 2 * sec}, Later: Span{60 * sec, 60 * sec}}}}
	answers := append([]any{Report{State: StateRunning, Progress: 0.4}}, repeat(6, errPlain)...)
	answers = append(answers, Report{State: StateRunning, Progress: 0.45}, errPlain, StateSucceeded)
	r := game{schedule: s, expected: mnt, provider: script(answers...)}.play(t) // (a)
	require.Equal(t, 60*sec, grow(2*sec, 5, 60*sec))
	require.InDelta(t, 2, r.gaps()[9].Seconds(), 0.4)

	s.Jitter = NoJitter
	r = game{schedule: s, expected: mnt, takes: 9 * sec, provider: script(append(repeat(5, errPlain), StateSucceeded)...)}.play(t) // (b)
	require.Equal(t, secs(2, 2, 4, 8, 16, 32), r.gaps())
}

// B40
func TestPendingAnswersAreNoErrors(t *testing.T) {
	s := Schedule{Jitter: NoJitter, Buckets: []Bucket{{First: Span{2 * sec, 2 * sec}, Later: Span{60 * sec, 60 * sec}}}}
	r := game{schedule: s, provider: script(append(repeat(50, StateRunning), errPlain, StateSucceeded)...), expected: 10 * mnt}.play(t)
	require.EqualValues(t, 1, r.looks[50].track.Errors)
	require.Equal(t, 2*sec, r.looks[51].gap)
	require.Equal(t, ReasonSucceeded, r.end.Stop)
}

// B41
func TestBrokenAnswersAreTransient(t *testing.T) {
	r := game{schedule: Schedule{Jitter: NoJitter}, expected: mnt, provider: script(&CheckError{Status: 502}, errPlain, errPlain, errPlain, StateSucceeded)}.play(t)
	require.Equal(t, ReasonSucceeded, r.end.Stop)
	gaps := r.gaps()[1:]
	require.IsIncreasing(t, gaps[:2])
	require.IsNonDecreasing(t, gaps)
}

// B42
func TestARefusalEndsTheWatchAtOnce(t *testing.T) {
	for kind, want := range map[ErrorKind]Reason{ErrorPolicy: ReasonInvalid, ErrorInvalid: ReasonInvalid, ErrorQuota: ReasonQuota} {
		r := game{provider: script(&CheckError{Kind: kind, Status: 403, Err: errPlain})}.play(t)
		require.Len(t, r.looks, 1)
		err := r.err(t)
		require.ErrorIs(t, err, want)
		require.Equal(t, kind, err.Outcome.ErrorKind)
		require.Contains(t, err.Error(), "HTTP 403")
		require.Contains(t, err.Error(), errPlain.Error())
	}
}

// B45
func TestRateLimitsAndErrorsHaveBudgetsOfTheirOwn(t *testing.T) {
	r := game{expected: mnt, provider: script(append(repeat(15, limited(5*sec)), StateSucceeded)...)}.play(t) // (a)
	require.Equal(t, ReasonSucceeded, r.end.Stop)

	answers := append(repeat(9, errPlain), StateRunning)
	answers = append(append(answers, repeat(9, errPlain)...), StateSucceeded)
	r = game{expected: mnt, provider: script(answers...)}.play(t) // (b)
	require.Equal(t, ReasonSucceeded, r.end.Stop)

	r = game{expected: mnt, provider: script(errPlain)}.play(t) // (c)
	require.Len(t, r.looks, 10)
	err := r.err(t)
	require.ErrorIs(t, err, ReasonUnreachable)
	require.NotErrorIs(t, err, ReasonFailed)
	require.Equal(t, errPlain.Error(), err.Outcome.Message)
	require.EqualValues(t, 9, r.looks[8].track.Errors, "the row can be seen before")
}

// A hint of any kind of answer holds the next look back: B06(b).
func TestEveryKindOfAnswerCanHoldTheNextLookBack(t *testing.T) {
	hint := Hint{RetryAfter: 15 * sec}
	for name, a := range map[string]any{
		"pending": Report{State: StateRunning, Hint: hint}, "queued": Report{State: StateQueued, Hint: hint}, "no such job": &CheckError{Kind: ErrorNoSuchJob, Hint: hint},
		"429": &CheckError{Kind: ErrorRateLimited, Hint: hint}, "503": &CheckError{Kind: ErrorTransient, Hint: hint},
		"no output": Report{State: StateFailed, Failure: &Failure{Kind: FailureNoOutput}, Hint: hint},
	} {
		for _, rnd := range draws {
			d := next(Schedule{}, 12*sec, 10*sec, a, func(in *Input) { in.Rand = rnd })
			require.GreaterOrEqual(t, d.At, after(25*sec), name)
		}
	}
}
