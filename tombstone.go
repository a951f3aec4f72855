package jobpoll

import "strings"

// Bounds of what stays in memory of finished jobs.
const (
	maxTombstones     = 4096
	maxTombstoneBytes = 16 << 20
)

// tombstone is what stays of a finished job: enough to answer Job, Find, Wait
// and a late notice.
type tombstone struct {
	outcome Outcome
	rev     uint64 // of its record in the store
	late    bool   // its late end has been told
}

type tombKey struct {
	key    Key
	client string
}

// tombstones is a bounded set; the oldest go first. The zero value is ready.
type tombstones struct {
	byKey map[Key]*tombstone
	order []Key // oldest first; may name keys that have been dropped
	bytes int
}

func (s *tombstones) get(k Key) (*tombstone, bool) {
	t, ok := s.byKey[k]
	return t, ok
}

func (t *tombstone) size() int {
	o := &t.outcome
	return len(o.Report.Output) + len(o.Report.Ref) + len(o.Job.Ref) + len(o.Message) + 2*len(o.Job.ID) + len(o.Job.ClientKey) + len(o.Job.Profile)
}

// own copies the texts, which lie among those of thousands of other jobs and
// would keep them all in memory.
func (t *tombstone) own() {
	o := &t.outcome
	j := &o.Job
	for _, s := range [...]*string{&j.ID, &j.ClientKey, &j.Profile, &j.Ref, &o.Message, &o.Report.Ref, &o.Report.RawStatus} {
		*s = strings.Clone(*s)
	}
}

// add puts a tombstone up and returns those that went for it.
func (s *tombstones) add(t tombstone) []tombKey {
	if s.byKey == nil {
		s.byKey = map[Key]*tombstone{}
	}
	k := t.outcome.Job.Key()
	s.drop(k)
	s.byKey[k] = &t
	s.order = append(s.order, k)
	s.bytes += t.size()
	var gone []tombKey
	for len(s.byKey) > maxTombstones || s.bytes > maxTombstoneBytes && len(s.byKey) > 1 {
		old := s.order[0]
		s.order = s.order[1:]
		if o, ok := s.byKey[old]; ok && old != k {
			gone = append(gone, tombKey{old, o.outcome.Job.ClientKey})
			s.drop(old)
		}
	}
	if len(s.order) > 2*maxTombstones {
		kept := make([]Key, 0, len(s.byKey))
		seen := make(map[Key]bool, len(s.byKey))
		for i := len(s.order) - 1; i >= 0; i-- { // the newest mention counts
			if o := s.order[i]; s.byKey[o] != nil && !seen[o] {
				seen[o] = true
				kept = append(kept, o)
			}
		}
		for i, j := 0, len(kept)-1; i < j; i, j = i+1, j-1 {
			kept[i], kept[j] = kept[j], kept[i]
		}
		s.order = kept
	}
	return gone
}

func (s *tombstones) drop(k Key) {
	if t, ok := s.byKey[k]; ok {
		s.bytes -= t.size()
		delete(s.byKey, k)
	}
}
