package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/internal/sim"
)

// prices are what a look may cost, in seconds of delay.
var prices = []float64{0.5, 2, 10}

// completions are after how many the learnt is judged.
var completions = []int{20, 50, 200}

// settled is for how many jobs a plan is judged that learns no more.
const settled = 600

func priceName(c float64) string { return fmt.Sprintf("c = %g", c) }

func schedule(c float64) jobpoll.Schedule { return jobpoll.Schedule{PollCost: sim.Seconds(c)} }

// judge gives the cost of a watcher that learns no more, over that of the
// optimum, on the same jobs.
func judge(w *sim.Watcher, s sim.Set, k int, c float64, optimum sim.Looks, expected float64, r *rand.Rand) float64 {
	jobs := make([]sim.Job, settled)
	plans := make([]sim.Looks, k+1)
	plans[k] = optimum
	for i, t := range sim.Even(s.Profiles[k].Dist, settled, r) {
		jobs[i] = sim.Job{Profile: k, Name: s.Profiles[k].Name, Takes: sim.Seconds(t), Expected: sim.Seconds(expected)}
	}
	w.Frozen = true
	all := w.Play(jobs)
	w.Frozen = false
	return sim.Cost(all, c) / sim.Cost(sim.PlayLooks(plans, jobs), c)
}

// learning judges what is learnt after so many completions, from looks of
// one's own at jobs of which nothing is expected.
func learning(seed uint64) []task {
	var tasks []task
	for i, s := range sim.Generated() {
		for _, c := range prices {
			tasks = append(tasks, func() []figure {
				var all []figure
				r := sim.Random(seed*1000 + uint64(i))
				optimum := sim.Optimum(s.Profiles[0].Dist, c)
				w := &sim.Watcher{Schedule: schedule(c), Learner: newLearner(), Rand: r}
				seen := 0
				for _, n := range completions {
					w.Play(sim.OneByOne(s, n-seen, r))
					seen = n
					all = append(all, figure{"learning", s.Name, fmt.Sprintf("%s, n = %d", priceName(c), n), judge(w, s, 0, c, optimum, 0, r)})
				}
				return all
			})
		}
	}
	return tasks
}

// estimates are what a caller may expect of a job, in parts of its median.
var estimates = []struct {
	name string
	by   float64
}{{"right", 1}, {"4 x", 4}, {"1/4 x", 0.25}, {"none", 0}}

// cold judges the table, which stands until something is learnt.
func cold(seed uint64) []task {
	var tasks []task
	for i, s := range sim.Generated() {
		tasks = append(tasks, func() []figure {
			var all []figure
			r := sim.Random(seed*1000 + uint64(i))
			for _, c := range prices {
				optimum := sim.Optimum(s.Profiles[0].Dist, c)
				for _, e := range estimates {
					w := &sim.Watcher{Schedule: schedule(c), Rand: r}
					v := judge(w, s, 0, c, optimum, e.by*s.Profiles[0].Expected, r)
					all = append(all, figure{"cold", s.Name, priceName(c) + ", " + e.name, v})
				}
			}
			return all
		})
	}
	return tasks
}

// steady judges profiles with almost no spread, after 50 jobs of each.
func steady(seed uint64) []task {
	_, _, _, video := sim.Measured()
	var tasks []task
	for _, c := range prices {
		tasks = append(tasks, func() []figure {
			var all []figure
			r := sim.Random(seed)
			w := &sim.Watcher{Schedule: schedule(c), Learner: newLearner(), Rand: r}
			even := sim.Set{Name: video.Name, Profiles: append([]sim.Profile(nil), video.Profiles...)}
			for i := range even.Profiles {
				even.Profiles[i].Weight = 1
			}
			w.Play(sim.OneByOne(even, 50*len(even.Profiles), r))
			for k, p := range even.Profiles {
				all = append(all, figure{"steady", p.Name, priceName(c), judge(w, even, k, c, sim.Optimum(p.Dist, c), 0, r)})
			}
			return all
		})
	}
	return tasks
}

func newLearner() *jobpoll.Learner { return jobpoll.NewLearner(0) }
