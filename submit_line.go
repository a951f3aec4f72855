package jobpoll

// lineUp is want for one who may ask for its place.
func (b *Budget) lineUp(lane Lane, wake func(grant)) *waiter {
	w := &waiter{wake: wake}
	t := b.tree
	t.mu.Lock()
	now := t.advance(t.read())
	t.add(w, b, lane)
	t.unlock(t.pump(now))
	return w
}

// leaveLine withdraws a waiter; one that was served and not woken gives back.
func (b *Budget) leaveLine(w *waiter) {
	b.tree.mu.Lock()
	b.tree.unlock(b.tree.leave(w))
}

// place is the place of a waiter among those of its node and lane, 1-based, and
// what the first of them waits for; zero for one that does not wait any more.
func (b *Budget) place(w *waiter) (n int, why string) {
	b.tree.mu.Lock()
	defer b.tree.mu.Unlock()
	if w.state.Load() != waiterWaits {
		return 0, ""
	}
	for v := w; v != nil; v = v.prev {
		n++
	}
	return n, b.waitsFor(w.queue.lane)
}
