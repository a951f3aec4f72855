package loopback

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

const never = time.Duration(math.MaxInt64)

// job is one job. All times but those of the wall are of the monotonic time.
type job struct {
	id, model   string
	own         string // Call.OwnID
	input       json.RawMessage
	play        *polltest.Play
	entries     []polltest.Entry
	submitted   time.Duration
	submittedAt time.Time
	visible     time.Duration // from then on
	begun       time.Duration // when its script began; never: it waits for a slot
	canceled    time.Duration // never: it was not
	deadline    time.Duration // never: none
	misses      int           // looks before it was visible
}

func newJob(id string, script polltest.Script, at time.Duration, wall time.Time) *job {
	return &job{
		id: id, play: script.Play(), entries: script.Entries(),
		submitted: at, submittedAt: wall, visible: at, begun: at, canceled: never, deadline: never,
	}
}

// ending is when the job leaves its script: the script's own end, the
// cancellation or the deadline, whichever is first; never: none of them.
func (j *job) ending() time.Duration { return min(j.scriptEnd(), j.canceled, j.deadline) }

// scriptEnd is when the script tells an end that stays.
func (j *job) scriptEnd() time.Duration {
	if j.begun == never {
		return never
	}
	for _, e := range j.entries {
		if e.Ends() && e.Times == 0 {
			return j.begun + e.At
		}
	}
	return never
}

// after is d after at; never where no Duration can tell it.
func after(at, d time.Duration) time.Duration {
	if d > never-max(at, 0) {
		return never
	}
	return at + d
}

// running is when the script first tells that the job runs, or ended by itself.
func (j *job) running() time.Duration {
	if j.begun == never {
		return never
	}
	for _, e := range j.entries {
		switch {
		case e.Fails():
		case e.State == jobpoll.StateRunning:
			return j.begun + e.At
		case e.State == jobpoll.StateSucceeded, e.State == jobpoll.StateFailed:
			return j.begun
		}
	}
	return never
}

// cut returns the entry of a job that left its script before the script's end.
func (j *job) cut(now time.Duration) (polltest.Entry, bool) {
	end := j.ending()
	if end > now || end == j.scriptEnd() {
		return polltest.Entry{}, false
	}
	e := polltest.Entry{State: jobpoll.StateCanceled}
	if end == j.deadline && end != j.canceled && j.running() >= end {
		e.State = jobpoll.StateExpired
	}
	return e, true
}

// look is what a status call sees: one that uses up entries and meets errors.
func (j *job) look(now time.Duration, ahead int) (e polltest.Entry, ok bool) {
	if e, ok := j.outside(now, ahead); ok {
		return e, true
	}
	return j.play.Look(now - j.begun)
}

// state is what all other calls see.
func (j *job) state(now time.Duration, ahead int) polltest.Entry {
	if e, ok := j.outside(now, ahead); ok {
		return e
	}
	if e, ok := j.play.State(now - j.begun); ok {
		return e
	}
	return polltest.Entry{State: jobpoll.StateQueued}
}

// outside is what there is to tell when the script is not played.
func (j *job) outside(now time.Duration, ahead int) (polltest.Entry, bool) {
	if e, ok := j.cut(now); ok {
		return e, true
	}
	if j.begun == never {
		return polltest.Entry{State: jobpoll.StateQueued, Position: ahead + 1}, true
	}
	return polltest.Entry{}, false
}

// view is the job now with what e tells.
func (s *Server) view(j *job, e polltest.Entry, base string) View {
	now, wall := s.elapsed(), s.clock.Now()
	at := func(mono time.Duration) time.Time {
		if mono > now {
			return time.Time{}
		}
		return j.submittedAt.Add(mono - j.submitted)
	}
	if e.Remaining > 0 {
		e.Remaining = max(e.Remaining-(now-j.begun-e.At), 0)
	}
	v := View{ID: j.id, Model: j.model, Base: base, Input: j.input, Entry: e, Now: wall, SubmittedAt: j.submittedAt}
	if e.State == jobpoll.StateRunning || e.State.Terminal() {
		v.StartedAt = at(j.running())
	}
	if e.State.Terminal() {
		v.EndedAt = at(min(j.ending(), now))
		if !v.StartedAt.IsZero() && v.StartedAt.After(v.EndedAt) {
			v.StartedAt = time.Time{}
		}
		v.Expired = e.Expires > 0 && now-j.begun >= e.At+e.Expires
	}
	return v
}

// ahead counts the jobs that wait for a slot before j; s.mu is held.
func (s *Server) ahead(j *job) int { return max(slices.Index(s.waiting, j), 0) }

// settle frees the slots of ended jobs and gives them to those that wait, each
// at the instant at which it became free; s.mu is held.
func (s *Server) settle() {
	now := s.elapsed()
	s.waiting = slices.DeleteFunc(s.waiting, func(j *job) bool { return j.ending() <= now })
	for len(s.active) > 0 {
		first := slices.MinFunc(s.active, func(a, b *job) int { return cmp.Compare(a.ending(), b.ending()) })
		free := first.ending()
		if free > now {
			return
		}
		s.active = slices.DeleteFunc(s.active, func(j *job) bool { return j == first })
		if len(s.waiting) > 0 {
			next := s.waiting[0]
			s.waiting = s.waiting[1:]
			next.begun = max(free, next.submitted)
			s.active = append(s.active, next)
		}
	}
}

// claim takes the caller's id for a submission. Not ok: another job has it.
func (x *exchange) claim() (ok bool) {
	if x.call.OwnID == "" {
		return true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, taken := x.own[x.call.OwnID]; taken {
		return false
	}
	x.own[x.call.OwnID] = nil
	return true
}

// disclaim gives the id back of a submission that came to nothing.
func (x *exchange) disclaim() {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.own, x.call.OwnID)
}

// reserve takes a slot for a submission and numbers it. Not ok: there are too
// many jobs.
func (s *Server) reserve(queue bool) (n int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	if s.cfg.MaxJobs > 0 && !queue && len(s.active)+s.accepting >= s.cfg.MaxJobs {
		return 0, false
	}
	s.accepting++
	s.accepted++
	return s.accepted, true
}

// release gives back the slot of a submission that came to nothing.
func (s *Server) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepting--
}

// accept makes the job of a submission that has reserved.
func (s *Server) accept(n int, call Call, script polltest.Script, body json.RawMessage) *job {
	id := s.cfg.Wire.ID(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	s.accepting--
	j := newJob(id, script, s.elapsed(), s.clock.Now())
	j.model, j.input, j.own = call.Model, body, call.OwnID
	if j.own != "" {
		s.own[j.own] = j
	}
	j.visible = after(j.submitted, s.cfg.NotVisible)
	if call.Deadline > 0 {
		j.deadline = after(j.submitted, call.Deadline)
	}
	s.jobs[j.id] = j
	s.order = append(s.order, j)
	switch {
	case s.cfg.MaxJobs <= 0:
	case len(s.active) < s.cfg.MaxJobs:
		s.active = append(s.active, j)
	default:
		j.begun = never
		s.waiting = append(s.waiting, j)
	}
	return j
}
