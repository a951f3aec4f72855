package main

import (
	"github.com/jobpoll/jobpoll/internal/sim"
)

// together is how many jobs of a replay run at the same time on average.
const together = 4

// replayed are the sets that are played from the first job on.
func replayed(jobs int) []struct {
	set  sim.Set
	jobs int
} {
	images, ci, gpu, video := sim.Measured()
	type row = struct {
		set  sim.Set
		jobs int
	}
	all := []row{{images, jobs}, {ci, jobs / 15}, {gpu, jobs / 15}, {video, jobs / 15}}
	for _, s := range sim.Generated() {
		all = append(all, row{s, jobs / 15})
	}
	return all
}

// replay plays each set from its first job on, of which nothing is expected,
// through the learner and beside it through the optimum of each profile, the
// table that knows the right class, a fixed 5 s, and all peers.
func replay(seed uint64, jobs int) []task {
	var tasks []task
	for i, p := range replayed(jobs) {
		tasks = append(tasks, func() []figure {
			r := sim.Random(seed*1000 + uint64(i))
			jobs := sim.AtOnce(p.set, p.jobs, together, r)
			known := p.set.WithExpected(jobs, 1)
			fixed := sim.FixedPeer("", 5).Play(jobs, r)
			peers := make([][]sim.Seen, len(sim.Peers))
			for i, peer := range sim.Peers {
				peers[i] = peer.Play(jobs, r)
			}
			var all []figure
			for _, c := range prices {
				col := priceName(c)
				add := func(table, row string, v float64) { all = append(all, figure{table, row, col, v}) }
				w := sim.Watcher{Schedule: schedule(c), Learner: newLearner(), Rand: r}
				own := sim.Cost(w.Play(jobs), c)
				table := sim.Watcher{Schedule: schedule(c), Rand: r}
				add("replay", p.set.Name, own/sim.Cost(sim.PlayLooks(sim.Optima(p.set, c), jobs), c))
				add("beside the table", p.set.Name, own/sim.Cost(table.Play(known), c))
				add("beside 5 s", p.set.Name, own/sim.Cost(fixed, c))
				for i, peer := range sim.Peers {
					add("peers on "+p.set.Name, peer.Name, sim.Cost(peers[i], c)/own)
				}
			}
			return all
		})
	}
	return tasks
}
