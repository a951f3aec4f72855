package provider

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// Kling3 is the adapter for the tasks of Kling's 3.x API. It is what Kling is, and a
// jobpoll.BatchChecker too, as that API has a list. A task of the first API, with its
// path as Job.Ref, can be looked at, but each by itself.
//
// Not verified: how many ids the list takes, and what is said of Kling.
//
// Source: copies of Kling's documents of its API
type Kling3 struct{ k *Kling }

var (
	_ jobpoll.Checker      = (*Kling3)(nil)
	_ jobpoll.BatchChecker = (*Kling3)(nil)
	_ jobpoll.Refresher    = (*Kling3)(nil)
	_ jobpoll.Reconciler   = (*Kling3)(nil)
)

// NewKling3 makes the adapter. Credentials (the API key) or Tokens (KlingTokens, of an
// access key and a secret key) is required, and nothing else. It orders of the 3.x API
// alone; for the first API take NewKling.
func NewKling3(cfg Config) (*Kling3, error) {
	k, err := NewKling(cfg)
	if err != nil {
		return nil, err
	}
	return &Kling3{k}, nil
}

// Check asks about one task.
func (p *Kling3) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	return p.k.Check(ctx, job)
}

// MaxBatch is 50: as many tasks as CheckBatch takes.
func (p *Kling3) MaxBatch() int { return mostListed }

// CheckBatch asks about up to 50 tasks in one call. What the list does not tell of
// is not in the results, and neither are tasks of the first API. More jobs are an
// error of kind ErrorInvalid.
func (p *Kling3) CheckBatch(ctx context.Context, jobs []jobpoll.Job) (map[string]jobpoll.Result, error) {
	ids, err := idsOf(jobs, mostListed, func(job jobpoll.Job) bool {
		return !strings.HasPrefix(job.Ref, "/") && !strings.Contains(job.ID, ",")
	})
	if len(ids) == 0 {
		return nil, err
	}
	var list klingList
	ans, err := p.k.c.Do(ctx, Request{URL: klingTasksPath, Query: url.Values{"task_ids": {strings.Join(ids, ",")}}}, &list)
	if err := forgive(err, list.Code != ""); err != nil {
		return nil, err
	}
	items, err := list.items(&ans)
	if err != nil {
		return nil, err
	}
	return items.results(&ans, ids, func() receipt { return &klingTask{} }), nil
}

// klingList is the envelope around many tasks.
type klingList struct {
	Code    Text            `json:"code"`
	Message Text            `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// items are the tasks in data, which is a list, or an object with one.
func (v *klingList) items(ans *Answer) (jobList, error) {
	if err := (&klingReply{code: v.Code, text: v.Message}).refusal(ans); err != nil {
		return nil, err
	}
	var items jobList
	if json.Unmarshal(v.Data, &items) == nil && items != nil {
		return items, nil
	}
	var one struct {
		Result jobList `json:"result"`
	}
	_ = json.Unmarshal(v.Data, &one) // another shape has none
	if one.Result == nil {
		return nil, ans.Errorf(jobpoll.ErrorTransient, "an answer without a list")
	}
	return one.Result, nil
}

// Refresh asks Config.Credentials for the key, or the token, anew.
func (p *Kling3) Refresh(ctx context.Context) error { return p.k.Refresh(ctx) }

// Submit starts a task, as Kling's does, of the 3.x API: Order.Path
// ("/text-to-video/kling-3.0") is required, and says the model.
func (p *Kling3) Submit(ctx context.Context, o Order) (jobpoll.Job, jobpoll.Report, error) {
	if o.Path == "" {
		return jobpoll.Job{}, jobpoll.Report{}, invalid("Order.Path is empty: it says the model, as /text-to-video/kling-3.0 does")
	}
	if strings.HasPrefix(o.Path, klingFirst) {
		return jobpoll.Job{}, jobpoll.Report{}, invalid("Order.Path %q is one of Kling's first API: use NewKling", jobpoll.Excerpt(o.Path))
	}
	return p.k.Submit(ctx, o)
}

// Lookup looks for a task by its id, or by Job.ClientKey where that was sent as the
// external_task_id. A task that is not found is FindingUnknown, never absent.
func (p *Kling3) Lookup(ctx context.Context, lost jobpoll.Lost) (jobpoll.Finding, error) {
	return p.k.lookup(ctx, lost, klingPlaces[:1])
}
