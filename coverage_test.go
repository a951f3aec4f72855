package jobpoll

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// coverageAfter feeds ends, '+' told by a notice and '-' found by a look.
func coverageAfter(mode WebhookMode, window int, ends ...string) *coverage {
	c := newCoverage(&WebhookPolicy{Mode: mode, Window: window})
	for _, s := range ends {
		for _, e := range s {
			c.add(coveredEnd{covered: e == '+'})
		}
	}
	return &c
}

func TestCoverageIsThePartOfTheLatestEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		got  *coverage
		want float64
	}{
		{"expected, before any", coverageAfter(WebhookExpected, 0), 1},
		{"learned, before any", coverageAfter(WebhookLearned, 0), 0},
		{"learned after four", coverageAfter(WebhookLearned, 0, "++++"), 0.5},
		{"learned after eight", coverageAfter(WebhookLearned, 0, strings.Repeat("+", 8)), 1},
		{"expected, one lost", coverageAfter(WebhookExpected, 0, "-"), 7.0 / 8},
		{"expected, never one", coverageAfter(WebhookExpected, 0, "---"), 0},
		{"nine of ten", coverageAfter(WebhookExpected, 0, strings.Repeat("+++++++++-", 10)), 0.9},
		{"only the latest", coverageAfter(WebhookExpected, 10, strings.Repeat("+-", 10), strings.Repeat("++++-", 10)), 0.8},
		{"less than a tenth is none", coverageAfter(WebhookLearned, 50, strings.Repeat("-", 47), "++"), 0},
	} {
		assert.InDelta(t, c.want, c.got.value, 1e-9, c.name)
	}
}

func TestABrokenWebhookIsKnownByThreeEndsInARowAndAMendedOneToo(t *testing.T) {
	c := coverageAfter(WebhookExpected, 0, strings.Repeat("+", 1000))
	for i, want := range []float64{0.99, 0.98, 0} {
		c.add(coveredEnd{})
		assert.InDelta(t, want, c.value, 1e-9, "%d lost", i+1)
	}
	for range 100 {
		c.add(coveredEnd{})
	}
	require.Zero(t, c.value)
	for range 8 {
		c.add(coveredEnd{covered: true})
	}
	assert.InDelta(t, 1, c.value, 1e-9)
}

func TestSomeLostWebhooksAreNoBrokenOne(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, part := range []float64{0.5, 0.7, 0.9, 0.98} {
		c := coverageAfter(WebhookExpected, 0)
		sum, n := 0.0, 5000
		for range n {
			c.add(coveredEnd{covered: rnd.Float64() < part})
			sum += c.value
		}
		assert.InDelta(t, part, sum/float64(n), 0.03)
	}
}

// The last of a batch to be found are those whose webhooks are lost.
func TestTheLostOnesOfABatchAreNoBrokenWebhook(t *testing.T) {
	c := coverageAfter(WebhookExpected, 0)
	at := StampOf(t0)
	for i := range 90 {
		c.add(coveredEnd{covered: true, ended: at.Add(time.Duration(i) * sec)})
	}
	for i := range 10 {
		c.missed(fmt.Sprint(i), at.Add(time.Duration(9*i)*sec+1), at.Add(5*mnt))
	}
	c.settle(at.Add(6 * mnt))
	assert.InDelta(t, 0.9, c.value, 0.02)
}

func TestANoticeThatALookOvertookCounts(t *testing.T) {
	c := coverageAfter(WebhookExpected, 0, strings.Repeat("+", 10))
	at := StampOf(t0)
	c.missed("a", at, at)
	c.missed("b", at, at)
	c.missed("quick", at.Add(sec), at.Add(sec))
	assert.Equal(t, 5*sec, c.next(at))
	assert.False(t, c.settle(at.Add(5*sec-1)))
	assert.InDelta(t, 1, c.value, 0, "they may be on their way")
	assert.True(t, c.late("quick", at))
	assert.InDelta(t, 1, c.value, 0)
	assert.True(t, c.settle(at.Add(5*sec)))
	assert.Equal(t, never, c.next(at))
	c.ends = append(c.ends[:0], c.ends[1:]...) // as without the quick one
	c.value = c.estimate(c.ends)
	require.InDelta(t, 10.0/12, c.value, 1e-9)
	assert.False(t, c.late("c", at), "not one of them")
	assert.False(t, c.late("a", at+1), "too late")
	assert.True(t, c.late("a", at))
	assert.False(t, c.late("a", at), "once")
	assert.InDelta(t, 11.0/12, c.value, 1e-9)
}

func TestCoverageIsBoundedByItsWindow(t *testing.T) {
	c := newCoverage(&WebhookPolicy{Window: 20})
	for i := range 10_000 {
		c.add(coveredEnd{covered: i%2 == 0, id: fmt.Sprint(i)})
		c.missed(fmt.Sprint(i), 0, 0)
		require.LessOrEqual(t, len(c.ends)+len(c.open), 40)
	}
}

func TestEventsAreToldApartByRouteAndID(t *testing.T) {
	event := func(route, id string) eventID {
		return (&Notice{Key: Key{Route: route}, EventID: id}).event()
	}
	assert.NotEqual(t, event("a", "b"), event("a", "c"))
	assert.NotEqual(t, event("a", "b"), event("c", "b"))
	assert.NotEqual(t, event("ab", "c"), event("a", "bc"))
	assert.Equal(t, eventID{}, event("a", ""))
	var seen eventIDs
	seen.add(event("a", ""))
	assert.False(t, seen.seen(event("a", "")), "no id is no event")
	for i := range 2*maxEvents + 1 {
		seen.add(event("a", fmt.Sprint(i)))
	}
	assert.False(t, seen.seen(event("a", "0")), "bounded")
	assert.True(t, seen.seen(event("a", fmt.Sprint(maxEvents))), "one generation at least")
}
