package loopback

import (
	"net"
	"net/http"
	"slices"
	"time"
)

// maxRequests is how many of the latest requests are kept for Requests.
const maxRequests = 1 << 18

// Stats are counters since the server was made. A request counts for its
// operation whatever the answer.
type Stats struct {
	Requests     int
	Submits      int // requests to submit
	Accepted     int // of them, those that made a job
	Duplicates   int // of these, repetitions of an earlier one
	Statuses     int
	Results      int
	Cancels      int
	Lists        int
	Unknown      int // requests for a path or method that the provider has not
	RateLimited  int // answered with 429 by a rate limit
	TooManyJobs  int // submissions refused by MaxJobs
	Unauthorized int // answered as such
	NotVisible   int // looks at a job that was not visible yet
	Faults       int // answers broken by a script or by Config.Fault
	Connections  int // opened to a server made by Start
}

// Request is a request that a Server got.
type Request struct {
	N          int // of all requests, from 1 on
	At         time.Time
	Op         Op
	Method     string
	Path       string // without the query
	Host       string
	ID         string   // of the job: in the path, or made by the submission
	Only       []string // as in Call: the jobs that a list looks at
	Credential Seen
	Status     int  // of the answer; zero: none, or none yet
	Limited    bool // refused by a rate limit
	Faulty     bool // broken by a script or by Config.Fault
}

// Seen is what a request carried as its credential. The server keeps none.
type Seen uint8

// What can be seen of a credential.
const (
	SeenNone Seen = iota
	SeenWrong
	SeenRight
)

// records is what a Server remembers of requests, guarded by its mutex.
type records struct {
	stats    Stats
	requests []*Request
	seen     map[string]bool // keys of submissions
}

// add counts the request, numbers it and keeps it.
func (rs *records) add(r Request) *Request {
	rs.stats.Requests++
	r.N = rs.stats.Requests
	switch r.Op {
	case OpSubmit:
		rs.stats.Submits++
	case OpStatus:
		rs.stats.Statuses++
	case OpResult:
		rs.stats.Results++
	case OpCancel:
		rs.stats.Cancels++
	case OpList:
		rs.stats.Lists++
	default:
		rs.stats.Unknown++
	}
	if len(rs.requests) >= 2*maxRequests {
		rs.requests = append([]*Request(nil), rs.requests[maxRequests:]...)
	}
	rs.requests = append(rs.requests, &r)
	return &r
}

// accepted counts a submission by its key.
func (rs *records) acceptedAs(key string) {
	rs.stats.Accepted++
	if key == "" {
		return
	}
	if rs.seen[key] {
		rs.stats.Duplicates++
	}
	rs.seen[key] = true
}

// Stats returns the counters.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records.stats
}

// Requests returns the latest requests in the order in which they came: all of
// the first 262,144, and of more at least as many.
func (s *Server) Requests() []Request {
	return s.filter(func(*Request) bool { return true })
}

// Looks returns when the status of the job was asked for, by itself or with others,
// refused calls included, as far as Requests goes back.
func (s *Server) Looks(id string) []time.Time {
	return s.instants(func(r *Request) bool {
		return r.Op == OpStatus && r.ID == id || r.Op == OpList && slices.Contains(r.Only, id)
	})
}

// Cancels returns when the cancellation of the job was asked for, as far as
// Requests goes back.
func (s *Server) Cancels(id string) []time.Time {
	return s.instants(func(r *Request) bool { return r.Op == OpCancel && r.ID == id })
}

// Jobs returns the ids of all jobs in the order of submission, or Add.
func (s *Server) Jobs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]string, len(s.order))
	for i, j := range s.order {
		ids[i] = j.id
	}
	return ids
}

func (s *Server) filter(keep func(*Request) bool) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var kept []Request
	for _, r := range s.requests {
		if keep(r) {
			kept = append(kept, *r)
		}
	}
	return kept
}

func (s *Server) instants(of func(*Request) bool) []time.Time {
	var at []time.Time
	for _, r := range s.filter(of) {
		at = append(at, r.At)
	}
	return at
}

func (s *Server) countConnection(_ net.Conn, state http.ConnState) {
	if state != http.StateNew {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records.stats.Connections++
}
