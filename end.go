package jobpoll

import (
	"fmt"
	"time"
)

// ending is why and how a watch ends.
type ending struct {
	reason     Reason
	via        Via
	cause      error
	unfinished Stamp // the last instant at which the job was seen unfinished
	resubmit   Advice
}

// finish ends the watch of a record and sends its outcome on the way.
func (p *Poller) finish(r *record, e ending, now Stamp) {
	if r.phase == phaseEnding {
		return
	}
	p.unplan(r.slot)
	rt := r.route
	if r.call != nil {
		rt.meter.lookDropped()
		p.loseCall(r, fmt.Errorf("jobpoll: %s: the watch ended: %w", r.job.Key(), e.reason))
	}
	r.to(phaseEnding)
	p.touch(r)
	p.undelivered++
	r.outcome, r.endErr = p.conclude(r, e, now), e.cause
	rt.meter.stopped(r.outcome, r.submitted.Time(), int(r.track.Errors))
	if r.success == nil && toldByProvider(e.reason) && (e.via == ViaPoll || e.via == ViaWebhook) {
		p.endTold(r, r.report, e.via == ViaWebhook || r.cause == CauseNotice, now)
	}
	p.learn(r, e, now)
	p.releaseJobSlot(r, now)
	r.stage = stageStore
	if r.rules.CancelRemote && rt.canceler != nil && stoppedForTime(e.reason) {
		r.stage = stageCancel
	}
	p.serve(r)
}

// conclude makes the outcome.
func (p *Poller) conclude(r *record, e ending, now Stamp) *Outcome {
	shift := p.line.shift()
	t := &r.track
	o := &Outcome{
		Job: r.job, State: t.State, Reason: e.reason, ErrorKind: t.ErrorKind, Message: t.Message, Polls: r.polls,
		FirstPollAt: toWall(r.firstAt, shift), LastPollAt: toWall(r.lastAt, shift), DetectedAt: toWall(now, shift), Via: e.via,
	}
	if r.success != nil {
		now = r.succeeded // that is when the end was detected
		o.DetectedAt = toWall(now, shift)
	}
	if r.success != nil && !t.State.Terminal() { // its output could not be had
		o.State, o.Report = StateSucceeded, *r.success
	} else if r.report != nil {
		o.Report = *r.report
	} else {
		o.Report = Report{State: t.State, RawStatus: t.RawStatus, Progress: t.Progress}
	}
	if e.cause != nil && (e.reason == ReasonAbandoned || e.via == ViaLookup) {
		o.Message = scrubErr(e.cause)
	}
	if !o.State.Terminal() {
		retry := t.NotBefore
		if r.lastAt == 0 { // no request since an earlier watch, whose wait still binds
			retry = later(retry, r.resumeAt)
		}
		if d := p.coolDown(r.route); d > 0 {
			retry = later(retry, now.Add(d))
		}
		if retry > now {
			o.RetryAt = toWall(retry, shift)
		}
	} else {
		o.DetectionDelay, o.DelayExact = p.delay(r, e, now, shift)
	}
	o.Resubmit = max(e.resubmit, advice(e.reason, t.Failure))
	return o
}

// delay is how late the end was detected: exact where the provider's time of
// the end is believable, else the gap since the job was last seen unfinished.
func (p *Poller) delay(r *record, e ending, now Stamp, shift time.Duration) (time.Duration, bool) {
	since := e.unfinished
	if since.IsZero() {
		since = r.submitted
	}
	bound := max(now.Sub(since), 0)
	rep := r.report
	if r.success != nil {
		rep = r.success
	}
	if rep != nil && !rep.CompletedAt.IsZero() {
		// A second of slack for providers that tell whole seconds.
		if d := toWall(now, shift).Sub(rep.CompletedAt); d >= -time.Second && d <= bound+time.Second {
			return min(max(d, 0), bound), true
		}
	}
	return bound, false
}

// laterNow is the last reading of the timeline, for use under the lock.
func (p *Poller) laterNow() Stamp { return p.line.last() }
