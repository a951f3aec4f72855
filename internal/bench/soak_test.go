package main

import (
	"strings"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// It counts goroutines, so it does not run in parallel.
func TestASmallSoakAccountsForEveryJob(t *testing.T) {
	s := newSoak(300, 2*time.Second, 3*time.Second)
	v, err := s.live(t.Context(), func(sample) {})
	require.NoError(t, err)
	assert.Empty(t, v.faults.first)
	assert.Greater(t, s.ledger.started.Load(), int64(400), "jobs end and others come")
	assert.NotEmpty(t, v.samples)
	for f, n := range s.ledger.byFate {
		assert.Positive(t, n, fateNames[f])
	}
	assert.Positive(t, v.metrics.Callbacks.StopFailures, "some ends are taken at the second call only")
}

func TestTheLedgerFindsWhatIsNotRight(t *testing.T) {
	ledgerOf := func(jobs int) *ledger {
		l := newLedger(1000)
		for range jobs {
			l.next()
		}
		return l
	}
	endAll := func(l *ledger, but int) {
		for n := range int(l.started.Load()) {
			if n != but {
				l.end(n, fateReasons[fateOf(n)])
			}
		}
	}
	for what, run := range map[string]func(*ledger){
		"never ended":       func(l *ledger) { endAll(l, 7) },
		"ended twice":       func(l *ledger) { endAll(l, -1); l.end(7, fateReasons[fateOf(7)]) },
		"never started":     func(l *ledger) { endAll(l, -1); l.end(100, jobpoll.ReasonSucceeded) },
		"for the reason":    func(l *ledger) { endAll(l, 7); l.end(7, jobpoll.ReasonUnknownStatus) },
		"and so on, in all": func(l *ledger) { endAll(l, -1); l.fault("and so on, in all") },
	} {
		l := ledgerOf(100)
		run(l)
		f := l.audit()
		assert.Equal(t, 1, f.count, what)
		assert.Contains(t, strings.Join(f.first, "\n"), what)
	}
	l := ledgerOf(100)
	endAll(l, -1)
	assert.Zero(t, l.audit().count)
}

func TestOnlyAtTheEndMayAnyJobBeAbandoned(t *testing.T) {
	l := newLedger(100)
	n := 0
	for ; fateOf(n) == fateAbandoned; n++ {
		l.next()
	}
	l.next()
	l.closing.Store(true)
	l.end(n, jobpoll.ReasonAbandoned)
	assert.Zero(t, l.faults.count)
}

func TestAnEndIsRefusedOnce(t *testing.T) {
	l := newLedger(10_000)
	refused := 0
	for n := range 10_000 {
		if l.refuse(n) {
			refused++
			assert.False(t, l.refuse(n))
		}
	}
	assert.InDelta(t, 10_000/64, refused, 60)
}

func TestTheLedgerIsBounded(t *testing.T) {
	l := newLedger(10)
	room := 0
	for _, ok := l.next(); ok && room < 1000; _, ok = l.next() {
		room++
	}
	assert.Less(t, room, 1000)
	assert.EqualValues(t, room, l.started.Load())
}

func TestFatesAreAllThereAndLivesAreSpread(t *testing.T) {
	var seen [fateCount]int
	var whole time.Duration
	const jobs = 20_000
	for n := range jobs {
		seen[fateOf(n)]++
		life := lifeOf(n, time.Minute)
		whole += life
		assert.GreaterOrEqual(t, life, time.Second)
		assert.LessOrEqual(t, life, time.Minute)
	}
	for f, n := range seen {
		assert.InDelta(t, float64(fateShares[f])/100, float64(n)/jobs, 0.02, fateNames[f])
	}
	assert.InDelta(t, 30.5, (whole / jobs).Seconds(), 1)
}

func TestTheAgendaGivesEachJobOnceSoonAfterItsInstant(t *testing.T) {
	const longest = 3 * time.Second
	a := newAgenda(longest)
	at := map[int]time.Duration{}
	var due []int
	n := 0
	for now := time.Duration(0); now < 30*time.Second; now += 70 * time.Millisecond {
		for range 5 {
			at[n] = now + lifeOf(n, longest)
			a.add(n, at[n])
			n++
		}
		due = a.take(now, due)
		for _, job := range due {
			require.Contains(t, at, job, "not twice")
			require.LessOrEqual(t, at[job], now)
			require.Less(t, now-at[job], 200*time.Millisecond)
			delete(at, job)
		}
	}
	assert.Less(t, len(at), 5*50, "only those that are not due are left")
}

// course makes the samples of a soak of which one thing is not as it should be.
func course(s *soak, change func(i int, x *sample)) *verdict {
	v := &verdict{}
	for i := range 60 {
		x := sample{At: time.Duration(i) * time.Second, Bytes: 100e6, Goroutines: 50, Alive: s.jobs, Lag: s.lagBound() / 2}
		x.Calls = uint64(x.At.Seconds() * soakCalls(s.jobs, s.longest))
		change(i, &x)
		v.samples = append(v.samples, x)
	}
	return v
}

func TestTheCourseOfASoakIsJudged(t *testing.T) {
	s := newSoak(1000, time.Minute, time.Minute)
	for want, change := range map[string]func(i int, x *sample){
		"":                       func(int, *sample) {},
		"memory is not flat":     func(i int, x *sample) { x.Bytes += int64(i) * 1e6 },
		"goroutines are not":     func(i int, x *sample) { x.Goroutines += 60 * i },
		"late, at most":          func(i int, x *sample) { x.Lag += s.lagBound() * time.Duration(i/59) },
		"jobs lived":             func(i int, x *sample) { x.Alive += i / 59 },
		"where the budget has":   func(i int, x *sample) { x.Calls += uint64(i * 10) },
		"calls a second went":    func(i int, x *sample) { x.Calls /= 2 },
		"samples were taken aft": func(i int, x *sample) { x.At /= 60 },
	} {
		v := course(s, change)
		s.judgeCourse(v)
		if want == "" {
			assert.Empty(t, v.faults.first)
			continue
		}
		assert.Equal(t, 1, v.faults.count, "%s: %q", want, v.faults.first)
		assert.Contains(t, strings.Join(v.faults.first, "\n"), want)
	}
}
