package jobpoll

import (
	"context"
	"sync"
)

// crew counts the goroutines of a term. It is a sync.WaitGroup whose last member
// announces, before it is done itself, what waits for it: else a test clock could
// run on between the two. The zero crew is empty.
type crew struct {
	mu    sync.Mutex
	n     int
	empty func() // nil: nobody waits
}

func (c *crew) enter() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

// leave is to be called before the goroutine tells a test clock that it is done.
func (c *crew) leave() {
	c.mu.Lock()
	c.n--
	empty := c.takeEmpty()
	c.mu.Unlock()
	empty()
}

// whenEmpty makes f be called once, when nobody is left.
func (c *crew) whenEmpty(f func()) {
	c.mu.Lock()
	c.empty = f
	empty := c.takeEmpty()
	c.mu.Unlock()
	empty()
}

func (c *crew) takeEmpty() (f func()) {
	if c.n > 0 || c.empty == nil {
		return func() {}
	}
	f, c.empty = c.empty, nil
	return f
}

// background does work on a goroutine of its own, with a context made from base.
func (p *Poller) background(c *crew, base context.Context, name func() string, work func(ctx context.Context)) {
	c.enter()
	started := p.busy(name)
	go func() {
		ctx, idle := p.busyContext(base, name)
		started()
		defer idle()
		defer c.leave()
		work(ctx)
	}()
}
