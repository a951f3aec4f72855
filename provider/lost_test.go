package provider

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// The answer to an order is lost. Kling knows the task by the ClientKey, which Send has
// put there, so that it is found and watched, and nothing is bought twice.
func TestATaskOfKlingsWhoseAnswerWasLostIsFoundByItsClientKey(t *testing.T) {
	input := map[string]any{"prompt": "a cat"}
	for name, c := range map[string]struct {
		adapter string
		order   Order
		ref     string // of the Submission
		found   string // Ref of the job
	}{
		"the first API":         {"kling", Order{Model: "kling-v2", Input: input}, "", KlingTextToVideo},
		"of an image":           {"kling", Order{Model: "kling-v2", Path: "/v1/videos/image2video", Input: input}, "", "/v1/videos/image2video"},
		"at a place it is told": {"kling", Order{Model: "kling-v2", Path: "/v1/videos/lip-sync", Input: input}, "/v1/videos/lip-sync", "/v1/videos/lip-sync"},
		"3.x":                   {"kling", Order{Model: "kling-3.0", Path: "/text-to-video/kling-3.0", Input: input}, "", ""},
		"3.x with lists":        {"kling3", Order{Model: "kling-3.0", Path: "/text-to-video/kling-3.0", Input: input}, "", ""},
	} {
		for _, lose := range []loopback.Fault{{Kind: polltest.FaultReset}, {Kind: polltest.FaultHTML}, {Status: http.StatusServiceUnavailable}, {Kind: polltest.FaultHang}} {
			t.Run(name+"/"+string(lose.Kind), func(t *testing.T) {
				clock := polltest.NewClock(time.Time{})
				server := loopback.Start(loopback.Config{
					Wire: loopback.Kling(), Clock: clock, Credential: kitKey,
					Script: func(int, json.RawMessage) string { return `queued; at 10s running; at 2m succeeded` },
					Fault: func(_ int, r *http.Request) loopback.Fault {
						if r.Method == http.MethodPost {
							return lose
						}
						return loopback.Fault{}
					},
				})
				t.Cleanup(server.Close)
				a := newAdapterFor(t, c.adapter, Config{BaseURL: server.URL(), Credentials: Secret(kitKey), Clock: clock})
				var seen polltest.Recorder
				h := polltest.Start(t, jobpoll.Config{Clock: clock, Callbacks: seen.Callbacks(), Routes: []jobpoll.Route{{Name: "kling", Checker: a}}})
				s := Submission("kling", "order-4711", a, c.order)
				s.Job.Ref = c.ref
				first := h.BeginSubmit(t.Context(), s)
				h.Clock.Advance(5 * time.Minute)
				job, err := first.Result()
				require.NoError(t, err)
				require.Equal(t, loopback.Kling().ID(1), job.ID)
				require.Equal(t, c.found, job.Ref)
				o, ok := seen.Outcome(job.Key())
				require.True(t, ok)
				require.Equal(t, jobpoll.ReasonSucceeded, o.Reason, "%+v", o)
				require.True(t, HasOutput(o.Report.Output))
				require.Equal(t, 1, server.Stats().Submits)
				require.Len(t, server.Jobs(), 1)

				again := h.BeginSubmit(t.Context(), s)
				h.Clock.Advance(time.Minute)
				_, err = again.Result()
				require.ErrorIs(t, err, jobpoll.ErrResolved)
				require.Equal(t, 1, server.Stats().Submits)
			})
		}
	}
}

// A delivery about such a task tells the id before any look-up does.
func TestADeliveryOfKlingsTellsTheIDOfATaskWhoseAnswerWasLost(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	server := loopback.Start(loopback.Config{
		Wire: loopback.Kling(), Clock: clock, Credential: kitKey,
		Script: func(int, json.RawMessage) string { return `queued; at 10s running; at 2m succeeded` },
		Fault: func(_ int, r *http.Request) loopback.Fault {
			if r.Method == http.MethodPost || r.URL.Query().Has("external_task_ids") {
				return loopback.Fault{Kind: polltest.FaultReset}
			}
			return loopback.Fault{}
		},
	})
	t.Cleanup(server.Close)
	a := newAdapterFor(t, "kling3", Config{BaseURL: server.URL(), Credentials: Secret(kitKey), Clock: clock})
	var seen polltest.Recorder
	h := polltest.Start(t, jobpoll.Config{Clock: clock, Callbacks: seen.Callbacks(), Routes: []jobpoll.Route{{Name: "kling", Checker: a}}})
	call := h.BeginSubmit(t.Context(), jobpoll.Submission{
		Job:  jobpoll.Job{Route: "kling", ClientKey: "order-4711", Profile: "m"},
		Send: Send(a, Order{Model: "m", Path: "/text-to-video/kling-3.0", Input: map[string]any{"prompt": "a cat"}}),
	})
	h.Clock.Advance(time.Second)
	id := loopback.Kling().ID(1)
	n, err := KlingNotice([]byte(`{"id":"`+id+`","external_id":"order-4711","status":"submitted"}`), nil)
	require.NoError(t, err)
	n.Key.Route, n.Trust = "kling", jobpoll.TrustHint
	require.NoError(t, h.Notify(t.Context(), n))
	h.Clock.Advance(5 * time.Minute)
	job, err := call.Result()
	require.NoError(t, err)
	require.Equal(t, id, job.ID)
	o, ok := seen.Outcome(job.Key())
	require.True(t, ok)
	require.Equal(t, jobpoll.ReasonSucceeded, o.Reason, "%+v", o)
	require.Equal(t, 1, server.Stats().Submits)
}

// An id that the order has is the one that is sent, and without a Submission there is
// none.
func TestTheClientKeyOfAnOrderIsTheOneThatIsSent(t *testing.T) {
	server := loopback.Start(loopback.Config{Wire: loopback.Kling(), Credential: kitKey})
	defer server.Close()
	kling, err := NewKling(Config{BaseURL: server.URL(), Credentials: Secret(kitKey)})
	require.NoError(t, err)
	find := func(key string) jobpoll.Finding {
		f, err := kling.Lookup(t.Context(), jobpoll.Lost{Job: jobpoll.Job{ClientKey: key}})
		require.NoError(t, err)
		return f
	}
	p, err := jobpoll.New(jobpoll.Config{Routes: []jobpoll.Route{{Name: "kling", Checker: kling}}})
	require.NoError(t, err)
	order := Order{Model: "kling-v2", ClientKey: "own"}
	_, err = p.Submit(t.Context(), Submission("kling", "key", kling, order))
	require.NoError(t, err)
	require.Equal(t, jobpoll.FindingPresent, find("own").State)
	require.Equal(t, jobpoll.FindingUnknown, find("key").State)

	order.ClientKey = ""
	sent, err := Send(kling, order)(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, sent.ID)

	_, _, err = kling.Submit(t.Context(), Order{Model: "kling-v2", ClientKey: "own"})
	require.Equal(t, jobpoll.ErrorInvalid, kindOf(err), "%v: it is taken", err)
	require.False(t, errors.Is(err, ErrAmbiguous))
	require.Len(t, server.Jobs(), 2)
}

// What Input has besides goes out as it is, also a number that no float64 holds.
func TestAnIDThatIsPutIntoOptionsChangesNothingElse(t *testing.T) {
	body := map[string]json.RawMessage{"options": json.RawMessage(`{"seed":12345678901234567890,"watermark":false}`)}
	require.NoError(t, klingOwn(body, false, "order-4711"))
	require.Equal(t, `{"external_task_id":"order-4711","seed":12345678901234567890,"watermark":false}`, string(body["options"]))
	require.NoError(t, klingOwn(body, false, "another"))
	require.NotContains(t, string(body["options"]), "another")
}

// What is found is taken for the job that was bought: of several tasks only one that
// tells the caller's id is, and a lone one also where it tells none.
func TestATaskThatMayBeOfAnotherIsNotFound(t *testing.T) {
	var answer string
	var asked int
	c := kitServer(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		says(w, http.StatusOK, `{"code":0,"data":`+answer+`}`)
	})
	kling, err := NewKling3(Config{BaseURL: c.prefix, Credentials: Secret(kitKey)})
	require.NoError(t, err)
	const silent, other, mine = `{"id":"1","status":"processing"}`, `{"id":"2","status":"processing","external_id":"other"}`,
		`{"id":"3","status":"processing","external_id":"mine"}`
	for data, want := range map[string]string{
		silent:                              "1",
		"[" + silent + "]":                  "1",
		"[" + silent + "," + mine + "]":     "3",
		"[" + mine + "," + silent + "]":     "3",
		`{"result":[` + silent + `,{},{}]}`: "",
		"[" + silent + "," + silent + "]":   "",
		"[" + silent + "," + other + "]":    "",
		"[" + other + "]":                   "",
		other:                               "",
	} {
		answer = data
		f, err := kling.Lookup(t.Context(), jobpoll.Lost{Job: jobpoll.Job{ClientKey: "mine"}})
		require.NoError(t, err, data)
		require.Equal(t, want, f.ID, data)
	}

	// With a comma the key would ask for two tasks of others.
	answer, asked = "["+silent+"]", 0
	f, err := kling.Lookup(t.Context(), jobpoll.Lost{Job: jobpoll.Job{ClientKey: "a,b"}})
	require.NoError(t, err)
	require.Equal(t, jobpoll.FindingUnknown, f.State)
	require.Zero(t, asked)

	// Nor is one without an id the one that is looked at.
	answer = `[{"status":"failed"},{"id":"3","status":"processing"}]`
	rep, err := kling.Check(t.Context(), jobpoll.Job{ID: "3"})
	require.NoError(t, err)
	require.Equal(t, jobpoll.StateRunning, rep.State)
}

// An id that is null or empty is none, in either API.
func TestAnEmptyIDOfAnOrderGivesWayToTheClientKey(t *testing.T) {
	for _, none := range []string{`null`, `""`} {
		body := map[string]json.RawMessage{klingOwnID: json.RawMessage(none)}
		require.NoError(t, klingOwn(body, true, "order-4711"))
		require.Equal(t, `"order-4711"`, string(body[klingOwnID]), none)
		body = map[string]json.RawMessage{"options": json.RawMessage(`{"external_task_id":` + none + `}`)}
		require.NoError(t, klingOwn(body, false, "order-4711"))
		require.Equal(t, `{"external_task_id":"order-4711"}`, string(body["options"]), none)
	}
	body := map[string]json.RawMessage{klingOwnID: json.RawMessage(`"mine"`)}
	require.NoError(t, klingOwn(body, true, "order-4711"))
	require.Equal(t, `"mine"`, string(body[klingOwnID]))
}

// As JSON such a key would be another one, by which nothing is found.
func TestAClientKeyThatIsNoTextIsRefused(t *testing.T) {
	c := kitServer(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	kling, err := NewKling(Config{BaseURL: c.prefix, Credentials: Secret(kitKey)})
	require.NoError(t, err)
	for _, path := range []string{"", "/text-to-video/kling-3.0"} {
		_, _, err = kling.Submit(t.Context(), Order{Model: "m", Path: path, Input: struct{}{}, ClientKey: "a\xff"})
		require.Equal(t, jobpoll.ErrorInvalid, kindOf(err), "%v", err)
		require.False(t, errors.Is(err, ErrAmbiguous))
	}
}
