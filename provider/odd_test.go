package provider

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

// adapterOn is an adapter of a server that gives one answer.
func adapterOn(t *testing.T, name string, serve http.HandlerFunc) adapter {
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	return newAdapterFor(t, name, Config{BaseURL: server.URL, Credentials: Secret(kitKey)})
}

// A field that does not matter may be of any type: no look is lost over it.
func TestAFieldOfAnotherTypeLosesNoLook(t *testing.T) {
	anything := []string{`null`, `true`, `false`, `5`, `-1`, `3.5`, `1e400`, `99999999999999999999`, `""`, `"5"`, `[]`, `[1]`, `{}`, `{"get":5}`, `{"get":{}}`}
	for name, c := range map[string]struct {
		answer string // before and after the value
		end    string
		fields []string
	}{
		"fal":       {`{"status":"IN_PROGRESS",`, `}`, []string{"request_id", "queue_position", "status_url", "error", "error_type", "logs", "metrics"}},
		"replicate": {`{"status":"processing",`, `}`, []string{"id", "output", "error", "started_at", "completed_at", "data_removed", "urls", "logs", "metrics"}},
		"atlas":     {`{"code":200,"data":{"status":"processing",`, `}}`, []string{"id", "outputs", "error", "error_code", "has_nsfw_contents", "created_at"}},
	} {
		for _, field := range c.fields {
			for _, value := range anything {
				body := c.answer + `"` + field + `":` + value + c.end
				a := adapterOn(t, name, typed("application/json", body))
				rep, err := a.Check(t.Context(), jobpoll.Job{Route: "r", ID: "x", Ref: refFor(name)})
				require.NoError(t, err, body)
				require.Equal(t, jobpoll.StateRunning, rep.State, body)
			}
		}
	}
}

func TestAPlaceInTheQueueOfAnyType(t *testing.T) {
	for value, want := range map[string]int{`0`: 1, `"3"`: 4, `3.0`: 4, `1e2`: 101, `null`: 0, `-1`: 0, `1e400`: 0, `"NaN"`: 0, `99999999999999999999`: 0, `[]`: 0, `true`: 0, `"soon"`: 0} {
		a := adapterOn(t, "fal", typed("application/json", `{"status":"IN_QUEUE","queue_position":`+value+`}`))
		rep, err := a.Check(t.Context(), jobpoll.Job{Route: "r", ID: "x", Ref: "own/app"})
		require.NoError(t, err, value)
		require.Equal(t, want, rep.QueuePosition, value)
	}
}

// An envelope tells its code whatever is beside it.
func TestTheCodeOfAnEnvelopeCountsWhateverIsBesideIt(t *testing.T) {
	for code, want := range map[string]jobpoll.ErrorKind{
		`401`: jobpoll.ErrorAuth, `"402"`: jobpoll.ErrorQuota, `404`: jobpoll.ErrorNoSuchJob, `429.0`: jobpoll.ErrorRateLimited, `4.29e2`: jobpoll.ErrorRateLimited,
		`500`: jobpoll.ErrorTransient, `1039`: jobpoll.ErrorTransient, `"E1"`: jobpoll.ErrorTransient, `{}`: jobpoll.ErrorTransient, `-1`: jobpoll.ErrorTransient, `1e400`: jobpoll.ErrorTransient,
		`200`: jobpoll.ErrorTransient, `"200"`: jobpoll.ErrorTransient, // without a status
	} {
		for _, data := range []string{`null`, `""`, `"x"`, `[]`, `5`, `{}`} {
			body := `{"code":` + code + `,"msg":"m","data":` + data + `}`
			a := adapterOn(t, "atlas", typed("application/json", body))
			_, err := a.Check(t.Context(), jobpoll.Job{Route: "r", ID: "x", SubmittedAt: time.Unix(1e9, 0)})
			var ce *jobpoll.CheckError
			require.ErrorAs(t, err, &ce, body)
			require.Equal(t, want, ce.Kind, body)
		}
	}
	for _, code := range []string{`200`, `200.0`, `"200"`, `2e2`} {
		a := adapterOn(t, "atlas", typed("application/json", `{"code":`+code+`,"data":{"status":"processing"}}`))
		rep, err := a.Check(t.Context(), jobpoll.Job{Route: "r", ID: "x"})
		require.NoError(t, err, code)
		require.Equal(t, jobpoll.StateRunning, rep.State)
	}
}

// Only a code of HTTP's that refuses, without an id, says that nothing was bought.
func TestWhatAnEnvelopeSaysOfASubmission(t *testing.T) {
	for body, sure := range map[string]bool{
		`{"code":400,"msg":"m"}`: true, `{"code":402,"data":[]}`: true, `{"code":"429","data":""}`: true,
		`{"code":408}`: false, `{"code":4001234}`: false, `{"code":"4ever"}`: false, `{"code":4}`: false, `{"code":500}`: false,
		`{"code":403,"data":{"id":"x"}}`: false, `{"code":200,"data":""}`: false, `{"code":200,"data":{"id":""}}`: false, `[]`: false,
	} {
		a := adapterOn(t, "atlas", typed("application/json", body))
		_, _, err := a.Submit(t.Context(), Order{Model: "m"})
		require.Error(t, err, body)
		if sure {
			require.NotErrorIs(t, err, ErrAmbiguous, body)
		} else {
			require.ErrorIs(t, err, ErrAmbiguous, body)
		}
	}
}

// An id that is a number is an id: the job is bought.
func TestAnIDThatIsANumberIsKept(t *testing.T) {
	for name, body := range map[string]string{
		"fal":       `{"request_id":123,"status":"IN_QUEUE","status_url":7}`,
		"replicate": `{"id":123,"status":"starting","urls":[]}`,
		"atlas":     `{"code":200,"data":{"id":123,"status":7}}`,
	} {
		a := adapterOn(t, name, typed("application/json", body))
		job, _, err := a.Submit(t.Context(), Order{Model: "own/app"})
		require.NoError(t, err, name)
		require.Equal(t, "123", job.ID, name)
	}
}

// What a proxy says of the call for a result is no failure of the job.
func TestAResultThatIsNotOfFalsMakingFailsNoJob(t *testing.T) {
	for name, c := range map[string]struct {
		status      int
		contentType string
		body        string
	}{
		"a page under 400": {400, "text/html", "<html>400 Bad Request</html>"},
		"nothing":          {400, "application/json", ""},
		"a page under 422": {422, "text/html", "<html>"},
		"other JSON":       {422, "application/json", `{"message":"x"}`},
		"a proxy's JSON":   {502, "application/json", `{"error":"bad gateway"}`},
		"a page under 504": {504, "text/html", "<html>"},
	} {
		a := adapterOn(t, "fal", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", c.contentType)
			says(w, c.status, c.body)
		})
		_, err := a.(jobpoll.Fetcher).Fetch(t.Context(), jobpoll.Job{Route: "r", ID: "x", Ref: "own/app"}, jobpoll.Report{State: jobpoll.StateSucceeded, RawStatus: "COMPLETED"})
		require.Error(t, err, name)
	}
}

// The caller's own limit is told by a header: it is not to be tried again, whatever
// the body.
func TestTheLimitOfTheCallerEndsAFalJobWhateverTheBody(t *testing.T) {
	for _, body := range []string{"", "<html>", `{}`, `{"detail":"timed out"}`} {
		a := adapterOn(t, "fal", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Fal-Request-Timeout-Type", "user")
			says(w, 504, body)
		})
		rep, err := a.(jobpoll.Fetcher).Fetch(t.Context(), jobpoll.Job{Route: "r", ID: "x", Ref: "own/app"}, jobpoll.Report{State: jobpoll.StateSucceeded})
		require.NoError(t, err, body)
		require.Equal(t, jobpoll.StateFailed, rep.State)
		require.Equal(t, jobpoll.Failure{Code: "request_timeout", Message: rep.Failure.Message}, *rep.Failure)
	}
}
