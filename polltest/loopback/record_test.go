package loopback_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/loopback"
)

func TestAServerCountsWhatItWasAsked(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	server := started(t, loopback.Config{Wire: loopback.Fal(), Clock: clock, Latency: 0, NotVisible: time.Second})
	c := client(t)
	at := server.URL() + "/own/app"
	do(t, c, "POST", at+"/sub", `{"a":1}`)
	do(t, c, "POST", at+"/sub", `{"a":1}`) // the same once more
	do(t, c, "POST", at, `{"a":1}`)        // to another model
	id := server.Jobs()[0]
	start := clock.Now()
	do(t, c, "GET", at+"/requests/"+id+"/status", "")
	clock.Advance(time.Second)
	do(t, c, "GET", at+"/requests/"+id+"/status", "")
	do(t, c, "GET", at+"/requests/"+id, "")
	do(t, c, "PUT", at+"/requests/"+id+"/cancel", "")
	do(t, c, "DELETE", at, "")

	assert.Equal(t, loopback.Stats{
		Requests: 8, Submits: 3, Accepted: 3, Duplicates: 1, Statuses: 2, Results: 1, Cancels: 1, Unknown: 1, NotVisible: 1, Connections: 1,
	}, server.Stats())
	assert.Equal(t, []time.Time{start, start.Add(time.Second)}, server.Looks(id))
	assert.Equal(t, []time.Time{start.Add(time.Second)}, server.Cancels(id))
	first := server.Requests()[0]
	assert.Equal(t, loopback.Request{
		N: 1, At: start, Op: loopback.OpSubmit, Method: "POST", Path: "/own/app/sub", Host: first.Host, ID: id, Status: 200,
	}, first)
	assert.Equal(t, "cancel", server.Requests()[6].Op.String())
	assert.Equal(t, "Op(99)", loopback.Op(99).String())
}

func TestAKeyOfTheCallersTellsDuplicates(t *testing.T) {
	server := started(t, loopback.Config{
		Wire:      loopback.Atlas(),
		Duplicate: func(r *http.Request, _ json.RawMessage) string { return r.Header.Get("Idempotency-Key") },
	})
	c := client(t)
	for _, key := range []string{"a", "b", "a", "", ""} {
		do(t, c, "POST", server.URL()+"/api/v1/model/generateVideo", `{}`, "Idempotency-Key", key)
	}
	assert.Equal(t, 1, server.Stats().Duplicates)
	assert.Equal(t, 5, server.Stats().Accepted)
}

func TestACredentialCanBeRevokedAndIsSeenAsRightOrWrong(t *testing.T) {
	server := started(t, loopback.Config{Wire: loopback.Replicate(), Credential: "old"})
	server.Add("job", "running")
	c := client(t)
	look := func(header ...string) int {
		resp, _ := do(t, c, "GET", server.URL()+"/v1/predictions/job", "", header...)
		return resp.StatusCode
	}
	assert.Equal(t, 200, look("Authorization", "Bearer old"))
	server.SetCredential("new")
	assert.Equal(t, 401, look("Authorization", "Bearer old"))
	assert.Equal(t, 200, look("Authorization", "Token new"))
	assert.Equal(t, 401, look())
	assert.Equal(t, 401, look("Authorization", "Basic new"))
	var seen []loopback.Seen
	for _, r := range server.Requests() {
		seen = append(seen, r.Credential)
	}
	assert.Equal(t, []loopback.Seen{loopback.SeenRight, loopback.SeenWrong, loopback.SeenRight, loopback.SeenNone, loopback.SeenNone}, seen)
	assert.Equal(t, 3, server.Stats().Unauthorized)
	assert.NotContains(t, fmt.Sprintf("%+v", server.Requests()), "old")
}

// With package time, and in parallel: for the race detector.
func TestAServerServesManyAtOnce(t *testing.T) {
	server := started(t, loopback.Config{
		Wire: loopback.Replicate(), MaxJobs: 20,
		Script: func(n int, _ json.RawMessage) string { return fmt.Sprintf("running %d%%", n) },
	})
	c := client(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				resp, body := do(t, c, "POST", server.URL()+"/v1/predictions", `{"input":{}}`)
				if resp.StatusCode != http.StatusCreated {
					continue
				}
				id := field(t, body, "id").(string)
				_, body = do(t, c, "GET", server.URL()+"/v1/predictions/"+id, "")
				assert.Equal(t, "processing", field(t, body, "status"))
				_, body = do(t, c, "GET", server.URL()+"/v1/predictions", "")
				assert.NotEmpty(t, field(t, body, "results"))
				_ = server.Stats()
			}
		})
	}
	wg.Wait()
	stats := server.Stats()
	assert.Equal(t, 40, stats.Submits)
	assert.Equal(t, 20, stats.Accepted)
	assert.Equal(t, 20, stats.TooManyJobs)
	assert.Len(t, server.Jobs(), 20)
}

func TestACreateThatPrefersToWaitIsHeldUntilTheEnd(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	server := started(t, loopback.Config{
		Wire: loopback.Replicate(), Clock: clock,
		Script: func(int, json.RawMessage) string { return "queued; at 4s running; at 30s succeeded" },
	})
	c := client(t)
	for prefer, want := range map[string]string{"wait=5": "processing", "wait": "succeeded", "wait=900": "succeeded", "respond-async": "starting"} {
		answers := make(chan string, 1)
		before := server.Stats().Accepted
		go func() {
			_, body := do(t, c, "POST", server.URL()+"/v1/predictions", `{"input":{}}`, "Prefer", prefer)
			answers <- body
		}()
		require.Eventually(t, func() bool { return server.Stats().Accepted > before && (clock.Timers() == 1 || len(answers) == 1) }, 5*time.Second, time.Millisecond)
		clock.Advance(time.Minute)
		assert.Equal(t, want, field(t, <-answers, "status"), prefer)
	}
}

func TestACanceledJobGoesOnWhereCancellationIsIgnored(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	server := started(t, loopback.Config{Wire: loopback.Replicate(), Clock: clock, IgnoreCancel: true})
	server.AddAt("job", clock.Now().Add(time.Second), "running; at 10s succeeded")
	c := client(t)
	url := server.URL() + "/v1/predictions/job"
	resp, _ := do(t, c, "GET", url, "")
	assert.Equal(t, http.StatusNotFound, resp.StatusCode, "it begins in a second")
	clock.Advance(time.Second)
	_, body := do(t, c, "POST", url+"/cancel", "")
	assert.Equal(t, "processing", field(t, body, "status"))
	clock.Advance(10 * time.Second)
	_, body = do(t, c, "GET", url, "")
	assert.Equal(t, "succeeded", field(t, body, "status"))
	server.Add("job", "queued")
	_, body = do(t, c, "GET", url, "")
	assert.Equal(t, "starting", field(t, body, "status"))
	assert.Equal(t, []string{"job"}, server.Jobs())
}

func TestMistakesOfATestAreTold(t *testing.T) {
	assert.PanicsWithValue(t, "loopback: Config.Wire is nil: take one, as Fal()", func() { loopback.New(loopback.Config{}) })
	server := started(t, loopback.Config{
		Wire: loopback.Atlas(), Script: func(int, json.RawMessage) string { return "walking" }, MaxJobs: 1,
	})
	assert.Panics(t, func() { server.Add("job", "walking") })
	for range 2 { // the slot is given back
		resp, body := do(t, client(t), "POST", server.URL()+"/api/v1/model/generateVideo", `{}`)
		assert.Equal(t, http.StatusInternalServerError, resp.StatusCode)
		assert.Contains(t, field(t, body, "msg"), `polltest: script entry 1 ("walking")`)
	}
}

// Latency is on the server's clock, and a job is looked at after it.
func TestLatencyPassesBeforeAJobIsLookedAt(t *testing.T) {
	clock := polltest.NewClock(time.Time{})
	server := started(t, loopback.Config{Wire: loopback.Replicate(), Clock: clock, Latency: 2 * time.Second})
	server.Add("job", "queued; at 2s running; at 3s succeeded")
	answer := make(chan string, 1)
	c := client(t)
	go func() {
		_, body := do(t, c, "GET", server.URL()+"/v1/predictions/job", "")
		answer <- body
	}()
	require.Eventually(t, func() bool { return clock.Timers() == 1 }, 5*time.Second, time.Millisecond)
	clock.Advance(2 * time.Second)
	assert.Equal(t, "processing", field(t, <-answer, "status"))
}
