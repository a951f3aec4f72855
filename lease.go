package jobpoll

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// DefaultLeaseTTL is the default of Config.LeaseTTL.
const DefaultLeaseTTL = 30 * time.Second

// tenancy is the Poller's place as the one owner of its Store.
type tenancy struct {
	leaser Leaser // nil: the Store knows no owners, or Config.LeaseTTL says to ask for no lease
	owner  string
	ttl    time.Duration
	// fence is that of the last lease that was got. It stays when the lease is
	// gone, so that what is still under way cannot write.
	fence atomic.Uint64

	// All below is guarded by Poller.mu.
	standby bool  // Run is under way, and another has the lease
	until   Stamp // it is surely ours before
	next    Stamp // when it is renewed
	asking  bool
	adrift  bool          // it has lapsed, and the Store does not say who has it now
	changed chan struct{} // closed when any of it changes, if somebody waits
}

func (t *tenancy) set(cfg *Config, random string) {
	t.owner, t.ttl, t.until = cfg.Owner, cfg.LeaseTTL, lastStamp
	if t.owner == "" {
		t.owner = random
	}
	if t.ttl == 0 {
		t.ttl = DefaultLeaseTTL
	}
	if l, ok := cfg.Store.(Leaser); ok && t.ttl > 0 {
		t.leaser, t.until = l, 0
	}
}

// pause is how long it takes at most until the Store is asked again: three
// times within the time of a lease.
func (t *tenancy) pause() time.Duration { return max(t.ttl/3, time.Millisecond) }

// sure reports whether nobody else can have the lease. Called under the lock.
func (t *tenancy) sure(now Stamp) bool { return now < t.until && !t.standby }

// jump takes in that the machine was suspended, for as long as the lease did not
// wait. Called under the lock.
func (t *tenancy) jump(by time.Duration) {
	if t.leaser != nil {
		t.until, t.next = t.until.Add(-by), t.next.Add(-by)
	}
}

// change tells those who wait. Called under the lock.
func (t *tenancy) change() {
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// refusal tells why nothing can be taken over now, nil if it can. Called under
// the lock.
func (t *tenancy) refusal() error {
	if t.standby {
		return ErrNotOwner
	}
	return nil
}

// askLease takes, renews or, with a ttl of zero, releases the lease. It is
// bounded in time, on the injected clock, if the Store honours its context.
func (p *Poller) askLease(ctx context.Context, ttl time.Duration) (fence uint64, err error) {
	t := &p.tenancy
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := p.line.clock.AfterFunc(t.pause(), func() { cancel(errTimeout) })
	defer timer.Stop()
	err = p.guard(Key{}, "Store.Lease", func() (err error) {
		fence, err = t.leaser.Lease(ctx, t.owner, ttl)
		return err
	})
	if err == nil && ttl > 0 && fence == 0 {
		err = errors.New("jobpoll: Store.Lease: a lease without a fence")
	}
	if err == nil || errors.Is(err, ErrNotOwner) {
		p.storeWorked(opLease)
		return fence, err
	}
	p.storeDown(opLease, "lease", err)
	return 0, fmt.Errorf("jobpoll: the lease of the store: %w", err)
}

// awaitLease waits until this Poller is the owner of its Store, or ctx ends. A
// Store that fails ends it too, unless patient. See await for woken.
func (p *Poller) awaitLease(ctx context.Context, patient bool, woken func()) (begun func(), err error) {
	t := &p.tenancy
	for t.leaser != nil && ctx.Err() == nil {
		began := p.line.now()
		work, idle := p.busyContext(ctx, func() string { return "asking for the lease" })
		woken()
		fence, err := p.askLease(work, t.ttl)
		switch {
		case err == nil:
			p.own(fence, began)
			return idle, nil
		case !patient && !errors.Is(err, ErrNotOwner):
			return idle, err
		}
		p.standBy()
		woken = p.rest(ctx, idle)
	}
	return woken, nil
}

// awaitOwner waits until this Poller surely is the owner of its Store, so that no
// other can buy the same. Before the first Run it takes the lease itself.
func (p *Poller) awaitOwner(ctx context.Context) error {
	t := &p.tenancy
	for {
		now := p.line.now()
		p.mu.Lock()
		sure, running, over := t.leaser == nil || t.sure(now), p.running, p.over
		err := t.refusal()
		if t.changed == nil {
			t.changed = make(chan struct{})
		}
		changed := t.changed
		p.mu.Unlock()
		switch {
		case sure || err != nil:
			return err
		case over:
			return ErrShutdown
		case !running:
			fence, err := p.askLease(ctx, t.ttl)
			if err != nil {
				return err
			}
			p.own(fence, now)
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return contextError(ctx)
		}
	}
}

// rest waits before the Store is asked again. idle ends the work that was under
// way, what it returns ends what it was woken for.
func (p *Poller) rest(ctx context.Context, idle func()) (woken func()) {
	wake := make(chan func(), 1)
	timer := p.line.clock.AfterFunc(p.tenancy.pause(), func() {
		wake <- p.busy(func() string { return "waiting for the lease" })
	})
	idle()
	select {
	case <-ctx.Done():
		if timer.Stop() {
			return noBusy
		}
		return <-wake
	case woken = <-wake:
		return woken
	}
}

// own begins a term: the lease was asked for at began.
func (p *Poller) own(fence uint64, began Stamp) {
	t := &p.tenancy
	p.mu.Lock()
	before := t.fence.Swap(fence)
	was := t.standby
	t.standby, t.adrift = false, false
	t.until, t.next = began.Add(t.ttl), began.Add(t.pause())
	if p.run != nil {
		p.run.barred = false
	}
	t.change()
	if before != fence {
		if before != 0 {
			p.dropJobs(ErrNotOwner) // another had it meanwhile, and knows better
		}
		p.restored = false
	}
	p.unlock()
	if was || before != fence {
		p.ownerChanged(true)
	}
}

// standBy notes that another has the lease: it knows what becomes of the jobs.
func (p *Poller) standBy() {
	t := &p.tenancy
	p.mu.Lock()
	was := t.standby
	t.standby = true
	t.change()
	p.dropJobs(ErrNotOwner)
	p.unlock()
	if !was {
		p.storeWorked(opAll) // whether it would take our writes is not asked any more
		p.ownerChanged(false)
	}
}

// renewSoon renews the lease in time, and says when to come back. Called under
// the lock.
func (p *Poller) renewSoon(now Stamp) time.Duration {
	t := &p.tenancy
	if t.leaser == nil || t.standby || p.run == nil || p.run.draining || t.asking {
		return never
	}
	if left := t.next.Sub(now); left > 0 {
		return left
	}
	p.renew(now)
	return never // whoever asks wakes the loop
}

// renew asks for the lease again, in the background. Called under the lock.
func (p *Poller) renew(now Stamp) {
	t := &p.tenancy
	if t.asking {
		return
	}
	t.asking, t.next = true, now.Add(t.pause())
	run := p.run
	p.background(&run.crew, run.store, func() string { return "renewing the lease" }, func(ctx context.Context) {
		// One that hangs does not hold up the looks any longer than one that fails.
		late := p.line.clock.AfterFunc(t.pause(), func() { p.unbar(run, true) })
		defer late.Stop()
		fence, err := p.askLease(ctx, t.ttl)
		p.renewed(run, fence, now, err)
	})
}

// renewed takes in what the Store said to the question of instant asked.
func (p *Poller) renewed(run *runState, fence uint64, asked Stamp, err error) {
	t := &p.tenancy
	p.mu.Lock()
	t.asking = false
	switch {
	case err == nil && fence == t.fence.Load():
		t.until, t.adrift = asked.Add(t.ttl), false
		t.change()
	case err == nil || errors.Is(err, ErrNotOwner):
		run.lost = true // in the first case another had it in between
	}
	lost := run.lost
	p.mu.Unlock()
	p.unbar(run, !lost)
	p.waker.kick()
}

// bar stops the looks of a lease that has lapsed until it is known whose it is:
// of a process that was suspended, for one. It reports whether they are. Called
// under the lock.
func (p *Poller) bar(now Stamp) bool {
	t := &p.tenancy
	if t.adrift || p.run == nil {
		return false
	}
	p.run.barred = true
	p.renew(now)
	return true
}

// unbar lets the looks go on; they do too where the Store does not answer, since
// nobody else can store what they find either, as it seems.
func (p *Poller) unbar(run *runState, goOn bool) {
	now := p.line.now()
	p.mu.Lock()
	was := run.barred && goOn
	if was {
		run.barred = false
		p.tenancy.adrift = now >= p.tenancy.until
	}
	p.mu.Unlock()
	if was {
		p.serveLeft()
		p.waker.kick()
	}
}

// deposed notes that a write under a fence was refused: another is the owner.
func (p *Poller) deposed(fence uint64) {
	p.mu.Lock()
	if run := p.run; run != nil && fence == p.tenancy.fence.Load() && !p.tenancy.standby {
		run.lost = true
	}
	p.mu.Unlock()
	p.waker.kick()
}

// lostLease reports whether the term is over.
func (p *Poller) lostLease(run *runState) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return run.lost
}

// releaseLease lets another take over at once. See await for idle.
func (p *Poller) releaseLease(run *runState, idle func()) (woken func()) {
	t := &p.tenancy
	if t.leaser == nil || p.lostLease(run) {
		return idle
	}
	p.mu.Lock()
	ours := !t.standby && t.fence.Load() != 0
	p.mu.Unlock()
	if !ours {
		return idle
	}
	ctx, woken := p.busyContext(context.WithoutCancel(run.store), func() string { return "releasing the lease" })
	idle()
	_, _ = p.askLease(ctx, 0) // if it fails, the lease lapses
	p.mu.Lock()
	t.until = 0
	p.mu.Unlock()
	return woken
}

// dropJobs forgets all jobs: another owner goes on with them, or the Store is
// read again. Those who wait for one are told why. Called under the lock.
func (p *Poller) dropJobs(why error) {
	for slot := range p.jobs.End() {
		if r := p.jobs.at(slot); r != nil && !r.served { // a callback that has not returned keeps its record
			p.dropJob(r, why)
		}
	}
	p.dropSubmissions(why)
	p.holds.dropAll(p.giveJobSlot)
	p.ended, p.early = tombstones{}, parking{}
	p.byClient, p.orphans = map[string]Key{}, map[string][]storedJob{}
	p.dirty, p.restored = nil, false
	p.behind = backlog{}
	p.drained(why)
}

// dropJob forgets one.
func (p *Poller) dropJob(r *record, why error) {
	if r.call != nil {
		r.route.meter.lookDropped()
		p.loseCall(r, fmt.Errorf("jobpoll: %s: %w", r.job.Key(), why))
	}
	if r.phase == phaseEnding {
		p.undelivered--
	} else {
		r.to(phaseWaiting)
		r.route.meter.released(r.submitted.Time(), int(r.track.Errors))
		p.giveJobSlot(r.route.budget)
	}
	waiters := r.waiters
	if r.again != nil {
		waiters = append(waiters, r.again.waiters...)
	}
	for _, w := range waiters {
		w.end(nil, why)
	}
	for _, f := range r.followers {
		f.over()
	}
	r.waiters, r.followers, r.again = nil, nil, nil
	p.dropRecord(r)
}
