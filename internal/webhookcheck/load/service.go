package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/provider"
	"github.com/jobpoll/jobpoll/webhook"
)

const (
	secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	route  = "replicate"

	hookPath = "/hooks/replicate"
	barePath = "/bare" // answers at once
)

func jobID(n int) string { return fmt.Sprintf("prediction-%022d", n) }

// service watches jobs, looks at each once in a hundred seconds, and takes webhooks.
type service struct {
	poller *jobpoll.Poller
	server *http.Server
	url    string
	end    context.CancelFunc
	ended  chan error
	told   []atomic.Int32 // how often the end of a job was told
	sum    atomic.Int64
}

func startService(ctx context.Context, jobs int) (*service, error) {
	s := &service{told: make([]atomic.Int32, jobs), ended: make(chan error, 1)}
	running := func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
		return jobpoll.Report{State: jobpoll.StateRunning}, nil
	}
	var err error
	s.poller, err = jobpoll.New(jobpoll.Config{
		Routes: []jobpoll.Route{{
			Name: route, Checker: jobpoll.CheckerFunc(running), Schedule: jobpoll.Schedule{Delays: []time.Duration{100 * time.Second}},
		}},
		Callbacks: jobpoll.Callbacks{OnStop: func(_ context.Context, o jobpoll.Outcome) error {
			var n int
			if _, err := fmt.Sscanf(o.Job.ID, "prediction-%d", &n); err != nil {
				return err
			}
			s.told[n].Add(1)
			s.sum.Add(1)
			return nil
		}},
	})
	if err != nil {
		return nil, err
	}
	verifier, err := webhook.NewStandard(webhook.StandardConfig{Secrets: []string{secret}})
	if err != nil {
		return nil, err
	}
	hooks, err := webhook.New(webhook.Config{Notifier: s.poller, Routes: []webhook.Route{{
		Path: hookPath, Name: route, Verifier: verifier, Parse: provider.ReplicateNotice, Trust: jobpoll.TrustAuthoritative,
	}}})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.url = "http://" + listener.Addr().String()
	mux := http.NewServeMux()
	mux.Handle("/hooks/", hooks)
	mux.HandleFunc(barePath, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = s.server.Serve(listener) }() // until close
	ctx, s.end = context.WithCancel(ctx)
	go func() { s.ended <- s.poller.Run(ctx) }()
	for n := range jobs {
		if err := s.poller.Watch(ctx, jobpoll.Job{Route: route, ID: jobID(n), SubmittedAt: time.Now()}); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func (s *service) close() {
	_ = s.server.Close()
	s.end()
	<-s.ended
}

// allTold checks that the ends of the first jobs were told, each once, and no other.
func (s *service) allTold(ctx context.Context, ended int) error {
	for limit := time.Now().Add(30 * time.Second); s.sum.Load() < int64(ended) && time.Now().Before(limit) && ctx.Err() == nil; {
		time.Sleep(10 * time.Millisecond)
	}
	for n := range s.told {
		want := int32(0)
		if n < ended {
			want = 1
		}
		if got := s.told[n].Load(); got != want {
			return fmt.Errorf("%s: its end was told %d times, and %d is right", jobID(n), got, want)
		}
	}
	fmt.Printf("\nthe ends of all %d jobs were told, once each\n", ended)
	return ctx.Err()
}
