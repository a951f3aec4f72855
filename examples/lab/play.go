package main

import (
	"fmt"
	"math"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/internal/sim"
)

// point is how a policy does: looks and seconds of delay, a job on average.
type point struct {
	name        string
	looks, late float64
}

func (p point) cost(price float64) float64 { return price*p.looks + p.late }

// learned is how the learner does at the jobs that had so many completions of
// their profile before them, in parts of what the optimum does at the same jobs.
type learned struct {
	completions       float64
	cost, late, table float64
}

// results are all that is told.
type results struct {
	jobs, profiles int
	price          float64 // of a look, in seconds
	optimum        point   // at that price
	own            point
	table          point // the table that knows the right class
	unknown        point // the table that knows nothing
	peers          []point
	curve          []point // jobpoll over PollCost
	frontier       []point // the optimum over the price
	learning       []learned
}

// curvePrices are the settings of PollCost of the curve, in seconds.
var curvePrices = []float64{0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50}

const (
	frontierPoints = 30
	repeats        = 5 // of the learner, with other jitter, for the learning curve
	// maxCostly is how many looks a peer may make in all before the rest of
	// its jobs is left out.
	maxCostly = 200_000_000
)

// steps is how many steps play tells of.
func steps() int { return len(sim.Peers) + len(curvePrices) + frontierPoints + repeats + 1 }

// play plays the population through all policies. step is called after each
// part of the work.
func play(p population, price float64, seed uint64, step func()) results {
	p.jobs = oneByOne(p.jobs)
	res := results{jobs: len(p.jobs), profiles: len(p.set.Profiles), price: price}
	optima := sim.Optima(p.set, price)
	best := sim.PlayLooks(optima, p.jobs)
	res.optimum = of("optimum", best)
	known := p.set.WithExpected(p.jobs, 1)
	table := watcher(price, nil, seed).Play(known)
	res.table = of("jobpoll's table, right class", table)
	res.unknown = of("jobpoll's table, nothing expected", watcher(price, nil, seed).Play(p.jobs))
	step()

	var all lessons
	for i := range repeats {
		seen := watcher(price, jobpoll.NewLearner(maxProfiles), seed+uint64(i)).Play(p.jobs)
		if i == 0 {
			res.own = of("jobpoll", seen)
		}
		all.add(p, price, seen, best, table)
		step()
	}
	res.learning = all.curve()

	for i, peer := range sim.Peers {
		res.peers = append(res.peers, of(peer.Name, peer.Play(affordable(p.jobs, peer), sim.Random(seed+uint64(i)))))
		step()
	}
	for _, c := range curvePrices {
		seen := watcher(c, jobpoll.NewLearner(maxProfiles), seed).Play(p.jobs)
		res.curve = append(res.curve, of(fmt.Sprintf("%g s", c), seen))
		step()
	}
	for i := range frontierPoints {
		c := 0.01 * math.Pow(20_000, float64(i)/(frontierPoints-1))
		res.frontier = append(res.frontier, of(fmt.Sprintf("%.3g s", c), sim.PlayLooks(sim.Optima(p.set, c), p.jobs)))
		step()
	}
	return res
}

// oneByOne lets each job begin when the one before is long over.
func oneByOne(jobs []sim.Job) []sim.Job {
	all := make([]sim.Job, len(jobs))
	var at time.Duration
	for i, j := range jobs {
		j.Start = at
		all[i] = j
		at += 20*j.Takes + time.Minute
	}
	return all
}

// affordable leaves jobs out where a peer would look for too long.
func affordable(jobs []sim.Job, p sim.Peer) []sim.Job {
	gap, total := p.Wait(40, sim.Random(1)), 0.0
	for i, j := range jobs {
		if total += j.Takes.Seconds() / gap; total > maxCostly {
			return jobs[:i]
		}
	}
	return jobs
}

func watcher(price float64, l *jobpoll.Learner, seed uint64) *sim.Watcher {
	return &sim.Watcher{Schedule: jobpoll.Schedule{PollCost: sim.Seconds(price)}, Learner: l, Rand: sim.Random(seed)}
}

func of(name string, seen []sim.Seen) point {
	looks, late := sim.Mean(seen)
	return point{name, looks, late}
}

// edges are where the bins of the learning curve begin, in completions of the
// profile before the job.
var edges = [...]int{0, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000}

// lesson is what the jobs of one bin cost in all.
type lesson struct {
	own, ownLate, best, bestLate, table float64
}

type lessons [len(edges)]lesson

// add takes one play in, job by job.
func (all *lessons) add(p population, price float64, own, best, table []sim.Seen) {
	before := make([]int, len(p.set.Profiles))
	for i, j := range p.jobs {
		b := len(edges) - 1
		for before[j.Profile] < edges[b] {
			b--
		}
		before[j.Profile]++
		l := &all[b]
		l.own += sim.Cost(own[i:i+1], price)
		l.ownLate += own[i].Late
		l.best += sim.Cost(best[i:i+1], price)
		l.bestLate += best[i].Late
		l.table += sim.Cost(table[i:i+1], price)
	}
}

// curve gives the ratios of the bins that have jobs.
func (all *lessons) curve() []learned {
	var c []learned
	for b, l := range all {
		if l.best > 0 && l.bestLate > 0 {
			c = append(c, learned{float64(edges[b]), l.own / l.best, l.ownLate / l.bestLate, l.table / l.best})
		}
	}
	return c
}
