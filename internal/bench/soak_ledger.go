package main

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jobpoll/jobpoll"
)

// ledger accounts for the jobs of the soak: each that was started ends exactly
// once, for the reason that its fate has.
type ledger struct {
	started atomic.Int64
	ended   atomic.Int64
	closing atomic.Bool // what still lives is abandoned

	mu      sync.Mutex
	over    []uint64 // a bit a job
	refused []uint64 // likewise: its end was refused once
	odd     []uint64 // likewise: it had an odd number of looks
	byFate  [fateCount]int
	faults  faults
}

func newLedger(most int) *ledger {
	bits := func() []uint64 { return make([]uint64, most/64+1) }
	return &ledger{over: bits(), refused: bits(), odd: bits()}
}

// next is the number of a new job; false where there is room for no more.
func (l *ledger) next() (int, bool) {
	n := int(l.started.Add(1)) - 1
	if n >= len(l.over)*64 {
		l.started.Add(-1)
		return 0, false
	}
	return n, true
}

// refuse reports whether the end of a job is not to be taken this time.
func (l *ledger) refuse(n int) bool {
	if !refusing(n) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !set(l.refused, n)
}

// look counts a look at a job and reports whether it is an odd one.
func (l *ledger) look(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if set(l.odd, n) {
		l.odd[n/64] &^= 1 << (n % 64)
		return false
	}
	return true
}

// end takes the end of a job down.
func (l *ledger) end(n int, reason jobpoll.Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < 0 || n >= int(l.started.Load()) {
		l.faults.add("job %d ended but was never started", n)
		return
	}
	if set(l.over, n) {
		l.faults.add("job %d ended twice", n)
		return
	}
	f := fateOf(n)
	if reason != fateReasons[f] && (reason != jobpoll.ReasonAbandoned || !l.closing.Load()) {
		l.faults.add("job %d (%s) ended for the reason %v", n, fateNames[f], reason)
	}
	l.byFate[f]++
	l.ended.Add(1)
}

// fault notes something that should not be.
func (l *ledger) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults.add(format, args...)
}

// audit looks for jobs that were started and never ended, and gives all faults.
func (l *ledger) audit() faults {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := range int(l.started.Load()) {
		if l.over[n/64]&(1<<(n%64)) == 0 {
			l.faults.add("job %d (%s) was started and never ended", n, fateNames[fateOf(n)])
		}
	}
	return l.faults
}

// set sets a bit and tells whether it was set before.
func set(bits []uint64, n int) bool {
	was := bits[n/64]&(1<<(n%64)) != 0
	bits[n/64] |= 1 << (n % 64)
	return was
}

// faults are the first of what went wrong, and how many there were.
type faults struct {
	first []string
	count int
}

const faultsKept = 20

func (f *faults) add(format string, args ...any) {
	f.count++
	if len(f.first) < faultsKept {
		f.first = append(f.first, fmt.Sprintf(format, args...))
	}
}
