package jobpoll_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// storedSubmit reads what the store holds of a submission; "" for nothing.
func storedSubmit(t testing.TB, s jobpoll.Store, client string) string {
	t.Helper()
	rec, err := s.Get(t.Context(), jobpoll.RecordSubmission, client)
	if err != nil {
		require.ErrorIs(t, err, jobpoll.ErrNotFound)
		return ""
	}
	var data struct {
		Version int    `json:"v"`
		State   string `json:"state"`
	}
	require.NoError(t, json.Unmarshal(rec.Data, &data))
	assert.Equal(t, 1, data.Version)
	assert.Equal(t, "r", rec.Route)
	return data.State
}

func TestTheIntentIsStoredBeforeSendAndTheIDBeforeSubmitReturns(t *testing.T) {
	store := newShakyStore(nil)
	var mu sync.Mutex
	var order []string
	note := func(s string) { mu.Lock(); order = append(order, s); mu.Unlock() }
	store.seen = func(batch []jobpoll.Record) {
		for _, rec := range batch {
			note("put " + rec.Kind.String())
		}
		note(fmt.Sprint("batch of ", len(batch)))
	}
	r := onStore(t, store, nil, nil)
	s := submitOf(r, "c", polltest.Order{Script: "running; at 3s succeeded"})
	inner := s.Send
	s.Send = func(ctx context.Context) (jobpoll.Sent, error) {
		note("send")
		assert.Equal(t, "sending", storedSubmit(t, store, "c"))
		return inner(ctx)
	}
	job, err := r.Submit(t.Context(), s)
	require.NoError(t, err)
	assert.Equal(t, "taken", storedSubmit(t, store, "c"))
	_, data := storedRecord(t, store, job.Key())
	assert.Equal(t, "c", data["job"].(map[string]any)["client_key"])
	r.Clock.Settle()
	mu.Lock()
	assert.Equal(t, []string{"put submission", "batch of 1", "send", "put job", "put submission", "batch of 2"}, order[:6])
	mu.Unlock()
	r.to(time.Minute)
	r.ended("R-c", jobpoll.ReasonSucceeded)
	assert.LessOrEqual(t, store.puts, 7, "intent, id, end, delivery, and three of the pacing at most")
}

// crash is the store as it was when the process died in the middle of f.
func crash(t testing.TB, from *jobpoll.MemoryStore) *jobpoll.MemoryStore {
	t.Helper()
	clock := polltest.NewClock(time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC))
	to := jobpoll.NewMemoryStore(clock)
	for rec, err := range from.Load(context.Background()) {
		require.NoError(t, err)
		require.NoError(t, to.Put(context.Background(), []jobpoll.Record{rec}))
	}
	return to
}

// B70, after a crash between the call and its answer.
func TestASubmissionThatACrashCutOffIsLookedForAndNotSentAgain(t *testing.T) {
	for name, c := range map[string]struct {
		finder bool
		lost   bool
		reason jobpoll.Reason
	}{
		"found": {true, true, jobpoll.ReasonSucceeded}, "absent": {true, false, jobpoll.ReasonNotSent}, "no look-up": {false, true, jobpoll.ReasonAmbiguous},
	} {
		store := newShakyStore(nil)
		r := onStore(t, store, nil, nil)
		r.BeginSubmit(t.Context(), submitOf(r, "c", polltest.Order{Answer: "hang", Lost: c.lost}))
		r.to(3 * time.Second)
		left := crash(t, store.MemoryStore)
		assert.Equal(t, "sending", storedSubmit(t, left, "c"))
		next := onStore(t, left, r, func(r *rig, cfg *jobpoll.Config) {
			if c.finder {
				withFinder(0)(r, cfg)
			}
		})
		if c.lost && c.finder {
			next.Clock.Advance(time.Second)
		}
		next.Clock.Advance(5 * time.Minute)
		told := submitOutcomes(next, "c")
		require.Len(t, told, 1, name)
		assert.Equal(t, c.reason, told[0].Reason, name)
		require.Len(t, next.prov.Sends("c"), 1)
		_, err := submit(next, "c", polltest.Order{})
		switch c.reason {
		case jobpoll.ReasonSucceeded:
			require.ErrorIs(t, err, jobpoll.ErrResolved)
			require.Len(t, next.prov.Sends("c"), 1)
		case jobpoll.ReasonAmbiguous:
			assert.Equal(t, jobpoll.SubmitAmbiguous, err.Meaning)
			require.Len(t, next.prov.Sends("c"), 1)
		default:
			assert.Equal(t, jobpoll.AdviceSafe, told[0].Resubmit)
			require.Nil(t, err)
			require.Len(t, next.prov.Sends("c"), 2)
		}
	}
}

// Nobody waits for the end of a call that died with its process where nothing can be
// looked for.
func TestASubmissionThatACrashCutOffAndNothingCanFindIsAmbiguousAtOnce(t *testing.T) {
	store := newShakyStore(nil)
	r := onStore(t, store, nil, nil)
	r.BeginSubmit(t.Context(), submitOf(r, "c", polltest.Order{Answer: "hang", Lost: true}))
	r.to(3 * time.Second)
	next := onStore(t, crash(t, store.MemoryStore), r, func(_ *rig, cfg *jobpoll.Config) {
		cfg.Routes[0].Reconciler = lookUpFunc(func(context.Context, jobpoll.Lost) (jobpoll.Finding, error) {
			return jobpoll.Finding{State: jobpoll.FindingImpossible}, nil
		})
	})
	next.Clock.Advance(2 * time.Second)
	told := submitOutcomes(next, "c")
	require.Len(t, told, 1)
	assert.Equal(t, jobpoll.ReasonAmbiguous, told[0].Reason)
	require.Len(t, next.prov.Sends("c"), 1)
}

func TestASubmissionThatWaitedAtACrashEndsAsNotSent(t *testing.T) {
	store := newShakyStore(nil)
	r := onStore(t, store, nil, withLimits(jobpoll.Limits{Jobs: 1}))
	_, err := submit(r, "a", polltest.Order{Script: "running; at 60s succeeded"})
	require.Nil(t, err)
	r.BeginSubmit(t.Context(), submitOf(r, "c", polltest.Order{}))
	left := crash(t, store.MemoryStore)
	assert.Equal(t, "waiting", storedSubmit(t, left, "c"))
	next := onStore(t, left, r, withFinder(0))
	next.Clock.Settle()
	told := submitOutcomes(next, "c")
	require.Len(t, told, 1)
	assert.Equal(t, jobpoll.ReasonNotSent, told[0].Reason)
	assert.Equal(t, jobpoll.AdviceSafe, told[0].Resubmit)
	assert.Empty(t, next.prov.Sends("c"))
	assert.Empty(t, next.prov.Lookups(), "it is known not to be there")
	assert.Empty(t, storedSubmit(t, left, "c"))
}

func TestAnAmbiguousSubmissionSurvivesARestartUntilItIsResolved(t *testing.T) {
	store := newShakyStore(nil)
	r := onStore(t, store, nil, nil)
	_, err := submit(r, "c", polltest.Order{Answer: "reset", Lost: true})
	require.NotNil(t, err)
	r.Clock.Advance(time.Minute)
	next := onStore(t, store, r, nil)
	next.Clock.Advance(time.Minute)
	assert.Empty(t, submitOutcomes(next, "c"), "it was told")
	assert.Equal(t, jobpoll.SubmissionAmbiguous, submissionState(next, "c"))
	_, err = submit(next, "c", polltest.Order{})
	require.NotNil(t, err)
	assert.Equal(t, jobpoll.SubmitAmbiguous, err.Meaning)
	require.NoError(t, next.Resolve(t.Context(), "c", "R-c"))
	next.Clock.Advance(time.Minute)
	next.ended("R-c", jobpoll.ReasonSucceeded)
	last := onStore(t, store, next, nil)
	_, err = submit(last, "c", polltest.Order{})
	require.ErrorIs(t, err, jobpoll.ErrResolved)
	require.Len(t, last.prov.Sends("c"), 1)
}

func TestAnEndThatOnStopDidNotTakeIsToldAfterARestart(t *testing.T) {
	store := newShakyStore(nil)
	r := onStore(t, store, nil, func(_ *rig, c *jobpoll.Config) {
		c.Callbacks.OnStop = func(context.Context, jobpoll.Outcome) error { return errStoreDown }
	})
	_, err := submit(r, "c", polltest.Order{Answer: "reset"})
	require.NotNil(t, err)
	r.Clock.Advance(time.Minute)
	next := onStore(t, store, r, nil)
	next.Clock.Advance(time.Minute)
	require.Len(t, submitOutcomes(next, "c"), 1)
}

func TestTheSameKeyIsTheSameJobAfterARestart(t *testing.T) {
	for _, before := range []bool{true, false} { // Run restores
		store := newShakyStore(nil)
		r := onStore(t, store, nil, nil)
		job, err := submit(r, "c", polltest.Order{Script: "running; at 60s succeeded"})
		require.Nil(t, err)
		r.Stop()
		p, e := jobpoll.New(jobpoll.Config{Clock: r.Clock, Store: store, Routes: []jobpoll.Route{r.route("r")}})
		require.NoError(t, e)
		if before {
			_, e = p.Restore(t.Context())
			require.NoError(t, e)
		}
		again, e := p.Submit(t.Context(), submitOf(r, "c", polltest.Order{}))
		require.NoError(t, e)
		assert.Equal(t, job, again)
		assert.Len(t, r.prov.Sends("c"), 1)
	}
}

// Beyond what stays in memory it is the store that knows the key.
func TestAKeyIsKnownLongAfterItsJobHasBeenForgotten(t *testing.T) {
	store := newShakyStore(nil)
	r := onStore(t, store, nil, nil)
	job, err := submit(r, "c", polltest.Order{Script: "succeeded"})
	require.Nil(t, err)
	r.to(time.Minute)
	rec, e := store.Get(t.Context(), jobpoll.RecordSubmission, "c")
	require.NoError(t, e)
	assert.True(t, rec.ExpiresAt.After(r.Clock.Now().Add(59*24*time.Hour)))
	jobRecord, _ := storedRecord(t, store, job.Key())
	r.Stop()
	// A store that has lost its job, as one restored from an older backup.
	require.NoError(t, store.MemoryStore.Put(t.Context(), []jobpoll.Record{{Kind: jobpoll.RecordJob, ID: jobRecord.ID}}))
	next := onStore(t, store, r, nil)
	again, err := submit(next, "c", polltest.Order{ID: "twice"})
	require.Nil(t, err)
	assert.Equal(t, job.ID, again.ID, "it is watched again, and not bought again")
	require.Len(t, next.prov.Sends("c"), 1)
}

func TestWithoutAStoreSubmissionsWorkWithinTheProcess(t *testing.T) {
	p, err := jobpoll.New(jobpoll.Config{Routes: []jobpoll.Route{{Name: "r", Checker: jobpoll.CheckerFunc(
		func(context.Context, jobpoll.Job) (jobpoll.Report, error) { return jobpoll.Report{}, nil })}}})
	require.NoError(t, err)
	job, err := p.Submit(t.Context(), jobpoll.Submission{Job: jobpoll.Job{Route: "r", ClientKey: "c"}, Send: func(context.Context) (jobpoll.Sent, error) {
		return jobpoll.Sent{ID: "x"}, nil
	}})
	require.NoError(t, err, "before Run")
	info, ok := p.Find("c")
	require.True(t, ok)
	assert.Equal(t, job, info.Job)
}

// The store fails at each call in turn: with an error, late, and with an error
// after it has written. Whatever happens, the job is bought at most once, is not
// lost once bought, and is never said to be free while it may exist.
func TestWhateverTheStoreDoesAJobIsBoughtOnceAndNotLost(t *testing.T) {
	for _, fault := range []string{"error", "delay", "after"} {
		for _, answer := range []string{"queued", "reset", "400"} {
			for n := 1; n <= 6; n++ {
				name := fmt.Sprintf("%s at put %d, answer %s", fault, n, answer)
				store := &faultyStore{MemoryStore: newShakyStore(nil).MemoryStore, fault: fault, at: n}
				r := onStore(t, store, nil, withFinder(0))
				store.clock = r.Clock
				o := polltest.Order{Answer: answer, Lost: true, Script: "running; at 20s succeeded"}
				if answer == "400" {
					o.Lost = false
				}
				_, err := submit(r, "c", o)
				sends := len(r.prov.Sends("c"))
				require.LessOrEqual(t, sends, 1, name)
				switch {
				case err != nil && err.Safe():
					require.True(t, sends == 0 || answer == "400", "%s: %v", name, err)
				case err != nil:
					require.Equal(t, jobpoll.SubmitUnstored, err.Meaning, "%s: %v", name, err)
					require.Equal(t, "R-c", err.Job.ID)
				}
				r.Clock.Advance(3 * time.Minute)
				bought := sends == 1 && answer != "400"
				told := submitOutcomes(r, "c")
				if bought {
					require.Len(t, told, 1, name)
					require.Equal(t, jobpoll.ReasonSucceeded, told[0].Reason, name)
					require.Equal(t, "taken", storedSubmit(t, store, "c"), name)
				} else {
					require.Empty(t, told, name)
					require.Empty(t, storedSubmit(t, store, "c"), name)
				}
				// What the store holds is as good after a crash.
				next := onStore(t, crash(t, store.MemoryStore), r, withFinder(0))
				_, err = submit(next, "c", polltest.Order{})
				if bought {
					require.ErrorIs(t, err, jobpoll.ErrResolved, name)
				} else {
					require.Nil(t, err, name)
				}
				next.Stop()
			}
		}
	}
}

// faultyStore has one fault, at one Put.
type faultyStore struct {
	*jobpoll.MemoryStore
	clock *polltest.Clock
	fault string
	at    int

	mu   sync.Mutex
	puts int
}

func (s *faultyStore) Put(ctx context.Context, batch []jobpoll.Record) error {
	s.mu.Lock()
	s.puts++
	hit := s.puts == s.at
	s.mu.Unlock()
	if !hit {
		return s.MemoryStore.Put(ctx, batch)
	}
	switch s.fault {
	case "error":
		return errStoreDown
	case "delay":
		if s.clock != nil {
			_ = s.clock.Sleep(ctx, 3*time.Second)
		}
		return s.MemoryStore.Put(ctx, batch)
	}
	if err := s.MemoryStore.Put(ctx, batch); err != nil {
		return err
	}
	return errStoreDown
}

func TestNothingIsSentWhenTheStoreCannotBeRead(t *testing.T) {
	store := newShakyStore(nil)
	r := onStore(t, store, nil, nil)
	store.set("Get", errStoreDown)
	_, err := submit(r, "c", polltest.Order{})
	require.NotNil(t, err)
	assert.Equal(t, jobpoll.SubmitNotSent, err.Meaning)
	require.ErrorIs(t, err, errStoreDown)
	store.set("Get", nil)
	store.set("Put submission", errStoreDown)
	_, err = submit(r, "c", polltest.Order{})
	require.NotNil(t, err)
	assert.Equal(t, jobpoll.SubmitNotSent, err.Meaning)
	assert.Empty(t, r.prov.Sends("c"))
	store.set("Put submission", nil)
	_, err = submit(r, "c", polltest.Order{})
	require.Nil(t, err)
}

func TestAnIDThatCannotBeStoredIsWatchedAndStoredLater(t *testing.T) {
	store := newShakyStore(nil)
	r := onStore(t, store, nil, nil)
	s := submitOf(r, "c", polltest.Order{Script: "running"})
	inner := s.Send
	s.Send = func(ctx context.Context) (jobpoll.Sent, error) {
		store.set("Put", errStoreDown)
		return inner(ctx)
	}
	job, err := r.Submit(t.Context(), s)
	var e *jobpoll.SubmitError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, jobpoll.SubmitUnstored, e.Meaning)
	assert.False(t, e.Safe())
	assert.Equal(t, "R-c", job.ID)
	r.to(20 * time.Second)
	assert.NotEmpty(t, r.looks("R-c"), "it is watched")
	again, err := r.Submit(t.Context(), s)
	require.NoError(t, err)
	assert.Equal(t, "R-c", again.ID)
	store.set("Put", nil)
	r.to(2 * time.Minute)
	assert.Equal(t, "taken", storedSubmit(t, store, "c"))
	storedRecord(t, store, job.Key())
}

func TestRecordsOfSubmissionsThatCannotBeReadAreLeftAlone(t *testing.T) {
	store := newShakyStore(nil)
	bad := map[string]string{
		"cut": `{"v":1,"job":{`, "newer": `{"v":99,"job":{"route":"r","client_key":"newer"},"state":"sending"}`,
		"other": `{"v":1,"job":{"route":"r","client_key":"x"},"state":"sending"}`, "nobody": `{"v":1,"job":{"client_key":"nobody"},"state":"sending"}`,
	}
	for id, data := range bad {
		require.NoError(t, store.MemoryStore.Put(t.Context(), []jobpoll.Record{{Kind: jobpoll.RecordSubmission, ID: id, Data: []byte(data)}}))
	}
	good := `{"v":1,"job":{"route":"r","id":"","client_key":"good"},"state":"sending","sent_at":"2001-01-01T00:00:00Z","more":1}`
	require.NoError(t, store.MemoryStore.Put(t.Context(), []jobpoll.Record{{Kind: jobpoll.RecordSubmission, ID: "good", Data: []byte(good)}}))
	r := onStore(t, store, nil, nil)
	r.Clock.Advance(time.Minute)
	require.Len(t, submitOutcomes(r, "good"), 1)
	for id := range bad {
		_, err := store.Get(t.Context(), jobpoll.RecordSubmission, id)
		require.NoError(t, err)
		_, e := submit(r, id, polltest.Order{})
		require.NotNil(t, e, id)
		assert.Equal(t, jobpoll.SubmitNotSent, e.Meaning)
		assert.Empty(t, r.prov.Sends(id))
	}
}

func TestAStoredSubmissionWaitsForItsRoute(t *testing.T) {
	store := newShakyStore(nil)
	data := `{"v":1,"job":{"route":"q","id":"","client_key":"c"},"state":"waiting"}`
	require.NoError(t, store.MemoryStore.Put(t.Context(), []jobpoll.Record{{Kind: jobpoll.RecordSubmission, ID: "c", Data: []byte(data)}}))
	r := onStore(t, store, nil, nil)
	r.Clock.Advance(time.Minute)
	require.Empty(t, submitOutcomes(r, "c"))
	require.NoError(t, r.AddRoute(r.route("q")))
	r.Clock.Settle()
	require.Len(t, submitOutcomes(r, "c"), 1)
	r.atZero()
}

func TestShutdownEndsWhatWaitsAndLooksForWhatItCutOff(t *testing.T) {
	store := newShakyStore(nil)
	r := onStore(t, store, nil, withLimits(jobpoll.Limits{Submit: jobpoll.LaneLimits{Limit: jobpoll.Limit{Concurrent: 1}}}))
	sending := r.BeginSubmit(t.Context(), submitOf(r, "a", polltest.Order{Answer: "hang", Lost: true}))
	waiting := r.BeginSubmit(t.Context(), submitOf(r, "b", polltest.Order{}))
	r.to(time.Second)
	next := onStore(t, store, r, withFinder(0))
	_, err := submitted(t, waiting)
	require.NotNil(t, err)
	assert.Equal(t, jobpoll.SubmitNotSent, err.Meaning)
	require.ErrorIs(t, err, jobpoll.ErrShutdown)
	_, err = submitted(t, sending)
	require.NotNil(t, err)
	assert.Equal(t, jobpoll.SubmitUnderWay, err.Meaning)
	require.ErrorIs(t, err, jobpoll.ErrShutdown)
	_, err = submit(r, "late", polltest.Order{})
	require.NotNil(t, err)
	assert.Equal(t, jobpoll.SubmitNotSent, err.Meaning)
	require.ErrorIs(t, err, jobpoll.ErrShutdown)
	next.Clock.Advance(time.Minute)
	require.Len(t, submitOutcomes(next, "a"), 1)
	next.ended("R-a", jobpoll.ReasonSucceeded)
	assert.Empty(t, submitOutcomes(next, "b"), "it was told by Submit")
	assert.Empty(t, next.prov.Sends("b"))
}

func TestASendUnderWayIsGivenTheGraceOfTheShutdown(t *testing.T) {
	store := newShakyStore(nil)
	r := onStore(t, store, nil, func(_ *rig, c *jobpoll.Config) { c.ShutdownGrace = 20 * time.Second })
	b := r.BeginSubmit(t.Context(), submitOf(r, "c", polltest.Order{Answer: "queued slow 10s"}))
	r.Stop()
	job, err := submitted(t, b)
	require.Nil(t, err)
	assert.Equal(t, "R-c", job.ID)
	assert.Equal(t, "taken", storedSubmit(t, store, "c"))
}

// In package time, with Run beginning and ending around it.
func TestSubmissionsAndRunsThatComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := jobpoll.NewMemoryStore(nil)
		p, err := jobpoll.New(jobpoll.Config{Store: store, ShutdownGrace: 2 * time.Second, Routes: []jobpoll.Route{{Name: "r",
			Checker: jobpoll.CheckerFunc(func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
				return jobpoll.Report{State: jobpoll.StateRunning}, nil
			})}}})
		require.NoError(t, err)
		slow := func(d time.Duration) func(context.Context) (jobpoll.Sent, error) {
			return func(ctx context.Context) (jobpoll.Sent, error) {
				select {
				case <-time.After(d):
					return jobpoll.Sent{ID: d.String()}, nil
				case <-ctx.Done():
					return jobpoll.Sent{}, context.Cause(ctx)
				}
			}
		}
		var all sync.WaitGroup
		results := map[time.Duration]error{}
		var mu sync.Mutex
		for _, d := range []time.Duration{time.Second, 4 * time.Second, 30 * time.Second} {
			all.Go(func() { // before Run
				_, err := p.Submit(t.Context(), jobpoll.Submission{Job: jobpoll.Job{Route: "r", ClientKey: d.String()}, Send: slow(d)})
				mu.Lock()
				results[d] = err
				mu.Unlock()
			})
		}
		synctest.Wait()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()
		time.Sleep(3 * time.Second)
		stop()
		require.NoError(t, <-ended)
		all.Wait()
		require.NoError(t, results[time.Second])
		require.NoError(t, results[4*time.Second], "within the grace")
		require.ErrorIs(t, results[30*time.Second], jobpoll.ErrShutdown)
		require.NotErrorIs(t, results[30*time.Second], jobpoll.ErrNotSent)
	})
}

// A notice that came while the process was being lost is worth as much after it.
func TestAStoredNoticeAdoptsAStoredSubmission(t *testing.T) {
	store := newShakyStore(nil)
	r := onStore(t, store, nil, nil)
	r.BeginSubmit(t.Context(), submitOf(r, "c", polltest.Order{Answer: "hang", Lost: true}))
	require.NoError(t, r.notify(jobpoll.Notice{Key: key("R-c"), ClientKey: "c", Trust: jobpoll.TrustAuthoritative, Report: jobpoll.Report{State: jobpoll.StateSucceeded}}))
	next := onStore(t, crash(t, store.MemoryStore), r, nil)
	next.Clock.Settle()
	o := next.ended("R-c", jobpoll.ReasonSucceeded)
	assert.Equal(t, "c", o.Job.ClientKey)
	assert.Equal(t, jobpoll.ViaWebhook, o.Via)
	assert.Empty(t, next.looks("R-c"))
}
