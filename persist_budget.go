package jobpoll

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// coolKept is how long after its end a stored cool-down still means something:
// the pace has recovered by then.
const coolKept = time.Hour

// storedBudget is the Data of a RecordBudget, whose ID is the node's name from
// the root down. All its times are wall times.
type storedBudget struct {
	Version int        `json:"v"`
	Status  storedCool `json:"status"`
	Submit  storedCool `json:"submit"`
}

// storedCool is a cooldown.
type storedCool struct {
	Until    time.Time `json:"until,omitzero"`
	InARow   int       `json:"in_a_row,omitempty"`
	Part     float64   `json:"part,omitempty"`
	Observed float64   `json:"observed,omitempty"`
	Good     bool      `json:"good,omitempty"`
	Capacity bool      `json:"capacity,omitempty"`
}

// cooling gives the cool-downs of a node by lane, and the wall time minus that
// of the budget; ok is false where nothing of the account ever cooled.
func (b *Budget) cooling() (cools [laneCount]cooldown, wall time.Duration, ok bool) {
	if b == nil || !b.tree.cooled.Load() {
		return cools, 0, false
	}
	t := b.tree
	now := t.lock()
	defer t.mu.Unlock()
	for lane := range b.lane {
		cools[lane] = b.lane[lane].cool
	}
	return cools, t.wall(now, now).Sub(now.Round(0)), true
}

func (c cooldown) stored(wall time.Duration) storedCool {
	if c.until.IsZero() {
		return storedCool{}
	}
	return storedCool{
		Until: c.until.Round(0).UTC().Add(wall), InARow: c.n, Part: c.m, Observed: c.observed, Good: c.good, Capacity: c.capacity,
	}
}

// restored is the cool-down of a store as it goes on at now, which is wall on
// the wall clock. What no cool-down can be is brought to what one can.
func (s storedCool) restored(now, wall time.Time) cooldown {
	left := min(s.Until.Sub(wall), MaxRetryAfter)
	if s.Until.IsZero() || left < -coolKept {
		return cooldown{}
	}
	c := cooldown{until: now.Add(left), n: min(max(s.InARow, 0), 1000), good: s.Good, capacity: s.Capacity}
	if c.began, c.from = now, c.until; left > 0 {
		c.from = now
	}
	if s.Part > 0 { // neither none nor NaN
		c.m = min(max(s.Part, paceFloor), 1)
	}
	if s.Observed > 0 && !math.IsInf(s.Observed, 1) {
		c.observed = s.Observed
	}
	return c
}

// resume takes up the cool-downs of an earlier process, unless this one has met
// longer ones.
func (b *Budget) resume(s *storedBudget, wall time.Time) {
	t := b.tree
	now := t.advance(t.lock())
	for lane, stored := range [laneCount]storedCool{LaneStatus: s.Status, LaneSubmit: s.Submit} {
		c := stored.restored(now, wall)
		if ln := &b.lane[lane]; c.until.After(ln.cool.until) {
			ln.cool = c
			t.cooled.Store(true)
			if c.until.After(t.coolest) {
				t.coolest = c.until
			}
		}
	}
	t.unlock(t.pump(now))
}

// budgetNodes are the nodes that the calls of the routes are charged to. Called
// under the lock.
func (p *Poller) budgetNodes() []*Budget {
	var all []*Budget
	seen := map[*Budget]bool{nil: true}
	add := func(b *Budget) {
		for ; !seen[b]; b = b.parent {
			seen[b] = true
			all = append(all, b)
		}
	}
	add(p.budget)
	for _, rt := range p.order {
		add(rt.budget)
	}
	return all
}

// noteCooldowns leaves the cool-downs that are others than those last noted to
// the next flush.
func (p *Poller) noteCooldowns() {
	p.mu.Lock()
	nodes := p.budgetNodes()
	p.mu.Unlock()
	wall := toWall(p.line.last(), p.line.shift())
	for _, b := range nodes {
		cools, shift, ok := b.cooling()
		if !ok {
			continue
		}
		for i := range cools {
			cools[i].cooled = 0
		}
		p.mu.Lock()
		if p.cooled[b] != cools {
			p.cooled[b] = cools
			p.writeBehind(budgetRecord(b.name, cools, shift, wall, p.retention))
		}
		p.mu.Unlock()
	}
}

func budgetRecord(name string, cools [laneCount]cooldown, shift time.Duration, now time.Time, keep time.Duration) Record {
	s := storedBudget{Version: recordVersion, Status: cools[LaneStatus].stored(shift), Submit: cools[LaneSubmit].stored(shift)}
	rec := Record{Kind: RecordBudget, ID: name, UpdatedAt: now, ExpiresAt: now.Add(keep)}
	rec.Data, _ = marshal(&s)
	return rec
}

// restoreBudget takes up the cool-downs of a node, also of one that a route
// brings later.
func (p *Poller) restoreBudget(rec Record) error {
	var s storedBudget
	if err := json.Unmarshal(rec.Data, &s); err != nil {
		return fmt.Errorf("jobpoll: stored budget %q cannot be read: %w", rec.ID, err)
	}
	if s.Version > recordVersion {
		return fmt.Errorf("jobpoll: stored budget %q is of version %d, this library reads up to %d: update it", rec.ID, s.Version, recordVersion)
	}
	p.mu.Lock()
	nodes := p.budgetNodes()
	p.coolLater[rec.ID] = &s
	p.mu.Unlock()
	p.resumeBudgets(nodes)
	return nil
}

// resumeBudgets takes up what was stored of nodes, once.
func (p *Poller) resumeBudgets(nodes []*Budget) {
	wall := toWall(p.line.last(), p.line.shift())
	for _, b := range nodes {
		p.mu.Lock()
		s := p.coolLater[b.name]
		delete(p.coolLater, b.name)
		p.mu.Unlock()
		if s != nil {
			b.resume(s, wall)
		}
	}
}
