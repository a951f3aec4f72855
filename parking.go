package jobpoll

import (
	"slices"
	"time"
)

// Bounds of the notices that wait for their job.
const (
	maxEarly      = 10_000
	maxEarlyBytes = 16 << 20
	earlyLife     = 15 * time.Minute
)

// parking keeps notices for jobs that are not watched yet, oldest first. The
// zero value is ready.
type parking struct {
	list  []*parked // oldest first; those that are gone are skipped
	byJob map[parkedFor][]*parked
	count int
	bytes int
}

type parked struct {
	n    Notice
	at   Stamp
	gone bool
}

// parkedFor is what a parked notice waits for: a job's key or, where the
// sender did not tell the id, its ClientKey.
type parkedFor struct {
	key    Key
	client string
}

func (n *Notice) waitsFor() parkedFor {
	if n.Key.ID != "" {
		return parkedFor{key: n.Key}
	}
	return parkedFor{key: n.Key, client: n.ClientKey}
}

func (n *Notice) size() int {
	return 256 + len(n.Key.ID) + len(n.ClientKey) + len(n.EventID) + len(n.Report.Output) + len(n.Report.Ref)
}

// park adds a notice and returns those that had to go for it.
func (q *parking) park(n Notice, now Stamp) []Notice {
	out := q.expire(now)
	if len(q.list) > 2*q.count+64 {
		q.list = slices.DeleteFunc(q.list, func(e *parked) bool { return e.gone })
	}
	e := &parked{n: n, at: now}
	q.list = append(q.list, e)
	if q.byJob == nil {
		q.byJob = map[parkedFor][]*parked{}
	}
	q.byJob[n.waitsFor()] = append(q.byJob[n.waitsFor()], e)
	q.count++
	q.bytes += n.size()
	for q.count > maxEarly || q.bytes > maxEarlyBytes && q.count > 1 {
		out = append(out, q.shift()...)
	}
	return out
}

// shift takes the oldest off.
func (q *parking) shift() []Notice {
	e := q.list[0]
	q.list[0] = nil
	q.list = q.list[1:]
	if e.gone {
		return nil
	}
	n := e.n
	at := n.waitsFor()
	if rest := q.byJob[at][1:]; len(rest) > 0 { // it is the oldest here too
		q.byJob[at] = rest
	} else {
		delete(q.byJob, at)
	}
	q.remove(e)
	return []Notice{n}
}

func (q *parking) remove(e *parked) {
	q.count--
	q.bytes -= e.n.size()
	e.gone, e.n = true, Notice{}
}

// expire drops what has waited too long.
func (q *parking) expire(now Stamp) []Notice {
	var out []Notice
	for len(q.list) > 0 && (q.list[0].gone || now.Sub(q.list[0].at) >= earlyLife) {
		out = append(out, q.shift()...)
	}
	if len(q.list) == 0 {
		q.list, q.byJob = nil, nil
	}
	return out
}

// next is when expire has something to do again; q is not empty.
func (q *parking) next() Stamp { return q.list[0].at.Add(earlyLife) }

// take removes and returns the notices of a job, in the order they came: first
// those that name its id.
func (q *parking) take(key Key, client string) []Notice {
	if q.count == 0 {
		return nil
	}
	var out []Notice
	for _, at := range []parkedFor{{key: key}, {key: Key{Route: key.Route}, client: client}} {
		if at.key.ID == "" && client == "" {
			continue
		}
		for _, e := range q.byJob[at] {
			out = append(out, e.n)
			q.remove(e)
		}
		delete(q.byJob, at)
	}
	return out
}

// has reports whether a notice, or a repeat of it, waits.
func (q *parking) has(n *Notice) bool {
	for _, e := range q.byJob[n.waitsFor()] {
		if e.n.repeats(n) {
			return true
		}
	}
	return false
}

// repeats reports whether two notices have the same noticeID. It makes none:
// ten thousand may wait for one job.
func (n *Notice) repeats(o *Notice) bool {
	if n.Key != o.Key || n.ClientKey != o.ClientKey || n.EventID != o.EventID {
		return false
	}
	return n.EventID != "" || n.Report.State == o.Report.State && n.Trust == o.Trust
}

func (q *parking) len() int { return q.count }

// maxEvents bounds the event ids that are remembered, per generation of two.
const maxEvents = 32_768

type eventID struct{ route, id string }

// eventIDs remembers the events that were taken over: two generations, of
// which the older goes when the newer is full.
type eventIDs struct{ young, old map[eventID]struct{} }

func (e *eventIDs) seen(n Notice) bool {
	if n.EventID == "" {
		return false
	}
	id := eventID{n.Key.Route, n.EventID}
	if _, ok := e.young[id]; ok {
		return true
	}
	_, ok := e.old[id]
	return ok
}

func (e *eventIDs) add(n Notice) {
	if n.EventID == "" || len(n.EventID) > 1024 {
		return
	}
	if e.young == nil {
		e.young = map[eventID]struct{}{}
	}
	if len(e.young) >= maxEvents {
		e.old, e.young = e.young, map[eventID]struct{}{}
	}
	e.young[eventID{n.Key.Route, n.EventID}] = struct{}{}
}
