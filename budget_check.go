package jobpoll

import (
	"fmt"
	"math"
	"time"
)

// obstacle is why a call cannot go out.
type obstacle uint8

const (
	openRoad obstacle = iota
	coolingDown
	pacing
	laneRate
	totalRate
	laneSlots
	totalSlots
	jobSlots
)

// verdict is whether a call can go out now. Without ok, at is when time alone
// would let it (zero: only a call or a job that ends), and node and why are
// what holds it longest.
type verdict struct {
	ok    bool
	at    time.Time
	why   obstacle
	node  *Budget
	event bool // at is zero
}

// hold takes in that a node holds the call up until at; zero: until an event.
func (v *verdict) hold(x *Budget, why obstacle, at time.Time) {
	v.ok = false
	if at.IsZero() {
		v.event, v.why, v.node = true, why, x
	} else if at.After(v.at) {
		v.at = at
		if !v.event {
			v.why, v.node = why, x
		}
	}
}

// check looks at every node from b to the root, as if nobody else waited.
func (b *Budget) check(now time.Time, lane Lane) verdict {
	v := verdict{ok: true}
	for x := b; x != nil; x = x.parent {
		ln := &x.lane[lane]
		if x.unlimited && ln.cool.m == 0 {
			continue
		}
		if ln.cool.m > 0 {
			if ln.cool.closed(now) {
				v.hold(x, coolingDown, ln.cool.until)
			} else if x.setPace(now, lane); !ln.pace.ready(now) {
				at := ln.pace.readyAt(now)
				if step := ln.cool.nextStep(now); step.Before(at) {
					at = step
				}
				v.hold(x, pacing, at)
			}
		}
		if !ln.own.ready(now) {
			v.hold(x, laneRate, ln.own.readyAt(now))
		}
		if !x.total.ready(now) {
			v.hold(x, totalRate, x.total.readyAt(now))
		}
		if c := x.limits.lane(lane).Concurrent; c > 0 && ln.inFlight >= c {
			v.hold(x, laneSlots, time.Time{})
		}
		if c := x.limits.Total.Concurrent; c > 0 && ln.inFlight+max(x.lane[lane.other()].inFlight, x.kept[lane.other()]) >= c {
			v.hold(x, totalSlots, time.Time{})
		}
		if j := x.limits.Jobs; j > 0 && lane == LaneSubmit && x.jobs+ln.inFlight >= j {
			v.hold(x, jobSlots, time.Time{})
		}
	}
	if v.event {
		v.at = time.Time{}
	}
	return v
}

// setPace makes the pace bucket follow its episode.
func (b *Budget) setPace(now time.Time, lane Lane) {
	ln := &b.lane[lane]
	if ln.cool.over(now) {
		ln.cool.m = 0
	}
	ln.pace.set(now, ln.cool.pace(now, b.ceiling(lane)), 1)
}

// ceiling is the tightest configured rate for the lane at b, 0 for none.
func (b *Budget) ceiling(lane Lane) float64 {
	least := math.Inf(1)
	for x := b; x != nil; x = x.parent {
		for _, r := range [...]float64{x.limits.Total.Rate, x.limits.lane(lane).Rate} {
			if r > 0 {
				least = min(least, r)
			}
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// waitsFor says what holds a call of the lane, for people.
func (b *Budget) waitsFor(now time.Time, lane Lane) string {
	v := b.check(now, lane)
	if v.ok {
		return fmt.Sprintf("its turn in the %s lane", lane)
	}
	what := ""
	switch v.why {
	case coolingDown:
		what = fmt.Sprintf("the end of the %s lane's cool-down at %s", lane, b.tree.wall(now, v.node.lane[lane].cool.until).Format(time.RFC3339))
	case pacing:
		what = fmt.Sprintf("the %s lane's paced release after a cool-down", lane)
	case laneRate:
		what = fmt.Sprintf("the %s rate", lane)
	case totalRate:
		what = "the total rate"
	case laneSlots:
		what = fmt.Sprintf("one of %d concurrent %s calls to end", v.node.limits.lane(lane).Concurrent, lane)
	case totalSlots:
		what = fmt.Sprintf("one of %d concurrent calls to end", v.node.limits.Total.Concurrent)
	case jobSlots:
		what = fmt.Sprintf("one of %d remote jobs to end", v.node.limits.Jobs)
		if n := v.node.doubted; n > 0 {
			what = fmt.Sprintf("one of %d remote jobs to end (%d held by submissions whose answer was lost: Poller.Resolve frees them)", v.node.limits.Jobs, n)
		}
	}
	if v.node != b {
		what += fmt.Sprintf(" of %q", v.node.name)
	}
	return what
}
