package provider

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

// B26: the answer to a submission is lost, and a list that is empty soon after
// is no proof that the job is not there: nothing says absent, and nothing is
// submitted again. None of these providers can be asked by an id of the
// caller's, so it takes the provider's own to find the job.
func TestAnEmptyListSoonAfterALostSubmissionIsNoProof(t *testing.T) {
	var posts, lists atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts.Add(1)
			panic(http.ErrAbortHandler) // taken, and the answer lost
		}
		w.Header().Set("Content-Type", "application/json")
		if lists.Add(1) == 1 {
			fmt.Fprint(w, `{"next":null,"results":[]}`)
			return
		}
		fmt.Fprint(w, `{"next":null,"results":[{"id":"rp-1","status":"processing"}]}`)
	}))
	defer server.Close()
	r, err := NewReplicate(Config{BaseURL: server.URL, Credentials: Secret(kitKey)})
	require.NoError(t, err)
	_, _, err = r.Submit(t.Context(), Order{Model: "a/b"})
	require.ErrorIs(t, err, ErrAmbiguous)

	lost := jobpoll.Lost{Job: jobpoll.Job{Route: "replicate", ClientKey: "mine"}, Misses: 3}
	f, err := r.Lookup(t.Context(), lost)
	require.NoError(t, err)
	require.Equal(t, jobpoll.FindingImpossible, f.State, "without an id nothing tells it apart")
	require.Zero(t, lists.Load())

	lost.Job.ID = "rp-1" // as a webhook may bring it
	f, err = r.Lookup(t.Context(), lost)
	require.NoError(t, err)
	require.Equal(t, jobpoll.FindingUnknown, f.State, "not there yet is not absent")
	f, err = r.Lookup(t.Context(), lost)
	require.NoError(t, err)
	require.Equal(t, jobpoll.FindingPresent, f.State)
	require.Equal(t, jobpoll.StateRunning, f.Report.State)
	require.EqualValues(t, 1, posts.Load())
}
