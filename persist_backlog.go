package jobpoll

// maxBacklog bounds the records that wait for a store which does not take them.
const maxBacklog = 16_384

// backlog is the records that are left to the next flush beside those of jobs:
// what a crash may undo. Of one key only the newest is kept. The zero value is
// ready.
type backlog struct {
	order []recordKey // oldest first; may name such as are gone
	recs  map[recordKey]Record
}

func (b *backlog) len() int { return len(b.recs) }

// add leaves a record to the next flush, in place of an older one of its key.
// Beyond the bound the oldest goes.
func (b *backlog) add(r Record) {
	if b.recs == nil {
		b.recs = map[recordKey]Record{}
	}
	k := recordKey{r.Kind, r.ID}
	if _, waits := b.recs[k]; !waits {
		b.order = append(b.order, k)
	}
	b.recs[k] = r
	if len(b.recs) > maxBacklog {
		b.take(1)
	}
}

// take removes and returns the oldest, up to n.
func (b *backlog) take(n int) []Record {
	var out []Record
	for len(b.order) > 0 && len(out) < n {
		k := b.order[0]
		b.order = b.order[1:]
		if r, ok := b.recs[k]; ok {
			delete(b.recs, k)
			out = append(out, r)
		}
	}
	if len(b.order) == 0 {
		b.order = nil
	}
	return out
}

// giveBack puts back what could not be written, unless a newer one waits.
func (b *backlog) giveBack(recs []Record) {
	for _, r := range recs {
		if _, newer := b.recs[recordKey{r.Kind, r.ID}]; !newer {
			b.add(r)
		}
	}
}
