package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"path"
	"strconv"
	"sync"
	"time"
)

// provider is a pretended video provider: each job that is submitted waits in
// a queue, renders, and is done after render. It is here so that the example
// runs without an account; a real one is not yours to write.
type provider struct {
	now    func() time.Time
	render time.Duration // how long a job takes
	busyAt time.Duration // the age at which one look of a job is refused; zero: never
	wait   time.Duration // how long it then asks to stay away

	mu   sync.Mutex
	jobs map[string]*render
}

type render struct {
	since   time.Time
	refused bool
}

// submit accepts a job and returns its id.
func (p *provider) submit() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.jobs == nil {
		p.jobs = map[string]*render{}
	}
	id := fmt.Sprintf("render-%d", len(p.jobs)+1)
	p.jobs[id] = &render{since: p.now()}
	return id
}

// ServeHTTP answers GET /jobs/{id}.
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := path.Base(r.URL.Path)
	job := p.jobs[id]
	if job == nil {
		http.Error(w, `{"error":"no such job"}`, http.StatusNotFound)
		return
	}
	age := p.now().Sub(job.since)
	if p.busyAt > 0 && age >= p.busyAt && !job.refused {
		job.refused = true
		w.Header().Set("Retry-After", strconv.Itoa(int(p.wait/time.Second)))
		http.Error(w, `{"error":"slow down"}`, http.StatusTooManyRequests)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(p.tell(id, float64(age)/float64(p.render)))
}

// tell is the answer at a part of the job's duration: a tenth of it in the
// queue, then rendering, then done.
func (p *provider) tell(id string, part float64) answer {
	switch {
	case part < 0.1:
		return answer{Status: "waiting", Place: 1 + int((0.1-part)*30)}
	case part < 1:
		return answer{Status: "rendering", Percent: math.Floor((part - 0.1) / 0.9 * 100)}
	}
	return answer{Status: "done", Percent: 100, Result: json.RawMessage(fmt.Sprintf(`{"url":"https://cdn.example/%s.mp4"}`, id))}
}
