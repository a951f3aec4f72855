package jobpoll

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// B17: readings of the clock that arrive out of order credit nothing twice.
func TestShuffledTimesGainNothing(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 17))
		b := budgetOn(t, newBudgetClock(), Limits{Total: Limit{Rate: 10, Burst: 1}})
		n := 0
		for i := range 1000 {
			now := atSec(float64(i)/100 - r.Float64()*0.05)
			if g, ok := b.tryAcquire(now, LaneStatus); ok {
				g.done(nil)
				n++
			}
		}
		require.LessOrEqual(t, n, 101)
		require.Greater(t, n, 80)
	}
}

// B47: a rate limit closes the whole route, for those that wait and for those
// that come; other routes go on.
func TestRateLimitClosesTheWholeRoute(t *testing.T) {
	s := &budgetSim{clock: newBudgetClock()}
	root := budgetOn(t, s.clock, Limits{Total: Limit{Rate: 50, Burst: 5, Concurrent: 20}})
	a, b := root.Child("a", Limits{}), root.Child("b", Limits{})
	for i := range 50 {
		s.clock.to(float64(i) * 0.1)
		s.one(a, LaneStatus, 0.05, nil, nil)
	}
	s.clock.to(4.9)
	s.one(a, LaneStatus, 0.1, func(float64) error { return rateLimit(30) }, nil)
	s.clock.to(5)
	before := s.starts(0, 6, nil)
	assert.Equal(t, atSec(35), a.closedUntil(LaneStatus))
	assert.Zero(t, root.closedUntil(LaneStatus))
	for sec := 6; sec < 34; sec++ {
		s.clock.to(float64(sec))
		s.one(a, LaneStatus, 0.05, nil, nil)
		s.one(b, LaneStatus, 0.05, nil, nil)
	}
	s.clock.to(34.999)
	onA := func(c budgetSimCall) bool { return c.node == a }
	assert.Zero(t, s.starts(5.0001, 35, onA))
	assert.Equal(t, before+28, s.starts(0, 35, nil), "b goes on")
	s.clock.to(60)
	assert.Equal(t, 28, s.starts(35, 60, onA), "all that waited have gone")
	requireBudgetIdle(t, root)
}

// B48: after the pause the waiters are let go at a pace.
func TestReleaseAfterACooldownIsPaced(t *testing.T) {
	for _, takes := range []float64{0.05, 0.5, 1.5} {
		t.Run(fmt.Sprint(takes), func(t *testing.T) {
			s := &budgetSim{clock: newBudgetClock()}
			root := budgetOn(t, s.clock, caseLimits())
			s.one(root, LaneStatus, 5, func(float64) error { return rateLimit(30) }, nil)
			s.clock.to(5)
			for range 50 {
				s.one(root, LaneStatus, takes, nil, nil)
			}
			s.clock.to(34.9999)
			require.Len(t, s.calls, 1)
			s.clock.to(60)
			assert.LessOrEqual(t, s.most(35, 1), 10)
			assert.LessOrEqual(t, s.peak, 10)
			assert.Equal(t, 51, len(s.calls))
			for _, c := range s.calls {
				assert.True(t, c.end >= 0 && c.end <= 60)
			}
			requireBudgetIdle(t, root)
		})
	}
}

// B48, second part: a first answer that is a rate limit again.
func TestFewLeaveBeforeARepeatedRateLimitCloses(t *testing.T) {
	for _, takes := range []float64{0.05, 0.5, 1.5, 5} {
		s := &budgetSim{clock: newBudgetClock()}
		root := budgetOn(t, s.clock, caseLimits())
		s.one(root, LaneStatus, 5, func(float64) error { return rateLimit(30) }, nil)
		s.clock.to(5)
		for range 50 {
			s.one(root, LaneStatus, takes, func(float64) error { return rateLimit(30) }, nil)
		}
		s.clock.to(35 + takes + 25)
		assert.LessOrEqual(t, s.starts(35, 100, nil), 10)
		assert.Equal(t, 2, root.lane[LaneStatus].cool.n, "all of them are one event")
		assert.InDelta(t, 0.5, root.lane[LaneStatus].cool.m, 1e-9)
		// It opens at half the pace.
		open := secOf(root.closedUntil(LaneStatus))
		s.clock.to(open + takes - 0.001)
		assert.LessOrEqual(t, s.starts(open, 1e9, nil), int(takes*2.5)+1)
	}
}

func TestUncappedBudgetIsPacedAtItsOwnRateAndThenFreed(t *testing.T) {
	s := &budgetSim{clock: newBudgetClock()}
	root := budgetOn(t, s.clock, Limits{})
	for i := range 200 { // 10/s
		s.clock.to(float64(i) / 10)
		s.one(root, LaneStatus, 0.01, nil, nil)
	}
	s.clock.to(20)
	s.one(root, LaneStatus, 0, func(float64) error { return rateLimit(10) }, nil)
	s.clock.to(20.001)
	for range 1000 {
		s.one(root, LaneStatus, 0.01, nil, nil)
	}
	s.clock.to(40)
	assert.InDelta(t, 100, s.starts(30, 40, nil), 20)
	s.clock.to(89)
	n := s.starts(0, 89, nil)
	s.clock.to(91)
	assert.Equal(t, 1201, len(s.calls), "after the episode nothing holds the rest")
	assert.Greater(t, len(s.calls)-n, 300)
	assert.Zero(t, root.snapshot().Status.Pace)
}

func TestAWaiterFollowsThePaceAsItRecovers(t *testing.T) {
	s := &budgetSim{clock: newBudgetClock()}
	b := budgetOn(t, s.clock, Limits{Total: Limit{Rate: 0.05, Burst: 1000}})
	for range 8 { // down to 1/64, one call in 1280 s
		s.one(b, LaneStatus, 1, func(float64) error { return rateLimit(10) }, nil)
		s.clock.to(secOf(s.clock.Now()) + 1)
		s.clock.to(secOf(b.closedUntil(LaneStatus)) + 1)
		b.lane[LaneStatus].pace = tokenBucket{}
	}
	require.InDelta(t, paceFloor, b.lane[LaneStatus].cool.m, 1e-12)
	from := secOf(s.clock.Now())
	s.one(b, LaneStatus, 0, nil, nil)
	s.one(b, LaneStatus, 0, nil, nil)
	s.clock.to(from + 2000)
	last := s.calls[len(s.calls)-1].start - from
	assert.InDelta(t, 270, last, 35, "doubled each minute: 0.05+0.09+0.19+0.38+… of a call")
}

// B49: the status lane pauses, submissions do not, and the other way.
func TestCooldownHoldsOneLaneOnly(t *testing.T) {
	for _, lane := range []Lane{LaneStatus, LaneSubmit} {
		c := newBudgetClock()
		b := budgetOn(t, c, caseLimits())
		g, ok := b.tryAcquire(b.now(), lane)
		require.True(t, ok)
		c.to(1)
		g.done(fmt.Errorf("wrapped: %w", rateLimit(30)))
		c.to(2)
		_, ok = b.tryAcquire(b.now(), lane)
		assert.False(t, ok)
		assert.Equal(t, atSec(31), b.closedUntil(lane))
		g, ok = b.tryAcquire(b.now(), lane.other())
		assert.True(t, ok)
		assert.Zero(t, b.closedUntil(lane.other()))
		g.done(nil)
	}
}

func TestScopeSaysWhatCoolsDown(t *testing.T) {
	hint := func(k ErrorKind, s Scope, sec int) error {
		return &CheckError{Kind: k, Hint: Hint{RetryAfter: time.Duration(sec) * time.Second, Scope: s}}
	}
	for _, c := range []struct {
		name                  string
		err                   error
		route, sibling, count int // seconds closed; rate limits counted
	}{
		{"default", hint(ErrorRateLimited, ScopeDefault, 30), 30, 0, 1},
		{"budget", hint(ErrorConcurrency, ScopeBudget, 30), 30, 0, 1},
		{"account", hint(ErrorRateLimited, ScopeAccount, 30), 30, 30, 1},
		{"job", hint(ErrorRateLimited, ScopeJob, 30), 0, 0, 1},
		{"a scope of a newer version", hint(ErrorRateLimited, 77, 30), 30, 0, 1},
		{"without a hint", hint(ErrorRateLimited, ScopeDefault, 0), 2, 0, 1},
		{"503 with a hint", hint(ErrorTransient, ScopeDefault, 30), 30, 0, 0},
		{"503 for the account", hint(ErrorNone, ScopeAccount, 30), 30, 30, 0},
		{"503 without a hint", hint(ErrorTransient, ScopeDefault, 0), 0, 0, 0},
		{"a pending job's own 503", hint(ErrorTransient, ScopeJob, 30), 0, 0, 0},
		{"no such job, with a hint", hint(ErrorNoSuchJob, ScopeDefault, 30), 0, 0, 0},
		{"a plain error", errors.New("broken pipe"), 0, 0, 0},
		{"a nil *CheckError", (*CheckError)(nil), 0, 0, 0},
		{"success", nil, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := budgetOn(t, newBudgetClock(), Limits{})
			provider := root.Child("p", Limits{})
			route, sibling := provider.Child("r", Limits{}), provider.Child("s", Limits{})
			g, ok := route.tryAcquire(atSec(0), LaneStatus)
			require.True(t, ok)
			g.done(c.err)
			closed := func(b *Budget) int {
				u := b.closedUntil(LaneStatus)
				if u.IsZero() {
					return 0
				}
				return int(secOf(u))
			}
			assert.Equal(t, c.route, closed(route))
			assert.Equal(t, c.sibling, closed(sibling))
			for _, b := range []*Budget{root, provider, route} {
				assert.EqualValues(t, c.count, b.snapshot().Status.RateLimited)
			}
			assert.Zero(t, sibling.snapshot().Status.RateLimited)
		})
	}
}

// B51: those that leave the queue leave no debt behind.
func TestLeavingWaitersLeaveNoDebt(t *testing.T) {
	s := &budgetSim{clock: newBudgetClock()}
	b := budgetOn(t, s.clock, Limits{Total: Limit{Rate: 1, Burst: 1}})
	g, ok := b.tryAcquire(b.now(), LaneStatus) // the burst
	require.True(t, ok)
	g.done(nil)
	var cancels []func()
	for range 100 {
		cancels = append(cancels, s.one(b, LaneStatus, 0, nil, nil))
	}
	s.clock.to(0.5)
	for _, c := range cancels[:99] {
		c()
		c() // twice is once
	}
	s.clock.to(2)
	require.Len(t, s.calls, 1)
	assert.InDelta(t, 1, s.calls[0].start, 1e-6)

	for i := range 1000 {
		s.clock.to(2 + float64(i)/500)
		cancel := s.one(b, LaneStatus, 0, nil, nil)
		cancel()
	}
	from := secOf(s.clock.Now())
	require.LessOrEqual(t, float64(len(s.calls)+1), 1+from, "never above the rate")
	s.one(b, LaneStatus, 0, nil, nil)
	s.clock.to(from + 1)
	assert.GreaterOrEqual(t, s.starts(from, from+1.001, nil), 1)
	requireBudgetIdle(t, b)
}

// B51: grants that are not used are as if they had never been.
func TestGrantsGivenBackLeaveNoDebt(t *testing.T) {
	c := newBudgetClock()
	l := caseLimits()
	l.Status.Limit = Limit{Rate: 4, Burst: 4, Concurrent: 3}
	root := budgetOn(t, c, l)
	b := root.Child("p", l)
	for range 1000 {
		g, ok := b.tryAcquire(b.now(), LaneStatus)
		require.True(t, ok)
		g.giveBack()
		g.giveBack()
		g.done(rateLimit(30)) // too late to mean anything
	}
	assert.Zero(t, root.snapshot().Status.Granted)
	assert.Zero(t, root.closedUntil(LaneStatus))
	n := 0
	for {
		g, ok := b.tryAcquire(b.now(), LaneStatus)
		if !ok {
			break
		}
		g.done(nil)
		n++
	}
	assert.Equal(t, 4, n, "the burst is whole")
	requireBudgetIdle(t, root)
}

// B52: 'too many jobs' closes submissions only, and opens early when a job ends.
func TestCapacityCooldownOpensWhenAJobEnds(t *testing.T) {
	s := &budgetSim{clock: newBudgetClock()}
	b := budgetOn(t, s.clock, caseLimits())
	for range 5 {
		b.jobStarted()
	}
	for range 4 { // 2+4+8+16 s of own backoff
		s.clock.to(max(secOf(s.clock.Now()), secOf(b.closedUntil(LaneSubmit))) + 1)
		g, ok := b.tryAcquire(b.now(), LaneSubmit)
		require.True(t, ok)
		s.clock.to(secOf(s.clock.Now()) + 0.1)
		g.done(&CheckError{Kind: ErrorConcurrency})
	}
	from := secOf(s.clock.Now())
	require.InDelta(t, from+16, secOf(b.closedUntil(LaneSubmit)), 1e-6)
	s.one(b, LaneSubmit, 0.1, nil, nil)
	s.one(b, LaneStatus, 0.1, nil, nil)
	require.Equal(t, 1, s.starts(from, 1e9, nil), "status goes on")
	s.clock.to(from + 5)
	b.jobEnded()
	assert.Equal(t, 1, s.starts(from+5, 1e9, inLane(LaneSubmit)))
}

// B53: slots are given back exactly once.
func TestJobSlots(t *testing.T) {
	s := &budgetSim{clock: newBudgetClock()}
	root := budgetOn(t, s.clock, Limits{Jobs: 5})
	a, b := root.Child("a", Limits{}), root.Child("b", Limits{Jobs: 3})
	for range 3 {
		g, ok := b.tryAcquire(b.now(), LaneSubmit)
		require.True(t, ok)
		b.jobStarted()
		g.done(nil)
	}
	_, ok := b.tryAcquire(b.now(), LaneSubmit)
	assert.False(t, ok, "the node is full")
	g, ok := b.tryAcquire(b.now(), LaneStatus)
	assert.True(t, ok, "status calls need no slot")
	g.done(nil)
	g1, ok := a.tryAcquire(a.now(), LaneSubmit)
	require.True(t, ok)
	g2, ok := a.tryAcquire(a.now(), LaneSubmit)
	require.True(t, ok, "submissions under way hold a slot")
	_, ok = a.tryAcquire(a.now(), LaneSubmit)
	assert.False(t, ok, "the account is full")
	s.one(a, LaneSubmit, 1, nil, nil)
	assert.Empty(t, s.calls)
	g1.done(errors.New("refused"))
	assert.Len(t, s.calls, 1, "a submission that failed frees its slot")
	g2.done(nil)
	s.clock.to(1)

	for range 9 { // three of them, and duplicate ends
		b.jobEnded()
		a.jobEnded()
	}
	assert.Zero(t, root.snapshot().Jobs)
	assert.Zero(t, b.snapshot().Jobs)
	for range 7 {
		a.jobStarted() // a restore may exceed
	}
	assert.Equal(t, 7, root.snapshot().Jobs)
	s.one(b, LaneSubmit, 1, nil, nil)
	for range 2 {
		a.jobEnded()
	}
	assert.Len(t, s.calls, 1)
	a.jobEnded()
	assert.Len(t, s.calls, 2)
	s.clock.to(3)
	requireBudgetIdle(t, root)
}

// B54(a): a backlog of looks does not hold up submissions.
func TestSubmissionsPassAStatusBacklog(t *testing.T) {
	s := &budgetSim{clock: newBudgetClock()}
	b := budgetOn(t, s.clock, caseLimits())
	for range 500 {
		s.one(b, LaneStatus, 0.2, nil, nil)
	}
	s.clock.to(1)
	for range 5 {
		s.one(b, LaneSubmit, 0.2, nil, nil)
	}
	s.clock.to(7)
	assert.Equal(t, 5, s.starts(1, 7, inLane(LaneSubmit)))
	s.clock.to(110)
	assert.Len(t, s.calls, 505, "no share was lost")
	requireBudgetIdle(t, b)
}

// B54(b): calls that hang do not take the other lane's slot.
func TestSubmissionStartsWhileStatusCallsHang(t *testing.T) {
	s := &budgetSim{clock: newBudgetClock()}
	b := budgetOn(t, s.clock, caseLimits())
	for range 10 {
		s.one(b, LaneStatus, 10, nil, nil)
	}
	s.clock.to(3)
	s.one(b, LaneSubmit, 0.1, nil, nil)
	s.clock.to(4)
	assert.Equal(t, 1, s.starts(3, 4, inLane(LaneSubmit)))
	assert.LessOrEqual(t, s.peak, 10)
}

// B54(c): what the other lane does not use is lent.
func TestOneLaneAloneUsesTheWholeRate(t *testing.T) {
	for _, lane := range []Lane{LaneStatus, LaneSubmit} {
		s := &budgetSim{clock: newBudgetClock()}
		b := budgetOn(t, s.clock, caseLimits())
		for range 50 {
			s.one(b, lane, 0.2, nil, nil)
		}
		s.clock.to(9.001) // a burst of 5, then 5/s
		assert.Len(t, s.calls, 50)
	}
}

// B54(d): reserves on both sides leave no slot idle that a lane could use.
func TestReservedSlotsOfBothLanes(t *testing.T) {
	s := &budgetSim{clock: newBudgetClock()}
	l := Limits{Total: Limit{Concurrent: 4}}
	l.Status.Reserve.Concurrent, l.Submit.Reserve.Concurrent = 2, 2
	b := budgetOn(t, s.clock, l)
	s.one(b, LaneStatus, 100, nil, nil)
	for range 3 {
		s.one(b, LaneSubmit, 100, nil, nil)
	}
	assert.Equal(t, 2, s.starts(0, 1, inLane(LaneSubmit)))
	s.one(b, LaneStatus, 100, nil, nil)
	assert.Len(t, s.calls, 4, "the slot that was kept is there for its lane")
}

func TestOwnCeilingIsNeverLent(t *testing.T) {
	s := &budgetSim{clock: newBudgetClock()}
	l := Limits{Total: Limit{Rate: 10, Burst: 1}}
	l.Submit.Limit = Limit{Rate: 2, Burst: 1, Concurrent: 3}
	b := budgetOn(t, s.clock, l)
	for range 200 {
		s.one(b, LaneStatus, 0, nil, nil)
		s.one(b, LaneSubmit, 0, nil, nil)
	}
	s.clock.to(10)
	assert.InDelta(t, 20, s.starts(0, 10, inLane(LaneSubmit)), 1)
	assert.InDelta(t, 80, s.starts(0, 10, inLane(LaneStatus)), 2, "nor does a lane at its ceiling hold up the other")
}

func TestBlockedNodeHoldsUpNoOther(t *testing.T) {
	s := &budgetSim{clock: newBudgetClock()}
	root := budgetOn(t, s.clock, Limits{Total: Limit{Rate: 10, Burst: 1}})
	slow, closed, free := root.Child("slow", Limits{Total: Limit{Rate: 0.1}}), root.Child("closed", Limits{}), root.Child("free", Limits{})
	s.one(closed, LaneStatus, 0, func(float64) error { return rateLimit(60) }, nil)
	s.clock.to(1)
	for range 20 {
		s.one(slow, LaneStatus, 0, nil, nil)
		s.one(closed, LaneStatus, 0, nil, nil)
	}
	for range 50 {
		s.one(free, LaneStatus, 0, nil, nil)
	}
	s.clock.to(6.2)
	assert.Equal(t, 50, s.starts(1, 6.2, func(c budgetSimCall) bool { return c.node == free }))
	assert.Equal(t, 1, s.starts(1, 6.2, func(c budgetSimCall) bool { return c.node == slow }))
}

func TestWhichLaneGoesFirst(t *testing.T) {
	for _, c := range []struct {
		name           string
		status, submit float64 // reserved per second
		took           [laneCount]int
		turn, want     Lane
	}{
		{"nothing reserved: in turn", 0, 0, [laneCount]int{}, LaneSubmit, LaneSubmit},
		{"nothing reserved: in turn, the other way", 0, 0, [laneCount]int{}, LaneStatus, LaneStatus},
		{"only one has a reserve", 1, 0, [laneCount]int{}, LaneSubmit, LaneStatus},
		{"only the other has", 0, 1, [laneCount]int{}, LaneStatus, LaneSubmit},
		{"one has used its reserve up", 1, 1, [laneCount]int{2, 0}, LaneStatus, LaneSubmit},
		{"the other has", 4, 1, [laneCount]int{0, 2}, LaneSubmit, LaneStatus},
		{"both used up: in turn", 1, 1, [laneCount]int{2, 2}, LaneSubmit, LaneSubmit},
		{"both have: the one that would lose a token sooner", 1, 4, [laneCount]int{1, 1}, LaneStatus, LaneSubmit},
		{"the other way", 4, 1, [laneCount]int{1, 1}, LaneSubmit, LaneStatus},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := caseLimits()
			l.Status.Reserve.Rate, l.Submit.Reserve.Rate = c.status, c.submit
			b := budgetOn(t, newBudgetClock(), l)
			for lane, n := range c.took {
				for range n {
					require.True(t, b.lane[lane].reserve.take(atSec(0)))
				}
			}
			b.turn = c.turn
			assert.Equal(t, c.want, b.prefers(atSec(0)))
		})
	}
}

func TestTheHighestScarceNodeDecidesBetweenLanes(t *testing.T) {
	l := Limits{Total: Limit{Rate: 1, Burst: 1}}
	root := budgetOn(t, newBudgetClock(), l)
	mid := root.Child("p", Limits{})
	route := mid.Child("r", l)
	assert.Same(t, root, route.contested(atSec(0)))
	root.SetLimits(Limits{})
	assert.Same(t, route, route.contested(atSec(0)))
	assert.Nil(t, mid.contested(atSec(0)))
	root.SetLimits(Limits{Total: Limit{Concurrent: 1}})
	assert.Same(t, root, mid.contested(atSec(0)))
}

// Two nodes that would each give way to the other must not both stand still.
func TestOppositeReservesDoNotDeadlock(t *testing.T) {
	s := &budgetSim{clock: newBudgetClock()}
	l := caseLimits()
	l.Total.Burst = 1
	l.Status.Reserve.Rate, l.Submit.Reserve.Rate = 5, 0
	root := budgetOn(t, s.clock, l)
	l.Status.Reserve.Rate, l.Submit.Reserve.Rate = 0, 5
	route := root.Child("r", l)
	for range 100 {
		s.one(route, LaneStatus, 0, nil, nil)
		s.one(route, LaneSubmit, 0, nil, nil)
	}
	s.clock.to(40.1)
	assert.Len(t, s.calls, 200, "every token was used")
}

func TestGivingBackReturnsPaceAndReserveToo(t *testing.T) {
	c := newBudgetClock()
	b := budgetOn(t, c, caseLimits())
	g, _ := b.tryAcquire(b.now(), LaneStatus)
	g.done(rateLimit(2))
	c.to(2.5)
	g, _ = b.tryAcquire(b.now(), LaneStatus) // the pace begins with the first look
	g.giveBack()
	c.to(3)
	reserve := b.lane[LaneStatus].reserve.tokens(atSec(3))
	for range 10 {
		g, ok := b.tryAcquire(b.now(), LaneStatus)
		require.True(t, ok, "the pace lets one go")
		_, ok = b.tryAcquire(b.now(), LaneStatus)
		require.False(t, ok)
		g.giveBack()
	}
	assert.InDelta(t, reserve, b.lane[LaneStatus].reserve.tokens(atSec(3)), 1e-6)
}

// A clock that went back stands still for us until it has caught up: no use in
// asking all the time.
func TestBackwardClockDoesNotSpin(t *testing.T) {
	s := &budgetSim{clock: newBudgetClock()}
	b := budgetOn(t, s.clock, Limits{Total: Limit{Rate: 10_000, Burst: 1}})
	g, ok := b.tryAcquire(b.now(), LaneStatus)
	require.True(t, ok)
	g.done(nil)
	s.clock.set(atSec(-30))
	s.one(b, LaneStatus, 0, nil, nil)
	made := s.clock.made
	s.clock.to(1)
	assert.Len(t, s.calls, 1)
	assert.Less(t, s.clock.made-made, 40)
}

func TestFirstComeFirstServedAcrossNodes(t *testing.T) {
	c := newBudgetClock()
	root := budgetOn(t, c, Limits{Total: Limit{Rate: 1, Burst: 1}})
	nodes := []*Budget{root.Child("a", Limits{}), root.Child("b", Limits{}), root}
	var order []int
	for i := range 30 {
		nodes[i*7%3].want(LaneStatus, func(g grant) {
			order = append(order, i)
			g.done(nil)
		})
	}
	c.to(0.5)
	_, ok := nodes[1].tryAcquire(c.Now(), LaneStatus)
	assert.False(t, ok)
	for sec := range 40 {
		c.to(float64(sec))
		if len(order) < 30 { // a newcomer overtakes nobody, even if it asks at the very moment
			_, ok := nodes[0].tryAcquire(atSec(float64(sec)+0.9999), LaneStatus)
			require.False(t, ok)
		}
	}
	for i := range 30 {
		require.Equal(t, i, order[i])
	}
}

func TestNewLimitsWakeWaitersAtOnce(t *testing.T) {
	s := &budgetSim{clock: newBudgetClock()}
	root := budgetOn(t, s.clock, Limits{Total: Limit{Rate: 0.001, Burst: 1}})
	b := root.Child("p", Limits{Total: Limit{Concurrent: 1}})
	for range 10 {
		s.one(b, LaneStatus, 100, nil, nil)
	}
	require.Len(t, s.calls, 1)
	root.SetLimits(Limits{})
	require.Len(t, s.calls, 1)
	assert.Zero(t, s.clock.pending()-1, "only slots are waited for, which needs no timer")
	b.SetLimits(Limits{Total: Limit{Concurrent: 4}})
	require.Len(t, s.calls, 4)
	b.SetLimits(Limits{})
	require.Len(t, s.calls, 10)
	assert.Equal(t, Limits{}, b.Limits())
}

func TestLimitsSetBeforeUseNeedNoClock(t *testing.T) {
	b := NewBudget("account", Limits{})
	b.SetLimits(Limits{Total: Limit{Rate: 1, Burst: 3}})
	_ = b.snapshot()
	b.closedUntil(LaneStatus)
	c := newBudgetClock() // in the past
	require.NoError(t, b.bind(c))
	for i := range 4 {
		_, ok := b.tryAcquire(b.now(), LaneStatus)
		assert.Equal(t, i < 3, ok)
	}
}

type budgetMonoClock struct {
	*budgetClock
	mono func() time.Duration
}

func (c budgetMonoClock) Monotonic() time.Duration { return c.mono() }

func TestWallClockJumpsDoNotMatterWithAMonotonicClock(t *testing.T) {
	mono := time.Hour
	c := budgetMonoClock{newBudgetClock(), func() time.Duration { return mono }}
	b := NewBudget("account", caseLimits())
	require.NoError(t, b.bind(c))
	require.NoError(t, b.bind(c), "a struct that cannot be compared is bound again")
	g, _ := b.tryAcquire(b.now(), LaneStatus)
	g.done(rateLimit(30))
	assert.Equal(t, atSec(30), b.snapshot().Status.ClosedUntil)
	c.set(atSec(7200))
	assert.False(t, b.closedUntil(LaneStatus).IsZero())
	assert.Equal(t, atSec(7230), b.snapshot().Status.ClosedUntil, "in wall time as it is now")
	mono += 30 * time.Second
	assert.True(t, b.closedUntil(LaneStatus).IsZero())
}

func TestTwoClocksOnOneBudgetAreRefused(t *testing.T) {
	b := NewBudget("account", Limits{})
	child := b.Child("p", Limits{})
	c := newBudgetClock()
	require.NoError(t, child.bind(c))
	require.NoError(t, b.bind(c))
	require.EqualError(t, b.bind(newBudgetClock()), `jobpoll: budget "account": already used with another clock`)
	require.Error(t, b.bind(nil))

	b = NewBudget("account", Limits{})
	require.NoError(t, b.bind(nil))
	require.NoError(t, b.bind(systemClock{}))
	require.Error(t, b.bind(c))

	b = NewBudget("account", Limits{})
	done, err := b.Acquire(t.Context(), LaneStatus)
	require.NoError(t, err)
	done(nil)
	require.Error(t, b.bind(c), "it has lived on package time")
	require.NoError(t, b.bind(nil))
}

func TestNilBudgetLimitsNothing(t *testing.T) {
	var b *Budget
	b.SetLimits(caseLimits())
	assert.Equal(t, Limits{}, b.Limits())
	assert.Empty(t, b.Name())
	assert.Empty(t, b.faults())
	assert.Nil(t, b.root())
	require.NoError(t, b.bind(newBudgetClock()))
	b.walk(func(*Budget) { t.Error("no node") })
	b.jobStarted()
	b.jobEnded()
	assert.Zero(t, b.closedUntil(LaneSubmit))
	assert.Zero(t, b.snapshot())
	assert.WithinDuration(t, time.Now(), b.now(), time.Minute)
	for range 100 {
		g, ok := b.tryAcquire(time.Time{}, LaneSubmit)
		require.True(t, ok)
		g.done(rateLimit(30))
		g.giveBack()
		done, err := b.Acquire(t.Context(), LaneStatus)
		require.NoError(t, err)
		done(rateLimit(30))
	}
	woken := 0
	b.want(LaneStatus, func(g grant) { woken++; g.done(nil) })()
	assert.Equal(t, 1, woken)
	assert.Equal(t, "p", b.Child("p", Limits{}).Name())
}

func TestSnapshotAndWalk(t *testing.T) {
	s := &budgetSim{clock: newBudgetClock()}
	root := budgetOn(t, s.clock, caseLimits())
	p := root.Child("p", Limits{Jobs: -1})
	r := p.Child("r", Limits{})
	var names []string
	root.walk(func(b *Budget) { names = append(names, b.Name()) })
	assert.Equal(t, []string{"account", "account/p", "account/p/r"}, names)

	g, _ := r.tryAcquire(r.now(), LaneStatus)
	_, _ = r.tryAcquire(r.now(), LaneSubmit)
	s.clock.to(1)
	g.done(rateLimit(30))
	s.one(r, LaneStatus, 1, nil, nil)
	r.jobStarted()
	s.clock.to(11)
	m := r.snapshot()
	assert.Equal(t, LaneMetrics{Granted: 1, Waiting: 1, RateLimited: 1, Cooled: 10 * time.Second, ClosedUntil: atSec(31), Pace: 5}, m.Status)
	assert.Equal(t, LaneMetrics{Granted: 1, InFlight: 1}, m.Submit)
	assert.Equal(t, 1, m.Jobs)
	m = root.snapshot()
	assert.Equal(t, LaneMetrics{Granted: 1, Waiting: 1, RateLimited: 1}, m.Status)
	assert.Equal(t, caseLimits(), m.Limits)
	assert.Zero(t, p.snapshot().Limits.Jobs, "made safe")
	assert.Equal(t, -1, p.Limits().Jobs, "as set")
}
