package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/jobpoll/jobpoll"
)

// weather is how well webhooks do for a while.
type weather struct {
	name, route string
	lost        float64 // the part of jobs whose webhooks do not come
}

// report gathers the ends of jobs, weather by weather.
type report struct {
	mu   sync.Mutex
	rows []row
	more chan struct{} // an end was added
}

// row is what one weather cost.
type row struct {
	weather
	ends, webhooks, looks int
	delay                 time.Duration
	coverage              float64 // by which looks are planned afterwards
}

func (r *report) begin(w weather) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = append(r.rows, row{weather: w})
	r.more = make(chan struct{}, 1)
}

func (r *report) add(o jobpoll.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := &r.rows[len(r.rows)-1]
	now.ends++
	now.looks += o.Polls
	now.delay += o.DetectionDelay
	if o.Via == jobpoll.ViaWebhook {
		now.webhooks++
	}
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// wait returns when n jobs of this weather have ended.
func (r *report) wait(ctx context.Context, n int) error {
	for {
		r.mu.Lock()
		ends := r.rows[len(r.rows)-1].ends
		r.mu.Unlock()
		if ends >= n {
			return nil
		}
		select {
		case <-r.more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *report) finish(coverage float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows[len(r.rows)-1].coverage = coverage
}

// write prints the table.
func (r *report) write(out io.Writer, total jobpoll.WebhookMetrics) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "\tjobs\tends by webhook\tlooks a job\tmean delay\tcoverage after\t")
	for _, w := range r.rows {
		n := max(w.ends, 1)
		_, _ = fmt.Fprintf(t, "%s\t%d\t%d\t%.2f\t%v\t%.0f %%\t\n",
			w.name, w.ends, w.webhooks, float64(w.looks)/float64(n), (w.delay / time.Duration(n)).Round(time.Millisecond), 100*w.coverage)
	}
	_ = t.Flush()
	_, _ = fmt.Fprintf(out, "webhooks: %d came, %d applied, %d repeats, %d stale, %d early, %d conflicts; %d looks made up for late ones, %d jobs were brought forward\n",
		total.Notices, total.Applied, total.Duplicates, total.Stale, total.Early, total.Conflicts, total.Looks, total.Forwarded)
}
