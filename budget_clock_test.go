package jobpoll

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A clock is read before the lock is taken, and whoever read it may be held up
// in between, by a virtual machine that stands still for one.
func TestAReadingThatIsOvertakenIsNoClockThatWasSetBack(t *testing.T) {
	for name, tt := range map[string]struct {
		early, set float64 // when the late one read, and where the clock is set then
		want       float64 // the time of the budget 10 s after the other reading
	}{
		"overtaken":                         {early: 1, want: 110},
		"overtaken, and the clock set back": {early: 1, set: 40, want: 110},
		"set back alone":                    {set: 40, want: 110},
	} {
		t.Run(name, func(t *testing.T) {
			clock := newBudgetClock()
			b := budgetOn(t, clock, Limits{})
			source := b.tree.source.Load()
			clock.to(1)
			late := source.read()
			clock.to(100)
			require.Equal(t, atSec(100), b.now())
			take := func(r reading) time.Time {
				b.tree.mu.Lock()
				defer b.tree.mu.Unlock()
				return b.tree.take(r)
			}
			if tt.early > 0 {
				assert.Equal(t, atSec(100), take(late))
			}
			if tt.set > 0 {
				clock.set(atSec(tt.set))
				assert.Equal(t, atSec(100), b.now())
			}
			clock.set(clock.Now().Add(10 * time.Second))
			assert.Equal(t, atSec(tt.want), b.now())
		})
	}
}
