package jobpoll

import (
	"context"
	"log/slog"
	"time"
)

// Defaults of Config and Route.
const (
	DefaultWorkers      = 1024
	DefaultCheckTimeout = 30 * time.Second
	DefaultCoalesce     = 4 * time.Millisecond
)

// Config is what a Poller is made from. The zero Config is valid: routes can
// be added later.
//
// In all of it, with its routes and their rules, zero is the default. A negative
// value is refused, but for LeaseTTL and Coalesce, which it switches off. What is
// on by default is switched off by the constants named with it: NoLimit, NoCount,
// NoPlan, NoJitter.
type Config struct {
	// Routes are the kinds of job that can be watched. More with AddRoute.
	Routes []Route
	// Budget is the account that the calls of all routes without a Budget of
	// their own are charged to. Nil: no limit, in metrics an account called
	// "(default)". Each such route gets a child node with its name, so that a rate
	// limit met on one route cools that route alone.
	Budget *Budget
	// Stop are the rules for all routes; zero fields mean the defaults.
	Stop StopRules
	// Callbacks tell of updates and ends, for all routes.
	Callbacks Callbacks
	// Hooks are for telemetry.
	Hooks Hooks
	// Store keeps jobs and outcomes. Nil: they live as long as the Poller.
	Store Store
	// Retention is how long the Store keeps a job after OnStop took its outcome,
	// so that it is neither watched nor told again. Zero: 30 days. Negative is
	// refused.
	Retention time.Duration
	// Owner is the name under which Run takes the lease of a Store that is a
	// Leaser. Empty: a random one, so that after a crash the next process waits
	// until the lease has lapsed. With a name that stays the same it goes on at
	// once; two processes with one name at the same time would both poll.
	Owner string
	// LeaseTTL is how long the lease lasts without being renewed, which happens
	// three times in it: how long jobs are without an owner after a crash. Zero:
	// 30 s. Negative: no lease is asked for, and it is for you to see to it that
	// one process runs on the Store.
	LeaseTTL time.Duration
	// Clock is the time that everything runs on. Nil: package time.
	Clock Clock
	// Rand gives random numbers in [0, 1) for jitter. Nil: math/rand/v2. It
	// may be called from several goroutines at once.
	Rand func() float64
	// Logger gets what a person running the service should know; never a
	// secret, never an output. Nil: silent.
	Logger *slog.Logger
	// Workers is the most calls under way at once, over all routes. Zero:
	// 1024. Negative is refused. Goroutines are started as calls need them and
	// ended when they are idle, so that a high number costs nothing; what
	// bounds calls to a provider is Limit.Concurrent of its budget. A call that
	// outlasts its CheckTimeout no longer counts, but a route that has eight
	// times as many calls which do not return is given no more.
	Workers int
	// Coalesce is within what time looks go out together: waking up costs more
	// than a look. With one that is due go those that will be within Coalesce, but
	// none more than a thousandth of its gap too early, none before a floor (the
	// schedule's MinDelay, a published pace, a wait that the provider asked for),
	// and no first or last look. A lone look is neither early nor late. Between two
	// rounds the Poller sleeps for a millisecond at least, or for Coalesce where
	// that is less. Zero: 4 ms, and nothing under the clock of polltest. Negative:
	// nothing. At 50,000 looks a second 4 ms take some 20 % less CPU than 1 ms.
	Coalesce time.Duration
	// ShutdownGrace is how long Run lets calls and callbacks under way finish
	// after its context has ended. Zero: they are cancelled at once, which
	// loses nothing. Negative is refused.
	ShutdownGrace time.Duration
}

// Route is a kind of job: an adapter and how to use it.
type Route struct {
	// Name is what Job.Route says. Required, unique within a Poller, UTF-8 of at
	// most 4096 bytes.
	Name string
	// Family pools durations: jobs of one family and profile take alike long.
	// Empty: Name.
	Family string
	// Checker asks the provider. Required.
	Checker Checker
	// Schedule says how often. Zero: the default table.
	Schedule Schedule
	// Guidance is, per Job.Profile, what the provider's documentation says;
	// the entry "" is for profiles that have none.
	Guidance map[string]Guidance
	// Budget is the node that the route's calls are charged to. Nil: a child
	// of Config.Budget. Routes that share a node share its cool-downs; two nodes
	// of one Name are refused.
	Budget *Budget
	// Stop replaces Config.Stop field by field.
	Stop StopRules
	// Webhook says how webhooks and looks go together. Zero: the webhooks are
	// learned, and where none ever comes nothing changes.
	Webhook WebhookPolicy
	// Reconciler looks up jobs that the provider says it does not know, and
	// submissions whose answer was lost. Nil: the Checker, if it is one.
	Reconciler Reconciler
	// Callbacks: a func set here replaces that of Config.
	Callbacks Callbacks
	// CheckTimeout bounds one call of Check, CheckBatch, Fetch, Lookup and Refresh,
	// and of Cancel where Poller.Cancel asks for it, without the wait for the budget.
	// Zero: 30 s. Negative is refused.
	CheckTimeout time.Duration
	// SubmitTimeout bounds one call of Submission.Send, after which its answer counts as
	// lost. Zero: 2 min. Negative is refused.
	SubmitTimeout time.Duration
}

// Callbacks tell the service of its jobs. Both are called without any lock
// held and may call back into the Poller; for one job never two at once and in
// order, for different jobs in parallel. A panic is contained and reported
// (Hooks.Panicked, Metrics). The context ends with Run.
type Callbacks struct {
	// OnUpdate tells of a change of a pending job. A slow one delays nobody
	// else; what changes meanwhile is merged into the newest. The end of the
	// same job waits for it, so it must return in the end.
	OnUpdate func(context.Context, Update)
	// OnStop tells how the watch ended. The outcome has been stored before.
	// It is called until it returns nil (error and panic alike, again after
	// 1 s, doubling to 5 min), then never again, also across restarts with a
	// Store. While it has not, the outcome counts as undelivered.
	// After a restart ReasonNotSent may be told of a ClientKey that has been
	// submitted again meanwhile: it speaks of the try before, and another end follows.
	OnStop func(context.Context, Outcome) error
}
