package jobpoll

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ledger checks that in no window of length w more than Burst + Rate·w calls
// were granted, also where the limits changed in between: what a bucket holds
// at the start of a window is at most its burst, what it gains is the integral
// of the rate.
type ledger struct {
	limit  Limit
	last   time.Time
	gained float64
	grants []struct{ gained, burst float64 }
	used   []bool
}

func (l *ledger) advance(now time.Time) {
	if now.After(l.last) {
		l.gained += l.limit.Rate * now.Sub(l.last).Seconds()
		l.last = now
	}
}

func (l *ledger) grant(now time.Time) int {
	l.advance(now)
	l.grants = append(l.grants, struct{ gained, burst float64 }{l.gained, float64(l.limit.burst())})
	l.used = append(l.used, true)
	return len(l.used) - 1
}

func (l *ledger) check() error {
	n, room := 0.0, math.Inf(1)
	for i, g := range l.grants {
		if !l.used[i] {
			continue
		}
		room = min(room, g.burst+n-g.gained)
		n++
		if n-g.gained > room+1e-3 {
			return fmt.Errorf("grant %d: %v more than the limit allows", i, n-g.gained-room)
		}
	}
	return nil
}

func TestNoWindowHoldsMoreThanBurstAndRate(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 54))
		live := seed%2 == 0 // limits change
		c := newBudgetClock()
		limits := func() Limits {
			var l Limits
			l.Total = Limit{Rate: 1 + 20*r.Float64(), Burst: 1 + r.IntN(8), Concurrent: 1 + r.IntN(12)}
			l.Status.Reserve.Rate = l.Total.Rate * 0.3 * r.Float64()
			l.Submit.Reserve.Rate = l.Total.Rate * 0.7 * r.Float64()
			if r.IntN(2) == 0 {
				l.Submit.Limit = Limit{Rate: 0.5 + 10*r.Float64(), Concurrent: 1 + r.IntN(6)}
			}
			return l
		}
		root := budgetOn(t, c, limits())
		mid := root.Child("p", limits())
		nodes := []*Budget{root, mid, mid.Child("r", limits()), root.Child("q", Limits{})}
		type open struct {
			g       grant
			entries []func()
			node    *Budget
			lane    Lane
		}
		var calls []open
		ledgers := map[*Budget]*[3]ledger{}
		sync := func(b *Budget, l Limits) {
			led := ledgers[b]
			for i, limit := range []Limit{l.Total, l.Status.Limit, l.Submit.Limit} {
				led[i].advance(b.now())
				if led[i].limit.Rate == 0 {
					led[i].gained += float64(limit.burst()) // a new bucket starts full
				}
				led[i].limit = limit
			}
		}
		for _, b := range nodes {
			ledgers[b] = &[3]ledger{}
			for i := range ledgers[b] {
				ledgers[b][i].last = c.Now()
			}
			sync(b, b.Limits())
		}
		granted := func(b *Budget, lane Lane, g grant) {
			now := b.now()
			o := open{g: g, node: b, lane: lane}
			for x := b; x != nil; x = x.parent {
				for _, l := range []*ledger{&ledgers[x][0], &ledgers[x][1+lane]} {
					if l.limit.Rate > 0 {
						i := l.grant(now)
						o.entries = append(o.entries, func() { l.used[i] = false })
					}
				}
				m := x.snapshot()
				k := x.Limits()
				if !live && k.Total.Concurrent > 0 && m.Status.InFlight+m.Submit.InFlight > k.Total.Concurrent ||
					!live && k.Submit.Concurrent > 0 && m.Submit.InFlight > k.Submit.Concurrent {
					t.Fatalf("seed %d: %+v in flight of %+v", seed, m, k)
				}
				if x.lane[lane].cool.closed(now) {
					t.Fatalf("seed %d: granted in a cool-down", seed)
				}
			}
			calls = append(calls, o)
		}
		first, _ := root.tryAcquire(c.Now(), LaneStatus) // before the clock goes backwards
		first.giveBack()
		cancels := map[int]func(){}
		step := 0
		for ; step < 1500; step++ {
			b, lane := nodes[r.IntN(len(nodes))], Lane(r.IntN(2))
			switch k := r.IntN(100); {
			case k < 30:
				if g, ok := b.tryAcquire(c.Now(), lane); ok {
					granted(b, lane, g)
				}
			case k < 45:
				id := step
				cancels[id] = func() {}
				cancel := b.want(lane, func(g grant) { granted(b, lane, g); delete(cancels, id) })
				if _, waits := cancels[id]; waits {
					cancels[id] = cancel
				}
			case k < 50:
				for id, cancel := range cancels {
					cancel()
					delete(cancels, id)
					break
				}
			case k < 75 && len(calls) > 0:
				i := r.IntN(len(calls))
				o := calls[i]
				calls = append(calls[:i], calls[i+1:]...)
				switch r.IntN(12) {
				case 0:
					for _, unused := range o.entries {
						unused()
					}
					o.g.giveBack()
				case 1:
					o.g.done(rateLimit(r.Float64() * 3))
				case 2:
					o.g.done(errors.New("fault"))
				default:
					o.g.done(nil)
				}
			case k < 78:
				c.set(c.Now().Add(-time.Duration(r.Float64() * float64(time.Second)))) // backwards
			case k < 80 && live:
				l := limits()
				sync(b, l) // before, as waiters go at once
				b.SetLimits(l)
			default:
				c.to(secOf(c.Now()) + r.ExpFloat64()*0.2)
			}
			for _, q := range root.tree.busy {
				if q.node.check(root.tree.last, q.lane).ok {
					t.Fatalf("seed %d, step %d: somebody waits who could go", seed, step)
				}
			}
		}
		for b, led := range ledgers {
			for i := range led {
				require.NoError(t, led[i].check(), "seed %d: %s, limit %d", seed, b.Name(), i)
			}
		}
		for _, cancel := range cancels {
			cancel()
		}
		for len(calls) > 0 { // a withdrawal may let another go
			o := calls[0]
			calls = calls[1:]
			o.g.done(nil)
		}
		requireBudgetIdle(t, root)
		assert.Zero(t, c.pending())
	}
}

// Either lane may flood; the other gets what is reserved for it, and nothing
// of the total is lost.
func TestReserveIsMetUnderAFloodOfTheOtherLane(t *testing.T) {
	const secs = 200.0
	limits := func(status, submit float64) Limits {
		l := caseLimits()
		l.Status.Reserve.Rate, l.Submit.Reserve.Rate = status, submit
		return l
	}
	for _, c := range []struct {
		name           string
		limits         Limits
		status, submit float64 // demand per second; +Inf: a flood
		wantStatus     float64 // least share, calls per second
		wantSubmit     float64
	}{
		{"both flood", limits(1, 1), math.Inf(1), math.Inf(1), 1, 1},
		{"both flood, all reserved", limits(4, 1), math.Inf(1), math.Inf(1), 4, 1},
		{"both flood, all reserved the other way", limits(0.5, 4.5), math.Inf(1), math.Inf(1), 0.5, 4.5},
		{"status floods, nothing reserved for it", limits(0, 4), math.Inf(1), math.Inf(1), 0.25, 4},
		{"status floods, submissions at their reserve", limits(1, 1), math.Inf(1), 1, 4, 1},
		{"submissions flood, status at its reserve", limits(4, 1), 4, math.Inf(1), 4, 1},
		{"status floods, few submissions", limits(1, 1), math.Inf(1), 0.2, 4.8, 0.2},
		{"status floods alone", limits(1, 4), math.Inf(1), 0, 5, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &budgetSim{clock: newBudgetClock()}
			root := budgetOn(t, s.clock, c.limits)
			nodes := []*Budget{root.Child("a", Limits{}), root.Child("b", Limits{}), root}
			for lane, demand := range []float64{c.status, c.submit} {
				if math.IsInf(demand, 1) {
					for i := range 30 {
						var next func()
						next = func() {
							if secOf(s.clock.Now()) < secs {
								s.one(nodes[i%3], Lane(lane), 0.3, nil, next)
							}
						}
						next()
					}
				} else if demand > 0 {
					for i := range int(demand * secs) {
						s.clock.AfterFunc(time.Duration(float64(i)/demand*1e9), func() { s.one(nodes[i%3], Lane(lane), 0.3, nil, nil) })
					}
				}
			}
			s.clock.to(secs)
			status, submit := float64(s.starts(0, secs, inLane(LaneStatus)))/secs, float64(s.starts(0, secs, inLane(LaneSubmit)))/secs
			t.Logf("reserved %g + %g of 5/s: status got %.3f/s, submit %.3f/s", c.limits.Status.Reserve.Rate, c.limits.Submit.Reserve.Rate, status, submit)
			assert.GreaterOrEqual(t, status, c.wantStatus*0.95)
			assert.GreaterOrEqual(t, submit, c.wantSubmit*0.95)
			assert.InDelta(t, 5, status+submit, 0.1, "nothing is lost")
		})
	}
}
