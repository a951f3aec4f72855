package jobpoll

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

func decodeJob(rec Record) (storedJob, error) {
	var s storedJob
	var misfit *json.UnmarshalTypeError
	if err := json.Unmarshal(rec.Data, &s); err != nil && !errors.As(err, &misfit) { // a field that does not fit stays zero
		return s, fmt.Errorf("jobpoll: stored job %q cannot be read: %w", rec.ID, err)
	}
	if s.Version > recordVersion {
		return s, fmt.Errorf("jobpoll: stored job %q is of version %d, this library reads up to %d: update it", rec.ID, s.Version, recordVersion)
	}
	if err := s.Job.faults(); err != nil {
		return s, fmt.Errorf("jobpoll: stored job %q: %w", rec.ID, err)
	}
	key := s.Job.Key()
	if rec.ID != jobRecordID(key) || s.Outcome != nil && s.Outcome.Job.Key() != key || s.Again != nil && (s.Outcome == nil || s.Again.Key() != key) {
		return s, fmt.Errorf("jobpoll: stored job %q: it is about several jobs", rec.ID)
	}
	s.rev = rec.Rev
	return s, nil
}

// Restore loads what the Store holds: unresolved jobs go on where they were,
// at the pace of the budget; outcomes that were not delivered are delivered.
// It returns how many jobs it took up. Run does it if it was not called, so it
// is only needed to learn the number or the error before Run. Records that
// cannot be read are left where they are; the error joins them, and the others
// are restored all the same. Jobs of a route that is not configured wait,
// unseen but for a warning in the log, until AddRoute adds it.
//
// Restore asks for no lease: where another Poller has that of the Store, Run
// forgets what was restored. While Run waits for the lease Restore returns
// ErrNotOwner.
func (p *Poller) Restore(ctx context.Context) (int, error) {
	if p.store == nil {
		p.mu.Lock()
		p.restored = true
		p.mu.Unlock()
		return 0, nil
	}
	p.mu.Lock()
	refusal := p.tenancy.refusal()
	p.mu.Unlock()
	if refusal != nil {
		return 0, fmt.Errorf("jobpoll: Restore: %w", refusal)
	}
	n := 0
	var bad []error
	bounded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := p.line.clock.AfterFunc(storeTimeout, func() { cancel(errTimeout) }) // from one record to the next
	defer timer.Stop()
	err := p.guard(Key{}, "Store.Load", func() error {
		for rec, err := range p.store.Load(bounded) {
			if err != nil {
				return err
			}
			timer.Reset(storeTimeout)
			took, err := p.restoreRecord(rec)
			if err != nil {
				bad = append(bad, err)
			}
			if took {
				n++
			}
		}
		if bounded.Err() != nil {
			return contextError(bounded)
		}
		return nil
	})
	if err == nil {
		p.storeWorked(opGet | opLoad)
	}
	if err != nil {
		if ctx.Err() != nil {
			p.storeFailed(opLoad, "restore", err)
		} else {
			p.storeDown(opLoad, "restore", err)
		}
		return n, fmt.Errorf("jobpoll: Restore: %w", err)
	}
	p.replanSoon()
	p.mu.Lock()
	p.restored = true
	strangers := map[string]int{}
	for route, jobs := range p.orphans {
		strangers[route] = len(jobs)
	}
	p.mu.Unlock()
	p.waker.kick()
	for route, jobs := range strangers {
		p.log.Warn("stored jobs wait for a route that is not configured", "route", route, "jobs", jobs)
	}
	for _, e := range bad {
		p.storeFailed(opLoad, "record", e)
	}
	return n, errors.Join(bad...)
}

func (p *Poller) restoreOnce(ctx context.Context) error {
	p.mu.Lock()
	done := p.restored
	p.mu.Unlock()
	if done {
		return nil
	}
	_, err := p.Restore(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.restored {
		return nil // single bad records were reported and must not keep the rest from running
	}
	return err
}

func (p *Poller) restoreRecord(rec Record) (bool, error) {
	switch rec.Kind {
	case RecordJob:
		if p.knowsStored(rec) { // as all of them, where Restore was called before Run
			return false, nil
		}
		s, err := decodeJob(rec)
		if err != nil {
			return false, err
		}
		now, draw := p.lock()
		defer p.unlock()
		waits, known := p.superseded(&s)
		if known {
			return false, nil
		}
		if s.Outcome != nil && s.Told {
			p.bury(tombstone{outcome: *s.Outcome, rev: s.rev})
			waits.end(s.Outcome)
			for _, id := range s.Events {
				p.events.add(id)
			}
			return false, nil
		}
		if p.routes[s.Job.Route] == nil {
			p.orphans[s.Job.Route] = append(p.orphans[s.Job.Route], s)
			return true, nil
		}
		p.adopt(&s, now, draw)
		waits.join(p.find(s.Job.Key()))
		return true, nil
	case RecordNotice:
		return false, p.restoreNotice(rec)
	case RecordProfile:
		return false, p.restoreProfile(rec)
	case RecordBudget:
		return false, p.restoreBudget(rec)
	case RecordSubmission:
		return false, p.restoreSubmission(rec)
	}
	return false, nil
}

// knowsStored reports whether what we know of a job is surely as new as its
// record, without a look at its data.
func (p *Poller) knowsStored(rec Record) bool {
	k, ok := jobRecordKey(rec.ID)
	if !ok {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if rt := p.routes[k.Route]; rt != nil {
		if slot, ok := p.jobs.find(rt, k.ID); ok {
			return rec.Rev <= p.jobs.look(slot, &record{}).rev
		}
	}
	t, ok := p.ended.get(k)
	return ok && rec.Rev <= t.rev
}

// waiting is those who waited for a job that the store knows better.
type waiting struct {
	waiters   []*endWaiter
	followers []*follower
}

func (w *waiting) end(o *Outcome) {
	for _, v := range w.waiters {
		v.end(o, nil)
	}
	for _, f := range w.followers {
		f.over()
	}
}

func (w *waiting) join(r *record) {
	if r == nil { // its end could be told at once
		return
	}
	r.waiters, r.followers = append(r.waiters, w.waiters...), append(r.followers, w.followers...)
}

// superseded reports whether what we know of a stored job is as new as what is
// stored: otherwise another Poller has gone on with it since it was watched
// here, and it is forgotten, but for those who wait for it.
func (p *Poller) superseded(s *storedJob) (w waiting, known bool) {
	key := s.Job.Key()
	if _, busy := p.writes[key]; busy { // a Watch that has stored it, or is about to
		return w, true
	}
	if t, ok := p.ended.get(key); ok {
		if s.rev <= t.rev {
			return w, true
		}
		p.ended.drop(key)
		p.dropClient(t.outcome.Job.ClientKey, key)
	}
	r := p.find(key)
	if r == nil {
		return w, false
	}
	if s.rev <= r.rev || r.call != nil || r.served {
		return w, true
	}
	w = waiting{r.waiters, r.followers}
	if r.again != nil {
		w.waiters = append(w.waiters, r.again.waiters...)
	}
	r.waiters, r.followers, r.again = nil, nil, nil
	p.dropJob(r, ErrNotOwner)
	return w, false
}

// restoreNotice parks a stored notice again, or applies it to the job that has come meanwhile.
func (p *Poller) restoreNotice(rec Record) error {
	var n Notice
	if err := json.Unmarshal(rec.Data, &n); err != nil {
		return fmt.Errorf("jobpoll: stored notice %q cannot be read: %w", rec.ID, err)
	}
	normalize(&n.Report)
	now, draw := p.lock()
	defer p.unlock()
	p.sightSubmission(&n)
	parkedAs := n
	if n.Key.ID == "" {
		if k, ok := p.clientKey(n.ClientKey); ok {
			n.Key = k
		}
	}
	r := p.find(n.Key)
	switch {
	case r != nil:
	case p.early.has(&parkedAs):
		return nil // restored twice
	default:
		p.dropEarly(p.early.park(parkedAs, now))
		return nil
	}
	p.noticed(r.route, n, p.applyNotice(r, n, now, draw), true)
	p.hear(r, &n)
	p.dropNotice(parkedAs)
	return nil
}

// runsYet reports whether a job most likely has not ended: it is younger than
// such jobs take, or the provider gave it longer.
func (r *record) runsYet(now Stamp) bool {
	if finish := r.track.FinishAt; finish != 0 {
		return now < finish
	}
	return now < r.submitted.Add(expected(r.job.Expected, r.route.guide(r.job.Profile)))
}

// plansAreToCome reports whether a job is to go by a plan that there is not yet:
// the durations may be read after the jobs.
func (r *record) plansAreToCome() bool {
	return r.route.Schedule.goesByPlan() && r.route.planOf(&r.job) == nil
}

// end is the latest instant at which a job may be looked at for its own limits.
func (r *record) end() Stamp {
	at := r.submitted.Add(r.rules.MaxAge)
	if r.deadline != 0 {
		at = min(at, r.deadline)
	}
	return at
}

// adopt makes a stored job a watched one again.
func (p *Poller) adopt(s *storedJob, now Stamp, draw float64) {
	if p.find(s.Job.Key()) != nil {
		return
	}
	shift := p.line.shift()
	r := p.prepare(s.Job, now)
	r.track = s.Track.shifted(-shift)
	if rules := s.Rules.withDefaults(s.Job.Expected); rules != *r.rules {
		r.rules = &rules
	}
	r.polls, r.firstAt, r.lastAt = s.Polls, toSteady(s.FirstAt, shift), toSteady(s.LastAt, shift)
	r.report, r.word, r.rev, r.attempts, r.canceled = s.Report, s.Word, s.rev, s.Attempts, s.Canceled
	if s.Fetching && s.Report != nil && s.Report.State == StateSucceeded && r.route.fetcher != nil {
		done := *s.Report
		r.success, r.succeeded, r.next = &done, now, callFetch
	}
	if s.Outcome != nil {
		r.phase, r.outcome, r.stage = phaseEnding, s.Outcome, stageStore
		if s.Again != nil {
			r.again = &rewatch{rec: p.prepare(*s.Again, now)}
			p.resume(r.again.rec, s.Outcome, s.rev)
		}
	}
	r = p.admit(r, true)
	p.hearAgain(r, s.Events)
	if r.phase == phaseEnding {
		// It was counted when it ended; what is left is to tell it.
		p.undelivered++
		r.route.meter.released(r.submitted.Time(), int(r.track.Errors))
		p.releaseJobSlot(r, now)
		p.serve(r)
		return
	}
	// What the webhook told meanwhile may be lost: the ordinary schedule says
	// when to look first.
	d := p.decideWith(r, nil, now, draw)
	switch due := toSteady(s.DueAt, shift); {
	case d.stop == ReasonRateLimited:
		// The provider's wait outlasts the limit: no look comes first.
		p.finish(r, ending{reason: d.stop, via: ViaLocal, unfinished: r.track.GoodAt}, now)
		return
	case d.stop != ReasonNone:
		// One look comes first: the process may have been away for long.
		d = step{at: later(now, r.floor()), cause: CauseWake}
	case s.Cause == CausePlan && due > d.at && r.plansAreToCome() && d.cause != CauseParked && d.cause != CauseDeadline:
		d = step{at: min(due, r.end()), cause: CausePlan}
	case d.cause != CauseParked && due != 0 && due < d.at:
		d.at = later(due, r.floor()) // in the past too, so that the most overdue goes first
		if d.at < now && r.runsYet(now) {
			d.at = now // after all that may have ended
		}
	case d.cause != CauseParked && r.lastAt != 0 && r.lastAt <= now: // not from a clock ahead of ours
		d.at = later(d.at, r.lastAt.Add(r.gap()))
	}
	p.schedule(r, d, now)
	p.applyEarly(r, now, draw)
}
