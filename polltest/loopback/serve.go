package loopback

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

// outcome is an answer, and how it is broken.
type outcome struct {
	Answer
	fault polltest.Fault // empty: it is not
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The body is read first: only then does the server see a client leave.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBody))
	if err != nil {
		http.Error(w, "request body: "+err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	call := s.cfg.Wire.Read(r, body)
	if call.Body == nil {
		call.Body = body
	}
	rec, n := s.record(r, call)
	var fault Fault
	if s.cfg.Fault != nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
		fault = s.cfg.Fault(n, r)
	}
	a, ok := s.respond(&exchange{Server: s, r: r, call: call, body: call.Body, rec: rec}, fault)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	s.send(w, r, rec, a)
}

// respond is the answer, late and broken as the Config has it. Not ok: nobody
// waits for it.
func (s *Server) respond(x *exchange, fault Fault) (a outcome, ok bool) {
	ctx, done := s.busy(x.r)
	defer done()
	x.ctx = ctx
	if !s.sleep(ctx, s.cfg.Latency) {
		return a, false
	}
	if !fault.Before {
		if a, ok = x.answer(); !ok {
			return a, false
		}
	}
	if !s.sleep(ctx, fault.Slow) {
		return a, false
	}
	if fault != (Fault{}) {
		x.faulty()
	}
	if fault.Status != 0 {
		a = outcome{Answer: x.problem(Problem{Kind: ProblemScripted, Status: fault.Status, Wait: fault.RetryAfter})}
	}
	if fault.Kind != "" {
		a.fault = fault.Kind
	}
	if a.Status == 0 {
		a.Answer = x.problem(Problem{Kind: ProblemScripted, Status: http.StatusInternalServerError})
	}
	if a.fault == polltest.FaultInside {
		if a.Status < 400 {
			a.Answer = x.problem(Problem{Kind: ProblemScripted, Status: http.StatusInternalServerError})
		}
		a.Status = http.StatusOK
	}
	return a, true
}

// record notes that the request came.
func (s *Server) record(r *http.Request, call Call) (*Request, int) {
	now, good := s.clock.Now(), false
	if s.cfg.Authorize != nil && call.Credential != "" {
		good = s.cfg.Authorize(call.Credential, now)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.Authorize == nil {
		good = s.credential == "" || call.Credential == s.credential
	}
	seen := SeenWrong
	switch {
	case call.Credential == "":
		seen = SeenNone
	case good:
		seen = SeenRight
	}
	rec := s.records.add(Request{
		At: now, Op: call.Op, Method: r.Method, Path: r.URL.Path, Host: r.Host, ID: call.ID, Only: call.Only, Credential: seen,
	})
	return rec, rec.N
}

// count changes the counters.
func (s *Server) count(f func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.records.stats)
}

// exchange is one request under way.
type exchange struct {
	*Server
	r    *http.Request
	ctx  context.Context // as busy made it
	call Call
	body json.RawMessage // Call.Body
	rec  *Request        // guarded by mu
}

func (x *exchange) base() string {
	scheme := "http://"
	if x.r.TLS != nil {
		scheme = "https://"
	}
	return scheme + x.r.Host
}

// problem words a Problem, with the headers of its wait.
func (x *exchange) problem(p Problem) Answer {
	p.Call = x.call
	a := x.cfg.Wire.Error(p)
	a.Header = x.waitHeaders(a.Header, p.Wait)
	return a
}

// answer does what the request asks for. Not ok: nobody waits for an answer.
func (x *exchange) answer() (a outcome, ok bool) {
	refused := func(p Problem) (outcome, bool) { return outcome{Answer: x.problem(p)}, true }
	if x.call.Op == OpUnknown {
		return refused(Problem{Kind: ProblemNoPath})
	}
	if !x.authorized() {
		x.count(func(s *Stats) { s.Unauthorized++ })
		return refused(Problem{Kind: ProblemUnauthorized})
	}
	if x.call.Bad {
		return refused(Problem{Kind: ProblemBadRequest})
	}
	x.mu.Lock()
	wait := x.admit(x.call.Op)
	if wait > 0 {
		x.records.stats.RateLimited++
		x.rec.Limited = true
	}
	x.mu.Unlock()
	if wait > 0 {
		return refused(Problem{Kind: ProblemRateLimited, Message: x.cfg.Retry.text(wait), Wait: wait})
	}
	switch x.call.Op {
	case OpSubmit:
		return x.submit()
	case OpList:
		return x.list()
	}
	j, problem := x.find()
	if j == nil {
		return refused(problem)
	}
	switch x.call.Op {
	case OpStatus:
		return x.status(j)
	case OpResult:
		return x.result(j)
	default:
		return x.cancel(j)
	}
}

func (x *exchange) authorized() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.cfg.Authorize == nil && x.credential == "" || x.rec.Credential == SeenRight
}

// find returns the job, or why there is none.
func (x *exchange) find() (*job, Problem) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	j := x.jobs[x.call.ID]
	if j == nil {
		j = x.own[x.call.ID]
	}
	if j == nil {
		return nil, Problem{Kind: ProblemNoJob}
	}
	if x.elapsed() < j.visible {
		j.misses++
		x.records.stats.NotVisible++
		return nil, Problem{Kind: ProblemNotVisible, Misses: j.misses - 1}
	}
	return j, Problem{}
}

func (x *exchange) submit() (outcome, bool) {
	refused := func(p Problem) (outcome, bool) { return outcome{Answer: x.problem(p)}, true }
	var object map[string]json.RawMessage
	if json.Unmarshal(x.body, &object) != nil {
		return refused(Problem{Kind: ProblemBadRequest})
	}
	if !x.claim() {
		return refused(Problem{Kind: ProblemBadRequest})
	}
	n, ok := x.reserve(x.call.Queue)
	if !ok {
		x.disclaim()
		x.count(func(s *Stats) { s.TooManyJobs++ })
		return refused(Problem{Kind: ProblemTooManyJobs})
	}
	accepted := false
	defer func() {
		if !accepted { // there is no script, or what the Config calls panicked
			x.release()
			x.disclaim()
		}
	}()
	script, err := x.script(n)
	if err != nil {
		return refused(Problem{Kind: ProblemScripted, Status: http.StatusInternalServerError, Message: err.Error()})
	}
	key := x.r.URL.Path + "\n" + string(x.body)
	if x.cfg.Duplicate != nil {
		key = x.cfg.Duplicate(x.r, x.body)
	}
	j := x.accept(n, x.call, script, x.body)
	accepted = true
	x.mu.Lock()
	x.rec.ID = j.id
	x.records.acceptedAs(key)
	end := j.ending()
	wait := min(end-x.elapsed(), x.call.Hold)
	x.mu.Unlock()
	if !x.sleep(x.ctx, wait) {
		return outcome{}, false
	}
	return x.write(j, false), true
}

// script is that of the nth submission.
func (x *exchange) script(n int) (s polltest.Script, err error) {
	text := ""
	if x.cfg.Script != nil {
		text = x.cfg.Script(n, x.body)
	}
	if text == "" {
		text = DefaultScript
	}
	return polltest.ParseScript(text)
}

// write words what there is to say of the job now.
func (x *exchange) write(j *job, late bool) outcome {
	x.mu.Lock()
	x.settle()
	v := x.view(j, j.state(x.elapsed(), x.ahead(j)), x.base())
	x.mu.Unlock()
	return outcome{Answer: x.cfg.Wire.Write(Reply{Call: x.call, View: v, Late: late})}
}

func (x *exchange) status(j *job) (outcome, bool) {
	x.mu.Lock()
	e, v, known := x.look(j)
	x.mu.Unlock()
	if !known {
		return outcome{Answer: x.problem(Problem{Kind: ProblemNoJob})}, true
	}
	return x.tell(e, Reply{Call: x.call, View: v})
}

// look plays a look at a job; mu is held. Not known: the script says so.
func (x *exchange) look(j *job) (e polltest.Entry, v View, known bool) {
	now, ahead := x.elapsed(), x.ahead(j)
	e, known = j.look(now, ahead)
	shown := e
	if e.Fails() {
		shown = j.state(now, ahead)
		x.broken()
	}
	return e, x.view(j, shown, x.base()), known
}

// tell words what a look has met. Not ok: nobody waits for it.
func (x *exchange) tell(e polltest.Entry, r Reply) (outcome, bool) {
	if !x.sleep(x.ctx, e.Slow) {
		return outcome{}, false
	}
	switch {
	case e.Err:
		e.Status = http.StatusInternalServerError
		fallthrough
	case e.Status != 0:
		return outcome{Answer: x.problem(Problem{Kind: ProblemScripted, Status: e.Status, Message: e.Word, Wait: e.RetryAfter})}, true
	}
	a := x.cfg.Wire.Write(r)
	a.Header = x.waitHeaders(a.Header, e.RetryAfter)
	return outcome{Answer: a, fault: e.Fault}, true
}

// faulty notes that the answer is broken.
func (x *exchange) faulty() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.broken()
}

// broken is faulty where mu is held.
func (x *exchange) broken() {
	if !x.rec.Faulty {
		x.rec.Faulty = true
		x.records.stats.Faults++
	}
}

// waitHeaders adds those that tell a wait.
func (x *exchange) waitHeaders(h http.Header, d time.Duration) http.Header {
	if d <= 0 {
		return h
	}
	if h == nil {
		h = make(http.Header)
	}
	x.cfg.Retry.set(h, d, x.clock.Now())
	return h
}

func (x *exchange) result(j *job) (outcome, bool) {
	x.mu.Lock()
	e := j.state(x.elapsed(), x.ahead(j))
	x.mu.Unlock()
	if !e.State.Terminal() {
		return outcome{Answer: x.problem(Problem{Kind: ProblemNotReady})}, true
	}
	return x.write(j, false), true
}

func (x *exchange) cancel(j *job) (outcome, bool) {
	x.mu.Lock()
	now := x.elapsed()
	ended := j.ending() <= now
	late := ended || x.call.OnlyQueued && j.state(now, 0).State != jobpoll.StateQueued
	if !late && !x.cfg.IgnoreCancel {
		j.canceled = now
	}
	x.mu.Unlock()
	a := x.write(j, late)
	if x.call.Forget || ended && x.call.ForgetEnded {
		x.forget(j)
	}
	return a, true
}

// forget makes a job one that nobody knows.
func (x *exchange) forget(j *job) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.jobs, j.id)
	delete(x.own, j.own) // no job has an empty one
	x.order = slices.DeleteFunc(x.order, func(o *job) bool { return o == j })
}
