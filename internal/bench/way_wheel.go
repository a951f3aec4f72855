package main

import (
	"sync"
	"time"
	"unsafe"
)

// line is all of a job in one cache line: what is known of it, and its place in
// the wheel. No pointer, no second place in memory to touch.
type line struct {
	id              [idLength]byte
	next            uint32 // the next job of the same tick, plus one
	due             int64
	deadline        int64
	profile, status uint16
	looks           uint32
}

const (
	tick       = int64(time.Millisecond)
	wheelTicks = 1 << 15 // half a minute; what is later goes round
)

// wheel is a timing wheel: a list of jobs for each tick.
type wheel struct {
	mu    sync.Mutex
	pages []*[pageSize]line
	count int
	heads []uint32 // by tick: the first job of the list, plus one
	done  int64    // the last tick that was taken
}

func newWheel() *wheel { return &wheel{heads: make([]uint32, wheelTicks)} }

// startWheel is the second bare reference.
func startWheel(m *meter) way {
	w := newWheel()
	out := make(chan batch, 1024)
	for range m.workersOr(64) {
		go func() {
			for b := range out {
				w.check(m, b)
			}
		}()
	}
	go func() {
		for {
			m.sleepUntil((w.done + 1) * tick) // only this goroutine writes done
			w.expire(m.now(), func(b batch) { out <- b })
		}
	}()
	return way{admit: w.admit}
}

func (w *wheel) admit(id string, first int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slot := uint32(w.count)
	if w.count%pageSize == 0 {
		w.pages = append(w.pages, new([pageSize]line))
	}
	w.count++
	l := &w.pages[slot/pageSize][slot%pageSize]
	copy(l.id[:], id)
	l.profile, l.deadline = uint16(slot%profileCount), never
	w.insert(slot, l, first)
}

// insert puts a job into the list of the first tick that is not before it is due.
func (w *wheel) insert(slot uint32, l *line, due int64) {
	l.due = due
	t := max((due+tick-1)/tick, w.done+1)
	head := &w.heads[t%wheelTicks]
	l.next = *head
	*head = slot + 1
}

// expire hands out, in batches, the jobs of all ticks up to now. A list is
// walked without the lock: once cut off, nobody else knows it.
func (w *wheel) expire(now int64, hand func(batch)) {
	var b batch
	for w.done < now/tick {
		slot, pages := w.cut()
		for slot != 0 {
			l := &pages[(slot-1)/pageSize][(slot-1)%pageSize]
			this := slot - 1
			slot = l.next
			if l.due > now {
				w.goRound(this, l)
				continue
			}
			b.slots[b.n] = this
			b.n++
			if b.n == len(b.slots) {
				hand(b)
				b.n = 0
			}
		}
	}
	if b.n > 0 {
		hand(b)
	}
}

// cut takes the list of the next tick.
func (w *wheel) cut() (head uint32, pages []*[pageSize]line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done++
	at := &w.heads[w.done%wheelTicks]
	head, *at = *at, 0
	return head, w.pages
}

func (w *wheel) goRound(slot uint32, l *line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.insert(slot, l, l.due)
}

// check looks at the jobs of a batch and puts them back.
func (w *wheel) check(m *meter, b batch) {
	w.mu.Lock()
	pages := w.pages
	w.mu.Unlock()
	var lines [len(b.slots)]*line
	var next [len(b.slots)]int64
	for i, slot := range b.slots[:b.n] {
		l := &pages[slot/pageSize][slot%pageSize]
		m.look(unsafe.String(&l.id[0], idLength)) // the id is never written again
		l.status, l.looks = statusRunning, l.looks+1
		lines[i], next[i] = l, m.now()+int64(m.Interval)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, slot := range b.slots[:b.n] {
		w.insert(slot, lines[i], next[i])
	}
}
