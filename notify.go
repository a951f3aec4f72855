package jobpoll

import (
	"context"
	"fmt"
)

// Notify hands a notice over. Nil means that it has been taken over: applied,
// recognised as a repeat, or parked for a job that is not watched yet (with a
// Store, stored). A notice only moves a job forward; the first end stays, and
// one that contradicts it is counted and told by Hooks.Noticed, not applied.
// An end that comes after we stopped watching is told by Hooks.Late; after a
// restart once more if the sender repeats it without an EventID.
//
// Parked notices are bounded: 10,000 and 16 MiB in all, 64 a job, 15 min. The
// oldest goes, is told by Hooks.Noticed, and may be sent again.
//
// Without a Store a parked notice lives in this process alone, which is right
// only where one process owns all jobs of the route. Where several share a
// route, give them one Store: then a notice for a job of another process is
// stored, for the one who watches it, before Notify returns nil. While another
// Poller has the lease of the Store a notice is not taken over: the error
// matches ErrNotTaken and ErrNotOwner, so that the sender tries again and meets
// the owner. Send traffic to the one whose Health says Owner.
//
// A notice that could not be taken over gets an error that matches ErrNotTaken:
// the sender should send it again. One without Route, or without ID and
// ClientKey, or with texts that no job can have, is refused, as is one for an
// unknown route (ErrUnknownRoute).
func (p *Poller) Notify(ctx context.Context, n Notice) error {
	n.EventID = eventName(n.EventID)
	if err := n.faults(); err != nil {
		return err
	}
	normalize(&n.Report)
	now, draw := p.lock()
	done, err := p.takeNotice(&n, p.store != nil, now, draw)
	p.unlock()
	if !done {
		err = p.takeStored(ctx, n)
	}
	p.waker.kick() // a parked one has to go one day; a job slot may be free
	return err
}

func (n *Notice) faults() error {
	if n.Key.ID == "" && n.ClientKey == "" {
		return fmt.Errorf("jobpoll: Notify: the notice names no job: set Key, or ClientKey")
	}
	for _, f := range []struct{ name, s string }{{"Key.Route", n.Key.Route}, {"Key.ID", n.Key.ID}, {"ClientKey", n.ClientKey}} {
		if f.s != "" && !usableID(f.s) {
			return fmt.Errorf("jobpoll: Notify: Notice.%s is not valid UTF-8 of at most %d bytes (%q)", f.name, maxID, clip(f.s, 64))
		}
	}
	return nil
}

// takeStored takes a notice over for a job that is not watched here, where
// there is a Store.
func (p *Poller) takeStored(ctx context.Context, n Notice) error {
	notTaken := func(err error) error { return fmt.Errorf("jobpoll: %s: %w: %w", n.Key, ErrNotTaken, err) }
	if n.Key.ID != "" {
		stored, err := p.stored(ctx, n.Key)
		if err != nil {
			return notTaken(err)
		}
		if stored != nil && stored.Outcome != nil && stored.Told {
			p.buryStored(stored)
		}
	}
	now, draw := p.lock()
	done, err := p.takeNotice(&n, true, now, draw)
	at := toWall(now, p.line.shift())
	p.unlock()
	if done {
		return err
	}
	// Stored first, then parked: what has been taken over is never lost.
	parkedAs := n
	if err := p.put(ctx, "notice", noticeRecord(parkedAs, at, true)); err != nil {
		return notTaken(err)
	}
	now, draw = p.lock()
	defer p.unlock()
	if _, err = p.takeNotice(&n, false, now, draw); !p.early.has(&parkedAs) {
		p.dropNotice(parkedAs) // the job came meanwhile
	}
	return err
}

// buryStored makes known again what the store knows of a job that has ended.
func (p *Poller) buryStored(s *storedJob) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := s.Job.Key()
	if _, ok := p.ended.get(key); ok || p.find(key) != nil || p.writes[key] != nil {
		return // what we know is newer
	}
	p.bury(tombstone{outcome: *s.Outcome, rev: s.rev})
	for _, id := range s.Events {
		p.events.add(id)
	}
}

// takeNotice applies a notice, or parks it for a job that is not watched yet;
// false if it would have to be parked and must be stored first.
func (p *Poller) takeNotice(n *Notice, storeFirst bool, now Stamp, draw float64) (bool, error) {
	if n.Key.ID == "" {
		if k, ok := p.clientKey(n.ClientKey); ok {
			n.Key = k
		}
	}
	rt := p.routes[n.Key.Route]
	if rt == nil {
		return true, fmt.Errorf("jobpoll: %s: Notify: %w", n.Key, ErrUnknownRoute)
	}
	if err := p.tenancy.refusal(); err != nil {
		return true, fmt.Errorf("jobpoll: %s: %w: %w", n.Key, ErrNotTaken, err)
	}
	p.sightSubmission(n)
	rt.webhooks.came = true
	if p.events.seen(n.event()) || p.early.hasEvent(n) {
		p.noticed(rt, *n, NoticeDuplicate, false)
		return true, nil
	}
	var kind NoticeKind
	if r := p.find(n.Key); r != nil {
		kind = p.applyNotice(r, *n, now, draw)
		p.hear(r, n)
	} else if t, ok := p.ended.get(n.Key); ok {
		kind = p.lateNotice(t, *n, now)
		p.events.add(n.event())
	} else if storeFirst {
		return false, nil
	} else {
		kind = NoticeEarly
		p.dropEarly(p.early.park(*n, now))
	}
	p.noticed(rt, *n, kind, false)
	return true, nil
}

// dropEarly reports notices that waited in vain.
func (p *Poller) dropEarly(gone []Notice) {
	for _, n := range gone {
		p.noticed(p.routes[n.Key.Route], n, NoticeDropped, true)
		p.dropNotice(n)
	}
}

// noticed counts a notice and tells the hook. Called under the lock.
func (p *Poller) noticed(rt *route, n Notice, kind NoticeKind, parked bool) {
	if rt == nil {
		return
	}
	rt.meter.notice(kind, parked)
	if f := p.hooks.Noticed; f != nil {
		e := NoticeEvent{Key: n.Key, ClientKey: n.ClientKey, EventID: n.EventID, Kind: kind}
		p.after = append(p.after, func() { p.hook("Noticed", e.Key, func() { f(e) }) })
	}
}

// applyNotice takes a notice into a record and says what it was.
func (p *Poller) applyNotice(r *record, n Notice, now Stamp, draw float64) NoticeKind {
	rep := n.Report
	if r.phase == phaseEnding {
		return p.lateNotice(&tombstone{outcome: *r.outcome}, n, now)
	}
	if !r.route.believes(&n) || rep.State == StateUnknown {
		p.poke(r, CauseNotice, now)
		return NoticeHint
	}
	if r.success != nil && rep.State != StateSucceeded {
		// The end is known, only its output is still to come.
		if rep.State.Terminal() {
			return NoticeConflict
		}
		return NoticeStale
	}
	if !rep.State.Terminal() {
		t := &r.track
		at := toSteady(n.At, p.line.shift())
		if rep.State < t.Furthest || rep.State == t.State && rep.Progress <= t.Progress && rep.Progress > 0 ||
			at != 0 && t.GoodAt != 0 && at < t.GoodAt {
			return NoticeStale
		}
	}
	if r.phase == phaseReady {
		r.to(phaseWaiting)
	}
	if rep.needsFetch(r.route) {
		if r.call == nil {
			p.fetchNext(r, rep, later(now, r.track.NotBefore), CauseNotice, now)
		} else {
			r.poked = CauseNotice
		}
		return NoticeApplied
	}
	calling := r.phase == phaseCalling
	planned, cause, poked := r.planned, r.cause, r.poked
	p.observe(r, &rep, nil, ViaWebhook, now, draw)
	if calling && r.phase == phaseWaiting { // the call under way goes on
		r.to(phaseCalling)
		r.planned, r.cause, r.poked = planned, cause, poked
		p.unplan(r.slot)
	}
	return NoticeApplied
}

// trust is how far a notice is believed on the route.
func (rt *route) trust(n *Notice) Trust {
	if rt.believes(n) {
		return TrustAuthoritative
	}
	return TrustHint
}

// believes reports whether a notice is more than a hint.
func (rt *route) believes(n *Notice) bool {
	return n.Trust == TrustAuthoritative && !rt.Webhook.HintOnly
}

// lateNotice takes a notice for a job whose watch has ended.
func (p *Poller) lateNotice(t *tombstone, n Notice, now Stamp) NoticeKind {
	o := &t.outcome
	rep := n.Report
	key := o.Job.Key()
	rt := p.routes[key.Route]
	if rep.State.Terminal() || rep.State == StateUnknown {
		p.endToldLate(rt, key.ID, now)
	}
	switch {
	case !rep.State.Terminal():
		return NoticeStale
	case o.State == rep.State:
		return NoticeDuplicate
	case o.State.Terminal():
		return NoticeConflict
	}
	if rt.believes(&n) {
		p.holds.drop(key, p.giveJobSlot)
	}
	if t.late {
		return NoticeDuplicate
	}
	if kept, ok := p.ended.get(key); ok {
		kept.late = true
	} else if r := p.find(key); r != nil {
		if r.lateTold {
			return NoticeDuplicate
		}
		r.lateTold = true
	}
	if f := p.hooks.Late; f != nil {
		e := LateEvent{Job: o.Job, Outcome: *o, State: rep.State, Report: rep, Via: ViaWebhook, Trust: rt.trust(&n), At: toWall(now, p.line.shift())}
		p.after = append(p.after, func() { p.hook("Late", key, func() { f(e) }) })
	}
	return NoticeLate
}

// applyEarly gives a record the notices that were waiting for it.
func (p *Poller) applyEarly(r *record, now Stamp, draw float64) {
	key, client := r.job.Key(), r.job.ClientKey
	for _, n := range p.early.take(key, client) {
		parkedAs := n
		n.Key = key
		if r = p.find(key); r == nil {
			return
		}
		p.noticed(r.route, n, p.applyNotice(r, n, now, draw), true)
		p.hear(r, &n)
		p.dropNotice(parkedAs)
	}
}
