package jobpoll

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"time"
	"unicode/utf8"
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

// configError names the field at fault.
func configError(field, format string, args ...any) error {
	return fmt.Errorf("jobpoll: %s: %w", field, fmt.Errorf(format, args...))
}

// faults lists all that is wrong with a configuration.
func (cfg *Config) faults() []error {
	var all []error
	if cfg.Workers < 0 {
		all = append(all, configError("Config.Workers", "%d is negative; zero means %d", cfg.Workers, DefaultWorkers))
	}
	if cfg.ShutdownGrace < 0 {
		all = append(all, configError("Config.ShutdownGrace", "%v is negative; zero cancels at once", cfg.ShutdownGrace))
	}
	if cfg.Retention < 0 {
		all = append(all, configError("Config.Retention", "%v is negative; zero means %v", cfg.Retention, DefaultRetention))
	}
	all = append(all, cfg.Stop.faults("Config.Stop")...)
	accounts := map[*Budget]bool{nil: true} // each is told once, not by every node
	account := func(b *Budget) {
		if root := b.root(); !accounts[root] {
			accounts[root] = true
			all = append(all, root.faults()...)
		}
	}
	account(cfg.Budget)
	seen := map[string]bool{}
	for i := range cfg.Routes {
		r := &cfg.Routes[i]
		all = append(all, r.faults(fmt.Sprintf("Config.Routes[%d]", i))...)
		account(r.Budget)
		if r.Name != "" && seen[r.Name] {
			all = append(all, configError(fmt.Sprintf("Config.Routes[%d].Name", i), "%q is already the name of another route", r.Name))
		}
		seen[r.Name] = true
	}
	return all
}

func (r *Route) faults(at string) []error {
	var all []error
	if r.Name == "" {
		all = append(all, configError(at+".Name", "is empty; Job.Route refers to it"))
	} else if !usableID(r.Name) {
		all = append(all, configError(at+".Name", "is not valid UTF-8 of at most %d bytes (%q); Job.Route refers to it", maxID, clip(r.Name, 64)))
	} else {
		at = fmt.Sprintf("%s (%q)", at, r.Name)
	}
	if f, isFunc := r.Checker.(CheckerFunc); r.Checker == nil || isFunc && f == nil {
		all = append(all, configError(at+".Checker", "is nil; it is what asks the provider"))
	}
	if r.CheckTimeout < 0 {
		all = append(all, configError(at+".CheckTimeout", "%v is negative; zero means %v", r.CheckTimeout, DefaultCheckTimeout))
	}
	if r.SubmitTimeout < 0 {
		all = append(all, configError(at+".SubmitTimeout", "%v is negative; zero means %v", r.SubmitTimeout, DefaultSubmitTimeout))
	}
	all = append(all, r.Stop.faults(at+".Stop")...)
	all = append(all, r.Schedule.faults(at+".Schedule")...)
	all = append(all, r.Webhook.faults(at+".Webhook")...)
	profiles := make([]string, 0, len(r.Guidance))
	for p := range r.Guidance {
		profiles = append(profiles, p)
	}
	sort.Strings(profiles)
	for _, p := range profiles {
		all = append(all, r.Guidance[p].faults(fmt.Sprintf("%s.Guidance[%q]", at, p))...)
	}
	return all
}

// durationField is a field that must not be negative.
type durationField struct {
	name string
	d    time.Duration
}

func negative(at, zero string, fields ...durationField) []error {
	var all []error
	for _, f := range fields {
		if f.d < 0 {
			all = append(all, configError(at+"."+f.name, "%v is negative; zero %s", f.d, zero))
		}
	}
	return all
}

func (s StopRules) faults(at string) []error {
	all := negative(at, "means the default, NoLimit none", durationField{"MaxAge", s.MaxAge}, durationField{"MaxQueued", s.MaxQueued},
		durationField{"MaxProcessing", s.MaxProcessing}, durationField{"NoProgress", s.NoProgress}, durationField{"MissingGrace", s.MissingGrace},
		durationField{"UnknownFor", s.UnknownFor}, durationField{"AuthGrace", s.AuthGrace})
	for _, f := range []struct {
		name string
		n    int
	}{{"MaxErrors", s.MaxErrors}, {"MissingLooks", s.MissingLooks}, {"UnknownLooks", s.UnknownLooks}} {
		if f.n < 0 {
			all = append(all, configError(at+"."+f.name, "%d is negative; zero means the default, NoCount none", f.n))
		}
	}
	return all
}

// Validate returns all faults of the Schedule, joined; nil if there is none.
// New does the same. It is for those who use Next without a Poller.
func (s Schedule) Validate() error { return errors.Join(s.faults("Schedule")...) }

func (s *Schedule) faults(at string) []error {
	all := negative(at, "means the default", durationField{"Queued", s.Queued}, durationField{"NearEnd", s.NearEnd},
		durationField{"MinDelay", s.MinDelay}, durationField{"MaxDelay", s.MaxDelay})
	bad := func(field, format string, args ...any) {
		all = append(all, configError(at+"."+field, format, args...))
	}
	if s.PollCost < 0 && s.PollCost != NoPlan {
		bad("PollCost", "%v is negative; zero means %v, NoPlan no learned plan", s.PollCost, DefaultPollCost)
	}
	for i, b := range s.Buckets {
		name := fmt.Sprintf("Buckets[%d]", i)
		all = append(all, b.faults(at+"."+name)...)
		switch last := i == len(s.Buckets)-1; {
		case b.UpTo < 0:
			bad(name+".UpTo", "%v is negative", b.UpTo)
		case !last && b.UpTo == 0:
			bad(name+".UpTo", "is zero, which only the last bucket may be")
		case i > 0 && b.UpTo != 0 && b.UpTo <= s.Buckets[i-1].UpTo:
			bad(name+".UpTo", "%v is not above the one before, %v", b.UpTo, s.Buckets[i-1].UpTo)
		}
	}
	if s.Unknown != (Bucket{}) {
		all = append(all, s.Unknown.faults(at+".Unknown")...)
	}
	for i, d := range s.Delays {
		name := fmt.Sprintf("Delays[%d]", i)
		switch {
		case d == ladderStops && len(s.Delays) == 1:
			bad("Delays", "the BackOff stops at once and gives no delay")
		case d == ladderRandom && len(s.Delays) == 1:
			bad("Delays", "the BackOff is random (two runs differ); jitter is the Schedule's, set its RandomizationFactor to 0")
		case d == 0:
			bad(name, "is zero, which would look in a loop")
		case d < 0:
			bad(name, "%v is negative", d)
		case s.MaxDelay > 0 && i == 0 && d > s.MaxDelay:
			bad("MaxDelay", "the cap %v is under the base %v (Delays[0])", s.MaxDelay, d)
		}
	}
	if s.MaxDelay > 0 && s.MaxDelay < s.minDelay() {
		bad("MaxDelay", "the cap %v is under the least gap %v (MinDelay)", s.MaxDelay, s.minDelay())
	}
	if j := s.Jitter; j != NoJitter && !(j >= 0 && j <= 1) { // also NaN
		bad("Jitter", "%v is outside 0 to 1; zero means %v, NoJitter none", j, DefaultJitter)
	}
	return all
}

func (b Bucket) faults(at string) []error {
	var all []error
	for _, f := range []struct {
		name string
		s    Span
	}{{"First", b.First}, {"Later", b.Later}} {
		switch {
		case f.s.Min <= 0:
			all = append(all, configError(at+"."+f.name+".Min", "%v is not positive", f.s.Min))
		case f.s.Max < f.s.Min:
			all = append(all, configError(at+"."+f.name+".Max", "%v is under Min, %v", f.s.Max, f.s.Min))
		}
	}
	if len(all) == 0 && b.Later.Min < b.First.Max {
		all = append(all, configError(at+".Later", "the cap %v is under the base %v", b.Later.Min, b.First.Max))
	}
	return all
}

func (g Guidance) faults(at string) []error {
	all := negative(at, "says nothing", durationField{"First", g.First}, durationField{"Floor", g.Floor},
		durationField{"Cap", g.Cap}, durationField{"Expected", g.Expected})
	if g.Cap > 0 && g.First > g.Cap {
		all = append(all, configError(at+".Cap", "the cap %v is under the base %v (First)", g.Cap, g.First))
	}
	if g.Cap > 0 && g.Floor > g.Cap {
		all = append(all, configError(at+".Cap", "the cap %v is under the floor %v (Floor)", g.Cap, g.Floor))
	}
	return all
}

// maxID bounds what jobs are known by, in bytes: routes, ids and ClientKeys.
const maxID = 4096

// usableID reports whether something can be known by a text.
func usableID(s string) bool { return s != "" && len(s) <= maxID && utf8.ValidString(s) }

// faults lists what makes a job impossible to watch.
func (j Job) faults() error {
	var all []error
	if j.Route == "" {
		all = append(all, errors.New("jobpoll: Job.Route is empty; it names the Route whose Checker knows the job"))
	}
	if j.ID == "" {
		all = append(all, fmt.Errorf("jobpoll: %s: Job.ID is empty; it must be the id that the provider gave", j.Key()))
	}
	at := func() string { return clip(fmt.Sprintf("%q", j.Key()), 256) }
	for _, f := range []struct{ name, s string }{{"Route", j.Route}, {"ID", j.ID}, {"ClientKey", j.ClientKey}} {
		if f.s != "" && !usableID(f.s) {
			all = append(all, fmt.Errorf("jobpoll: %s: Job.%s is not valid UTF-8 of at most %d bytes", at(), f.name, maxID))
		}
	}
	for _, f := range []struct{ name, s string }{{"Ref", j.Ref}, {"Profile", j.Profile}} {
		if !utf8.ValidString(f.s) {
			all = append(all, fmt.Errorf("jobpoll: %s: Job.%s is not valid UTF-8", at(), f.name))
		}
	}
	for _, f := range []struct {
		name string
		t    time.Time
	}{{"SubmittedAt", j.SubmittedAt}, {"NotBefore", j.NotBefore}, {"Deadline", j.Deadline}} {
		if y := f.t.UTC().Year(); y < 1 || y > 9999 {
			all = append(all, fmt.Errorf("jobpoll: %s: Job.%s is in the year %d, which cannot be stored", j.Key(), f.name, y))
		}
	}
	return errors.Join(all...)
}
