package jobpoll

import (
	"cmp"
	"sync/atomic"
	"time"
)

// route is a Route in use.
type route struct {
	Route
	budget     *Budget
	meter      *routeMeter
	canceler   Canceler
	fetcher    Fetcher
	refresher  Refresher
	reconciler Reconciler

	guidance map[string]*Guidance // by profile
	floor    time.Duration        // no job has a longer least gap

	number uint32 // in jobTable.routes
	stop   StopRules
	sets   map[time.Duration]*StopRules // by expected duration
	asked  time.Duration                // the last one asked for, and what it has
	answer *StopRules

	ready   fifo          // due records, and some that are so no more
	urgent  fifo          // the same, of those that go first
	waiting int           // due records
	active  bool          // in Poller.active
	calls   callList      // under way
	looked  uint64        // calls that have ended
	took    time.Duration // how long they took of late
	quick   atomic.Bool   // they were
	hung    int           // calls that were given up and have not returned
	grants  []grant       // taken for the route, not yet used
	want    *want         // the standing interest in a grant; nil: none
	auth    authHold
	submits submitLevels // submissions that are no jobs yet, by state

	webhooks webhooks
	plans    plans
	scarce   scarcity
	batch    batches
}

// newRoute makes a route. It asks the Checker for its abilities, which may be
// the user's code, so never under the lock.
func newRoute(r Route) *route {
	rt := &route{Route: r, budget: r.Budget, webhooks: webhooks{cover: newCoverage(&r.Webhook)}}
	rt.webhooks.told = rt.webhooks.cover.value
	rt.Family = cmp.Or(r.Family, r.Name)
	rt.CheckTimeout = cmp.Or(r.CheckTimeout, DefaultCheckTimeout)
	rt.SubmitTimeout = cmp.Or(r.SubmitTimeout, DefaultSubmitTimeout)
	rt.Schedule.Buckets = append([]Bucket(nil), r.Schedule.Buckets...)
	rt.Schedule.Delays = append([]time.Duration(nil), r.Schedule.Delays...)
	rt.floor = rt.Schedule.minDelay()
	rt.guidance = make(map[string]*Guidance, len(r.Guidance))
	for k, v := range r.Guidance {
		rt.guidance[k] = &v
		rt.floor = max(rt.floor, v.Floor)
	}
	rt.canceler, _ = ability[Canceler](r.Checker)
	rt.fetcher, _ = ability[Fetcher](r.Checker)
	rt.refresher, _ = ability[Refresher](r.Checker)
	rt.batch = newBatches(r.Checker)
	if rt.reconciler = r.Reconciler; rt.reconciler == nil {
		rt.reconciler, _ = ability[Reconciler](r.Checker)
	}
	return rt
}

func (p *Poller) addRoute(rt *route) {
	if rt.budget == nil {
		rt.budget = p.budget.routeNode(rt.Name)
		p.nodes[rt.budget.name] = namedNode{rt.budget, budgetOf(rt.Name)}
	}
	rt.meter = p.meters.route(rt.Name)
	rt.sets = map[time.Duration]*StopRules{}
	rt.number, rt.stop = uint32(len(p.jobs.routes)), rt.Stop.merge(p.stop)
	p.jobs.routes = append(p.jobs.routes, rt)
	p.routes[rt.Name] = rt
	p.order = append(p.order, rt)
	p.families[rt.Family] = append(p.families[rt.Family], rt)
}

// rules are those for a job of that expectation and profile.
// Jobs with the same share them: nobody may write to them.
func (rt *route) rules(own time.Duration, profile string) *StopRules {
	e := expected(own, rt.guide(profile))
	if rt.answer != nil && rt.asked == e {
		return rt.answer
	}
	if r := rt.sets[e]; r != nil {
		rt.asked, rt.answer = e, r
		return r
	}
	r := rt.stop.withDefaults(e)
	if len(rt.sets) < maxRuleSets {
		rt.sets[e] = &r
	}
	return &r
}

// maxRuleSets bounds the expectations whose rules are kept.
const maxRuleSets = 1024

// guide gives the guidance for a profile.
func (rt *route) guide(profile string) *Guidance {
	if len(rt.guidance) == 0 {
		return &noGuidance
	}
	if g, ok := rt.guidance[profile]; ok {
		return g
	}
	if g, ok := rt.guidance[""]; ok {
		return g
	}
	return &noGuidance
}

var noGuidance Guidance

// coolDown is how long the status lane of the route's budget stays closed.
func (p *Poller) coolDown(rt *route) time.Duration {
	return rt.budget.closedFor(LaneStatus, p.line.latest())
}

// want is a standing interest of a route in a grant of its budget.
type want struct {
	cancel  func() // nil until the budget has returned it
	dropped bool
}

// leaveWant withdraws the standing interest. Called under the lock.
func (p *Poller) leaveWant(rt *route) {
	w := rt.want
	if w == nil {
		return
	}
	rt.want, w.dropped = nil, true
	if w.cancel != nil {
		p.after = append(p.after, w.cancel)
	}
}

// closedUntil is when looks on the route may start again, zero if they may now.
func (p *Poller) closedUntil(rt *route, now Stamp) Stamp {
	var at Stamp
	if rt.budget.surelyOpen() && !rt.auth.held() {
		return at
	}
	// The budget has a timeline of its own: only differences carry over.
	if d := p.coolDown(rt); d > 0 {
		at = now.Add(d)
	}
	if rt.auth.held() && rt.auth.probeAt > now {
		at = later(at, rt.auth.probeAt)
	}
	return at
}
