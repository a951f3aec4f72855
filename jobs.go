package jobpoll

import (
	"hash/maphash"

	"github.com/jobpoll/jobpoll/internal/records"
	"github.com/jobpoll/jobpoll/internal/texts"
)

// jobTable keeps the watched jobs. Nearly all of them only wait, and a waiting
// job is a line: packed, without pointers, nothing to the garbage collector. A
// job that something happens to is unpacked into a record, and packed again
// once that is over: see at and pack. Guarded by Poller.mu.
type jobTable struct {
	lines    records.Table[line]
	extras   records.Table[extra]
	texts    texts.Arena
	profiles texts.Interner
	words    texts.Interner
	byID     records.Index
	byClient records.Index
	seed     maphash.Seed
	routes   []*route // by number

	hot     []*record // unpacked ones, by line.hot-1
	cold    []int32   // free places in hot
	touched []*record // those that may be packed at the end of this hold of the lock
	spare   []*record
	gen     uint32
}

// Bounds of what is interned; what goes beyond is kept with its job.
const (
	maxProfiles  = 16_384
	maxKeptWords = 4096
	maxInterned  = 4 << 20 // bytes
	maxSpareRecs = 64
)

func newJobTable() jobTable {
	return jobTable{
		seed:     maphash.MakeSeed(),
		profiles: texts.Interner{MaxStrings: maxProfiles, MaxBytes: maxInterned},
		words:    texts.Interner{MaxStrings: maxKeptWords, MaxBytes: maxInterned},
	}
}

// init makes the arena know who holds its texts; j must not move after it.
func (j *jobTable) init() {
	j.texts.Held = func(slot int32, r texts.Ref) bool { return j.textAt(slot, r) != nil }
	j.texts.Moved = func(slot int32, old, now texts.Ref) { *j.textAt(slot, old) = now }
}

// textAt is where a job keeps a text, nil if it does not.
func (j *jobTable) textAt(slot int32, r texts.Ref) *texts.Ref {
	l := j.lines.Get(slot)
	if l == nil {
		return nil
	}
	if l.id == r {
		return &l.id
	}
	if x := j.extra(l); x != nil {
		for _, at := range x.texts() {
			if *at == r {
				return at
			}
		}
	}
	return nil
}

func (j *jobTable) extra(l *line) *extra {
	if l.more == 0 {
		return nil
	}
	return j.extras.Get(l.more - 1)
}

// keep makes *at the text s of a job.
func (j *jobTable) keep(slot int32, at *texts.Ref, s string) {
	if old := *at; j.texts.Get(old) != s {
		*at = 0
		j.texts.Drop(old)
		*at = j.texts.Add(slot, s)
	}
}

// Len is the number of watched jobs.
func (j *jobTable) Len() int { return j.lines.Len() }

// End is one more than the highest slot that may be in use.
func (j *jobTable) End() int32 { return j.lines.End() }

func (j *jobTable) hash(rt *route, id string) uint64 {
	return maphash.String(j.seed, id) ^ uint64(rt.number)*0x9e3779b97f4a7c15
}

// find gives the slot of a job.
func (j *jobTable) find(rt *route, id string) (int32, bool) {
	return j.byID.Find(j.hash(rt, id), func(slot int32) bool {
		l := j.lines.Get(slot)
		return l.route == rt.number && j.texts.Get(l.id) == id
	})
}

// findClient gives the slot of the job with that ClientKey.
func (j *jobTable) findClient(client string) (int32, bool) {
	return j.byClient.Find(maphash.String(j.seed, client), func(slot int32) bool {
		x := j.extra(j.lines.Get(slot))
		return x != nil && j.texts.Get(x.client) == client
	})
}

// key gives the name of a job.
func (j *jobTable) key(slot int32) Key {
	l := j.lines.Get(slot)
	return Key{Route: j.routes[l.route].Name, ID: j.texts.Get(l.id)}
}

// add takes a prepared record in.
func (j *jobTable) add(r *record) {
	slot, l := j.lines.Add()
	if j.gen++; j.gen == 0 {
		j.gen = 1
	}
	r.slot, r.gen = slot, j.gen
	l.gen, l.route = r.gen, r.route.number
	l.id = j.texts.Add(slot, r.job.ID)
	r.job.ID = j.texts.Get(l.id)
	j.byID.Insert(j.hash(r.route, r.job.ID), slot)
	if c := r.job.ClientKey; c != "" {
		n, x := j.extras.Add()
		l.more = n + 1
		x.client = j.texts.Add(slot, c)
		r.job.ClientKey = j.texts.Get(x.client)
		j.byClient.Insert(maphash.String(j.seed, c), slot)
	}
	j.warm(l, r)
}

// remove takes a job out. Its record may still be read.
func (j *jobTable) remove(r *record) {
	l := j.lines.Get(r.slot)
	j.byID.Remove(j.hash(r.route, r.job.ID), r.slot)
	id := l.id
	l.id = 0
	j.texts.Drop(id)
	if x := j.extra(l); x != nil {
		if x.client != 0 {
			j.byClient.Remove(maphash.String(j.seed, r.job.ClientKey), r.slot)
		}
		j.dropExtra(l)
	}
	j.cool(l)
	r.gone = true
	j.lines.Remove(r.slot)
}

func (j *jobTable) dropExtra(l *line) {
	x := j.extra(l)
	for _, at := range x.texts() {
		old := *at
		*at = 0
		j.texts.Drop(old)
	}
	j.extras.Remove(l.more - 1)
	l.more = 0
}

// warm lists a record as the unpacked form of a line.
func (j *jobTable) warm(l *line, r *record) {
	if k := len(j.cold) - 1; k >= 0 {
		l.hot, j.cold = j.cold[k]+1, j.cold[:k]
		j.hot[l.hot-1] = r
	} else {
		j.hot = append(j.hot, r)
		l.hot = int32(len(j.hot))
	}
	j.touch(r)
}

// cool ends that.
func (j *jobTable) cool(l *line) {
	j.hot[l.hot-1] = nil
	j.cold = append(j.cold, l.hot-1)
	l.hot = 0
	if len(j.cold) == len(j.hot) && len(j.hot) > 1024 {
		j.hot, j.cold = nil, nil
	}
}

func (j *jobTable) touch(r *record) {
	if !r.touched {
		r.touched = true
		j.touched = append(j.touched, r)
	}
}

// at gives the record in a slot, nil if there is none. It is valid until the
// lock is released; longer only while it cannot be packed, as during a call or
// once the watch has ended.
func (j *jobTable) at(slot int32) *record {
	l := j.lines.Get(slot)
	if l == nil {
		return nil
	}
	return j.open(slot, l)
}

// open is at where the line is at hand.
func (j *jobTable) open(slot int32, l *line) *record {
	if l.hot != 0 {
		r := j.hot[l.hot-1]
		j.touch(r)
		return r
	}
	r := j.fresh()
	j.unpack(slot, l, r)
	j.warm(l, r)
	return r
}

// fresh gives a record to unpack into: an empty one, or one that was packed.
func (j *jobTable) fresh() *record {
	k := len(j.spare) - 1
	if k < 0 {
		return &record{}
	}
	r := j.spare[k]
	j.spare[k] = nil
	j.spare = j.spare[:k]
	return r
}

// look is at for reading only: into is where a packed one is unpacked.
func (j *jobTable) look(slot int32, into *record) *record {
	l := j.lines.Get(slot)
	switch {
	case l == nil:
		return nil
	case l.hot != 0:
		return j.hot[l.hot-1]
	}
	*into = record{}
	j.unpack(slot, l, into)
	return into
}

// get gives the record of a handle, nil if it has gone.
func (j *jobTable) get(h handle) *record {
	if l := j.lines.Get(h.slot); l != nil && l.gen == h.gen {
		return j.open(h.slot, l)
	}
	return nil
}

// alive reports whether a handle still names a job.
func (j *jobTable) alive(h handle) bool {
	l := j.lines.Get(h.slot)
	return l != nil && l.gen == h.gen
}

// waits gives what a packed or unpacked job is at.
func (j *jobTable) waits(l *line) (phase, Stamp) {
	if l.hot != 0 {
		r := j.hot[l.hot-1]
		return r.phase, r.planned
	}
	return l.phase, l.planned
}

// settle packs what can be packed, at the end of a hold of the lock.
func (j *jobTable) settle() {
	for i, r := range j.touched {
		j.touched[i] = nil
		r.touched = false
		if r.gone {
			continue
		}
		l := j.lines.Get(r.slot)
		if !j.pack(l, r) {
			continue
		}
		j.cool(l)
		if len(j.spare) < maxSpareRecs {
			j.spare = append(j.spare, r)
		}
	}
	j.touched = j.touched[:0]
}
