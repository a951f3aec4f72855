package jobpoll_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// submitOf is the submission of a ClientKey on the route "r".
func submitOf(r *rig, client string, o polltest.Order) jobpoll.Submission {
	if o.ID == "" {
		o.ID = "R-" + client
	}
	if o.Script == "" {
		o.Script = "running; at 20s succeeded"
	}
	return jobpoll.Submission{Job: jobpoll.Job{Route: "r", ClientKey: client}, Send: r.prov.Send(client, o)}
}

// submit submits and waits for the return, for at most two minutes of the clock.
func submit(r *rig, client string, o polltest.Order) (jobpoll.Job, *jobpoll.SubmitError) {
	r.t.Helper()
	b := r.BeginSubmit(r.t.Context(), submitOf(r, client, o))
	for range 120 {
		if b.Returned() {
			break
		}
		r.Clock.Advance(time.Second)
	}
	return submitted(r.t, b)
}

// submitted is what a Submit returned.
func submitted(t testing.TB, b *polltest.Submitting) (jobpoll.Job, *jobpoll.SubmitError) {
	t.Helper()
	job, err := b.Result()
	if err == nil {
		return job, nil
	}
	var e *jobpoll.SubmitError
	require.ErrorAs(t, err, &e)
	return job, e
}

// withFinder makes the provider findable by ClientKey.
func withFinder(lag time.Duration) func(*rig, *jobpoll.Config) {
	return func(r *rig, c *jobpoll.Config) { c.Routes[0].Reconciler = r.prov.Finder(lag) }
}

// submitOutcomes are those that have the ClientKey.
func submitOutcomes(r *rig, client string) []jobpoll.Outcome {
	var out []jobpoll.Outcome
	for _, o := range r.rec.Outcomes() {
		if o.Job.ClientKey == client {
			out = append(out, o)
		}
	}
	return out
}

func submissionState(r *rig, client string) jobpoll.SubmissionState {
	r.t.Helper()
	i, ok := r.Find(client)
	require.True(r.t, ok)
	require.NotNil(r.t, i.Submission)
	return i.Submission.State
}

func TestASubmittedJobIsSentOnceAndWatchedToItsEnd(t *testing.T) {
	r := rigOf(t, nil)
	job, err := submit(r, "c", polltest.Order{})
	require.Nil(t, err)
	assert.Equal(t, "R-c", job.ID)
	assert.Equal(t, "c", job.ClientKey)
	assert.Equal(t, r.start, job.SubmittedAt)
	r.to(time.Minute)
	o := r.ended("R-c", jobpoll.ReasonSucceeded)
	assert.Equal(t, "c", o.Job.ClientKey)
	assert.Len(t, r.prov.Sends("c"), 1)
	r.atZero()
	m := r.Metrics().Total.Submissions
	assert.Equal(t, jobpoll.SubmissionMetrics{Sent: 1, Taken: 1}, m)
}

func TestBadSubmissionsAreRefusedAndNothingIsSent(t *testing.T) {
	r := rigOf(t, nil)
	send := r.prov.Send("c", polltest.Order{ID: "x"})
	for name, s := range map[string]jobpoll.Submission{
		"no key":    {Job: jobpoll.Job{Route: "r"}, Send: send},
		"an id":     {Job: jobpoll.Job{Route: "r", ClientKey: "c", ID: "x"}, Send: send},
		"no send":   {Job: jobpoll.Job{Route: "r", ClientKey: "c"}},
		"no route":  {Job: jobpoll.Job{ClientKey: "c"}, Send: send},
		"unknown":   {Job: jobpoll.Job{Route: "q", ClientKey: "c"}, Send: send},
		"bad UTF-8": {Job: jobpoll.Job{Route: "r", ClientKey: "\xff"}, Send: send},
	} {
		_, err := r.Submit(t.Context(), s)
		require.ErrorIs(t, err, jobpoll.ErrNotSent, name)
		require.ErrorIs(t, err, jobpoll.ReasonNotSent, name)
		var e *jobpoll.SubmitError
		require.ErrorAs(t, err, &e)
		assert.True(t, e.Safe(), name)
		assert.Equal(t, jobpoll.ErrorInvalid, e.ErrorKind, name)
	}
	over, end := context.WithCancel(t.Context())
	end()
	_, err := r.Submit(over, submitOf(r, "c", polltest.Order{}))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, jobpoll.ErrNotSent)
	assert.Empty(t, r.prov.Sends("c"))
	assert.Empty(t, submitOutcomes(r, "c"))
}

// B06(a)
func TestTheWaitOnASubmitAnswerHoldsTheFirstLook(t *testing.T) {
	r := rigOf(t, nil)
	job, err := submit(r, "c", polltest.Order{Answer: "queued retry-after 20s"})
	require.Nil(t, err)
	assert.Equal(t, r.start.Add(20*time.Second), job.NotBefore)
	r.to(time.Minute)
	assert.GreaterOrEqual(t, r.looks("R-c")[0], 20.0)
	assert.Less(t, r.looks("R-c")[0], 26.0)
}

func TestAPendingAnswerDoesNotSlowTheFirstLook(t *testing.T) {
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) { c.Routes[0].Schedule.Queued = 50 * time.Second })
	_, err := submit(r, "c", polltest.Order{})
	require.Nil(t, err)
	r.to(time.Minute)
	assert.Equal(t, 5.0, r.looks("R-c")[0])
}

func TestAJobThatIsDoneWhenItIsSubmittedIsToldWithoutALook(t *testing.T) {
	for answer, reason := range map[string]jobpoll.Reason{
		`succeeded output {"a":1}`: jobpoll.ReasonSucceeded, "failed filtered": jobpoll.ReasonFailed, "canceled": jobpoll.ReasonCanceled,
	} {
		r := rigOf(t, nil)
		job, err := submit(r, "c", polltest.Order{Answer: answer})
		require.Nil(t, err)
		r.Clock.Settle()
		o := r.ended(job.ID, reason)
		assert.Equal(t, jobpoll.ViaSubmit, o.Via)
		assert.Empty(t, r.looks(job.ID))
		_, err = submit(r, "c", polltest.Order{})
		require.NotNil(t, err)
		assert.Equal(t, jobpoll.SubmitResolved, err.Meaning)
		require.ErrorIs(t, err, jobpoll.ErrResolved)
		assert.False(t, err.Safe())
		assert.Len(t, r.prov.Sends("c"), 1)
		r.atZero()
	}
}

func TestTheSubmitAnswersReferenceIsKept(t *testing.T) {
	r := rigOf(t, nil)
	sent := jobpoll.Sent{ID: "x", Ref: "own"}
	s := jobpoll.Submission{Job: jobpoll.Job{Route: "r", ClientKey: "c", Ref: "before"}, Send: func(context.Context) (jobpoll.Sent, error) { return sent, nil }}
	job, err := r.Submit(t.Context(), s)
	require.NoError(t, err)
	assert.Equal(t, "own", job.Ref)
	sent = jobpoll.Sent{ID: "y", Report: jobpoll.Report{Ref: "told"}}
	s.Job.ClientKey = "d"
	job, err = r.Submit(t.Context(), s)
	require.NoError(t, err)
	assert.Equal(t, "told", job.Ref)
	sent, s.Job.ClientKey = jobpoll.Sent{ID: "z"}, "e"
	job, err = r.Submit(t.Context(), s)
	require.NoError(t, err)
	assert.Equal(t, "before", job.Ref)
}

// A call that is held open until the job is done began before it returned.
func TestTheBeginOfAJobMayBeToldAndIsKeptInBounds(t *testing.T) {
	for name, c := range map[string]struct{ told, want time.Duration }{
		"not told": {-time.Hour, 30 * time.Second}, "begin": {5 * time.Second, 5 * time.Second}, "later": {time.Hour, 30 * time.Second}, "before": {-time.Second, 0},
	} {
		r := rigOf(t, nil)
		b := r.BeginSubmit(t.Context(), jobpoll.Submission{Job: jobpoll.Job{Route: "r", ClientKey: "c"}, Send: func(ctx context.Context) (jobpoll.Sent, error) {
			err := r.Clock.Sleep(ctx, 30*time.Second)
			s := jobpoll.Sent{ID: "x", SubmittedAt: r.start.Add(c.told)}
			if name == "not told" {
				s.SubmittedAt = time.Time{}
			}
			return s, err
		}})
		r.to(40 * time.Second)
		job, err := b.Result()
		require.NoError(t, err)
		assert.Equal(t, r.start.Add(c.want), job.SubmittedAt, name)
	}
}

// B70(a)
func TestWhatSurelyWasNotTakenMaySafelyBeSubmittedAgain(t *testing.T) {
	for answer, want := range map[string]jobpoll.SubmitError{
		"unsent": {Meaning: jobpoll.SubmitNotSent},
		"400":    {Meaning: jobpoll.SubmitRefused, ErrorKind: jobpoll.ErrorInvalid},
		"401":    {Meaning: jobpoll.SubmitRefused, ErrorKind: jobpoll.ErrorAuth},
		"403":    {Meaning: jobpoll.SubmitRefused, ErrorKind: jobpoll.ErrorPolicy},
		"404":    {Meaning: jobpoll.SubmitRefused, ErrorKind: jobpoll.ErrorNoSuchJob},
		"425":    {Meaning: jobpoll.SubmitRefused, ErrorKind: jobpoll.ErrorTransient},
	} {
		r := rigOf(t, withFinder(0))
		o := polltest.Order{Answer: answer}
		if answer == "unsent" {
			o = polltest.Order{Unsent: true}
		}
		job, err := submit(r, "c", o)
		require.NotNil(t, err, answer)
		assert.Empty(t, job.ID)
		assert.Equal(t, want.Meaning, err.Meaning, answer)
		assert.Equal(t, want.ErrorKind, err.ErrorKind, answer)
		assert.True(t, err.Safe())
		assert.True(t, err.RetryAt.IsZero(), answer)
		require.ErrorIs(t, err, jobpoll.ErrNotSent)
		require.NotErrorIs(t, err, jobpoll.ErrAmbiguous)
		_, known := r.Find("c")
		assert.False(t, known, "the key is free")
		_, err = submit(r, "c", polltest.Order{})
		require.Nil(t, err, answer)
		r.Clock.Advance(time.Minute)
		require.Len(t, submitOutcomes(r, "c"), 1, "only the end of the job is told: Submit has returned the rest")
		assert.Empty(t, r.prov.Lookups())
		r.atZero()
	}
}

// B28(b), B70(d)
func TestALostAnswerWithoutALookUpStopsAsAmbiguousAndIsNotSentAgain(t *testing.T) {
	for name, o := range map[string]polltest.Order{
		"no id": {NoID: true}, "reset": {Answer: "reset", Lost: true}, "500": {Answer: "500"}, "503": {Answer: "503 retry-after 5s"},
		"408": {Answer: "408"}, "409": {Answer: "409"}, "error": {Answer: "error"}, "panic": {Answer: "panic"}, "timeout": {Answer: "hang", Lost: true},
	} {
		r := rigOf(t, nil)
		job, err := submit(r, "c", o)
		require.NotNil(t, err, name)
		assert.Equal(t, jobpoll.SubmitAmbiguous, err.Meaning, name)
		assert.False(t, err.Safe())
		assert.Empty(t, job.ID)
		require.ErrorIs(t, err, jobpoll.ErrAmbiguous)
		require.ErrorIs(t, err, jobpoll.ReasonAmbiguous)
		require.ErrorContains(t, err, `"c"`)
		_, again := submit(r, "c", polltest.Order{})
		require.NotNil(t, again)
		assert.Equal(t, jobpoll.SubmitAmbiguous, again.Meaning)
		r.Clock.Advance(time.Hour)
		told := submitOutcomes(r, "c")
		require.Len(t, told, 1, name)
		assert.Equal(t, jobpoll.ReasonAmbiguous, told[0].Reason)
		assert.Equal(t, jobpoll.AdviceDoNotResubmit, told[0].Resubmit)
		assert.Equal(t, "c", told[0].Job.ClientKey)
		assert.NotEmpty(t, told[0].Message)
		assert.Len(t, r.prov.Sends("c"), 1, name)
		assert.Zero(t, r.prov.Total(), "nothing is looked at under a key of our own")
		assert.Equal(t, jobpoll.SubmissionAmbiguous, submissionState(r, "c"))
		m := r.Metrics()
		assert.EqualValues(t, 1, m.Total.Stops[jobpoll.ReasonAmbiguous])
		assert.Equal(t, 1, m.Total.Submissions.Open)
		r.atZero()
	}
}

// B70(b), B26
func TestALostAnswerIsLookedForAndTheJobAdopted(t *testing.T) {
	for name, o := range map[string]polltest.Order{
		"reset": {Answer: "reset", Lost: true}, "no id": {NoID: true}, "502": {Answer: "502", Lost: true}, "panic": {Answer: "panic", Lost: true},
	} {
		r := rigOf(t, withFinder(12*time.Second))
		job, err := submit(r, "c", o)
		require.Nil(t, err, name)
		assert.Equal(t, "R-c", job.ID)
		age := r.Clock.Monotonic()
		assert.GreaterOrEqual(t, age, 12*time.Second)
		assert.Less(t, age, 30*time.Second)
		assert.Equal(t, r.start, job.SubmittedAt)
		q := r.prov.Lookups()
		require.NotEmpty(t, q)
		assert.Equal(t, "c", q[0].Job.ClientKey)
		assert.Empty(t, q[0].Job.ID)
		assert.Equal(t, r.start, q[0].SentAt)
		assert.Equal(t, len(q)-1, q[len(q)-1].Lookups)
		r.Clock.Advance(time.Minute)
		require.Len(t, submitOutcomes(r, "c"), 1)
		r.ended("R-c", jobpoll.ReasonSucceeded)
		assert.Len(t, r.prov.Sends("c"), 1, name)
		m := r.Metrics().Total.Submissions
		assert.EqualValues(t, 1, m.Found)
		assert.EqualValues(t, 1, m.Doubted)
		r.atZero()
	}
}

// B70(c), B26
func TestAbsentIsBelievedOnlyAfterTheGrace(t *testing.T) {
	r := rigOf(t, withFinder(0))
	b := r.BeginSubmit(t.Context(), submitOf(r, "c", polltest.Order{Answer: "reset"}))
	r.to(29 * time.Second)
	require.False(t, b.Returned(), "it may yet show up")
	assert.Equal(t, jobpoll.SubmissionInDoubt, submissionState(r, "c"))
	r.to(31 * time.Second)
	_, err := submitted(t, b)
	require.NotNil(t, err)
	assert.Equal(t, jobpoll.SubmitAbsent, err.Meaning)
	assert.True(t, err.Safe())
	require.NotErrorIs(t, err, jobpoll.ErrAmbiguous)
	assert.Empty(t, submitOutcomes(r, "c"))
	job, err := submit(r, "c", polltest.Order{})
	require.Nil(t, err)
	assert.Equal(t, "c", job.ClientKey)
	assert.Len(t, r.prov.Sends("c"), 2, "once more, by the caller")
}

// A Send that does not return may still reach the provider.
func TestAbsentIsNotBelievedWhileSendIsStillOut(t *testing.T) {
	r := rigOf(t, func(r *rig, c *jobpoll.Config) {
		withFinder(0)(r, c)
		c.Routes[0].SubmitTimeout = 10 * time.Second
	})
	hold := make(chan struct{})
	s := submitOf(r, "c", polltest.Order{})
	s.Send = func(ctx context.Context) (jobpoll.Sent, error) {
		if err := r.Clock.Sleep(context.WithoutCancel(ctx), 3*time.Minute); err != nil { // it does not honour its end
			return jobpoll.Sent{}, err
		}
		<-hold
		r.prov.Add("late", "running")
		return jobpoll.Sent{ID: "late"}, nil
	}
	b := r.BeginSubmit(t.Context(), s)
	close(hold)
	r.to(2 * time.Minute)
	require.False(t, b.Returned())
	assert.Equal(t, jobpoll.SubmissionInDoubt, submissionState(r, "c"))
	r.to(4 * time.Minute)
	job, err := submitted(t, b)
	require.Nil(t, err, "its answer is taken, late as it is")
	assert.Equal(t, "late", job.ID)
}

func TestALookUpThatKnowsNothingIsNeverAbsent(t *testing.T) {
	asked := 0
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
		c.Routes[0].Reconciler = lookUpFunc(func(context.Context, jobpoll.Lost) (jobpoll.Finding, error) {
			asked++
			return jobpoll.Finding{State: jobpoll.FindingUnknown}, nil
		})
	})
	_, err := submit(r, "c", polltest.Order{Answer: "reset"})
	require.NotNil(t, err)
	assert.Equal(t, jobpoll.SubmitAmbiguous, err.Meaning)
	assert.GreaterOrEqual(t, r.Clock.Monotonic(), 30*time.Second)
	assert.GreaterOrEqual(t, asked, 4)
	assert.Less(t, asked, 20)
}

// A provider that lists by ids finds nothing of which no id was ever told: that is
// no reason to wait, and to ask again and again.
func TestALookUpThatHasNothingToLookByEndsTheDoubtAtOnce(t *testing.T) {
	var asked atomic.Int32
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
		c.Routes[0].Reconciler = lookUpFunc(func(context.Context, jobpoll.Lost) (jobpoll.Finding, error) {
			asked.Add(1)
			return jobpoll.Finding{State: jobpoll.FindingImpossible}, nil
		})
	})
	for name, o := range map[string]polltest.Order{"refused": {Answer: "502", Lost: true}, "hung": {Answer: "hang", Lost: true}} {
		asked.Store(0)
		began := r.Clock.Monotonic()
		b := r.BeginSubmit(r.t.Context(), submitOf(r, name, o))
		for !b.Returned() {
			r.Clock.Advance(time.Second)
		}
		_, err := submitted(t, b)
		require.NotNil(t, err, name)
		assert.Equal(t, jobpoll.SubmitAmbiguous, err.Meaning, name)
		assert.EqualValues(t, 1, asked.Load(), name)
		if name == "refused" {
			assert.LessOrEqual(t, r.Clock.Monotonic()-began, 2*time.Second)
		}
		r.Clock.Advance(time.Hour)
		assert.EqualValues(t, 1, asked.Load(), name)
		require.NoError(t, r.Resolve(t.Context(), name, "R-"+name), "a person, or a webhook, may still tell")
		r.Clock.Advance(time.Minute)
		r.ended("R-"+name, jobpoll.ReasonSucceeded)
	}
	r.atZero()
}

// lookUpFunc is a Reconciler.
type lookUpFunc func(context.Context, jobpoll.Lost) (jobpoll.Finding, error)

func (f lookUpFunc) Lookup(ctx context.Context, l jobpoll.Lost) (jobpoll.Finding, error) {
	return f(ctx, l)
}

func TestFailedLookUpsAreMadeAgainAndEndAsAmbiguous(t *testing.T) {
	var n atomic.Int32 // the one that is given up may still be under way when the next begins
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
		c.Routes[0].Stop.MaxErrors = 4
		c.Routes[0].Reconciler = lookUpFunc(func(ctx context.Context, _ jobpoll.Lost) (jobpoll.Finding, error) {
			switch n.Add(1) {
			case 1:
				panic("look-up")
			case 2:
				<-ctx.Done()
				return jobpoll.Finding{State: jobpoll.FindingPresent, ID: "wrong"}, ctx.Err()
			}
			return jobpoll.Finding{}, errors.New("the list is down")
		})
	})
	_, err := submit(r, "c", polltest.Order{Answer: "reset"})
	require.NotNil(t, err)
	assert.Equal(t, jobpoll.SubmitAmbiguous, err.Meaning)
	assert.EqualValues(t, 4, n.Load())
	require.ErrorContains(t, err, "list is down")
}

// B06(b), the answer of a look-up for a submission.
func TestAWaitOnALookUpForASubmissionIsKept(t *testing.T) {
	var at []time.Duration
	r := rigOf(t, func(r *rig, c *jobpoll.Config) {
		c.Routes[0].Reconciler = lookUpFunc(func(context.Context, jobpoll.Lost) (jobpoll.Finding, error) {
			at = append(at, r.Clock.Monotonic())
			f := jobpoll.Finding{State: jobpoll.FindingAbsent}
			if len(at) == 1 {
				f.Report.Hint.RetryAfter = 15 * time.Second
			}
			if len(at) == 2 {
				return f, &jobpoll.CheckError{Kind: jobpoll.ErrorRateLimited, Hint: jobpoll.Hint{RetryAfter: 20 * time.Second}}
			}
			return f, nil
		})
	})
	_, err := submit(r, "c", polltest.Order{Answer: "reset"})
	require.NotNil(t, err)
	require.GreaterOrEqual(t, len(at), 3)
	assert.GreaterOrEqual(t, at[1]-at[0], 15*time.Second)
	assert.GreaterOrEqual(t, at[2]-at[1], 20*time.Second)
}

func TestALookUpThatFindsAnothersJobIsNotBelieved(t *testing.T) {
	r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
		c.Routes[0].Reconciler = lookUpFunc(func(context.Context, jobpoll.Lost) (jobpoll.Finding, error) {
			return jobpoll.Finding{State: jobpoll.FindingPresent, ID: "R-other"}, nil
		})
	})
	_, err := submit(r, "other", polltest.Order{Script: "running"})
	require.Nil(t, err)
	_, err = submit(r, "c", polltest.Order{Answer: "reset"})
	require.NotNil(t, err)
	assert.Equal(t, jobpoll.SubmitAmbiguous, err.Meaning)
}

// A refusal as a repeat means that the first one exists.
func TestARefusalAsARepeatMeansThatTheFirstExists(t *testing.T) {
	repeat := &jobpoll.CheckError{Kind: jobpoll.ErrorInvalid, Status: 422, Err: fmt.Errorf("external_task_id: %w", jobpoll.ErrAlreadySubmitted)}
	r := rigOf(t, withFinder(0))
	s := submitOf(r, "c", polltest.Order{})
	s.Send = func(context.Context) (jobpoll.Sent, error) { return jobpoll.Sent{}, repeat }
	_, err := r.prov.Send("c", polltest.Order{ID: "first", Script: "running"})(t.Context()) // by another process
	require.NoError(t, err)
	b := r.BeginSubmit(t.Context(), s)
	r.to(5 * time.Second)
	job, e := submitted(t, b)
	require.Nil(t, e)
	assert.Equal(t, "first", job.ID)

	s.Job.ClientKey = "d"
	s.Send = func(context.Context) (jobpoll.Sent, error) { return jobpoll.Sent{ID: "told"}, repeat }
	job, err = r.Submit(t.Context(), s)
	require.NoError(t, err)
	assert.Equal(t, "told", job.ID)

	// Where it is not to be found, somebody has to look: it does exist.
	s.Job.ClientKey = "e"
	s.Send = func(context.Context) (jobpoll.Sent, error) { return jobpoll.Sent{}, repeat }
	b = r.BeginSubmit(t.Context(), s)
	r.Clock.Advance(time.Minute)
	_, e = submitted(t, b)
	require.NotNil(t, e)
	assert.Equal(t, jobpoll.SubmitAmbiguous, e.Meaning)
}

func TestAnErrorsTextNamesRouteKeyAndWhatToDo(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	job := jobpoll.Job{Route: "r", ClientKey: "c"}
	for want, e := range map[string]jobpoll.SubmitError{
		`jobpoll: r: submission "c": ambiguous: cut; look for it at the provider and call Resolve, do not submit it anew`:       {Err: errors.New("cut")},
		`jobpoll: r: submission "c": refused (rate limited); it may be submitted again from 2026-01-01T00:00:00Z on`:            {Meaning: jobpoll.SubmitRefused, ErrorKind: jobpoll.ErrorRateLimited, RetryAt: at},
		`jobpoll: r: submission "c": refused (invalid)`:                                                                         {Meaning: jobpoll.SubmitRefused, ErrorKind: jobpoll.ErrorInvalid},
		`jobpoll: r: submission "c": absent; it may be submitted again`:                                                         {Meaning: jobpoll.SubmitAbsent},
		`jobpoll: r: submission "c": under way: context canceled; submit the same ClientKey again to wait for it, and no other`: {Meaning: jobpoll.SubmitUnderWay, Err: context.Canceled},
	} {
		e.Job = job
		assert.Equal(t, want, e.Error())
	}
}
