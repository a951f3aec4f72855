package jobpoll

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/require"
)

// steps is a BackOff that gives these delays and then stops, or goes on with
// the last one.
type steps struct {
	d      []time.Duration
	forget bool // Reset does nothing
	ends   bool
	n      int
}

func (s *steps) NextBackOff() time.Duration {
	if s.n < len(s.d) {
		s.n++
		return s.d[s.n-1]
	}
	if s.ends || len(s.d) == 0 {
		return backoff.Stop
	}
	return s.d[len(s.d)-1]
}

func (s *steps) Reset() {
	if !s.forget {
		s.n = 0
	}
}

func exponential(opts ...backoff.ExponentialBackOffOpts) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(append([]backoff.ExponentialBackOffOpts{
		backoff.WithInitialInterval(2 * sec), backoff.WithMultiplier(2), backoff.WithMaxInterval(mnt), backoff.WithRandomizationFactor(0),
	}, opts...)...)
}

func TestLadderTurnsABackOffIntoDelays(t *testing.T) {
	used := &steps{d: secs(1, 2, 3)}
	used.NextBackOff()
	random := []time.Duration{ladderRandom}
	for name, tt := range map[string]struct {
		b    BackOff
		want []time.Duration
	}{
		"exponential":                       {exponential(), secs(2, 4, 8, 16, 32, 60)},
		"constant":                          {backoff.NewConstantBackOff(7 * sec), secs(7)},
		"bounded tries":                     {backoff.WithMaxRetries(exponential(), 3), secs(2, 4, 8)},
		"one that ends repeats its last":    {&steps{d: secs(1, 5), ends: true}, secs(1, 5)},
		"it resets first":                   {used, secs(1, 2, 3)},
		"equal delays in the middle stay":   {&steps{d: secs(1, 1, 2, 2, 3)}, secs(1, 1, 2, 2, 3)},
		"falling":                           {&steps{d: secs(9, 3)}, secs(9, 3)},
		"one that stops at once":            {&backoff.StopBackOff{}, []time.Duration{ladderStops}},
		"one that gives zero":               {&backoff.ZeroBackOff{}, []time.Duration{0}},
		"random":                            {backoff.NewExponentialBackOff(), random},
		"one that does not reset":           {&steps{d: secs(1, 2, 3), forget: true}, random},
		"one that does not reset and ends":  {&steps{d: secs(1, 1, 1), forget: true, ends: true}, random},
		"a negative delay is New's to tell": {&steps{d: []time.Duration{sec, -5}}, []time.Duration{sec, -5}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, Ladder(tt.b)) })
	}
	require.Len(t, Ladder(&counter{}), maxLadder, "one that grows for ever is cut")
}

// counter never gives the same delay twice in a run.
type counter struct{ n time.Duration }

func (c *counter) NextBackOff() time.Duration { c.n++; return c.n * sec }
func (c *counter) Reset()                     { c.n = 0 }

// A BackOff whose second run is longer than its first is not plain either.
func TestLadderComparesWholeRuns(t *testing.T) {
	require.Equal(t, []time.Duration{ladderRandom}, Ladder(&longer{}))
}

type longer struct{ runs, n int }

func (l *longer) NextBackOff() time.Duration {
	if l.n >= l.runs {
		return backoff.Stop
	}
	l.n++
	return sec
}
func (l *longer) Reset() { l.runs++; l.n = 0 }

func TestLadderMakesTheSchedule(t *testing.T) {
	s := Schedule{Delays: Ladder(exponential()), Jitter: NoJitter}
	r := game{schedule: s, expected: 5 * mnt, provider: until(200*sec, script(StateRunning))}.play(t)
	require.Equal(t, secs(2, 4, 8, 16, 32, 60, 60, 60), r.gaps())
}

func TestDefaultGrowthDoubles(t *testing.T) {
	require.Equal(t, time.Duration(1), growth[0])
	for i := 1; i < len(growth); i++ {
		require.Equal(t, 2*growth[i-1], growth[i])
	}
	require.Equal(t, time.Duration(1<<20), growth[len(growth)-1])
}

// FuzzLadder climbs synthetic BackOffs.
func FuzzLadder(f *testing.F) {
	f.Add(uint64(1), uint8(3), uint8(0))
	f.Add(uint64(2), uint8(0), uint8(7))
	f.Add(uint64(3), uint8(255), uint8(2))
	f.Fuzz(func(t *testing.T, seed uint64, n, flags uint8) {
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		b := &steps{forget: flags&1 != 0, ends: flags&2 != 0}
		for range n {
			d := time.Duration(rng.Int64()) >> rng.IntN(63)
			if flags&4 != 0 && rng.IntN(8) == 0 {
				d = -d
			}
			b.d = append(b.d, d)
		}
		l := Ladder(b)
		require.NotEmpty(t, l)
		require.LessOrEqual(t, len(l), maxLadder)
		if len(l) > 1 {
			require.NotEqual(t, l[len(l)-1], l[len(l)-2], "kept once")
		}
		if l[0] != ladderRandom && l[0] != ladderStops && !b.forget {
			for i, d := range l {
				require.Equal(t, b.d[min(i, len(b.d)-1)], d)
			}
		}
		s := Schedule{Delays: l, Jitter: 1}
		at := t0
		var tr Track
		for range 5 {
			d := s.Next(Input{Track: tr, Now: at, Rand: rng.Float64(), Stop: StopRules{MaxAge: NoLimit}})
			if tr.Looks > 0 {
				require.GreaterOrEqual(t, d.At.Sub(at), DefaultMinDelay)
			}
			at = d.At
			tr, _ = tr.Observe(Report{State: StateRunning}, nil, at)
		}
	})
}

func TestValidateNamesTheFaultsOfASchedule(t *testing.T) {
	require.NoError(t, Schedule{}.Validate())
	err := Schedule{Delays: Ladder(backoff.NewExponentialBackOff()), Jitter: 2}.Validate()
	require.ErrorContains(t, err, "Schedule.Delays: the BackOff is random")
	require.ErrorContains(t, err, "Schedule.Jitter")
}
