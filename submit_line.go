package jobpoll

// lineUp is want for one who may ask for its place.
func (b *Budget) lineUp(lane Lane, wake func(grant)) *waiter {
	w := &waiter{wake: wake}
	t := b.tree
	now := t.advance(t.lock())
	t.add(w, b, lane)
	t.unlock(t.pump(now))
	return w
}

// leaveLine withdraws a waiter; one that was served and not woken gives back.
func (b *Budget) leaveLine(w *waiter) {
	now := b.tree.advance(b.tree.lock())
	b.tree.unlock(b.tree.leave(now, w))
}

// place is the place of a waiter among those of its node and lane, 1-based, and
// what the first of them waits for; zero for one that does not wait any more.
func (b *Budget) place(w *waiter) (n int, why string) {
	now := b.tree.advance(b.tree.lock())
	defer b.tree.mu.Unlock()
	if w.state.Load() != waiterWaits {
		return 0, ""
	}
	for v := w; v != nil; v = v.prev {
		n++
	}
	return n, b.waitsFor(now, w.queue.lane)
}

// queued is a line of a node at one instant: the places of those in it, and what
// the first of them waits for.
type queued struct {
	places map[*waiter]int
	why    string
}

// lineOf gives all places of a node's lane at once: to ask for each on its own
// takes the square of their number.
func (b *Budget) lineOf(lane Lane) queued {
	now := b.tree.advance(b.tree.lock())
	defer b.tree.mu.Unlock()
	l := queued{places: map[*waiter]int{}}
	for v := b.lane[lane].queue.first; v != nil; v = v.next {
		l.places[v] = len(l.places) + 1
	}
	if len(l.places) > 0 {
		l.why = b.waitsFor(now, lane)
	}
	return l
}

// lines are the lines of several nodes, each as it was when it was first asked for.
type lines map[*Budget]queued

func (l lines) place(b *Budget, w *waiter) (n int, why string) {
	of, known := l[b]
	if !known {
		of = b.lineOf(LaneSubmit)
		l[b] = of
	}
	if n = of.places[w]; n == 0 {
		return 0, ""
	}
	return n, of.why
}
