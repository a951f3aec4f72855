package jobpoll_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An unsigned notice may name a job that exists: that of another submission.
func TestAnUnsignedNoticeCannotPassAnothersJobOffAsASubmissions(t *testing.T) {
	store := jobpoll.NewMemoryStore(polltest.NewClock(time.Time{}))
	r := onStore(t, store, nil, nil)
	_, err := submit(r, "other", polltest.Order{Script: "running; at 30s succeeded"})
	require.Nil(t, err)
	_, err = submit(r, "c", polltest.Order{Answer: "reset", Lost: true})
	require.NotNil(t, err)
	require.NoError(t, r.notify(jobpoll.Notice{Key: key("R-other"), ClientKey: "c"}))
	r.to(time.Minute)
	assert.Equal(t, jobpoll.SubmissionAmbiguous, submissionState(r, "c"))
	doubtful, gerr := store.Get(t.Context(), jobpoll.RecordSubmission, "c")
	require.NoError(t, gerr)
	r = onStore(t, &staleStore{store, []jobpoll.Record{doubtful}}, r, nil) // the other is not in memory any more
	require.NoError(t, r.notify(jobpoll.Notice{Key: key("R-other"), ClientKey: "c"}))
	r.to(2 * time.Minute)
	assert.Equal(t, jobpoll.SubmissionAmbiguous, submissionState(r, "c"))
	require.NoError(t, r.Resolve(t.Context(), "c", "R-c"))
	r.to(5 * time.Minute)
	r.ended("R-c", jobpoll.ReasonSucceeded)
}

// The look that a notice asks for may fail, and is made again; nobody is asked to
// look the job up who cannot.
func TestAJobThatANoticeNamesIsLookedAtAgainWhereTheLookFails(t *testing.T) {
	for _, answer := range []string{"reset slow 10s", "reset"} { // in doubt, and ambiguous
		fails := 2
		r := rigOf(t, func(r *rig, c *jobpoll.Config) {
			c.Routes[0].Checker = jobpoll.CheckerFunc(func(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
				if fails--; fails >= 0 {
					return jobpoll.Report{}, &jobpoll.CheckError{Kind: jobpoll.ErrorTransient, Status: 503}
				}
				return r.prov.Check(ctx, job)
			})
		})
		b := r.BeginSubmit(t.Context(), submitOf(r, "c", polltest.Order{Answer: answer, Lost: true, Script: "running; at 40s succeeded"}))
		r.to(3 * time.Second)
		require.NoError(t, r.notify(jobpoll.Notice{Key: key("R-c"), ClientKey: "c"}))
		r.to(10 * time.Second)
		if i, ok := r.Find("c"); ok && i.Submission != nil {
			assert.Zero(t, i.Submission.Lookups)
			assert.NotContains(t, i.Submission.Message, "nil pointer")
		}
		r.to(5 * time.Minute)
		_, err := submitted(t, b)
		if answer != "reset" {
			require.Nil(t, err)
		}
		r.ended("R-c", jobpoll.ReasonSucceeded)
		r.atZero()
	}
}

// An id of an event may be as long as a header.
func TestAnEventWithALongIDIsKnownAgain(t *testing.T) {
	for name, id := range map[string]string{"long": strings.Repeat("e", 8<<10), "no text": "\xff\x00", "both": strings.Repeat("\xff", 5000)} {
		kinds := map[jobpoll.NoticeKind]int{}
		r := rigOf(t, func(_ *rig, c *jobpoll.Config) {
			c.Hooks.Noticed = func(e jobpoll.NoticeEvent) {
				kinds[e.Kind]++
				assert.LessOrEqual(t, len(e.EventID), 1024)
			}
		})
		r.prov.Default("running")
		n := jobpoll.Notice{Key: key("j"), EventID: id, Report: jobpoll.Report{State: jobpoll.StateRunning}}
		require.NoError(t, r.notify(n), name)
		require.NoError(t, r.notify(n), name)
		r.watch("j")
		require.NoError(t, r.notify(n), name)
		assert.Equal(t, 2, kinds[jobpoll.NoticeDuplicate], "%s: %v", name, kinds)
		n.EventID += "x"
		require.NoError(t, r.notify(n), name)
		assert.Equal(t, 2, kinds[jobpoll.NoticeDuplicate], name)
	}
}

func TestThePlacesOfAllThatWaitAreThoseThatEachIsTold(t *testing.T) {
	r := rigOf(t, withLimits(jobpoll.Limits{Jobs: 1}))
	_, err := submit(r, "first", polltest.Order{Script: "running"})
	require.Nil(t, err)
	for i := range 50 {
		r.BeginSubmit(t.Context(), submitOf(r, fmt.Sprint(i), polltest.Order{}))
	}
	n := 0
	for i := range r.Submissions() {
		n++
		one, ok := r.Find(i.Job.ClientKey)
		require.True(t, ok)
		require.Equal(t, one.Submission, i.Submission)
		require.Equal(t, n, i.Submission.Position)
	}
	assert.Equal(t, 50, n)
}

// As after a crash of one that had bought a lot, or was about to.
func TestManyStoredSubmissionsAreTakenCareOfSomeAtATime(t *testing.T) {
	const all = 6000
	synctest.Test(t, func(t *testing.T) {
		store := jobpoll.NewMemoryStore(nil)
		for i := range all {
			rec, err := jobpoll.Intent(jobpoll.Job{Route: "r", ClientKey: fmt.Sprint(i)}, time.Now())
			require.NoError(t, err)
			require.NoError(t, store.Put(t.Context(), []jobpoll.Record{rec}))
		}
		var at, most, told atomic.Int64
		p, err := jobpoll.New(jobpoll.Config{Store: store, Routes: []jobpoll.Route{{Name: "r", Checker: jobpoll.CheckerFunc(func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			return jobpoll.Report{State: jobpoll.StateRunning}, nil
		})}}, Callbacks: jobpoll.Callbacks{OnStop: func(context.Context, jobpoll.Outcome) error {
			if n := at.Add(1); n > most.Load() {
				most.Store(n)
			}
			told.Add(1)
			time.Sleep(time.Second)
			at.Add(-1)
			return nil
		}}})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()
		time.Sleep(5 * time.Second)
		assert.EqualValues(t, all, told.Load())
		assert.LessOrEqual(t, most.Load(), int64(4096))
		assert.Zero(t, store.Len())
		stop()
		require.NoError(t, <-ended)
	})
}

// staleStore gives a record once more that has been replaced meanwhile, as a slow
// Load may.
type staleStore struct {
	*jobpoll.MemoryStore
	stale []jobpoll.Record
}

func (s *staleStore) Load(ctx context.Context) iter.Seq2[jobpoll.Record, error] {
	return func(yield func(jobpoll.Record, error) bool) {
		for _, rec := range s.stale {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

func TestAnIntentThatIsReadLateDoesNotUndoWhatWasSent(t *testing.T) {
	store := &staleStore{MemoryStore: jobpoll.NewMemoryStore(polltest.NewClock(time.Time{}))}
	r := onStore(t, store, nil, nil)
	_, err := submit(r, "c", polltest.Order{Script: "running; at 60s succeeded"})
	require.Nil(t, err)
	rec, ierr := jobpoll.Intent(jobpoll.Job{Route: "r", ClientKey: "c"}, r.start)
	require.NoError(t, ierr)
	store.stale = []jobpoll.Record{rec}
	_, rerr := r.Restore(t.Context())
	require.NoError(t, rerr)
	r.to(30 * time.Second)
	assert.Empty(t, submitOutcomes(r, "c"), "nobody is told that it was not sent")
	assert.Equal(t, "taken", storedSubmit(t, store, "c"))
	r.to(2 * time.Minute)
	r.ended("R-c", jobpoll.ReasonSucceeded)
}
