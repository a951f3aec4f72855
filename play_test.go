package jobpoll

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// t0 is when the jobs of these tests were submitted.
var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// after gives the instant at that age.
func after(age time.Duration) time.Time { return t0.Add(age) }

// mark is after as a Track has it.
func mark(age time.Duration) Stamp { return StampOf(t0).Add(age) }

const (
	sec = time.Second
	mnt = time.Minute
)

// provider is a scripted provider: it answers the n-th look (from 0), which is
// made at that age.
type provider func(n int, age time.Duration) (Report, error)

// look is one look of a played game.
type look struct {
	age   time.Duration // when it was made
	gap   time.Duration // since the answer before it (the first: since the submission)
	cause Cause
	told  string // state or error kind
	floor time.Duration
	track Track // after it
}

// game plays a provider against Observe and Next on plain time.
type game struct {
	schedule  Schedule
	stop      StopRules
	guidance  Guidance
	plan      *Plan
	expected  time.Duration
	deadline  time.Duration // as an age; 0: none
	notBefore time.Duration // Job.NotBefore, as an age
	rand      func() float64
	takes     time.Duration // how long an answer takes
	now       bool          // look at once, as PollNow does
	id        string
	provider  provider
}

// result is how a game went.
type result struct {
	looks  []look
	end    Decision
	endAge time.Duration
	parked time.Duration // the age at which it was parked first, 0: never
	track  Track
	job    Job
}

func (r result) ages() []time.Duration {
	var a []time.Duration
	for _, l := range r.looks {
		a = append(a, l.age)
	}
	return a
}

func (r result) gaps() []time.Duration {
	var a []time.Duration
	for _, l := range r.looks {
		a = append(a, l.gap)
	}
	return a
}

// err is the error of the end.
func (r result) err(t *testing.T) *StopError {
	t.Helper()
	err := r.end.Err(r.job, r.track)
	var se *StopError
	require.ErrorAs(t, err, &se)
	return se
}

// maxLooks ends a game that would not end.
const maxLooks = 20_000

func (g game) play(t testing.TB) result {
	t.Helper()
	if g.id == "" {
		g.id = "job-1"
	}
	in := Input{
		Job:  Job{Route: "fal", ID: g.id, Expected: g.expected, SubmittedAt: t0},
		Stop: g.stop, Guidance: g.guidance, Plan: g.plan, Now: t0, Rand: 0.5,
	}
	if g.deadline > 0 {
		in.Job.Deadline = after(g.deadline)
	}
	if g.notBefore > 0 {
		in.Job.NotBefore = after(g.notBefore)
	}
	var res result
	for len(res.looks) < maxLooks {
		if g.rand != nil {
			in.Rand = g.rand()
		}
		d := g.schedule.Next(in)
		require.False(t, d.At.Before(in.Now), "a look in the past: %+v", d)
		if d.Stop != ReasonNone {
			res.end, res.endAge = d, d.At.Sub(t0)
			break
		}
		if g.now && in.Track.Looks == 0 {
			d = Decision{At: t0, Cause: CauseNow}
		}
		if d.Cause == CauseParked {
			if res.parked == 0 {
				res.parked = in.Now.Sub(t0)
			}
			require.True(t, d.At.After(in.Now), "parked for no time")
			in.Now = d.At
			continue
		}
		l := look{age: d.At.Sub(t0), gap: d.At.Sub(in.Now), cause: d.Cause, floor: in.Track.NotBefore.Sub(StampOf(t0))}
		r, err := g.provider(len(res.looks), l.age)
		in.Now = d.At.Add(g.takes)
		in.Track, _ = in.Track.Observe(r, err, in.Now)
		l.told = r.State.String()
		if err != nil {
			l.told = in.Track.ErrorKind.String()
		}
		l.track = in.Track
		res.looks = append(res.looks, l)
	}
	require.NotEqual(t, ReasonNone, res.end.Stop, "the game did not end")
	res.track, res.job = in.Track, in.Job
	return res
}

// script answers with these in turn; the last one repeats. An answer is a
// Report, a State, or an error.
func script(answers ...any) provider {
	return func(n int, _ time.Duration) (Report, error) {
		switch a := answers[min(n, len(answers)-1)].(type) {
		case Report:
			return a, nil
		case State:
			return Report{State: a}, nil
		case error:
			return Report{}, a
		default:
			panic(fmt.Sprintf("not an answer: %T", a))
		}
	}
}

// repeat makes n times the same answer.
func repeat(n int, a any) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = a
	}
	return all
}

// until answers like p up to an age, then that the job has succeeded.
func until(age time.Duration, p provider) provider {
	return func(n int, a time.Duration) (Report, error) {
		if a >= age {
			return Report{State: StateSucceeded}, nil
		}
		return p(n, a)
	}
}

var errPlain = errors.New("connection reset by peer")

// limited is a 429 with a wait; 0: without one.
func limited(wait time.Duration) error {
	return &CheckError{Kind: ErrorRateLimited, Status: 429, Hint: Hint{RetryAfter: wait}}
}

func kindErr(k ErrorKind) error { return &CheckError{Kind: k} }

// always is a source of jitter that gives one number.
func always(r float64) func() float64 { return func() float64 { return r } }

// fixed is a schedule without jitter that looks after these delays.
func fixed(d ...time.Duration) Schedule { return Schedule{Delays: d, Jitter: NoJitter} }

// secs writes seconds.
func secs(s ...float64) []time.Duration {
	var d []time.Duration
	for _, v := range s {
		d = append(d, time.Duration(v*float64(time.Second)))
	}
	return d
}
