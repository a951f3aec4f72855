package jobpoll

import (
	"math/bits"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// BackOff is the interface that cenkalti/backoff v4 and v5 share.
type BackOff interface {
	NextBackOff() time.Duration
	Reset()
}

// maxLadder bounds the delays that Ladder takes from a BackOff.
const maxLadder = 64

// A ladder that holds one of these was made from a BackOff that gives none;
// New says so.
const (
	ladderStops  time.Duration = backoff.Stop // it stops at once
	ladderRandom time.Duration = -2           // two runs differ
)

// Ladder turns any BackOff into plain delays for Schedule.Delays. It resets b
// first and takes at most 64 delays; one that ends (backoff.Stop) repeats its
// last delay, and equal delays at the end are kept once. b is not used after.
//
// The ladder is only the growth: jitter, caps and stop rules are the
// Schedule's. So b must not be random (set RandomizationFactor to 0), and New
// and Schedule.Validate refuse the ladder of one that is, that stops at once, or
// that gives delays that are zero or negative.
func Ladder(b BackOff) []time.Duration {
	one, two := climb(b), climb(b)
	if len(one) == 0 {
		return []time.Duration{ladderStops}
	}
	if !slices.Equal(one, two) {
		return []time.Duration{ladderRandom}
	}
	for len(one) > 1 && one[len(one)-1] == one[len(one)-2] {
		one = one[:len(one)-1]
	}
	return one
}

func climb(b BackOff) []time.Duration {
	b.Reset()
	var d []time.Duration
	for len(d) < maxLadder {
		n := b.NextBackOff()
		if n == backoff.Stop {
			break
		}
		d = append(d, n)
	}
	return d
}

// growth is the default ladder, as multiples of the base: the library's own
// exponential backoff with randomisation off.
var growth = func() []time.Duration {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(1),
		backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0),
		backoff.WithMaxInterval(1<<20),
		backoff.WithMaxElapsedTime(0),
	)
	return Ladder(b)
}()

// grow gives min(limit, base·2ⁿ) and never wraps.
func grow(base time.Duration, n int32, limit time.Duration) time.Duration {
	if base >= limit {
		return limit
	}
	if base <= 0 {
		return 0
	}
	f := growth[min(max(int(n), 0), len(growth)-1)]
	if over, d := bits.Mul64(uint64(base), uint64(f)); over == 0 && d < uint64(limit) {
		return time.Duration(d)
	}
	return limit
}
