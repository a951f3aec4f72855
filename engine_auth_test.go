package jobpoll_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// login is a Checker whose credentials can be refused, with a Refresher.
type login struct {
	jobpoll.Checker
	mu        sync.Mutex
	refused   bool
	refreshes int
	refresh   func(context.Context, *login) error
}

func (l *login) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	rep, err := l.Checker.Check(ctx, job) // counts the look
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused {
		return jobpoll.Report{}, &jobpoll.CheckError{Kind: jobpoll.ErrorAuth, Status: 401}
	}
	return rep, err
}

func (l *login) Refresh(ctx context.Context) error {
	l.mu.Lock()
	l.refreshes++
	l.mu.Unlock()
	return l.refresh(ctx, l)
}

func (l *login) refuse(on bool) { l.mu.Lock(); l.refused = on; l.mu.Unlock() }

func (l *login) calls() int { l.mu.Lock(); defer l.mu.Unlock(); return l.refreshes }

// noRefresh hides the Refresher.
type noRefresh struct{ l *login }

func (n noRefresh) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	return n.l.Check(ctx, job)
}

func authRig(t *testing.T, refresh func(context.Context, *login) error) (*rig, *login) {
	l := &login{refresh: refresh}
	r := rigOf(t, func(r *rig, c *jobpoll.Config) {
		l.Checker = r.prov
		c.Routes[0].Checker = l
		if refresh == nil {
			c.Routes[0].Checker = noRefresh{l}
		}
	})
	r.prov.Default("running")
	return r, l
}

func TestOneRefreshRenewsTheCredentialsOfAllJobs(t *testing.T) {
	r, l := authRig(t, func(_ context.Context, l *login) error { l.refuse(false); return nil })
	r.watch(ids("j", 50)...)
	r.to(7 * time.Second)
	for range 3 { // they expire again and again
		l.refuse(true)
		n := l.calls()
		r.Clock.Advance(5 * time.Second)
		assert.Equal(t, n+1, l.calls(), "one for all jobs")
		r.Clock.Advance(6 * time.Second)
		m := r.Metrics()
		assert.Equal(t, 50, m.Total.Unresolved)
		for _, id := range ids("j", 50) {
			info, _ := r.Job(key(id))
			require.Equal(t, jobpoll.ErrorNone, info.ErrorKind, id)
			at := r.looks(id)
			require.LessOrEqual(t, at[len(at)-1]-at[len(at)-2], 6.0, "%s looks again at once", id)
		}
	}
}

func TestRefusedCredentialsHoldTheRouteWithOneProbeAMinute(t *testing.T) {
	for name, refresh := range map[string]func(context.Context, *login) error{
		"no refresher":      nil,
		"refresh fails":     func(context.Context, *login) error { return errors.New("no") },
		"refresh panics":    func(context.Context, *login) error { panic("no") },
		"refresh exits":     func(context.Context, *login) error { runtime.Goexit(); return nil },
		"refresh in vain":   func(context.Context, *login) error { return nil },
		"refresh hangs":     func(ctx context.Context, _ *login) error { <-ctx.Done(); return ctx.Err() },
		"refresh is wedged": nil, // set below: it needs the clock
	} {
		t.Run(name, func(t *testing.T) {
			var r *rig
			if name == "refresh is wedged" {
				refresh = func(ctx context.Context, _ *login) error {
					return r.Clock.Sleep(context.WithoutCancel(ctx), 5*time.Minute)
				}
			}
			r, l := func() (*rig, *login) { rr, l := authRig(t, refresh); r = rr; return rr, l }()
			r.watch(ids("j", 50)...)
			r.to(7 * time.Second)
			l.refuse(true)
			r.to(11 * time.Second)
			first := r.prov.Total()
			assert.Equal(t, 100+50*boolInt(name == "refresh in vain"), first, "what was under way is refused, and all again after a refresh in vain")
			r.to(4 * time.Minute)
			probes := r.prov.Total() - first
			assert.LessOrEqual(t, probes, 5, "one probe a minute")
			assert.GreaterOrEqual(t, probes, 3)
			assert.Equal(t, 50, r.Metrics().Total.Unresolved)
			if refresh != nil {
				assert.Equal(t, 1, l.calls())
			}

			l.refuse(false)
			r.Clock.Advance(75 * time.Second)
			for _, id := range ids("j", 50) {
				info, _ := r.Job(key(id))
				require.Equal(t, jobpoll.ErrorNone, info.ErrorKind, "%s: a good answer releases all", id)
			}
			r.Clock.Advance(5 * time.Minute)
			assert.Equal(t, 50, r.Metrics().Total.Unresolved)
		})
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestJobsStopAfterTheAuthGrace(t *testing.T) {
	r, l := authRig(t, nil)
	r.watch(ids("j", 20)...)
	r.to(7 * time.Second)
	l.refuse(true)
	r.to(9*time.Minute + 50*time.Second)
	assert.Empty(t, r.rec.Outcomes())
	r.to(9*time.Minute + 55*time.Second)
	r.watch("young")
	require.NoError(t, r.notify(jobpoll.Notice{Key: key("j000"), Report: jobpoll.Report{State: jobpoll.StateSucceeded}, Trust: jobpoll.TrustAuthoritative}))
	r.to(11*time.Minute + 20*time.Second)
	r.ended("j000", jobpoll.ReasonSucceeded)
	for _, id := range ids("j", 20)[1:] {
		o := r.ended(id, jobpoll.ReasonAuth)
		assert.True(t, o.Reason.Resumable())
	}
	assert.Equal(t, 1, r.Metrics().Total.Unresolved, "a job that came later has a grace of its own")
	l.refuse(false)
	r.to(14 * time.Minute)
	info, ok := r.Job(key("young"))
	require.True(t, ok)
	assert.Equal(t, jobpoll.StateRunning, info.State)
	// A stopped job can be watched anew.
	r.watch("j001")
	r.Clock.Advance(6 * time.Second)
	info, _ = r.Job(key("j001"))
	assert.Nil(t, info.Outcome)
}
