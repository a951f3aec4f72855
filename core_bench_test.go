package jobpoll

import (
	"testing"
	"time"

	"golang.org/x/time/rate"
)

func benchInput() (Schedule, Input, Report) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	in := Input{
		Job:  Job{Route: "fal", ID: "8f14e45f-ceea-467f-a0e6-1b1f2c0f9d3a", Profile: "kling/1080p/10s", Expected: 90 * time.Second, SubmittedAt: now},
		Now:  now,
		Rand: 0.3,
	}
	return Schedule{}, in, Report{State: StateRunning, RawStatus: "IN_PROGRESS"}
}

// benchDecision keeps decisions alive.
var benchDecision Decision

// BenchmarkCore is one look's worth of decisions beside the limiter that a
// sleep loop would use.
func BenchmarkCore(b *testing.B) {
	b.Run("Observe+Next", func(b *testing.B) {
		s, in, r := benchInput()
		start := in.Now
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			if n++; n == 16 { // the next job
				n, in.Now, in.Track = 0, start, Track{}
			}
			in.Now = in.Now.Add(14 * time.Second) // the worker's clock, as in AllowN
			in.Track, _ = in.Track.Observe(r, nil, in.Now)
			benchDecision = s.Next(in)
		}
	})
	b.Run("Observe", func(b *testing.B) {
		_, in, r := benchInput()
		b.ReportAllocs()
		for b.Loop() {
			in.Track, _ = in.Track.Observe(r, nil, in.Now)
		}
	})
	b.Run("Next", func(b *testing.B) {
		s, in, r := benchInput()
		in.Track, _ = in.Track.Observe(r, nil, in.Now)
		b.ReportAllocs()
		for b.Loop() {
			_ = s.Next(in)
		}
	})
	b.Run("Next with a plan", func(b *testing.B) {
		s, in, r := benchInput()
		in.Plan = planLearner(100, nil).Plan("fal", "p", s)
		in.Now = in.Now.Add(40 * time.Second)
		in.Track, _ = in.Track.Observe(r, nil, in.Now)
		b.ReportAllocs()
		for b.Loop() {
			_ = s.Next(in)
		}
	})
	// The engine keeps the memory where it is and copies nothing.
	b.Run("in place", func(b *testing.B) {
		s, in, r := benchInput()
		start := in.Now
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			if n++; n == 16 {
				n, in.Now, in.Track = 0, start, Track{}
			}
			in.Now = in.Now.Add(14 * time.Second)
			in.Track.observe(&r, nil, StampOf(in.Now))
			q := in.question()
			benchDecision.Cause = s.decide(&q).cause
		}
	})
	b.Run("AllowN", func(b *testing.B) {
		lim := rate.NewLimiter(10, 10)
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		b.ReportAllocs()
		for b.Loop() {
			now = now.Add(time.Millisecond)
			lim.AllowN(now, 1)
		}
	})
}
