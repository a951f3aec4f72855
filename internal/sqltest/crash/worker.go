package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/provider"
	"github.com/jobpoll/jobpoll/sqlstore"
)

// workerConfig is what the driver tells its worker.
type workerConfig struct {
	Place   place
	URL     string // of the driver
	Clock   fastClock
	Verbose bool
}

// The routes, with and without a look-up by the ClientKey.
const (
	routeSeek  = "seek"
	routeBlind = "blind"
)

// order is work that a customer has ordered, by its key.
type order struct{ Route, Key string }

// told is an outcome as the worker hands it on.
type told struct {
	Key, ID, Reason string
	Repeated        bool // this worker has handed it on before
}

// repeats knows which outcomes this worker has handed on.
type repeats struct{ ends sync.Map }

func (r *repeats) take(t told) { r.ends.Store(t.Key+t.Reason, true) }

func (r *repeats) taken(t told) bool {
	_, ok := r.ends.Load(t.Key + t.Reason)
	return ok
}

// work is the worker: a service that submits what is ordered, again and again
// until it is told as done. It never ends by itself.
func work(ctx context.Context, config string) error {
	var cfg workerConfig
	if err := json.Unmarshal([]byte(config), &cfg); err != nil {
		return err
	}
	db, err := sql.Open(cfg.Place.Driver, cfg.Place.DSN)
	if err != nil {
		return err
	}
	store, err := sqlstore.Open(ctx, sqlstore.Config{DB: db})
	if err != nil {
		return err
	}
	replicate, err := provider.NewReplicate(provider.Config{BaseURL: cfg.URL, Credentials: provider.Secret("secret"), Timeout: 5 * time.Second})
	if err != nil {
		return err
	}
	logger := slog.New(slog.DiscardHandler)
	if cfg.Verbose {
		logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	// Generous where a busy machine, on which the clock runs on, would end jobs.
	stop := jobpoll.StopRules{MissingGrace: 10 * time.Second, MaxAge: 1000 * time.Hour, MaxErrors: 1000}
	twice := &repeats{}
	p, err := jobpoll.New(jobpoll.Config{
		Routes: []jobpoll.Route{
			{Name: routeSeek, Checker: seeker{replicate, cfg.URL}, SubmitTimeout: time.Minute, CheckTimeout: time.Minute, Stop: stop},
			{Name: routeBlind, Checker: jobpoll.CheckerFunc(replicate.Check), SubmitTimeout: time.Minute, CheckTimeout: time.Minute, Stop: stop},
		},
		Callbacks: jobpoll.Callbacks{OnStop: func(ctx context.Context, o jobpoll.Outcome) error {
			t := told{Key: o.Job.ClientKey, ID: o.Job.ID, Reason: o.Reason.String()}
			t.Repeated = twice.taken(t)
			err := post(ctx, cfg.URL+"/told", t)
			if err == nil {
				twice.take(t)
			}
			return err
		}},
		Budget: jobpoll.NewBudget("account", jobpoll.Limits{Total: jobpoll.Limit{Rate: 20, Burst: 20, Concurrent: 50}}),
		Store:  store, Owner: "worker", LeaseTTL: 10 * time.Minute, Clock: cfg.Clock, Logger: logger,
	})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	go takeOrders(ctx, p, replicate, cfg)
	return <-ended
}

// takeOrders submits all open orders, with no memory of what was submitted
// before: that is the Poller's.
func takeOrders(ctx context.Context, p *jobpoll.Poller, replicate *provider.Replicate, cfg workerConfig) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	under := map[order]chan struct{}{}
	for {
		var open []order
		if err := get(ctx, cfg.URL+"/orders", &open); err != nil {
			fmt.Fprintln(os.Stderr, "worker: no orders:", err)
		}
		for _, o := range open {
			if done := under[o]; done != nil {
				select {
				case <-done:
				default:
					continue
				}
			}
			done := make(chan struct{})
			under[o] = done
			go func() {
				defer close(done)
				submit(ctx, p, replicate, o)
			}()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func submit(ctx context.Context, p *jobpoll.Poller, replicate *provider.Replicate, o order) {
	_, err := p.Submit(ctx, jobpoll.Submission{
		Job: jobpoll.Job{Route: o.Route, ClientKey: o.Key, Expected: 20 * time.Second},
		Send: func(ctx context.Context) (jobpoll.Sent, error) {
			job, report, err := replicate.Submit(ctx, provider.Order{Model: "acme/video", Input: map[string]string{"client_key": o.Key}})
			return jobpoll.Sent{ID: job.ID, Ref: job.Ref, Report: report}, err
		},
	})
	var failed *jobpoll.SubmitError
	if err != nil && !errors.As(err, &failed) && !errors.Is(err, jobpoll.ErrResolved) {
		fmt.Fprintf(os.Stderr, "worker: %s: %v\n", o.Key, err)
	}
}

// seeker finds a job in the account's list by the client key in its input.
type seeker struct {
	*provider.Replicate
	url string
}

func (s seeker) Lookup(ctx context.Context, lost jobpoll.Lost) (jobpoll.Finding, error) {
	for next := s.url + "/v1/predictions"; next != ""; {
		var list struct {
			Next    string
			Results []struct {
				ID    string
				Input struct {
					ClientKey string `json:"client_key"`
				}
				CreatedAt time.Time `json:"created_at"`
			}
		}
		if err := get(ctx, next, &list); err != nil {
			return jobpoll.Finding{}, err
		}
		next = list.Next
		for _, v := range list.Results {
			if v.ID == lost.Job.ID || lost.Job.ID == "" && v.Input.ClientKey == lost.Job.ClientKey {
				return jobpoll.Finding{State: jobpoll.FindingPresent, ID: v.ID}, nil
			}
			if lost.Job.ID == "" && v.CreatedAt.Before(lost.SentAt.Add(-time.Minute)) {
				next = "" // newest first
			}
		}
	}
	return jobpoll.Finding{State: jobpoll.FindingAbsent}, nil
}

func get(ctx context.Context, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer secret")
	return do(req, into)
}

func post(ctx context.Context, url string, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		return err
	}
	return do(req, nil)
}

func do(req *http.Request, into any) error {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s", req.Method, req.URL, resp.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(into)
}
