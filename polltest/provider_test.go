package polltest

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAProviderTellsWhatTheScriptSaysAtThatTime(t *testing.T) {
	c := NewClock(time.Time{})
	p := NewProvider(c)
	c.Advance(time.Minute) // the script begins when the job is added
	p.Add("a", `at 3s queued pos 4 retry-after 15s
		at 8s running "RENDERING" 20% eta 30s ref r1
		at 40s succeeded output {"url":"u"} completed expires 1h
		at 50s failed filtered "not nice"
		at 60s "IN_REVIEW"; at 70s unknown`)
	job := jobpoll.Job{ID: "a"}
	begun := c.Now()
	look := func(at time.Duration) jobpoll.Report {
		t.Helper()
		c.AdvanceTo(begun.Add(at))
		r, err := p.Check(t.Context(), job)
		require.NoError(t, err)
		return r
	}
	_, err := p.Check(t.Context(), job)
	assertKind(t, jobpoll.ErrorNoSuchJob, err) // not visible yet
	assert.Equal(t, jobpoll.Report{State: jobpoll.StateQueued, RawStatus: "queued", QueuePosition: 4,
		Hint: jobpoll.Hint{RetryAfter: 15 * time.Second}}, look(3*time.Second))
	assert.Equal(t, "queued", look(7999*time.Millisecond).RawStatus)
	assert.Equal(t, jobpoll.Report{State: jobpoll.StateRunning, RawStatus: "RENDERING", Progress: 0.2, Remaining: 30 * time.Second, Ref: "r1"},
		look(8*time.Second))
	assert.Equal(t, jobpoll.Report{State: jobpoll.StateSucceeded, RawStatus: "succeeded", Output: []byte(`{"url":"u"}`),
		CompletedAt: begun.Add(40 * time.Second), ResultExpiresAt: begun.Add(time.Hour + 40*time.Second)}, look(45*time.Second))
	assert.Equal(t, jobpoll.Report{State: jobpoll.StateFailed, RawStatus: "failed",
		Failure: &jobpoll.Failure{Kind: jobpoll.FailureFiltered, Message: "not nice"}}, look(50*time.Second))
	assert.Equal(t, jobpoll.Report{RawStatus: "IN_REVIEW"}, look(60*time.Second))
	c.Jump(-time.Hour) // scripts run on the monotonic time
	c.Advance(10 * time.Second)
	r, err := p.Check(t.Context(), job)
	require.NoError(t, err)
	assert.Equal(t, jobpoll.Report{}, r)
	assert.Len(t, p.Looks("a"), 8)
	assert.Equal(t, 8, p.Total())
}

func assertKind(t *testing.T, kind jobpoll.ErrorKind, err error) *jobpoll.CheckError {
	t.Helper()
	var ce *jobpoll.CheckError
	require.ErrorAs(t, err, &ce)
	assert.Equal(t, kind, ce.Kind)
	return ce
}

func TestAProviderAnswersWithErrors(t *testing.T) {
	p := NewProvider(NewClock(time.Time{}))
	check := func(script string) error {
		p.Add("a", script)
		_, err := p.Check(t.Context(), jobpoll.Job{ID: "a"})
		require.Error(t, err)
		return err
	}
	for script, want := range map[string]jobpoll.CheckError{
		"429":                         {Kind: jobpoll.ErrorRateLimited, Hint: jobpoll.Hint{Scope: jobpoll.ScopeBudget}},
		"429 retry-after 30s account": {Kind: jobpoll.ErrorRateLimited, Hint: jobpoll.Hint{RetryAfter: 30 * time.Second, Scope: jobpoll.ScopeAccount}},
		"503":                         {Kind: jobpoll.ErrorTransient},
		"503 retry-after 5s":          {Kind: jobpoll.ErrorTransient, Hint: jobpoll.Hint{RetryAfter: 5 * time.Second, Scope: jobpoll.ScopeBudget}},
		"401":                         {Kind: jobpoll.ErrorAuth}, "402": {Kind: jobpoll.ErrorQuota}, "403": {Kind: jobpoll.ErrorPolicy},
		"404": {Kind: jobpoll.ErrorNoSuchJob}, "410": {Kind: jobpoll.ErrorGone}, "400": {Kind: jobpoll.ErrorInvalid}, "409": {Kind: jobpoll.ErrorTransient},
	} {
		got := assertKind(t, want.Kind, check(script))
		assert.Equal(t, want.Hint, got.Hint, script)
		assert.NotZero(t, got.Status)
	}
	assert.EqualError(t, check(`error "oops"`), "oops")
	assert.ErrorIs(t, check("reset"), syscall.ECONNRESET)
	assert.ErrorContains(t, check(`400 "bad id"`), "bad id")
	p.Add("a", `panic "boo"`)
	assert.PanicsWithValue(t, "boo", func() { _, _ = p.Check(t.Context(), jobpoll.Job{ID: "a"}) })
	assert.Zero(t, p.InFlight())
	assert.Panics(t, func() { p.Add("a", "nonsense") })
	assert.Panics(t, func() { p.Default("nonsense") })
}

func TestAnEntryWithANumberOfLooksGivesWayToTheOneBefore(t *testing.T) {
	c := NewClock(time.Time{})
	p := NewProvider(c)
	p.Add("a", `queued; at 0s error x2; at 10s 503 once; at 20s succeeded`)
	var got []string
	for _, d := range []time.Duration{0, 0, 0, 10 * time.Second, 0, 10 * time.Second} {
		c.Advance(d)
		r, err := p.Check(t.Context(), jobpoll.Job{ID: "a"})
		if err != nil {
			got = append(got, "error")
			continue
		}
		got = append(got, r.RawStatus)
	}
	assert.Equal(t, []string{"error", "error", "queued", "error", "queued", "succeeded"}, got)
}

func TestUnknownJobsFollowTheDefault(t *testing.T) {
	c := NewClock(time.Time{})
	p := NewProvider(c)
	_, err := p.Check(t.Context(), jobpoll.Job{ID: "a"})
	assertKind(t, jobpoll.ErrorNoSuchJob, err)
	p.Default("queued; at 10s succeeded")
	c.Advance(time.Minute)
	r, err := p.Check(t.Context(), jobpoll.Job{ID: "a"})
	require.NoError(t, err)
	assert.Equal(t, jobpoll.StateQueued, r.State, "it begins with the first look")
	r, err = p.Check(t.Context(), jobpoll.Job{ID: "b", SubmittedAt: year2001})
	require.NoError(t, err)
	assert.Equal(t, jobpoll.StateSucceeded, r.State, "it began when it was submitted")
	p.AddAt("c", year2001.Add(55*time.Second), "queued; at 10s succeeded completed")
	c.Advance(5 * time.Second)
	r, err = p.Check(t.Context(), jobpoll.Job{ID: "c"})
	require.NoError(t, err)
	assert.Equal(t, year2001.Add(65*time.Second), r.CompletedAt)
}

// plainClock has no more than jobpoll.Clock asks for.
type plainClock struct{ c *Clock }

func (p plainClock) Now() time.Time                                    { return p.c.Now() }
func (p plainClock) AfterFunc(d time.Duration, f func()) jobpoll.Timer { return p.c.AfterFunc(d, f) }

func TestASlowLookTakesItsTimeOnTheClock(t *testing.T) {
	c := NewClock(time.Time{})
	for _, clock := range []jobpoll.Clock{c, plainClock{c}} {
		p := NewProvider(clock)
		p.Default("slow 9s running; at 5s succeeded")
		var r jobpoll.Report
		_, end := startWork(t.Context(), c, func(ctx context.Context) { r, _ = p.Check(ctx, jobpoll.Job{ID: "a"}) })
		c.Advance(8 * time.Second)
		assert.Equal(t, 1, p.InFlight())
		c.Advance(time.Second)
		<-end
		assert.Equal(t, jobpoll.StateRunning, r.State)
		assert.Zero(t, p.InFlight())
		assert.Equal(t, 1, p.MaxInFlight())
		assert.Zero(t, c.Timers())
	}
}

func TestAHangingLookLastsUntilItsContextEnds(t *testing.T) {
	for _, script := range []string{"hang", "slow 1h queued"} {
		c := NewClock(time.Time{})
		for _, clock := range []jobpoll.Clock{c, plainClock{c}} {
			p := NewProvider(clock)
			p.Add("a", script)
			ctx, cancel := context.WithCancelCause(t.Context())
			c.AfterFunc(10*time.Second, func() { cancel(assert.AnError) })
			var err error
			_, end := startWork(ctx, c, func(ctx context.Context) { _, err = p.Check(ctx, jobpoll.Job{ID: "a"}) })
			c.Advance(9 * time.Second)
			assert.Equal(t, 1, p.InFlight())
			c.Advance(time.Second)
			assert.ErrorIs(t, err, assert.AnError)
			<-end
		}
	}
}

func TestTheProvidersOwnRateLimitAnswers429(t *testing.T) {
	c := NewClock(time.Time{})
	p := NewProvider(c)
	p.Default("queued")
	p.RateLimit(2, 3, 7*time.Second)
	look := func() error {
		_, err := p.Check(t.Context(), jobpoll.Job{ID: "a"})
		return err
	}
	for range 3 {
		require.NoError(t, look())
	}
	ce := assertKind(t, jobpoll.ErrorRateLimited, look())
	assert.Equal(t, jobpoll.Hint{RetryAfter: 7 * time.Second, Scope: jobpoll.ScopeBudget}, ce.Hint)
	assert.Equal(t, 1, p.Limited())
	for range 100 {
		c.Advance(500 * time.Millisecond)
		require.NoError(t, look())
	}
	require.Error(t, look())
	assert.Equal(t, 2, p.Limited())
	assert.Len(t, p.Starts(), 105)
	p.RateLimit(0, 0, 0)
	require.NoError(t, look())
}

func TestCancelsAreNotedAndMayChangeTheScript(t *testing.T) {
	c := NewClock(time.Time{})
	p := NewProvider(c)
	p.Add("a", "queued")
	require.NoError(t, p.Cancel(t.Context(), jobpoll.Job{ID: "a"}))
	assertKind(t, jobpoll.ErrorNoSuchJob, p.Cancel(t.Context(), jobpoll.Job{ID: "b"}))
	assert.Equal(t, []time.Time{year2001}, p.Cancels("a"))
	p.OnCancel = func(_ context.Context, job jobpoll.Job) error {
		p.Add(job.ID, "canceled")
		return errors.New("too late")
	}
	require.EqualError(t, p.Cancel(t.Context(), jobpoll.Job{ID: "a"}), "too late")
	r, err := p.Check(t.Context(), jobpoll.Job{ID: "a"})
	require.NoError(t, err)
	assert.Equal(t, jobpoll.StateCanceled, r.State)
}

func TestAProviderMayBeUsedFromManyGoroutines(t *testing.T) {
	c := NewClock(time.Time{})
	p := NewProvider(c)
	p.OnLook = func(_ context.Context, job jobpoll.Job) { p.Add(job.ID, "queued") }
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				_, err := p.Check(t.Context(), jobpoll.Job{ID: "a"})
				assert.NoError(t, err)
				_ = p.Cancel(t.Context(), jobpoll.Job{ID: "a"})
				_, _, _ = p.Looks("a"), p.Starts(), p.MaxInFlight()
			}
		})
	}
	wg.Wait()
	assert.Equal(t, 400, p.Total())
	assert.Len(t, p.Cancels("a"), 400)
	assert.Zero(t, p.InFlight())
}
