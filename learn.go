package jobpoll

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll/internal/durations"
)

// plans are the learned plans of a route.
type plans struct {
	own  map[string]*Plan // by profile
	rest *Plan            // for the profiles of which nothing is known: that of the family
	// most and least are how long most jobs of the family take.
	least, most time.Duration
}

// maxPlans bounds the profiles of a route whose plans are kept.
const maxPlans = durations.DefaultProfiles

// planOf gives the plan that a job goes by; nil: there is none yet. What the
// caller expects of the job, or the guidance of its profile, counts for more
// than what others of its family took, where the two disagree.
func (rt *route) planOf(j *Job) *Plan {
	l := &rt.plans
	if p := l.own[j.Profile]; p != nil || l.rest == nil {
		return p
	}
	x := j.Expected
	if g := rt.guidance[j.Profile]; x <= 0 && g != nil {
		x = g.Expected
	}
	if x > 0 && (x < l.least/2 || x/2 > l.most) {
		return nil
	}
	return l.rest
}

func (l *plans) set(profile string, own, rest *Plan) {
	l.rest = rest
	if l.own[profile] == own {
		return
	}
	if l.own == nil {
		l.own = map[string]*Plan{}
	}
	if _, kept := l.own[profile]; !kept {
		if len(l.own) >= maxPlans {
			for some := range l.own { // it is made anew when a job of it ends
				delete(l.own, some)
				break
			}
		}
		profile = strings.Clone(profile) // it lies among the texts of other jobs
	}
	l.own[profile] = own
}

// goesByPlan reports whether looks are to be planned by what is learned:
// delays that are given one by one are meant, unless a price is told too.
func (s *Schedule) goesByPlan() bool {
	return s.PollCost > 0 || s.PollCost == 0 && len(s.Delays) == 0
}

// estimates are the first ones of a job, by which others are judged.
type estimates struct{ told, moved Estimate }

// maxEstimates bounds the jobs whose first estimates are kept: to learn how far
// estimates can be trusted a part of the jobs will do.
const maxEstimates = 16_384

// noteEstimate keeps the first estimates of a job. Called under the lock.
func (p *Poller) noteEstimate(r *record) {
	e, told := r.track.EstimateIn(r.submitted.Time())
	if e.Left == 0 {
		return
	}
	kept, known := p.estimates[r.handle()]
	if !known && len(p.estimates) >= maxEstimates {
		return
	}
	switch {
	case told && kept.told.Left == 0:
		kept.told = e
	case !told && kept.moved.Left == 0:
		kept.moved = e
	default:
		return
	}
	p.estimates[r.handle()] = kept
}

// learn takes what the end of a job tells of durations in. Called under the lock.
func (p *Poller) learn(r *record, e ending, now Stamp) {
	s, ok := p.sample(r, e, now)
	if !ok {
		return
	}
	name := profileName{s.Family, s.Profile}
	p.after = append(p.after, func() {
		p.learned.Observe(s)
		if p.store != nil { // not before it is learned: a flush may be under way
			p.mu.Lock()
			noteName(p.unsaved, name)
			p.mu.Unlock()
		}
		p.replanSoon(name)
	})
}

// noteName adds a profile to those with which something is to be done, unless
// they are too many: it is noted again when the next job of it ends.
func noteName(names map[profileName]struct{}, n profileName) {
	if _, noted := names[n]; noted || len(names) >= maxPlans {
		return
	}
	n.profile = strings.Clone(n.profile) // it lies among the texts of other jobs
	names[n] = struct{}{}
}

// sample is what is known of how long a job took. Of a job that did not
// succeed it is only known that it would have taken longer.
func (p *Poller) sample(r *record, e ending, now Stamp) (Sample, bool) {
	age := func(at Stamp) time.Duration {
		if at == 0 {
			return 0
		}
		return max(at.Sub(r.submitted), 0)
	}
	s := Sample{Family: r.route.Family, Profile: r.job.Profile, After: age(e.unfinished), At: toWall(now, p.line.shift())}
	if r.track.started() {
		s.Running = age(r.track.RunningAt)
	}
	first := p.estimates[r.handle()]
	s.Told, s.Moved = first.told, first.moved
	if e.reason != ReasonSucceeded && r.success == nil {
		s.Unfinished = true
		if !r.track.State.Terminal() { // the last look did not see the end either
			s.After = max(s.After, age(r.track.GoodAt))
		}
		return s, s.After > 0
	}
	if r.success != nil {
		now = r.succeeded
	}
	s.By = age(now)
	switch {
	case r.outcome.DelayExact:
		s.By -= r.outcome.DetectionDelay
		s.After = s.By
	case e.via == ViaWebhook || r.cause == CauseNotice:
		s.After = s.By // it was told when it ended
	}
	s.After = min(s.After, s.By)
	return s, s.By > 0
}

// fewPlans is how many profiles the caller of replanSoon makes plans for itself.
const fewPlans = 4

// replanSoon makes the plans anew for which there is reason: one caller at a
// time does, since a plan takes most of a millisecond, and what many ends at
// once leave to do is done in the background. Called without the lock.
func (p *Poller) replanSoon(learned ...profileName) {
	p.mu.Lock()
	for _, n := range learned {
		noteName(p.replans, n)
	}
	if p.replanning || len(p.replans) == 0 {
		p.mu.Unlock()
		return
	}
	p.replanning = true
	p.replan(fewPlans)
	run := p.run
	if len(p.replans) == 0 || run == nil || !run.open() {
		p.replanning = false // with the next end
		p.mu.Unlock()
		return
	}
	p.background(&run.crew, run.work, func() string { return "planning" }, func(context.Context) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for len(p.replans) > 0 && run.open() {
			p.replan(fewPlans)
		}
		p.replanning = false
	})
	p.mu.Unlock()
}

// replan makes the plans of up to so many profiles anew, of all routes of their
// families. Called under the lock, which it releases while it works.
func (p *Poller) replan(most int) {
	for n := range p.replans {
		delete(p.replans, n)
		for _, rt := range p.families[n.family] {
			if !rt.Schedule.goesByPlan() {
				continue
			}
			p.mu.Unlock()
			own, rest := p.learned.Plan(n.family, n.profile, rt.Schedule), p.learned.familyPlan(n.family, rt.Schedule)
			all, _ := p.learned.table.Family(n.family)
			p.mu.Lock()
			rt.plans.least, rt.plans.most = all.P10, all.P90
			if rt.plans.own[n.profile].differs(own) || rt.plans.rest.differs(rest) {
				rt.plans.set(n.profile, own, rest)
			}
		}
		if most--; most == 0 {
			return
		}
	}
}

// differs reports whether a plan is another one than before.
func (p *Plan) differs(o *Plan) bool {
	if p == nil || o == nil {
		return p != o
	}
	return p.learned != o.learned
}

// profileName is the name under which durations are pooled.
type profileName struct{ family, profile string }

// saveEvery is how old what is stored of learned durations may get.
const saveEvery = time.Minute

// saveProfiles leaves the durations that have been learned to the flush that
// begins.
func (p *Poller) saveProfiles(now Stamp, last bool) {
	p.mu.Lock()
	if len(p.unsaved) == 0 || !last && now.Sub(p.saved) < saveEvery {
		p.mu.Unlock()
		return
	}
	names := p.unsaved
	p.unsaved, p.saved = map[profileName]struct{}{}, now
	p.mu.Unlock()
	wall := toWall(now, p.line.shift())
	for n := range names {
		data, ok := p.learned.Export(n.family, n.profile)
		if !ok {
			continue
		}
		p.mu.Lock()
		p.writeBehind(profileRecord(n, data, wall, p.retention))
		p.mu.Unlock()
	}
}

// storedProfile is the Data of a RecordProfile.
type storedProfile struct {
	Version int    `json:"v"`
	Family  string `json:"family"`
	Profile string `json:"profile"`
	State   []byte `json:"state"` // what Learner.Export gave
}

// profileRecord is the stored form, kept as long as a job that has been told.
func profileRecord(n profileName, state []byte, now time.Time, keep time.Duration) Record {
	data, _ := marshal(storedProfile{Version: recordVersion, Family: n.family, Profile: n.profile, State: state})
	return Record{
		Kind: RecordProfile, ID: fmt.Sprintf("%d:%s/%s", len(n.family), n.family, n.profile),
		UpdatedAt: now, ExpiresAt: now.Add(keep), Data: data,
	}
}

// restoreProfile takes stored durations up where what has been learned here is
// not as new: none, or what was known before another Poller was the owner. The
// plans are made once all are read.
func (p *Poller) restoreProfile(rec Record) error {
	v, err := decodeProfile(rec)
	newer := false
	if err == nil {
		newer, err = p.learned.table.Update(v.State)
	}
	switch {
	case err != nil:
		return fmt.Errorf("jobpoll: stored durations %q cannot be read, they are learned anew: %w", rec.ID, err)
	case !newer:
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	noteName(p.replans, profileName{v.Family, v.Profile})
	return nil
}

func decodeProfile(rec Record) (storedProfile, error) {
	var v storedProfile
	if err := json.Unmarshal(rec.Data, &v); err != nil {
		return v, err
	}
	if v.Version > recordVersion {
		return v, fmt.Errorf("they are of version %d, this library reads up to %d", v.Version, recordVersion)
	}
	same, err := durations.Of(v.State, v.Family, v.Profile)
	if err == nil && !same {
		err = errors.New("they are of another profile")
	}
	return v, err
}
