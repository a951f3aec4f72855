package jobpoll

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// learnPoller is one that does not run, with a route that learns.
func learnPoller(t testing.TB, c Config) *Poller {
	t.Helper()
	c.Routes = append(c.Routes, Route{Name: "r", Checker: scarceChecker{}})
	p, err := New(c)
	require.NoError(t, err)
	return p
}

func TestWhatIsLearnedIsBounded(t *testing.T) {
	p := learnPoller(t, Config{Store: NewMemoryStore(nil)})
	plan := &Plan{}
	for i := range 100_000 {
		n := profileName{"r", fmt.Sprint(i)}
		noteName(p.unsaved, n)
		noteName(p.replans, n)
		p.order[0].plans.set(n.profile, plan, plan)
	}
	assert.Len(t, p.unsaved, maxPlans)
	assert.Len(t, p.replans, maxPlans)
	assert.Len(t, p.order[0].plans.own, maxPlans)

	for i := range maxEstimates + 100 {
		r := &record{slot: int32(i), gen: 1, track: Track{FinishAt: 20, LastAt: 10}}
		p.noteEstimate(r)
	}
	assert.Len(t, p.estimates, maxEstimates)
}

func TestAPlanThatIsKeptPushesNoOtherOut(t *testing.T) {
	var l plans
	for i := range maxPlans {
		l.set(fmt.Sprint(i), &Plan{}, nil)
	}
	for range 100 {
		l.set("7", &Plan{}, nil)
	}
	assert.Len(t, l.own, maxPlans)
}

func TestEstimatesAreKeptUntilTheirJobEnds(t *testing.T) {
	p := learnPoller(t, Config{})
	r := &record{slot: 1, gen: 1, submitted: 0}
	at := func(now, left time.Duration, told bool) {
		r.track = Track{FirstAt: Stamp(time.Second), LastAt: Stamp(now), FinishAt: Stamp(now + left), FinishTold: told}
		p.noteEstimate(r)
	}
	at(5*time.Second, 30*time.Second, true)
	at(6*time.Second, 20*time.Second, true)
	at(7*time.Second, 10*time.Second, false)
	at(8*time.Second, 5*time.Second, false)
	got := p.estimates[r.handle()]
	assert.Equal(t, 30*time.Second, got.told.Left, "the first that was told")
	assert.Equal(t, 10*time.Second, got.moved.Left, "the first that progress gave")
}

func TestProfileRecordsAreOfOneName(t *testing.T) {
	l := NewLearner(0)
	long := strings.Repeat("x", 1000)
	for _, n := range []profileName{{"f", "p"}, {"f", ""}, {"", ""}, {"f/p", "q"}, {"f", "p/q"}, {"f", long}} {
		l.Observe(Sample{Family: n.family, Profile: n.profile, By: time.Second})
		state, ok := l.Export(n.family, n.profile)
		require.True(t, ok)
		rec := profileRecord(n, state, time.Unix(1, 0), time.Hour)
		v, err := decodeProfile(rec)
		require.NoError(t, err)
		assert.Equal(t, n, profileName{v.Family, v.Profile})
	}
	a, b := profileRecord(profileName{"f/p", "q"}, nil, time.Time{}, 0), profileRecord(profileName{"f", "p/q"}, nil, time.Time{}, 0)
	assert.NotEqual(t, a.ID, b.ID)
}

// A look that goes by a plan allocates nothing of ours.
func TestAPlannedLookAllocatesNothing(t *testing.T) {
	const jobs, warm, looks = 500, 5000, 20_000
	var n atomic.Uint64
	warmed, done := make(chan struct{}), make(chan struct{})
	p, err := New(Config{
		Workers: 4, Stop: StopRules{MaxAge: NoLimit, NoProgress: NoLimit},
		Routes: []Route{{Name: "r", Schedule: Schedule{PollCost: 20 * time.Microsecond, MinDelay: time.Microsecond},
			Checker: CheckerFunc(func(context.Context, Job) (Report, error) {
				switch n.Add(1) {
				case warm:
					close(warmed)
				case warm + looks:
					close(done)
				}
				return Report{State: StateRunning}, nil
			})}},
	})
	require.NoError(t, err)
	for i := range 20 {
		p.learned.Observe(Sample{Family: "r", Profile: fmt.Sprint(i), By: time.Millisecond})
		p.replanSoon(profileName{"r", fmt.Sprint(i)})
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	for i := range jobs {
		require.NoError(t, p.Watch(ctx, Job{Route: "r", ID: fmt.Sprint(i), Profile: fmt.Sprint(i % 40)}))
	}
	<-warmed
	info, ok := p.Job(Key{"r", "1"})
	require.True(t, ok)
	var before, after runtime.MemStats
	from := n.Load()
	runtime.ReadMemStats(&before)
	<-done
	runtime.ReadMemStats(&after)
	count := n.Load() - from
	cancel()
	require.NoError(t, <-ran)
	each := float64(after.Mallocs-before.Mallocs) / float64(count)
	t.Logf("%.4f allocations a look, of which the last is planned by %v", each, info.Cause)
	assert.Contains(t, []Cause{CausePlan, CauseNone}, info.Cause)
	assert.Less(t, each, 0.2)
}

func BenchmarkLearnAnEnd(b *testing.B) {
	for _, of := range []struct {
		name     string
		profiles int
	}{{"1 profile", 1}, {"100 profiles", 100}, {"each another profile", 1 << 30}} {
		b.Run(of.name, func(b *testing.B) {
			p := learnPoller(b, Config{})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				profile, took := fmt.Sprint(i%of.profiles), time.Duration(50+i%20)*time.Second
				p.learned.Observe(Sample{Family: "r", Profile: profile, After: took - 3*time.Second, By: took})
				p.replanSoon(profileName{"r", profile})
			}
		})
	}
}
