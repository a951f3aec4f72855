package jobpoll

import (
	"context"
	"fmt"
)

// Watch takes a job up: from now on its end will be told. It may be called at
// any time, from any goroutine. The same job twice is one stream, and the
// second call changes nothing. With a Store the job has been stored when Watch
// returns nil; an error of the store is returned and the job is not watched.
//
// It refuses an empty id, a route, an id or a ClientKey that is longer than 4096
// bytes or no UTF-8, as Notify does, an unknown route (ErrUnknownRoute), any job while
// another Poller has the lease of the Store (ErrNotOwner; see Run), a ClientKey of
// another job (ErrDuplicateKey), and a job whose end is known (ErrResolved),
// unless we only stopped watching it and the remote job may still bring a
// result (Reason.Resumable): then it is watched anew, once that end has been
// told, so that OnStop can call Watch to go on.
func (p *Poller) Watch(ctx context.Context, job Job) error {
	_, err := p.watch(ctx, job, nil)
	return err
}

// newWatch is a call of Watch on its way to a watched record.
type newWatch struct {
	job    Job
	key    Key
	waiter *endWaiter // nil: nobody waits for the end
	stored *storedJob // what the store held of the job, nil if nothing
	now    Stamp      // now and draw are as lock gave them last
	draw   float64

	rec   *record  // prepared
	prior *record  // of the watch before, whose end is being told
	again *rewatch // what follows on prior
}

// watch takes a job up and, if w is not nil, lets w wait for its end. Its steps
// are called under the lock, and hold it when they return.
func (p *Poller) watch(ctx context.Context, job Job, w *endWaiter) (*Outcome, error) {
	if err := job.faults(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("jobpoll: %s: not watched: %w", job.Key(), contextError(ctx))
	}
	v := newWatch{job: job, key: job.Key(), waiter: w}
	var err error
	if v.stored, err = p.stored(ctx, v.key); err != nil {
		return nil, err
	}
	if o := v.stored.ended(); o != nil {
		return o, &ResolvedError{Outcome: *o}
	}
	v.now, v.draw = p.lock()
	o, known, err := p.claim(ctx, &v)
	if o != nil || known || err != nil {
		p.unlock()
		return o, err
	}
	if p.store != nil {
		defer p.endClaim(v.key)
	}
	if p.unrestored(&v) { // it goes on
		p.adopt(v.stored, v.now, v.draw)
		o, _, err = p.lookUp(v.key, v.job, w)
		p.unlock()
		p.waker.kick()
		return o, err
	}
	p.prepareWatch(&v)
	if err = p.storeWatch(ctx, &v); err != nil {
		p.unlock()
		return nil, fmt.Errorf("jobpoll: %s: not watched, it could not be stored: %w", v.key, err)
	}
	p.beginWatch(&v)
	p.unlock()
	return nil, nil
}

// claim keeps other writes of the job out until endClaim; or tells what is
// known of it, and claims nothing. Called under the lock, which it releases while
// another write is under way. Not writes.begin: after each wait the job may be
// known, and it is later.
func (p *Poller) claim(ctx context.Context, v *newWatch) (o *Outcome, known bool, err error) {
	for {
		o, known, err = p.lookUp(v.key, v.job, v.waiter)
		if o != nil || known || err != nil || p.store == nil {
			return o, known, err
		}
		over, busy := p.writes[v.key]
		if !busy {
			p.writes[v.key] = make(chan struct{})
			return nil, false, nil
		}
		p.unlock()
		select { // most likely another Watch is storing it
		case <-over:
		case <-ctx.Done():
			err = fmt.Errorf("jobpoll: %s: not watched: %w", v.key, contextError(ctx))
			p.mu.Lock()
			return nil, false, err
		}
		v.now, v.draw = p.lock()
	}
}

// endClaim lets the next write of the job in. Called without the lock.
func (p *Poller) endClaim(key Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes.end(key)
}

// unrestored reports whether the job was watched before by what the store holds,
// and has not been restored yet. Called under the lock.
func (p *Poller) unrestored(v *newWatch) bool {
	if v.stored == nil || v.stored.Told || p.find(v.key) != nil {
		return false
	}
	_, buried := p.ended.get(v.key)
	return !buried
}

// prepareWatch makes the record of a new watch, be it of a job that was watched
// before. Called under the lock.
func (p *Poller) prepareWatch(v *newWatch) {
	v.prior = p.find(v.key)
	v.rec = p.prepare(v.job, v.now)
	tomb, buried := p.ended.get(v.key)
	switch {
	case v.prior != nil:
		p.resume(v.rec, v.prior.outcome, v.prior.rev)
		v.again = &rewatch{rec: v.rec}
	case buried:
		p.resume(v.rec, &tomb.outcome, tomb.rev)
	case v.stored != nil:
		p.resume(v.rec, v.stored.Outcome, v.stored.rev)
	}
	if v.job.ClientKey != "" {
		p.byClient[v.job.ClientKey] = v.key // nobody else takes it meanwhile
	}
}

// storeWatch stores a prepared watch before it begins: what is watched is never
// lost. Called under the lock, which it releases meanwhile.
func (p *Poller) storeWatch(ctx context.Context, v *newWatch) error {
	if p.store == nil {
		return nil
	}
	var rec Record
	if v.prior != nil {
		v.prior.again = v.again
		rec = p.encode(v.prior)
		v.prior.again = nil
	} else {
		rec = p.encode(v.rec)
	}
	p.unlock()
	err := p.put(ctx, "watch", rec)
	v.now, v.draw = p.lock()
	if err == nil {
		err = p.tenancy.refusal()
	}
	if err != nil {
		p.dropClient(v.job.ClientKey, v.key)
	}
	return err
}

// beginWatch begins a prepared watch, or leaves it to begin once the end of the
// one before has been told. Called under the lock.
func (p *Poller) beginWatch(v *newWatch) {
	if v.prior != nil {
		v.prior.again = v.again
		v.again.wait(v.waiter)
		return
	}
	p.begin(v.rec, v.now, v.draw).wait(v.waiter)
}

// begin starts the watch of a prepared record.
func (p *Poller) begin(prepared *record, now Stamp, draw float64) *record {
	r := p.admit(prepared, false)
	d := p.decide(r, now, draw)
	if d.stop != ReasonNone {
		// One look comes first, as soon as there may be one.
		d = step{at: later(later(now, r.floor()), p.closedUntil(r.route, now)), cause: CauseFirst}
	}
	d.at = later(d.at, r.resumeAt)
	p.schedule(r, d, now)
	p.applyEarly(r, now, draw)
	return r
}

// lookUp finds what is already known of a job. Called under the lock.
func (p *Poller) lookUp(key Key, job Job, w *endWaiter) (o *Outcome, known bool, err error) {
	if p.routes[key.Route] == nil {
		return nil, false, fmt.Errorf("jobpoll: %s: %w (Config.Routes, AddRoute)", key, ErrUnknownRoute)
	}
	if err := p.tenancy.refusal(); err != nil {
		return nil, false, fmt.Errorf("jobpoll: %s: not watched: %w", key, err)
	}
	r := p.find(key)
	switch {
	case r == nil:
	case r.again != nil:
		r.again.wait(w)
		return nil, true, nil
	case r.phase == phaseEnding && r.outcome.Reason.Resumable():
		// Its end is being told; then it is watched anew.
	case w != nil && r.told:
		return r.outcome, true, nil
	default:
		r.wait(w)
		return nil, true, nil
	}
	if t, ok := p.ended.get(key); ok && !t.outcome.Reason.Resumable() {
		return &t.outcome, false, &ResolvedError{Outcome: t.outcome}
	}
	if job.ClientKey != "" {
		if other, taken := p.clientKey(job.ClientKey); taken && other != key {
			return nil, false, fmt.Errorf("jobpoll: %s: ClientKey %q: %w (%s)", key, clip(job.ClientKey, 64), ErrDuplicateKey, other)
		}
		if s := p.submits.get(job.ClientKey); s != nil && !s.mayBe(key) {
			return nil, false, fmt.Errorf("jobpoll: %s: ClientKey %q: %w (a submission that is %s)", key, clip(job.ClientKey, 64), ErrDuplicateKey, s.state)
		}
	}
	return nil, false, nil
}
