package jobpoll

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/jobpoll/jobpoll/internal/due"
)

// Poller watches any number of remote jobs, on any number of routes, and tells
// the end of each. Make one with New, start it with Run; all methods may be
// called from any goroutine, before, during and after Run.
type Poller struct {
	callbacks  Callbacks
	hooks      Hooks
	hooked     bool // there is a hook
	store      Store
	log        *slog.Logger
	rand       func() float64
	ownRand    bool // it may be called under the lock
	coalesce   time.Duration
	line       *timeline
	tracker    busyClock // nil but under a test clock
	stop       StopRules
	budget     *Budget
	nodes      nodeNames // guarded by mu
	workers    int
	grace      time.Duration
	meters     *meter
	learned    *Learner
	families   map[string][]*route // by Route.Family
	estimates  map[handle]estimates
	unsaved    map[profileName]struct{} // learned since they were stored, with a Store
	saved      Stamp
	replans    map[profileName]struct{} // whose plans are to be made anew
	replanning bool                     // somebody makes them
	scratch    record                   // for choose
	retention  time.Duration
	tenancy    tenancy
	storeState storeState
	waker      waker

	mu         sync.Mutex
	routes     map[string]*route
	order      []*route // as added, for a stable dispatch order
	active     []*route // those with something to do that do not wait for their budget
	jobs       jobTable
	byClient   map[string]Key // of ended jobs and of such as are about to be watched; the table has the others
	due        due.Calendar   // waiting jobs
	stale      int            // entries of due that are outdated
	retries    due.Queue      // ends to be stored or told again
	inFlight   int
	inHooks    int // workers whose hooks have not returned
	turn       int // in active
	idlers     []*worker
	leastIdle  int // idlers, since restWorkers was last called
	waking     bool
	sleepUntil Stamp // when somebody wakes at the latest
	kick       bool  // the loop has to wake once the lock is released
	rested     Stamp
	jumped     *jumping

	lookedAtClosed Stamp
	reading        reading // the clock's, of this hold of the lock
	undelivered    int     // records whose end is on its way
	ended          tombstones
	early          parking
	events         eventIDs
	heard          map[handle][]eventID // of the notices of a job, with a Store
	forwards       []forwarding
	holds          slotHolds
	orphans        map[string][]storedJob          // restored jobs of routes not added yet
	coolLater      map[string]*storedBudget        // the same of budget nodes
	cooled         map[*Budget][laneCount]cooldown // as last left to a flush
	restored       bool
	submits        submissions
	writes         writes[Key] // of job records
	flushing       bool
	flushed        Stamp
	dirty          []handle     // records that the store is behind with
	behind         backlog      // what the next flush writes beside jobs
	behindSince    Stamp        // of the oldest of both; 0: nothing is behind
	flushSize      int          // of a batch; 0: flushBatch
	drains         []*endWaiter // who waits for the last job
	running        bool         // Run is under way, also between its terms
	run            *runState
	over           bool // a Run has returned, and no other has begun
	serving        int
	toServe        []handle
	draws          []float64 // random numbers drawn before the lock was taken
	after          []func()  // user code to call once the lock is released
}

// handle names a record as long as it is the same one.
type handle struct {
	slot int32
	gen  uint32
}

// New makes a Poller. It copies the configuration, fills in defaults and
// reports all faults at once, joined. It starts no goroutine and makes no
// channel and no timer.
func New(cfg Config) (*Poller, error) {
	all := cfg.faults()
	p := &Poller{
		callbacks: cfg.Callbacks, hooks: cfg.Hooks, hooked: cfg.Hooks.any(), store: cfg.Store, log: cfg.Logger, rand: cfg.Rand,
		stop: cfg.Stop, budget: cfg.Budget, workers: cfg.Workers, grace: cfg.ShutdownGrace,
		nodes: nodeNames{}, line: newTimeline(cfg.Clock), meters: newMeter(), learned: NewLearner(0),
		families: map[string][]*route{}, estimates: map[handle]estimates{}, unsaved: map[profileName]struct{}{}, replans: map[profileName]struct{}{},
		routes: map[string]*route{}, jobs: newJobTable(), byClient: map[string]Key{}, orphans: map[string][]storedJob{},
		writes: writes[Key]{}, submits: submissions{keys: writes[string]{}}, coolLater: map[string]*storedBudget{}, cooled: map[*Budget][laneCount]cooldown{},
		retention: cmp.Or(cfg.Retention, DefaultRetention),
	}
	p.tenancy.set(&cfg, strconv.FormatUint(rand.Uint64(), 36))
	p.jobs.init()
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	} else {
		p.log = slog.New(&guardedLog{p.log.Handler(), &p.meters.panics})
	}
	if p.rand == nil {
		p.rand, p.ownRand = rand.Float64, true
	} else {
		p.rand = p.guardRand(cfg.Rand)
	}
	if p.workers == 0 {
		p.workers = DefaultWorkers
	}
	p.tracker, _ = p.line.clock.(busyClock)
	if p.coalesce = max(cfg.Coalesce, 0); cfg.Coalesce == 0 && p.tracker == nil {
		p.coalesce = DefaultCoalesce
	}
	p.waker.busy = p.busy
	if p.budget == nil {
		p.budget = NewBudget(defaultAccount, Limits{})
	}
	if err := p.budget.bind(cfg.Clock); err != nil {
		all = append(all, fmt.Errorf("jobpoll: Config.Budget: %w", err))
	}
	for i := range cfg.Routes {
		if b := cfg.Routes[i].Budget; b != nil {
			if err := b.bind(cfg.Clock); err != nil {
				all = append(all, fmt.Errorf("jobpoll: Config.Routes[%d].Budget: %w", i, err))
			}
		}
	}
	all = append(all, p.claimBudgets(&cfg)...)
	if len(all) > 0 {
		return nil, errors.Join(all...)
	}
	for i := range cfg.Routes {
		p.addRoute(newRoute(cfg.Routes[i]))
	}
	return p, nil
}

// AddRoute adds a route. It reports all faults of it at once, joined, and a
// name that is taken.
func (p *Poller) AddRoute(r Route) error {
	all := append(r.faults("Route"), r.Budget.faults()...)
	if r.Budget != nil {
		if err := r.Budget.bind(p.clockGiven()); err != nil {
			all = append(all, fmt.Errorf("jobpoll: Route.Budget: %w", err))
		}
	}
	rt := newRoute(r)
	p.mu.Lock()
	if p.routes[r.Name] != nil {
		all = append(all, configError("Route.Name", "%q is already the name of another route", r.Name))
	} else {
		all = append(all, p.claimFaults(&r)...)
	}
	if len(all) > 0 {
		p.unlock()
		return errors.Join(all...)
	}
	if r.Budget != nil {
		p.nodes.add(r.Budget, budgetOf(r.Name))
	}
	p.addRoute(rt)
	nodes := p.budgetNodes()
	p.unlock()
	p.resumeBudgets(nodes)
	now, draw := p.lock()
	p.wakeSubmissions(r.Name)
	adopted := p.orphans[r.Name]
	delete(p.orphans, r.Name)
	for i := range adopted {
		p.adopt(&adopted[i], now, draw)
	}
	p.unlock()
	p.replanSoon(profileName{rt.Family, noProfile})
	p.waker.kick()
	return nil
}

// clockGiven is the clock as New got it: nil for package time.
func (p *Poller) clockGiven() Clock {
	if p.line.clock == (systemClock{}) {
		return nil
	}
	return p.line.clock
}

// unlock releases the lock and then calls the user code that was put off.
func (p *Poller) unlock() {
	p.jobs.settle()
	after, kick := p.after, p.kick
	p.after, p.kick = nil, false
	p.mu.Unlock()
	if kick {
		p.waker.kick()
	}
	callEach(after)
}

// callEach calls all of fs, also where one ends its goroutine.
func callEach(fs []func()) {
	if len(fs) == 0 {
		return
	}
	n := 0
	defer func() { callEach(fs[n:]) }()
	for n < len(fs) {
		f := fs[n]
		n++
		f()
	}
}

// lock draws a random number and reads the clock first: both are user code.
func (p *Poller) lock() (now Stamp, draw float64) {
	now, draw = p.line.now(), p.rand()
	p.mu.Lock()
	return now, draw
}

// PollNow asks for a look as soon as the floors allow: the least gap of the
// job, a wait asked for by the provider, a cool-down, the budget. It returns
// ErrUnknownJob for a job that is not watched.
func (p *Poller) PollNow(k Key) error {
	now, _ := p.lock()
	r := p.find(k)
	if r == nil {
		p.unlock()
		return fmt.Errorf("jobpoll: %s: %w", k, ErrUnknownJob)
	}
	p.poke(r, CauseNow, now)
	p.unlock()
	p.waker.kick()
	return nil
}

// Abandon stops watching a job, with ReasonAbandoned and the cause in the
// outcome. It is local: the provider is not told, see Cancel for that, and as the
// remote job may run on, its place of Limits.Jobs is held (see there). OnStop is
// called as for any other end. It returns ErrUnknownJob for a job that is not
// watched.
func (p *Poller) Abandon(_ context.Context, k Key, cause error) error {
	cause = readError(cause) // before the lock is taken
	now, _ := p.lock()
	r := p.find(k)
	if r == nil {
		p.unlock()
		return fmt.Errorf("jobpoll: %s: %w", k, ErrUnknownJob)
	}
	if r.phase != phaseEnding {
		p.finish(r, ending{reason: ReasonAbandoned, via: ViaLocal, cause: cause}, now)
	} else if again := r.again; again != nil {
		r.again = nil // it ends as it has ended
		p.dropClient(again.rec.job.ClientKey, k)
		for _, w := range again.waiters {
			o := *r.outcome
			w.end(&o, r.endErr)
		}
	}
	p.unlock()
	p.waker.kick()
	return nil
}

// Metrics gives a snapshot of all counts and gauges. It does not go over the
// jobs.
func (p *Poller) Metrics() Metrics {
	now := p.line.now()
	in := levels{routes: map[string]routeLevels{}, budgets: map[string]BudgetMetrics{}}
	nodes := map[*Budget]bool{p.budget: true}
	p.mu.Lock()
	in.parked = p.early.len()
	for _, rt := range p.order {
		b := BacklogMetrics{Jobs: rt.waiting}
		if _, l, _ := p.nextReady(rt); l != nil {
			_, planned := p.jobs.waits(l)
			b.Lag = max(now.Sub(planned), 0)
		}
		in.routes[rt.Name] = routeLevels{backlog: b, hung: rt.hung, submits: rt.submits, recent: rt.webhooks.cover.value, price: rt.scarce.priceAt(now)}
		nodes[rt.budget] = true
	}
	p.mu.Unlock()
	for b := range nodes {
		b.walk(func(n *Budget) { in.budgets[n.Name()] = n.snapshot() })
	}
	m := p.meters.snapshot(now.Time(), in)
	p.mu.Lock()
	m.Callbacks.Undelivered = p.undelivered // last: a job that has just ended must not be in neither count
	p.mu.Unlock()
	m.At = toWall(now, p.line.shift())
	return m
}
