package jobpoll

import (
	"strings"
	"time"

	"github.com/jobpoll/jobpoll/internal/due"
	"github.com/jobpoll/jobpoll/internal/records"
)

// slotHold is a job slot of the budget that stays taken after we stopped
// watching, because the remote job may still run.
type slotHold struct {
	key  Key
	node *Budget
}

// slotHolds keeps the holds by job and by the time at which they end. The zero
// value is ready.
type slotHolds struct {
	table records.Table[slotHold]
	until due.Queue
	byKey map[Key]int32
}

func (s *slotHolds) add(h slotHold, until Stamp) {
	if s.byKey == nil {
		s.byKey = map[Key]int32{}
	}
	h.key.ID = strings.Clone(h.key.ID) // it lies among those of other jobs
	slot, kept := s.table.Add()
	*kept = h
	s.byKey[h.key] = slot
	s.until.Set(slot, int64(until))
}

// drop ends the hold of a job, if there is one.
func (s *slotHolds) drop(k Key, give func(*Budget)) {
	if slot, ok := s.byKey[k]; ok {
		give(s.table.Get(slot).node)
		s.until.Remove(slot)
		delete(s.byKey, k)
		s.table.Remove(slot)
	}
}

// expire ends the holds whose time has come, and says how long until the next.
func (s *slotHolds) expire(now Stamp, give func(*Budget)) time.Duration {
	for {
		slot, at, ok := s.until.Peek()
		if !ok {
			return never
		}
		if left := time.Duration(at - int64(now)); left > 0 {
			return left
		}
		s.drop(s.table.Get(slot).key, give)
	}
}

// dropAll ends all holds.
func (s *slotHolds) dropAll(give func(*Budget)) {
	for k := range s.byKey {
		s.drop(k, give)
	}
}

// releaseJobSlot gives the slot back when the remote job is known to have
// ended, else at its age limit; at once where slots are not limited.
func (p *Poller) releaseJobSlot(r *record, now Stamp) {
	until := r.submitted.Add(min(r.rules.MaxAge, MaxRetryAfter))
	gone := r.outcome.State.Terminal() || r.outcome.Reason == ReasonLost || r.outcome.Reason == ReasonResultExpired
	if gone || until <= now || !r.route.budget.limitsJobs() {
		p.giveJobSlot(r.route.budget)
		return
	}
	p.holds.add(slotHold{key: r.job.Key(), node: r.route.budget}, until)
}

// giveJobSlot frees a slot; waiters of the budget may be woken, so later.
func (p *Poller) giveJobSlot(b *Budget) { p.after = append(p.after, b.jobEnded) }
