package webhook_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/webhook"
)

// What one verification costs, with one key and a body as providers send it.
func BenchmarkVerify(b *testing.B) {
	body := `{"id":"rp-1","status":"succeeded","output":"` + strings.Repeat("x", 2000) + `"}`
	for _, s := range hookSchemes() {
		b.Run(strings.ReplaceAll(s.name, " ", "-"), func(b *testing.B) {
			v := s.verifier(b, newHookClock())
			r, raw := s.signed(b, body, hookStart), []byte(body)
			if _, err := v.Verify(r, raw); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, err := v.Verify(r, raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What a refusal costs beside it, by what is wrong: the same.
func BenchmarkRefuse(b *testing.B) {
	s := hookSchemes()[0]
	v := s.verifier(b, newHookClock())
	for name, change := range map[string]func(*http.Request){
		"signature": func(r *http.Request) { r.Header.Set("webhook-id", "msg_2") },
		"header":    func(r *http.Request) { r.Header.Del("webhook-signature") },
		"time":      func(r *http.Request) { r.Header.Set("webhook-timestamp", "1") },
	} {
		b.Run(name, func(b *testing.B) {
			r := s.signed(b, hookBody, hookStart)
			change(r)
			for b.Loop() {
				if _, err := v.Verify(r, []byte(hookBody)); err == nil {
					b.Fatal("it passed")
				}
			}
		})
	}
}

// What one delivery costs without a network, notices left where they are.
func BenchmarkHandler(b *testing.B) {
	clock := polltest.NewClock(hookStart)
	h, err := webhook.New(webhook.Config{
		Notifier: nowhere{}, Clock: clock, Routes: []webhook.Route{replicateRoute(b, clock)},
	})
	if err != nil {
		b.Fatal(err)
	}
	s := hookScheme{signer: hookStandard}
	r := s.signed(b, hookDone, hookStart)
	r.URL.Path = "/hook"
	b.ReportAllocs()
	for b.Loop() {
		r.Body = io.NopCloser(bytes.NewReader([]byte(hookDone)))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}

// nowhere is where notices go that nobody waits for.
type nowhere struct{}

func (nowhere) Notify(context.Context, jobpoll.Notice) error { return nil }
