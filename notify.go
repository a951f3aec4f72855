package jobpoll

import (
	"context"
	"fmt"
)

// Notify hands a notice over. Nil means that it has been taken over: applied,
// recognised as a repeat, or parked for a job that is not watched yet (with a
// Store, stored). A notice only moves a job forward; the first end stays, and
// one that contradicts it is counted and told by Hooks.Noticed, not applied.
// An end that comes after we stopped watching is told by Hooks.Late.
//
// While another Poller has the lease of the Store a notice is not taken over:
// the error matches ErrNotTaken and ErrNotOwner, so that the sender tries again
// and meets the owner. Send traffic to the one whose Health says Owner.
//
// A notice without Route, or without ID and ClientKey, is refused, as is one
// for an unknown route (ErrUnknownRoute).
func (p *Poller) Notify(ctx context.Context, n Notice) error {
	if n.Key.ID == "" && n.ClientKey == "" {
		return fmt.Errorf("jobpoll: Notify: the notice names no job: set Key, or ClientKey")
	}
	normalize(&n.Report)
	now, draw := p.lock()
	done, err := p.takeNotice(&n, p.store != nil, now, draw)
	p.unlock()
	if !done {
		parkedAs := n
		// Stored first, then parked: what has been taken over is never lost.
		if err := p.put(ctx, "notice", noticeRecord(parkedAs, toWall(now, p.line.shift()), true)); err != nil {
			return fmt.Errorf("jobpoll: %s: %w: %w", n.Key, ErrNotTaken, err)
		}
		now, draw = p.lock()
		if _, err = p.takeNotice(&n, false, now, draw); !p.early.has(&parkedAs) {
			p.dropNotice(parkedAs) // the job came meanwhile
		}
		p.unlock()
	}
	p.waker.kick() // a parked one has to go one day; a job slot may be free
	return err
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
	if p.events.seen(*n) {
		p.noticed(rt, *n, NoticeDuplicate, false)
		return true, nil
	}
	kind := NoticeEarly
	if r := p.find(n.Key); r != nil {
		kind = p.applyNotice(r, *n, now, draw)
	} else if t, ok := p.ended.get(n.Key); ok {
		kind = p.lateNotice(t, *n, now)
	} else if storeFirst {
		return false, nil
	} else {
		p.dropEarly(p.early.park(*n, now))
	}
	p.events.add(*n)
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
	if n.Trust != TrustAuthoritative || rep.State == StateUnknown {
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

// lateNotice takes a notice for a job whose watch has ended.
func (p *Poller) lateNotice(t *tombstone, n Notice, now Stamp) NoticeKind {
	o := &t.outcome
	rep := n.Report
	switch {
	case !rep.State.Terminal():
		return NoticeStale
	case o.State == rep.State:
		return NoticeDuplicate
	case o.State.Terminal():
		return NoticeConflict
	}
	key := o.Job.Key()
	if n.Trust == TrustAuthoritative {
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
		e := LateEvent{Job: o.Job, Outcome: *o, State: rep.State, Report: rep, Via: ViaWebhook, Trust: n.Trust, At: toWall(now, p.line.shift())}
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
		p.dropNotice(parkedAs)
	}
}
