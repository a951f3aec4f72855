package jobpoll

import "slices"

// plan puts a job into the due queue, or moves it there.
func (p *Poller) plan(slot int32, at Stamp) {
	l := p.jobs.lines.Get(slot)
	if l.ticket != 0 {
		p.outdated()
	}
	l.ticket = p.due.Push(slot, int64(at))
	p.wakeBy(at)
}

// unplan takes a job out of the due queue.
func (p *Poller) unplan(slot int32) {
	if l := p.jobs.lines.Get(slot); l.ticket != 0 {
		l.ticket = 0
		p.outdated()
	}
}

// outdated counts an entry of the due queue that is no use any more, and sweeps
// them when they are the most.
func (p *Poller) outdated() {
	if p.stale++; p.stale > p.due.Len()/2+1024 {
		p.due.Sweep(func(slot int32, ticket uint32) bool {
			l := p.jobs.lines.Get(slot)
			return l != nil && l.ticket == ticket
		})
		p.stale = 0
	}
}

// peekDue gives the job that is due first; nil if there is none.
func (p *Poller) peekDue() (slot int32, l *line, at Stamp) {
	for {
		slot, at, ticket, ok := p.due.Peek()
		if !ok {
			return 0, nil, 0
		}
		if l := p.jobs.lines.Get(slot); l != nil && l.ticket == ticket {
			return slot, l, Stamp(at)
		}
		p.due.Pop()
		p.stale--
	}
}

// popDue takes up to a batch of due jobs, and with them those that may as well go
// out now; true if there are more.
func (p *Poller) popDue(now Stamp) bool {
	found := false
	for range tickBatch {
		slot, l, at := p.peekDue()
		if l == nil || at > now && !(found && p.goesAlong(l, at, now)) {
			return false
		}
		found = true
		if !p.canDraw() {
			return true
		}
		p.due.Pop()
		l.ticket = 0
		if ph, _ := p.jobs.waits(l); ph == phaseWaiting {
			p.becomeDue(slot, l, now)
		}
	}
	return true
}

// A look that goes along comes too early by one part in so many of its gap at
// most: less than the clocks of two machines differ by.
const earliness = 1000

// goesAlong reports whether a job that is due at an instant may go out with
// another now: a little earlier than planned, but no earlier than a floor.
func (p *Poller) goesAlong(l *line, at, now Stamp) bool {
	early := at.Sub(now)
	if early > p.coalesce || early > at.Sub(l.polled)/earliness || l.hot != 0 {
		return false
	}
	if l.looks == 0 || l.next != callCheck || l.cause > CauseNear { // others mean their instant
		return false
	}
	if x := p.jobs.extra(l); x != nil && x.wait > now {
		return false
	}
	return later(l.polled, l.last).Add(p.jobs.routes[l.route].floor) <= now
}

// popRetries goes on with the ends that could not be stored or told.
func (p *Poller) popRetries(now Stamp) {
	for {
		slot, at, ok := p.retries.Peek()
		if !ok || at > int64(now) {
			return
		}
		p.retries.Pop()
		if r := p.jobs.at(slot); r != nil && r.phase == phaseEnding {
			p.serve(r)
		}
	}
}

// becomeDue puts a job in the line for a call. Most are left packed.
func (p *Poller) becomeDue(slot int32, l *line, now Stamp) {
	rt := p.jobs.routes[l.route]
	var r *record
	cause, next := l.cause, l.next
	if l.hot != 0 {
		r = p.jobs.at(slot)
		cause, next = r.cause, r.next
	}
	if cause == CauseParked || p.closedUntil(rt, now) > now {
		p.dueWhileClosed(p.jobs.at(slot), now)
		return
	}
	if rt.auth.state == authHeld {
		switch r = p.jobs.at(slot); {
		case p.authOver(r, now):
			p.finish(r, ending{reason: ReasonAuth, via: ViaLocal}, now)
			return
		case rt.waiting > 0:
			// One probe at a time.
			p.keepBack(r)
			p.schedule(r, step{at: now.Add(authProbe), cause: CauseAuth}, now)
			return
		}
	}
	if r != nil {
		r.to(phaseReady)
	} else {
		l.phase = phaseReady
		rt.waiting++
	}
	if h := (handle{slot, l.gen}); next != callCheck || urgent(cause) {
		p.enqueue(rt, &rt.urgent, h)
	} else {
		p.enqueue(rt, &rt.ready, h)
	}
	p.activate(rt)
}

// enqueue puts a due job into a line of its route. Those that went another way
// are swept out once they are the most.
func (p *Poller) enqueue(rt *route, line *fifo, h handle) {
	if len(line.items)-line.head > 2*rt.waiting+1024 {
		seen := make(map[handle]bool, rt.waiting)
		line.items = slices.DeleteFunc(line.items[line.head:], func(o handle) bool {
			l := p.jobs.lines.Get(o.slot)
			if l == nil || l.gen != o.gen || seen[o] {
				return true
			}
			seen[o] = true
			ph, _ := p.jobs.waits(l)
			return ph != phaseReady
		})
		line.head = 0
	}
	line.push(h)
}

// urgent are the looks that somebody waits for.
func urgent(c Cause) bool { return c == CauseNow || c == CauseNotice }

func (p *Poller) authOver(r *record, now Stamp) bool {
	// A job that came later has the whole grace too.
	return r.rules.AuthGrace != NoLimit && now.Sub(later(r.route.auth.since, r.submitted)) >= r.rules.AuthGrace
}

// dueWhileClosed asks the core about a record that is due on a closed route:
// it waits, is parked, or stops.
func (p *Poller) dueWhileClosed(r *record, now Stamp) {
	r.to(phaseWaiting)
	if r.route.auth.held() {
		if p.authOver(r, now) {
			p.finish(r, ending{reason: ReasonAuth, via: ViaLocal}, now)
			return
		}
		p.keepBack(r)
	}
	d := p.decide(r, now, p.draw())
	if d.stop != ReasonNone {
		p.finish(r, ending{reason: d.stop, via: ViaLocal, unfinished: r.track.GoodAt}, now)
		return
	}
	p.schedule(r, d, now)
}
