package polltest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

func TestAPlayTellsWhatAProviderWould(t *testing.T) {
	script, err := polltest.ParseScript(`at 1s queued pos 3; at 2s 503 "busy" retry-after 4s once; at 3s broken html x2; at 4s hang once;
		at 5s error once; at 6s panic once; at 9s "ODD" 40% slow 2s budget; at 10s failed filtered "unsafe" completed expires 1h`)
	require.NoError(t, err)
	play := script.Play()
	_, ok := play.Look(0)
	assert.False(t, ok)
	_, ok = play.State(0)
	assert.False(t, ok)

	look := func(age time.Duration) polltest.Entry {
		e, ok := play.Look(age)
		require.True(t, ok)
		return e
	}
	assert.Equal(t, polltest.Entry{At: time.Second, State: jobpoll.StateQueued, Position: 3}, look(time.Second))
	state, ok := play.State(8 * time.Second)
	require.True(t, ok)
	assert.Equal(t, jobpoll.StateQueued, state.State, "what fails tells no state")
	assert.Equal(t, polltest.FaultReset, look(8*time.Second).Fault) // of the panic
	assert.True(t, look(8*time.Second).Err)
	assert.Equal(t, polltest.FaultHang, look(8*time.Second).Fault)
	assert.Equal(t, polltest.FaultHTML, look(8*time.Second).Fault)
	assert.Equal(t, polltest.FaultHTML, look(8*time.Second).Fault)
	busy := look(8 * time.Second)
	assert.True(t, busy.Fails())
	assert.Equal(t, polltest.Entry{At: 2 * time.Second, Status: 503, Word: "busy", RetryAfter: 4 * time.Second, Times: 1}, busy)
	assert.Equal(t, jobpoll.StateQueued, look(8*time.Second).State)

	assert.Equal(t, polltest.Entry{At: 9 * time.Second, Word: "ODD", Progress: 0.4, Slow: 2 * time.Second, Scope: jobpoll.ScopeBudget}, look(9*time.Second))
	end := look(time.Hour)
	assert.True(t, end.Ends())
	assert.Equal(t, &jobpoll.Failure{Kind: jobpoll.FailureFiltered, Message: "unsafe"}, end.Failure)
	assert.True(t, end.Completed)
	assert.Equal(t, time.Hour, end.Expires)
	assert.Len(t, script.Entries(), 8)
}

func TestEachFaultIsAWordOfTheGrammarAndAnErrorToAChecker(t *testing.T) {
	for _, fault := range polltest.Faults() {
		text := "at 0s broken " + string(fault) + " slow 1s x2"
		script, err := polltest.ParseScript(text)
		require.NoError(t, err)
		assert.Equal(t, text, script.String())
		assert.Equal(t, fault, script.Entries()[0].Fault)

		p := polltest.NewProvider(polltest.NewClock(time.Time{}))
		p.Add("job", "broken "+string(fault))
		_, err = p.Check(context.Background(), jobpoll.Job{ID: "job"})
		assert.EqualError(t, err, "scripted: a broken answer: "+string(fault))
	}
	for _, text := range []string{"broken", "broken glass", `broken html "x"`, "broken html 20%"} {
		_, err := polltest.ParseScript(text)
		assert.Error(t, err, text)
	}
}
