package jobpoll

import (
	"math"
	"time"
)

// The constants of cool-downs and of the paced release after them.
const (
	coolFirst   = 2 * time.Second  // own backoff of the first rate limit without a hint
	coolMax     = 60 * time.Second // and of all later ones
	coolLeast   = time.Second      // a freed job slot ends a capacity cool-down, but not before
	paceStep    = 60 * time.Second // the pace doubles for each without another rate limit
	paceFloor   = 1.0 / 64         // the least part of the ceiling
	meterWindow = 10 * time.Second // memory of the observed rate
	meterSlot   = time.Second      // grants are counted for as long before they are folded in
)

// cooldown is the memory of one node and lane: closed until when, and how fast
// it may go afterwards. It is plain data; what changes it returns a new one.
//
// An episode begins with the first cool-down and outlives it: in it calls are
// paced. Calls that were granted before the last cool-down began tell nothing
// new; they can only make it longer.
type cooldown struct {
	began time.Time // the last cool-down; later grants are news
	until time.Time // closed before
	from  time.Time // start of the closed time that until ends, for cooled
	// n counts rate limits in a row, for the own backoff.
	n int
	// m is the part of the ceiling that pacing leaves, as of until; 0: no episode.
	m float64
	// observed is the rate at the start of the episode, the ceiling where none is configured.
	observed float64
	good     bool // a good answer came in this episode since began
	capacity bool // own backoff for want of a job slot: one that is freed ends it
	cooled   time.Duration
}

// coolKind is what an answer means for a cool-down.
type coolKind uint8

const (
	coolNeutral  coolKind = iota
	coolGood              // a good answer
	coolLimited           // too many calls
	coolCapacity          // too many jobs or calls at once
	coolBusy              // 503 and kin with a hint: wait, but the pace was not the cause
)

// coolEvent is the answer to one call.
type coolEvent struct {
	kind     coolKind
	granted  time.Time
	hint     time.Duration
	observed float64
}

// closed reports whether no call may go out at now.
func (c cooldown) closed(now time.Time) bool { return now.Before(c.until) }

// observe takes an answer in.
func (c cooldown) observe(now time.Time, e coolEvent) cooldown {
	if e.kind == coolNeutral {
		return c
	}
	news := c.began.IsZero() || e.granted.After(c.began)
	if e.kind == coolGood {
		if news {
			c.n, c.good = 0, true
		}
		return c
	}
	if c.over(now) {
		c.m = 0
	}
	again := c.m > 0
	if !again {
		c.m, c.observed = 1, e.observed
	} else {
		c.m = c.part(now) // until is about to move: settle what was recovered before it
	}
	if news {
		c.began, c.good, c.capacity = now, false, false
		if e.kind != coolBusy {
			c.n = min(c.n+1, 1000)
			c.capacity = e.kind == coolCapacity && e.hint <= 0
			if again {
				c.m = max(c.m/2, paceFloor)
			}
		}
	}
	return c.close(now, c.wait(e))
}

// wait is how long an answer closes: what the provider asked for, else the own
// backoff. A hint below the first step of that backoff does not shorten it.
func (c cooldown) wait(e coolEvent) time.Duration {
	hint := min(max(e.hint, 0), MaxRetryAfter)
	if e.kind == coolBusy || hint >= coolFirst {
		return hint
	}
	return max(hint, ownBackoff(c.n))
}

// ownBackoff is 2 s for the first rate limit in a row, doubled by each further
// one, at most 60 s.
func ownBackoff(n int) time.Duration {
	d := coolFirst
	for ; n > 1 && d < coolMax; n-- {
		d *= 2
	}
	return min(d, coolMax)
}

// close makes the closed time last for d from now, never shorter than it was.
func (c cooldown) close(now time.Time, d time.Duration) cooldown {
	until := now.Add(d)
	if !until.After(c.until) {
		return c
	}
	if !c.closed(now) {
		c.cooled += c.until.Sub(c.from)
		c.from = now
	} else {
		c.capacity = false // a longer word than the own backoff has come
	}
	c.until = until
	return c
}

// slotFreed tells that a remote job has ended: what a capacity cool-down
// waited for. A second of it stays, so that the provider knows it too.
func (c cooldown) slotFreed(now time.Time) cooldown {
	if !c.capacity || !c.closed(now) {
		return c
	}
	end := c.began.Add(coolLeast)
	if end.Before(now) {
		end = now
	}
	if end.Before(c.until) {
		c.until = end
	}
	return c
}

// part is the part of the ceiling that may be used at now; 0 outside an episode.
func (c cooldown) part(now time.Time) float64 {
	if c.m == 0 || !now.After(c.until) {
		return c.m
	}
	steps := float64(now.Sub(c.until) / paceStep)
	return min(1, c.m*math.Exp2(min(steps, 64)))
}

// nextStep is when part changes next, or may end.
func (c cooldown) nextStep(now time.Time) time.Time {
	if !now.After(c.until) {
		return c.until.Add(paceStep)
	}
	return c.until.Add((now.Sub(c.until)/paceStep + 1) * paceStep)
}

// over reports whether the episode has ended: back at the whole ceiling, a
// step after the cool-down, with a good answer since.
func (c cooldown) over(now time.Time) bool {
	return c.m > 0 && c.good && now.Sub(c.until) >= paceStep && c.part(now) == 1
}

// pace is the limit in calls per second that pacing sets at now, given the
// configured ceiling (0: none); 0 outside an episode. Where nothing is
// configured the rate before the episode stands in, at least 1/s.
func (c cooldown) pace(now time.Time, ceiling float64) float64 {
	if c.m == 0 || c.over(now) {
		return 0
	}
	if ceiling <= 0 {
		ceiling = max(1, c.observed)
	}
	return ceiling * c.part(now)
}

// cooledFor is the whole time closed up to now.
func (c cooldown) cooledFor(now time.Time) time.Duration {
	end := c.until
	if now.Before(end) {
		end = now
	}
	return c.cooled + end.Sub(c.from)
}

// grantMeter is a moving average of grants per second.
type grantMeter struct {
	start time.Time
	full  time.Time // the end of the slot
	n     int
	rate  float64
	known bool
}

// add counts one grant.
func (m *grantMeter) add(now time.Time) {
	if !now.Before(m.full) {
		known := !m.start.IsZero()
		*m = grantMeter{start: now, full: now.Add(meterSlot), rate: m.at(now), known: known}
	}
	m.n++
}

// at is the rate at now.
func (m *grantMeter) at(now time.Time) float64 {
	if m.start.IsZero() {
		return 0
	}
	d := max(now.Sub(m.start), meterSlot).Seconds()
	slot := float64(m.n) / d
	if !m.known {
		return slot
	}
	old := math.Exp(-d / meterWindow.Seconds())
	return m.rate*old + slot*(1-old)
}
