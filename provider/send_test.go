package provider

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

// What an adapter says of a submission is what Poller.Submit makes of it.
func TestSubmitKnowsWhatAnAdaptersErrorsMean(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for _, name := range adapterNames {
		for _, c := range []struct {
			status int
			want   jobpoll.SubmitMeaning
		}{
			{0, jobpoll.SubmitNotSent}, {400, jobpoll.SubmitRefused}, {401, jobpoll.SubmitRefused}, {402, jobpoll.SubmitRefused},
			{404, jobpoll.SubmitRefused}, {408, jobpoll.SubmitAmbiguous}, {409, jobpoll.SubmitAmbiguous}, {422, jobpoll.SubmitRefused},
			{429, jobpoll.SubmitRefused}, {302, jobpoll.SubmitAmbiguous}, {200, jobpoll.SubmitAmbiguous}, {500, jobpoll.SubmitAmbiguous}, {503, jobpoll.SubmitAmbiguous},
		} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { says(w, c.status, `{}`) }))
			base := server.URL
			if c.status == 0 {
				base = "http://" + closed.Addr().String()
			}
			a := newAdapterFor(t, name, Config{BaseURL: base, Credentials: Secret(kitKey), Timeout: time.Minute})
			p, err := jobpoll.New(jobpoll.Config{Routes: []jobpoll.Route{{Name: "r", Checker: a}}})
			require.NoError(t, err)
			_, err = Send(a, Order{Model: "a/b"})(t.Context())
			require.Error(t, err)
			if c.want == jobpoll.SubmitAmbiguous { // it needs Run to be looked for
				require.ErrorIs(t, err, jobpoll.ErrAmbiguous, "%s %d", name, c.status)
				server.Close()
				continue
			}
			_, err = p.Submit(t.Context(), Submission("r", "c", a, Order{Model: "a/b"}))
			var e *jobpoll.SubmitError
			require.ErrorAs(t, err, &e, "%s %d", name, c.status)
			require.Equal(t, c.want, e.Meaning, "%s %d: %v", name, c.status, err)
			server.Close()
		}
	}
}

// submitterFunc is a Submitter.
type submitterFunc func(Order) (jobpoll.Job, jobpoll.Report, error)

func (f submitterFunc) Submit(_ context.Context, o Order) (jobpoll.Job, jobpoll.Report, error) {
	return f(o)
}

func TestASubmissionHasOfItsOrderWhatAPollerHasToKnow(t *testing.T) {
	var sent []Order
	s := submitterFunc(func(o Order) (jobpoll.Job, jobpoll.Report, error) {
		sent = append(sent, o)
		return jobpoll.Job{ID: "1", Ref: "f", Profile: o.Model}, jobpoll.Report{State: jobpoll.StateQueued}, nil
	})
	order := Order{Model: "a/b", Input: map[string]int{"n": 1}}
	sub := Submission("r", "order-4711", s, order)
	require.Equal(t, jobpoll.Job{Route: "r", ClientKey: "order-4711", Profile: "a/b"}, sub.Job)

	p, err := jobpoll.New(jobpoll.Config{Routes: []jobpoll.Route{{Name: "r", Checker: jobpoll.CheckerFunc(func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
		return jobpoll.Report{}, nil
	})}}})
	require.NoError(t, err)
	job, err := p.Submit(t.Context(), sub)
	require.NoError(t, err)
	require.Equal(t, "1", job.ID)
	require.Equal(t, "f", job.Ref)
	require.Equal(t, "a/b", job.Profile)
	order.ClientKey = "order-4711"
	require.Equal(t, []Order{order}, sent)

	for _, bad := range []jobpoll.Submission{Submission("", "c", s, order), Submission("r", "", s, order)} {
		_, err := p.Submit(t.Context(), bad)
		var e *jobpoll.SubmitError
		require.ErrorAs(t, err, &e)
		require.True(t, e.Safe())
	}
	require.Len(t, sent, 1)
}
