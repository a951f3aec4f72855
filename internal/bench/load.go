package main

import (
	"runtime"
	"sync/atomic"
	"time"
)

// load is the work that every contender is given: jobs that are looked at again
// and again, each a fixed interval after its last look has ended.
type load struct {
	Jobs     int
	Interval time.Duration
	Lead     time.Duration // from the first admission to the first look that is due
	Together bool          // all first looks are due at once, else evenly over Interval
	Garbage  int           // bytes that each check allocates and drops
	Takes    time.Duration // how long a check lasts; zero: it returns at once
	Workers  int           // where the contender has workers; zero: as it comes
}

// spare is how many jobs may be added beyond load.Jobs, by the calls in a burst.
const spare = 1 << 14

// never is later than every planned instant.
const never = int64(1) << 62

// meter is the provider in memory that all contenders ask. It counts the looks
// and how late each is: it keeps the planned instant of each job's next look
// itself, so that all contenders are measured alike and pay alike for it (one
// reading of the clock, one word of memory a job outside of the measured heap).
type meter struct {
	load
	begin   time.Time
	planned []atomic.Int64 // ns since begin, by the number of the job
	late    *histogram
	urgent  *histogram // jobs beyond load.Jobs
}

func newMeter(l load) *meter {
	m := &meter{load: l, planned: make([]atomic.Int64, l.Jobs+spare), late: newHistogram(), urgent: newHistogram(), begin: time.Now()}
	for i := range m.planned {
		m.planned[i].Store(m.first(i))
	}
	return m
}

// first is when the first look of a job is due.
func (m *meter) first(i int) int64 {
	switch {
	case i >= m.Jobs:
		return never
	case m.Together:
		return int64(m.Lead)
	}
	return int64(m.Lead) + int64(float64(m.Interval)*float64(i)/float64(m.Jobs))
}

// now is in ns since begin.
func (m *meter) now() int64 { return int64(time.Since(m.begin)) }

// at turns ns since begin into an instant.
func (m *meter) at(ns int64) time.Time { return m.begin.Add(time.Duration(ns)) }

// sleepUntil returns at an instant in ns since begin.
func (m *meter) sleepUntil(ns int64) { time.Sleep(time.Duration(ns - m.now())) }

// look is one look at a job; the next is due one interval after its end.
func (m *meter) look(id string) {
	i := indexOf(id)
	_, now := m.begun(i)
	m.planned[i].Store(m.answer(now) + int64(m.Interval))
}

// tick is one look at a job by a ticker that was made at an instant: its
// intervals count from there, however late a look is and however long it lasts.
func (m *meter) tick(id string, made int64) {
	i := indexOf(id)
	planned, now := m.begun(i)
	if planned == m.first(i) {
		planned = made
	}
	m.planned[i].Store(planned + int64(m.Interval))
	m.answer(now)
}

// begun counts a look.
func (m *meter) begun(i int) (planned, now int64) {
	planned, now = m.planned[i].Load(), m.now()
	late := m.late
	if i >= m.Jobs {
		late = m.urgent
	}
	late.add(i, now-planned)
	return planned, now
}

// answer does what the provider does, and gives the instant of the end.
func (m *meter) answer(now int64) int64 {
	if m.Garbage > 0 {
		runtime.KeepAlive(make([]byte, m.Garbage))
		now = m.now()
	}
	if m.Takes > 0 {
		time.Sleep(m.Takes)
		now = m.now()
	}
	return now
}

// unseen is how many jobs have not been looked at.
func (m *meter) unseen() int {
	n := 0
	for i := range m.Jobs {
		if m.planned[i].Load() == m.first(i) {
			n++
		}
	}
	return n
}

const (
	idPrefix = "b1946ac9-2492-4d23-87aa-"
	idDigits = 12
	idLength = len(idPrefix) + idDigits // 36, as of a UUID
)

// idOf makes the id of a job from its number.
func idOf(i int) string {
	var b [idLength]byte
	copy(b[:], idPrefix)
	for at := idLength - 1; at >= len(idPrefix); at-- {
		b[at] = byte('0' + i%10)
		i /= 10
	}
	return string(b[:])
}

// indexOf reads the number of a job from its id.
func indexOf(id string) int {
	i := 0
	for at := len(idPrefix); at < len(id); at++ {
		i = i*10 + int(id[at]-'0')
	}
	return i
}
