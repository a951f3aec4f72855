package jobpoll

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// B11(a): no shift and no multiplication overflows.
func TestOwnBackoffNeverFallsAndStaysInItsBounds(t *testing.T) {
	last := time.Duration(0)
	for n := range 10_001 {
		d := ownBackoff(n)
		require.GreaterOrEqual(t, d, max(last, coolFirst))
		require.LessOrEqual(t, d, coolMax)
		last = d
	}
	assert.Equal(t, []time.Duration{2e9, 4e9, 8e9, 16e9, 32e9, 60e9, 60e9},
		[]time.Duration{ownBackoff(1), ownBackoff(2), ownBackoff(3), ownBackoff(4), ownBackoff(5), ownBackoff(6), ownBackoff(7)})
}

func TestCooldownStepByStep(t *testing.T) {
	type step struct {
		at, granted float64
		kind        coolKind
		hint        float64
		until       float64 // wanted, after the event
		n           int
		part        float64
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"without a hint 2 s, doubled", []step{
			{1, 0, coolLimited, 0, 3, 1, 1}, {4, 3.5, coolLimited, 0, 8, 2, 0.5}, {9, 8.5, coolLimited, 0, 17, 3, 0.25}}},
		{"a hint is obeyed", []step{{5, 4, coolLimited, 30, 35, 1, 1}, {36, 35.5, coolLimited, 5, 41, 2, 0.5}}},
		{"a hint below the first step does not cut the own backoff", []step{
			{0, -1, coolLimited, 0.493, 2, 1, 1}, {3, 2.5, coolLimited, 0.493, 7, 2, 0.5}}}, // B03(a)
		{"a negative hint is none", []step{{0, -1, coolLimited, -5, 2, 1, 1}}},
		{"an absurd hint is bounded", []step{{0, -1, coolLimited, 9e9, MaxRetryAfter.Seconds(), 1, 1}}},
		{"five in flight are one event and only lengthen it", []step{
			{1, 0, coolLimited, 10, 11, 1, 1}, {1.1, 0, coolLimited, 20, 21.1, 1, 1}, {1.2, 0.5, coolLimited, 3, 21.1, 1, 1},
			{1.3, 1, coolLimited, 0, 21.1, 1, 1}, {25, 0.9, coolLimited, 0, 27, 1, 1}}},
		{"a good answer clears the row, not the cool-down, nor the pace", []step{
			{0, -1, coolLimited, 0, 2, 1, 1}, {3, 2.5, coolLimited, 0, 7, 2, 0.5}, {8, 7.5, coolGood, 0, 7, 0, 0.5}, {9, 8.5, coolLimited, 0, 11, 1, 0.25}}},
		{"an older good answer changes nothing", []step{{5, 4, coolLimited, 30, 35, 1, 1}, {6, 4, coolGood, 0, 35, 1, 1}}},
		{"503 with a hint closes but does not halve", []step{
			{0, -1, coolBusy, 5, 5, 0, 1}, {6, 5.5, coolBusy, 5, 11, 0, 1}, {12, 11.5, coolLimited, 0, 14, 1, 0.5}}},
		{"the pace recovers by doubling each minute", []step{
			{0, -1, coolLimited, 10, 10, 1, 1}, {11, 10.5, coolLimited, 10, 21, 2, 0.5}, {22, 21.5, coolLimited, 10, 32, 3, 0.25},
			{91, 90, coolGood, 0, 32, 0, 0.25}, {92, 91, coolGood, 0, 32, 0, 0.5}, {152, 151, coolGood, 0, 32, 0, 1}}},
		{"what the pace had recovered counts for the next halving", []step{
			{0, -1, coolLimited, 10, 10, 1, 1}, {11, 10.5, coolLimited, 10, 21, 2, 0.5}, {22, 21.5, coolLimited, 10, 32, 3, 0.25},
			{95, 94, coolLimited, 10, 105, 4, 0.25}}},
		{"an episode that is over starts anew", []step{
			{0, -1, coolLimited, 10, 10, 1, 1}, {11, 10.5, coolGood, 0, 10, 0, 1}, {71, 70.5, coolLimited, 10, 81, 1, 1}}},
		{"without a good answer it is not over", []step{
			{0, -1, coolLimited, 10, 10, 1, 1}, {71, 70.5, coolLimited, 10, 81, 2, 0.5}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var cd cooldown
			for i, s := range c.steps {
				cd = cd.observe(atSec(s.at), coolEvent{kind: s.kind, granted: atSec(s.granted), hint: time.Duration(s.hint * 1e9)})
				assert.InDelta(t, s.until, secOf(cd.until), 1e-6, "step %d: until", i)
				assert.Equal(t, s.n, cd.n, "step %d: in a row", i)
				assert.InDelta(t, s.part, cd.part(atSec(s.at)), 1e-9, "step %d: part", i)
			}
		})
	}
}

func TestPaceHasAFloorAndAnEnd(t *testing.T) {
	var cd cooldown
	now := 0.0
	for range 20 {
		cd = cd.observe(atSec(now), coolEvent{kind: coolLimited, granted: atSec(now - 0.1), hint: 10 * time.Second})
		now += 11
	}
	assert.InDelta(t, paceFloor, cd.part(atSec(now)), 1e-12)
	assert.InDelta(t, 5*paceFloor, cd.pace(atSec(now), 5), 1e-12)
	cd = cd.observe(atSec(now), coolEvent{kind: coolGood, granted: atSec(now - 0.1)})
	end := secOf(cd.until) + 6*60
	assert.False(t, cd.over(atSec(end-0.001)))
	assert.True(t, cd.over(atSec(end)))
	assert.Zero(t, cd.pace(atSec(end), 5))
}

func TestPaceWithoutACeilingIsTheRateBefore(t *testing.T) {
	var m grantMeter
	for i := range 300 {
		m.add(atSec(float64(i) / 20))
	}
	assert.InDelta(t, 20, m.at(atSec(15)), 2)
	assert.Less(t, m.at(atSec(75)), 1.0)
	cd := cooldown{}.observe(atSec(15), coolEvent{kind: coolLimited, granted: atSec(14), observed: m.at(atSec(15))})
	assert.InDelta(t, 20, cd.pace(atSec(18), 0), 2)
	quiet := cooldown{}.observe(atSec(15), coolEvent{kind: coolLimited, granted: atSec(14), observed: 0.01})
	assert.InDelta(t, 1, quiet.pace(atSec(18), 0), 1e-9)
}

func TestCooledTimeCountsEachInstantOnce(t *testing.T) {
	var cd cooldown
	limited := func(now, granted, hint float64) {
		cd = cd.observe(atSec(now), coolEvent{kind: coolLimited, granted: atSec(granted), hint: time.Duration(hint * 1e9)})
	}
	assert.Zero(t, cd.cooledFor(atSec(0)))
	limited(0, -1, 10)
	limited(5, -1, 10) // to 15
	assert.Equal(t, 7*time.Second, cd.cooledFor(atSec(7)))
	assert.Equal(t, 15*time.Second, cd.cooledFor(atSec(20)))
	limited(20, 19, 10)
	assert.Equal(t, 25*time.Second, cd.cooledFor(atSec(100)))
}

// B52: a job that ends makes room, so an own backoff for want of it ends too.
func TestFreedJobSlotEndsACapacityCooldown(t *testing.T) {
	event := coolEvent{kind: coolCapacity, granted: atSec(9)}
	cd := cooldown{}.observe(atSec(10), event)
	require.Equal(t, atSec(12), cd.until)
	assert.Equal(t, atSec(11), cd.slotFreed(atSec(10.2)).until, "a second stays")
	assert.Equal(t, atSec(11.5), cd.slotFreed(atSec(11.5)).until)
	event.hint = 30 * time.Second
	cd = cooldown{}.observe(atSec(10), event)
	assert.Equal(t, atSec(40), cd.slotFreed(atSec(20)).until, "the provider's word stands")
	cd = cooldown{}.observe(atSec(10), coolEvent{kind: coolLimited, granted: atSec(9)})
	assert.Equal(t, atSec(12), cd.slotFreed(atSec(11.5)).until, "a rate limit is no want of slots")
}
