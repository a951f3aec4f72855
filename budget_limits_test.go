package jobpoll

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLaneNames(t *testing.T) {
	b, err := json.Marshal([]Lane{LaneStatus, LaneSubmit})
	require.NoError(t, err)
	assert.JSONEq(t, `["status","submit"]`, string(b))
	var back []Lane
	require.NoError(t, json.Unmarshal([]byte(`["submit","status","express"]`), &back))
	assert.Equal(t, []Lane{LaneSubmit, LaneStatus}, back[:2])
	assert.Equal(t, "unknown", back[2].String())
}

func TestFaultsNameTheBudgetAndAreMadeSafe(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits Limits
		faults []string
	}{
		{"zero", Limits{}, nil},
		{"the settings of the cases", caseLimits(), nil},
		{"a tenth and two tenths are three tenths",
			Limits{Total: Limit{Rate: 0.3}, Status: LaneLimits{Reserve: Limit{Rate: 0.1}}, Submit: LaneLimits{Reserve: Limit{Rate: 0.2}}}, nil},
		{"reserve over total", Limits{Total: Limit{Rate: 5}, Submit: LaneLimits{Reserve: Limit{Rate: 6}}},
			[]string{`Submit.Reserve.Rate 6 exceeds Total.Rate 5`}},
		{"reserves over total together", Limits{Total: Limit{Rate: 5}, Status: LaneLimits{Reserve: Limit{Rate: 3}}, Submit: LaneLimits{Reserve: Limit{Rate: 3}}},
			[]string{`Status.Reserve.Rate 3 and Submit.Reserve.Rate 3 together exceed Total.Rate 5`}},
		{"slots over total", Limits{Total: Limit{Concurrent: 4}, Status: LaneLimits{Reserve: Limit{Concurrent: 9}}},
			[]string{`Status.Reserve.Concurrent 9 exceeds Total.Concurrent 4`, `Status.Reserve.Concurrent 4 leaves no slot of Total.Concurrent 4 to Submit`}},
		{"not numbers", Limits{Total: Limit{Rate: math.NaN()}, Status: LaneLimits{Limit: Limit{Rate: math.Inf(1)}}, Submit: LaneLimits{Limit: Limit{Rate: math.Inf(-1)}}},
			[]string{`Total.Rate NaN is not finite`, `Status.Rate +Inf is not finite`, `Submit.Rate -Inf is not finite`}},
		{"negative", Limits{Total: Limit{Rate: -1, Burst: -2, Concurrent: -3}, Submit: LaneLimits{Limit: Limit{Rate: -4}, Reserve: Limit{Burst: -5}}, Jobs: -6},
			[]string{`Total.Rate -1 is negative`, `Total.Burst -2 is negative`, `Total.Concurrent -3 is negative`,
				`Submit.Rate -4 is negative`, `Submit.Reserve.Burst -5 is negative`, `Jobs -6 is negative`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := NewBudget("account", Limits{})
			b := root.Child("provider", c.limits)
			var got, want []string
			for _, err := range root.faults() {
				got = append(got, err.Error())
			}
			for _, f := range c.faults {
				want = append(want, `jobpoll: budget "account/provider": `+f)
			}
			assert.Equal(t, want, got)
			assert.Len(t, b.Child("route", Limits{}).faults(), len(want), "a child tells of the whole tree")

			safe, _ := c.limits.clean()
			_, again := safe.clean()
			assert.Empty(t, again, "what was made safe has no faults")
			for _, lane := range []Lane{LaneStatus, LaneSubmit} {
				g, _ := b.tryAcquire(atSec(1), lane)
				g.done(nil)
				assert.NotPanics(t, func() { b.want(lane, func(g grant) { g.done(rateLimit(1)) })() })
			}
			b.SetLimits(Limits{})
			assert.Empty(t, root.faults())
		})
	}
}

func TestDefaultsOfBurstAndReservedSlots(t *testing.T) {
	for rate, burst := range map[float64]int{0: 0, 0.1: 1, 5: 1, 10: 1, 11: 2, 1000: 100, 1e300: math.MaxInt32} {
		assert.Equal(t, burst, Limit{Rate: rate}.burst(), "rate %g", rate)
	}
	l := caseLimits()
	assert.Equal(t, [laneCount]int{1, 1}, l.slots())
	l.Total.Concurrent = 1
	assert.Equal(t, [laneCount]int{}, l.slots(), "one slot cannot be kept for either")
	l.Total.Concurrent = 10
	l.Submit.Reserve.Concurrent = 4
	assert.Equal(t, [laneCount]int{1, 4}, l.slots())
	l.Submit.Concurrent = 2
	assert.Equal(t, [laneCount]int{1, 2}, l.slots(), "no more than the lane's ceiling lets it use")
}
