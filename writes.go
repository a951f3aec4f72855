package jobpoll

import (
	"context"
	"sync"
)

// writes are those to the store that are under way, by what they are about: so
// that they reach it in their order. Each channel is closed when its write is
// over. Guarded by Poller.mu.
type writes[K comparable] map[K]chan struct{}

// begin waits until no other write about k is under way. Called under mu, which
// it releases while it waits.
func (w writes[K]) begin(ctx context.Context, mu *sync.Mutex, k K) error {
	for {
		over, busy := w[k]
		if !busy {
			w[k] = make(chan struct{})
			return nil
		}
		mu.Unlock()
		var err error
		select {
		case <-over:
		case <-ctx.Done():
			err = contextError(ctx)
		}
		mu.Lock()
		if err != nil {
			return err
		}
	}
}

// end lets the next one in. Called under mu.
func (w writes[K]) end(k K) {
	close(w[k])
	delete(w, k)
}
