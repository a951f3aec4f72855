package provider

import (
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
			_, err = p.Submit(t.Context(), jobpoll.Submission{Job: jobpoll.Job{Route: "r", ClientKey: "c"}, Send: Send(a, Order{Model: "a/b"})})
			var e *jobpoll.SubmitError
			require.ErrorAs(t, err, &e, "%s %d", name, c.status)
			require.Equal(t, c.want, e.Meaning, "%s %d: %v", name, c.status, err)
			server.Close()
		}
	}
}
