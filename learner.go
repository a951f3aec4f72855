package jobpoll

import (
	"iter"
	"time"

	"github.com/jobpoll/jobpoll/internal/durations"
)

// Learner remembers how long jobs take and makes Plans of it. Route.Family and
// Job.Profile name what is alike; a profile of which little is known goes by
// its family. Its memory is bounded: of more profiles than it may hold, the one
// not observed for the longest goes first.
//
// The Poller has one of its own. A cron job or a queue worker that drives
// Track.Observe and Schedule.Next itself keeps one beside them. A Learner is
// safe for concurrent use.
type Learner struct {
	table *durations.Table
}

// NewLearner returns an empty Learner of at most that many profiles; zero and
// negative mean 4096. A profile takes up to 10 KB, and 3 KB more for each PollCost
// beyond the first that its family's routes have.
func NewLearner(profiles int) *Learner { return &Learner{table: durations.New(profiles)} }

// Sample is one job that is no longer watched, as the Learner takes it in.
// Durations are ages: times since the job was submitted. Negative ones count as
// zero, absurd ones as about a week.
type Sample struct {
	Family, Profile string
	// After is the age of the last look that found the job unfinished (zero:
	// there was none), By that of the first which found that it had ended. The
	// end lies in between and is not taken to be at By: that would make each
	// schedule later than the one before. Equal: the end is known, from a finish
	// time that can be trusted.
	After, By time.Duration
	// Unfinished: the watch was given up at After, and the job takes longer than
	// that. By is not looked at.
	Unfinished bool
	// Running is the age at which the job was seen to start to run, for jobs that
	// were seen in the queue or whose provider tells the start. Zero: not known.
	Running time.Duration
	// Told is an estimate of the provider's, Moved one computed from progress;
	// zero: none. Take the first of each, and never one chosen because of when the
	// job ended.
	Told, Moved Estimate
	// At is when this was learned.
	At time.Time
}

// Estimate is that at age Age the job was said to take Left longer. A Left of
// zero: nothing was said.
type Estimate struct {
	Age, Left time.Duration
}

// EstimateIn gives the estimate that the last look has brought, if any, and
// whether the provider told it, rather than that it was drawn from progress.
func (t Track) EstimateIn(submitted time.Time) (e Estimate, told bool) {
	left := t.FinishAt.Sub(t.LastAt)
	if t.FinishAt == 0 || left <= 0 {
		return Estimate{}, false
	}
	s := StampOf(submitted)
	if s == 0 {
		s = t.FirstAt
	}
	return Estimate{Age: max(t.LastAt.Sub(s), 0), Left: left}, t.FinishTold
}

// Observe takes a Sample in.
func (l *Learner) Observe(s Sample) {
	l.table.Learn(durations.Sample{
		Family: s.Family, Profile: s.Profile, After: s.After, By: s.By, Unfinished: s.Unfinished, Running: s.Running,
		Told: durations.Estimate(s.Told), Moved: durations.Estimate(s.Moved), At: s.At,
	})
}

// Plan gives the best schedule for what is known of a profile, at the PollCost
// and within the MaxDelay of the Schedule; nil while neither the profile nor
// its family has seen 5 jobs end, and then the Schedule's own delays hold. It is
// made anew when about a tenth more was seen since, which takes up to a
// millisecond, so ask each time a job has ended, rather than before each look.
// Drift, and whether an estimate or the start of running tells the end better,
// are judged by the plans made so far.
func (l *Learner) Plan(family, profile string, s Schedule) *Plan {
	set := l.table.Plan(family, profile, durations.Terms{Cost: s.pollCost().Seconds(), MaxDelay: max(s.MaxDelay, 0).Seconds()})
	if set == nil {
		return nil
	}
	return &Plan{learned: set}
}

// familyPlan is Plan for a profile of which nothing is known.
func (l *Learner) familyPlan(family string, s Schedule) *Plan { return l.Plan(family, noProfile, s) }

// noProfile is a name that no profile has: it is no text.
const noProfile = "\xff"

// Profiles goes over what has been learned, sorted by family and profile.
func (l *Learner) Profiles() iter.Seq[ProfileInfo] {
	return func(yield func(ProfileInfo) bool) {
		for d := range l.table.Profiles() {
			if !yield(ProfileInfo{Family: d.Family, Profile: d.Profile, Count: int(d.Count), P10: d.P10, P50: d.P50, P90: d.P90, P99: d.P99, LastAt: d.Last}) {
				return
			}
		}
	}
}

// Export gives what is known of one profile, to be stored: at most 3 KB. False:
// nothing is known.
func (l *Learner) Export(family, profile string) ([]byte, bool) {
	return l.table.Export(family, profile)
}

// Import takes in what Export gave, of this or an earlier version, in place of
// what is known of the profile. What cannot be read is an error, and nothing
// changes then.
func (l *Learner) Import(data []byte) error { return l.table.Import(data) }
