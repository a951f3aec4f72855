package jobpoll

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestJitterStaysInItsBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	s := Schedule{Buckets: []Bucket{{First: Span{10 * sec, 10 * sec}, Later: Span{100 * sec, 100 * sec}}}}
	lowest, highest, sum := time.Hour, time.Duration(0), 0.0
	for range 10_000 {
		d := next(s, mnt, 10*sec, StateRunning, func(in *Input) { in.Rand = rng.Float64() })
		gap := d.At.Sub(after(10 * sec))
		lowest, highest, sum = min(lowest, gap), max(highest, gap), sum+gap.Seconds()
	}
	require.GreaterOrEqual(t, lowest, 16*sec)
	require.LessOrEqual(t, highest, 24*sec)
	require.Less(t, lowest, 16*sec+sec/10, "the whole range is used")
	require.Greater(t, highest, 24*sec-sec/10)
	require.InDelta(t, 20, sum/10_000, 0.1)
}

func TestSpreadIsTheSameForEver(t *testing.T) {
	for in, want := range map[[2]string][2]float64{
		{"", ""}:         {0.7612875930, 0.8320819528},
		{"fal", "job-1"}: {0.1488415611, 0.2232184038},
		{"a", "bc"}:      {0.1178463632, 0.8203648105},
		{"ab", "c"}:      {0.2070723241, 0.9601832826},
		{"runway", "8f14e45f-ceea-467f-a0e6-1b1f2c0f9d3a"}: {0.5348922836, 0.3593446694},
		{"kling", "1234567"}:   {0.4903345404, 0.5587222374},
		{"kling", "12345678"}:  {0.3346036295, 0.4011811959},
		{"kling", "123456789"}: {0.2681988268, 0.1697035220},
	} {
		a, b := spread(in[0], in[1])
		require.InDelta(t, want[0], a, 1e-9, "%q", in)
		require.InDelta(t, want[1], b, 1e-9, "%q", in)
	}
}

func TestSpreadIsUniformAndTellsRouteFromID(t *testing.T) {
	const n, cells = 64_000, 64
	for name, id := range map[string]func(int) string{
		"short":   func(i int) string { return fmt.Sprint(i) },
		"counted": func(i int) string { return fmt.Sprintf("job-%08d", i) },
		"inside":  func(i int) string { return fmt.Sprintf("videos/%08d/status-of-the-job", i) },
		"uuid":    func(i int) string { return fmt.Sprintf("%08x-ceea-467f-a0e6-1b1f2c0f9d3a", i) },
	} {
		t.Run(name, func(t *testing.T) {
			var one, two [cells]int
			both := 0.0
			for i := range n {
				a, b := spread("fal", id(i))
				require.True(t, a >= 0 && a < 1 && b >= 0 && b < 1)
				one[int(a*cells)]++
				two[int(b*cells)]++
				both += (a - 0.5) * (b - 0.5)
			}
			require.Less(t, chi2(one[:], n), 120.0) // 63 degrees: 1 in 50,000
			require.Less(t, chi2(two[:], n), 120.0)
			require.Less(t, both/n*12, 0.02, "the two numbers do not depend on each other")
		})
	}
	a, _ := spread("ab", "c")
	b, _ := spread("a", "bc")
	require.NotEqual(t, a, b)
	a, _ = spread("", "abc")
	b, _ = spread("abc", "")
	require.NotEqual(t, a, b)
}

func chi2(cells []int, n int) float64 {
	e, sum := float64(n)/float64(len(cells)), 0.0
	for _, c := range cells {
		sum += (float64(c) - e) * (float64(c) - e) / e
	}
	return sum
}

func TestAlikeJobsAreSpreadOverTheRangesOfTheirRow(t *testing.T) {
	s := Schedule{Jitter: NoJitter}
	lowest, highest := time.Hour, time.Duration(0)
	for i := range 1000 {
		d := s.Next(Input{Job: Job{Route: "fal", ID: fmt.Sprint(i), Expected: mnt, SubmittedAt: t0}, Now: t0, Rand: 0.5})
		lowest, highest = min(lowest, d.At.Sub(t0)), max(highest, d.At.Sub(t0))
	}
	require.InDelta(t, 4, lowest.Seconds(), 0.05)
	require.InDelta(t, 8, highest.Seconds(), 0.05)
}

// B07(d): the wait never falls as the hint rises.
func TestTheWaitNeverFallsAsTheHintRises(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for range 200 {
		rnd, expected := rng.Float64(), time.Duration(rng.Int64N(int64(20*mnt)))
		for name, answer := range map[string]func(time.Duration) any{
			"429":     func(d time.Duration) any { return limited(d) },
			"pending": func(d time.Duration) any { return Report{State: StateRunning, Hint: Hint{RetryAfter: d}} },
			"queued":  func(d time.Duration) any { return Report{State: StateQueued, Hint: Hint{RetryAfter: d}} },
		} {
			before := time.Time{}
			for ra := time.Duration(0); ra <= 1e6*sec; ra = ra*9/8 + 100*time.Millisecond {
				d := next(Schedule{}, expected, 10*sec, answer(ra), func(in *Input) { in.Rand = rnd })
				require.False(t, d.At.Before(before), "%s with %v", name, ra)
				if d.Cause != CauseParked {
					require.GreaterOrEqual(t, d.At.Sub(after(10*sec)), ra)
				}
				before = d.At
			}
		}
	}
}

func TestObserveAndNextDoNotAllocate(t *testing.T) {
	s, in, r := benchInput()
	r.Progress, r.Remaining, r.Hint.RetryAfter = 0.3, mnt, sec
	in.Plan = &Plan{Looks: secs(1, 2, 3)}
	var tr Track
	require.Zero(t, testing.AllocsPerRun(100, func() { tr, _ = in.Track.Observe(r, nil, in.Now) }))
	in.Track = tr
	for name, s := range map[string]Schedule{"default": s, "ladder": fixed(secs(1, 2)...), "near": {NearEnd: sec}} {
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = s.Next(in) }), name)
	}
}
