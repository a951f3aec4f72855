package jobpoll

import (
	"slices"
	"time"
)

type phase uint8

const (
	phaseWaiting phase = iota // for its due time
	phaseReady                // due, waits for a worker and the budget
	phaseCalling              // a call is under way
	phaseEnding               // the watch has ended, the outcome is on its way
)

// record is all that the engine keeps of one job, unpacked: see jobTable. A
// field that is added needs a place in pack.go. Guarded by Poller.mu; its times
// are on the timeline.
type record struct {
	slot  int32
	gen   uint32
	phase phase
	cause Cause
	next  callKind // what the next call is
	poked Cause    // a look asked for while a call was under way

	route     *route
	job       Job // as the user knows it, with wall times
	submitted Stamp
	notBefore Stamp
	deadline  Stamp
	rules     *StopRules
	track     Track
	planned   Stamp
	report    *Report // the last good one
	success   *Report // seen, waits for its output
	succeeded Stamp
	word      string // the last unknown word that was told

	polls           int
	firstAt, lastAt Stamp
	lookups         int32
	call            *lookCall // under way
	stuck           *lookCall // given up, but has not returned

	update    *Update // not yet told
	followers []*follower
	waiters   []*endWaiter

	again    *rewatch // watched anew once its end has been told
	resumeAt Stamp    // of one that is: the earliest first look

	outcome  *Outcome
	endErr   error // what lies behind the end, where it is an error
	stage    stage
	attempts int32 // of OnStop
	storeErr int32 // failures of the store in a row
	told     bool  // stored: waiters have been told
	lateTold bool  // its late end has been told
	held     bool  // kept back by refused credentials
	canceled bool  // the provider has taken a cancellation
	served   bool  // a runner has it, or it waits for one
	rev      uint64
	stale    bool // the stored record is behind

	early   Stamp         // wall time of the submission, where the clock of who submitted is ahead of ours
	shift   time.Duration // wall clock minus timeline when it was prepared
	kept    Report        // what report points to
	exact   bool          // the times of job can be made from those of the timeline
	touched bool          // in jobTable.touched
	gone    bool          // taken out of the table
}

// to moves a record to another phase and keeps count of the due ones.
func (r *record) to(next phase) {
	if r.phase == phaseReady {
		r.route.waiting--
	}
	if next == phaseReady {
		r.route.waiting++
	}
	r.phase = next
}

func (r *record) handle() handle { return handle{r.slot, r.gen} }

// touch notes that the stored record is behind.
func (p *Poller) touch(r *record) {
	if r.stale || p.store == nil {
		return
	}
	r.stale = true
	p.fallBehind()
	if len(p.dirty) > 2*p.jobs.Len()+1024 { // a store that hangs
		p.dirty = slices.DeleteFunc(p.dirty, func(h handle) bool { return !p.jobs.alive(h) })
	}
	p.dirty = append(p.dirty, r.handle())
}

// get gives the record of a handle, nil if it has gone.
func (p *Poller) get(h handle) *record { return p.jobs.get(h) }

func (p *Poller) find(k Key) *record {
	if rt := p.routes[k.Route]; rt != nil {
		if slot, ok := p.jobs.find(rt, k.ID); ok {
			return p.jobs.at(slot)
		}
	}
	return nil
}

// prepare makes the record of a new job, not yet watched.
func (p *Poller) prepare(job Job, now Stamp) *record {
	shift := p.line.shift()
	job.Expected = max(job.Expected, 0)
	for _, t := range []*time.Time{&job.SubmittedAt, &job.NotBefore, &job.Deadline} {
		if !t.IsZero() {
			*t = t.Round(0).UTC() // as it comes back from a store
		}
	}
	if job.SubmittedAt.IsZero() {
		job.SubmittedAt = toWall(now, shift)
	}
	rt := p.routes[job.Route]
	r := p.jobs.fresh()
	*r = record{}
	r.route, r.job, r.shift = rt, job, shift
	r.submitted = toSteady(job.SubmittedAt, shift)
	if r.submitted > now {
		r.submitted = now
	}
	if s := StampOf(job.SubmittedAt); s != r.submitted.Add(shift) {
		r.early = s
	}
	r.notBefore, r.deadline = toSteady(job.NotBefore, shift), toSteady(job.Deadline, shift)
	r.rules = rt.rules(job.Expected, job.Profile)
	r.exact = job.SubmittedAt == StampOf(job.SubmittedAt).Time() && r.sameInstant(job.NotBefore, r.notBefore) && r.sameInstant(job.Deadline, r.deadline)
	return r
}

// rewatch is the next watch of a job whose end is on its way.
type rewatch struct {
	rec     *record // prepared
	waiters []*endWaiter
}

func (a *rewatch) wait(w *endWaiter) {
	if w != nil {
		a.waiters = append(a.waiters, w)
	}
}

func (r *record) wait(w *endWaiter) {
	if w != nil {
		r.waiters = append(r.waiters, w)
	}
}

// resume carries over from an earlier watch what binds the next one too.
func (p *Poller) resume(r *record, o *Outcome, rev uint64) {
	r.rev = rev
	if o == nil {
		return
	}
	shift := p.line.shift()
	r.resumeAt = toSteady(o.RetryAt, shift)
	if !o.LastPollAt.IsZero() {
		r.resumeAt = later(r.resumeAt, toSteady(o.LastPollAt, shift).Add(r.gap()))
	}
}

// clientKey gives the job with that ClientKey: one that is watched, one that
// has ended, or one that is about to be watched.
func (p *Poller) clientKey(client string) (Key, bool) {
	if slot, ok := p.jobs.findClient(client); ok {
		return p.jobs.key(slot), true
	}
	k, ok := p.byClient[client]
	return k, ok
}

// dropClient forgets a ClientKey that is kept for no job any more.
func (p *Poller) dropClient(client string, key Key) {
	if client == "" || p.byClient[client] != key {
		return
	}
	if r := p.find(key); r != nil && r.again != nil && r.again.rec.job.ClientKey == client {
		return
	}
	if t, ok := p.ended.get(key); ok && t.outcome.Job.ClientKey == client {
		return
	}
	delete(p.byClient, client)
}

// admit takes a prepared record among the watched ones.
func (p *Poller) admit(r *record, restored bool) *record {
	key := r.job.Key()
	if t, ok := p.ended.get(key); ok { // it is watched anew
		p.ended.drop(key)
		p.dropClient(t.outcome.Job.ClientKey, key)
	}
	p.holds.drop(key, p.giveJobSlot) // it is counted anew
	p.jobs.add(r)
	if c := r.job.ClientKey; c != "" {
		delete(p.byClient, c) // the table finds it
		if s := p.submits.get(c); s != nil {
			p.planSubmission(s, p.line.last()) // that is what came of it
		}
	}
	r.route.budget.jobStarted()
	r.route.meter.watched(r.submitted.Time(), restored, int(r.track.Errors))
	return r
}

// dropRecord takes a record out of all indexes.
func (p *Poller) dropRecord(r *record) {
	p.unplan(r.slot)
	p.retries.Remove(r.slot)
	delete(p.heard, r.handle())
	delete(p.estimates, r.handle())
	delete(r.route.batch.apart, r.handle())
	p.jobs.remove(r)
}

// step is what follows for a record: the next look, or a stop.
type step struct {
	at    Stamp
	cause Cause
	stop  Reason
}

// decide asks the core about a record.
func (p *Poller) decide(r *record, now Stamp, draw float64) step {
	return p.decideWith(r, p.outlook(r, now), now, draw)
}

// decideWith is decide for what is known of the job's webhook.
func (p *Poller) decideWith(r *record, webhook *WebhookOutlook, now Stamp, draw float64) step {
	g := r.route.guide(r.job.Profile)
	q := question{
		job: &r.job, expected: expected(r.job.Expected, g),
		submitted: r.submitted, notBefore: r.notBefore, deadline: r.deadline, track: &r.track, stop: r.rules, guidance: g, webhook: webhook,
		plan: r.route.planOf(&r.job), price: r.route.scarce.priceAt(now),
		closed: p.closedUntil(r.route, now), now: now, rand: draw,
	}
	if r.success != nil {
		// The end is known: no limit of the job's own time may lose the
		// result. Its output is given as long again as the job was.
		rules := *r.rules
		rules.MaxQueued, rules.MaxProcessing, rules.NoProgress = NoLimit, NoLimit, NoLimit
		rules.MaxAge = plus(r.rules.MaxAge, max(r.succeeded.Sub(r.submitted), 0))
		q.stop, q.deadline = &rules, 0
	}
	c := r.route.Schedule.decide(&q)
	d := step{at: now.Add(c.delay), cause: c.cause, stop: c.stop}
	if d.stop == ReasonRateLimited && r.track.NotBefore <= now && r.route.auth.held() && p.coolDown(r.route) <= 0 {
		d.stop = ReasonAuth // it was the credentials that we waited for
	}
	return d
}

// schedule plans the next look of a record that goes on.
func (p *Poller) schedule(r *record, d step, now Stamp) {
	at := d.at
	if r.poked != CauseNone {
		if floor := later(now, r.floor()); floor < at && d.cause != CauseParked {
			at, d.cause = floor, r.poked
		}
		r.poked = CauseNone
	}
	r.to(phaseWaiting)
	r.planned, r.cause = at, d.cause
	p.plan(r.slot, at)
	p.touch(r)
	if f := p.hooks.Scheduled; f != nil {
		e := ScheduleEvent{Key: r.job.Key(), ClientKey: r.job.ClientKey, At: toWall(at, p.line.shift()), Cause: d.cause}
		p.after = append(p.after, func() { p.hook("Scheduled", e.Key, func() { f(e) }) })
	}
}

// floor is the earliest instant at which the job itself may be looked at.
func (r *record) floor() Stamp {
	f := r.track.NotBefore
	if r.lastAt != 0 { // also of a call that a shutdown cut off
		f = later(f, r.lastAt.Add(r.gap()))
	}
	if r.track.Looks == 0 {
		return later(later(f, r.notBefore), r.resumeAt)
	}
	return later(f, r.track.LastAt.Add(r.gap()))
}

// gap is the least time between two looks.
func (r *record) gap() time.Duration {
	return max(r.route.Schedule.minDelay(), r.route.guide(r.job.Profile).Floor)
}

// poke brings the next look forward, as far as the floors allow.
func (p *Poller) poke(r *record, cause Cause, now Stamp) {
	switch r.phase {
	case phaseCalling:
		r.poked = cause
	case phaseReady:
		if r.next == callCheck && !urgent(r.cause) { // it stands in the long line
			r.cause = cause
			p.enqueue(r.route, &r.route.urgent, r.handle())
		}
	case phaseWaiting:
		at := later(later(now, r.floor()), p.closedUntil(r.route, now))
		switch {
		case at <= now && urgent(cause) && p.overtake(r, at, cause, now):
		case at < r.planned:
			r.planned, r.cause = at, cause
			p.plan(r.slot, at)
		}
	}
}

// overtake puts a waiting job into the line for a call at once, past all that
// are due and have not been taken out of the queue yet; false if it cannot.
func (p *Poller) overtake(r *record, at Stamp, cause Cause, now Stamp) bool {
	if p.run == nil || !p.run.open() || r.route.auth.state == authHeld || r.cause == CauseParked {
		return false
	}
	r.planned, r.cause = min(at, r.planned), cause
	p.unplan(r.slot)
	p.becomeDue(r.slot, p.jobs.lines.Get(r.slot), now)
	return true
}

func later(a, b Stamp) Stamp { return max(a, b) }
