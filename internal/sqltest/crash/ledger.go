package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// account is all that the driver knows of one order.
type account struct {
	order
	ids    []string // of the jobs that the provider made for it
	tells  []told
	stored bool // that it was told, in the database
}

// end is the outcome that closed the order; one that was not sent stays open.
func (a *account) end() (told, bool) {
	for _, t := range a.tells {
		if t.Reason != "not sent" {
			return t, true
		}
	}
	return told{}, false
}

// mostFaults is how many broken promises are told.
const mostFaults = 20

// ledger is the driver's book, by the key of the order.
type ledger struct {
	mu       sync.Mutex
	accounts map[string]*account
	states   map[string]string // by the provider's id, how the job ends
	faults   []error
	kills    map[string]int
	again    int // outcomes told again, as their delivery had not been stored
}

func newLedger() *ledger {
	return &ledger{accounts: map[string]*account{}, states: map[string]string{}, kills: map[string]int{}}
}

func (l *ledger) ordered(o order) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accounts[o.Key] = &account{order: o}
}

// open lists the orders that have not come to an end, the oldest first.
func (l *ledger) open() []order {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := []order{}
	for _, key := range slices.Sorted(maps.Keys(l.accounts)) {
		if a := l.accounts[key]; !closed(a) {
			all = append(all, a.order)
		}
	}
	return all
}

func closed(a *account) bool {
	_, ok := a.end()
	return ok
}

// taken notes that the provider made a job, which will end in a state.
func (l *ledger) taken(key, id, state string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[key]
	if a == nil {
		l.fault("the provider made the job %s for %q, which nobody ordered", id, key)
		return
	}
	a.ids = append(a.ids, id)
	l.states[id] = state
	if len(a.ids) > 1 {
		l.fault("%s was bought %d times: %q", key, len(a.ids), a.ids)
	}
}

// told notes an outcome that the worker handed on.
func (l *ledger) told(t told) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[t.Key]
	if a == nil {
		l.fault("an outcome of %q, which nobody ordered: %+v", t.Key, t)
		return
	}
	last, ended := a.end()
	switch {
	case ended && t.Repeated:
		l.fault("%s was told twice by one worker: %+v", t.Key, t)
	case ended && (t.ID != last.ID || t.Reason != last.Reason):
		l.fault("%s ended as %+v and then as %+v", t.Key, last, t)
	case ended && a.stored:
		l.fault("%s was told again after that had been stored: %+v", t.Key, t)
	case ended:
		l.again++
	}
	a.tells = append(a.tells, t)
}

// delivered notes that the database knows that an outcome was told.
func (l *ledger) delivered(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[key]
	if a == nil || a.stored {
		return
	}
	if a.stored = closed(a); !a.stored {
		l.fault("the database says that %q was told, but it was not", key)
	}
}

func (l *ledger) killed(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kills[why]++
}

// fault notes a broken promise. Called under the lock.
func (l *ledger) fault(format string, args ...any) {
	l.faults = append(l.faults, fmt.Errorf(format, args...))
}

// verdict checks the end of each order.
func (l *ledger) verdict() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(l.accounts)) {
		a := l.accounts[key]
		t, ended := a.end()
		switch {
		case !ended:
			l.fault("%s never ended; the provider has %q, told was %+v", key, a.ids, a.tells)
		case t.Reason == "ambiguous submission":
			if a.Route == routeSeek {
				l.fault("%s ended as ambiguous though it could be looked up; the provider has %q", key, a.ids)
			}
		case len(a.ids) == 0 || t.ID != a.ids[0]:
			l.fault("%s was told as %+v, the provider has %q", key, t, a.ids)
		case t.Reason != l.states[t.ID]:
			l.fault("%s was told as %+v, the provider says %s", key, t, l.states[t.ID])
		}
	}
	if n := len(l.faults); n > mostFaults {
		return errors.Join(append(l.faults[:mostFaults:mostFaults], fmt.Errorf("and %d more", n-mostFaults))...)
	}
	return errors.Join(l.faults...)
}

func (l *ledger) summary() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	ends, jobs, twice := map[string]int{}, 0, 0
	for _, a := range l.accounts {
		t, _ := a.end()
		ends[a.Route+" "+t.Reason]++
		jobs += min(len(a.ids), 1)
		twice += max(len(a.ids)-1, 0)
	}
	var killed []string
	for _, why := range slices.Sorted(maps.Keys(l.kills)) {
		killed = append(killed, fmt.Sprintf("%d %s", l.kills[why], why))
	}
	text := fmt.Sprintf("killed: %q\n%d orders, %d bought, %d bought twice\n", killed, len(l.accounts), jobs, twice)
	for _, end := range slices.Sorted(maps.Keys(ends)) {
		text += fmt.Sprintf("  %5d %s\n", ends[end], end)
	}
	return text + fmt.Sprintf("%d told again, as the worker had died before it stored that; %d broken promises", l.again, len(l.faults))
}
