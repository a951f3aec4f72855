package jobpoll

import (
	"math"
	"slices"
	"strings"
	"time"
)

// webhooks is what a route knows of its webhooks. Guarded by Poller.mu.
type webhooks struct {
	cover    coverage
	came     bool    // a notice, ever
	told     float64 // the coverage that was told last
	outlooks map[string]*measured
}

// measured is the outlook of one profile, and when its ages were read.
type measured struct {
	WebhookOutlook
	at Stamp
}

// Bounds of what is kept of the profiles of a route.
const (
	outlookLife   = 10 * time.Second
	maxOutlooks   = 1024
	leastMeasured = 20 // jobs of a profile before its ages are evidence
)

// outlook gives what the next look at a job has to know of its webhook; nil:
// nothing, the ordinary schedule holds. So it does too for the look after one
// that a notice asked for and that found nothing: the provider may lag behind
// its own webhook.
func (p *Poller) outlook(r *record, now Stamp) *WebhookOutlook {
	w := &r.route.webhooks
	if w.cover.value == 0 || r.cause == CauseNotice {
		return nil
	}
	m := w.outlooks[r.job.Profile]
	if m == nil || now.Sub(m.at) >= outlookLife {
		if w.outlooks == nil || len(w.outlooks) >= maxOutlooks {
			w.outlooks = map[string]*measured{}
		}
		m = &measured{WebhookOutlook: WebhookOutlook{Policy: r.route.Webhook}, at: now}
		if d, ok := p.learned.table.Lookup(r.route.Family, r.job.Profile); ok && d.Count >= leastMeasured {
			m.P10, m.P50, m.P90, m.P99 = d.P10, d.P50, d.P90, d.P99
		}
		w.outlooks[strings.Clone(r.job.Profile)] = m
	}
	m.Coverage = w.cover.value
	if r.route.Webhook.Mode == WebhookLearned {
		if m.P99 == 0 {
			return nil // nobody said that there are webhooks: nothing is guessed
		}
		m.Coverage = min(m.Coverage, w.cover.proven())
	}
	return &m.WebhookOutlook
}

// endTold takes the end of a job, as soon as it is known, into the coverage of
// its route. byNotice: a notice told it, or asked for the look that found it.
func (p *Poller) endTold(r *record, rep *Report, byNotice bool, now Stamp) {
	w, mode := &r.route.webhooks, r.route.Webhook.Mode
	if mode == WebhookAbsent || mode == WebhookLearned && !w.came {
		return
	}
	c := &w.cover
	ended := now
	if rep != nil && !rep.CompletedAt.IsZero() {
		ended = min(max(toSteady(rep.CompletedAt, p.line.shift()), r.submitted), now)
	}
	if !byNotice {
		c.missed(strings.Clone(r.job.ID), ended, now)
		p.wakeBy(now.Add(c.grace))
		return
	}
	c.add(coveredEnd{covered: true, ended: ended})
	p.coverageMoved(r.route, now)
}

// settleCoverage counts the ends whose notices did not come.
func (p *Poller) settleCoverage(now Stamp) {
	for _, rt := range p.order {
		if rt.webhooks.cover.settle(now) {
			p.coverageMoved(rt, now)
		}
	}
}

// endToldLate takes a notice in that was slower than the look that found the
// end: it was on its way, and counts as if it had been first.
func (p *Poller) endToldLate(rt *route, id string, now Stamp) {
	if rt.webhooks.cover.late(id, now.Add(-rt.Webhook.pace())) {
		p.coverageMoved(rt, now)
	}
}

// coverageStep is by how much a coverage moves before that is told.
const coverageStep = 0.2

// coverageMoved tells of a coverage that has moved, and where it fell, brings
// the jobs forward that wait for a webhook which may not come.
func (p *Poller) coverageMoved(rt *route, now Stamp) {
	w := &rt.webhooks
	from, to := w.told, w.cover.value
	if math.Abs(to-from) < coverageStep && !(to == 0 && from > 0) {
		return
	}
	w.told = to
	e := CoverageEvent{Route: rt.Name, From: from, To: to, At: toWall(now, p.line.shift())}
	p.after = append(p.after, func() {
		if to < from {
			p.log.Warn("webhooks stay away, looks make up for them", "route", e.Route, "coverage", to)
		}
		if f := p.hooks.Coverage; f != nil {
			p.hook("Coverage", Key{}, func() { f(e) })
		}
	})
	if to < from {
		p.forwards = slices.DeleteFunc(p.forwards, func(f forwarding) bool { return f.route == rt })
		p.forwards = append(p.forwards, forwarding{route: rt})
		p.kick = true
	}
}

// forwarding is the jobs of a route being brought forward.
type forwarding struct {
	route *route
	next  int32 // slot
}

// So that those who have waited for nothing do not go out all together, they
// are spread at this rate, over no more than this time.
const (
	forwardGap = 10 * time.Millisecond
	forwardMax = 30 * time.Second
)

// bringForward plans the next of the waiting jobs anew; true if there are more.
func (p *Poller) bringForward(now Stamp) bool {
	if len(p.forwards) == 0 {
		return false
	}
	f := &p.forwards[0]
	room := min(time.Duration(p.jobs.Len())*forwardGap, forwardMax)
	var scratch record
	for end := min(f.next+jumpBatch, p.jobs.End()); f.next < end; f.next++ {
		if l := p.jobs.lines.Get(f.next); l == nil || l.route != f.route.number {
			continue
		}
		r := p.jobs.look(f.next, &scratch)
		if r.phase != phaseWaiting || r.cause != CauseReconcile {
			continue
		}
		d := p.decide(r, now, 0.5)
		part, _ := spread(r.job.Route, r.job.ID)
		d.at = later(d.at, now.Add(time.Duration(part*float64(room))))
		if d.stop != ReasonNone || d.at >= r.planned {
			continue
		}
		r = p.jobs.at(f.next)
		r.planned, r.cause = d.at, d.cause
		p.plan(r.slot, d.at)
		f.route.meter.forwarded()
	}
	if f.next >= p.jobs.End() {
		p.forwards = p.forwards[1:]
	}
	return len(p.forwards) > 0
}
