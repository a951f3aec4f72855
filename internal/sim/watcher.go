package sim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/jobpoll/jobpoll"
)

// Watcher plays jobs as the Poller does: Schedule.Next says when to look,
// Track.Observe takes the answer in, and the Learner what it tells of how long
// jobs take.
type Watcher struct {
	Schedule jobpoll.Schedule
	Learner  *jobpoll.Learner // nil: the table only
	Frozen   bool             // the Learner plans, and learns no more
	Exact    bool             // the provider tells when a job has finished
	Rand     *rand.Rand
	// Learnt, if set, is told all that the Learner takes in.
	Learnt func(jobpoll.Sample)

	begun int           // jobs so far, for their ids
	over  time.Duration // how long all plays so far took: the next goes on from there
}

// Family is the family of all profiles that a Watcher plays.
const Family = "sim"

// epoch is when all plays begin.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// watch is a job under way.
type watch struct {
	job     jobpoll.Job
	track   jobpoll.Track
	takes   time.Duration
	pending time.Duration // the age at which it was last seen unfinished
}

// event is the next that happens to a job: it starts, or is looked at.
type event struct {
	at   time.Duration
	i    int
	look bool
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].i < e[j].i
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop implements heap.Interface.
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// Play plays the jobs in the order in which things happen to them.
func (w *Watcher) Play(jobs []Job) []Seen {
	all, under := make([]Seen, len(jobs)), make([]watch, len(jobs))
	due := make(events, len(jobs))
	for i, j := range jobs {
		due[i] = event{at: j.Start, i: i}
	}
	heap.Init(&due)
	var last time.Duration
	for len(due) > 0 {
		e := due[0]
		o := &under[e.i]
		if !e.look {
			*o = w.begin(&jobs[e.i])
		} else if late, ended := w.look(o, e.at); ended {
			all[e.i] = Seen{int(o.track.Looks), late}
			last = heap.Pop(&due).(event).at
			continue
		}
		due[0] = event{at: w.next(o, e.at, 1), i: e.i, look: true}
		heap.Fix(&due, 0)
	}
	w.over += last
	return all
}

// instant gives the time of an offset in the present play.
func (w *Watcher) instant(at time.Duration) time.Time { return epoch.Add(w.over + at) }

func (w *Watcher) begin(j *Job) watch {
	w.begun++
	return watch{takes: j.Takes, job: jobpoll.Job{
		Route: "sim", ID: strconv.Itoa(w.begun), Profile: j.Name, Expected: j.Expected, SubmittedAt: w.instant(j.Start),
	}}
}

// look looks at a job, and says by how much too late if it has ended.
func (w *Watcher) look(o *watch, at time.Duration) (late float64, ended bool) {
	now := w.instant(at)
	age := now.Sub(o.job.SubmittedAt)
	r := jobpoll.Report{State: jobpoll.StateRunning}
	if age < o.takes {
		o.track, _ = o.track.Observe(r, nil, now)
		o.pending = age
		return 0, false
	}
	r.State = jobpoll.StateSucceeded
	o.track, _ = o.track.Observe(r, nil, now)
	if w.Learner != nil && !w.Frozen {
		s := jobpoll.Sample{Family: Family, Profile: o.job.Profile, After: o.pending, By: age, At: now}
		if w.Exact {
			s.After, s.By = o.takes, o.takes
		}
		w.Learner.Observe(s)
		if w.Learnt != nil {
			w.Learnt(s)
		}
	}
	return (age - o.takes).Seconds(), true
}

// unlimited never ends a watch for time: what is played is when to look.
var unlimited = jobpoll.StopRules{MaxAge: jobpoll.NoLimit, NoProgress: jobpoll.NoLimit}

// next gives the instant of the next look, where a look costs price times what
// it usually does.
func (w *Watcher) next(o *watch, at time.Duration, price float64) time.Duration {
	in := jobpoll.Input{
		Job: o.job, Track: o.track, Stop: unlimited, Price: price, Now: w.instant(at), Rand: w.Rand.Float64(),
	}
	if w.Learner != nil {
		in.Plan = w.Learner.Plan(Family, o.job.Profile, w.Schedule)
	}
	d := w.Schedule.Next(in)
	if d.Stop != jobpoll.ReasonNone {
		panic(fmt.Sprintf("sim: job %s stops after %v: %v", o.job.ID, in.Now.Sub(o.job.SubmittedAt), d.Stop)) // nothing here ends a watch
	}
	return d.At.Sub(epoch) - w.over
}
