package jobpoll

import "log/slog"

// coolEvent is what the hook is told of what the answer to a call has closed.
// All that closes a node for a Poller comes here.
func (p *Poller) coolEvent(rt *route, k Key, c closing, now Stamp) CoolEvent {
	return CoolEvent{
		Route: rt.Name, Budget: c.node.Name(), Lane: c.lane, Scope: c.scope, Kind: c.kind, Until: toWall(now.Add(c.left), p.line.shift()), Key: k,
	}
}

// jobCooled tells of a rate limit that holds one job alone, until then. Called
// under the lock.
func (p *Poller) jobCooled(r *record, kind ErrorKind, until Stamp) {
	e := CoolEvent{
		Route: r.route.Name, Lane: LaneStatus, Scope: ScopeJob, Kind: kind, Until: toWall(until, p.line.shift()), Key: r.job.Key(),
	}
	p.after = append(p.after, func() { p.tellCooled(e) })
}

// answered ends a call that is no look at a job, and tells what it has closed.
func (p *Poller) answered(rt *route, k Key, g grant, err error) { p.closed(rt, k, g, err)() }

// closed ends such a call, and gives what tells what it has closed.
func (p *Poller) closed(rt *route, k Key, g grant, err error) (tell func()) {
	c := g.answer(err)
	if c.node == nil {
		return func() {}
	}
	e := p.coolEvent(rt, k, c, p.line.now())
	return func() { p.tellCooled(e) }
}

// tellCooled writes the log and calls the hook.
func (p *Poller) tellCooled(e CoolEvent) {
	what := "rate limited"
	switch e.Kind {
	case ErrorRateLimited, ErrorConcurrency:
	case ErrorQuota:
		what = "quota used up"
	default:
		what = "told to wait"
	}
	p.log.Warn(what, slog.String("job", e.Key.String()), slog.String("budget", e.Budget), slog.String("lane", e.Lane.String()), slog.Time("until", e.Until))
	if f := p.hooks.RateLimited; f != nil {
		p.hook("RateLimited", e.Key, func() { f(e) })
	}
}
