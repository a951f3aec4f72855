package jobpoll

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// callContext is the context of one call. The contexts of package context cost
// some allocations, which are made only where somebody asks to be told of the
// end: a Checker that looks into memory does not, one that calls over HTTP does.
type callContext struct {
	base    context.Context
	touched atomic.Bool // it has ended, or somebody has asked to be told of that

	mu     sync.Mutex
	inner  context.Context
	cancel context.CancelCauseFunc
	over   bool
	cause  error
}

// renew gives a context for the next call: c itself where nobody can have kept
// it from the last one.
func (c *callContext) renew(base context.Context) *callContext {
	if c != nil {
		if c.base == base && !c.touched.Load() {
			return c
		}
		c.end(nil) // it may have been asked only after its call
	}
	return &callContext{base: base}
}

// end ends the context, if it has not ended.
func (c *callContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.touched.Store(true)
		c.over, c.cause = true, cause
		if c.inner != nil {
			c.cancel(cause)
		}
	}
}

// release ends the context after its call, where that matters to anybody.
func (c *callContext) release() {
	if c.touched.Load() {
		c.end(nil)
	}
}

// made gives the real context, which it makes if it is to be.
func (c *callContext) made(now bool) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil && (now || c.over) {
		c.touched.Store(true)
		c.inner, c.cancel = context.WithCancelCause(c.base)
		if c.over {
			c.cancel(c.cause)
		}
	}
	if c.inner == nil {
		return c.base
	}
	return c.inner
}

func (c *callContext) Deadline() (time.Time, bool) { return c.made(false).Deadline() }
func (c *callContext) Done() <-chan struct{}       { return c.made(true).Done() }
func (c *callContext) Value(key any) any           { return c.made(false).Value(key) }

// Err is that of timedContext.
func (c *callContext) Err() error { return timedContext{c.made(false)}.Err() }

// timedContext says DeadlineExceeded for a call that timed out: the timeout is
// on the injected clock, so that the context is one that is cancelled.
type timedContext struct{ context.Context }

func (c timedContext) Err() error {
	err := c.Context.Err()
	if err != nil && errors.Is(context.Cause(c.Context), errTimeout) {
		return context.DeadlineExceeded
	}
	return err
}
