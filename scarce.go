package jobpoll

import (
	"math"
	"time"
)

// scarcity is what a route does while its budget allows fewer looks than are
// due: the look worth most goes first, and where that is not enough all gaps
// grow as if looks had become dearer.
type scarcity struct {
	on    bool          // looks wait for the budget
	price float64       // of a look, in its usual price; zero: as usual
	gap   time.Duration // between two looks, of late
	last  Stamp         // the latest of them
	free  Stamp         // since when none waits, where the price is up
	turn  uint64        // how many were chosen
}

// short notes that a look has to wait for the budget.
func (s *scarcity) short(now Stamp) { s.on, s.price, s.free = true, s.priceAt(now), 0 }

// enough notes that no look waits any more.
func (s *scarcity) enough(now Stamp) {
	s.on, s.last = false, 0
	if s.price > 0 && s.free == 0 {
		s.free = now
	}
}

// looked takes in that a look is made for which the budget was short, with so
// many waiting; patience is how long they may take.
func (s *scarcity) looked(waiting int, patience time.Duration, now Stamp) {
	if s.last != 0 {
		s.gap += (now.Sub(s.last) - s.gap) / 16
	}
	s.last = now
	s.price = pressure(s.price, float64(waiting)*s.gap.Seconds() > patience.Seconds())
}

// priceAt is the price now: while no look waits it falls with each that could
// be made.
func (s *scarcity) priceAt(now Stamp) float64 {
	if s.free == 0 || s.price == 0 {
		return s.price
	}
	price := s.price * math.Pow(priceStep, -now.Sub(s.free).Seconds()/s.gap.Seconds())
	if !(price > 1) {
		return 0
	}
	return price
}

const (
	// patience is how many times PollCost the backlog may take before gaps grow:
	// as long as it is short, choosing well does more than looking less often.
	patience = 10
	// priceStep is by what part a look changes the price.
	priceStep = 1.002
	maxPrice  = 1e4
)

// pressure moves the price of a look, slowly: it goes up where the backlog is
// long, and down where it is not, to zero, which is as usual.
func pressure(price float64, long bool) float64 {
	if long {
		return min(max(price, 1)*priceStep, maxPrice)
	}
	if price /= priceStep; price <= 1 {
		return 0
	}
	return price
}

const (
	// shortLine is up to how many that wait all are weighed.
	shortLine = 128
	// fewCandidates is how many are weighed of a longer line: the first quarter of
	// so many, and others from everywhere in it. What a look is worth changes all
	// the time, so that no order of the line would last.
	fewCandidates = 64
	// oldestEach is how often the one that waits for the longest goes, whatever
	// it is worth, once it is overdue, so that each has its turn.
	oldestEach = 8
	// oldestAfter is for how long it has waited then, in parts of the time that it
	// takes to make all looks that wait: sooner the choice does more good.
	oldestAfter = 2
)

// choose brings the due record that is worth most to the head of the line. The
// head, which is given, is ready. Where nothing is known of durations it stays.
func (p *Poller) choose(rt *route, head handle, l *line, now Stamp) (handle, *line) {
	s := &rt.scarce
	s.turn++
	if rt.plans.rest == nil || s.turn%oldestEach == 0 && s.overdue(p.waited(l, now), rt.waiting) {
		return head, l
	}
	line := &rt.ready
	n := len(line.items) - line.head
	best, most := 0, p.worth(rt, head.slot, now)
	candidates := n
	if n > shortLine {
		candidates = fewCandidates
	}
	for i := 1; i < candidates; i++ {
		at := i
		if n > shortLine && i >= fewCandidates/4 {
			at = int((s.turn*0x9e3779b97f4a7c15>>32 + uint64(i)*uint64(n)/fewCandidates) % uint64(n))
		}
		h := line.items[line.head+at]
		c := p.jobs.lines.Get(h.slot)
		if c == nil || c.gen != h.gen {
			continue
		}
		if ph, _ := p.jobs.waits(c); ph != phaseReady {
			continue
		}
		if stuck, _ := p.stuckOn(rt, c); stuck != nil {
			continue
		}
		if v := p.worth(rt, h.slot, now); v > most {
			best, most, head, l = at, v, h, c
		}
	}
	if best > 0 {
		line.bring(best)
	}
	return head, l
}

// waited is for how long a record has been due.
func (p *Poller) waited(l *line, now Stamp) time.Duration {
	_, since := p.jobs.waits(l)
	return now.Sub(since)
}

// overdue reports whether a look has waited for long, beside the others.
func (s *scarcity) overdue(waited time.Duration, waiting int) bool {
	return waited.Seconds() > oldestAfter*float64(waiting)*s.gap.Seconds()
}

// worth is that of a look at a due record now.
func (p *Poller) worth(rt *route, slot int32, now Stamp) time.Duration {
	r := p.jobs.look(slot, &p.scratch)
	if plan := rt.planOf(&r.job); plan != nil {
		return plan.worth(&r.track, r.submitted, now)
	}
	return 0
}

// bring moves an item to the head and leaves nothing in its place, so that the
// others keep their order.
func (f *fifo) bring(at int) {
	h := f.items[f.head+at]
	f.items[f.head+at] = handle{}
	if f.head > 0 {
		f.head--
		f.items[f.head] = h
		return
	}
	f.items = append(f.items, handle{})
	copy(f.items[1:], f.items)
	f.items[0] = h
}
