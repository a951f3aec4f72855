package jobpoll

import (
	"errors"
	"sync"
	"time"
)

// Health is whether a Poller can do its work, for a health check and for a load
// balancer that looks for the owner.
type Health struct {
	// Running tells that Run is under way.
	Running bool `json:"running"`
	// Owner tells that jobs and notices can be handed over: false while Run waits
	// because another Poller has the lease of the Store. Without a Store that is
	// a Leaser it is true.
	Owner bool `json:"owner"`
	// Store is the state of the Store; zero without one.
	Store StoreHealth `json:"store"`
}

// StoreHealth is the state of the Store.
type StoreHealth struct {
	// Failing tells that the last call of some kind failed, and has not been made
	// with success since. Polling goes on meanwhile; what would have to be stored
	// first (Watch, Submit, the end of a job before OnStop) is refused or waits.
	Failing bool `json:"failing"`
	// Since is when Failing last changed; zero if it never did.
	Since time.Time `json:"since,omitzero"`
	// Err is the first error of a Store that fails; nil for one that does not.
	Err error `json:"-"`
	// Message is the text of Err, as Excerpt gives it: why the Store fails. Empty for
	// one that does not.
	Message string `json:"message,omitempty"`
	// Behind is about how many records are not written yet, and Age how old the
	// oldest of them is: some seconds while the Store works.
	Behind int           `json:"behind"`
	Age    time.Duration `json:"age"`
}

// storeOp is a method of Store, or a set of them.
type storeOp uint8

const (
	opLoad storeOp = 1 << iota
	opGet
	opPut
	opLease
	opAll = opLoad | opGet | opPut | opLease
)

// storeState is what is known of the Store's health.
type storeState struct {
	mu      sync.Mutex
	failing storeOp
	since   Stamp
	err     error
	message string // of err
}

// set takes in that calls failed (err) or worked, and reports whether the Store
// as a whole is another now.
func (s *storeState) set(ops storeOp, err error, now Stamp) bool {
	message := errorText(err) // the user's code: before the lock
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.failing
	if err != nil {
		s.failing |= ops
	} else {
		s.failing &^= ops
	}
	if (was == 0) == (s.failing == 0) {
		return false
	}
	s.since, s.err, s.message = now, err, message
	return true
}

// Health tells whether the Poller can do its work now.
func (p *Poller) Health() Health {
	now := p.line.now()
	p.mu.Lock()
	h := Health{Running: p.running && !p.over, Owner: p.tenancy.refusal() == nil}
	behind, since := len(p.dirty)+p.behind.len(), p.behindSince
	p.mu.Unlock()
	if p.store == nil {
		return h
	}
	h.Store = p.storeHealth()
	if h.Store.Behind = behind; behind > 0 && since != 0 {
		h.Store.Age = max(now.Sub(since), 0)
	}
	return h
}

func (p *Poller) storeHealth() StoreHealth {
	s := &p.storeState
	s.mu.Lock()
	defer s.mu.Unlock()
	return StoreHealth{Failing: s.failing != 0, Since: toWall(s.since, p.line.shift()), Err: s.err, Message: s.message}
}

// storeWorked notes calls of the Store that went well.
func (p *Poller) storeWorked(ops storeOp) {
	if !p.storeState.set(ops, nil, p.line.last()) {
		return
	}
	p.log.Info("the store works again")
	p.storeChanged()
	p.healed()
}

// storeDown reports a failed call of the Store, and that the Store fails.
func (p *Poller) storeDown(op storeOp, what string, err error) {
	p.storeFailed(op, what, err)
	if errors.Is(err, ErrNotOwner) {
		return // it does what it must
	}
	if p.storeState.set(op, err, p.line.last()) {
		p.storeChanged()
	}
}

func (p *Poller) storeChanged() {
	if f := p.hooks.StoreChanged; f != nil {
		p.hook("StoreChanged", Key{}, func() { f(p.storeHealth()) })
	}
}

func (p *Poller) ownerChanged(owner bool) {
	p.log.Info("the lease of the store", "owner", p.tenancy.owner, "ours", owner)
	if f := p.hooks.OwnerChanged; f != nil {
		e := OwnerEvent{Owner: owner, Name: p.tenancy.owner, At: toWall(p.line.last(), p.line.shift())}
		p.hook("OwnerChanged", Key{}, func() { f(e) })
	}
}

// healed goes on at once with the ends that could not be stored.
func (p *Poller) healed() {
	p.mu.Lock()
	for _, r := range p.jobs.hot {
		if r == nil || r.phase != phaseEnding || r.stage != stageStore && r.stage != stageForget {
			continue
		}
		if _, planned := p.retries.At(r.slot); planned {
			p.retries.Set(r.slot, int64(p.line.last()))
		}
	}
	p.flushed = 0
	p.mu.Unlock()
	p.waker.kick()
}

var opNames = map[storeOp]string{opLoad: "Load", opGet: "Get", opPut: "Put", opLease: "Lease"}

func (op storeOp) String() string { return opNames[op] }
