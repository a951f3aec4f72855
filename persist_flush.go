package jobpoll

import (
	"cmp"
	"context"
	"time"
)

// flushBatch is how many records one Put of a flush writes at most.
const flushBatch = 128

// batch is what one Put of a flush writes.
type batch struct {
	recs   []Record
	behind int      // so many of them, the first, come from the backlog
	jobs   []handle // whose the others are
	keys   []Key
	over   chan struct{}
}

// flush writes what the store is behind with. An end is not written here but
// by the one who tells it, unless this is the last flush of a Run.
func (p *Poller) flush(ctx context.Context, last bool) {
	defer func() { // also where the Store ends the goroutine
		p.mu.Lock()
		p.flushing = false
		p.mu.Unlock()
	}()
	began := p.line.last()
	p.noteCooldowns()
	p.saveProfiles(began, last)
	p.mu.Lock()
	left := len(p.dirty)
	var err error
	for more := true; more && err == nil; {
		b := p.nextBatch(&left, last)
		if len(b.recs) > 0 {
			p.mu.Unlock()
			err = p.put(ctx, putPacing, b.recs...)
			p.mu.Lock()
			p.batchWritten(b, err)
		}
		more = left > 0 || p.behind.len() > 0
	}
	switch {
	case err != nil:
	case len(p.dirty)+p.behind.len() == 0:
		p.behindSince = 0
	default:
		p.behindSince = began
	}
	p.mu.Unlock()
}

// nextBatch takes the next records to be written: left is how many dirty jobs
// this flush still has to look at. Called under the lock.
func (p *Poller) nextBatch(left *int, last bool) *batch {
	most := cmp.Or(p.flushSize, flushBatch)
	b := &batch{recs: p.behind.take(most), over: make(chan struct{})}
	b.behind = len(b.recs)
	n := min(*left, len(p.dirty), most-b.behind)
	for _, h := range p.dirty[:n] {
		r := p.get(h)
		if r == nil || !r.stale || r.phase == phaseEnding && (!last || r.served) {
			continue
		}
		r.stale = false
		key := r.job.Key()
		if _, busy := p.writes[key]; busy {
			p.touch(r) // with the next flush
			continue
		}
		p.writes[key] = b.over
		b.jobs, b.keys = append(b.jobs, h), append(b.keys, key)
		b.recs = append(b.recs, p.encode(r))
	}
	if p.dirty = p.dirty[n:]; len(p.dirty) == 0 {
		p.dirty = nil
	}
	*left = min(*left-n, len(p.dirty))
	return b
}

// batchWritten lets the next writes of the same records in; what could not be
// written stays behind. Called under the lock.
func (p *Poller) batchWritten(b *batch, err error) {
	for _, h := range b.jobs {
		if r := p.get(h); r != nil && err != nil {
			p.touch(r)
		}
	}
	for _, k := range b.keys {
		delete(p.writes, k)
	}
	close(b.over)
	if err == nil {
		p.flushSize = min(2*cmp.Or(p.flushSize, flushBatch), flushBatch)
		return
	}
	p.behind.giveBack(b.recs[:b.behind])
	p.flushSize = max(len(b.recs)/2, 1) // it may be one that the Store never takes: it must not hold up the rest
}

// fallBehind notes since when the store is behind. Called under the lock.
func (p *Poller) fallBehind() {
	if p.behindSince == 0 {
		p.behindSince = p.line.last()
	}
}

// flushEvery is how old stored pacing may get.
const flushEvery = 5 * time.Second

// flushSoon starts a flush in the background when one is due, and says when
// to come back. Called under the lock.
func (p *Poller) flushSoon(now Stamp) time.Duration {
	pacing := len(p.dirty) + p.behind.len()
	if pacing+len(p.unsaved) == 0 || p.run == nil || !p.run.open() {
		return never
	}
	left := flushEvery - now.Sub(p.flushed)
	if pacing == 0 {
		left = max(left, saveEvery-now.Sub(p.saved))
	}
	if left > 0 {
		return left
	}
	p.flushed = now
	if !p.flushing {
		p.flushing = true
		p.background(&p.run.crew, p.run.store, func() string { return "writing to the store" }, func(ctx context.Context) {
			p.flush(ctx, false)
		})
	}
	return flushEvery
}
