package jobpoll

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// meter counts for a whole Poller. Safe from any goroutine; every count is
// O(1) and allocates nothing once its label is known. Its locks are its own
// and short.
type meter struct {
	updates, coalesced  atomic.Uint64 // OnUpdate calls; updates that a newer one replaced
	stops, stopFailures atomic.Uint64 // OnStop calls; those to be repeated
	panics              atomic.Uint64
	storeErrors         atomic.Uint64
	pacing, life        storeWrites
	clockJumps          atomic.Uint64

	mu     sync.Mutex
	routes map[string]*routeMeter
	words  words // over all routes, bounded like each of them
}

// maxStreak bounds what is told apart of failed looks in a row.
const maxStreak = 64

// routeMeter counts for one route.
type routeMeter struct {
	poller *meter

	mu        sync.Mutex
	watches   uint64
	restores  uint64
	inFlight  int
	looks     uint64
	calls     uint64
	malformed uint64
	limited   uint64 // calls that are no looks
	errors    [ErrorUnknown + 1]uint64
	stops     [ReasonUnknown + 1]uint64
	polls     tally
	exact     tally
	bound     tally
	lateness  tally
	words     words
	births    cohorts
	streaks   [maxStreak + 1]int // jobs by failed looks in a row; [0] is not used
	webhook   WebhookMetrics
	submits   SubmissionMetrics // its gauges are not used
}

// storeWrites counts calls of Put that went well.
type storeWrites struct{ puts, records atomic.Uint64 }

// written counts one.
func (m *meter) written(what string, records int) {
	w := &m.life
	if what == putPacing {
		w = &m.pacing
	}
	w.puts.Add(1)
	w.records.Add(uint64(records))
}

// levels are the numbers that the engine knows better at the snapshot.
type levels struct {
	parked  int
	routes  map[string]routeLevels
	budgets map[string]BudgetMetrics
}

// routeLevels are those of one route.
type routeLevels struct {
	backlog BacklogMetrics
	hung    int
	submits submitLevels
	recent  float64 // coverage
	price   float64
}

func newMeter() *meter { return &meter{routes: make(map[string]*routeMeter)} }

// route returns the meter of a route, making it when it is new. Only
// configured routes may come here: each is a label for ever.
func (m *meter) route(name string) *routeMeter {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.routes[name]
	if r == nil {
		r = newRouteMeter(m)
		m.routes[name] = r
	}
	return r
}

func newRouteMeter(m *meter) *routeMeter {
	return &routeMeter{
		poller: m, polls: newTally(pollBounds), exact: newTally(delayBounds), bound: newTally(delayBounds),
		lateness: newTally(lateBounds), births: newCohorts(),
	}
}

// watched counts a job that begins to be watched. streak is that of a
// restored job, zero for a new one.
func (r *routeMeter) watched(born time.Time, restored bool, streak int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if restored {
		r.restores++
	} else {
		r.watches++
	}
	r.births.add(born)
	r.moveStreak(0, streak)
}

// lookStarted counts a look that starts late after its planned instant, and its
// call. It is followed by exactly one lookEnded or lookDropped.
func (r *routeMeter) lookStarted(late time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	r.look(late)
}

// lookJoined is lookStarted for a look without a call of its own.
func (r *routeMeter) lookJoined(late time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look(late)
}

func (r *routeMeter) look(late time.Duration) {
	r.looks++
	r.inFlight++
	r.lateness.observeDuration(late)
}

// streak moves a job from one number of failed looks in a row to another.
func (r *routeMeter) streak(from, to int) {
	r.mu.Lock()
	r.moveStreak(from, to)
	r.mu.Unlock()
}

// lookEnded counts the answer: kind is ErrorNone for a good one, and the
// streaks are the job's failed looks in a row before and after it; both zero
// where streak tells them.
func (r *routeMeter) lookEnded(kind ErrorKind, hint Hint, oldStreak, newStreak int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inFlight--
	if kind != ErrorNone {
		r.errors[min(kind, ErrorUnknown)]++
	}
	if hint.Malformed {
		r.malformed++
	}
	r.moveStreak(oldStreak, newStreak)
}

// refused counts a rate limit that a call met which is no look.
func (r *routeMeter) refused(err error) {
	if err == nil {
		return
	}
	if kind, _, _ := classify(err); kind != ErrorRateLimited && kind != ErrorConcurrency {
		return
	}
	r.mu.Lock()
	r.limited++
	r.mu.Unlock()
}

// lookDropped counts a look whose answer nobody read: a shutdown, a cancelled
// call.
func (r *routeMeter) lookDropped() {
	r.mu.Lock()
	r.inFlight--
	r.mu.Unlock()
}

// unknownWord counts a status word, once for each time a job comes to it.
func (r *routeMeter) unknownWord(word string) {
	r.mu.Lock()
	r.words.add(word)
	r.mu.Unlock()
	r.poller.mu.Lock()
	r.poller.words.add(word)
	r.poller.mu.Unlock()
}

// stopped counts the end of a watch. born is what watched was given, streak
// the last that was told.
func (r *routeMeter) stopped(o *Outcome, born time.Time, streak int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leave(born, streak)
	r.stops[min(o.Reason, ReasonUnknown)]++
	if !toldByProvider(o.Reason) {
		return
	}
	r.polls.observe(float64(max(o.Polls, 0)))
	if o.DelayExact {
		r.exact.observeDuration(o.DetectionDelay)
	} else {
		r.bound.observeDuration(o.DetectionDelay)
	}
	if o.Via == ViaWebhook {
		r.webhook.Ends++
	}
}

// released takes a job off that goes on elsewhere: no stop is counted.
func (r *routeMeter) released(born time.Time, streak int) {
	r.mu.Lock()
	r.leave(born, streak)
	r.mu.Unlock()
}

// reconciled counts a look for which the webhook was late, after lookStarted.
func (r *routeMeter) reconciled() {
	r.mu.Lock()
	r.webhook.Looks++
	r.mu.Unlock()
}

// forwarded counts a job that was brought forward as webhooks stayed away.
func (r *routeMeter) forwarded() {
	r.mu.Lock()
	r.webhook.Forwarded++
	r.mu.Unlock()
}

// notice counts what became of a notice. parked tells that it was counted as
// early before and comes from there.
func (r *routeMeter) notice(kind NoticeKind, parked bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &r.webhook
	if !parked {
		w.Notices++
	}
	switch kind {
	case NoticeApplied:
		w.Applied++
	case NoticeHint:
		w.Hints++
	case NoticeDuplicate:
		w.Duplicates++
	case NoticeStale:
		w.Stale++
	case NoticeConflict:
		w.Conflicts++
	case NoticeEarly:
		w.Early++
	case NoticeDropped:
		w.EarlyDropped++
	case NoticeLate:
		w.Late++
	}
}

func (r *routeMeter) leave(born time.Time, streak int) {
	r.births.remove(born)
	r.moveStreak(streak, 0)
}

func (r *routeMeter) moveStreak(from, to int) {
	if from > 0 {
		r.streaks[min(from, maxStreak)]--
	}
	if to > 0 {
		r.streaks[min(to, maxStreak)]++
	}
}

// toldByProvider reports whether the provider told the end of the job.
func toldByProvider(r Reason) bool {
	switch r {
	case ReasonSucceeded, ReasonFailed, ReasonCanceled, ReasonExpired:
		return true
	}
	return false
}

// snapshot reads everything, in time O(routes + distinct births).
func (m *meter) snapshot(now time.Time, in levels) Metrics {
	s := Metrics{
		At: now, Routes: make(map[string]RouteMetrics), Budgets: make(map[string]BudgetMetrics),
		Callbacks: CallbackMetrics{
			Updates: m.updates.Load(), Coalesced: m.coalesced.Load(), Stops: m.stops.Load(),
			StopFailures: m.stopFailures.Load(),
		},
		Store: StoreMetrics{
			Pacing: m.pacing.puts.Load(), PacingRecords: m.pacing.records.Load(), Life: m.life.puts.Load(), LifeRecords: m.life.records.Load(),
		},
		Panics: m.panics.Load(), StoreErrors: m.storeErrors.Load(), ClockJumps: m.clockJumps.Load(), ParkedNotices: in.parked,
	}
	maps.Copy(s.Budgets, in.budgets)
	// An empty route gives the total its labels, so that they are there from the start.
	s.Total, _ = newRouteMeter(m).snapshot(now, nil)

	m.mu.Lock()
	routes := maps.Clone(m.routes)
	s.Total.UnknownWords = m.words.snapshot()
	m.mu.Unlock()

	var births []cohort
	for _, name := range slices.Sorted(maps.Keys(routes)) { // in order, so that sums of fractions repeat
		r := routes[name]
		var one RouteMetrics
		from := len(births)
		one, births = r.snapshot(now, births)
		one.Age = ages(births[from:], now)
		level := in.routes[name]
		one.Backlog, one.Hung, one.Webhook.Recent, one.Price = level.backlog, level.hung, level.recent, level.price
		one.Submissions.level(level.submits)
		s.Total.add(one)
		s.Routes[name] = one
	}
	s.Total.Age = ages(births, now)
	return s
}

// snapshot appends the births of the unresolved jobs to dst; reading the ages
// from them needs no lock.
func (r *routeMeter) snapshot(now time.Time, dst []cohort) (RouteMetrics, []cohort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := RouteMetrics{
		Watched: r.watches, Restored: r.restores, Unresolved: r.births.jobs, InFlight: r.inFlight, Looks: r.looks, Calls: r.calls,
		LookErrors: make(map[ErrorKind]uint64, len(r.errors)), Stops: make(map[Reason]uint64, len(r.stops)),
		PollsPerCompletion: r.polls.snapshot(), DelayExact: r.exact.snapshot(), DelayBound: r.bound.snapshot(),
		Lateness:    r.lateness.snapshot(),
		RateLimited: r.errors[ErrorRateLimited] + r.errors[ErrorConcurrency] + r.limited, MalformedHints: r.malformed,
		UnknownWords: r.words.snapshot(), Webhook: r.webhook, Submissions: r.submits,
	}
	for k := ErrorTransient; k <= ErrorUnknown; k++ {
		s.LookErrors[k] = r.errors[k]
	}
	for _, reason := range Reasons() {
		s.Stops[reason] = r.stops[reason]
	}
	for _, reason := range []Reason{ReasonNone, ReasonUnknown} { // a fault, or a newer version's
		if n := r.stops[reason]; n > 0 {
			s.Stops[reason] = n
		}
	}
	s.Webhook.cover(s.PollsPerCompletion.Count)
	for n := 1; n <= maxStreak; n++ {
		if r.streaks[n] > 0 {
			s.Failing += r.streaks[n]
			s.LongestStreak = n
		}
	}
	r.births.compact(now)
	return s, r.births.list(dst)
}
