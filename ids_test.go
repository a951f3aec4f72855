package jobpoll_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What one way takes, all others have to take too: a job that could be watched and
// not be told of by a webhook would wait for nothing.
func TestAllWaysBoundTheSameIDsAlike(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		ok   bool
	}{
		"the longest":      {strings.Repeat("x", 4096), true},
		"in bytes":         {strings.Repeat("é", 2048), true},
		"one too long":     {strings.Repeat("x", 4097), false},
		"in bytes as well": {strings.Repeat("é", 2049), false},
		"much too long":    {strings.Repeat("x", 1<<20), false},
		"no text":          {"\xff", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := rigOf(t, nil)
			r.prov.Default("running")
			check := func(what string, err error) {
				t.Helper()
				if tt.ok {
					assert.NoError(t, err, what)
					return
				}
				if assert.ErrorContains(t, err, "is not valid UTF-8 of at most 4096 bytes", what) {
					assert.Less(t, len(err.Error()), 1000, what)
				}
			}
			check("AddRoute", r.AddRoute(r.route(tt.text)))
			for what, job := range map[string]jobpoll.Job{
				"ID": {Route: "r", ID: tt.text}, "ClientKey": {Route: "r", ID: "a", ClientKey: tt.text}, "Route": {Route: tt.text, ID: "b"},
			} {
				check("Watch: "+what, r.Watch(t.Context(), job))
				check("Notify: "+what, r.Notify(t.Context(), jobpoll.Notice{Key: job.Key(), ClientKey: job.ClientKey}))
				_, err := jobpoll.Intent(job, time.Time{})
				check("Intent: "+what, err)
			}
			if !tt.ok {
				_, err := r.Submit(t.Context(), jobpoll.Submission{Job: jobpoll.Job{Route: "r", ClientKey: tt.text}, Send: r.prov.Send("c", polltest.Order{})})
				check("Submit", err)
			}
		})
	}
}

func TestASubmissionWithAnIDThatCannotBeWatchedIsAmbiguous(t *testing.T) {
	r := rigOf(t, nil)
	s := submitOf(r, "c", polltest.Order{})
	s.Send = func(context.Context) (jobpoll.Sent, error) { return jobpoll.Sent{ID: strings.Repeat("x", 4097)}, nil }
	b := r.BeginSubmit(t.Context(), s)
	r.to(5 * time.Second)
	_, err := submitted(t, b)
	require.NotNil(t, err)
	assert.Equal(t, jobpoll.SubmitAmbiguous, err.Meaning)
}
