package jobpoll

import (
	"errors"
	"fmt"
	"sort"
	"time"
	"unicode/utf8"
)

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
