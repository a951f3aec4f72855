package jobpoll

import (
	"context"
	"slices"
	"time"
)

// authProbe is the gap between probes of refused credentials.
const authProbe = time.Minute

// authHold is what a route knows of its credentials. Refused ones are
// refreshed once for all jobs; if that does not help, the route is held, with
// one probe a minute.
type authHold struct {
	state    authState
	since    Stamp    // the first refusal of this row
	renewed  uint64   // refreshes so far
	probeAt  Stamp    // the next probe while held
	waitList []handle // records that the hold keeps back
}

type authState uint8

const (
	authGood authState = iota
	authRefreshing
	authRefreshed // and not yet refused again
	authHeld
)

func (a *authHold) held() bool { return a.state == authRefreshing || a.state == authHeld }

// refused takes an ErrorAuth in.
func (p *Poller) refused(c *lookCall, now Stamp) {
	rt := c.route
	a := &rt.auth
	switch a.state {
	case authGood:
		a.since = now
		if rt.refresher != nil && p.run != nil && p.run.open() {
			a.state, a.probeAt = authRefreshing, now.Add(max(authProbe, rt.CheckTimeout))
			p.startRefresh(rt)
			return
		}
	case authRefreshing, authHeld:
		return
	case authRefreshed:
		if c.renewed < a.renewed {
			return // it went out with the old ones
		}
	}
	a.state, a.probeAt = authHeld, now.Add(authProbe)
	p.after = append(p.after, func() {
		p.log.Warn("credentials refused, the route is held with one probe a minute", "route", rt.Name)
	})
}

func (p *Poller) startRefresh(rt *route) {
	p.background(&p.run.crew, p.run.work, func() string { return "refresh of " + rt.Name }, func(ctx context.Context) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		timer := p.line.clock.AfterFunc(rt.CheckTimeout, func() {
			cancel(errTimeout)
			p.refreshed(rt, errTimeout)
		})
		defer timer.Stop()
		err := errGoexit
		defer func() { p.refreshed(rt, err) }()
		err = p.guard(Key{Route: rt.Name}, "Refresh", func() error { return rt.refresher.Refresh(timedContext{ctx}) })
	})
}

// refreshed takes the end of a refresh in. One that was given up may still
// turn out well.
func (p *Poller) refreshed(rt *route, err error) {
	now, _ := p.lock()
	switch a := &rt.auth; {
	case err == nil && a.held():
		a.state = authRefreshed
		a.renewed++
		p.releaseAuth(rt, now)
	case a.state == authRefreshing:
		a.state, a.probeAt = authHeld, now.Add(authProbe)
	}
	p.unlock()
	if err != nil {
		p.log.Warn("refresh of credentials failed", "route", rt.Name, "error", scrubErr(err))
	}
	p.waker.kick()
}

// keepBack notes that the hold keeps a record back.
func (p *Poller) keepBack(r *record) {
	if !r.held {
		a := &r.route.auth
		r.held = true
		if len(a.waitList) > 2*p.jobs.Len()+1024 { // credentials that stay refused
			a.waitList = slices.DeleteFunc(a.waitList, func(h handle) bool { return !p.jobs.alive(h) })
		}
		a.waitList = append(a.waitList, r.handle())
	}
}

// accepted takes an answer that shows that the credentials are good.
func (p *Poller) accepted(c *lookCall, now Stamp) {
	rt := c.route
	a := &rt.auth
	switch {
	case a.state == authGood, a.state == authRefreshing:
		return
	case a.state == authHeld && c.started <= a.since, a.state == authRefreshed && c.renewed < a.renewed:
		return // an answer from before
	}
	a.state, a.since = authGood, 0
	p.releaseAuth(rt, now)
}

// releaseAuth makes all that the hold kept back due.
func (p *Poller) releaseAuth(rt *route, now Stamp) {
	list := rt.auth.waitList
	rt.auth.waitList = nil
	for _, h := range list {
		r := p.get(h)
		if r == nil {
			continue
		}
		r.held = false
		if r.phase == phaseWaiting {
			r.planned = later(now, r.floor())
			p.plan(r.slot, r.planned)
		}
	}
}
