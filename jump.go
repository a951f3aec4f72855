package jobpoll

import "time"

// jumping is a step of the wall clock that is being taken in.
type jumping struct {
	by   time.Duration
	next int32 // slot
}

// jump takes a step of the wall clock, or a suspend, in. After one forward
// every waiting job is looked at soon, as far as its floors and the budget
// allow; one back changes nothing, waits are on the timeline.
func (p *Poller) jump(by time.Duration, now Stamp) {
	p.meters.clockJumps.Add(1)
	if by > 0 {
		p.tenancy.jump(by)
		if p.jumped != nil { // it comes on top
			p.jumped.by, p.jumped.next = p.jumped.by+by, 0
		} else {
			p.jumped = &jumping{by: by}
		}
	}
	e := JumpEvent{By: by, At: toWall(now, p.line.shift())}
	p.after = append(p.after, func() {
		p.log.Warn("the wall clock jumped or the machine was suspended", "by", by)
		if f := p.hooks.ClockJumped; f != nil {
			p.hook("ClockJumped", Key{}, func() { f(e) })
		}
	})
}

// jumpBatch bounds the jobs that one hold of the lock brings forward.
const jumpBatch = 4096

// goOnJumping brings the next jobs forward; true if there are more.
func (p *Poller) goOnJumping(now Stamp) bool {
	j := p.jumped
	if j == nil {
		return false
	}
	var scratch record
	for end := min(j.next+jumpBatch, p.jobs.End()); j.next < end; j.next++ {
		r := p.jobs.look(j.next, &scratch)
		if r == nil || r.phase != phaseWaiting {
			continue
		}
		if at := max(now, r.floor(), r.planned.Add(-j.by)); at < r.planned {
			r = p.jobs.at(j.next)
			r.planned, r.cause = at, CauseWake
			p.plan(r.slot, at)
		}
	}
	if j.next >= p.jobs.End() {
		p.jumped = nil
	}
	return p.jumped != nil
}
