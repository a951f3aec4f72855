package jobpoll

import (
	"fmt"
	"time"
)

// Budget says how often an account may call: a tree of nodes (account →
// provider → route) with limits of their own, where a call must pass every
// node from its own up to the root. In each node the two lanes, status checks
// and submissions, have a guaranteed share and lend each other the rest.
//
// A rate limit that the provider answers cools the node and the lane of the
// call: it stays closed for as long as the provider asked (without a word 2 s,
// doubled each time up to 60 s, until a good answer comes) and is then released
// at a pace, never together. A repeated rate limit halves that pace, which
// doubles again with each minute without one. The other lane and other nodes
// go on.
//
// The calls of a Poller's routes are charged by themselves. For calls of your
// own that share the account use Acquire.
//
// A nil *Budget works and limits nothing. All methods may be called from
// several goroutines at once. A Budget has no goroutine, and a timer only
// while somebody waits; it need not be closed. It lives on the clock of the
// Poller it is given to, before that on package time; two clocks on one tree
// are refused.
type Budget struct {
	tree   *budgetTree
	parent *Budget
	name   string // from the root down
	depth  int

	// All below is guarded by tree.mu.
	children []*Budget
	ofRoutes map[string]*Budget // those of them that are for routes without a Budget
	given    Limits             // as set
	limits   Limits             // made safe
	faulty   []string
	kept     [laneCount]int // slots never lent
	// unlimited: none of the limits is set, as in most nodes of a Poller's routes.
	unlimited bool
	total     tokenBucket
	lane      [laneCount]laneState
	turn      Lane // whose the next token is that nobody has reserved
	jobs      int  // remote jobs of this node and those below
	ownJobs   int  // of this node alone
	doubted   int  // those of jobs that are submissions whose answer was lost
}

// laneState is one lane of one node. Counts include the nodes below.
type laneState struct {
	own, reserve tokenBucket // ceiling and guarantee
	pace         tokenBucket // in an episode of cool
	cool         cooldown
	observed     grantMeter
	inFlight     int
	waiting      int
	granted      uint64
	rateLimited  uint64
	queue        waitQueue // who waits at this very node
}

// NewBudget returns the root of a new budget, an account. It starts with full
// bursts. Faults in l are told by New of the Poller it is given to.
//
// The name must be unique within a Poller: metrics and stored cool-downs go by
// it. New and AddRoute refuse two nodes that have one Name. One node may be that
// of any number of routes and Pollers.
func NewBudget(name string, l Limits) *Budget {
	t := &budgetTree{}
	t.root = newNode(t, nil, name, l)
	return t.root
}

// Child adds a node below b, a provider or a route. A zero in l means that the
// parent binds. A child may be added at any time. A child of a nil *Budget is
// a root.
//
// The name must be unique among the children of b, with those that the account
// has for routes without a Budget, which are called as their route: metrics and
// stored cool-downs go by it. New and AddRoute refuse a node whose Name another
// has that they know.
func (b *Budget) Child(name string, l Limits) *Budget {
	if b == nil {
		return NewBudget(name, l)
	}
	b.tree.mu.Lock()
	defer b.tree.mu.Unlock()
	c := newNode(b.tree, b, name, l)
	b.children = append(b.children, c)
	return c
}

func newNode(t *budgetTree, parent *Budget, name string, l Limits) *Budget {
	b := &Budget{tree: t, parent: parent, name: name}
	if parent != nil {
		b.name, b.depth = parent.name+"/"+name, parent.depth+1
	}
	for i := range b.lane {
		b.lane[i].queue = waitQueue{node: b, lane: Lane(i)}
	}
	b.apply(time.Time{}, l)
	return b
}

// SetLimits changes the limits of this node for all calls from now on: those
// that wait go out at once where the new limits allow it; calls under way are
// not touched. Cool-downs stay, and so does what was left of a burst. A fault
// in l is made safe (negative counts as zero, reserves are cut to Total).
func (b *Budget) SetLimits(l Limits) {
	if b == nil {
		return
	}
	t := b.tree
	now := t.lock()
	if !t.used { // nothing was taken yet: start full, and leave the clock alone
		b.total = tokenBucket{}
		for i := range b.lane {
			b.lane[i].own, b.lane[i].reserve = tokenBucket{}, tokenBucket{}
		}
		b.apply(time.Time{}, l)
		t.mu.Unlock()
		return
	}
	now = t.advance(now)
	b.apply(now, l)
	t.unlock(t.pump(now))
}

func (b *Budget) apply(now time.Time, l Limits) {
	b.given = l
	b.limits, b.faulty = l.clean()
	b.kept = b.limits.slots()
	b.unlimited = b.limits == Limits{}
	b.total.set(now, b.limits.Total.Rate, b.limits.Total.burst())
	for i := range b.lane {
		limit, ln := b.limits.lane(Lane(i)), &b.lane[i]
		ln.own.set(now, limit.Rate, limit.burst())
		// One more than the burst, so that a token which waits its turn for
		// one of Total does not cost the next.
		ln.reserve.set(now, limit.Reserve.Rate, limit.Reserve.burst()+1)
	}
}

// Limits returns the limits as they were set.
func (b *Budget) Limits() Limits {
	if b == nil {
		return Limits{}
	}
	b.tree.mu.Lock()
	defer b.tree.mu.Unlock()
	return b.given
}

// Name returns the names from the root down, like "account/provider".
func (b *Budget) Name() string {
	if b == nil {
		return ""
	}
	return b.name
}

// root is the account of b.
func (b *Budget) root() *Budget {
	if b == nil {
		return nil
	}
	return b.tree.root
}

// walk calls f for b and all below it, parents first, without a lock.
func (b *Budget) walk(f func(*Budget)) {
	if b == nil {
		return
	}
	f(b)
	b.tree.mu.Lock()
	children := append([]*Budget(nil), b.children...)
	b.tree.mu.Unlock()
	for _, c := range children {
		c.walk(f)
	}
}

// faults are what is wrong with the limits of b's whole tree.
func (b *Budget) faults() []error {
	var errs []error
	b.root().walk(func(n *Budget) {
		n.tree.mu.Lock()
		defer n.tree.mu.Unlock()
		for _, f := range n.faulty {
			errs = append(errs, fmt.Errorf("jobpoll: budget %q: %s", n.name, f))
		}
	})
	return errs
}

// surelyOpen reports whether no node of the tree has cooled down of late.
func (b *Budget) surelyOpen() bool { return b == nil || !b.tree.cooled.Load() }

// closedFor is how long the latest cool-down from b up to the root still holds
// the lane, zero where it is open. r is a reading of the clock from just now.
func (b *Budget) closedFor(lane Lane, r reading) time.Duration {
	if b.surelyOpen() {
		return 0
	}
	t := b.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.take(r)
	if !t.coolest.After(now) {
		t.cooled.Store(false)
	}
	var left time.Duration
	for x := b; x != nil; x = x.parent {
		left = max(left, x.lane[lane].cool.until.Sub(now))
	}
	return left
}

// limitsJobs reports whether the number of remote jobs is limited, here or above.
func (b *Budget) limitsJobs() bool {
	if b == nil {
		return false
	}
	b.tree.mu.Lock()
	defer b.tree.mu.Unlock()
	for x := b; x != nil; x = x.parent {
		if x.limits.Jobs > 0 {
			return true
		}
	}
	return false
}

// jobStarted counts a remote job, which may exceed Jobs.
func (b *Budget) jobStarted() {
	if b == nil {
		return
	}
	b.tree.mu.Lock()
	defer b.tree.mu.Unlock()
	b.ownJobs++
	for x := b; x != nil; x = x.parent {
		x.jobs++
	}
}

// doubts counts how many more of the remote jobs are submissions whose answer was
// lost.
func (b *Budget) doubts(n int) {
	if b == nil {
		return
	}
	b.tree.mu.Lock()
	defer b.tree.mu.Unlock()
	for x := b; x != nil; x = x.parent {
		x.doubted += n
	}
}

// jobEnded takes a remote job off the count; one too many is ignored.
func (b *Budget) jobEnded() {
	if b == nil {
		return
	}
	t := b.tree
	now := t.lock()
	if b.ownJobs == 0 {
		t.mu.Unlock()
		return
	}
	now = t.advance(now)
	b.ownJobs--
	for x := b; x != nil; x = x.parent {
		x.jobs--
		x.lane[LaneSubmit].cool = x.lane[LaneSubmit].cool.slotFreed(now)
	}
	t.unlock(t.pump(now))
}
