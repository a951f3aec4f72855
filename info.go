package jobpoll

import (
	"iter"
	"time"
)

// JobInfo is what is known of one job. Its times are wall times.
type JobInfo struct {
	Job           Job       `json:"job"`
	State         State     `json:"state"`
	RawStatus     string    `json:"raw_status,omitempty"`
	Progress      float64   `json:"progress,omitempty"`
	QueuePosition int       `json:"queue_position,omitempty"`
	Polls         int       `json:"polls"`
	LastPollAt    time.Time `json:"last_poll_at,omitzero"`
	// NextPollAt is when the next look is planned, and Cause why then; zero
	// while a call is under way and after the end. Overdue jobs wait for the budget.
	NextPollAt time.Time `json:"next_poll_at,omitzero"`
	Cause      Cause     `json:"cause,omitempty"`
	// InFlight tells that a call for the job is under way.
	InFlight bool `json:"in_flight,omitempty"`
	// Errors counts failed looks in a row; ErrorKind and Message are the last's.
	Errors    int       `json:"errors,omitempty"`
	ErrorKind ErrorKind `json:"error_kind,omitempty"`
	Message   string    `json:"message,omitempty"`
	// Outcome is set once the watch has ended. Delivered tells that OnStop has
	// taken it.
	Outcome   *Outcome `json:"outcome,omitempty"`
	Delivered bool     `json:"delivered,omitempty"`
	// Submission is set while the job is no more than a submission: it has no ID then.
	Submission *SubmissionInfo `json:"submission,omitempty"`
}

// Job tells what is known of a job, also after its end: of the last 4096 ended
// ones, while their outputs take at most 16 MiB together.
func (p *Poller) Job(k Key) (JobInfo, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.info(k)
}

// Find tells what is known of the job with that ClientKey, or of its submission:
// in which state that is, and what it waits for.
func (p *Poller) Find(clientKey string) (JobInfo, bool) {
	p.mu.Lock()
	var info JobInfo
	k, ok := p.clientKey(clientKey)
	if ok {
		info, ok = p.info(k)
	}
	p.mu.Unlock()
	if !ok {
		return p.findSubmission(clientKey)
	}
	return info, true
}

func (p *Poller) info(k Key) (JobInfo, bool) {
	if rt := p.routes[k.Route]; rt != nil {
		if slot, ok := p.jobs.find(rt, k.ID); ok {
			return p.describe(p.jobs.look(slot, &record{})), true
		}
	}
	if t, ok := p.ended.get(k); ok {
		o := t.outcome
		return JobInfo{
			Job: o.Job, State: o.State, RawStatus: o.Report.RawStatus, Progress: o.Report.Progress, Polls: o.Polls, LastPollAt: o.LastPollAt,
			ErrorKind: o.ErrorKind, Message: o.Message, Outcome: &o, Delivered: true,
		}, true
	}
	return JobInfo{}, false
}

// Jobs goes over the jobs that are watched or whose end has not been
// delivered. It does not stop the engine: jobs that come or go meanwhile may
// be seen or not.
func (p *Poller) Jobs() iter.Seq[JobInfo] {
	return func(yield func(JobInfo) bool) {
		const batch = 128
		for from := int32(0); ; from += batch {
			p.mu.Lock()
			if from >= p.jobs.End() {
				p.mu.Unlock()
				return
			}
			var some []JobInfo
			var scratch record
			for s := from; s < from+batch; s++ {
				if r := p.jobs.look(s, &scratch); r != nil {
					some = append(some, p.describe(r))
				}
			}
			p.mu.Unlock()
			for _, j := range some {
				if !yield(j) {
					return
				}
			}
		}
	}
}

// ProfileInfo is the measured durations of one profile: of the jobs of one
// family with the same Job.Profile that succeeded.
type ProfileInfo struct {
	Family  string        `json:"family"`
	Profile string        `json:"profile"`
	Count   int           `json:"count"`
	P10     time.Duration `json:"p10"`
	P50     time.Duration `json:"p50"`
	P90     time.Duration `json:"p90"`
	P99     time.Duration `json:"p99"`
	LastAt  time.Time     `json:"last_at"`
}

// Profiles goes over the measured durations of all profiles seen, a bounded
// number.
func (p *Poller) Profiles() iter.Seq[ProfileInfo] {
	return p.learned.Profiles()
}

// describe makes the public view of a record.
func (p *Poller) describe(r *record) JobInfo {
	shift := p.line.shift()
	t := &r.track
	i := JobInfo{
		Job: r.job, State: t.State, RawStatus: t.RawStatus, Progress: t.Progress, QueuePosition: int(t.QueuePosition),
		Polls: r.polls, LastPollAt: toWall(r.lastAt, shift), InFlight: r.phase == phaseCalling,
		Errors: int(t.Errors), ErrorKind: t.ErrorKind, Message: t.Message,
	}
	if r.success != nil { // and its output is on its way
		i.State, i.RawStatus = StateSucceeded, r.success.RawStatus
	}
	switch r.phase {
	case phaseWaiting, phaseReady:
		i.NextPollAt, i.Cause = toWall(r.planned, shift), r.cause
	case phaseEnding:
		o := *r.outcome
		i.Outcome = &o
	}
	return i
}
