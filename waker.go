package jobpoll

import (
	"sync"
)

// waker wakes the loop of Run. It has a lock of its own, so that clock and
// budget can call it from anywhere.
type waker struct {
	busy func(func() string) func()

	mu     sync.Mutex
	wake   chan struct{} // nil while Run is not running
	kicked bool
	idle   func()
	got    []routeGrant
}

type routeGrant struct {
	rt *route
	w  *want
	g  grant
}

func tickName() string { return "the loop of Run" }

// kick makes the loop tick once more.
func (w *waker) kick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kickLocked()
}

func (w *waker) kickLocked() {
	if w.wake == nil || w.kicked {
		return
	}
	w.kicked = true
	w.idle = w.busy(tickName)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// granted leaves a grant for the loop; without one it goes back.
func (w *waker) granted(g routeGrant) {
	w.mu.Lock()
	running := w.wake != nil
	if running {
		w.got = append(w.got, g)
		w.kickLocked()
	}
	w.mu.Unlock()
	if !running {
		g.g.giveBack()
	}
}

// take gives what has come since the last tick.
func (w *waker) take() (got []routeGrant, idle func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	got, idle = w.got, w.idle
	w.got, w.idle, w.kicked = nil, nil, false
	if idle == nil {
		idle = noBusy
	}
	return got, idle
}

// swallow gives back what has come since the last tick.
func (w *waker) swallow() {
	got, idle := w.take()
	for _, g := range got {
		g.g.giveBack()
	}
	idle()
}

func (w *waker) open() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wake = make(chan struct{}, 1)
	return w.wake
}

// close makes wake-ups no-ops; what has come is left for take.
func (w *waker) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wake = nil
}
