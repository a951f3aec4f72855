package durations

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

const (
	// stateVersion begins each state. A later version reads earlier ones; parts
	// are only ever added at the end, where a reader that does not know them
	// leaves them and one that misses them goes on without.
	stateVersion = 2
	// maxState bounds a state, in bytes.
	maxState = 3 << 10
)

var errState = errors.New("jobpoll: stored durations cannot be read: drop them, they are learned anew")

// Export gives what is known of one profile, to be stored: at most 3 KB. What
// would not fit is left out, the least important first.
func (t *Table) Export(family, profile string) ([]byte, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.profiles.find(name{bounded(family), bounded(profile)})
	if r == nil {
		return nil, false
	}
	for parts := 4; ; parts-- {
		if b := r.encode(parts); len(b) <= maxState || parts == 1 {
			return b, true
		}
	}
}

// Of reports whether what Export gave is of that profile.
func Of(data []byte, family, profile string) (bool, error) {
	r, err := decode(data)
	if err != nil {
		return false, err
	}
	return r.name == name{bounded(family), bounded(profile)}, nil
}

// Import takes in what Export gave, in place of what is known of the profile.
// The family is made of its profiles as they are when first known.
func (t *Table) Import(data []byte) error {
	_, err := t.take(data, func(_, _ *row) bool { return true })
	return err
}

// Update is Import of what is newer than what is known, and tells whether it was.
func (t *Table) Update(data []byte) (newer bool, err error) {
	return t.take(data, func(known, read *row) bool { return read.last.After(known.last) })
}

// take imports a profile that is not known, or is to be replaced.
func (t *Table) take(data []byte, replace func(known, read *row) bool) (bool, error) {
	r, err := decode(data)
	if err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.profiles.find(r.name)
	if before != nil && !replace(before, r) {
		return false, nil
	}
	family := t.families.use(name{family: r.name.family})
	if before == nil || family.seen == 0 {
		family.age.join(&r.age)
		family.seen += max(r.age.count, 1)
	}
	kept := t.profiles.use(r.name)
	r.name = kept.name
	*kept = *r
	return true, nil
}

// join takes in another series whole.
func (s *series) join(o *series) {
	if n := len(o.slow.mass); n > 0 {
		s.slow.cover(o.slow.base, o.slow.base+n-1)
		for i, m := range o.slow.mass {
			s.slow.mass[o.slow.base-s.slow.base+i] += m
		}
	}
	count := s.count
	for _, v := range o.recent {
		s.add(v)
	}
	s.count = count + o.count
}

// brief is the first of the parts of which only the latest is kept.
const brief = 2

// parts are the series of a row, the most important first.
func (r *row) parts() [4]*series {
	return [4]*series{&r.age, &r.running, &r.told.errors, &r.moved.errors}
}

func (r *row) encode(parts int) []byte {
	b := []byte{stateVersion}
	b = appendText(appendText(b, r.name.family), r.name.profile)
	at := int64(0)
	if !r.last.IsZero() {
		at = r.last.UnixNano()
	}
	b = binary.AppendVarint(b, at)
	b = appendFloats(b, r.runs, r.told.lead, r.moved.lead)
	for i, s := range r.parts() {
		if i < parts {
			b = s.encode(b)
		}
	}
	return b
}

func (s *series) encode(b []byte) []byte {
	b = binary.AppendUvarint(b, s.count)
	b = binary.AppendUvarint(b, uint64(s.rise))
	b = binary.AppendUvarint(b, uint64(s.resets))
	b = appendFloats(b, s.drift)
	b = binary.AppendUvarint(b, uint64(len(s.recent)))
	for _, v := range s.recent {
		b = appendFloats(b, v.lo, v.hi)
	}
	var most float32
	for _, m := range s.slow.mass {
		most = max(most, m)
	}
	// The mass in parts of the largest, without empty ends.
	quantum := most / math.MaxUint16
	first, last := 0, len(s.slow.mass)
	for first < last && s.slow.mass[first] < quantum {
		first++
	}
	for last > first && s.slow.mass[last-1] < quantum {
		last--
	}
	b = binary.AppendUvarint(b, uint64(last-first))
	if first == last {
		return b
	}
	b = binary.AppendUvarint(b, uint64(s.slow.base+first))
	b = appendFloats(b, most)
	for _, m := range s.slow.mass[first:last] {
		b = binary.LittleEndian.AppendUint16(b, uint16(m/quantum))
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendFloats(b []byte, v ...float32) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// reader takes values off the front; bad is set once one was not there or not
// what it must be.
type reader struct {
	b   []byte
	bad bool
}

func decode(data []byte) (*row, error) {
	if len(data) == 0 || data[0] == 0 || data[0] > stateVersion {
		return nil, errState
	}
	d := &reader{b: data[1:]}
	r, old := &row{name: name{d.text(), d.text()}}, data[0] == 1
	if at := d.varint(); at != 0 {
		r.last = time.Unix(0, at).UTC()
	}
	r.runs, r.told.lead, r.moved.lead = d.float(-1e6, 1e6), d.float(-1e6, 1e6), d.float(-1e6, 1e6)
	for i, s := range r.parts() {
		if i > 0 && len(d.b) == 0 {
			break
		}
		if d.series(s, old); i >= brief {
			s.slow = histogram{}
		}
	}
	if d.bad {
		return nil, errState
	}
	return r, nil
}

// series reads one; a state of version 1 has bins of half the width.
func (d *reader) series(s *series, old bool) {
	s.count = d.uvarint(math.MaxUint64)
	s.rise, s.resets = uint32(d.uvarint(math.MaxUint32)), uint32(d.uvarint(math.MaxUint32))
	s.drift = d.float(0, alarm)
	n := d.uvarint(keep)
	s.recent = make([]span, 0, n)
	for range n {
		v := span{d.float(0, float32(math.Inf(1))), d.float(0, float32(math.Inf(1)))}
		d.bad = d.bad || !v.proper()
		s.recent = append(s.recent, v)
	}
	of := func(bin int) int { return bin }
	limit := uint64(bins)
	if old {
		of, limit = func(bin int) int { return (bin + 1) / 2 }, 2*bins-1
	}
	n = d.uvarint(limit)
	if n == 0 || d.bad {
		return
	}
	base := int(d.uvarint(limit - n))
	quantum := d.float(0, 1e6) / math.MaxUint16
	s.slow.cover(of(base), of(base+int(n)-1))
	for i := range int(n) {
		s.slow.mass[of(base+i)-s.slow.base] += float32(d.uint16()) * quantum
	}
}

// take gives the next n bytes, all zero where they are not there.
func (d *reader) take(n int) []byte {
	if n > len(d.b) {
		d.bad, d.b = true, nil
		return make([]byte, n)
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *reader) uint16() uint16 { return binary.LittleEndian.Uint16(d.take(2)) }

func (d *reader) float(least, most float32) float32 {
	v := math.Float32frombits(binary.LittleEndian.Uint32(d.take(4)))
	if !(v >= least && v <= most) { // NaN too
		d.bad = true
		return least
	}
	return v
}

func (d *reader) uvarint(most uint64) uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > most {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *reader) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *reader) text() string { return string(d.take(int(d.uvarint(maxName)))) }
