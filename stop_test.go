package jobpoll

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStopErrorMatchesItsReasonAndItsCause(t *testing.T) {
	for _, r := range Reasons() {
		err := error(&StopError{Outcome: Outcome{Job: Job{Route: "fal", ID: "x-1"}, Reason: r}, Err: io.ErrUnexpectedEOF})
		err = fmt.Errorf("my service: %w", err)
		for _, other := range append(Reasons(), ReasonNone, ReasonUnknown) {
			require.Equal(t, other == r, errors.Is(err, other), "%v, %v", r, other)
		}
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		var se *StopError
		require.ErrorAs(t, err, &se)
		require.Equal(t, r, se.Outcome.Reason)
	}
	require.NotErrorIs(t, &StopError{Outcome: Outcome{Reason: ReasonLost}}, io.EOF)
}

func TestStopErrorSaysWhatHappenedAndWhatToDo(t *testing.T) {
	job := Job{Route: "fal", ID: "x-1"}
	for want, e := range map[string]*StopError{
		`jobpoll: fal/x-1: stopped: deadline (state running, 12 looks, provider's word "IN_PROGRESS"); the job may still finish: watch the same id to resume, do not submit it again`: {
			Outcome: Outcome{Job: job, Reason: ReasonDeadline, State: StateRunning, Polls: 12, Report: Report{RawStatus: "IN_PROGRESS"}}},
		`jobpoll: fal/x-1: stopped: rate limited (state queued, 1 look, last error rate limited, provider asked to wait until 2026-01-01T00:31:00Z): slow down; the job may still finish: watch the same id to resume, do not submit it again`: {
			Outcome: Outcome{Job: job, Reason: ReasonRateLimited, State: StateQueued, Polls: 1, ErrorKind: ErrorRateLimited, RetryAt: after(1860 * sec), Message: "slow down"}},
		`jobpoll: fal/x-1: stopped: failed (state failed, 3 looks): filtered moderation: M`: {
			Outcome: Outcome{Job: job, Reason: ReasonFailed, State: StateFailed, Polls: 3, Report: Report{Failure: &Failure{Kind: FailureFiltered, Code: "moderation", Message: "M"}}}},
		`jobpoll: fal/x-1: stopped: expired (state expired, 3 looks); no result will come: the work may be submitted again`: {
			Outcome: Outcome{Job: job, Reason: ReasonExpired, State: StateExpired, Polls: 3, Resubmit: AdviceSafe}},
		`jobpoll: fal/x-1: waiting ended before the job did (state queued, 0 looks): context canceled; wait for the same id again, do not submit it anew`: {
			Outcome: Outcome{Job: job, State: StateQueued}, Err: context.Canceled},
	} {
		require.EqualError(t, e, want)
	}
	for _, r := range Reasons() {
		msg := (&StopError{Outcome: Outcome{Job: job, Reason: r}}).Error()
		require.Contains(t, msg, "jobpoll: fal/x-1: ")
		require.Contains(t, msg, r.String())
		require.Equal(t, r.Resumable(), strings.Contains(msg, "watch the same id"))
		require.Equal(t, r == ReasonLost || r == ReasonAmbiguous, strings.Contains(msg, "look for it at the provider"))
	}
}

func TestReasonsThatCanBeResumed(t *testing.T) {
	ended := map[Reason]bool{ReasonSucceeded: true, ReasonFailed: true, ReasonCanceled: true, ReasonExpired: true, ReasonLost: true,
		ReasonResultExpired: true, ReasonAmbiguous: true, ReasonNotSent: true}
	for _, r := range Reasons() {
		require.Equal(t, !ended[r], r.Resumable(), r.String())
	}
	require.False(t, ReasonNone.Resumable())
	require.False(t, ReasonUnknown.Resumable())
}

func TestDecisionErr(t *testing.T) {
	job := Job{Route: "fal", ID: "x-1"}
	require.NoError(t, Decision{At: t0, Cause: CauseBackoff}.Err(job, Track{}))
	require.NoError(t, Decision{At: t0, Cause: CauseParked}.Err(job, Track{}))
	require.NoError(t, Decision{At: t0, Cause: CauseEnded, Stop: ReasonSucceeded}.Err(job, Track{}))

	r := game{schedule: fixed(10 * sec), stop: StopRules{MaxAge: 30 * sec}, provider: script(
		Report{State: StateQueued, QueuePosition: 4}, Report{State: StateRunning, RawStatus: "work", Progress: 0.25})}.play(t)
	o := r.err(t).Outcome
	require.Equal(t, Outcome{
		Job: r.job, State: StateRunning, Reason: ReasonDeadline,
		Report: Report{State: StateRunning, RawStatus: "work", Progress: 0.25},
		Polls:  3, FirstPollAt: after(10 * sec), LastPollAt: after(30 * sec), DetectedAt: after(30 * sec), Via: ViaLocal,
	}, o)

	r = game{provider: script(Report{State: StateFailed, Failure: &Failure{Kind: FailureFault}})}.play(t)
	o = r.err(t).Outcome
	require.Equal(t, ViaPoll, o.Via)
	require.Equal(t, AdviceSafe, o.Resubmit)
	require.Equal(t, FailureFault, o.Report.Failure.Kind)
}

func TestAdviceIsSafeOnlyWhereNoResultCanCome(t *testing.T) {
	for _, r := range append(Reasons(), ReasonNone, ReasonUnknown) {
		for f := FailureUnknown; f <= FailureNoOutput; f++ {
			safe := r == ReasonExpired || r == ReasonNotSent || r == ReasonFailed && f == FailureFault
			require.Equal(t, safe, advice(r, f) == AdviceSafe, "%v, %v", r, f)
		}
	}
	require.Equal(t, AdviceDoNotResubmit, Advice(0))
}

func TestOutcomeSurvivesJSON(t *testing.T) {
	o := Outcome{
		Job:   Job{Route: "fal", ID: "x-1", ClientKey: "c", Ref: "r", Profile: "p", Expected: mnt, SubmittedAt: t0, NotBefore: after(1), Deadline: after(mnt)},
		State: StateFailed, Reason: ReasonFailed,
		Report: Report{State: StateFailed, RawStatus: "FAILED", Progress: 0.5, QueuePosition: 2, Remaining: sec, Hint: Hint{RetryAfter: sec, Scope: ScopeAccount, Malformed: true},
			Ref: "r2", StartedAt: after(2), CompletedAt: after(3), ResultExpiresAt: after(4), Failure: &Failure{Kind: FailurePolicy, Code: "c", Message: "m"},
			Output: json.RawMessage(`{"url":"u"}`), OutputDropped: true},
		ErrorKind: ErrorGone, Message: "m", Polls: 3, FirstPollAt: after(5), LastPollAt: after(6), DetectedAt: after(7), RetryAt: after(8),
		DetectionDelay: 9, DelayExact: true, Via: ViaWebhook, Resubmit: AdviceSafe, RemoteCancel: "ok",
	}
	var back Outcome
	require.NoError(t, json.Unmarshal([]byte(mustJSON(t, o)), &back))
	require.Equal(t, o, back)
	require.NoError(t, json.Unmarshal([]byte(mustJSON(t, Outcome{})), &back))
	back = Outcome{}
	require.NoError(t, json.Unmarshal([]byte(mustJSON(t, Outcome{})), &back))
	require.Equal(t, Outcome{}, back)

	stop := StopRules{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, true}
	var sback StopRules
	require.NoError(t, json.Unmarshal([]byte(mustJSON(t, stop)), &sback))
	require.Equal(t, stop, sback)
}

func TestOutcomeErrIsNilOnlyForSuccess(t *testing.T) {
	for _, r := range append(Reasons(), ReasonNone, ReasonUnknown) {
		require.Equal(t, r == ReasonSucceeded, Outcome{Reason: r}.Err() == nil)
	}
}

func TestDecodeOutput(t *testing.T) {
	type video struct{ URL string }
	done := Outcome{Job: Job{Route: "fal", ID: "x-1"}, State: StateSucceeded, Reason: ReasonSucceeded}

	o := done
	o.Report.Output = json.RawMessage(`{"url":"https://v"}`)
	v, err := DecodeOutput[video](o)
	require.NoError(t, err)
	require.Equal(t, "https://v", v.URL)
	raw, err := DecodeOutput[map[string]any](o)
	require.NoError(t, err)
	require.Equal(t, "https://v", raw["url"])

	o.Report.Output = json.RawMessage(`{"url":7}`)
	_, err = DecodeOutput[video](o)
	var te *json.UnmarshalTypeError
	require.ErrorAs(t, err, &te)
	require.ErrorContains(t, err, "jobpoll: fal/x-1: decoding the output")

	_, err = DecodeOutput[video](done)
	require.EqualError(t, err, "jobpoll: fal/x-1: the report carries no output")
	o = done
	o.Report.OutputDropped = true
	_, err = DecodeOutput[video](o)
	require.ErrorContains(t, err, "larger than 4194304 bytes")

	o = done
	o.Reason, o.Report.Output = ReasonDeadline, json.RawMessage(`{"url":"u"}`)
	_, err = DecodeOutput[video](o)
	require.ErrorIs(t, err, ReasonDeadline)
}

func TestDecodeReport(t *testing.T) {
	v, err := DecodeReport[string](Report{State: StateSucceeded, Output: json.RawMessage(`"https://v"`)})
	require.NoError(t, err)
	require.Equal(t, "https://v", v)

	_, err = DecodeReport[string](Report{State: StateRunning, RawStatus: "processing", Progress: 0.4})
	require.EqualError(t, err, `jobpoll: a report (running "processing", 40 %): the report carries no output`)
	_, err = DecodeReport[string](Report{State: StateFailed, Failure: &Failure{Kind: FailureFiltered, Message: "a\nface"}})
	require.EqualError(t, err, "jobpoll: a report (failed: filtered: a face): the report carries no output")
	_, err = DecodeReport[string](Report{State: StateSucceeded, OutputDropped: true})
	require.ErrorContains(t, err, "larger than 4194304 bytes")
	_, err = DecodeReport[string](Report{State: StateSucceeded, Output: json.RawMessage(`7`)})
	var te *json.UnmarshalTypeError
	require.ErrorAs(t, err, &te)
	require.EqualError(t, err, "jobpoll: a report (succeeded, output of 1 byte): decoding the output: "+te.Error())
}

// plain can only check; able can cancel too; wrap hides what it wraps.
type plain struct{}

func (plain) Check(context.Context, Job) (Report, error) { return Report{}, nil }

type able struct{ plain }

func (able) Cancel(context.Context, Job) error { return io.EOF }

type wrap struct{ Checker }

func (w wrap) Unwrap() Checker { return w.Checker }

type endless struct{ plain }

func (e endless) Unwrap() Checker { return e }

func TestAbilitiesAreFoundThroughWrappers(t *testing.T) {
	for name, tt := range map[string]struct {
		c    Checker
		want bool
	}{
		"none": {plain{}, false}, "own": {able{}, true}, "wrapped": {wrap{able{}}, true}, "wrapped twice": {wrap{wrap{able{}}}, true},
		"wrapped, none": {wrap{plain{}}, false}, "wraps nothing": {wrap{nil}, false}, "nil": {nil, false}, "wraps itself": {endless{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, ok := ability[Canceler](tt.c)
			require.Equal(t, tt.want, ok)
			if ok {
				require.Equal(t, io.EOF, c.Cancel(context.Background(), Job{}))
			}
		})
	}
	r, err := CheckerFunc(func(_ context.Context, j Job) (Report, error) { return Report{Ref: j.ID}, nil }).Check(context.Background(), Job{ID: "x"})
	require.NoError(t, err)
	require.Equal(t, "x", r.Ref)
}

func TestJobIsComparableAndSurvivesJSON(t *testing.T) {
	j := Job{Route: "fal", ID: "x-1", ClientKey: "c", Ref: "r", Profile: "p", Expected: mnt, SubmittedAt: t0, NotBefore: after(sec), Deadline: after(time.Hour)}
	var back Job
	require.NoError(t, json.Unmarshal([]byte(mustJSON(t, j)), &back))
	require.True(t, j == back)
	require.Equal(t, `{"route":"","id":""}`, mustJSON(t, Job{}))
	require.Equal(t, Key{Route: "fal", ID: "x-1"}, j.Key())
	require.Equal(t, "fal/x-1", j.Key().String())
}

func TestCheckErrorSaysKindStatusAndCause(t *testing.T) {
	require.EqualError(t, &CheckError{Kind: ErrorAuth}, "jobpoll: auth")
	require.EqualError(t, &CheckError{Kind: ErrorAuth, Status: 401, Err: io.EOF}, "jobpoll: auth (HTTP 401): EOF")
	require.EqualError(t, &CheckError{Kind: ErrorGone, Err: &CheckError{Kind: ErrorAuth}}, "jobpoll: gone: auth")
	require.ErrorIs(t, &CheckError{Err: io.EOF}, io.EOF)
	require.Equal(t, "jobpoll: transient", (*CheckError)(nil).Error())
	require.NoError(t, (*CheckError)(nil).Unwrap())
}
