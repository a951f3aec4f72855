package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/internal/durations"
	"github.com/jobpoll/jobpoll/internal/sim"
)

// drift lets all durations change after 150 jobs, and judges the jobs 50 to
// 100 after that.
func drift(seed uint64) []task {
	const before, from, to = 150, 50, 100
	const c = 2
	var tasks []task
	for i, s := range sim.Generated() {
		for _, by := range []float64{2, 0.5} {
			tasks = append(tasks, func() []figure {
				r := sim.Random(seed*1000 + uint64(i))
				after := sim.Set{Name: s.Name, Profiles: append([]sim.Profile(nil), s.Profiles...)}
				after.Profiles[0].Dist = sim.Scaled{Dist: s.Profiles[0].Dist, By: by}
				optima := sim.Optima(after, c)
				w := &sim.Watcher{Schedule: schedule(c), Learner: newLearner(), Rand: r}
				w.Play(sim.OneByOne(s, before, r))
				jobs := sim.OneByOne(after, to, r)
				ratio := func(seen []sim.Seen, from, to int) float64 {
					return sim.Cost(seen[from:to], c) / sim.Cost(sim.PlayLooks(optima, jobs[from:to]), c)
				}
				seen := w.Play(jobs)
				row := fmt.Sprintf("x %g", by)
				return []figure{
					{"drift " + row, s.Name, "jobs 0 to 10", ratio(seen, 0, 10)},
					{"drift " + row, s.Name, "10 to 50", ratio(seen, 10, from)},
					{"drift " + row, s.Name, "50 to 100", ratio(seen, from, to)},
				}
			})
		}
	}
	return tasks
}

// calm counts how often a change is seen where there is none.
func calm(seed uint64) []task {
	const jobs, c = 3000, 2
	var tasks []task
	for i, s := range sim.Generated() {
		tasks = append(tasks, func() []figure {
			w, seen := counted(sim.Random(seed*1000+uint64(i)), c)
			w.Play(sim.OneByOne(s, jobs, w.Rand))
			return []figure{{"calm", s.Name, "changes", float64(seen.Resets(sim.Family, s.Name))}}
		})
	}
	return tasks
}

// counted gives a watcher, and a table that takes in the same and tells what
// the Learner does not.
func counted(r *rand.Rand, c float64) (*sim.Watcher, *durations.Table) {
	seen := durations.New(0)
	w := &sim.Watcher{Schedule: schedule(c), Learner: newLearner(), Rand: r}
	w.Learnt = func(o jobpoll.Sample) {
		seen.Learn(durations.Sample{Family: o.Family, Profile: o.Profile, After: o.After, By: o.By, At: o.At})
		seen.Plan(o.Family, o.Profile, durations.Terms{Cost: c})
	}
	return w, seen
}
