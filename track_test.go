package jobpoll

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/require"
)

// observe takes answers in, ten seconds apart.
func observe(answers ...any) (Track, []Change) {
	var t Track
	var cs []Change
	p := script(answers...)
	for i := range answers {
		r, err := p(i, 0)
		var c Change
		t, c = t.Observe(r, err, after(time.Duration(i+1)*10*sec))
		cs = append(cs, c)
	}
	return t, cs
}

func TestOnlyRealProgressStartsTheBackoffAnew(t *testing.T) {
	running := func(p float64) Report { return Report{State: StateRunning, Progress: p} }
	queued := func(q int) Report { return Report{State: StateQueued, QueuePosition: q} }
	tests := map[string]struct {
		answers   []any
		unchanged int
		change    Change // of the last answer
	}{
		"the first answer is where a job starts from": {[]any{StateRunning}, 1, ChangeState},
		"the same answer":                     {[]any{StateRunning, StateRunning, StateRunning}, 3, 0},
		"the first progress":                  {[]any{StateRunning, running(0.1)}, 0, ChangeProgress | ChangeAdvance},
		"a higher progress":                   {[]any{running(0.1), running(0.1), running(0.2)}, 0, ChangeProgress | ChangeAdvance},
		"a repeated progress":                 {[]any{running(0.1), running(0.1)}, 1, 0},
		"a lower progress":                    {[]any{running(0.5), running(0.1)}, 1, 0},
		"a lower, then one below the best":    {[]any{running(0.5), running(0.1), running(0.4)}, 2, 0},
		"progress that is not a number":       {[]any{running(0.5), running(math.NaN())}, 1, 0},
		"progress beyond the end":             {[]any{running(7), running(8)}, 1, 0},
		"negative progress":                   {[]any{StateRunning, running(-1)}, 2, 0},
		"queued to running":                   {[]any{StateQueued, StateQueued, StateRunning}, 0, ChangeState | ChangeAdvance},
		"unknown to queued":                   {[]any{StateUnknown, StateQueued}, 0, ChangeState | ChangeAdvance},
		"running to queued":                   {[]any{StateRunning, StateQueued}, 2, ChangeState},
		"back to running after the queue":     {[]any{StateQueued, StateRunning, StateQueued, StateRunning}, 2, ChangeState},
		"an empty answer":                     {[]any{StateRunning, Report{}}, 2, ChangeState},
		"an empty answer and back":            {[]any{StateRunning, Report{}, StateRunning}, 3, ChangeState},
		"the first queue position":            {[]any{queued(5)}, 1, ChangeState | ChangeQueue},
		"a better queue position":             {[]any{queued(5), queued(4)}, 0, ChangeQueue | ChangeAdvance},
		"a worse queue position":              {[]any{queued(5), queued(6)}, 2, ChangeQueue},
		"a negative queue position":           {[]any{queued(5), queued(-3)}, 2, 0},
		"a position no longer told":           {[]any{queued(5), queued(0)}, 2, 0},
		"another word":                        {[]any{Report{State: StateRunning, RawStatus: "a"}, Report{State: StateRunning, RawStatus: "b"}}, 2, ChangeWord},
		"a fresh timestamp":                   {[]any{StateRunning, Report{State: StateRunning, StartedAt: after(15 * sec)}}, 2, 0},
		"an error between leaves the count":   {[]any{StateRunning, StateRunning, errPlain}, 2, 0},
		"progress after errors":               {[]any{StateRunning, errPlain, errPlain, running(0.3)}, 0, ChangeProgress | ChangeAdvance},
		"a state of another world is Unknown": {[]any{State(200)}, 1, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tr, cs := observe(tt.answers...)
			require.EqualValues(t, tt.unchanged, tr.Unchanged)
			require.Equal(t, tt.change.String(), cs[len(cs)-1].String())
			require.EqualValues(t, len(tt.answers), tr.Looks)
		})
	}
}

func TestQueuePositionThatAppearsLateIsAnAdvanceOnlyIfBetter(t *testing.T) {
	tr, cs := observe(StateQueued, Report{State: StateQueued, QueuePosition: 4})
	require.Equal(t, ChangeQueue, cs[1])
	require.EqualValues(t, 2, tr.Unchanged)
}

func TestChangeNamesItsParts(t *testing.T) {
	require.Equal(t, "none", Change(0).String())
	require.Equal(t, "state+word+progress+queue+advance+ended", (ChangeEnded<<1 - 1).String())
	require.True(t, ChangeQueue.Notable())
	require.False(t, (ChangeAdvance | ChangeEnded).Notable())
}

func TestAnEndNeverChanges(t *testing.T) {
	for end, want := range map[any]Reason{
		StateSucceeded:              ReasonSucceeded,
		StateFailed:                 ReasonFailed,
		StateCanceled:               ReasonCanceled,
		StateExpired:                ReasonExpired,
		ErrorGone:                   ReasonResultExpired,
		ErrorQuota:                  ReasonQuota,
		ErrorInvalid:                ReasonInvalid,
		ErrorPolicy:                 ReasonInvalid,
		backoff.Permanent(errPlain): ReasonInvalid,
	} {
		if k, ok := end.(ErrorKind); ok {
			end = kindErr(k)
		}
		tr, cs := observe(StateRunning, end)
		require.Equal(t, want, tr.End)
		require.NotZero(t, cs[1]&ChangeEnded)
		for _, late := range []any{StateSucceeded, StateRunning, errPlain, kindErr(ErrorGone)} {
			r, err := script(late)(0, 0)
			next, c := tr.Observe(r, err, after(time.Hour))
			require.Equal(t, tr, next)
			require.Zero(t, c)
		}
	}
}

func TestErrorsAreClassified(t *testing.T) {
	var nilErr *CheckError
	limit := &CheckError{Kind: ErrorRateLimited, Hint: Hint{RetryAfter: 20 * sec}}
	tests := map[string]struct {
		err  error
		kind ErrorKind
		end  Reason
		wait time.Duration
	}{
		"a plain error is transient":             {errPlain, ErrorTransient, ReasonNone, 0},
		"a kind that is not set is transient":    {&CheckError{}, ErrorTransient, ReasonNone, 0},
		"a kind of a newer version is transient": {&CheckError{Kind: 99}, ErrorTransient, ReasonNone, 0},
		"a nil *CheckError is transient":         {nilErr, ErrorTransient, ReasonNone, 0},
		"a wrapped CheckError":                   {fmt.Errorf("adapter: %w", limit), ErrorRateLimited, ReasonNone, 20 * sec},
		"a joined CheckError":                    {errors.Join(errPlain, limit), ErrorRateLimited, ReasonNone, 20 * sec},
		"a hint on a 503":                        {&CheckError{Kind: ErrorTransient, Hint: Hint{RetryAfter: 15 * sec}}, ErrorTransient, ReasonNone, 15 * sec},
		"a negative hint":                        {&CheckError{Kind: ErrorTransient, Hint: Hint{RetryAfter: -15 * sec}}, ErrorTransient, ReasonNone, 0},
		"a hint without bounds":                  {&CheckError{Kind: ErrorTransient, Hint: Hint{RetryAfter: math.MaxInt64}}, ErrorTransient, ReasonNone, MaxRetryAfter},
		"concurrency is a rate limit":            {kindErr(ErrorConcurrency), ErrorConcurrency, ReasonNone, 2 * sec},
		"permanent":                              {backoff.Permanent(errPlain), ErrorTransient, ReasonInvalid, 0},
		"permanent, wrapped":                     {fmt.Errorf("x: %w", backoff.Permanent(errPlain)), ErrorTransient, ReasonInvalid, 0},
		"permanent around a CheckError":          {backoff.Permanent(limit), ErrorRateLimited, ReasonRateLimited, 20 * sec},
		"permanent inside a CheckError":          {&CheckError{Kind: ErrorAuth, Err: backoff.Permanent(errPlain)}, ErrorAuth, ReasonAuth, 0},
		"permanent inside a wrapped CheckError":  {fmt.Errorf("x: %w", &CheckError{Kind: ErrorNoSuchJob, Err: backoff.Permanent(errPlain)}), ErrorNoSuchJob, ReasonLost, 0},
		"permanent does not hide a better word":  {backoff.Permanent(kindErr(ErrorGone)), ErrorGone, ReasonResultExpired, 0},
		"permanent concurrency":                  {backoff.Permanent(kindErr(ErrorConcurrency)), ErrorConcurrency, ReasonRateLimited, 2 * sec},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tr, _ := Track{}.Observe(Report{}, tt.err, t0)
			require.Equal(t, tt.kind, tr.ErrorKind)
			require.Equal(t, tt.end, tr.End)
			if tt.wait == 0 {
				require.Zero(t, tr.NotBefore)
			} else {
				require.Equal(t, mark(tt.wait), tr.NotBefore)
			}
			require.NotEmpty(t, tr.Message)
		})
	}
}

func TestTheLongerOfTwoHintsOfOneAnswerBinds(t *testing.T) {
	tr, _ := Track{}.Observe(Report{Hint: Hint{RetryAfter: 9 * sec}}, &CheckError{Kind: ErrorTransient, Hint: Hint{RetryAfter: 4 * sec}}, t0)
	require.Equal(t, mark(9*sec), tr.NotBefore)
}

// B05, B07(c), B08: own backoff without a hint, the hint where it is longer.
func TestARateLimitBacksOffAndItsHintIsAFloor(t *testing.T) {
	var tr Track
	for _, want := range secs(2, 4, 8, 16, 32, 60, 60, 60) {
		tr, _ = tr.Observe(Report{}, limited(0), t0)
		require.Equal(t, mark(want), tr.NotBefore)
	}
	require.EqualValues(t, 8, tr.Limited)
	require.Zero(t, tr.Errors, "a rate limit is no error of the job")
	tr, _ = tr.Observe(Report{}, limited(time.Hour), t0)
	require.Equal(t, mark(time.Hour), tr.NotBefore, "a long wait is obeyed")
	tr, _ = tr.Observe(Report{}, limited(493*time.Millisecond), t0)
	require.Equal(t, mark(mnt), tr.NotBefore, "a short one does not cut the backoff") // B03(a)
	tr, _ = tr.Observe(Report{State: StateRunning}, nil, t0)
	require.Zero(t, tr.NotBefore, "a hint binds the next look only")
	require.Zero(t, tr.Limited)
	tr, _ = tr.Observe(Report{}, limited(-mnt), t0)
	require.Equal(t, mark(2*sec), tr.NotBefore)
}

func TestAGoodAnswerEndsEveryRowOfFailures(t *testing.T) {
	tr, _ := observe(errPlain, kindErr(ErrorAuth), limited(0), kindErr(ErrorNoSuchJob))
	require.EqualValues(t, []int32{1, 1, 1}, []int32{tr.Errors, tr.Limited, tr.Missing})
	require.False(t, tr.AuthAt.IsZero())
	tr, _ = tr.Observe(Report{}, nil, after(mnt))
	require.EqualValues(t, []int32{0, 0, 0}, []int32{tr.Errors, tr.Limited, tr.Missing})
	require.True(t, tr.AuthAt.IsZero() && tr.MissingAt.IsZero() && tr.NotBefore.IsZero())
	require.Equal(t, ErrorNone, tr.ErrorKind)
	require.Empty(t, tr.Message)
}

func TestATransientErrorBreaksTheRowOfMissesButARateLimitDoesNot(t *testing.T) {
	missing := kindErr(ErrorNoSuchJob)
	tr, _ := observe(missing, missing, errPlain)
	require.Zero(t, tr.Missing)
	require.Zero(t, tr.MissingAt)
	tr, _ = observe(missing, missing, errPlain, missing)
	require.EqualValues(t, 1, tr.Missing)
	require.Equal(t, mark(40*sec), tr.MissingAt)
	require.EqualValues(t, 1, tr.Errors, "only a good answer clears the errors")
	tr, _ = observe(missing, limited(0), missing)
	require.EqualValues(t, 2, tr.Missing)
	require.Equal(t, mark(10*sec), tr.MissingAt)
}

func TestARowOfUnknownWords(t *testing.T) {
	word := Report{RawStatus: "NOT_START"}
	for name, tt := range map[string]struct {
		answers []any
		n       int
	}{
		"counts":                    {[]any{word, word, word}, 3},
		"ends with a known word":    {[]any{word, word, StateRunning}, 0},
		"starts again":              {[]any{word, StateQueued, word}, 1},
		"is not broken by errors":   {[]any{word, errPlain, limited(0), word}, 2},
		"no word at all is no word": {[]any{word, Report{}, word}, 2},
		"nothing but empty answers": {[]any{Report{}, Report{}}, 0},
		"a known word in any case":  {[]any{word, Report{State: StateFailed, Failure: &Failure{Kind: FailureNoOutput}}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tr, _ := observe(tt.answers...)
			require.EqualValues(t, tt.n, tr.Unknown)
			require.Equal(t, tt.n == 0, tr.UnknownAt.IsZero())
		})
	}
}

func TestAnEndWithoutOutputIsConfirmedOnce(t *testing.T) {
	none := Report{State: StateFailed, RawStatus: "COMPLETED", Failure: &Failure{Kind: FailureNoOutput}}
	tr, cs := observe(StateRunning, none)
	require.Equal(t, ReasonNone, tr.End)
	require.Equal(t, StateRunning, tr.State)
	require.Zero(t, cs[1])

	tr, _ = observe(StateRunning, none, none)
	require.Equal(t, ReasonFailed, tr.End)
	require.Equal(t, FailureNoOutput, tr.Failure)

	tr, _ = observe(none, errPlain, none)
	require.Equal(t, ReasonFailed, tr.End, "an error between is no answer")

	tr, _ = observe(StateRunning, none, StateSucceeded)
	require.Equal(t, ReasonSucceeded, tr.End, "the output came late")

	tr, _ = observe(none, StateRunning, none)
	require.Equal(t, ReasonNone, tr.End, "it went on: the confirmation starts anew")

	tr, _ = observe(Report{State: StateFailed, Failure: &Failure{Kind: FailureFiltered}})
	require.Equal(t, ReasonFailed, tr.End, "any other failure needs none") // B35(b)
}

func TestEstimateFromTheProvider(t *testing.T) {
	left := func(d time.Duration) Report { return Report{State: StateRunning, Remaining: d} }
	tests := map[string]struct {
		answers []any
		finish  time.Duration // as an age, 0: none
	}{
		"told":                           {[]any{left(60 * sec)}, 70 * sec},
		"shrinks":                        {[]any{left(60 * sec), left(45 * sec)}, 65 * sec},
		"does not shrink: dropped":       {[]any{left(60 * sec), left(60 * sec)}, 0},
		"grows: dropped":                 {[]any{left(60 * sec), left(90 * sec)}, 0},
		"grew, still above the least":    {[]any{left(60 * sec), left(90 * sec), left(80 * sec)}, 0},
		"comes back below the least":     {[]any{left(60 * sec), left(90 * sec), left(50 * sec)}, 80 * sec},
		"no longer told":                 {[]any{left(60 * sec), left(0)}, 0},
		"negative":                       {[]any{left(-60 * sec)}, 0},
		"absurd":                         {[]any{left(math.MaxInt64)}, 10*sec + MaxRetryAfter},
		"a new run after the queue":      {[]any{left(30 * sec), StateQueued, left(90 * sec)}, 120 * sec},
		"stays while errors come":        {[]any{left(60 * sec), errPlain}, 70 * sec},
		"an end without output drops it": {[]any{left(60 * sec), Report{State: StateFailed, Failure: &Failure{Kind: FailureNoOutput}}}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tr, _ := observe(tt.answers...)
			if tt.finish == 0 {
				require.Zero(t, tr.FinishAt)
				require.False(t, tr.FinishTold)
				return
			}
			require.Equal(t, mark(tt.finish), tr.FinishAt)
			require.True(t, tr.FinishTold)
		})
	}
}

func TestEstimateFromProgress(t *testing.T) {
	at := func(p float64) Report { return Report{State: StateRunning, Progress: p} }
	tests := map[string]struct {
		answers []any
		finish  time.Duration
	}{
		"one figure says nothing":                    {[]any{at(0.2)}, 0},
		"two figures give a pace":                    {[]any{at(0.2), at(0.4)}, 50 * sec},
		"measured from the first":                    {[]any{at(0.2), at(0.3), at(0.6)}, 50 * sec},
		"a figure that stands drops it":              {[]any{at(0.2), at(0.4), at(0.4)}, 0},
		"and it comes back":                          {[]any{at(0.2), at(0.4), at(0.4), at(0.5)}, 90 * sec},
		"done is no estimate":                        {[]any{at(0.2), at(1)}, 0},
		"the provider's own goes first":              {[]any{at(0.2), Report{State: StateRunning, Progress: 0.4, Remaining: 5 * sec}}, 25 * sec},
		"a known start needs no second":              {[]any{StateQueued, Report{State: StateRunning, Progress: 0.5, StartedAt: after(14 * sec)}}, 26 * sec},
		"a start in the future is not believed":      {[]any{Report{State: StateRunning, Progress: 0.5, StartedAt: after(time.Hour)}}, 0},
		"a start of long ago is not believed":        {[]any{Report{State: StateRunning, Progress: 0.5, StartedAt: after(-MaxRetryAfter)}}, 0},
		"a start before the last look is not either": {[]any{StateQueued, StateQueued, Report{State: StateRunning, Progress: 0.5, StartedAt: after(12 * sec)}}, 0},
		"a pace too slow to tell":                    {[]any{at(0.2), at(0.2 + 1e-12)}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tr, _ := observe(tt.answers...)
			if tt.finish == 0 {
				require.Zero(t, tr.FinishAt)
				return
			}
			require.WithinDuration(t, after(tt.finish), tr.FinishAt.Time(), time.Millisecond)
			require.Equal(t, strings.HasPrefix(name, "the provider"), tr.FinishTold)
		})
	}
}

func TestPhasesAreTimed(t *testing.T) {
	tr, _ := observe(StateQueued, StateQueued, StateRunning, StateRunning)
	require.Equal(t, mark(10*sec), tr.QueuedAt)
	require.Equal(t, mark(30*sec), tr.RunningAt)

	tr, _ = observe(StateQueued, StateRunning, StateQueued, StateQueued)
	require.Equal(t, mark(30*sec), tr.QueuedAt, "back in the queue")
	require.Equal(t, mark(20*sec), tr.RunningAt)

	tr, _ = observe(StateQueued, StateRunning, StateQueued, StateRunning)
	require.Equal(t, mark(40*sec), tr.RunningAt, "a new run")
	require.Equal(t, StateRunning, tr.Furthest)

	tr, _ = observe(StateRunning, Report{}, StateRunning)
	require.Equal(t, mark(10*sec), tr.RunningAt, "an empty answer does not start a new run")

	tr, _ = observe(StateQueued, Report{State: StateRunning, StartedAt: after(13 * sec)})
	require.Equal(t, mark(13*sec), tr.RunningAt, "the provider's own start")

	tr, _ = observe(StateQueued, Report{State: StateRunning, StartedAt: after(21 * sec)})
	require.Equal(t, mark(20*sec), tr.RunningAt, "not one of the future")
}

func TestWordsAreBoundedAndValid(t *testing.T) {
	long := strings.Repeat("ä", 100)
	tr, cs := observe(Report{RawStatus: long}, Report{RawStatus: long}, Report{RawStatus: "a\xffb"})
	require.Equal(t, ChangeWord, cs[0])
	require.Zero(t, cs[1], "the same word, bounded")
	require.Equal(t, "ab", tr.RawStatus)
	tr, _ = observe(Report{RawStatus: "x" + long})
	require.Equal(t, "x"+strings.Repeat("ä", 63), tr.RawStatus, "never cut inside a letter")
}

func TestCountsNeverWrap(t *testing.T) {
	tr := Track{Looks: math.MaxInt32, Errors: math.MaxInt32, Unchanged: math.MaxInt32, Missing: math.MaxInt32}
	tr, _ = tr.Observe(Report{}, errPlain, t0)
	require.EqualValues(t, math.MaxInt32, tr.Looks)
	require.EqualValues(t, math.MaxInt32, tr.Errors)
}

func TestInstantsOfLooks(t *testing.T) {
	tr, _ := observe(errPlain, StateRunning, errPlain)
	require.Equal(t, []Stamp{mark(10 * sec), mark(20 * sec), mark(30 * sec), mark(20 * sec)},
		[]Stamp{tr.FirstAt, tr.LastAt.Add(-tr.Gap), tr.LastAt, tr.GoodAt})
}

func TestTrackSurvivesJSON(t *testing.T) {
	require.Equal(t, "{}", mustJSON(t, Track{}))
	var full Track
	for i, a := range []any{
		Report{State: StateQueued, QueuePosition: 4, RawStatus: "wait"}, kindErr(ErrorNoSuchJob), errPlain, kindErr(ErrorAuth), limited(mnt),
		Report{RawStatus: "huh"}, Report{State: StateRunning, Progress: 0.25, Remaining: mnt},
		Report{State: StateRunning, Progress: 0.5}, limited(0),
	} {
		r, err := script(a)(0, 0)
		full, _ = full.Observe(r, err, after(time.Duration(i)*7*sec+time.Duration(i)))
		var back Track
		require.NoError(t, json.Unmarshal([]byte(mustJSON(t, full)), &back))
		require.Equal(t, full, back)
	}
}

func TestTrackOfANewerVersionIsRead(t *testing.T) {
	var tr Track
	require.NoError(t, json.Unmarshal([]byte(`{"v":9,"looks":3,"state":"hibernating","end":"eaten","error_kind":"cosmic","failure":"odd","new":[1]}`), &tr))
	require.Equal(t, StateUnknown, tr.State)
	require.Equal(t, ReasonUnknown, tr.End)
	require.Equal(t, ErrorUnknown, tr.ErrorKind)
	require.Equal(t, FailureUnknown, tr.Failure)
	require.EqualValues(t, 3, tr.Looks)
}

func mustJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func TestEachStateThatEndsAJobHasAReason(t *testing.T) {
	for s := StateUnknown; s <= StateExpired; s++ {
		track, change := Track{}.Observe(Report{State: s}, nil, t0)
		if !s.Terminal() {
			require.Equal(t, ReasonNone, track.End, s)
			continue
		}
		require.Equal(t, s.String(), track.End.String())
		require.NotZero(t, change&ChangeEnded)
	}
}
