package jobpoll

import (
	"context"
	"log/slog"
	"time"
)

// stage is how far the end of a job has got. Each stage is done once, in
// order; a failed one is tried again later.
type stage uint8

const (
	stageNone   stage = iota
	stageCancel       // ask the provider to cancel
	stageStore        // store the outcome
	stageTell         // OnStop
	stageForget       // store that it was told
)

// maxServing bounds the callbacks that run at once, over all jobs. It is far
// above Workers, so that slow callbacks of some thousand jobs do not delay
// others.
const maxServing = 4096

// serve makes sure that a runner takes care of what a record has to tell.
// Called under the lock.
func (p *Poller) serve(r *record) {
	if r.served || p.run == nil || !p.run.open() {
		return // Run serves what is left when it starts
	}
	r.served = true
	if p.serving >= maxServing {
		p.toServe = append(p.toServe, r.handle())
		return
	}
	p.startServing(r)
}

func (p *Poller) startServing(r *record) {
	p.serving++
	run, key, h := p.run, r.job.Key(), r.handle()
	name := func() string { return "callback of " + key.String() }
	p.background(&run.crew, run.work, name, func(ctx context.Context) { p.runServing(ctx, run, h) })
}

func (p *Poller) runServing(ctx context.Context, run *runState, h handle) {
	store := &storeContext{run.store, ctx}
	s := serving{run: run}
	died := true // until it returned: a callback can end its goroutine
	defer func() { p.endServing(h, p.line.now(), died, s) }()
	for p.serveStep(ctx, store, h, &s) {
	}
	died = false
}

// serving is what a runner is doing.
type serving struct {
	run     *runState
	telling bool // OnStop
}

// endServing lets the next record in.
func (p *Poller) endServing(h handle, now Stamp, died bool, s serving) {
	p.mu.Lock()
	p.serving--
	if r := p.get(h); r != nil && died {
		r.served = false
		if s.telling {
			p.retryServing(r, now, &r.attempts)
		} else {
			p.serve(r) // the update that it died of is gone
		}
	} else if r != nil && !r.served && p.run != s.run {
		// It outlived its Run, and the next one had to leave the record alone.
		_, planned := p.retries.At(r.slot)
		if r.update != nil || r.phase == phaseEnding && !planned {
			p.serve(r)
		}
	}
	for len(p.toServe) > 0 && p.serving < maxServing && p.run != nil && p.run.open() {
		next := p.get(p.toServe[0])
		p.toServe = p.toServe[1:]
		if next != nil {
			p.startServing(next)
		}
	}
	if len(p.toServe) == 0 {
		p.toServe = nil
	}
	p.mu.Unlock()
	p.waker.kick()
}

// serveStep does one thing for a record, without the lock; false when there is
// nothing left to do now.
func (p *Poller) serveStep(ctx, store context.Context, h handle, s *serving) bool {
	draw := p.rand()
	p.mu.Lock()
	r := p.get(h)
	if r == nil {
		p.mu.Unlock()
		return false
	}
	if ctx.Err() != nil && r.stage != stageForget {
		// Shut down: the rest with the next Run, which may have begun.
		r.served = false
		p.serve(r)
		p.mu.Unlock()
		return false
	}
	if u := r.update; u != nil {
		r.update = nil
		cb := p.callbacks.merge(r.route.Callbacks)
		p.mu.Unlock()
		p.meters.updates.Add(1)
		p.guardUpdate(ctx, cb, *u)
		return true
	}
	switch r.stage {
	case stageCancel:
		rt, job := r.route, r.job
		p.mu.Unlock()
		text := p.cancelBounded(ctx, s.run, rt, job)
		p.mu.Lock()
		r.outcome.RemoteCancel = text
		r.stage = stageStore
		p.mu.Unlock()
		return true
	case stageStore:
		return p.storeOutcome(store, r)
	case stageTell:
		s.telling = true
		again := p.tellOutcome(ctx, r)
		s.telling = false
		return again
	case stageForget:
		return p.forgetOutcome(store, r, draw)
	}
	r.served = false
	p.mu.Unlock()
	return false
}

// writeEnd writes a record whose watch has ended; false if that must be tried
// again later. Called under the lock, which it releases meanwhile.
func (p *Poller) writeEnd(ctx context.Context, r *record, what string) bool {
	if p.store == nil {
		return true
	}
	key := r.job.Key()
	if p.writes.begin(ctx, &p.mu, key) != nil { // shut down
		r.served = false
		return false
	}
	rec := p.encode(r)
	if r.stage == stageForget && r.again != nil { // that is what the store has to hold from now on
		r.again.rec.rev = r.rev - 1
		rec = p.encode(r.again.rec)
	}
	p.mu.Unlock()
	err := p.put(ctx, what, rec)
	p.mu.Lock()
	p.writes.end(key)
	if err != nil {
		p.retryServing(r, p.laterNow(), &r.storeErr)
		return false
	}
	return true
}

// storeOutcome stores the outcome; only then is it told. Called under the
// lock, which it releases.
func (p *Poller) storeOutcome(ctx context.Context, r *record) bool {
	if !p.writeEnd(ctx, r, "outcome") {
		p.mu.Unlock()
		return false
	}
	r.storeErr, r.told, r.stage = 0, true, stageTell
	o := *r.outcome
	for _, f := range r.followers {
		f.end(p.lastUpdate(r, p.laterNow()))
	}
	r.followers = nil
	for _, w := range r.waiters {
		w.end(&o, r.endErr)
	}
	r.waiters = nil
	p.mu.Unlock()
	p.logEnd(ctx, &o)
	if f := p.hooks.Stopped; f != nil {
		p.hook("Stopped", o.Job.Key(), func() { f(StopEvent{Outcome: o}) })
	}
	return true
}

// logEnd writes what one looks for an end by, and why it is none that was hoped for.
func (p *Poller) logEnd(ctx context.Context, o *Outcome) {
	level, err := slog.LevelInfo, o.Err()
	if err != nil {
		level = slog.LevelWarn
	}
	if !p.log.Enabled(ctx, level) {
		return
	}
	args := []any{"job", o.Job.Key().String()}
	if key := o.Job.ClientKey; key != "" {
		args = append(args, "client_key", clip(key, 64))
	}
	if profile := o.Job.Profile; profile != "" {
		args = append(args, "profile", clip(profile, 64))
	}
	args = append(args, "reason", o.Reason.String(), "state", o.State.String(), "polls", o.Polls)
	if err != nil {
		args = append(args, "error", err)
	}
	p.log.Log(ctx, level, "watch ended", args...)
}

// tellOutcome calls OnStop. Called under the lock, which it releases.
func (p *Poller) tellOutcome(ctx context.Context, r *record) bool {
	if now := p.laterNow(); !p.tenancy.sure(now) { // another owner may be telling it
		r.served = false
		p.retries.Set(r.slot, int64(now.Add(p.tenancy.pause())))
		p.mu.Unlock()
		return false
	}
	cb := p.callbacks.merge(r.route.Callbacks)
	o := *r.outcome
	attempt := int(r.attempts) + 1
	p.mu.Unlock()
	var err error
	if cb.OnStop != nil {
		err = p.callOnStop(ctx, cb, o, attempt)
	}
	p.mu.Lock()
	defer p.unlock()
	if err != nil {
		p.retryServing(r, p.laterNow(), &r.attempts)
		return false
	}
	r.attempts, r.stage = int32(attempt), stageForget
	if cb.OnStop != nil {
		p.after = append(p.after, func() { p.tellDelivered(o, attempt, nil) }) // last: it is told, whatever the hook does
	}
	return true
}

func (p *Poller) callOnStop(ctx context.Context, cb Callbacks, o Outcome, attempt int) (err error) {
	p.meters.stops.Add(1)
	err = errCallbackGone
	defer func() { // also where the callback ends its goroutine
		if err != nil {
			p.meters.stopFailures.Add(1)
			p.log.Warn("OnStop failed, it will be called again", "job", o.Job.Key().String(), "attempt", attempt, "error", scrubErr(err))
			p.tellDelivered(o, attempt, err)
		}
	}()
	return p.guard(o.Job.Key(), "OnStop", func() error { return cb.OnStop(ctx, o) })
}

func (p *Poller) tellDelivered(o Outcome, attempt int, err error) {
	if f := p.hooks.Delivered; f != nil {
		p.hook("Delivered", o.Job.Key(), func() {
			f(DeliverEvent{Key: o.Job.Key(), ClientKey: o.Job.ClientKey, Reason: o.Reason, Attempt: attempt, Err: err})
		})
	}
}

// forgetOutcome stores that the outcome has been told and drops the record.
// Called under the lock, which it releases.
func (p *Poller) forgetOutcome(ctx context.Context, r *record, draw float64) bool {
	if !p.writeEnd(ctx, r, "delivery") {
		p.mu.Unlock()
		return false
	}
	for _, w := range r.waiters {
		o := *r.outcome
		w.end(&o, r.endErr)
	}
	p.undelivered--
	again := r.again
	if again == nil {
		p.bury(tombstone{outcome: *r.outcome, rev: r.rev, late: r.lateTold})
		p.dropRecord(r)
		p.nothingLeft()
		p.mu.Unlock()
		return false
	}
	p.dropRecord(r)
	r = p.begin(again.rec, p.laterNow(), draw)
	r.waiters = append(r.waiters, again.waiters...)
	p.unlock()
	p.waker.kick()
	return false
}

// bury keeps what is kept of a job whose end has been told.
func (p *Poller) bury(t tombstone) {
	t.own()
	if j := &t.outcome.Job; j.ClientKey != "" {
		p.byClient[j.ClientKey] = j.Key()
	}
	for _, k := range p.ended.add(t) {
		p.dropClient(k.client, k.key)
	}
}

// Backoff of what must be told or stored in the end: 1 s to 5 min.
const (
	retryBase = time.Second
	retryCap  = 5 * time.Minute
)

// retryServing plans another try of a record's stage.
func (p *Poller) retryServing(r *record, now Stamp, failures *int32) {
	*failures = addCount(*failures)
	r.served = false
	p.retries.Set(r.slot, int64(now.Add(grow(retryBase, *failures-1, retryCap))))
}

func (c Callbacks) merge(route Callbacks) Callbacks {
	if route.OnUpdate != nil {
		c.OnUpdate = route.OnUpdate
	}
	if route.OnStop != nil {
		c.OnStop = route.OnStop
	}
	return c
}
