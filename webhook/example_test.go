package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest/sign"
	"github.com/jobpoll/jobpoll/provider"
	"github.com/jobpoll/jobpoll/webhook"
)

// A service that takes Replicate's webhooks. The sender, here, is a test.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // from Replicate, by GET /v1/webhooks/default/secret

	running := func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
		return jobpoll.Report{State: jobpoll.StateRunning}, nil
	}
	poller, err := jobpoll.New(jobpoll.Config{
		Routes: []jobpoll.Route{{Name: "replicate", Checker: jobpoll.CheckerFunc(running)}}, // a provider.Replicate
	})
	if err != nil {
		panic(err)
	}
	go poller.Run(ctx)

	verifier, err := webhook.NewStandard(webhook.StandardConfig{Secrets: []string{secret}})
	if err != nil {
		panic(err)
	}
	hooks, err := webhook.New(webhook.Config{
		Notifier: poller,
		Routes: []webhook.Route{{
			Path:     "/hooks/replicate",
			Name:     "replicate",
			Verifier: verifier,
			Parse:    provider.ReplicateNotice,
			Trust:    jobpoll.TrustAuthoritative,
		}},
		Hook: func(e webhook.Event) { fmt.Println("webhook:", e.Key, e.Result) },
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/hooks/", hooks)
	server := httptest.NewServer(mux)
	defer server.Close()

	job := jobpoll.Job{Route: "replicate", ID: "rp-01"}
	if err := poller.Watch(ctx, job); err != nil {
		panic(err)
	}

	body := []byte(`{"id":"rp-01","status":"succeeded","output":"https://files.example/a.mp4"}`)
	delivery, err := sign.Request(server.URL+"/hooks/replicate", body, sign.Standard{ID: "msg_1", Secrets: []string{secret}}, time.Now())
	if err != nil {
		panic(err)
	}
	resp, err := http.DefaultClient.Do(delivery)
	if err != nil {
		panic(err)
	}
	resp.Body.Close()

	out, err := poller.Wait(ctx, job)
	server.Close() // the hook has been called
	fmt.Println(resp.StatusCode, out.Reason, out.Via, string(out.Report.Output), err)
	// Output:
	// webhook: replicate/rp-01 taken
	// 200 succeeded webhook "https://files.example/a.mp4" <nil>
}

// A provider that signs nothing is given a secret within the URL, and asks first
// whether it is the right place.
func ExampleNewToken() {
	token, err := webhook.NewToken(webhook.TokenConfig{Path: "token", Tokens: []string{"b1946ac92492d234"}})
	if err != nil {
		panic(err)
	}
	hooks, err := webhook.New(webhook.Config{
		Notifier: &hookNotices{}, // the Poller
		Routes: []webhook.Route{{
			Path:      "/hooks/minimax/{token}",
			Name:      "minimax",
			Verifier:  token,
			Challenge: webhook.EchoChallenge,
			Parse: func([]byte, http.Header) (jobpoll.Notice, error) {
				return jobpoll.Notice{}, nil // your own
			},
		}},
	})
	if err != nil {
		panic(err)
	}
	ask := func(path string) {
		w := httptest.NewRecorder()
		hooks.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, jsonBody(`{"challenge":"abc"}`)))
		fmt.Println(w.Code, w.Body)
	}
	ask("/hooks/minimax/b1946ac92492d234")
	ask("/hooks/minimax/guessed")
	// Output:
	// 200 {"challenge":"abc"}
	// 401
}

// A verifier of one's own, for a provider that signs the id of the task and the
// time, and no more: its Proof says nothing of the body, so that its notices are
// hints.
func ExampleVerifierFunc() {
	key := []byte("a-key-of-the-provider")
	verifier := webhook.VerifierFunc(func(r *http.Request, body []byte) (webhook.Proof, error) {
		var v struct {
			Data struct {
				TaskID string `json:"taskId"`
			} `json:"data"`
		}
		if err := json.Unmarshal(body, &v); err != nil {
			return webhook.Proof{}, webhook.ErrMalformed
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s", v.Data.TaskID, r.Header.Get("X-Webhook-Timestamp"))
		want := base64.StdEncoding.EncodeToString(mac.Sum(nil))
		if !hmac.Equal([]byte(want), []byte(r.Header.Get("X-Webhook-Signature"))) {
			return webhook.Proof{}, webhook.ErrSignature
		}
		return webhook.Proof{}, nil
	})
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("X-Webhook-Timestamp", "1767323045")
	r.Header.Set("X-Webhook-Signature", "forged")
	_, err := verifier.Verify(r, []byte(`{"data":{"taskId":"t-1"}}`))
	fmt.Println(err)
	// Output: the signature does not belong to any key
}
