package main

import (
	"sync"
	"time"

	"github.com/jobpoll/jobpoll"
)

// end is what one side learned of one job.
type end struct {
	id     string    // the provider's
	at     time.Time // when it was learned
	state  jobpoll.State
	reason string // why it is no longer polled
	told   int    // how often the end was told
	looks  int    // by the side's own count
}

// ends are those of all jobs of one side, by the number of the order.
type ends struct {
	mu   sync.Mutex
	left int
	all  map[int]end
	done chan struct{} // closed when each job has one
}

func newEnds(jobs int) *ends {
	return &ends{left: jobs, all: make(map[int]end), done: make(chan struct{})}
}

func (e *ends) tell(n int, v end) {
	e.mu.Lock()
	defer e.mu.Unlock()
	v.told = e.all[n].told + 1
	e.all[n] = v
	if v.told == 1 {
		e.left--
		if e.left == 0 {
			close(e.done)
		}
	}
}

// count is how many jobs have an end.
func (e *ends) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.all)
}
