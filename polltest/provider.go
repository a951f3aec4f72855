package polltest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jobpoll/jobpoll"
)

// Provider is a scripted provider of jobs: a jobpoll.Checker, and a Canceler,
// that tells of each job what its Script says, and that remembers how it was
// asked. Methods may be called from several goroutines at once.
type Provider struct {
	// OnLook, if not nil, is called at the begin of each look, also of those
	// that the rate limit refuses, on the goroutine of the look. It may change
	// the script by Add, or call into the Poller. Set it before the first look.
	OnLook func(ctx context.Context, job jobpoll.Job)
	// OnCancel, if not nil, is called by Cancel, and its error is the answer.
	// Without it the answer is nil, and the script goes on as if nothing had
	// happened: providers take requests that they do not follow. Set it before
	// the first call.
	OnCancel func(ctx context.Context, job jobpoll.Job) error

	clock jobpoll.Clock

	mu       sync.Mutex
	jobs     map[string]*scripted
	standard *Script // of Default
	starts   []time.Time
	looks    map[string][]time.Time
	cancels  map[string][]time.Time
	inFlight int
	most     int
	limited  int
	limit    rateLimit
	sends    map[string][]time.Time // by ClientKey
	byKey    map[string]taken
	lookups  []jobpoll.Lost
}

var (
	_ jobpoll.Checker  = (*Provider)(nil)
	_ jobpoll.Canceler = (*Provider)(nil)
)

// scripted is one job.
type scripted struct {
	play  *Play
	begun time.Duration // monotonic time of the script's start
	start time.Time     // its wall time
}

// rateLimit is a token bucket on the monotonic time.
type rateLimit struct {
	perSecond, burst, tokens float64
	last                     time.Duration
	retryAfter               time.Duration
}

// NewProvider returns a Provider without jobs, on the clock that the Poller
// has too. Its scripts run on the clock's monotonic time where there is one,
// so that Clock.Jump does not make jobs finish.
func NewProvider(clock jobpoll.Clock) *Provider {
	if clock == nil {
		panic("polltest: NewProvider needs a clock")
	}
	return &Provider{
		clock:   clock,
		jobs:    make(map[string]*scripted),
		looks:   make(map[string][]time.Time),
		cancels: make(map[string][]time.Time),
	}
}

// Add adds the job id, or gives it a new script. The script begins now. Add
// panics where ParseScript has an error.
func (p *Provider) Add(id, script string) { p.AddAt(id, p.clock.Now(), script) }

// AddAt is Add with a script that began, or will begin, at start.
func (p *Provider) AddAt(id string, start time.Time, script string) {
	s, err := ParseScript(script)
	if err != nil {
		panic(err.Error())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(id, start, s)
}

func (p *Provider) add(id string, start time.Time, s Script) *scripted {
	job := &scripted{
		play:  s.Play(),
		begun: p.elapsed() + start.Sub(p.clock.Now()),
		start: start,
	}
	p.jobs[id] = job
	return job
}

// Default gives the script to every job that was not added. It begins when the
// job was submitted, or with the first look where that is not told. Without a
// default there is no such job. Default panics where ParseScript has an error.
func (p *Provider) Default(script string) {
	s, err := ParseScript(script)
	if err != nil {
		panic(err.Error())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.standard = &s
}

// RateLimit makes the provider answer a look with 429 and retryAfter (zero:
// without a wait) when it comes sooner than perSecond and burst allow. It is
// the provider's own limit, which a budget should keep a Poller from meeting.
// A perSecond of zero or less switches it off.
func (p *Provider) RateLimit(perSecond float64, burst int, retryAfter time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	full := float64(max(burst, 1))
	p.limit = rateLimit{perSecond: perSecond, burst: full, tokens: full, last: p.elapsed(), retryAfter: retryAfter}
}

func (l *rateLimit) take(now time.Duration) bool {
	if l.perSecond <= 0 {
		return true
	}
	l.tokens = min(l.burst, l.tokens+(now-l.last).Seconds()*l.perSecond)
	l.last = now
	const rounding = 1e-9
	if l.tokens < 1-rounding {
		return false
	}
	l.tokens--
	return true
}

// Check tells what the script of the job says now.
func (p *Provider) Check(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
	defer p.begin(job)()
	if p.OnLook != nil {
		p.OnLook(ctx, job)
	}
	if err := p.admit(); err != nil {
		return jobpoll.Report{}, err
	}
	st, at, ok := p.find(job)
	if !ok {
		return jobpoll.Report{}, noSuchJob(job)
	}
	if err := p.sleep(ctx, st.slow); err != nil {
		return jobpoll.Report{}, err
	}
	return p.tell(ctx, st, at)
}

// begin notes the begin of a look; the result ends it.
func (p *Provider) begin(job jobpoll.Job) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	p.starts = append(p.starts, now)
	p.looks[job.ID] = append(p.looks[job.ID], now)
	p.inFlight++
	p.most = max(p.most, p.inFlight)
	return func() {
		p.mu.Lock()
		p.inFlight--
		p.mu.Unlock()
	}
}

// tell is what a step that holds since at says now.
func (p *Provider) tell(ctx context.Context, st step, at time.Time) (jobpoll.Report, error) {
	r, err := st.answer(ctx, at)
	if st.eta > 0 {
		r.Remaining = max(st.eta-p.clock.Now().Sub(at), 0)
	}
	return r, err
}

func (p *Provider) admit() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit.take(p.elapsed()) {
		return nil
	}
	p.limited++
	return httpError(http.StatusTooManyRequests, p.limit.retryAfter, jobpoll.ScopeDefault, "")
}

// find returns the entry that answers now, and its instant.
func (p *Provider) find(job jobpoll.Job) (step, time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.jobs[job.ID]
	if j == nil {
		if p.standard == nil {
			return step{}, time.Time{}, false
		}
		start := p.clock.Now()
		if !job.SubmittedAt.IsZero() && job.SubmittedAt.Before(start) {
			start = job.SubmittedAt
		}
		j = p.add(job.ID, start, *p.standard)
	}
	st, ok := j.play.look(p.elapsed() - j.begun)
	return st, j.start.Add(st.at), ok
}

// elapsed is the monotonic time.
func (p *Provider) elapsed() time.Duration {
	if m, ok := p.clock.(interface{ Monotonic() time.Duration }); ok {
		return m.Monotonic()
	}
	return p.clock.Now().Sub(time.Unix(0, 0))
}

func (p *Provider) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	if s, ok := p.clock.(interface {
		Sleep(context.Context, time.Duration) error
	}); ok {
		return s.Sleep(ctx, d)
	}
	over := make(chan struct{})
	timer := p.clock.AfterFunc(d, func() { close(over) })
	defer timer.Stop()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// answer is what the entry, which holds since at, tells.
func (st step) answer(ctx context.Context, at time.Time) (jobpoll.Report, error) {
	scope := scopeWords[st.scope]
	switch st.what {
	case "error":
		return jobpoll.Report{}, errors.New(cmp.Or(st.raw, "scripted error"))
	case "reset":
		return jobpoll.Report{}, fmt.Errorf("scripted: %w", syscall.ECONNRESET)
	case "broken":
		return jobpoll.Report{}, fmt.Errorf("scripted: a broken answer: %s", st.fault)
	case "panic":
		panic(cmp.Or(st.raw, "scripted panic"))
	case "hang":
		<-ctx.Done()
		return jobpoll.Report{}, context.Cause(ctx)
	}
	if isStatus(st.what) {
		code, _ := strconv.Atoi(st.what)
		return jobpoll.Report{}, httpError(code, st.retryAfter, scope, st.raw)
	}
	r := jobpoll.Report{
		State:         stateWords[st.what],
		RawStatus:     st.raw,
		Progress:      st.percent / 100,
		QueuePosition: st.pos,
		Remaining:     st.eta,
		Hint:          jobpoll.Hint{RetryAfter: st.retryAfter, Scope: scope},
		Ref:           st.ref,
		Output:        slices.Clone(st.output),
	}
	if r.RawStatus == "" && r.State != jobpoll.StateUnknown {
		r.RawStatus = st.what
	}
	if st.failure != "" {
		r.Failure = &jobpoll.Failure{Kind: failureWords[st.failure], Message: st.message}
	}
	if st.completed {
		r.CompletedAt = at
	}
	if st.expires > 0 {
		r.ResultExpiresAt = at.Add(st.expires)
	}
	return r, nil
}

// httpError is the error of an HTTP status, as jobpoll.FromResponse reads it.
func httpError(code int, wait time.Duration, scope jobpoll.Scope, message string) *jobpoll.CheckError {
	kind := jobpoll.ErrorTransient
	switch code {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired:
		kind = jobpoll.ErrorAuth
	case http.StatusPaymentRequired:
		kind = jobpoll.ErrorQuota
	case http.StatusForbidden, http.StatusUnavailableForLegalReasons:
		kind = jobpoll.ErrorPolicy
	case http.StatusNotFound:
		kind = jobpoll.ErrorNoSuchJob
	case http.StatusGone:
		kind = jobpoll.ErrorGone
	case http.StatusTooManyRequests:
		kind = jobpoll.ErrorRateLimited
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusMisdirectedRequest, http.StatusTooEarly:
	default:
		if code < 500 {
			kind = jobpoll.ErrorInvalid
		}
	}
	if scope == jobpoll.ScopeDefault {
		switch {
		case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable && wait > 0:
			scope = jobpoll.ScopeBudget
		case wait > 0:
			scope = jobpoll.ScopeJob
		}
	}
	return &jobpoll.CheckError{
		Kind:   kind,
		Hint:   jobpoll.Hint{RetryAfter: wait, Scope: scope},
		Status: code,
		Err:    errors.New(cmp.Or(message, http.StatusText(code), "scripted")),
	}
}

func noSuchJob(job jobpoll.Job) error {
	return httpError(http.StatusNotFound, 0, jobpoll.ScopeDefault, fmt.Sprintf("no job %q", job.ID))
}

// Cancel notes the request; see OnCancel.
func (p *Provider) Cancel(ctx context.Context, job jobpoll.Job) error {
	p.mu.Lock()
	p.cancels[job.ID] = append(p.cancels[job.ID], p.clock.Now())
	known := p.jobs[job.ID] != nil || p.standard != nil
	p.mu.Unlock()
	if p.OnCancel != nil {
		return p.OnCancel(ctx, job)
	}
	if !known {
		return noSuchJob(job)
	}
	return nil
}

// Looks returns when the job was looked at, refused looks included.
func (p *Provider) Looks(id string) []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.looks[id])
}

// Cancels returns when the provider was asked to cancel the job.
func (p *Provider) Cancels(id string) []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.cancels[id])
}

// Starts returns when each look at any job began, in order.
func (p *Provider) Starts() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.starts)
}

// Total returns how many looks there were at all jobs.
func (p *Provider) Total() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.starts)
}

// InFlight returns how many looks are under way.
func (p *Provider) InFlight() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inFlight
}

// MaxInFlight returns how many looks were under way at once at most.
func (p *Provider) MaxInFlight() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most
}

// Limited returns how many looks the provider's own rate limit refused.
func (p *Provider) Limited() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limited
}
