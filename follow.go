package jobpoll

import (
	"context"
	"iter"
	"time"
)

// Update is a change of a job, or its end as Follow shows it.
type Update struct {
	Job    Job    `json:"job"`
	State  State  `json:"state"`
	Change Change `json:"change,omitempty"`
	// Progress is the highest so far, 0..1; QueuePosition is 1-based, 0 not told.
	Progress      float64 `json:"progress,omitempty"`
	QueuePosition int     `json:"queue_position,omitempty"`
	// FinishAt is the estimated end while an estimate holds.
	FinishAt time.Time `json:"finish_at,omitzero"`
	// Report is the provider's last answer.
	Report Report `json:"report"`
	Polls  int    `json:"polls"`
	// At is the wall time of the answer.
	At time.Time `json:"at"`
	// Outcome is set in the last Update that Follow yields.
	Outcome *Outcome `json:"outcome,omitempty"`
}

// queueUpdate leaves an update to be told; one not yet told is merged into it.
func (p *Poller) queueUpdate(r *record, change Change, now Stamp) {
	u := p.lastUpdate(r, now)
	u.Change = change
	for _, f := range r.followers {
		f.set(u)
	}
	if p.callbacks.merge(r.route.Callbacks).OnUpdate == nil {
		return
	}
	if r.update != nil {
		u.Change |= r.update.Change
		p.meters.coalesced.Add(1)
	}
	r.update = &u
	p.serve(r)
}

func (p *Poller) lastUpdate(r *record, now Stamp) Update {
	shift := p.line.shift()
	u := Update{
		Job: r.job, State: r.track.State, Progress: r.track.Progress, QueuePosition: int(r.track.QueuePosition),
		FinishAt: toWall(r.track.FinishAt, shift), Polls: r.polls, At: toWall(now, shift),
	}
	if r.report != nil {
		u.Report = *r.report
	}
	if r.success != nil { // and its output is on its way
		u.State, u.Report = StateSucceeded, *r.success
	}
	if r.outcome != nil {
		o := *r.outcome
		u.Outcome, u.State, u.Report, u.At = &o, o.State, o.Report, o.DetectedAt
	}
	return u
}

func (p *Poller) guardUpdate(ctx context.Context, cb Callbacks, u Update) {
	if cb.OnUpdate == nil {
		return
	}
	_ = p.guard(u.Job.Key(), "OnUpdate", func() error { cb.OnUpdate(ctx, u); return nil })
}

// follower is one reader of a live view. Guarded by Poller.mu but for wake.
type follower struct {
	wake   chan struct{}
	latest Update
	fresh  bool
	ended  bool
}

func (f *follower) set(u Update) {
	f.latest, f.fresh = u, true
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *follower) end(u Update) {
	f.ended = true
	f.set(u)
}

// over ends the view without an end of the job.
func (f *follower) over() {
	f.ended = true
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Follow is a live view of a job, for progress bars and server-sent events: it
// yields what is known now, then each change, and last an Update with the
// Outcome. A slow reader sees the latest and misses what was between; it never
// holds up the engine. It ends with ctx and with Run (after Run has returned it
// yields what is known and ends), and yields nothing for a job that is not known.
//
// A look that fails is no change and is not shown; Hooks.Looked tells of those.
func (p *Poller) Follow(ctx context.Context, k Key) iter.Seq[Update] {
	return func(yield func(Update) bool) {
		now, _ := p.lock()
		r := p.find(k)
		if r == nil || r.told {
			info, ok := p.info(k)
			p.mu.Unlock()
			if ok && info.Outcome != nil {
				o := info.Outcome
				yield(Update{Job: o.Job, State: o.State, Progress: o.Report.Progress, Report: o.Report, Polls: o.Polls, At: o.DetectedAt, Outcome: o})
			}
			return
		}
		f := &follower{wake: make(chan struct{}, 1)}
		if r.phase != phaseEnding { // else the end is all that is left to tell
			f.set(p.lastUpdate(r, now))
		}
		if p.over {
			f.over()
		}
		h := r.handle()
		r.followers = append(r.followers, f)
		p.mu.Unlock()
		defer p.unfollow(h, f)
		for {
			select {
			case <-ctx.Done():
				return
			case <-f.wake:
			}
			p.mu.Lock()
			u, ended, fresh := f.latest, f.ended, f.fresh
			f.fresh = false
			p.mu.Unlock()
			if ctx.Err() != nil || fresh && !yield(u) || ended {
				return
			}
		}
	}
}

func (p *Poller) unfollow(h handle, f *follower) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.get(h)
	if r == nil {
		return
	}
	for i, o := range r.followers {
		if o == f {
			r.followers = append(r.followers[:i], r.followers[i+1:]...)
			return
		}
	}
}
