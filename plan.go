package jobpoll

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/jobpoll/jobpoll/internal/plan"
)

// Plan is a schedule of one profile: the ages, rising, at which a look is
// worth its price. It is immutable, safe for concurrent use, and valid from
// any age, so a late look, a retry, or a restart needs no correction.
//
// A Learner makes Plans from the durations that it has seen. They survive
// encoding/json, so one process may learn and others follow. Such a Plan also
// holds what it takes to plan from the instant at which the job started to
// run, from an estimate that the provider has told, and for looks that have
// become dearer.
type Plan struct {
	// Looks are the ages of a Plan made by hand. Beyond the last one the
	// Schedule's own delays hold. A learned Plan has none: it goes by a table
	// that knows the best next look from any age, and beyond the longest
	// duration that it has seen its gaps grow with the root of the age.
	Looks []time.Duration `json:"looks"`

	learned *plan.Set
}

// maxPlanGap is the longest gap of a learned plan beyond what was seen.
const maxPlanGap = 10 * time.Minute

// planned is a look of a plan: its age, and the gap to the one after.
type planned struct {
	at, gap time.Duration
}

// next gives the first planned look after age. Where looks are dear it skips:
// at twice the gap every other one.
func (p *Plan) next(age time.Duration, dear float64) (planned, bool) {
	if p == nil {
		return planned{}, false
	}
	lo, hi := 0, len(p.Looks)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); p.Looks[mid] > age {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo == len(p.Looks) {
		return planned{}, false
	}
	at := p.Looks[lo]
	if dear > 1 {
		skip := min(dear-1, float64(len(p.Looks)-1-lo))
		whole := int(skip)
		lo += whole
		at = p.Looks[lo]
		if lo < len(p.Looks)-1 {
			at += time.Duration((skip - float64(whole)) * float64(p.Looks[lo+1]-at))
		}
	}
	gap := at - age
	if lo < len(p.Looks)-1 {
		gap = p.Looks[lo+1] - at
	}
	return planned{at, gap}, true
}

// ask gives the delay from the last look, at age, to the next one, and by how
// much jitter may move it: a tenth of the smaller of the gaps before and after.
func (p *Plan) ask(t *Track, age time.Duration, dear float64) (delay, room time.Duration, ok bool) {
	if p.learned == nil {
		l, ok := p.next(age, dear)
		delay = l.at - age
		return delay, min(delay, l.gap) / 10, ok
	}
	table, from := p.learned.Age, age.Seconds()
	if r := p.learned.Running; r != nil && t.State == StateRunning && t.started() {
		table, from = r, t.LastAt.Sub(t.RunningAt).Seconds()
	}
	from = max(from, 0)
	at, gap := table.Look(from, dear*dear)
	delay = delayOf(at - from)
	if table.Beyond(from) {
		delay = min(delay, maxPlanGap)
	}
	return delay, min(delay, delayOf(gap)) / 10, true
}

// probes is of how many jobs one is probed.
const probes = 16

// probe gives the delay to a look before the planned one, at a job by which it
// is found out whether such jobs have become faster.
func (p *Plan) probe(job *Job, t *Track, age, delay time.Duration) (time.Duration, bool) {
	if p.learned == nil || !(p.learned.Probe > 0) || p.learned.Running != nil && t.started() {
		return 0, false
	}
	early := delayOf(p.learned.Probe) - age
	if early <= 0 || early >= delay {
		return 0, false
	}
	_, part := spread(job.Route, job.ID)
	return early, part < 1.0/probes
}

// estimated gives the delay from the last look, which told that left remains.
// ok is false where the estimate is to be left alone.
func (p *Plan) estimated(told bool, left time.Duration, price float64) (delay, room time.Duration, ok bool) {
	if p == nil || p.learned == nil {
		return left, -1, true
	}
	g := &p.learned.Told
	if !told {
		g = &p.learned.Moved
	}
	switch {
	case g.Worse:
		return 0, 0, false
	case g.Errors == nil:
		return left, -1, true
	}
	d, gap := g.Look(left.Seconds(), price)
	return delayOf(d), delayOf(min(d, gap) / 10), true
}

// started reports whether the instant at which the job started to run is known:
// it was told, or it was seen to leave the queue.
func (t *Track) started() bool { return t.RunningAt != 0 && t.RunningAt != t.FirstAt }

// delayOf bounds a planned gap.
func delayOf(s float64) time.Duration {
	if !(s > 0) {
		return 0
	}
	return time.Duration(min(s, float64(never)/2/1e9) * 1e9)
}

// Worth is the delay of detection that can be expected to have accrued for
// the job by now: what a look at it would put an end to. Where looks are scarce
// the job of greatest Worth goes first. Zero: nothing, or nothing is known.
func (p *Plan) Worth(t Track, submitted, now time.Time) time.Duration {
	s := StampOf(submitted)
	return p.worth(&t, s, StampOf(now))
}

func (p *Plan) worth(t *Track, submitted, now Stamp) time.Duration {
	if p == nil || p.learned == nil {
		return 0
	}
	if submitted == 0 {
		submitted = t.FirstAt
	}
	last := submitted
	if t.Looks > 0 {
		last = t.LastAt
	}
	table, from := p.learned.Age, submitted
	if r := p.learned.Running; r != nil && t.State == StateRunning && t.started() {
		table, from = r, t.RunningAt
	}
	if from == 0 {
		return 0
	}
	return delayOf(table.Worth(max(last.Sub(from), 0).Seconds(), max(now.Sub(from), 0).Seconds()))
}

type planJSON struct {
	Looks   []time.Duration `json:"looks"`
	Learned *plan.Set       `json:"learned,omitempty"`
}

// MarshalJSON writes a Plan, learned or not.
func (p Plan) MarshalJSON() ([]byte, error) {
	return json.Marshal(planJSON{p.Looks, p.learned})
}

// UnmarshalJSON reads a Plan; one whose tables do not hold together is an error.
func (p *Plan) UnmarshalJSON(b []byte) error {
	var v planJSON
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	if v.Learned != nil && !v.Learned.Valid() {
		return errors.New("jobpoll: a stored plan is damaged: drop it, it is made anew")
	}
	*p = Plan{Looks: v.Looks, learned: v.Learned}
	return nil
}
