package main

import "github.com/jobpoll/jobpoll/internal/sim"

// budget lets jobs of three classes share a part of the looks that they took
// while looks were free, and judges their delay by the bound that no policy
// stays below. The first jobs, in which things settle, do not count.
func budget(seed uint64, jobs int) []task {
	const c = 2.0
	settling := jobs / 10
	set := sim.Mixed()
	shares := make([]sim.Share, len(set.Profiles))
	for i, p := range set.Profiles {
		shares[i] = sim.Share{Part: p.Weight, Dist: p.Dist}
	}
	var tasks []task
	for _, part := range []struct {
		name string
		of   float64
	}{{"3/4", 0.75}, {"1/2", 0.5}} {
		tasks = append(tasks, func() []figure {
			r := sim.Random(seed)
			all := sim.Rate(set, jobs, 1, r)
			perSecond := float64(jobs) / all[jobs-1].Start.Seconds()
			// delay plays the jobs freely, which also shows the demand, and then
			// with a part of it.
			delay := func(order sim.Order) float64 {
				w := &sim.Watcher{Schedule: schedule(c), Learner: newLearner(), Rand: sim.Random(seed)}
				demand, _ := sim.Mean(w.Play(all)[settling:])
				looks := part.of * demand
				_, late := sim.Mean(w.PlayShared(all, looks*perSecond, order)[settling:])
				bound, _ := sim.Bound(shares, looks)
				return late / bound
			}
			return []figure{
				{"budget", part.name, "worth first", delay(sim.WorthFirst)},
				{"budget", part.name, "in turn", delay(sim.InTurn)},
			}
		})
	}
	return tasks
}
