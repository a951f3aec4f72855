package sim

import (
	"math/rand/v2"
	"time"
)

// Job is one job of a set.
type Job struct {
	Profile  int    // its place in Set.Profiles
	Name     string // of the profile
	Start    time.Duration
	Takes    time.Duration
	Expected time.Duration // what its caller says; zero: nothing
}

// Seconds gives a duration as time.Duration has it.
func Seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Random is the source that everything here draws from: the same for the same
// seed, in every run.
func Random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)) }

// OneByOne makes n jobs of a set of which each starts when the one before is
// long over, so that its end is known.
func OneByOne(s Set, n int, r *rand.Rand) []Job {
	jobs, at := make([]Job, n), time.Duration(0)
	for i := range jobs {
		jobs[i] = s.job(r)
		jobs[i].Start = at
		at += 20*jobs[i].Takes + time.Hour
	}
	return jobs
}

// AtOnce makes n jobs that start at random instants, so that on average so many
// run at the same time.
func AtOnce(s Set, n int, together float64, r *rand.Rand) []Job {
	jobs, total := make([]Job, n), 0.0
	for i := range jobs {
		jobs[i] = s.job(r)
		total += jobs[i].Takes.Seconds()
	}
	gap, at := total/float64(n)/together, 0.0
	for i := range jobs {
		at += gap * r.ExpFloat64()
		jobs[i].Start = Seconds(at)
	}
	return jobs
}

// Rate makes n jobs that start at random instants, so many a second.
func Rate(s Set, n int, perSecond float64, r *rand.Rand) []Job {
	jobs, at := make([]Job, n), 0.0
	for i := range jobs {
		jobs[i] = s.job(r)
		at += r.ExpFloat64() / perSecond
		jobs[i].Start = Seconds(at)
	}
	return jobs
}

// job draws a job of the set.
func (s Set) job(r *rand.Rand) Job {
	total := 0.0
	for _, p := range s.Profiles {
		total += p.Weight
	}
	at, k := r.Float64()*total, 0
	for k < len(s.Profiles)-1 && at >= s.Profiles[k].Weight {
		at -= s.Profiles[k].Weight
		k++
	}
	p := s.Profiles[k]
	return Job{Profile: k, Name: p.Name, Takes: Seconds(Draw(p.Dist, r))}
}

// WithExpected gives the jobs with what their callers expect: the median of
// the profile, times by.
func (s Set) WithExpected(jobs []Job, by float64) []Job {
	all := make([]Job, len(jobs))
	for i, j := range jobs {
		j.Expected = Seconds(by * s.Profiles[j.Profile].Expected)
		all[i] = j
	}
	return all
}
