package jobpoll

// answer takes the answer of a check or a fetch into the memory and decides.
func (p *Poller) answer(r *record, c *lookCall, rep *Report, err error, now Stamp, draw float64) {
	rt := r.route
	if c.kind == callFetch {
		err = fetchError(rep, err)
	}
	kind := ErrorNone
	hint := rep.Hint
	if err != nil {
		var eh Hint
		kind, eh, _ = classify(err)
		hint.RetryAfter = max(hint.RetryAfter, eh.RetryAfter)
		hint.Malformed = hint.Malformed || eh.Malformed
		hint.Scope = eh.Scope
	}
	if kind == ErrorNoSuchJob && r.canceled && c.kind == callCheck {
		*rep, err, kind = Report{State: StateCanceled}, nil, ErrorNone // it was cancelled, and is gone
	}
	own := c.inBatch() && hint.Scope == ScopeJob // of this job alone: see ownError
	if kind == ErrorAuth && !own {
		p.refused(c, now)
	} else if kind != ErrorTransient {
		p.accepted(c, now)
	}
	switch {
	case err != nil && c.kind == callLookup:
		rt.meter.lookEnded(kind, hint, 0, 0)
		p.lookupFailed(r, c, kind, hint, err, now)
		return
	case err != nil:
	case c.kind == callFetch:
		*rep = fetched(*c.success, *rep)
	case rep.needsFetch(rt):
		rt.meter.lookEnded(kind, hint, 0, 0)
		p.fetchNext(r, *rep, now, CauseConfirm, now)
		return
	}
	if err == nil && c.kind == callCheck {
		r.lookups = 0
	}
	rt.meter.lookEnded(kind, hint, 0, 0)
	if kind == ErrorTransient && !own && c.kind == callCheck && rt.batch.checker != nil {
		rt.batch.fails(r.handle(), c.inBatch(), int(r.track.Errors)+1, r.rules.MaxErrors)
	}
	p.observe(r, rep, err, ViaPoll, now, draw)
	if kind == ErrorAuth && r.phase == phaseWaiting {
		if rt.auth.held() {
			p.keepBack(r)
		} else if c.renewed < rt.auth.renewed {
			p.poke(r, CauseAuth, now) // it went out with the old ones
		}
	}
	if (kind == ErrorRateLimited || kind == ErrorConcurrency) && (own || c.coolsFirst()) {
		p.jobCooled(r, kind, r.track.NotBefore)
	}
	if err != nil && (kind != ErrorTransient || hint.RetryAfter > 0) {
		p.lookAtClosed(now, 0)
	}
}

// needsFetch reports whether the end is known and the output one more call away.
func (rep *Report) needsFetch(rt *route) bool {
	return rep.State == StateSucceeded && rt.fetcher != nil && len(rep.Output) == 0 && !rep.OutputDropped
}

// fetchNext makes the call for the output the next one of a record.
func (p *Poller) fetchNext(r *record, done Report, at Stamp, cause Cause, now Stamp) {
	if r.success == nil {
		p.endTold(r, &done, cause == CauseNotice || r.cause == CauseNotice, now)
	}
	r.success, r.succeeded, r.next = &done, now, callFetch
	if streak := r.track.Errors; streak > 0 {
		r.route.meter.streak(int(streak), 0)
	}
	r.track.endKnown()
	p.schedule(r, step{at: at, cause: cause}, now)
	for _, f := range r.followers {
		f.set(p.lastUpdate(r, now))
	}
}

// fetchError is what the answer of a fetch means: the job has succeeded, so an
// output that is not there (yet) is a fault that may pass, and counts as one.
func fetchError(rep *Report, err error) error {
	switch kind, h, _ := classify(err); {
	case err == nil && (rep.State == StateQueued || rep.State == StateRunning):
		return readError(&CheckError{Kind: ErrorTransient, Hint: rep.Hint, Err: errNoOutputYet})
	case err != nil && kind == ErrorNoSuchJob:
		return readError(&CheckError{Kind: ErrorTransient, Hint: h, Err: err})
	}
	return err
}

// fetched joins the report of the end with that of the fetched output.
func fetched(done, got Report) Report {
	if got.State != StateUnknown && got.State != StateSucceeded {
		return got // a second look at the end has the last word
	}
	out := done
	out.Output, out.OutputDropped = got.Output, got.OutputDropped
	if got.Ref != "" {
		out.Ref = got.Ref
	}
	if !got.ResultExpiresAt.IsZero() {
		out.ResultExpiresAt = got.ResultExpiresAt
	}
	return out
}

// observe takes an answer, however it came, into a record and goes on from there.
func (p *Poller) observe(r *record, rep *Report, err error, via Via, now Stamp, draw float64) {
	unfinished, streak, wait := r.track.GoodAt, r.track.Errors, r.track.NotBefore
	change := r.track.observe(rep, err, now)
	if via == ViaWebhook { // no request was made: the provider's wait still binds the next
		r.track.NotBefore = later(r.track.NotBefore, wait)
	}
	if r.track.Errors != streak {
		r.route.meter.streak(int(streak), int(r.track.Errors))
	}
	if err == nil {
		if r.track.FinishAt != 0 {
			p.noteEstimate(r)
		}
		if rep.Ref != "" {
			r.job.Ref = rep.Ref
		}
		p.keepReport(r, rep)
		p.noteWord(r, rep)
		if change.Notable() && change&ChangeEnded == 0 {
			p.queueUpdate(r, change, now)
		}
	}
	d := p.decide(r, now, draw)
	switch {
	case d.stop == ReasonNone:
		p.schedule(r, d, now)
	case d.stop == ReasonLost && r.route.reconciler != nil && r.lookups < maxLookups && r.success == nil:
		r.next = callLookup
		r.lookups++
		p.schedule(r, step{at: later(now, r.track.NotBefore), cause: CauseMissing}, now)
	default:
		if r.track.End == ReasonNone && via == ViaPoll {
			via = ViaLocal
		}
		p.finish(r, ending{reason: d.stop, via: via, cause: err, unfinished: unfinished}, now)
	}
}

func (p *Poller) keepReport(r *record, rep *Report) {
	r.report, r.kept = &r.kept, *rep
}

// noteWord reports a status word that the adapter does not know.
func (p *Poller) noteWord(r *record, rep *Report) {
	if rep.State != StateUnknown || rep.RawStatus == "" {
		return
	}
	if rep.RawStatus == r.word {
		return
	}
	r.word = rep.RawStatus
	r.route.meter.unknownWord(rep.RawStatus)
	key, word := r.job.Key(), rep.RawStatus
	p.after = append(p.after, func() {
		p.log.Warn("a status word that the adapter does not know", "job", key.String(), "word", scrub(word))
	})
	if f := p.hooks.UnknownWord; f != nil {
		e := WordEvent{Job: r.job, Word: rep.RawStatus}
		p.after = append(p.after, func() { p.hook("UnknownWord", e.Job.Key(), func() { f(e) }) })
	}
}

// maxLookups bounds the look-ups of one lost job.
const maxLookups = 4

// lookupFailed takes the error of a look-up: it says nothing of the job, so
// the memory does not take it in.
func (p *Poller) lookupFailed(r *record, c *lookCall, kind ErrorKind, hint Hint, err error, now Stamp) {
	if r.lookups >= maxLookups {
		p.finish(r, ending{reason: ReasonLost, via: ViaLookup, cause: err, unfinished: r.track.GoodAt}, now)
		return
	}
	wait := max(hint.wait(), grow(limitBase, r.lookups-1, limitCap))
	r.lookups++
	p.schedule(r, step{at: now.Add(wait), cause: CauseMissing}, now)
	if (kind == ErrorRateLimited || kind == ErrorConcurrency) && c.coolsFirst() {
		p.jobCooled(r, kind, now.Add(wait))
	}
}

// answerLookup takes a finding about a job that the provider did not know.
func (p *Poller) answerLookup(r *record, f *Finding, rep *Report, now Stamp, draw float64) {
	r.next = callCheck
	r.route.meter.lookEnded(ErrorNone, rep.Hint, 0, 0)
	end := ending{reason: ReasonLost, via: ViaLookup, unfinished: r.track.GoodAt}
	switch f.State {
	case FindingPresent:
		if ref := saneRef(f.Ref); ref != "" {
			r.job.Ref = ref
		}
		if rep.State == StateUnknown {
			rep.State, rep.RawStatus = r.track.State, r.track.RawStatus
		}
		if rep.needsFetch(r.route) {
			p.fetchNext(r, *rep, now, CauseConfirm, now)
			return
		}
		p.observe(r, rep, nil, ViaLookup, now, draw)
	case FindingAbsent:
		end.resubmit = AdviceSafe
		p.finish(r, end, now)
	default:
		p.finish(r, end, now)
	}
}
