package jobpoll

import "time"

// BudgetMetrics is a snapshot of one node of a budget. Counts run since the
// node was made and include the nodes below it; cool-downs and pace are the
// node's own.
type BudgetMetrics struct {
	// Name is the names from the root down, like "account/provider".
	Name   string      `json:"name"`
	Status LaneMetrics `json:"status"`
	Submit LaneMetrics `json:"submit"`
	// Jobs is how many remote jobs are counted, without submissions under way.
	Jobs int `json:"jobs"`
	// Limits are those in force: as set, with faults made safe.
	Limits Limits `json:"limits"`
}

// LaneMetrics is one lane of BudgetMetrics.
type LaneMetrics struct {
	// Granted counts the calls that were let go out.
	Granted uint64 `json:"granted"`
	// InFlight is how many of them have not ended, Waiting how many more want
	// to go out.
	InFlight int `json:"in_flight"`
	Waiting  int `json:"waiting"`
	// RateLimited counts the answers that were a rate limit, of any scope.
	RateLimited uint64 `json:"rate_limited"`
	// Cooled is the whole time closed by cool-downs, with what has passed of
	// one that runs.
	Cooled time.Duration `json:"cooled"`
	// ClosedUntil is the wall time at which the running cool-down ends; zero: none.
	ClosedUntil time.Time `json:"closed_until,omitzero"`
	// Pace is the limit in calls per second after a cool-down; zero: none.
	Pace float64 `json:"pace,omitempty"`
}

// snapshot reads one node.
func (b *Budget) snapshot() BudgetMetrics {
	if b == nil {
		return BudgetMetrics{}
	}
	now := b.tree.lock()
	defer b.tree.mu.Unlock()
	lane := func(n Lane) LaneMetrics {
		ln := &b.lane[n]
		m := LaneMetrics{
			Granted: ln.granted, InFlight: ln.inFlight, Waiting: ln.waiting, RateLimited: ln.rateLimited,
			Cooled: ln.cool.cooledFor(now), Pace: ln.cool.pace(now, b.ceiling(n)),
		}
		if ln.cool.closed(now) {
			m.ClosedUntil = b.tree.wall(now, ln.cool.until)
		}
		return m
	}
	return BudgetMetrics{Name: b.name, Status: lane(LaneStatus), Submit: lane(LaneSubmit), Jobs: b.jobs, Limits: b.limits}
}
