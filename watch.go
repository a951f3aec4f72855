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
// It refuses an empty id, an unknown route (ErrUnknownRoute), any job while
// another Poller has the lease of the Store (ErrNotOwner; see Run), a ClientKey of
// another job (ErrDuplicateKey), and a job whose end is known (ErrResolved),
// unless we only stopped watching it and the remote job may still bring a
// result (Reason.Resumable): then it is watched anew, once that end has been
// told, so that OnStop can call Watch to go on.
func (p *Poller) Watch(ctx context.Context, job Job) error {
	_, err := p.watch(ctx, job, nil)
	return err
}

// watch takes a job up and, if w is not nil, lets w wait for its end.
func (p *Poller) watch(ctx context.Context, job Job, w *endWaiter) (*Outcome, error) {
	if err := job.faults(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("jobpoll: %s: not watched: %w", job.Key(), contextError(ctx))
	}
	key := job.Key()
	stored, err := p.stored(ctx, key)
	if err != nil {
		return nil, err
	}
	if o := stored.ended(); o != nil {
		return o, &ResolvedError{Outcome: *o}
	}
	now, draw := p.lock()
	o, known, err := p.lookUp(key, job, w)
	for o == nil && !known && err == nil && p.store != nil {
		over, busy := p.writes[key]
		if !busy {
			p.writes[key] = make(chan struct{})
			defer func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.writes.end(key)
			}()
			break
		}
		p.unlock()
		select { // most likely another Watch is storing it
		case <-over:
		case <-ctx.Done():
			return nil, fmt.Errorf("jobpoll: %s: not watched: %w", key, contextError(ctx))
		}
		now, draw = p.lock()
		o, known, err = p.lookUp(key, job, w)
	}
	if o != nil || known || err != nil {
		p.unlock()
		return o, err
	}
	prior := p.find(key) // of which the end is being told
	tomb, buried := p.ended.get(key)
	if prior == nil && !buried && stored != nil && !stored.Told {
		// It was watched before and has not been restored yet: it goes on.
		p.adopt(stored, now, draw)
		o, _, err = p.lookUp(key, job, w)
		p.unlock()
		p.waker.kick()
		return o, err
	}
	// From here on it is a new watch, be it of a job that was watched before.
	r := p.prepare(job, now)
	switch {
	case prior != nil:
		p.resume(r, prior.outcome, prior.rev)
	case buried:
		p.resume(r, &tomb.outcome, tomb.rev)
	case stored != nil:
		p.resume(r, stored.Outcome, stored.rev)
	}
	if job.ClientKey != "" {
		p.byClient[job.ClientKey] = key // nobody else takes it meanwhile
	}
	again := &rewatch{rec: r}
	if p.store != nil {
		// Stored first, then watched: what is watched is never lost.
		var rec Record
		if prior != nil {
			prior.again = again
			rec = p.encode(prior)
			prior.again = nil
		} else {
			rec = p.encode(r)
		}
		p.unlock()
		err := p.put(ctx, "watch", rec)
		now, draw = p.lock()
		if err == nil {
			err = p.tenancy.refusal()
		}
		if err != nil {
			p.dropClient(job.ClientKey, key)
			p.unlock()
			return nil, fmt.Errorf("jobpoll: %s: not watched, it could not be stored: %w", key, err)
		}
	}
	if prior != nil {
		prior.again = again
		again.wait(w)
		p.unlock()
		return nil, nil
	}
	p.begin(r, now, draw).wait(w)
	p.unlock()
	return nil, nil
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
