package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest/sign"
	"github.com/jobpoll/jobpoll/webhook"
)

// Keys of the checks: the older one is still good.
const (
	hookSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	hookOldSecret = "whsec_b2xkLXNlY3JldC1vbGQtc2VjcmV0LW9sZC1zZWNyZXQ="
)

// hookServer verifies below /verify/ what the vendors' libraries sign, and signs
// below /sign/ what they verify.
type hookServer struct {
	*httptest.Server
	taken, refused, signed atomic.Int64
}

func startHooks() (*hookServer, error) {
	s := &hookServer{}
	secrets := []string{hookSecret, hookOldSecret}
	standard, err1 := webhook.NewStandard(webhook.StandardConfig{Secrets: secrets})
	svix, err2 := webhook.NewStandard(webhook.StandardConfig{Secrets: secrets, Prefix: "svix"})
	stripe, err3 := webhook.NewStripe(webhook.SecretConfig{Secrets: secrets})
	github, err4 := webhook.NewGitHub(webhook.SecretConfig{Secrets: secrets})
	cfg := webhook.Config{Notifier: s, Hook: func(e webhook.Event) {
		if e.Result == webhook.ResultRefused {
			s.refused.Add(1)
		}
	}}
	mux := http.NewServeMux()
	for name, v := range map[string]struct {
		webhook.Verifier
		sign.Signer
	}{
		"standard": {standard, sign.Standard{ID: "msg_1", Secrets: secrets}},
		"svix":     {svix, sign.Standard{ID: "msg_1", Secrets: secrets, Prefix: "svix"}},
		"stripe":   {stripe, sign.Stripe{Secrets: secrets}},
		"github":   {github, sign.GitHub{Secret: hookSecret}},
	} {
		cfg.Routes = append(cfg.Routes, webhook.Route{Path: "/verify/" + name, Name: name, Verifier: v.Verifier, Parse: anyNotice})
		mux.Handle("/sign/"+name, s.sign(v.Signer))
	}
	handler, err5 := webhook.New(cfg)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return nil, err
	}
	mux.Handle("/verify/", handler)
	s.Server = httptest.NewServer(mux)
	return s, nil
}

// anyNotice is of whatever body.
func anyNotice([]byte, http.Header) (jobpoll.Notice, error) {
	return jobpoll.Notice{Key: jobpoll.Key{ID: "any"}}, nil
}

// Notify implements webhook.Notifier.
func (s *hookServer) Notify(context.Context, jobpoll.Notice) error {
	s.taken.Add(1)
	return nil
}

// sign answers with the headers that belong to the body.
func (s *hookServer) sign(signer sign.Signer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		h := http.Header{}
		if err == nil {
			err = signer.Sign(h, body, jobpoll.SystemClock().Now())
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		s.signed.Add(1)
		flat := map[string]string{}
		for k := range h {
			flat[k] = h.Get(k)
		}
		_ = json.NewEncoder(w).Encode(flat) // strings alone
	})
}

// checkWebhooks runs the vendors' libraries against a hookServer.
func checkWebhooks(ctx context.Context, dir string) error {
	const file = "webhooks.test.mjs"
	s, err := startHooks()
	if err != nil {
		return err
	}
	defer s.Close()
	err = runTests(ctx, dir, file, "SERVER_URL="+s.URL, "SECRET="+hookSecret, "OLD_SECRET="+hookOldSecret)
	taken, refused, signed := s.taken.Load(), s.refused.Load(), s.signed.Load()
	fmt.Printf("%s: %d taken, %d refused, %d signed\n", file, taken, refused, signed)
	if taken == 0 || refused == 0 || signed == 0 {
		err = errors.Join(err, fmt.Errorf("%s: not all was asked for", file))
	}
	return err
}
