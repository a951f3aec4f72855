package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jobpoll/jobpoll"
)

// patience is how long a job may be in the making. The default rules would wait
// longer for the job that hangs than somebody who looks on.
const patience = 11 * time.Minute

// accountRate is how many calls a second the account may make, at all of so many
// providers: less than all of them together would take.
func accountRate(providers int) float64 {
	return min(10, float64(providers)*published.PerSecond)
}

// poller is a Poller on the providers, as a service has it.
type poller struct {
	*jobpoll.Poller
	vendors []*vendor
	budgets map[string]*jobpoll.Budget // of each provider
	clock   fastClock
	ends    *ends
	board   *board
}

func newPoller(vendors []*vendor, p plan, clock fastClock, ends *ends, b *board) (*poller, error) {
	// Looks and submissions share the account; submissions, which earn the
	// money, are sure of a part. Each provider is a little under its own limit.
	account := jobpoll.NewBudget("account", jobpoll.Limits{
		Total:  jobpoll.Limit{Rate: accountRate(len(vendors))},
		Submit: jobpoll.LaneLimits{Reserve: jobpoll.Limit{Rate: 2}},
	})
	s := &poller{vendors: vendors, budgets: make(map[string]*jobpoll.Budget), clock: clock, ends: ends, board: b}
	cfg := jobpoll.Config{
		Clock:     clock,
		Budget:    account,
		Stop:      jobpoll.StopRules{MaxProcessing: p.patience},
		Callbacks: jobpoll.Callbacks{OnUpdate: s.updated, OnStop: s.stopped},
		Hooks:     jobpoll.Hooks{RateLimited: s.limited},
	}
	for _, v := range vendors {
		s.budgets[v.name] = account.Child(v.name, jobpoll.Limits{Total: jobpoll.Limit{Rate: 0.9 * published.PerSecond}})
		cfg.Routes = append(cfg.Routes, jobpoll.Route{Name: v.name, Checker: v.adapter, Budget: s.budgets[v.name], CheckTimeout: clock.real(jobpoll.DefaultCheckTimeout)})
	}
	var err error
	s.Poller, err = jobpoll.New(cfg)
	return s, err
}

// submitAll submits each order when it arrives.
func (s *poller) submitAll(ctx context.Context, orders []order) error {
	var jobs sync.WaitGroup
	errs := make([]error, len(orders))
	for i, o := range orders {
		jobs.Go(func() {
			if s.clock.sleep(ctx, o.arrives-s.clock.since()) {
				errs[i] = s.submit(ctx, o)
			}
		})
	}
	jobs.Wait()
	return errors.Join(errs...)
}

// submit submits one order and watches its job. What the provider refuses for
// too many calls is submitted again when the budget says so: nothing was bought.
func (s *poller) submit(ctx context.Context, o order) error {
	for {
		done, err := s.budgets[o.provider].Acquire(ctx, jobpoll.LaneSubmit)
		if err != nil {
			return err
		}
		job, _, err := of(s.vendors, o).adapter.Submit(ctx, o.submission())
		if err != nil {
			done(err)
			var ce *jobpoll.CheckError
			if errors.As(err, &ce) && ce.Kind == jobpoll.ErrorRateLimited {
				s.board.event("%s refuses a submission: too many calls", o.provider)
				continue
			}
			return err
		}
		job.Route, job.ClientKey, job.Expected = o.provider, o.key(), classes[o.class].expected
		// It is bought: it must be watched, also while shutting down.
		err = s.Watch(context.WithoutCancel(ctx), job)
		done(nil) // after Watch: its slot is not free in between
		s.board.set(o.n, jobpoll.StateQueued)
		return err
	}
}

func (s *poller) updated(_ context.Context, u jobpoll.Update) { s.board.set(number(u.Job), u.State) }

func (s *poller) stopped(_ context.Context, o jobpoll.Outcome) error {
	n := number(o.Job)
	reason := o.Reason.String()
	if f := o.Report.Failure; f != nil && o.Reason == jobpoll.ReasonFailed {
		reason = fmt.Sprintf("%s (%s: %s)", o.Reason, f.Kind, f.Message)
	}
	s.ends.tell(n, end{id: o.Job.ID, at: s.clock.Now(), state: o.State, reason: reason, looks: o.Polls})
	s.board.stop(n, o.Reason)
	s.board.event("%-8s  %s after %s: %s", s.board.class(n), reason, looks(o.Polls), o.Job.Key())
	return nil // taken: it is not told again
}

func (s *poller) limited(e jobpoll.CoolEvent) {
	s.board.event("%s asks to be left alone until %s: its looks wait", e.Route, minutes(e.Until.Sub(s.clock.start)))
}

// number is that of the order that a job was submitted for.
func number(job jobpoll.Job) int {
	n := 0
	_, _ = fmt.Sscanf(job.ClientKey, "order-%d", &n) // it is from order.key
	return n
}
