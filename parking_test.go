package jobpoll

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRepeatsOfANoticeHaveOneRecord(t *testing.T) {
	var all []Notice
	for _, key := range []Key{{}, {"r", "a"}, {"r", "b"}, {"s", "a"}} {
		for _, client := range []string{"", "c", "d"} {
			for _, event := range []string{"", "e", "f"} {
				for _, state := range []State{StateUnknown, StateRunning} {
					for _, trust := range []Trust{TrustHint, TrustAuthoritative} {
						all = append(all, Notice{Key: key, ClientKey: client, EventID: event, Report: Report{State: state}, Trust: trust})
					}
				}
			}
		}
	}
	for i := range all {
		for j := range all {
			a, b := &all[i], &all[j]
			assert.Equal(t, noticeID(a) == noticeID(b), a.repeats(b), "%v and %v", a, b)
		}
	}
}

// The engine stands still meanwhile, and anybody may send notices.
func TestLookingForAParkedNoticeCostsLittleHoweverManyWait(t *testing.T) {
	var q parking
	for i := range 1000 {
		q.park(Notice{Key: Key{"r", "a"}, EventID: fmt.Sprint(i)}, StampOf(t0))
	}
	n := Notice{Key: Key{"r", "a"}, EventID: "none of them"}
	assert.Zero(t, testing.AllocsPerRun(10, func() { q.has(&n) }))
	n.EventID = "999"
	assert.True(t, q.has(&n))
}
