package jobpoll

import (
	"time"

	"github.com/jobpoll/jobpoll/internal/texts"
)

// line is a waiting job, packed: what nearly every job has. It has no pointers.
type line struct {
	planned           Stamp
	submitted         Stamp
	deadline          Stamp
	expected          time.Duration
	shift             time.Duration // wall clock minus timeline, for the job's own times
	firstPoll, polled Stamp
	first, last       Stamp // of the Track, as what follows
	advanced          Stamp
	queued, running   Stamp
	gap               time.Duration
	id                texts.Ref

	looks, unchanged int32
	polls            int32
	gen              uint32
	ticket           uint32 // of its place in Poller.due; 0: none
	profile, word    uint32 // interned
	more             int32  // its extra is in slot more-1
	hot              int32  // it is unpacked, in hot-1
	route            uint32
	phase            phase
	cause            Cause
	next             callKind
	state, furthest  State
	lookups          uint8
	flags            lineFlag
}

type lineFlag uint16

const (
	lineStale     lineFlag = 1 << iota // the stored record is behind
	lineHeld                           // kept back by refused credentials
	lineReport                         // there is a last report, and the rest says what is in it
	lineReportRef                      // and it has the job's Ref
	lineWordTold                       // the unknown word has been told
	lineFinish                         // Track.FinishTold
	lineNoOutput                       // Track.NoOutput
	lineNeverGood                      // Track.GoodAt is zero; else it is LastAt, or in the extra
	lineCanceled                       // the provider has taken a cancellation
)

// extra is what some jobs have besides.
type extra struct {
	submittedAt              Stamp // wall time, where it lies ahead of our clock
	notBefore, resumeAt      Stamp
	finishAt, wait, originAt Stamp // of the Track, as what follows
	missingAt, unknownAt     Stamp
	authAt, good             Stamp
	remaining                time.Duration
	progress, origin         float64
	progressTold             int32
	queuePosition            int32
	errors, limited          int32
	missing, unknown         int32

	startedAt      Stamp // of the last report, as what follows
	toldRemaining  time.Duration
	toldProgress   float64
	toldQueue      int32
	errorKind      ErrorKind
	rev            uint64
	client, ref    texts.Ref
	message        texts.Ref
	profile, rword texts.Ref // where there was no room to intern them
}

func (x *extra) texts() [5]*texts.Ref {
	return [...]*texts.Ref{&x.client, &x.ref, &x.message, &x.profile, &x.rword}
}

// pack writes a record into its line; false if it has something that a line
// has no place for. What is rare (an output before the end, rules of its own,
// a time beyond 2262) keeps its record.
func (j *jobTable) pack(l *line, r *record) bool {
	if !r.packable() {
		return false
	}
	interned := j.packLine(l, r)
	if l.more == 0 && interned && r.plain() {
		return true
	}
	j.packExtra(l, r)
	return true
}

// packLine writes what has a place in the line itself. It reports whether
// there was room to intern the profile and the word.
func (j *jobTable) packLine(l *line, r *record) bool {
	t := &r.track
	l.planned, l.submitted, l.deadline, l.expected = r.planned, r.submitted, r.deadline, r.job.Expected
	l.firstPoll, l.polled = r.firstAt, r.lastAt
	l.first, l.last, l.advanced, l.shift = t.FirstAt, t.LastAt, t.AdvancedAt, r.shift
	l.queued, l.running, l.gap = t.QueuedAt, t.RunningAt, t.Gap
	l.looks, l.unchanged, l.polls = t.Looks, t.Unchanged, int32(r.polls)
	l.phase, l.cause, l.next, l.state, l.furthest, l.lookups = r.phase, r.cause, r.next, t.State, t.Furthest, uint8(r.lookups)
	f := lineFlag(0)
	if r.stale {
		f |= lineStale
	}
	if r.held {
		f |= lineHeld
	}
	if r.canceled {
		f |= lineCanceled
	}
	if r.word != "" {
		f |= lineWordTold
	}
	if t.FinishTold {
		f |= lineFinish
	}
	if t.NoOutput {
		f |= lineNoOutput
	}
	if t.GoodAt == 0 {
		f |= lineNeverGood
	}
	if r.report != nil {
		f |= lineReport
		if r.report.Ref != "" {
			f |= lineReportRef
		}
	}
	l.flags = f
	profile, word := true, true
	if j.profiles.Text(l.profile) != r.job.Profile {
		l.profile, profile = j.profiles.ID(r.job.Profile)
	}
	if j.words.Text(l.word) != t.RawStatus {
		l.word, word = j.words.ID(t.RawStatus)
	}
	return profile && word
}

// plain reports whether a record has nothing that belongs into an extra.
func (r *record) plain() bool {
	t := &r.track
	if r.notBefore|r.resumeAt|t.FinishAt|t.NotBefore|t.OriginAt|t.MissingAt|t.UnknownAt|t.AuthAt != 0 ||
		t.ProgressTold|t.QueuePosition|t.Errors|t.Limited|t.Missing|t.Unknown != 0 || t.Remaining != 0 || t.Progress != 0 || t.Origin != 0 ||
		t.ErrorKind != ErrorNone || r.rev != 0 || len(t.Message)+len(r.job.ClientKey)+len(r.job.Ref) != 0 ||
		t.GoodAt != t.LastAt || r.early != 0 {
		return false
	}
	p := r.report
	return p == nil || p.Progress == 0 && p.QueuePosition == 0 && p.Remaining == 0 && p.StartedAt.IsZero()
}

// packExtra writes what a line has no place for into an extra, if there is any.
func (j *jobTable) packExtra(l *line, r *record) {
	t := &r.track
	x := extra{
		notBefore: r.notBefore, resumeAt: r.resumeAt,
		finishAt: t.FinishAt, wait: t.NotBefore, originAt: t.OriginAt, missingAt: t.MissingAt, unknownAt: t.UnknownAt, authAt: t.AuthAt,
		remaining: t.Remaining, progress: t.Progress, origin: t.Origin, progressTold: t.ProgressTold, queuePosition: t.QueuePosition,
		errors: t.Errors, limited: t.Limited, missing: t.Missing, unknown: t.Unknown, errorKind: t.ErrorKind, rev: r.rev,
	}
	x.submittedAt = r.early
	if t.GoodAt != t.LastAt {
		x.good = t.GoodAt
	}
	if p := r.report; p != nil {
		x.startedAt, x.toldRemaining = StampOf(p.StartedAt), p.Remaining
		x.toldProgress, x.toldQueue = p.Progress, int32(p.QueuePosition)
	}
	var profile, word string // those that could not be interned
	if j.profiles.Text(l.profile) != r.job.Profile {
		profile = r.job.Profile
	}
	if j.words.Text(l.word) != t.RawStatus {
		word = t.RawStatus
	}
	if x == (extra{}) && len(r.job.ClientKey)+len(r.job.Ref)+len(t.Message)+len(profile)+len(word) == 0 {
		if l.more != 0 {
			j.dropExtra(l)
		}
		return
	}
	if l.more == 0 {
		n, _ := j.extras.Add()
		l.more = n + 1
	}
	at := j.extra(l)
	x.client, x.ref, x.message, x.profile, x.rword = at.client, at.ref, at.message, at.profile, at.rword
	*at = x
	j.keep(r.slot, &at.ref, r.job.Ref)
	j.keep(r.slot, &at.message, t.Message)
	j.keep(r.slot, &at.profile, profile)
	j.keep(r.slot, &at.rword, word)
}

// packable reports whether a line has a place for all that a record has.
func (r *record) packable() bool {
	t := &r.track
	switch {
	case r.phase != phaseWaiting && r.phase != phaseReady,
		r.poked != CauseNone, r.call != nil, r.stuck != nil, r.success != nil, r.update != nil, r.served,
		len(r.followers) > 0, len(r.waiters) > 0, r.again != nil, r.stage != stageNone, r.attempts != 0, r.storeErr != 0,
		r.lateTold, r.told, r.lookups > 255,
		t.End != ReasonNone, t.Failure != 0, t.Version != version(t.Looks),
		r.word != "" && r.word != t.RawStatus,
		!r.plainRules(),
		!r.exact:
		return false
	case r.report != nil:
		p := r.report
		return p.State == t.State && p.RawStatus == t.RawStatus && (p.Ref == "" || p.Ref == r.job.Ref) &&
			p.QueuePosition == int(int32(p.QueuePosition)) && (p.StartedAt == time.Time{} || p.StartedAt == StampOf(p.StartedAt).Time()) &&
			p.Hint == (Hint{}) && p.CompletedAt.IsZero() && p.ResultExpiresAt.IsZero() && p.Failure == nil && p.Output == nil && !p.OutputDropped
	}
	return true
}

// plainRules reports whether the rules are those of the route.
func (r *record) plainRules() bool {
	rules := r.route.rules(r.job.Expected, r.job.Profile)
	return rules == r.rules || *rules == *r.rules
}

// version is that of a Track with so many looks.
func version(looks int32) uint8 {
	if looks == 0 {
		return 0
	}
	return trackVersion
}

// sameInstant reports whether a wall time of the job can be made from s.
func (r *record) sameInstant(t time.Time, s Stamp) bool { return t == toWall(s, r.shift) }

// unpack makes the record of a line. r is an empty one, or one that has been
// packed: it sets all that a packed record can have.
func (j *jobTable) unpack(slot int32, l *line, r *record) {
	rt := j.routes[l.route]
	r.slot, r.gen, r.phase, r.cause, r.next, r.lookups = slot, l.gen, l.phase, l.cause, l.next, int32(l.lookups)
	r.route, r.shift, r.exact = rt, l.shift, true
	r.planned, r.submitted, r.deadline = l.planned, l.submitted, l.deadline
	r.firstAt, r.lastAt, r.polls = l.firstPoll, l.polled, int(l.polls)
	r.stale, r.held, r.canceled = l.flags&lineStale != 0, l.flags&lineHeld != 0, l.flags&lineCanceled != 0
	r.job = Job{} // set field by field: a literal is made elsewhere and copied
	r.job.Route, r.job.ID, r.job.Profile, r.job.Expected = rt.Name, j.texts.Get(l.id), j.profiles.Text(l.profile), l.expected
	r.job.SubmittedAt, r.job.Deadline = toWall(l.submitted, l.shift), toWall(l.deadline, l.shift)
	t := &r.track
	*t = Track{}
	t.Version, t.State, t.Furthest, t.RawStatus = version(l.looks), l.state, l.furthest, j.words.Text(l.word)
	t.Looks, t.Unchanged, t.Gap, t.FirstAt, t.LastAt = l.looks, l.unchanged, l.gap, l.first, l.last
	t.AdvancedAt, t.QueuedAt, t.RunningAt = l.advanced, l.queued, l.running
	t.FinishTold, t.NoOutput = l.flags&lineFinish != 0, l.flags&lineNoOutput != 0
	if l.flags&lineNeverGood == 0 {
		t.GoodAt = l.last
	}
	x := j.extra(l)
	if x != nil {
		j.unpackExtra(x, r)
	} else {
		r.notBefore, r.resumeAt, r.rev, r.early = 0, 0, 0, 0
	}
	r.rules = rt.rules(r.job.Expected, r.job.Profile)
	if r.word = ""; l.flags&lineWordTold != 0 {
		r.word = t.RawStatus
	}
	if r.report = nil; l.flags&lineReport == 0 {
		return
	}
	r.report = &r.kept
	r.kept = Report{}
	r.kept.State, r.kept.RawStatus = t.State, t.RawStatus
	if l.flags&lineReportRef != 0 {
		r.kept.Ref = r.job.Ref
	}
	if x != nil {
		r.kept.StartedAt, r.kept.Remaining = x.startedAt.Time(), x.toldRemaining
		r.kept.Progress, r.kept.QueuePosition = x.toldProgress, int(x.toldQueue)
	}
}

func (j *jobTable) unpackExtra(x *extra, r *record) {
	r.notBefore, r.resumeAt, r.rev, r.early = x.notBefore, x.resumeAt, x.rev, x.submittedAt
	if x.submittedAt != 0 {
		r.job.SubmittedAt = x.submittedAt.Time()
	}
	r.job.NotBefore = toWall(x.notBefore, r.shift)
	r.job.ClientKey, r.job.Ref = j.texts.Get(x.client), j.texts.Get(x.ref)
	t := &r.track
	if x.profile != 0 {
		r.job.Profile = j.texts.Get(x.profile)
	}
	if x.rword != 0 {
		t.RawStatus = j.texts.Get(x.rword)
	}
	t.FinishAt, t.NotBefore, t.OriginAt = x.finishAt, x.wait, x.originAt
	t.MissingAt, t.UnknownAt, t.AuthAt = x.missingAt, x.unknownAt, x.authAt
	if x.good != 0 {
		t.GoodAt = x.good
	}
	t.Remaining, t.Progress, t.Origin, t.ProgressTold, t.QueuePosition = x.remaining, x.progress, x.origin, x.progressTold, x.queuePosition
	t.Errors, t.Limited, t.Missing, t.Unknown = x.errors, x.limited, x.missing, x.unknown
	t.ErrorKind, t.Message = x.errorKind, j.texts.Get(x.message)
}
