// Package durations remembers how long jobs take, for each profile of each
// family, in a bounded amount of memory.
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
)

const (
	// DefaultProfiles is how many profiles a Table holds by default.
	DefaultProfiles = 4096
	// maxName bounds a name, in bytes: names come from outside.
	maxName = 256
)

// Table holds the seen durations of up to a fixed number of profiles; the one
// that was not observed for the longest goes first. A profile takes between
// 0.5 and 3.5 KB. It is safe for use by several goroutines at once.
type Table struct {
	mu    sync.Mutex
	limit int
	rows  map[name]*list.Element
	used  list.List // of *row, most recently observed in front
}

type name struct{ family, profile string }

type row struct {
	name  name
	count uint64
	last  time.Time
	hist  histogram
}

// Profile is what is known of one profile. Percentiles are of all durations
// seen; for intervals they are estimates.
type Profile struct {
	Family, Profile    string
	Count              uint64
	P10, P50, P90, P99 time.Duration
	Last               time.Time // the latest observation
}

// New returns an empty Table of at most limit profiles; zero and negative mean
// DefaultProfiles.
func New(limit int) *Table {
	if limit <= 0 {
		limit = DefaultProfiles
	}
	return &Table{limit: limit, rows: make(map[name]*list.Element)}
}

// Observe records that a job of this profile took more than lo and at most hi;
// a point where the two are equal. Negative counts as zero, more than Max as
// Max, and ends in the wrong order are swapped. at is when this was learned.
func (t *Table) Observe(family, profile string, lo, hi time.Duration, at time.Time) {
	if lo > hi {
		lo, hi = hi, lo
	}
	key := name{bounded(family), bounded(profile)}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.row(key)
	r.count++
	if at.After(r.last) {
		r.last = at
	}
	r.hist.add(lo, hi)
}

// row finds or makes the row of a profile and marks it as used.
func (t *Table) row(key name) *row {
	if e := t.rows[key]; e != nil {
		t.used.MoveToFront(e)
		return e.Value.(*row)
	}
	if t.used.Len() >= t.limit {
		oldest := t.used.Back()
		delete(t.rows, oldest.Value.(*row).name)
		t.used.Remove(oldest)
	}
	// A clone, so that no larger string of the caller stays alive.
	key = name{strings.Clone(key.family), strings.Clone(key.profile)}
	r := &row{name: key}
	t.rows[key] = t.used.PushFront(r)
	return r
}

// Len returns how many profiles the table holds.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.used.Len()
}

// Lookup returns what is known of one profile. It does not count as a use.
func (t *Table) Lookup(family, profile string) (Profile, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.rows[name{bounded(family), bounded(profile)}]
	if e == nil {
		return Profile{}, false
	}
	return e.Value.(*row).summary(), true
}

// Profiles goes over all profiles, sorted by family and profile, as they were
// when the iteration began. The body may call the Table.
func (t *Table) Profiles() iter.Seq[Profile] {
	return func(yield func(Profile) bool) {
		for _, p := range t.snapshot() {
			if !yield(p) {
				return
			}
		}
	}
}

func (t *Table) snapshot() []Profile {
	t.mu.Lock()
	all := make([]Profile, 0, t.used.Len())
	for e := t.used.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*row).summary())
	}
	t.mu.Unlock()
	slices.SortFunc(all, func(a, b Profile) int {
		return cmp.Or(cmp.Compare(a.Family, b.Family), cmp.Compare(a.Profile, b.Profile))
	})
	return all
}

func (r *row) summary() Profile {
	return Profile{
		Family: r.name.family, Profile: r.name.profile, Count: r.count, Last: r.last,
		P10: r.hist.quantile(0.10), P50: r.hist.quantile(0.50), P90: r.hist.quantile(0.90), P99: r.hist.quantile(0.99),
	}
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
