package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/jobpoll/jobpoll"
)

// soak lets jobpoll work for long at the limit of a budget, with jobs that come
// and end in every way.
type soak struct {
	jobs    int           // alive at a time
	longest time.Duration // the longest life
	lasts   time.Duration

	ledger   *ledger
	agenda   *agenda
	budget   *jobpoll.Budget
	poller   *jobpoll.Poller
	begin    time.Time
	profiles []string
	vacant   chan struct{} // one for each job that ended
}

// soakCalls is the budget in calls per second. The jobs want more: a look each
// longest/12, and the calls that submit them.
func soakCalls(jobs int, longest time.Duration) float64 {
	return 7.5 * float64(jobs) / longest.Seconds()
}

func newSoak(jobs int, longest, lasts time.Duration) *soak {
	// A life is half of the longest in the mean; twice as many are room enough.
	most := jobs * (3 + 4*int(lasts/longest+1))
	calls := soakCalls(jobs, longest)
	s := &soak{
		jobs: jobs, longest: longest, lasts: lasts,
		ledger: newLedger(most), agenda: newAgenda(longest), begin: time.Now(), profiles: profileNames(),
		vacant: make(chan struct{}, jobs+1),
		budget: jobpoll.NewBudget("account", jobpoll.Limits{
			Total:  jobpoll.Limit{Rate: calls},
			Submit: jobpoll.LaneLimits{Reserve: jobpoll.Limit{Rate: calls / 3}},
		}),
	}
	var err error
	s.poller, err = jobpoll.New(jobpoll.Config{
		Routes:        []jobpoll.Route{{Name: benchRoute, Checker: jobpoll.CheckerFunc(s.check), Schedule: s.schedule()}},
		Budget:        s.budget,
		Stop:          jobpoll.StopRules{MaxErrors: 3, MaxAge: jobpoll.NoLimit},
		Callbacks:     jobpoll.Callbacks{OnStop: s.stopped},
		ShutdownGrace: 5 * time.Second,
	})
	if err != nil {
		panic(err)
	}
	return s
}

func (s *soak) schedule() jobpoll.Schedule {
	gap := s.longest / 12
	return jobpoll.Schedule{Delays: []time.Duration{gap}, MaxDelay: gap, MinDelay: min(gap/4, jobpoll.DefaultMinDelay)}
}

func (s *soak) check(_ context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	n := indexOf(job.ID)
	over := time.Since(job.SubmittedAt) >= lifeOf(n, s.longest)
	return answer(n, over, s.ledger.look(n))
}

func (s *soak) stopped(_ context.Context, o jobpoll.Outcome) error {
	n := indexOf(o.Job.ID)
	if s.ledger.refuse(n) {
		return errLater
	}
	s.ledger.end(n, o.Reason)
	select {
	case s.vacant <- struct{}{}:
	default:
		s.ledger.fault("job %d ended where none should live", n)
	}
	return nil
}

func key(n int) jobpoll.Key { return jobpoll.Key{Route: benchRoute, ID: idOf(n)} }

// start begins to watch one more job.
func (s *soak) start(ctx context.Context) {
	n, ok := s.ledger.next()
	if !ok {
		s.ledger.fault("more jobs ended than there is room to account for")
		return
	}
	now := time.Now()
	job := jobpoll.Job{Route: benchRoute, ID: idOf(n), Profile: s.profiles[n%profileCount], SubmittedAt: now, Deadline: now.Add(4 * s.longest)}
	end := now.Sub(s.begin) + lifeOf(n, s.longest)
	switch fateOf(n) {
	case fateEarly:
		s.notify(ctx, n)
	case fateDeadline:
		job.Deadline = now.Add(lifeOf(n, s.longest))
	case fateNotified, fateAbandoned:
		s.agenda.add(n, end)
	}
	// A job that was counted is also watched, whenever the soak ends.
	if err := s.poller.Watch(context.WithoutCancel(ctx), job); err != nil {
		s.ledger.fault("Watch: %v", err)
	}
}

func (s *soak) notify(ctx context.Context, n int) {
	notice := jobpoll.Notice{Key: key(n), Report: succeeded(n), Trust: jobpoll.TrustAuthoritative}
	sent := 1
	if twice(n) {
		notice.EventID, sent = "event-"+idOf(n), 2
	}
	for range sent {
		if err := s.poller.Notify(ctx, notice); err != nil {
			s.ledger.fault("Notify: %v", err)
		}
	}
}

// feed puts a new job into each vacant place, as a service that submits them:
// with a call of the other lane, which shares the account.
func (s *soak) feed(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.vacant:
		}
		done, err := s.budget.Acquire(ctx, jobpoll.LaneSubmit)
		if err != nil {
			return // ctx has ended
		}
		s.start(ctx)
		done(nil)
	}
}

// act does what is on the agenda.
func (s *soak) act(ctx context.Context) {
	ticker := time.NewTicker(agendaStep)
	defer ticker.Stop()
	var due []int
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		due = s.agenda.take(time.Since(s.begin), due)
		for _, n := range due {
			if fateOf(n) == fateNotified {
				s.notify(ctx, n)
			} else if err := s.poller.Abandon(ctx, key(n), nil); err != nil {
				s.ledger.fault("Abandon: %v", err)
			}
		}
	}
}

// feeders are how many submissions can be under way.
const feeders = 8

// ramp is how long the first jobs take to come, and warm when all is as it will
// be: their first gaps and lives are over.
func (s *soak) ramp() time.Duration { return min(s.longest/6, s.lasts/6) }
func (s *soak) warm() time.Duration { return min(s.longest, s.lasts/3) }

// fill starts the first jobs, spread over the ramp.
func (s *soak) fill(ctx context.Context) {
	for i := range s.jobs {
		if i%64 == 0 {
			time.Sleep(time.Until(s.begin.Add(s.ramp() * time.Duration(i) / time.Duration(s.jobs))))
			if ctx.Err() != nil {
				return
			}
		}
		s.start(ctx)
	}
}

// live runs it all for the time of the soak, ends it, and gives what was seen.
func (s *soak) live(ctx context.Context, said func(sample)) (verdict, error) {
	before := runtime.NumGoroutine()
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- s.poller.Run(running) }()

	working, leave := context.WithCancel(ctx)
	var crew sync.WaitGroup
	crew.Go(func() { s.fill(working) })
	crew.Go(func() { s.act(working) })
	for range feeders {
		crew.Go(func() { s.feed(working) })
	}
	v := verdict{samples: s.observe(ctx, said)}
	leave()
	crew.Wait()

	s.ledger.closing.Store(true)
	err := s.close(ctx)
	stop()
	err = errors.Join(err, <-ended)
	v.metrics, v.leaked = s.poller.Metrics(), runtime.NumGoroutine()-before
	v.faults = s.ledger.audit()
	s.judgeEnd(&v)
	return v, errors.Join(err, ctx.Err())
}

// close abandons what still lives, and waits until all ends were taken.
func (s *soak) close(ctx context.Context) error {
	for info := range s.poller.Jobs() {
		if info.Outcome != nil {
			continue
		}
		if err := s.poller.Abandon(ctx, info.Job.Key(), errors.New("the soak is over")); err != nil && !errors.Is(err, jobpoll.ErrUnknownJob) {
			s.ledger.fault("Abandon: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := s.poller.Drain(ctx); err != nil {
		return fmt.Errorf("what was abandoned does not end: %w", err)
	}
	return nil
}
