package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/jobpoll/jobpoll/polltest/loopback"
	"github.com/jobpoll/jobpoll/polltest/sign"
)

// What the service and the provider share.
const (
	apiKey     = "r8-example"
	hookSecret = "whsec_ZXhhbXBsZSBrZXkgb2YgMzIgYnl0ZXMgaW4gYWxsISE="
)

// farm pretends to be the provider: a server of its API, and a courier for its
// webhooks.
type farm struct {
	server *loopback.Server
	over   chan struct{}
	once   sync.Once
	sent   sync.WaitGroup
}

func startProvider() *farm {
	return &farm{over: make(chan struct{}), server: loopback.Start(loopback.Config{
		Wire: loopback.Replicate(), Credential: apiKey, Script: script,
	})}
}

// script is how a submitted job goes: its input says how long it takes.
func script(_ int, body json.RawMessage) string {
	var order struct{ Input struct{ Takes string } }
	if err := json.Unmarshal(body, &order); err != nil {
		return "failed"
	}
	return fmt.Sprintf("queued; at 100ms running; at %s succeeded", order.Input.Takes)
}

func (f *farm) url() string { return f.server.URL() }

func (f *farm) close() {
	f.once.Do(func() { close(f.over) })
	f.sent.Wait()
	f.server.Close()
}

// deliver sends the webhooks of a job: one when it runs and one when it has
// ended. A part of the jobs has none.
func (f *farm) deliver(id, url string, takes time.Duration, lost float64) {
	if rand.Float64() < lost {
		return
	}
	for event, at := range map[string]time.Duration{"start": 100 * time.Millisecond, "completed": takes} {
		f.send(id, url, event, at, at+late())
		if rand.IntN(5) == 0 {
			f.send(id, url, event, at, at+late()) // once more, and either may come first
		}
	}
}

// late is how long a delivery is under way: mostly a little, at times so long
// that it comes after the next one.
func late() time.Duration {
	if rand.IntN(10) == 0 {
		return rand.N(800 * time.Millisecond)
	}
	return 5*time.Millisecond + rand.N(20*time.Millisecond)
}

// send makes a delivery of the prediction as it is at an age, and posts it at
// another; again until it was taken.
func (f *farm) send(id, url, event string, at, arrives time.Duration) {
	f.sent.Go(func() {
		if !f.wait(at + time.Millisecond) {
			return
		}
		body, err := f.prediction(id)
		for range 3 {
			if err != nil || !f.wait(arrives-at) {
				return
			}
			if post(id+" "+event, url, body) == nil {
				return
			}
			arrives = at + 200*time.Millisecond
		}
	})
}

// wait waits; false where the example is over.
func (f *farm) wait(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-f.over:
		return false
	}
}

// prediction is what a look at the job would get.
func (f *farm) prediction(id string) ([]byte, error) {
	req, err := http.NewRequest(http.MethodGet, f.url()+"/v1/predictions/"+id, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+apiKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	return io.ReadAll(resp.Body)
}

// post signs a delivery and sends it. Both attempts of an event have its id.
func post(event, url string, body []byte) error {
	req, err := sign.Request(url, body, sign.Standard{ID: event, Secrets: []string{hookSecret}}, time.Now())
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the service answered %s", resp.Status)
	}
	return nil
}
