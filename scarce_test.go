package jobpoll

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An item that is brought to the head leaves the others in their order.
func TestBringKeepsTheOrderOfTheOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		var f fifo
		var want []handle
		live := func() (at []int) { // places of what is there
			for i := f.head; i < len(f.items); i++ {
				if f.items[i] != (handle{}) {
					at = append(at, i-f.head)
				}
			}
			return at
		}
		for step := range 400 {
			switch k := r.IntN(10); {
			case k < 5:
				h := handle{int32(step), 1}
				f.push(h)
				want = append(want, h)
			case k < 8 && len(want) > 0:
				for h, ok := f.peek(); ok && h == (handle{}); h, ok = f.peek() {
					f.pop()
				}
				h, ok := f.peek()
				require.True(t, ok)
				require.Equal(t, want[0], h)
				f.pop()
				want = want[1:]
			case len(want) > 0:
				n := r.IntN(len(want))
				at := live()[n]
				h := want[n]
				f.bring(at)
				want = append(append([]handle{h}, want[:n]...), want[n+1:]...)
			}
			var got []handle
			for i := f.head; i < len(f.items); i++ {
				if f.items[i] != (handle{}) {
					got = append(got, f.items[i])
				}
			}
			require.Equal(t, len(want), len(got))
			for i := range want {
				require.Equal(t, want[i], got[i])
			}
		}
	}
}

func TestThePriceRisesWithALongBacklogAndFallsWithTime(t *testing.T) {
	var s scarcity
	now := Stamp(0)
	look := func(waiting int) {
		now = now.Add(time.Second)
		s.short(now)
		s.looked(waiting, 20*time.Second, now)
	}
	for range 100 {
		look(5)
	}
	assert.Zero(t, s.priceAt(now), "a short backlog is no reason")
	for range 500 {
		look(100)
	}
	high := s.priceAt(now)
	assert.Greater(t, high, 2.0)
	for range 100_000 {
		look(100)
	}
	assert.LessOrEqual(t, s.priceAt(now), float64(maxPrice))
	for range 100_000 {
		look(1)
	}
	assert.Zero(t, s.priceAt(now))

	for range 1000 {
		look(100)
	}
	s.enough(now)
	before := s.priceAt(now)
	assert.InEpsilon(t, before/priceStep, s.priceAt(now.Add(s.gap)), 1e-3, "as with the look that could be made")
	s.enough(now.Add(time.Minute)) // still
	assert.Zero(t, s.priceAt(now.Add(time.Hour)))
	now = now.Add(time.Hour)
	look(1)
	assert.Zero(t, s.price)
}

// scarceLine is a route with n jobs that wait, of which something is known.
func scarceLine(t testing.TB, n int) (*Poller, *route, Stamp) {
	t.Helper()
	p := learnPoller(t, Config{})
	for i := range 200 {
		took := time.Duration(50+i%20) * time.Second
		p.learned.Observe(Sample{Family: "r", Profile: "p", After: took - 3*time.Second, By: took})
	}
	p.replanSoon(profileName{"r", "p"})
	rt := p.order[0]
	require.NotNil(t, rt.plans.rest)
	for i := range n {
		require.NoError(t, p.Watch(t.Context(), Job{Route: "r", ID: fmt.Sprint(i), Profile: "p"}))
	}
	now := p.line.now().Add(time.Minute)
	p.mu.Lock()
	for p.popDue(now) {
	}
	p.unlock()
	require.Equal(t, n, rt.waiting)
	return p, rt, now
}

func scarceChoose(p *Poller, rt *route, now Stamp) (handle, time.Duration) {
	h, l, _ := p.nextReady(rt)
	h, _ = p.choose(rt, h, l, now)
	return h, p.worth(rt, h.slot, now)
}

func TestTheLookWorthMostGoesFirst(t *testing.T) {
	p, rt, now := scarceLine(t, 40)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, h := range rt.ready.items { // some have been looked at since
		r := p.jobs.at(h.slot)
		r.track = Track{State: StateRunning, Looks: 1, FirstAt: r.submitted, LastAt: now.Add(-time.Duration((i*7)%40) * time.Second)}
	}
	p.jobs.settle()
	for range 40 {
		rt.scarce.turn = 0
		h, got := scarceChoose(p, rt, now)
		for _, o := range rt.ready.items[rt.ready.head:] {
			if o != (handle{}) {
				assert.LessOrEqual(t, p.worth(rt, o.slot, now), got)
			}
		}
		first, ok := rt.ready.peek()
		require.True(t, ok)
		require.Equal(t, h, first)
		rt.ready.pop()
		p.jobs.at(h.slot).to(phaseWaiting)
		p.jobs.settle()
	}
	assert.Zero(t, rt.waiting)
}

func TestWhereNothingIsKnownTheFirstGoesFirst(t *testing.T) {
	p, rt, now := scarceLine(t, 20)
	p.mu.Lock()
	defer p.mu.Unlock()
	rt.plans = plans{}
	for i := range 20 {
		want := rt.ready.items[i]
		h, _ := scarceChoose(p, rt, now)
		require.Equal(t, want, h)
		rt.ready.pop()
		p.jobs.at(h.slot).to(phaseWaiting)
		p.jobs.settle()
	}
}

// A job that is never worth most has its turn all the same.
func TestNobodyStarves(t *testing.T) {
	for _, n := range []int{40, 400} {
		p, rt, now := scarceLine(t, n)
		p.mu.Lock()
		rt.scarce.gap = time.Second
		poor := rt.ready.items[n-1]
		waited, longest, served := 0, 0, 0
		for range 40 * n {
			now = now.Add(time.Second)
			rt.scarce.looked(rt.waiting, time.Hour, now)
			p.jobs.at(poor.slot).track.LastAt = now // of no worth
			h, _ := scarceChoose(p, rt, now)
			waited++
			longest = max(longest, waited)
			if h == poor {
				waited = 0
				served++
			}
			r := p.jobs.at(h.slot)
			r.track = Track{State: StateRunning, Looks: 1, FirstAt: r.submitted, LastAt: now}
			rt.ready.pop()
			r.to(phaseWaiting)
			r.planned = now
			r.to(phaseReady)
			p.enqueue(rt, &rt.ready, h)
			p.jobs.settle()
		}
		p.unlock()
		assert.Positive(t, served)
		assert.LessOrEqual(t, longest, (oldestAfter+oldestEach+1)*n, "of %d", n)
	}
}

func TestAStuckJobIsNotChosen(t *testing.T) {
	p, rt, now := scarceLine(t, 10)
	p.mu.Lock()
	defer p.mu.Unlock()
	best := rt.ready.items[5]
	for _, h := range rt.ready.items {
		r := p.jobs.at(h.slot)
		r.track = Track{State: StateRunning, Looks: 1, FirstAt: r.submitted, LastAt: now}
		if h == best {
			r.track.LastAt = now.Add(-40 * time.Second)
		}
	}
	rt.scarce.turn = 0
	h, _ := scarceChoose(p, rt, now)
	require.Equal(t, best, h)
	rt.ready.bring(1)
	p.jobs.at(best.slot).stuck = &lookCall{}
	rt.scarce.turn = 0
	h, _ = scarceChoose(p, rt, now)
	assert.NotEqual(t, best, h)
}

// scarceChecker is a Checker that is not called.
type scarceChecker struct{}

func (scarceChecker) Check(context.Context, Job) (Report, error) {
	return Report{State: StateRunning}, nil
}

// BenchmarkChoose is the choice of one among those that wait.
func BenchmarkChoose(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p, rt, now := scarceLine(b, n)
			p.mu.Lock()
			defer p.mu.Unlock()
			b.ReportAllocs()
			for b.Loop() {
				h, _ := scarceChoose(p, rt, now)
				rt.ready.pop()
				rt.ready.push(h)
			}
		})
	}
}
