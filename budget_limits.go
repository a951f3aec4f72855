package jobpoll

import (
	"fmt"
	"math"
)

// Lane is the kind of a call: the two have capacities of their own in a
// Budget.
type Lane uint8

// The lanes.
const (
	LaneStatus Lane = iota // looks at jobs, and all else that is not a submission
	LaneSubmit             // submissions
)

const laneCount = 2

var laneNames = []string{"status", "submit"}

// String returns the lane's name in lower case.
func (l Lane) String() string { return enumName(laneNames, int(l)) }

// MarshalText writes the name.
func (l Lane) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads a name; one that is not known reads as a Lane that is
// neither and that no Budget grants a call in.
func (l *Lane) UnmarshalText(b []byte) error {
	*l = Lane(enumValue(laneNames, string(b), math.MaxUint8))
	return nil
}

func (l Lane) other() Lane { return LaneSubmit - l }

// Limit bounds calls. In every field zero means no limit of that kind (in a
// child: only what the parents allow). Negative, NaN and infinite values are
// faults: New refuses the budget, and until then they count as zero.
type Limit struct {
	// Rate is in calls per second.
	Rate float64 `json:"rate,omitempty"`
	// Burst is how many calls may go out at once after a quiet time; in any
	// time t no more than Burst + Rate·t do. Zero with a Rate: what the Rate
	// allows in 100 ms, at least 1. Without a Rate it means nothing.
	Burst int `json:"burst,omitempty"`
	// Concurrent is how many calls may be under way at once.
	Concurrent int `json:"concurrent,omitempty"`
}

// LaneLimits are the limits of one lane.
type LaneLimits struct {
	// Limit is the lane's own ceiling, below Total. It is never lent. Zero: the
	// lane may use the whole of Total.
	Limit
	// Reserve is the part of Total that is guaranteed to the lane. A field of
	// it has a meaning only where the same field of Total is set.
	//
	// Rate and Burst are lent to the other lane while this one has nothing to
	// send and taken back with the next token. The default for Burst is that
	// of every Limit. Slots (Concurrent) cannot be taken back from a call that
	// is under way, so they are never lent; the default is 1 where Reserve.Rate
	// is set and Total.Concurrent is more than 1, else 0.
	//
	// Faults are reserves that exceed Total, alone or together, and slots that
	// leave none to the other lane; they are cut.
	Reserve Limit `json:"reserve,omitzero"`
}

// Limits are the limits of one node of a budget. The zero Limits bound
// nothing; in a child, the parent binds.
type Limits struct {
	// Total bounds both lanes together.
	Total Limit `json:"total,omitzero"`
	// Status and Submit bound and guarantee each lane's share.
	Status LaneLimits `json:"status,omitzero"`
	Submit LaneLimits `json:"submit,omitzero"`
	// Jobs is how many remote jobs may run at once: submissions wait while so
	// many are unresolved or being submitted (a submission holds its place
	// until done: call Watch before it). One of Poller.Submit whose answer was lost
	// may have made a job, so it holds its place until it is found or surely not
	// there, resolved (Poller.Resolve), or StopRules.MaxAge old. A job whose watch
	// has ended without the provider's word (Poller.Abandon, Job.Deadline, errors)
	// may run on, so it holds its place until a notice tells its end, or until it
	// is MaxAge old. Status calls do not wait. Zero: no limit. Negative is a fault and counts as zero.
	Jobs int `json:"jobs,omitempty"`
}

// lane is the limits of one lane.
func (l *Limits) lane(n Lane) *LaneLimits {
	if n == LaneSubmit {
		return &l.Submit
	}
	return &l.Status
}

// clean returns the limits with every fault made safe, and the faults.
func (l Limits) clean() (Limits, []string) {
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	count := func(name string, v *int) {
		if *v < 0 {
			fault("%s %d is negative", name, *v)
			*v = 0
		}
	}
	limit := func(name string, v *Limit) {
		switch {
		case math.IsNaN(v.Rate) || math.IsInf(v.Rate, 0):
			fault("%s.Rate %v is not finite", name, v.Rate)
			v.Rate = 0
		case v.Rate < 0:
			fault("%s.Rate %v is negative", name, v.Rate)
			v.Rate = 0
		}
		count(name+".Burst", &v.Burst)
		count(name+".Concurrent", &v.Concurrent)
	}
	limit("Total", &l.Total)
	limit("Status", &l.Status.Limit)
	limit("Status.Reserve", &l.Status.Reserve)
	limit("Submit", &l.Submit.Limit)
	limit("Submit.Reserve", &l.Submit.Reserve)
	count("Jobs", &l.Jobs)

	status, submit, total := &l.Status.Reserve, &l.Submit.Reserve, l.Total
	within := func(field string, a, b, all float64) (float64, float64) {
		if all <= 0 {
			return a, b
		}
		if a > all {
			fault("Status.Reserve.%s %v exceeds Total.%s %v", field, a, field, all)
		}
		if b > all {
			fault("Submit.Reserve.%s %v exceeds Total.%s %v", field, b, field, all)
		}
		if a <= all && b <= all && field != "Burst" && a+b > all*(1+1e-9) { // 0.1+0.2 is 0.3
			fault("Status.Reserve.%s %v and Submit.Reserve.%s %v together exceed Total.%s %v", field, a, field, b, field, all)
		}
		a, b = min(a, all), min(b, all)
		if field != "Burst" {
			a = min(a, all-b)
		}
		return a, b
	}
	status.Rate, submit.Rate = within("Rate", status.Rate, submit.Rate, total.Rate)
	a, b := within("Burst", float64(status.Burst), float64(submit.Burst), float64(total.Burst))
	status.Burst, submit.Burst = int(a), int(b)
	a, b = within("Concurrent", float64(status.Concurrent), float64(submit.Concurrent), float64(total.Concurrent))
	status.Concurrent, submit.Concurrent = int(a), int(b)
	if c := total.Concurrent; c > 0 {
		// Slots are never lent: all of them reserved would close the other lane for ever.
		if status.Concurrent == c {
			fault("Status.Reserve.Concurrent %d leaves no slot of Total.Concurrent %d to Submit", c, c)
			status.Concurrent = c - 1
		}
		if submit.Concurrent == c {
			fault("Submit.Reserve.Concurrent %d leaves no slot of Total.Concurrent %d to Status", c, c)
			submit.Concurrent = c - 1
		}
	}
	return l, faults
}

// burst is the burst in force.
func (l Limit) burst() int {
	if l.Burst > 0 || l.Rate <= 0 {
		return l.Burst
	}
	return int(min(max(1, math.Ceil(l.Rate/10)), math.MaxInt32))
}

// slots gives how many slots of Total are kept free for each lane, for limits
// that are clean.
func (l *Limits) slots() (kept [laneCount]int) {
	total := l.Total.Concurrent
	if total == 0 {
		return kept
	}
	for _, n := range []Lane{LaneStatus, LaneSubmit} {
		own := l.lane(n)
		kept[n] = own.Reserve.Concurrent
		if kept[n] == 0 && own.Reserve.Rate > 0 && total > 1 {
			kept[n] = 1
		}
		if own.Concurrent > 0 {
			kept[n] = min(kept[n], own.Concurrent) // more could never be used
		}
	}
	return kept
}
