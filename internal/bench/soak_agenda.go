package main

import (
	"sync"
	"time"
)

// agenda has what is to be done with jobs at the end of their lives: a ring of
// lists, one for each tenth of a second.
type agenda struct {
	mu    sync.Mutex
	lists [][]int
	taken int64 // the last list that was taken
}

const agendaStep = 100 * time.Millisecond

func newAgenda(longest time.Duration) *agenda {
	return &agenda{lists: make([][]int, longest/agendaStep+3)}
}

// add puts a job down for an instant, counted from the begin, that is at most
// the longest life away.
func (a *agenda) add(n int, at time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	step := min(max(int64(at/agendaStep)+1, a.taken+1), a.taken+int64(len(a.lists))-1)
	list := &a.lists[step%int64(len(a.lists))]
	*list = append(*list, n)
}

// take gives what is due up to now, into a list that is used again.
func (a *agenda) take(now time.Duration, into []int) []int {
	a.mu.Lock()
	defer a.mu.Unlock()
	into = into[:0]
	for a.taken < int64(now/agendaStep) {
		a.taken++
		list := &a.lists[a.taken%int64(len(a.lists))]
		into = append(into, *list...)
		*list = (*list)[:0]
	}
	return into
}
