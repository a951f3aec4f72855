package jobpoll

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// at gives the decision at an age on a memory.
func at(age, expected time.Duration, tr Track, stop StopRules) Decision {
	return fixed(10 * sec).Next(Input{Job: Job{Route: "fal", ID: "job-1", Expected: expected, SubmittedAt: t0}, Track: tr, Stop: stop, Now: after(age), Rand: 0.5})
}

// Each rule holds at its limit and not a nanosecond before.
func TestEveryRuleStopsExactlyAtItsLimit(t *testing.T) {
	// seen is a memory whose last good look was at the age.
	type memory func(age time.Duration) Track
	good := func(s State) memory {
		return func(age time.Duration) Track {
			return Track{Looks: 5, FirstAt: mark(sec), LastAt: mark(age), GoodAt: mark(age), AdvancedAt: mark(sec), State: s, Furthest: s}
		}
	}
	with := func(m memory, f func(*Track)) memory {
		return func(age time.Duration) Track { tr := m(age); f(&tr); return tr }
	}
	running := with(good(StateRunning), func(t *Track) { t.RunningAt = mark(40 * sec) })
	told := with(running, func(t *Track) { t.ProgressTold, t.AdvancedAt = 2, mark(50*sec) })
	tests := map[string]struct {
		expected time.Duration
		stop     StopRules
		m        memory
		limit    time.Duration // as an age
		want     Reason
	}{
		"age, nothing expected: 2 h":             {0, StopRules{}, good(StateRunning), 2 * time.Hour, ReasonDeadline},
		"age, at least 15 min":                   {30 * sec, StopRules{}, good(StateRunning), 15 * mnt, ReasonDeadline},
		"age, ten times the expectation":         {4 * mnt, StopRules{}, good(StateRunning), 40 * mnt, ReasonDeadline},
		"age, own":                               {4 * mnt, StopRules{MaxAge: 7 * mnt}, good(StateRunning), 7 * mnt, ReasonDeadline},
		"age, negative counts as the default":    {4 * mnt, StopRules{MaxAge: -1}, good(StateRunning), 40 * mnt, ReasonDeadline},
		"age while queued":                       {0, StopRules{}, good(StateQueued), 2 * time.Hour, ReasonDeadline},
		"queue":                                  {0, StopRules{MaxQueued: 9 * mnt}, good(StateQueued), 9 * mnt, ReasonQueueLimit},
		"queue, back in it":                      {0, StopRules{MaxQueued: 9 * mnt}, with(good(StateQueued), func(t *Track) { t.RunningAt, t.QueuedAt = mark(mnt), mark(2*mnt) }), 11 * mnt, ReasonQueueLimit},
		"processing":                             {0, StopRules{MaxProcessing: 9 * mnt}, running, 9*mnt + 40*sec, ReasonProcessingLimit},
		"processing goes on over an empty word":  {0, StopRules{MaxProcessing: 9 * mnt}, with(running, func(t *Track) { t.State = StateUnknown }), 9*mnt + 40*sec, ReasonProcessingLimit},
		"no progress, nothing expected: 30 min":  {0, StopRules{}, told, 30*mnt + 50*sec, ReasonNoProgress},
		"no progress, at least 15 min":           {2 * mnt, StopRules{MaxAge: NoLimit}, told, 15*mnt + 50*sec, ReasonNoProgress},
		"no progress, three times":               {10 * mnt, StopRules{}, told, 30*mnt + 50*sec, ReasonNoProgress},
		"no progress, own":                       {0, StopRules{NoProgress: 5 * mnt}, told, 5*mnt + 50*sec, ReasonNoProgress},
		"no progress counts from a new run":      {0, StopRules{NoProgress: 5 * mnt}, with(told, func(t *Track) { t.RunningAt = mark(3 * mnt) }), 8 * mnt, ReasonNoProgress},
		"the first of two limits":                {0, StopRules{MaxProcessing: 9 * mnt, MaxAge: 9 * mnt}, running, 9 * mnt, ReasonDeadline},
		"at the same instant the age goes first": {0, StopRules{MaxQueued: 9 * mnt, MaxAge: 9 * mnt}, good(StateQueued), 9 * mnt, ReasonDeadline},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := at(tt.limit, tt.expected, tt.m(tt.limit), tt.stop)
			require.Equal(t, Decision{At: after(tt.limit), Cause: CauseEnded, Stop: tt.want}, d)

			d = at(tt.limit-1, tt.expected, tt.m(tt.limit-1), tt.stop)
			require.Equal(t, ReasonNone, d.Stop)
			require.Equal(t, CauseFloor, d.Cause, "the minimum gap binds before the limit")

			d = at(tt.limit-5*sec, tt.expected, tt.m(tt.limit-5*sec), tt.stop)
			require.Equal(t, Decision{At: after(tt.limit), Cause: CauseDeadline}, d, "the last look is at the limit")

			d = at(tt.limit, tt.expected, tt.m(tt.limit-5*sec), tt.stop)
			require.Equal(t, Decision{At: after(tt.limit), Cause: CauseDeadline}, d, "one look before a stop for time")

			d = at(tt.limit+time.Hour, tt.expected, tt.m(tt.limit-5*sec), tt.stop)
			require.Equal(t, Decision{At: after(tt.limit + time.Hour), Cause: CauseDeadline}, d, "also long after it: a suspend")
		})
	}
}

func TestTheCallersDeadline(t *testing.T) {
	in := Input{Job: Job{SubmittedAt: t0, Deadline: after(mnt)}, Now: after(mnt), Rand: 0.5}
	require.Equal(t, Decision{At: after(mnt), Cause: CauseFirst}, Schedule{}.Next(in), "never looked at")
	in.Track, _ = in.Track.Observe(Report{State: StateRunning}, nil, after(mnt-1))
	require.Equal(t, ReasonNone, Schedule{}.Next(in).Stop)
	in.Track, _ = in.Track.Observe(Report{State: StateRunning}, nil, after(mnt))
	require.Equal(t, ReasonDeadline, Schedule{}.Next(in).Stop)
	in.Stop.MaxAge, in.Stop.NoProgress = NoLimit, NoLimit
	require.Equal(t, ReasonDeadline, Schedule{}.Next(in).Stop, "NoLimit switches the rule off, not the deadline")
	in.Job.Deadline = time.Time{}
	require.Equal(t, ReasonNone, Schedule{}.Next(in).Stop)
}

func TestAResultInHandBeatsEveryLimit(t *testing.T) {
	for _, s := range []State{StateSucceeded, StateFailed, StateCanceled, StateExpired} {
		d := next(Schedule{}, sec, 1000*time.Hour, s, func(in *Input) { in.Job.Deadline = after(sec) })
		require.Equal(t, ReasonSucceeded+Reason(s-StateSucceeded), d.Stop)
		require.Equal(t, CauseEnded, d.Cause)
	}
}

func TestNoLimitAndNoCountSwitchEveryRuleOff(t *testing.T) {
	off := StopRules{MaxAge: NoLimit, MaxQueued: NoLimit, MaxProcessing: NoLimit, NoProgress: NoLimit, MaxErrors: NoCount,
		MissingGrace: NoLimit, MissingLooks: NoCount, UnknownFor: NoLimit, UnknownLooks: NoCount, AuthGrace: NoLimit}
	now := 100 * 365 * 24 * time.Hour
	for name, tr := range map[string]Track{
		"fresh":   {},
		"running": {State: StateRunning, RunningAt: StampOf(t0), ProgressTold: 9, AdvancedAt: StampOf(t0)},
		"queued":  {State: StateQueued, QueuedAt: StampOf(t0)},
		"errors":  {ErrorKind: ErrorTransient, Errors: math.MaxInt32},
		"missing": {ErrorKind: ErrorNoSuchJob, Missing: math.MaxInt32, MissingAt: StampOf(t0)},
		"unknown": {Unknown: math.MaxInt32, UnknownAt: StampOf(t0)},
		"auth":    {ErrorKind: ErrorAuth, AuthAt: StampOf(t0)},
	} {
		if name != "fresh" {
			tr.Looks, tr.FirstAt, tr.LastAt = 9, StampOf(t0), mark(now)
		}
		d := at(now, mnt, tr, off)
		require.Equal(t, ReasonNone, d.Stop, name)
		require.NotEqual(t, CauseDeadline, d.Cause, name)
	}
	// Either half of a pair switches it off.
	long := Track{Looks: 99, LastAt: mark(time.Hour), Unknown: 99, UnknownAt: StampOf(t0)}
	require.Equal(t, ReasonUnknownStatus, at(time.Hour, 0, long, StopRules{}).Stop)
	require.Equal(t, ReasonNone, at(time.Hour, 0, long, StopRules{UnknownFor: NoLimit}).Stop)
	require.Equal(t, ReasonNone, at(time.Hour, 0, long, StopRules{UnknownLooks: NoCount}).Stop)
}

func TestRowsOfBadAnswersNeedCountAndTime(t *testing.T) {
	for name, tt := range map[string]struct {
		make   func(n int, d time.Duration) Track
		n      int
		d      time.Duration
		reason Reason
	}{
		"no such job: 3 in a row and 30 s": {func(n int, d time.Duration) Track {
			return Track{Looks: int32(n), LastAt: mark(mnt), ErrorKind: ErrorNoSuchJob, Missing: int32(n), MissingAt: mark(mnt - d)}
		}, 3, 30 * sec, ReasonLost},
		"unknown word: 10 in a row and 10 min": {func(n int, d time.Duration) Track {
			return Track{Looks: int32(n), LastAt: mark(mnt), Unknown: int32(n), UnknownAt: mark(mnt - d)}
		}, 10, 10 * mnt, ReasonUnknownStatus},
		"errors: 10 in a row": {func(n int, _ time.Duration) Track {
			return Track{Looks: int32(n), LastAt: mark(mnt), ErrorKind: ErrorTransient, Errors: int32(n)}
		}, 10, 0, ReasonUnreachable},
		"auth: 10 min": {func(_ int, d time.Duration) Track {
			return Track{Looks: 3, LastAt: mark(mnt), ErrorKind: ErrorAuth, AuthAt: mark(mnt - d)}
		}, 0, 10 * mnt, ReasonAuth},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, Decision{At: after(mnt), Cause: CauseEnded, Stop: tt.reason}, at(mnt, 0, tt.make(tt.n, tt.d), StopRules{}))
			require.Equal(t, ReasonNone, at(mnt, 0, tt.make(tt.n-1, tt.d-1), StopRules{}).Stop)
			if tt.n > 0 {
				require.Equal(t, ReasonNone, at(mnt, 0, tt.make(tt.n-1, time.Hour), StopRules{}).Stop, "not by time alone")
			}
			if tt.d > 0 {
				require.Equal(t, ReasonNone, at(mnt, 0, tt.make(1000, tt.d-1), StopRules{}).Stop, "not by count alone")
				require.Equal(t, ReasonNone, at(24*time.Hour, 0, tt.make(1000, tt.d-1), StopRules{MaxAge: NoLimit}).Stop, "time without a look does not count")
			}
		})
	}
	own := StopRules{MaxErrors: 2}
	require.Equal(t, ReasonUnreachable, at(mnt, 0, Track{Looks: 2, LastAt: mark(mnt), Errors: 2}, own).Stop)
	require.Equal(t, ReasonNone, at(mnt, 0, Track{Looks: 2, LastAt: mark(mnt), Errors: 1}, own).Stop)
}

func TestNoProgressHoldsOnlyForJobsThatTellIt(t *testing.T) {
	tr := Track{Looks: 9, LastAt: mark(time.Hour), GoodAt: mark(time.Hour), State: StateRunning, AdvancedAt: StampOf(t0), ProgressTold: 1}
	require.Equal(t, ReasonNone, at(time.Hour, 0, tr, StopRules{}).Stop, "told once")
	tr.ProgressTold = 2
	require.Equal(t, ReasonNoProgress, at(time.Hour, 0, tr, StopRules{}).Stop)
	tr.State = StateQueued
	require.Equal(t, ReasonNone, at(time.Hour, 0, tr, StopRules{}).Stop, "not in the queue")
}

func TestAFailedLookAtTheLimitDecidesOnlyAsTheThirdInARow(t *testing.T) {
	r := game{schedule: fixed(60 * sec), stop: StopRules{MaxAge: 2 * mnt}, provider: script(StateRunning, errPlain)}.play(t)
	require.Equal(t, secs(60, 120, 121, 122), r.ages())
	require.Equal(t, ReasonDeadline, r.end.Stop)

	r = game{schedule: fixed(60 * sec), stop: StopRules{MaxAge: 2 * mnt}, provider: script(StateRunning, errPlain, errPlain, StateSucceeded)}.play(t)
	require.Equal(t, ReasonSucceeded, r.end.Stop, "the network came back after the clock")
}

func TestAWaitThatOutlastsALimitParksTheJob(t *testing.T) {
	stop := StopRules{MaxAge: 10 * mnt}
	for name, tt := range map[string]struct {
		a     any
		parks bool
	}{
		"longer than the limit":          {limited(10 * mnt), true},
		"a nanosecond longer":            {limited(9*mnt + 1), true},
		"exactly to the limit: one look": {limited(9 * mnt), false},
		"a nanosecond shorter":           {limited(9*mnt - 1), false},
		"on a pending answer":            {Report{State: StateRunning, Hint: Hint{RetryAfter: time.Hour}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := next(Schedule{}, mnt, mnt, tt.a, func(in *Input) { in.Stop, in.Rand = stop, 0.99 })
			require.Equal(t, ReasonNone, d.Stop)
			require.Equal(t, tt.parks, d.Cause == CauseParked)
			require.False(t, d.At.After(after(10*mnt)), "never a wait beyond the limit")
			if !tt.parks {
				return
			}
			require.Equal(t, after(10*mnt), d.At, "stopped at the limit, not at once")
			d = next(Schedule{}, mnt, mnt, tt.a, func(in *Input) { in.Stop, in.Now = stop, after(10*mnt) })
			require.Equal(t, Decision{At: after(10 * mnt), Cause: CauseEnded, Stop: ReasonRateLimited}, d)
		})
	}
	cool := next(Schedule{}, mnt, mnt, StateRunning, func(in *Input) { in.Stop, in.NotBefore = stop, after(time.Hour) })
	require.Equal(t, CauseParked, cool.Cause, "a cool-down of the budget too")
}

func TestAPendingAnswerAtTheLimitIsADeadlineWhateverItAsks(t *testing.T) {
	wait := Report{State: StateRunning, Hint: Hint{RetryAfter: 30 * sec}}
	d := next(Schedule{}, mnt, 10*mnt, wait, func(in *Input) { in.Stop.MaxAge = 10 * mnt })
	require.Equal(t, ReasonDeadline, d.Stop, "the look was made: no wait kept us from it")
	d = next(Schedule{}, mnt, 10*mnt, limited(30*sec), func(in *Input) { in.Stop.MaxAge = 10 * mnt })
	require.Equal(t, ReasonRateLimited, d.Stop)
}

func TestDoneWithoutOutputAtTheLimitIsConfirmedFirst(t *testing.T) {
	none := Report{State: StateFailed, Failure: &Failure{Kind: FailureNoOutput}}
	r := game{schedule: fixed(60 * sec), stop: StopRules{MaxAge: 2 * mnt}, provider: script(StateRunning, none)}.play(t)
	require.Equal(t, ReasonFailed, r.end.Stop)
	require.Equal(t, secs(60, 120, 121), r.ages())

	r = game{schedule: fixed(60 * sec), stop: StopRules{MaxAge: 2 * mnt}, provider: script(StateRunning, none, errPlain)}.play(t)
	require.Equal(t, ReasonDeadline, r.end.Stop, "but not for ever")
}

func TestRulesMergeFieldByField(t *testing.T) {
	base := StopRules{MaxAge: 1, MaxQueued: 2, MaxProcessing: 3, NoProgress: 4, MaxErrors: 5, MissingGrace: 6, MissingLooks: 7, UnknownFor: 8, UnknownLooks: 9, AuthGrace: 10}
	require.Equal(t, base, StopRules{}.merge(base))
	require.Equal(t, base, base.merge(StopRules{}))
	own := StopRules{MaxAge: 11, MaxErrors: 12, CancelRemote: true}
	want := base
	want.MaxAge, want.MaxErrors, want.CancelRemote = 11, 12, true
	require.Equal(t, want, own.merge(base))
	require.True(t, StopRules{}.merge(StopRules{CancelRemote: true}).CancelRemote)
}

func TestDefaultsOfTheRules(t *testing.T) {
	require.Equal(t, StopRules{MaxAge: 2 * time.Hour, MaxQueued: NoLimit, MaxProcessing: NoLimit, NoProgress: 30 * mnt, MaxErrors: 10,
		MissingGrace: 30 * sec, MissingLooks: 3, UnknownFor: 10 * mnt, UnknownLooks: 10, AuthGrace: 10 * mnt}, StopRules{}.withDefaults(0))
	d := StopRules{}.withDefaults(4 * mnt)
	require.Equal(t, 40*mnt, d.MaxAge)
	require.Equal(t, 15*mnt, d.NoProgress)
	require.Equal(t, NoLimit, StopRules{}.withDefaults(math.MaxInt64).MaxAge, "no product wraps")
	require.Equal(t, d, d.withDefaults(time.Hour), "rules in force stay")
}
