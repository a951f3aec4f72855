package jobpoll

import (
	"math"
	"slices"
	"time"
)

// coverage measures which part of the ends of a route a notice tells, over a
// window of the latest ends. The zero value expects none.
type coverage struct {
	window int
	grace  time.Duration
	prior  float64 // what counts as long as there are fewer than minWindow ends
	ends   []coveredEnd
	open   []coveredEnd // that a look found alone, within the grace
	value  float64      // the estimate
}

// coveredEnd is one end that the provider told. A notice may have told it
// first, or a look that a notice asked for; or a look found it alone, and then
// the id is kept: its notice may only have been slower.
type coveredEnd struct {
	covered bool
	id      string
	at      Stamp // when it was known
	ended   Stamp // when the job ended, as far as that is known
}

// noticeGrace is how much slower than a look a notice may be before the end
// counts as not told, or Pace if that is less: most come within a second or two.
const noticeGrace = 5 * time.Second

// leastCoverage is what counts as none.
const leastCoverage = 0.1

// unlikely is how improbable a row of like ends must be for what was measured
// before it to be out of date; least is the least part taken for possible, so
// that one or two never do it.
const (
	unlikely  = 1e-3
	leastPart = 0.05
)

func newCoverage(w *WebhookPolicy) coverage {
	c := coverage{window: w.window(), grace: min(noticeGrace, w.pace())}
	if w.Mode == WebhookExpected {
		c.prior = 1
	}
	c.value = c.prior
	return c
}

// add takes an end in.
func (c *coverage) add(e coveredEnd) {
	if e.covered {
		e.id = ""
	}
	if len(c.ends) >= max(c.window, minWindow) {
		c.ends = append(c.ends[:0], c.ends[1:]...)
	}
	// In the order in which the jobs ended: of a batch, the lost ones are found
	// last, and are no row for that.
	i := len(c.ends)
	for i > 0 && c.ends[i-1].ended > e.ended {
		i--
	}
	c.ends = slices.Insert(c.ends, i, e)
	c.forget()
	c.value = c.estimate(c.ends)
}

// missed takes in an end that a look has found alone. It counts once its grace
// is over: see settle.
func (c *coverage) missed(id string, ended, now Stamp) {
	c.open = append(c.open, coveredEnd{id: id, at: now, ended: ended})
	if len(c.open) > max(c.window, minWindow) {
		c.add(c.open[0])
		c.open = append(c.open[:0], c.open[1:]...)
	}
}

// settle counts the ends whose grace is over; true if there were some.
func (c *coverage) settle(now Stamp) bool {
	n := 0
	for n < len(c.open) && now.Sub(c.open[n].at) >= c.grace {
		c.add(c.open[n])
		n++
	}
	c.open = append(c.open[:0], c.open[n:]...)
	return n > 0
}

// next is how long until settle has something to do.
func (c *coverage) next(now Stamp) time.Duration {
	if len(c.open) == 0 {
		return never
	}
	return max(c.open[0].at.Add(c.grace).Sub(now), 0)
}

// late takes in the notice of an end that a look has found alone: it was on
// its way. It reports whether that changed something.
func (c *coverage) late(id string, since Stamp) bool {
	for i, e := range c.open {
		if e.id == id {
			c.open = append(c.open[:i], c.open[i+1:]...)
			c.add(coveredEnd{covered: true, ended: e.ended})
			return true
		}
	}
	for i := len(c.ends) - 1; i >= 0; i-- {
		if e := &c.ends[i]; !e.covered && e.id == id && e.at >= since {
			*e = coveredEnd{covered: true, ended: e.ended}
			c.value = c.estimate(c.ends)
			return true
		}
	}
	return false
}

// proven is the most that so many ends show: by the rule of succession, the
// next may be the first that is lost.
func (c *coverage) proven() float64 { n := float64(len(c.ends)); return (n + 1) / (n + 2) }

func (c *coverage) estimate(ends []coveredEnd) float64 {
	told, n := 0.0, float64(len(ends))
	for i := range ends {
		if ends[i].covered {
			told++
		}
	}
	if n < minWindow {
		told, n = told+c.prior*(minWindow-n), minWindow
	}
	if v := told / n; v >= leastCoverage {
		return v
	}
	return 0
}

// forget drops what lies before a row of like ends that what lies before it
// makes very unlikely: the webhook has broken, or works again.
func (c *coverage) forget() {
	n := len(c.ends)
	last, row := c.ends[n-1].covered, 1
	for row < n && c.ends[n-1-row].covered == last {
		row++
	}
	part := c.estimate(c.ends[:n-row])
	if !last {
		part = 1 - part
	}
	if math.Pow(max(part, leastPart), float64(row)) >= unlikely {
		return
	}
	c.ends = append(c.ends[:0], c.ends[n-row:]...)
	if !last {
		c.prior = 0
	}
}
