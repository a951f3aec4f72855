// Package sim plays populations of jobs through schedules: exactly, from a
// seed, and in virtual time. It runs the same Track.Observe, Schedule.Next,
// learner and planner as the Poller, beside the defaults of other libraries
// and beside the best that can be done where the distribution is known.
//
// Durations are float64 seconds where they are drawn and weighed, and
// time.Duration where a schedule sees them.
package sim

import (
	"math/rand/v2"
)

// Seen is how the end of one job was learnt: after how many looks, and how
// many seconds late.
type Seen struct {
	Looks int
	Late  float64
}

// Cost is what the jobs cost on average in seconds of delay, with each look at
// a price in seconds.
func Cost(all []Seen, price float64) float64 {
	looks, late := Mean(all)
	return price*looks + late
}

// Mean gives the looks and the delay in seconds, a job on average.
func Mean(all []Seen) (looks, late float64) {
	for _, s := range all {
		looks += float64(s.Looks)
		late += s.Late
	}
	n := float64(max(len(all), 1))
	return looks / n, late / n
}

// Play plays jobs through the defaults of another library.
func (p Peer) Play(jobs []Job, r *rand.Rand) []Seen {
	all := make([]Seen, len(jobs))
	for i, j := range jobs {
		takes, age := j.Takes.Seconds(), 0.0
		for n := 0; ; n++ {
			if age += p.Wait(n, r); age >= takes {
				all[i] = Seen{n + 1, age - takes}
				break
			}
		}
	}
	return all
}

// PlayLooks plays jobs through fixed looks for each profile.
func PlayLooks(plans []Looks, jobs []Job) []Seen {
	all := make([]Seen, len(jobs))
	for i, j := range jobs {
		all[i].Looks, all[i].Late = plans[j.Profile].play(j.Takes.Seconds())
	}
	return all
}

// Optima gives the optimum of each profile of a set.
func Optima(s Set, price float64) []Looks {
	plans := make([]Looks, len(s.Profiles))
	for i, p := range s.Profiles {
		plans[i] = Optimum(p.Dist, price)
	}
	return plans
}
