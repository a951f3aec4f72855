package jobpoll

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// source turns bytes into odd values: a fuzzer finds its way through it.
type source struct{ b []byte }

func (s *source) byte() byte {
	if len(s.b) == 0 {
		return 0
	}
	v := s.b[0]
	s.b = s.b[1:]
	return v
}

func (s *source) uint64() uint64 {
	var v [8]byte
	s.b = s.b[copy(v[:], s.b):]
	return binary.LittleEndian.Uint64(v[:])
}

func (s *source) duration() time.Duration {
	switch k := s.byte(); k % 8 {
	case 0, 1:
		return 0
	case 2:
		return math.MaxInt64
	case 3:
		return math.MinInt64
	case 4:
		return -time.Duration(s.byte()) * sec
	case 5:
		return time.Duration(s.uint64())
	case 6:
		return time.Duration(s.byte()) * time.Millisecond
	default:
		return time.Duration(s.byte()) * sec
	}
}

func (s *source) count() int {
	switch s.byte() % 4 {
	case 0:
		return 0
	case 1:
		return NoCount
	case 2:
		return -int(s.byte())
	default:
		return int(s.byte())
	}
}

func (s *source) float() float64 {
	switch s.byte() % 6 {
	case 0:
		return 0
	case 1:
		return math.NaN()
	case 2:
		return math.Inf(1)
	case 3:
		return -1
	case 4:
		return math.Float64frombits(s.uint64())
	default:
		return float64(s.byte()) / 256
	}
}

// time gives an instant that encoding/json can hold.
func (s *source) time() time.Time {
	switch s.byte() % 4 {
	case 0:
		return time.Time{}
	case 1:
		return t0.Add(s.duration())
	case 2:
		return t0.AddDate(int(s.uint64()%7900), 0, 0)
	default:
		return after(time.Duration(s.byte()) * sec)
	}
}

func (s *source) span() Span { return Span{Min: s.duration(), Max: s.duration()} }

func (s *source) schedule() Schedule {
	v := Schedule{Queued: s.duration(), NearEnd: s.duration(), MinDelay: s.duration(), MaxDelay: s.duration(), Jitter: s.float()}
	for range s.byte() % 4 {
		v.Buckets = append(v.Buckets, Bucket{UpTo: s.duration(), First: s.span(), Later: s.span()})
	}
	for range s.byte() % 4 {
		v.Delays = append(v.Delays, s.duration())
	}
	if s.byte()%2 == 0 {
		v.Unknown = Bucket{First: s.span(), Later: s.span()}
	}
	return v
}

func (s *source) rules() StopRules {
	return StopRules{MaxAge: s.duration(), MaxQueued: s.duration(), MaxProcessing: s.duration(), NoProgress: s.duration(), MaxErrors: s.count(),
		MissingGrace: s.duration(), MissingLooks: s.count(), UnknownFor: s.duration(), UnknownLooks: s.count(), AuthGrace: s.duration()}
}

func (s *source) report() Report {
	r := Report{State: State(s.byte() % 9), Progress: s.float(), QueuePosition: s.count(), Remaining: s.duration(), Hint: Hint{RetryAfter: s.duration()}, StartedAt: s.time()}
	switch s.byte() % 4 {
	case 0:
		r.RawStatus = string(s.b[:min(len(s.b), 200)])
	case 1:
		r.Failure = &Failure{Kind: FailureKind(s.byte() % 8)}
	}
	return r
}

func (s *source) error() error {
	switch s.byte() % 4 {
	case 0:
		return errPlain
	default:
		return &CheckError{Kind: ErrorKind(s.byte() % 12), Hint: Hint{RetryAfter: s.duration()}}
	}
}

// step moves the clock, mostly forward.
func (s *source) step(now time.Time) time.Time {
	next := now.Add(s.duration())
	if y := next.Year(); y < 2 || y > 9000 {
		return now
	}
	return next
}

// checkDecision holds whatever the input is.
func checkDecision(t *testing.T, s Schedule, in Input) Decision {
	t.Helper()
	d := s.Next(in)
	require.False(t, d.At.Before(in.Now), "in the past: %v", d)
	require.Equal(t, d, s.Next(in), "the same question, another answer")
	require.Equal(t, d.Stop != ReasonNone, d.Cause == CauseEnded)
	if d.Stop != ReasonNone {
		require.Equal(t, in.Now, d.At)
		return d
	}
	if now := StampOf(in.Now); now == firstStamp || now == lastStamp {
		return d // a clock that no Stamp can hold is only not harmful
	}
	tr := &in.Track
	q := in.question()
	limit, _ := q.limit(q.age())
	wait := d.At.Sub(in.Now)
	if d.Cause == CauseParked {
		require.Equal(t, max(limit, 0), wait, "parked until the limit")
		return d
	}
	if tr.Looks > 0 {
		last := in.Now // a clock that went back counts from now
		if tr.LastAt.Time().Before(last) {
			last = tr.LastAt.Time()
		}
		gap := d.At.Sub(last)
		require.GreaterOrEqual(t, gap, s.minDelay(), "under the minimum gap: %v", d)
		require.GreaterOrEqual(t, gap, in.Guidance.Floor, "under the pace: %v", d)
		if !tr.LastAt.Time().After(in.Now) {
			require.False(t, d.At.Before(tr.NotBefore.Time()), "before the provider's wait: %v", d)
		}
	}
	for _, nb := range []time.Time{in.NotBefore, in.Job.NotBefore} {
		if StampOf(nb) == lastStamp || nb.Sub(in.Now) == math.MaxInt64 || nb == in.Job.NotBefore && tr.Looks > 0 {
			continue // 292 years, and 2262, are far enough
		}
		require.False(t, d.At.Before(nb), "in a cool-down: %v, %v", d, nb)
	}
	if wait > 0 && d.Cause != CauseFloor {
		require.LessOrEqual(t, wait, limit, "beyond the limit: %v", d)
	}
	return d
}

func checkTrack(t *testing.T, tr Track) {
	t.Helper()
	for _, n := range []int32{tr.Looks, tr.Unchanged, tr.ProgressTold, tr.QueuePosition, tr.Errors, tr.Limited, tr.Missing, tr.Unknown} {
		require.GreaterOrEqual(t, n, int32(0))
	}
	require.GreaterOrEqual(t, tr.Progress, 0.0)
	require.LessOrEqual(t, tr.Progress, 1.0)
	require.GreaterOrEqual(t, tr.Remaining, time.Duration(0))
	require.LessOrEqual(t, len(tr.RawStatus), maxWord)
	require.LessOrEqual(t, tr.State, StateExpired)
}

// FuzzObserveNext takes any sequence of answers, at any times, under any
// settings, through the two calls.
func FuzzObserveNext(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("the quick brown fox jumps over the lazy dog, and the dog sleeps on for a while"))
	for i := range 12 {
		b := make([]byte, 240)
		for j := range b {
			b[j] = byte(j*j*(i+3) + i*7)
		}
		f.Add(b)
	}
	f.Fuzz(observeNext)
}

// The same on long random input, in every run of the tests.
func TestAnySequenceOfAnswersIsTakenWell(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 400 {
		b := make([]byte, 200+rng.IntN(1000))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		observeNext(t, b)
	}
}

func observeNext(t *testing.T, b []byte) {
	t.Helper()
	src := &source{b: b}
	s := src.schedule()
	in := Input{
		Job:      Job{Route: "fal", ID: "job-1", Expected: src.duration(), SubmittedAt: src.time(), NotBefore: src.time(), Deadline: src.time()},
		Stop:     src.rules(),
		Guidance: Guidance{First: src.duration(), Floor: src.duration(), Cap: src.duration(), Expected: src.duration()},
		Now:      t0,
	}
	if src.byte()%4 == 0 {
		in.Plan = &Plan{Looks: []time.Duration{src.duration(), src.duration()}}
	}
	for range 40 {
		in.Rand, in.Price, in.NotBefore = src.float(), src.float(), src.time()
		d := checkDecision(t, s, in)
		if src.byte()%3 == 0 {
			in.Now = src.step(in.Now)
		} else if d.At.Year() < 9000 {
			in.Now = d.At
		}
		before := in.Track
		var c Change
		if src.byte()%3 == 0 {
			in.Track, c = in.Track.Observe(src.report(), src.error(), in.Now)
		} else {
			in.Track, c = in.Track.Observe(src.report(), nil, in.Now)
		}
		checkTrack(t, in.Track)
		require.Equal(t, c&ChangeEnded != 0, before.End == ReasonNone && in.Track.End != ReasonNone)
		if before.End != ReasonNone {
			require.Equal(t, before, in.Track, "an end changes no more")
		}

		other := in
		other.Track = Track{}
		require.NoError(t, json.Unmarshal([]byte(mustJSON(t, in.Track)), &other.Track))
		require.Equal(t, checkDecision(t, s, in), checkDecision(t, s, other), "after JSON another decision")
		if len(src.b) == 0 {
			break
		}
	}
}

// FuzzTrackJSON takes whatever reads as a Track for a memory.
func FuzzTrackJSON(f *testing.F) {
	f.Add([]byte(`{}`), int64(0))
	f.Add([]byte(`{"v":1,"looks":3,"state":"running","last_at":"2026-01-01T00:00:10Z","good_at":"2026-01-01T00:00:10Z","progress":0.5,"progress_told":2}`), int64(20e9))
	f.Add([]byte(`{"looks":-1,"errors":-9,"unchanged":-4,"missing":-2,"missing_at":"0001-01-01T00:00:00Z","finish_at":"9999-12-31T23:59:59Z"}`), int64(-5))
	f.Add([]byte(`{"looks":2147483647,"errors":2147483647,"not_before":"9999-12-31T23:59:59Z","last_at":"9999-12-31T23:59:59Z"}`), int64(math.MaxInt64))
	f.Add([]byte(`{"looks":1,"state":"queued","queued_at":"9000-01-01T00:00:00Z","running_at":"0001-01-01T00:00:01Z","remaining":-7,"progress":-1e308,"origin":1e308}`), int64(7))
	f.Fuzz(func(t *testing.T, b []byte, at int64) {
		var tr Track
		if json.Unmarshal(b, &tr) != nil {
			return
		}
		for _, expected := range []time.Duration{0, mnt} {
			in := Input{Job: Job{Route: "fal", ID: "job-1", Expected: expected, SubmittedAt: t0}, Track: tr, Now: t0.Add(time.Duration(at)), Rand: 0.5}
			for _, s := range []Schedule{{}, fixed(5 * sec), {NearEnd: 5 * sec, Queued: sec}} {
				d := s.Next(in)
				require.False(t, d.At.Before(in.Now))
				_ = d.Err(in.Job, tr)
			}
			for _, err := range []error{nil, errPlain, limited(sec)} {
				in.Track, _ = tr.Observe(Report{State: StateRunning, Progress: 0.7, Remaining: sec}, err, in.Now)
				require.False(t, Schedule{}.Next(in).At.Before(in.Now))
			}
		}
	})
}
