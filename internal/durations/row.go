package durations

import (
	"math"
	"slices"
	"time"

	"github.com/jobpoll/jobpoll/internal/plan"
)

const unit = plan.Unit

// row is what is known of one profile, or of all of a family.
type row struct {
	name    name
	last    time.Time
	age     series // from submission to the end
	running series // from the start to the end
	told    guess  // what the provider's estimates are worth
	moved   guess  // what those drawn from progress are worth
	// runs is how much better running tells the end than age does, as a decayed
	// sum of log scores.
	runs float32

	seen uint64    // counts what was taken in
	made []planned // the latest plans
}

// planned is a plan, what it was made for, and how much had been seen by then.
type planned struct {
	set   *plan.Set
	terms Terms
	at    uint64
}

// maxTerms bounds the terms for which the plans of a row are kept: routes of one
// family may differ in them.
const maxTerms = 4

// guess is the errors of one kind of estimate: the actual over the told time
// left, in Units, and its lead over the learned durations.
type guess struct {
	errors series
	lead   float32
}

// learnAge takes in the total duration only.
func (r *row) learnAge(s *Sample) span {
	if s.At.After(r.last) {
		r.last = s.At
	}
	seen := spanOf(s.After, s.By)
	if s.Unfinished {
		seen = over(s.After)
	}
	r.age.add(seen)
	r.seen++
	return seen
}

// learn takes in all of a sample. What is compared is compared before it is
// learned.
func (r *row) learn(s *Sample) {
	seen := spanOf(s.After, s.By)
	if s.Unfinished {
		seen = over(s.After)
	}
	if s.Running > 0 && s.Running <= Max {
		run := seen.since(s.Running)
		lead(&r.runs, r.running.chance(run, 0), r.age.chance(seen, s.Running.Seconds()))
		r.running.add(run)
	}
	r.told.learn(s.Told, seen, &r.age)
	r.moved.learn(s.Moved, seen, &r.age)
	r.learnAge(s)
}

func (g *guess) learn(e Estimate, seen span, age *series) {
	if e.Left <= 0 || e.Age < 0 || secondsOf(e.Age) > seen.hi {
		return
	}
	actual := seen.since(e.Age).of(e.Left)
	lead(&g.lead, g.errors.chance(actual, 0), age.chance(seen, e.Age.Seconds()))
	g.errors.addBrief(actual)
}

const (
	// forget is the decay of a lead, and ahead the lead that decides.
	forget = 0.95
	ahead  = 1
)

// lead moves a decayed sum of log scores; a chance below zero is not known.
func lead(sum *float32, mine, other float64) {
	if mine < 0 || other < 0 {
		return
	}
	const least = 1e-3
	*sum = *sum*forget + float32(math.Log(max(mine, least)/max(other, least)))
}

// current gives the latest plan for the terms, nil if it does not hold any more.
func (r *row) current(terms Terms) *plan.Set {
	holds := max(1, uint64(r.age.weight()/10))
	if r.age.drift > alarm/4 { // it looks as if jobs have changed
		holds = 1
	}
	for _, m := range r.made {
		if m.terms == terms && r.seen-m.at < holds {
			return m.set
		}
	}
	return nil
}

// keep keeps a plan in place of an earlier one for the same terms, else of the oldest.
func (r *row) keep(p planned) {
	for i := range r.made {
		if m := &r.made[i]; m.terms == p.terms {
			if m.at <= p.at {
				*m = p
			}
			return
		}
	}
	if len(r.made) < maxTerms {
		r.made = append(r.made, p)
		return
	}
	oldest := 0
	for i, m := range r.made {
		if m.at < r.made[oldest].at {
			oldest = i
		}
	}
	r.made[oldest] = p
}

// plan makes the plan of a row; parent is its family, if any. What the
// comparisons go by is fitted here too.
func (r *row) plan(parent *row, terms Terms) *plan.Set {
	known := r.age.count
	if parent != nil {
		known = max(known, parent.age.count)
	}
	if known < Enough {
		return nil
	}
	if r.age.since > 0 || !r.age.blended { // else there is one for other terms
		var prior *curve[float32]
		if parent != nil {
			prior = parent.age.curve(cells)
		}
		r.age.fit(prior, cells)
		r.age.blended = true
	}
	set := &plan.Set{Age: plan.Build(r.age.fitted.ages, r.age.fitted.alive, terms.Cost, terms.MaxDelay)}
	if set.Age == nil {
		return nil
	}
	set.Probe = r.age.probe()
	if r.running.count >= Enough {
		if c := r.running.curve(runningCells); r.runs > ahead {
			set.Running = plan.Build(c.ages, c.alive, terms.Cost, terms.MaxDelay)
		}
	}
	set.Told, set.Moved = r.told.plan(terms), r.moved.plan(terms)
	r.keep(planned{set, terms, r.seen})
	return set
}

func (g *guess) plan(terms Terms) plan.Guess {
	if g.errors.count < Enough {
		return plan.Guess{}
	}
	c := g.errors.curve(errorCells)
	if g.lead < -ahead {
		return plan.Guess{Worse: true}
	}
	return plan.Guess{Errors: plan.BuildGuess(c.ages, c.alive, terms.Cost)}
}

// clone gives a copy that can be worked on without the lock of the table.
func (r *row) clone() *row {
	if r == nil {
		return nil
	}
	c := *r
	for _, s := range c.parts() {
		s.recent = slices.Clone(s.recent)
		s.slow.mass = slices.Clone(s.slow.mass)
		s.taken, s.anew = s.since, false
	}
	c.made = slices.Clone(c.made)
	return &c
}

// adopt takes over what was worked out on a clone.
func (r *row) adopt(c *row) {
	for _, m := range c.made {
		r.keep(m)
	}
	from := c.parts()
	for i, s := range r.parts() {
		if o := from[i]; o.anew && s.resets == o.resets {
			s.fitted, s.told, s.blended = o.fitted, o.told, o.blended
			s.since = max(s.since-o.taken, 0)
		}
	}
}

func (r *row) summary() Profile {
	p := Profile{Family: r.name.family, Profile: r.name.profile, Count: r.age.count, Last: r.last}
	if r.age.curve(cells) != nil {
		for i, to := range [...]*time.Duration{&p.P10, &p.P50, &p.P90, &p.P99} {
			*to = durationOf(float64(r.age.told[i]))
		}
	}
	return p
}
