package jobpoll

import (
	"time"
)

// Metrics is a snapshot of the numbers of a Poller.
//
// Every uint64 only grows, from zero at New: counters are not stored, a
// restart begins anew. Every int is a gauge, the number at that instant.
// Labels are few: routes and budgets by their configured names, closed
// vocabularies, and a bounded number of status words; never an id of a job.
// The numbers of one route fit each other; those of different routes may be
// a moment apart.
//
// A snapshot belongs to its reader and encodes with encoding/json (durations
// in nanoseconds), so it can be published as it is:
//
//	expvar.Publish("jobpoll", expvar.Func(func() any { return p.Metrics() }))
type Metrics struct {
	// At is the instant of the snapshot.
	At time.Time `json:"at"`
	// Total is the sum over all routes. Its ages and quantiles are those of
	// all jobs together, its longest streak and backlog lag the largest.
	Total RouteMetrics `json:"total"`
	// Routes has an entry for each route, from the moment it was added.
	Routes map[string]RouteMetrics `json:"routes"`
	// Budgets has an entry for each budget node in use, by its name.
	Budgets map[string]BudgetMetrics `json:"budgets"`
	// Callbacks tells of the calls of OnUpdate and OnStop.
	Callbacks CallbackMetrics `json:"callbacks"`
	// Panics grows with each contained panic of user code.
	Panics uint64 `json:"panics"`
	// StoreErrors grows with each error that the Store returned; ErrNotFound
	// is none.
	StoreErrors uint64 `json:"store_errors"`
	// Store tells of the writes to the Store.
	Store StoreMetrics `json:"store"`
	// ClockJumps grows when wall time and elapsed time have come apart.
	ClockJumps uint64 `json:"clock_jumps"`
	// ParkedNotices is how many notices wait for a job that is not watched
	// yet. It returns to zero as they are applied or dropped.
	ParkedNotices int `json:"parked_notices"`
}

// StoreMetrics are the numbers of the writes that the Store took: how often it
// was called, and with how many records.
type StoreMetrics struct {
	// Pacing: where the watched jobs are, written behind, so that many go in one
	// call.
	Pacing        uint64 `json:"pacing"`
	PacingRecords uint64 `json:"pacing_records"`
	// Life: what must not be lost, written before anything follows from it: a job
	// taken over, its outcome, that it was told, a notice, a submission.
	Life        uint64 `json:"life"`
	LifeRecords uint64 `json:"life_records"`
}

// CallbackMetrics are the numbers of the callbacks.
type CallbackMetrics struct {
	// Updates grows with each call of OnUpdate.
	Updates uint64 `json:"updates"`
	// Coalesced grows with each update that was replaced by a newer one of the
	// same job before OnUpdate could be called with it.
	Coalesced uint64 `json:"coalesced"`
	// Stops grows with each call of OnStop, StopFailures with each that
	// returned an error or panicked and is called again.
	Stops        uint64 `json:"stops"`
	StopFailures uint64 `json:"stop_failures"`
	// Undelivered is how many outcomes OnStop has not yet taken. It returns to
	// zero when each was taken. A job that ends while the metrics are read may be
	// in here and in Unresolved, but never in neither.
	Undelivered int `json:"undelivered"`
}

// RouteMetrics are the numbers of one route, or of all.
type RouteMetrics struct {
	// Watched grows with each job that Watch or Wait has added,
	// Restored with each that came from the Store. A job counts in one of the
	// two, and once.
	Watched  uint64 `json:"watched"`
	Restored uint64 `json:"restored"`
	// Unresolved is how many jobs are being watched. Every end of a watch,
	// whatever its reason, takes one off.
	Unresolved int `json:"unresolved"`
	// InFlight is how many looks are under way. Every end of a look, also of
	// one that nobody waits for any more, takes one off.
	InFlight int `json:"in_flight"`
	// Hung is how many calls were given up, because they timed out or their
	// watch ended, and have not returned: each holds a goroutine. It returns to
	// zero once they have. One that stays means a Checker that does not honour
	// its context.
	Hung int `json:"hung"`
	// Looks grows with each look at a job that starts, fetches and look-ups
	// included.
	Looks uint64 `json:"looks"`
	// Calls grows with each call that is made for them: fewer than Looks with a
	// BatchChecker, where one call is a look at many jobs.
	Calls uint64 `json:"calls"`
	// LookErrors grows with each failed look. Every kind is present.
	LookErrors map[ErrorKind]uint64 `json:"look_errors"`
	// Stops grows with the end of each watch, and of each submission that OnStop is
	// told of. Every one of Reasons is present.
	Stops map[Reason]uint64 `json:"stops"`
	// PollsPerCompletion is the number of looks of each job whose end the
	// provider told (succeeded, failed, canceled, expired), however it did. Its
	// Count is the number of those jobs.
	PollsPerCompletion Histogram `json:"polls_per_completion"`
	// DelayExact and DelayBound are how long after its end a job's end was
	// detected, in seconds, for the same jobs: exact where the provider told
	// the instant, else an upper bound. They are not comparable.
	DelayExact Histogram `json:"delay_exact"`
	DelayBound Histogram `json:"delay_bound"`
	// Lateness is how long after its planned instant each look started, in
	// seconds.
	Lateness Histogram `json:"lateness"`
	// RateLimited grows with each look, submission and cancellation that the
	// provider refused for too many calls or too many jobs at once.
	RateLimited uint64 `json:"rate_limited"`
	// MalformedHints grows with each answer whose hint could not be read.
	MalformedHints uint64 `json:"malformed_hints"`
	// UnknownWords grows once for each job and status word that the adapter
	// does not know. The first 32 words are counted by name, cut to 64 bytes
	// and with what looks like an id masked; the rest are "other", no word at
	// all is "(none)".
	UnknownWords map[string]uint64 `json:"unknown_words"`
	// Age is how old the unresolved jobs are.
	Age AgeMetrics `json:"age"`
	// Webhook tells of notices.
	Webhook WebhookMetrics `json:"webhook"`
	// Backlog tells of the looks that are due and wait.
	Backlog BacklogMetrics `json:"backlog"`
	// Price is how many times dearer than usual a look counts because the budget
	// has been short; all gaps grow by its square root. Zero: as usual.
	Price float64 `json:"price"`
	// Submissions tells of the calls of Poller.Submit.
	Submissions SubmissionMetrics `json:"submissions"`
	// Failing is how many unresolved jobs failed at their last look, and
	// LongestStreak the most failed looks in a row among them, at most 64.
	// Both return to zero with good answers and with the end of the watch.
	Failing       int `json:"failing"`
	LongestStreak int `json:"longest_streak"`
}

// AgeMetrics are the ages of unresolved jobs since their submission; zero
// where there are none. They may be too high by a second, by a minute for
// ages above an hour, by an hour for those above a day.
type AgeMetrics struct {
	Oldest time.Duration `json:"oldest"`
	P50    time.Duration `json:"p50"`
	P95    time.Duration `json:"p95"`
}

// WebhookMetrics are the numbers of notices.
type WebhookMetrics struct {
	// Notices grows with each notice that came in. The others but EarlyDropped
	// tell what became of it; one that was early counts again once its job is
	// there.
	Notices uint64 `json:"notices"`
	// Applied: moved a job forward or ended it. Hints: not trusted or thin, so
	// the job was looked at. Duplicates: seen before. Stale: older than what
	// was known. Conflicts: contradicts a known end, not applied. Late: for a
	// job whose watch had ended.
	Applied    uint64 `json:"applied"`
	Hints      uint64 `json:"hints"`
	Duplicates uint64 `json:"duplicates"`
	Stale      uint64 `json:"stale"`
	Conflicts  uint64 `json:"conflicts"`
	Late       uint64 `json:"late"`
	// Early: no such job yet, parked. EarlyDropped: could not be parked, or
	// was given up, because they were too many or too old.
	Early        uint64 `json:"early"`
	EarlyDropped uint64 `json:"early_dropped"`
	// Ends grows with each end of a job that a notice told first.
	Ends uint64 `json:"ends"`
	// Coverage is Ends as a part (0..1) of all ends that the provider told;
	// zero where there are none.
	Coverage float64 `json:"coverage"`
	// Recent is the coverage that looks are planned by now (0..1): over the
	// latest ends (WebhookPolicy.Window), with those that a look found which a
	// notice asked for or overtook. It is of one route, and zero in the total.
	Recent float64 `json:"recent"`
	// Looks grows with each look because the webhook should have come,
	// Forwarded with each job that was brought forward as webhooks stayed away.
	Looks     uint64 `json:"looks"`
	Forwarded uint64 `json:"forwarded"`
}

// BacklogMetrics are the looks that are due but wait, for a worker or for the
// budget. Both return to zero when nothing waits.
type BacklogMetrics struct {
	Jobs int `json:"jobs"`
	// Lag is how long the first of them has been due.
	Lag time.Duration `json:"lag"`
}

// add sums up all but the ages and words, which cannot be added.
func (m *RouteMetrics) add(o RouteMetrics) {
	m.Watched += o.Watched
	m.Restored += o.Restored
	m.Unresolved += o.Unresolved
	m.InFlight += o.InFlight
	m.Hung += o.Hung
	m.Looks += o.Looks
	m.Calls += o.Calls
	addCounts(m.LookErrors, o.LookErrors)
	addCounts(m.Stops, o.Stops)
	m.PollsPerCompletion.add(o.PollsPerCompletion)
	m.DelayExact.add(o.DelayExact)
	m.DelayBound.add(o.DelayBound)
	m.Lateness.add(o.Lateness)
	m.RateLimited += o.RateLimited
	m.MalformedHints += o.MalformedHints
	m.Webhook.add(o.Webhook)
	m.Webhook.cover(m.PollsPerCompletion.Count)
	m.Backlog.Jobs += o.Backlog.Jobs
	m.Backlog.Lag = max(m.Backlog.Lag, o.Backlog.Lag)
	m.Price = max(m.Price, o.Price)
	m.Submissions.add(o.Submissions)
	m.Failing += o.Failing
	m.LongestStreak = max(m.LongestStreak, o.LongestStreak)
}

func addCounts[K comparable](to, from map[K]uint64) {
	for k, n := range from {
		to[k] += n
	}
}

func (w *WebhookMetrics) add(o WebhookMetrics) {
	w.Notices += o.Notices
	w.Applied += o.Applied
	w.Hints += o.Hints
	w.Duplicates += o.Duplicates
	w.Stale += o.Stale
	w.Conflicts += o.Conflicts
	w.Late += o.Late
	w.Early += o.Early
	w.EarlyDropped += o.EarlyDropped
	w.Ends += o.Ends
	w.Looks += o.Looks
	w.Forwarded += o.Forwarded
}

// cover sets the coverage, given how many ends the provider told.
func (w *WebhookMetrics) cover(ends uint64) {
	w.Coverage = 0
	if ends > 0 {
		w.Coverage = float64(w.Ends) / float64(ends)
	}
}
