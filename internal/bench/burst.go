package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// burst is what was measured while all jobs were due in one instant.
type burst struct {
	// Goroutines is the most that there were.
	Goroutines int `json:"goroutines"`
	// Ticker is how late an unrelated ticker of 10 ms was.
	TickerP99Ms float64 `json:"ticker_p99_ms"`
	TickerMaxMs float64 `json:"ticker_max_ms"`
	// Done is the part of the jobs that were looked at, TookMs how long after
	// the instant the last of them was, or the patience was at its end.
	Done   float64 `json:"done"`
	TookMs float64 `json:"took_ms"`
	// Calls are, by name, the p99 of what else was asked of it meanwhile.
	Calls map[string]callTimes `json:"calls,omitempty"`
}

type callTimes struct {
	Count uint64  `json:"count"`
	P50Ms float64 `json:"p50_ms"`
	P99Ms float64 `json:"p99_ms"`
	MaxMs float64 `json:"max_ms"`
}

const (
	burstFactor  = 6 // patience for a burst, in times of -duration
	tickerPeriod = 10 * time.Millisecond
	callPeriod   = 5 * time.Millisecond
)

// measureBurst admits jobs that are all due in the same instant, and watches
// how the process bears it.
func measureBurst(c contender, o order) result {
	m := newMeter(o.Load)
	collect()
	goroutines := runtime.NumGoroutine()
	m.begin = time.Now()
	w := c.start(m)
	cpu, overran := admitAll(m, w)
	r := result{Contender: c.name, Jobs: m.Jobs, Overran: overran, AdmitUs: micros(cpu) / float64(m.Jobs)}

	var over atomic.Bool
	ticker := newHistogram()
	var beside sync.WaitGroup
	beside.Go(func() { tickUntil(&over, tickerPeriod, ticker) })
	beside.Go(func() { callUntil(&over, w.calls) })
	b := &burst{}
	done := func() uint64 { return m.late.counts().total() + ended(w) }
	for patience := int64(m.Lead) + burstFactor*int64(o.Duration); ; {
		b.Goroutines = max(b.Goroutines, mostGoroutines(20*time.Millisecond, time.Millisecond)-goroutines)
		if m.now() > patience || done() >= uint64(m.Jobs) {
			break
		}
	}
	b.TookMs = float64(m.now()-int64(m.Lead)) / 1e6
	b.Done = min(float64(done())/float64(m.Jobs), 1)
	over.Store(true)
	beside.Wait()
	t := ticker.counts()
	b.TickerP99Ms, b.TickerMaxMs = t.quantile(0.99), t.quantile(1)
	b.Calls = timesOf(w.calls)
	r.Burst = b
	return r
}

// ended is how many jobs need no look any more, since a notice has ended them.
func ended(w way) uint64 {
	for _, c := range w.calls {
		if c.name == endingCall {
			return c.took.counts().total()
		}
	}
	return 0
}

// tickUntil notes how late each tick of a ticker of its own comes.
func tickUntil(over *atomic.Bool, period time.Duration, late *histogram) {
	next := time.Now().Add(period)
	for !over.Load() {
		time.Sleep(time.Until(next))
		late.add(0, int64(time.Since(next)))
		for next = next.Add(period); time.Until(next) < 0; { // missed ones are dropped
			next = next.Add(period)
		}
	}
}

// callUntil makes all calls in turn, one round in each period.
func callUntil(over *atomic.Bool, calls []call) {
	for k := 0; !over.Load(); k++ {
		for _, c := range calls {
			if c.do == nil {
				continue
			}
			begun := time.Now()
			c.do(k)
			c.took.add(k, int64(time.Since(begun)))
		}
		time.Sleep(callPeriod)
	}
}

func timesOf(calls []call) map[string]callTimes {
	all := map[string]callTimes{}
	for _, c := range calls {
		t := c.took.counts()
		all[c.name] = callTimes{Count: t.total(), P50Ms: t.quantile(0.5), P99Ms: t.quantile(0.99), MaxMs: t.quantile(1)}
	}
	return all
}
