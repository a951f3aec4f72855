package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

// The bug reports that concern adapters, over HTTP. The ids are those of the
// case list.

// B06(b): on whatever answer a wait stands, the next request keeps to it.
func TestAWaitOnAnyKindOfAnswerIsKept(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
	}{
		{200, runs}, {202, runs}, {404, `{"detail":"no"}`}, {429, `{}`}, {503, ``},
	} {
		g := newCaseRig(t, "replicate", func(w http.ResponseWriter, _ *http.Request, n int) {
			if n == 2 {
				w.Header().Set("Retry-After", "15")
				says(w, c.status, c.body)
				return
			}
			says(w, 200, runs)
		})
		g.watch("a", func(j *jobpoll.Job) { j.Expected = 20 * time.Second })
		g.run(60)
		d := gaps(g.looks("a"))
		require.Less(t, d[0], 15.0, "%d", c.status)
		require.GreaterOrEqual(t, d[1], 15.0, "%d", c.status)
		require.Less(t, d[2], 15.0, "%d: it binds once", c.status)
	}
}

// B06(b), the answer of a look-up: the list is refused with a wait.
func TestAWaitOnALookUpIsKept(t *testing.T) {
	g := newCaseRig(t, "replicate", func(w http.ResponseWriter, r *http.Request, n int) {
		switch {
		case caseID(r.URL.Path) == "a":
			says(w, 404, `{"detail":"no"}`)
		case n == 1:
			says(w, 429, `{"detail":"Request was throttled. Your rate limit resets in ~15s."}`)
		default:
			says(w, 200, `{"next":null,"results":[]}`)
		}
	})
	g.watch("a")
	g.run(600)
	lists := g.looks("predictions")
	require.Len(t, lists, 2)
	require.GreaterOrEqual(t, lists[1]-lists[0], 15.0)
	require.LessOrEqual(t, g.looks("a")[len(g.looks("a"))-1], lists[0], "nothing is asked in between")
	require.Equal(t, jobpoll.ReasonLost, g.ended("a").Reason)
}

// B25: a job that is not visible at first.
func TestAJobThatIsNotVisibleYetIsNotGivenUp(t *testing.T) {
	for _, early := range []int{404, 400} { // Atlas Cloud may answer both
		g := newCaseRig(t, "atlas", func(w http.ResponseWriter, r *http.Request, n int) {
			switch {
			case r.Method == http.MethodPost:
				says(w, 200, `{"code":200,"data":{"id":"at-01","status":"starting"}}`)
			case n <= 2:
				says(w, early, fmt.Sprintf(`{"code":%d,"msg":"prediction not found"}`, early))
			case n == 3:
				says(w, 200, `{"code":200,"data":{"id":"at-01","status":"created"}}`)
			default:
				says(w, 200, `{"code":200,"data":{"id":"at-01","status":"completed","outputs":["u"]}}`)
			}
		})
		job, rep, err := g.adapter.Submit(t.Context(), Order{Model: "m/v"})
		require.NoError(t, err)
		require.Equal(t, jobpoll.StateQueued, rep.State)
		job.Route, job.Expected = "atlas", 20*time.Second
		require.NoError(t, g.Watch(t.Context(), job))
		g.run(120)
		require.Equal(t, jobpoll.ReasonSucceeded, g.ended("at-01").Reason)
		require.Equal(t, 1, g.count(http.MethodPost))
		require.EqualValues(t, 2, g.Metrics().Total.LookErrors[jobpoll.ErrorNoSuchJob])
	}
}

// B28(a): a job that is really gone is polled a finite time, and not bought again.
func TestAJobThatIsGoneIsGivenUpWithItsID(t *testing.T) {
	g := newCaseRig(t, "replicate", func(w http.ResponseWriter, r *http.Request, _ int) {
		if caseID(r.URL.Path) == "predictions" {
			says(w, 200, `{"next":null,"results":[]}`)
			return
		}
		says(w, 404, `{"detail":"The requested resource could not be found."}`)
	})
	g.watch("a")
	g.run(3600)
	o := g.ended("a")
	require.ErrorIs(t, o.Err(), jobpoll.ReasonLost)
	require.ErrorContains(t, o.Err(), "replicate/a")
	require.Equal(t, jobpoll.AdviceDoNotResubmit, o.Resubmit, "not in the list is not absent")
	require.GreaterOrEqual(t, len(g.looks("a")), 3)
	require.Less(t, len(g.looks("a")), 20)
	require.Zero(t, g.count(http.MethodPost))
}

// B28(b): without an id there is nothing to ask about.
func TestASubmissionWithoutAnIDIsAmbiguous(t *testing.T) {
	for _, name := range adapterNames {
		g := newCaseRig(t, name, func(w http.ResponseWriter, _ *http.Request, _ int) {
			says(w, 200, `{"code":200,"data":{}}`)
		})
		job, _, err := g.adapter.Submit(t.Context(), Order{Model: "own/app"})
		require.ErrorIs(t, err, ErrNoID, name)
		require.ErrorIs(t, err, ErrAmbiguous, name)
		require.Zero(t, job, name)
		require.Equal(t, 1, g.count(http.MethodPost), name)
		require.Zero(t, g.count(http.MethodGet), name)
	}
}

// B29: each end has its own reason, on the look that tells it.
func TestEveryEndStopsOnTheLookThatTellsIt(t *testing.T) {
	for word, want := range map[string]jobpoll.Reason{
		"aborted": jobpoll.ReasonExpired, "canceled": jobpoll.ReasonCanceled, "failed": jobpoll.ReasonFailed, "succeeded": jobpoll.ReasonSucceeded,
	} {
		g := newCaseRig(t, "replicate", func(w http.ResponseWriter, _ *http.Request, _ int) {
			says(w, 200, fmt.Sprintf(`{"id":"a","status":%q,"output":"u"}`, word))
		})
		g.watch("a")
		g.run(600)
		o := g.ended("a")
		require.Equal(t, want, o.Reason)
		require.Equal(t, word, o.Report.RawStatus)
		require.Equal(t, word == "succeeded", o.Report.Output != nil)
		require.Len(t, g.looks("a"), 1, word)
	}
}

// B30(a): words that are not known are waited out.
func TestAnUnknownWordIsNotAnEnd(t *testing.T) {
	g := newCaseRig(t, "replicate", func(w http.ResponseWriter, _ *http.Request, n int) {
		says(w, 200, []string{`{"status":"NOT_START"}`, `{"status":"NOT_START"}`, runs, done}[min(n, 4)-1])
	})
	g.watch("a")
	g.run(600)
	require.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason)
	require.Len(t, g.looks("a"), 4)
	require.Equal(t, map[string]uint64{"NOT_START": 1}, g.Metrics().Total.UnknownWords)
}

// B30(b): one that stays ends by its own bound.
func TestAnUnknownWordThatStaysHasItsOwnReason(t *testing.T) {
	told := 0
	g := newCaseRig(t, "replicate", func(w http.ResponseWriter, _ *http.Request, _ int) {
		says(w, 200, `{"status":"incomplete"}`)
	}, func(cfg *jobpoll.Config, _ *jobpoll.Route) {
		cfg.Hooks.UnknownWord = func(jobpoll.WordEvent) { told++ }
		cfg.Stop.MaxAge = 2 * time.Hour
	})
	g.watch("a")
	g.run(7200)
	o := g.ended("a")
	require.Equal(t, jobpoll.ReasonUnknownStatus, o.Reason)
	require.Equal(t, "incomplete", o.Report.RawStatus)
	require.Equal(t, 1, told)
	require.Less(t, o.DetectedAt.Sub(g.start), 20*time.Minute)
}

// B31: words in a form of a gateway's own.
func TestWordsAreTakenWhateverTheirCase(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       jobpoll.Reason
	}{
		{"replicate", `{"status":" Succeeded ","output":"u"}`, jobpoll.ReasonSucceeded},
		{"atlas", `{"code":200,"data":{"status":"COMPLETED","outputs":["u"]}}`, jobpoll.ReasonSucceeded},
		{"atlas", `{"code":200,"data":{"status":"TIMEOUT"}}`, jobpoll.ReasonExpired},
		{"replicate", `{"status":"ABORTED"}`, jobpoll.ReasonExpired},
	} {
		g := newCaseRig(t, c.name, func(w http.ResponseWriter, _ *http.Request, _ int) { says(w, 200, c.body) })
		g.watch("a")
		g.run(600)
		require.Equal(t, c.want, g.ended("a").Reason, c.body)
		require.Len(t, g.looks("a"), 1)
	}
}

// B32: waiting in the provider's queue is neither a failure nor a rate limit.
func TestAQueuedJobWaitsSlowlyAndSlowsNobody(t *testing.T) {
	g := newCaseRig(t, "fal", func(w http.ResponseWriter, r *http.Request, n int) {
		switch id := caseID(r.URL.Path); {
		case r.URL.Path == "/own/app/requests/queued":
			says(w, 200, `{"video":{"url":"u"}}`)
		case id == "queued" && n <= 6:
			says(w, 202, `{"status":"IN_QUEUE","queue_position":5,"response_url":null}`)
		case id == "queued" && n == 8:
			says(w, 200, `{"status":"COMPLETED"}`)
		default:
			says(w, 202, `{"status":"IN_PROGRESS"}`)
		}
	}, func(_ *jobpoll.Config, r *jobpoll.Route) { r.Schedule.Queued = 30 * time.Second })
	g.watch("queued")
	g.watch("other", func(j *jobpoll.Job) { j.Expected = 20 * time.Second })
	g.run(300)
	for i, d := range gaps(g.looks("queued"))[:5] {
		require.GreaterOrEqual(t, d, 24.0, "gap %d", i)
	}
	require.Equal(t, jobpoll.ReasonSucceeded, g.ended("queued").Reason)
	require.Zero(t, g.Metrics().Total.RateLimited)
	for _, d := range gaps(g.looks("other"))[1:3] {
		require.Less(t, d, 11.0, "its own pace")
	}
}

// B34: the provider's own code and words are kept; nothing is tried again.
func TestAFilteredJobKeepsCodeAndMessage(t *testing.T) {
	g := newCaseRig(t, "fal", func(w http.ResponseWriter, r *http.Request, _ int) {
		if r.URL.Path == "/own/app/requests/a" {
			says(w, 422, `{"detail":[{"loc":["body","prompt"],"msg":"M","type":"content_policy_violation"}]}`)
			return
		}
		says(w, 200, `{"status":"COMPLETED"}`)
	})
	g.watch("a")
	g.run(600)
	o := g.ended("a")
	require.Equal(t, jobpoll.ReasonFailed, o.Reason)
	require.Equal(t, &jobpoll.Failure{Kind: jobpoll.FailureFiltered, Code: "content_policy_violation", Message: "body.prompt: M"}, o.Report.Failure)
	require.Equal(t, jobpoll.AdviceDoNotResubmit, o.Resubmit)
	require.Len(t, g.looks("a"), 2, "one look, one call for the result")
	require.Zero(t, g.count(http.MethodPost))
}

// B35(a): done without an output: one confirming look, then failed.
func TestDoneWithoutAnOutputIsConfirmedOnce(t *testing.T) {
	for name, body := range map[string]string{
		"replicate": `{"status":"succeeded","output":null}`,
		"atlas":     `{"code":200,"data":{"status":"completed","outputs":[]}}`,
	} {
		g := newCaseRig(t, name, func(w http.ResponseWriter, _ *http.Request, _ int) { says(w, 200, body) })
		g.watch("a")
		g.run(600)
		o := g.ended("a")
		require.Equal(t, jobpoll.ReasonFailed, o.Reason)
		require.Equal(t, jobpoll.FailureNoOutput, o.Report.Failure.Kind)
		require.Len(t, g.looks("a"), 2, name)
	}
	results := 0
	g := newCaseRig(t, "fal", func(w http.ResponseWriter, r *http.Request, _ int) {
		if r.URL.Path == "/own/app/requests/a" {
			results++
			says(w, 200, `{}`)
			return
		}
		says(w, 200, `{"status":"COMPLETED"}`)
	})
	g.watch("a")
	g.run(600)
	require.Equal(t, jobpoll.FailureNoOutput, g.ended("a").Report.Failure.Kind)
	require.Equal(t, 2, results)
}

// B35(b): done, marked, nothing there.
func TestDoneAndFilteredFailsAtOnce(t *testing.T) {
	g := newCaseRig(t, "atlas", func(w http.ResponseWriter, _ *http.Request, _ int) {
		says(w, 200, `{"code":200,"data":{"status":"completed","outputs":null,"has_nsfw_contents":[true]}}`)
	})
	g.watch("a")
	g.run(600)
	o := g.ended("a")
	require.Equal(t, jobpoll.FailureFiltered, o.Report.Failure.Kind)
	require.Len(t, g.looks("a"), 1)
}

// B35(c): an error under a 200 passes.
func TestAnErrorUnderA200Passes(t *testing.T) {
	for name, end := range map[string]string{"replicate": done, "atlas": `{"code":200,"data":{"status":"completed","outputs":["u"]}}`} {
		g := newCaseRig(t, name, func(w http.ResponseWriter, _ *http.Request, n int) {
			says(w, 200, []string{`{"error":{"code":"InternalServerError"}}`, end}[min(n, 2)-1])
		})
		g.watch("a")
		g.run(600)
		require.Equal(t, jobpoll.ReasonSucceeded, g.ended("a").Reason, name)
		require.EqualValues(t, 1, g.Metrics().Total.LookErrors[jobpoll.ErrorTransient], name)
	}
}

// The result of fal is asked for too early, then is there.
func TestAResultThatIsNotThereYetIsAskedForAgain(t *testing.T) {
	statuses := 0
	g := newCaseRig(t, "fal", func(w http.ResponseWriter, r *http.Request, n int) {
		switch {
		case r.URL.Path != "/own/app/requests/a":
			statuses++
			says(w, 200, `{"status":"COMPLETED"}`)
		case n == 1:
			says(w, 400, `{"detail":"Request is still in progress"}`)
		case n == 2:
			says(w, 404, `{"detail":"not found"}`)
		default:
			says(w, 200, `{"video":{"url":"u"}}`)
		}
	})
	g.watch("a")
	g.run(600)
	o := g.ended("a")
	require.Equal(t, jobpoll.ReasonSucceeded, o.Reason)
	require.JSONEq(t, `{"video":{"url":"u"}}`, string(o.Report.Output))
	require.Equal(t, 1, statuses)
}

// A refusal renews the credentials once for all jobs, and they go on.
func TestARefusalRenewsTheCredentialsOnce(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token-2" {
			says(w, 401, `{"detail":"Invalid token"}`)
			return
		}
		says(w, 200, done)
	}))
	t.Cleanup(server.Close)
	r, err := NewReplicate(Config{BaseURL: server.URL, Credentials: func(context.Context) (string, error) {
		asked++
		return fmt.Sprint("token-", asked), nil
	}})
	require.NoError(t, err)
	g := newCaseRig(t, "replicate", nil, func(cfg *jobpoll.Config, _ *jobpoll.Route) {
		cfg.Routes = append(cfg.Routes, jobpoll.Route{Name: "renewing", Checker: r})
	})
	for i := range 20 {
		require.NoError(t, g.Watch(t.Context(), jobpoll.Job{Route: "renewing", ID: fmt.Sprint(i), Expected: time.Minute}))
	}
	g.run(120)
	require.Len(t, g.seen.Outcomes(), 20)
	for _, o := range g.seen.Outcomes() {
		require.NoError(t, o.Err())
	}
	require.Equal(t, 2, asked)
}

// B44(a): a used-up quota is no rate limit, where the adapter reads its code; one
// submission, and the looks of running jobs go on. (b) Without a code it is one.
func TestAUsedUpQuotaIsNoRateLimit(t *testing.T) {
	explain := func(ans Answer, e *jobpoll.CheckError) {
		var v struct {
			Code string `json:"code"`
		}
		if json.Unmarshal(ans.Body, &v) == nil && v.Code == "insufficient_quota" {
			e.Kind = jobpoll.ErrorQuota
		}
	}
	for body, want := range map[string]jobpoll.ErrorKind{`{"code":"insufficient_quota"}`: jobpoll.ErrorQuota, `{}`: jobpoll.ErrorRateLimited} {
		g := newCaseRig(t, "replicate", func(w http.ResponseWriter, r *http.Request, n int) {
			switch {
			case r.Method == http.MethodPost:
				says(w, 429, body)
			case n > 3:
				says(w, 200, done)
			default:
				says(w, 200, runs)
			}
		})
		for i := range 10 {
			g.watch(fmt.Sprint("j", i))
		}
		r, err := NewReplicate(Config{BaseURL: g.url, Credentials: Secret(kitKey), Explain: explain})
		require.NoError(t, err)
		_, _, err = r.Submit(t.Context(), Order{Model: "a/b"})
		var ce *jobpoll.CheckError
		require.True(t, errors.As(err, &ce))
		require.Equal(t, want, ce.Kind)
		require.NotErrorIs(t, err, ErrAmbiguous)
		g.run(300)
		require.Equal(t, 1, g.count(http.MethodPost))
		require.Len(t, g.seen.Outcomes(), 10)
		require.Zero(t, g.Metrics().Total.RateLimited)
	}
}
