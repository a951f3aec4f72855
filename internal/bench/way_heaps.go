package main

import (
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// record is what a poller must know of a job, packed and without a pointer.
type record struct {
	id              [idLength]byte
	profile, status uint16
	looks           uint32
	submitted       int64
	deadline        int64
}

// statusRunning stands for the word of the provider, which is kept once.
const statusRunning = 1

// pageSize is how many jobs lie together. Pages never move, so the ids in them
// can be handed out as they are.
const pageSize = 1024

// batch are jobs that go to a worker together.
type batch struct {
	shard *shard
	n     int
	slots [16]uint32
}

// shard is a part of the jobs, with a due queue and a lock of its own.
type shard struct {
	m     *meter
	mu    sync.Mutex
	pages []*[pageSize]record
	count int
	due   heap4
	// wakeAt is when run looks again at the queue by itself; a job that is due
	// earlier must wake it.
	wakeAt int64
	wake   chan struct{}
}

// startHeaps is the first bare reference: no schedule, no budget, no stop rules.
func startHeaps(m *meter) way {
	out := make(chan batch, 1024)
	shards := make([]*shard, 4*runtime.GOMAXPROCS(0))
	for i := range shards {
		shards[i] = &shard{m: m, wake: make(chan struct{}, 1)}
		go shards[i].run(out)
	}
	for range m.workersOr(64) {
		go func() {
			for b := range out {
				b.shard.check(b)
			}
		}()
	}
	return way{admit: func(id string, first int64) { shards[indexOf(id)%len(shards)].admit(id, first) }}
}

func (s *shard) admit(id string, first int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := uint32(s.count)
	if s.count%pageSize == 0 {
		s.pages = append(s.pages, new([pageSize]record))
	}
	s.count++
	r := &s.pages[slot/pageSize][slot%pageSize]
	copy(r.id[:], id)
	r.profile, r.submitted, r.deadline = uint16(slot%profileCount), s.m.now(), never
	s.push(entry{due: first, slot: slot})
}

func (s *shard) push(e entry) {
	s.due.push(e)
	if e.due < s.wakeAt {
		s.wakeAt = e.due
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// run hands out what is due.
func (s *shard) run(out chan<- batch) {
	timer := time.NewTimer(time.Hour)
	for {
		b, next := s.take(s.m.now())
		if b.n > 0 {
			out <- b
			continue
		}
		timer.Reset(time.Duration(next - s.m.now()))
		select {
		case <-timer.C:
		case <-s.wake:
		}
	}
}

// take pops a batch of what is due; where nothing is, it tells when to come back.
func (s *shard) take(now int64) (batch, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := batch{shard: s}
	for b.n < len(b.slots) && len(s.due) > 0 && s.due[0].due <= now {
		b.slots[b.n] = s.due.pop().slot
		b.n++
	}
	s.wakeAt = never
	switch {
	case b.n > 0:
		s.wakeAt = 0 // run comes back by itself
	case len(s.due) > 0:
		s.wakeAt = s.due[0].due
	}
	return b, s.wakeAt
}

// check looks at the jobs of a batch and plans their next looks.
func (s *shard) check(b batch) {
	s.mu.Lock()
	pages := s.pages
	s.mu.Unlock()
	var next [len(b.slots)]int64
	for i, slot := range b.slots[:b.n] {
		r := &pages[slot/pageSize][slot%pageSize]
		s.m.look(unsafe.String(&r.id[0], idLength)) // the id is never written again
		r.status, r.looks = statusRunning, r.looks+1
		next[i] = s.m.now() + int64(s.m.Interval)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, slot := range b.slots[:b.n] {
		s.push(entry{due: next[i], slot: slot})
	}
}
