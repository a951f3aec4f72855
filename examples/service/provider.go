package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jobpoll/jobpoll"
)

// provider pretends to render: jobs take one to three seconds, one in twenty
// fails.
type provider struct {
	mu   sync.Mutex
	jobs map[string]*render
}

type render struct {
	begun time.Time
	takes time.Duration
	fails bool
}

// submit is a call to the provider that starts a job.
func (p *provider) submit(ctx context.Context) (id string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.jobs == nil {
		p.jobs = map[string]*render{}
	}
	id = fmt.Sprintf("render-%d", len(p.jobs)+1)
	p.jobs[id] = &render{begun: time.Now(), takes: time.Second + rand.N(2*time.Second), fails: rand.N(20) == 0}
	return id, nil
}

// Check makes the provider a jobpoll.Checker.
func (p *provider) Check(_ context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.jobs[job.ID]
	if r == nil {
		return jobpoll.Report{}, &jobpoll.CheckError{Kind: jobpoll.ErrorNoSuchJob}
	}
	end := r.begun.Add(r.takes)
	switch left := time.Until(end); {
	case left > 0:
		return jobpoll.Report{State: jobpoll.StateRunning, Progress: 1 - float64(left)/float64(r.takes)}, nil
	case r.fails:
		return jobpoll.Report{
			State: jobpoll.StateFailed, CompletedAt: end,
			Failure: &jobpoll.Failure{Kind: jobpoll.FailureFault, Message: "the renderer crashed"},
		}, nil
	}
	return jobpoll.Report{
		State: jobpoll.StateSucceeded, CompletedAt: end,
		Output: json.RawMessage(fmt.Sprintf(`{"url":"https://cdn.example/%s.mp4"}`, job.ID)),
	}, nil
}
