package polltest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jobpoll/jobpoll"
)

// Batch is a Provider with a list: it is a jobpoll.BatchChecker too. A call counts
// once for the provider's rate limit, and as one look for each of its jobs. Jobs of
// which the script says 404, or that there are none of, are left out of the answer;
// other errors of a script are those of the job. A call takes as long as the slowest
// of its jobs, and one that hangs or panics does so to all. Methods may be called from
// several goroutines at once.
type Batch struct {
	*Provider
	// OnBatch, if not nil, is called at the begin of each CheckBatch; an error is the
	// answer to all of its jobs. Set it before the first call.
	OnBatch func(ctx context.Context, jobs []jobpoll.Job) error

	max   int
	mu    sync.Mutex
	calls []BatchCall
}

// BatchCall is one call of CheckBatch.
type BatchCall struct {
	At  time.Time
	IDs []string
}

var _ jobpoll.BatchChecker = (*Batch)(nil)

// Batched gives a Provider a list that tells of so many jobs in one call.
func Batched(p *Provider, most int) *Batch { return &Batch{Provider: p, max: most} }

// MaxBatch is what Batched was given.
func (b *Batch) MaxBatch() int { return b.max }

// Calls returns the calls of CheckBatch, in order, those included that were refused.
func (b *Batch) Calls() []BatchCall {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls)
}

// CheckBatch tells what the scripts of the jobs say now.
func (b *Batch) CheckBatch(ctx context.Context, jobs []jobpoll.Job) (map[string]jobpoll.Result, error) {
	b.note(jobs)
	for _, job := range jobs {
		defer b.begin(job)()
		if b.OnLook != nil {
			b.OnLook(ctx, job)
		}
	}
	if b.OnBatch != nil {
		if err := b.OnBatch(ctx, jobs); err != nil {
			return nil, err
		}
	}
	if err := b.admit(); err != nil {
		return nil, err
	}
	type found struct {
		step
		at time.Time
	}
	there := make(map[string]found, len(jobs))
	slow := time.Duration(0)
	for _, job := range jobs {
		if st, at, ok := b.find(job); ok {
			there[job.ID] = found{st, at}
			slow = max(slow, st.slow)
		}
	}
	if err := b.sleep(ctx, slow); err != nil {
		return nil, err
	}
	all := make(map[string]jobpoll.Result, len(there))
	for _, job := range jobs {
		f, ok := there[job.ID]
		if !ok {
			continue
		}
		rep, err := b.tell(ctx, f.step, f.at)
		if ce := (*jobpoll.CheckError)(nil); errors.As(err, &ce) && ce.Kind == jobpoll.ErrorNoSuchJob {
			continue
		}
		all[job.ID] = jobpoll.Result{Report: rep, Err: err}
	}
	return all, nil
}

func (b *Batch) note(jobs []jobpoll.Job) {
	call := BatchCall{At: b.clock.Now()}
	for _, job := range jobs {
		call.IDs = append(call.IDs, job.ID)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, call)
}
