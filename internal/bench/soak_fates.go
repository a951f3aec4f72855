package main

import (
	"errors"
	"slices"
	"time"

	"github.com/jobpoll/jobpoll"
)

// fate is what becomes of a job in the soak. It follows from the number of the
// job alone, so that nothing has to be kept for it.
type fate uint8

const (
	fateSucceeds  fate = iota // the provider says so at the end of its life
	fateFails                 // likewise
	fateNotified              // a notice tells the end; looks never do
	fateEarly                 // a notice tells the end before the job is watched
	fateAbandoned             // the caller stops watching at the end of its life
	fateDeadline              // the caller's deadline is the end of its life
	fateFlaky                 // every other look fails, then it succeeds
	fateStuck                 // every look fails, until there were too many
	fateRefused               // a look fails for good at the end of its life
	fateCount
)

var fateNames = [fateCount]string{"succeeds", "fails", "notified", "early", "abandoned", "deadline", "flaky", "stuck", "refused"}

// fateShares are per cent, and sum up to 100.
var fateShares = [fateCount]uint64{32, 10, 15, 3, 12, 8, 10, 5, 5}

// reasons are those for which the watch of such a job ends.
var fateReasons = [fateCount]jobpoll.Reason{
	jobpoll.ReasonSucceeded, jobpoll.ReasonFailed, jobpoll.ReasonSucceeded, jobpoll.ReasonSucceeded, jobpoll.ReasonAbandoned,
	jobpoll.ReasonDeadline, jobpoll.ReasonSucceeded, jobpoll.ReasonUnreachable, jobpoll.ReasonInvalid,
}

// mixed spreads the numbers of jobs (the finalizer of splitmix64).
func mixed(n int) uint64 {
	x := uint64(n) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func fateOf(n int) fate {
	at := mixed(n) % 100
	for f, share := range fateShares {
		if at < share {
			return fate(f)
		}
		at -= share
	}
	panic("the shares do not sum up to 100")
}

// lifeOf is how long a job lives: from a sixtieth of the longest life up to it.
func lifeOf(n int, longest time.Duration) time.Duration {
	part := float64(mixed(n)>>11) / (1 << 53)
	return longest/60 + time.Duration(part*float64(longest-longest/60))
}

// twice tells that the notice for the job is sent twice.
func twice(n int) bool { return mixed(n)>>8%4 == 0 }

// refusing tells that OnStop does not take the end of the job at the first call.
func refusing(n int) bool { return mixed(n)>>16%64 == 0 }

var (
	errAway    = errors.New("the provider is away")
	errRefused = &jobpoll.CheckError{Kind: jobpoll.ErrorInvalid, Err: errors.New("the provider refuses the request")}
	errLater   = errors.New("the database is away")
)

// answer is what the provider says of a job, whose life may be over; odd tells
// its first look, its third and so on.
func answer(n int, over, odd bool) (jobpoll.Report, error) {
	r := jobpoll.Report{State: jobpoll.StateRunning, RawStatus: "running", Progress: 0.5}
	switch f := fateOf(n); {
	case f == fateStuck, f == fateFlaky && !over && odd:
		return jobpoll.Report{}, errAway
	case !over:
	case f == fateRefused:
		return jobpoll.Report{}, errRefused
	case f == fateSucceeds, f == fateFlaky:
		r = succeeded(n)
	case f == fateFails:
		r = jobpoll.Report{State: jobpoll.StateFailed, RawStatus: "error", Failure: &jobpoll.Failure{Kind: jobpoll.FailureFault, Code: "E1", Message: "no frames"}}
	}
	return r, nil
}

func succeeded(n int) jobpoll.Report {
	return jobpoll.Report{State: jobpoll.StateSucceeded, RawStatus: "done", Progress: 1, Output: slices.Concat([]byte(`{"url":"https://cdn.example/`), []byte(idOf(n)), []byte(`.mp4"}`))}
}
