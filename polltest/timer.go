package polltest

import "time"

// timer is one AfterFunc or Sleep. All but clock and f is guarded by clock.mu.
type timer struct {
	clock  *Clock
	f      func()
	index  int  // in the heap
	armed  bool // in the heap
	prompt bool // armed for the instant at which it was armed
}

// Stop prevents f from being called; false if it was called or stopped before.
func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.clock.disarm(t)
}

// Reset makes f be called after d from now; true if the timer was pending.
func (t *timer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	pending := t.clock.disarm(t)
	t.clock.arm(t, d)
	return pending
}

// arm puts t into the heap; c.mu is held.
func (c *Clock) arm(t *timer, d time.Duration) {
	t.armed, t.prompt = true, d <= 0
	c.heap = append(c.heap, heapEntry{at: after(c.mono, max(d, 0)), seq: c.armed, timer: t})
	c.armed++
	c.heap.up(len(c.heap) - 1)
}

// disarm takes t out of the heap, if it is there; c.mu is held.
func (c *Clock) disarm(t *timer) bool {
	if !t.armed {
		return false
	}
	t.armed = false
	c.heap.remove(t.index)
	return true
}

// pop takes the earliest timer out of the heap; c.mu is held.
func (c *Clock) pop() heapEntry {
	e := c.heap[0]
	c.disarm(e.timer)
	return e
}

// timerHeap is a 4-ary heap by instant, then by order of arming.
type timerHeap []heapEntry

type heapEntry struct {
	at    time.Duration
	seq   uint64
	timer *timer
}

func (e heapEntry) before(o heapEntry) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

func (h timerHeap) set(i int, e heapEntry) {
	h[i] = e
	e.timer.index = i
}

func (h timerHeap) up(i int) {
	e := h[i]
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(h[parent]) {
			break
		}
		h.set(i, h[parent])
		i = parent
	}
	h.set(i, e)
}

func (h timerHeap) down(i int) {
	e := h[i]
	for {
		first := 4*i + 1
		if first >= len(h) {
			break
		}
		least := first
		for k := first + 1; k < min(first+4, len(h)); k++ {
			if h[k].before(h[least]) {
				least = k
			}
		}
		if !h[least].before(e) {
			break
		}
		h.set(i, h[least])
		i = least
	}
	h.set(i, e)
}

func (h *timerHeap) remove(i int) {
	last := len(*h) - 1
	moved := (*h)[last]
	(*h)[last] = heapEntry{}
	*h = (*h)[:last]
	if i == last {
		return
	}
	h.set(i, moved)
	h.up(i)
	h.down(moved.timer.index)
}
