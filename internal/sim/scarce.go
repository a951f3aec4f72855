package sim

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/jobpoll/jobpoll"
)

// Order is who goes first when more looks are due than may be made.
type Order int

const (
	// InTurn is first come, first served.
	InTurn Order = iota
	// WorthFirst takes the job of which the most delay can be expected to have
	// accrued, and lets all gaps grow while there is a backlog.
	WorthFirst
)

// PlayShared plays jobs that share a budget of so many looks a second: a look
// that is due waits for a free one.
func (w *Watcher) PlayShared(jobs []Job, perSecond float64, order Order) []Seen {
	all, under := make([]Seen, len(jobs)), make([]watch, len(jobs))
	future := make(events, len(jobs))
	for i, j := range jobs {
		future[i] = event{at: j.Start, i: i}
	}
	heap.Init(&future)
	var waiting events
	var now time.Duration
	price, gap, patience := 1.0, Seconds(1/perSecond), 10*w.pollCost()
	for len(future) > 0 || len(waiting) > 0 {
		if len(waiting) == 0 {
			now = max(now, future[0].at)
		}
		for len(future) > 0 && future[0].at <= now {
			e := heap.Pop(&future).(event)
			if e.look {
				waiting = append(waiting, e)
				continue
			}
			under[e.i] = w.begin(&jobs[e.i])
			heap.Push(&future, event{at: w.next(&under[e.i], e.at, price), i: e.i, look: true})
		}
		if len(waiting) == 0 {
			continue // a job has only started
		}
		k := w.first(waiting, under, now, order)
		e := waiting[k]
		waiting = slices.Delete(waiting, k, k+1)
		if order == WorthFirst {
			price = pressure(price, time.Duration(len(waiting))*gap, patience)
		}
		o := &under[e.i]
		if late, ended := w.look(o, now); ended {
			all[e.i] = Seen{int(o.track.Looks), late}
		} else {
			heap.Push(&future, event{at: w.next(o, now, price), i: e.i, look: true})
		}
		now += gap
	}
	w.over += now
	return all
}

func (w *Watcher) pollCost() time.Duration {
	return cmp.Or(w.Schedule.PollCost, jobpoll.DefaultPollCost)
}

// first gives the place of the look that is made next; those that wait are in
// the order in which they came.
func (w *Watcher) first(waiting events, under []watch, now time.Duration, order Order) int {
	best, most := 0, -1.0
	if order == InTurn {
		return 0
	}
	for k, e := range waiting {
		if v := w.worth(&under[e.i], now); v > most {
			best, most = k, v
		}
	}
	return best
}

// worth is the delay that can be expected to have accrued at a job. Where
// nothing is known it is that of a job which at each age may take as long
// again: its hazard is 1/2 over its age.
func (w *Watcher) worth(o *watch, now time.Duration) float64 {
	at := w.instant(now)
	if w.Learner != nil {
		if p := w.Learner.Plan(Family, o.job.Profile, w.Schedule); p != nil {
			return p.Worth(o.track, o.job.SubmittedAt, at).Seconds()
		}
	}
	age := at.Sub(o.job.SubmittedAt).Seconds()
	since := age - o.pending.Seconds()
	return since * since / 4 / max(age, 1)
}

// pressure gives the new price of a look from the old, and from how long it
// would take to make all looks that wait. It rises where that is long and falls
// where it is not, both slowly. While the backlog is short the choice among
// those that wait does more good than longer gaps, which leave looks unused.
func pressure(price float64, backlog, patience time.Duration) float64 {
	const step = 1.002
	if backlog > patience {
		return min(price*step, 1e4)
	}
	return max(price/step, 1)
}
