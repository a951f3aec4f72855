package jobpoll_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// talkingChecker answers looks, look-ups and cancellations with one error.
type talkingChecker struct {
	jobpoll.Checker
	err error
}

func (c talkingChecker) Cancel(context.Context, jobpoll.Job) error { return c.err }

func (c talkingChecker) Lookup(context.Context, jobpoll.Lost) (jobpoll.Finding, error) {
	return jobpoll.Finding{}, c.err
}

func TestTheHookIsToldWhatAnAnswerCloses(t *testing.T) {
	says := func(kind jobpoll.ErrorKind, scope jobpoll.Scope, wait time.Duration) error {
		return &jobpoll.CheckError{Kind: kind, Hint: jobpoll.Hint{Scope: scope, RetryAfter: wait}}
	}
	const wait = 100 * time.Second
	limited := says(jobpoll.ErrorRateLimited, jobpoll.ScopeDefault, wait)
	look, send, cancel, lookup, doubt, late := "look", "send", "cancel", "look-up of a lost job", "look-up of a submission", "look whose watch has ended"
	type want struct {
		budget string
		lane   jobpoll.Lane
		kind   jobpoll.ErrorKind
		scope  jobpoll.Scope
	}
	status := func(kind jobpoll.ErrorKind) *want {
		return &want{"a/r", jobpoll.LaneStatus, kind, jobpoll.ScopeDefault}
	}
	submits := func(kind jobpoll.ErrorKind) *want {
		return &want{"a/r", jobpoll.LaneSubmit, kind, jobpoll.ScopeDefault}
	}
	for name, tt := range map[string]struct {
		call    string
		err     error
		want    *want // nil: silence
		limited uint64
	}{
		"a rate limit":                        {look, limited, status(jobpoll.ErrorRateLimited), 1},
		"too many jobs at once":               {look, says(jobpoll.ErrorConcurrency, jobpoll.ScopeDefault, wait), status(jobpoll.ErrorConcurrency), 1},
		"of the budget":                       {look, says(jobpoll.ErrorRateLimited, jobpoll.ScopeBudget, wait), &want{"a/r", jobpoll.LaneStatus, jobpoll.ErrorRateLimited, jobpoll.ScopeBudget}, 1},
		"of the account":                      {look, says(jobpoll.ErrorRateLimited, jobpoll.ScopeAccount, wait), &want{"a", jobpoll.LaneStatus, jobpoll.ErrorRateLimited, jobpoll.ScopeAccount}, 1},
		"of the job":                          {look, says(jobpoll.ErrorRateLimited, jobpoll.ScopeJob, wait), &want{"", jobpoll.LaneStatus, jobpoll.ErrorRateLimited, jobpoll.ScopeJob}, 1},
		"a 503 with a wait":                   {look, says(jobpoll.ErrorTransient, jobpoll.ScopeDefault, wait), status(jobpoll.ErrorTransient), 0},
		"a 503 without one":                   {look, says(jobpoll.ErrorTransient, jobpoll.ScopeDefault, 0), nil, 0},
		"a 503 with a wait, of the job":       {look, says(jobpoll.ErrorTransient, jobpoll.ScopeJob, wait), nil, 0},
		"a quota":                             {look, says(jobpoll.ErrorQuota, jobpoll.ScopeDefault, wait), nil, 0},
		"a plain error":                       {look, errors.New("cut"), nil, 0},
		"an answer that nobody waits for":     {late, limited, status(jobpoll.ErrorRateLimited), 0},
		"a submission":                        {send, limited, submits(jobpoll.ErrorRateLimited), 1},
		"a submission, of the account":        {send, says(jobpoll.ErrorConcurrency, jobpoll.ScopeAccount, wait), &want{"a", jobpoll.LaneSubmit, jobpoll.ErrorConcurrency, jobpoll.ScopeAccount}, 1},
		"a submission, of the job":            {send, says(jobpoll.ErrorRateLimited, jobpoll.ScopeJob, wait), nil, 1},
		"a submission that meets a quota":     {send, says(jobpoll.ErrorQuota, jobpoll.ScopeDefault, wait), submits(jobpoll.ErrorQuota), 0},
		"a cancellation":                      {cancel, limited, status(jobpoll.ErrorRateLimited), 1},
		"a cancellation that meets a 503":     {cancel, says(jobpoll.ErrorTransient, jobpoll.ScopeDefault, wait), status(jobpoll.ErrorTransient), 0},
		"a look-up":                           {lookup, limited, status(jobpoll.ErrorRateLimited), 1},
		"a look-up, of the job":               {lookup, says(jobpoll.ErrorRateLimited, jobpoll.ScopeJob, wait), &want{"", jobpoll.LaneStatus, jobpoll.ErrorRateLimited, jobpoll.ScopeJob}, 1},
		"a look-up whose submission was lost": {doubt, limited, status(jobpoll.ErrorRateLimited), 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *synced) {
				var mu sync.Mutex
				var all []jobpoll.CoolEvent
				b.check = func(ctx context.Context, _ jobpoll.Job) (jobpoll.Report, error) {
					switch tt.call {
					case look:
						return jobpoll.Report{}, tt.err
					case lookup:
						return jobpoll.Report{}, &jobpoll.CheckError{Kind: jobpoll.ErrorNoSuchJob}
					case late:
						time.Sleep(time.Second)
						return jobpoll.Report{}, tt.err
					}
					return jobpoll.Report{State: jobpoll.StateRunning}, nil
				}
				b.start(func(c *jobpoll.Config, r *jobpoll.Route) {
					c.Budget = jobpoll.NewBudget("a", jobpoll.Limits{})
					c.Stop.MissingGrace, c.Stop.MissingLooks = time.Second, 1
					c.Hooks.RateLimited = func(e jobpoll.CoolEvent) { mu.Lock(); all = append(all, e); mu.Unlock() }
					r.Checker = talkingChecker{r.Checker, tt.err}
				})
				key := jobpoll.Key{Route: "r"}
				submitting, leave := context.WithCancel(t.Context())
				defer leave()
				switch tt.call {
				case send, doubt:
					err := tt.err
					if tt.call == doubt {
						err = errors.New("reset")
					}
					go func() {
						_, _ = b.Submit(submitting, jobpoll.Submission{Job: jobpoll.Job{Route: "r", ClientKey: "c"}, Send: func(context.Context) (jobpoll.Sent, error) { return jobpoll.Sent{}, err }})
					}()
				default:
					key = b.watch("j")
				}
				switch tt.call {
				case cancel:
					require.Error(t, b.Cancel(t.Context(), key, nil))
				case late:
					b.sleep(2.5)
					require.NoError(t, b.Abandon(t.Context(), key, nil))
				}
				events := func() []jobpoll.CoolEvent {
					mu.Lock()
					defer mu.Unlock()
					return slices.Clone(all)
				}
				for waited := 0; waited < 60 && b.Metrics().Total.RateLimited == 0 && len(events()) == 0; waited++ {
					b.sleep(1)
				}
				leave()
				synctest.Wait()
				told := events()
				m := b.Metrics()
				assert.Equal(t, tt.limited, m.Routes["r"].RateLimited)
				assert.Equal(t, tt.limited, m.Total.RateLimited)
				closed := map[string]time.Time{}
				for name, n := range m.Budgets {
					for lane, until := range map[jobpoll.Lane]time.Time{jobpoll.LaneStatus: n.Status.ClosedUntil, jobpoll.LaneSubmit: n.Submit.ClosedUntil} {
						if !until.IsZero() {
							closed[name+" "+lane.String()] = until
						}
					}
				}
				if tt.want == nil {
					assert.Empty(t, told)
					assert.Empty(t, closed)
					return
				}
				require.Len(t, told, 1)
				e := told[0]
				assert.Equal(t, *tt.want, want{e.Budget, e.Lane, e.Kind, e.Scope})
				assert.Equal(t, "r", e.Route)
				assert.Equal(t, key, e.Key)
				if e.Budget == "" {
					assert.Empty(t, closed)
				} else {
					require.Len(t, closed, 1)
					assert.WithinDuration(t, closed[e.Budget+" "+e.Lane.String()], e.Until, time.Millisecond)
				}
				assert.WithinDuration(t, time.Now().Add(wait), e.Until, time.Second)
			})
		})
	}
}

// What the user's own calls close is known to the user, and what closes again
// after a restart was told before it.
func TestTheHookIsSilentOnWhatIsKnown(t *testing.T) {
	store := newShakyStore(nil)
	told := 0
	with := func(_ *rig, c *jobpoll.Config) {
		c.Budget = jobpoll.NewBudget("a", jobpoll.Limits{})
		c.Hooks.RateLimited = func(jobpoll.CoolEvent) { told++ }
	}
	var budget *jobpoll.Budget
	a := onStore(t, store, nil, func(r *rig, c *jobpoll.Config) { with(r, c); budget = c.Budget })
	done, err := budget.Acquire(t.Context(), jobpoll.LaneStatus)
	require.NoError(t, err)
	done(&jobpoll.CheckError{Kind: jobpoll.ErrorRateLimited, Hint: jobpoll.Hint{RetryAfter: time.Hour}})
	a.to(time.Minute)
	assert.Zero(t, told)
	b := onStore(t, store, a, with)
	b.to(2 * time.Minute)
	assert.False(t, b.Metrics().Budgets["a"].Status.ClosedUntil.IsZero())
	assert.Zero(t, told)
}
