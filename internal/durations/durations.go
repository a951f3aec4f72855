// Package durations remembers how long jobs take, for each profile of each
// family, in a bounded amount of memory, and makes plans of it.
package durations

import (
	"cmp"
	"container/list"
	"hash/fnv"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jobpoll/jobpoll/internal/plan"
)

const (
	// DefaultProfiles is how many profiles a Table holds by default.
	DefaultProfiles = 4096
	// Enough is how many jobs of a profile or its family must have ended before
	// there is a plan.
	Enough = 5
	// maxName bounds a name, in bytes: names come from outside.
	maxName = 256
)

// Sample is one job that is no longer watched. Durations are ages: times since
// the job was submitted. Negative counts as zero, more than Max as Max.
type Sample struct {
	Family, Profile string
	// The job ended after After and at the latest at By; exactly there where the
	// two are equal. Ends in the wrong order are swapped.
	After, By time.Duration
	// Unfinished: the watch was given up at After; By is not looked at.
	Unfinished bool
	// Running is the age at which the job was seen to start; zero: not known.
	Running time.Duration
	// Told and Moved are an estimate of the provider and one from progress.
	Told, Moved Estimate
	// At is when this was learned.
	At time.Time
}

// Estimate is that at age Age the job was said to take Left longer; a Left of
// zero is none.
type Estimate struct{ Age, Left time.Duration }

// Terms are what a plan is made for, in seconds.
type Terms struct {
	Cost     float64 // of one look
	MaxDelay float64 // zero: none
}

// Table holds the seen durations of up to a fixed number of profiles and
// families; the one that was not observed for the longest goes first. A profile
// takes between 1 and 10 KB. It is safe for use by several goroutines at once.
type Table struct {
	mu       sync.Mutex
	profiles lru
	families lru // under the name of an empty profile
}

type name struct{ family, profile string }

// Profile is what is known of one profile. Percentiles are of the latest jobs,
// a few hundred at most; for intervals they are estimates.
type Profile struct {
	Family, Profile    string
	Count              uint64 // of jobs that ended
	P10, P50, P90, P99 time.Duration
	Last               time.Time // the latest observation
}

// maxFamilies bounds the families. They are named by configuration.
const maxFamilies = 256

// New returns an empty Table of at most limit profiles; zero and negative mean
// DefaultProfiles.
func New(limit int) *Table {
	if limit <= 0 {
		limit = DefaultProfiles
	}
	return &Table{profiles: newLRU(limit), families: newLRU(min(limit, maxFamilies))}
}

// Learn takes a Sample in.
func (t *Table) Learn(s Sample) {
	key := name{bounded(s.Family), bounded(s.Profile)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.families.use(name{family: key.family}).learnAge(&s)
	t.profiles.use(key).learn(&s)
}

// Plan gives the plan of a profile for the terms; nil while too little is known.
// It is made anew when about a tenth more was seen since the last one, on the
// caller's time: others are not held up.
func (t *Table) Plan(family, profile string, terms Terms) *plan.Set {
	key, parent := name{bounded(family), bounded(profile)}, name{family: bounded(family)}
	t.mu.Lock()
	r, p := t.profiles.find(key), t.families.find(parent)
	if r == nil { // never seen: it goes by its family
		r, p = p, nil
	}
	if r == nil {
		t.mu.Unlock()
		return nil
	}
	if set := r.current(terms); set != nil {
		t.mu.Unlock()
		return set
	}
	mine, other := r.clone(), p.clone()
	t.mu.Unlock()

	set := mine.plan(other, terms)

	t.mu.Lock()
	defer t.mu.Unlock()
	r.adopt(mine)
	if p != nil {
		p.adopt(other)
	}
	return set
}

// Len returns how many profiles the table holds.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.profiles.used.Len()
}

// Lookup returns what is known of one profile. It does not count as a use.
func (t *Table) Lookup(family, profile string) (Profile, bool) {
	return t.lookup(&t.profiles, name{bounded(family), bounded(profile)})
}

// Family returns what is known of all jobs of a family, whatever their profile.
func (t *Table) Family(family string) (Profile, bool) {
	return t.lookup(&t.families, name{family: bounded(family)})
}

func (t *Table) lookup(in *lru, key name) (Profile, bool) {
	t.mu.Lock()
	r := in.find(key)
	if r == nil {
		t.mu.Unlock()
		return Profile{}, false
	}
	mine := r.clone()
	t.mu.Unlock()

	p := mine.summary()

	t.mu.Lock()
	defer t.mu.Unlock()
	r.adopt(mine)
	return p, true
}

// Profiles goes over all profiles that there were when the iteration began,
// sorted by family and profile. The body may call the Table.
func (t *Table) Profiles() iter.Seq[Profile] {
	return func(yield func(Profile) bool) {
		for _, key := range t.names() {
			if p, ok := t.lookup(&t.profiles, key); ok && !yield(p) {
				return
			}
		}
	}
}

func (t *Table) names() []name {
	t.mu.Lock()
	all := make([]name, 0, len(t.profiles.rows))
	for key := range t.profiles.rows {
		all = append(all, key)
	}
	t.mu.Unlock()
	slices.SortFunc(all, func(a, b name) int {
		return cmp.Or(cmp.Compare(a.family, b.family), cmp.Compare(a.profile, b.profile))
	})
	return all
}

// lru is rows by name, bounded in number.
type lru struct {
	limit int
	rows  map[name]*list.Element
	used  *list.List // of *row, most recently observed in front
}

func newLRU(limit int) lru {
	return lru{limit: limit, rows: make(map[name]*list.Element), used: list.New()}
}

// use finds or makes the row of a name and marks it as used.
func (l *lru) use(key name) *row {
	if e := l.rows[key]; e != nil {
		l.used.MoveToFront(e)
		return e.Value.(*row)
	}
	if l.used.Len() >= l.limit {
		oldest := l.used.Back()
		delete(l.rows, oldest.Value.(*row).name)
		l.used.Remove(oldest)
	}
	// A clone, so that no larger string of the caller stays alive.
	key = name{strings.Clone(key.family), strings.Clone(key.profile)}
	r := &row{name: key}
	l.rows[key] = l.used.PushFront(r)
	return r
}

// find gives the row of a name, nil if there is none.
func (l *lru) find(key name) *row {
	if e := l.rows[key]; e != nil {
		return e.Value.(*row)
	}
	return nil
}

// bounded cuts an overlong name; a hash keeps two that begin alike apart.
func bounded(s string) string {
	if len(s) <= maxName {
		return s
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	sum := "#" + strconv.FormatUint(h.Sum64(), 16)
	return strings.ToValidUTF8(s[:maxName-len(sum)], "") + sum
}

// Resets tells how often drift was seen in the durations of a profile.
func (t *Table) Resets(family, profile string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.profiles.find(name{bounded(family), bounded(profile)}); r != nil {
		return int(r.age.resets)
	}
	return 0
}
