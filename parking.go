package jobpoll

import (
	"slices"
	"strings"
	"time"
)

// Bounds of the notices that wait for their job.
const (
	maxEarly      = 10_000
	maxEarlyBytes = 16 << 20
	maxEarlyOfJob = 64
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
	r := &n.Report
	size := 512 + len(n.Key.Route) + len(n.Key.ID) + len(n.ClientKey) + len(n.EventID) + len(r.RawStatus) + len(r.Output) + len(r.Ref)
	if f := r.Failure; f != nil {
		size += len(f.Code) + len(f.Message)
	}
	return size
}

// own copies the texts, which may be parts of a large body.
func (n *Notice) own() {
	for _, s := range [...]*string{&n.Key.Route, &n.Key.ID, &n.ClientKey, &n.EventID, &n.Report.RawStatus, &n.Report.Ref} {
		*s = strings.Clone(*s)
	}
	if f := n.Report.Failure; f != nil {
		n.Report.Failure = &Failure{Kind: f.Kind, Code: strings.Clone(f.Code), Message: strings.Clone(f.Message)}
	}
}

// park adds a notice and returns those that had to go for it: the oldest, or
// where one job has too many, the oldest of that job.
func (q *parking) park(n Notice, now Stamp) []Notice {
	n.own()
	out := q.expire(now)
	if of := q.byJob[n.waitsFor()]; len(of) >= maxEarlyOfJob {
		out = append(out, of[0].n)
		q.remove(of[0])
		q.byJob[n.waitsFor()] = of[1:]
	}
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

// hasEvent reports whether the event of a notice waits.
func (q *parking) hasEvent(n *Notice) bool { return n.EventID != "" && q.has(n) }

// repeats reports whether two notices have the same noticeID. It makes none:
// ten thousand may wait for one job.
func (n *Notice) repeats(o *Notice) bool {
	if n.Key != o.Key || n.ClientKey != o.ClientKey || n.EventID != o.EventID {
		return false
	}
	return n.EventID != "" || n.Report.State == o.Report.State && n.Trust == o.Trust
}

func (q *parking) len() int { return q.count }
