package polltest

import (
	"cmp"
	"context"
	"net"
	"syscall"
	"time"

	"github.com/jobpoll/jobpoll"
)

// Order is what a Provider does with one submission.
type Order struct {
	// ID and Script are the job that is made, as by Provider.Add. An empty Script is
	// "queued".
	ID, Script string
	// Answer is what the submission is answered, in the words of one entry of a
	// Script without its time: "queued retry-after 20s", "429 retry-after 15s", "503",
	// "reset", "hang", "panic", "queued slow 9s". Empty: "queued".
	Answer string
	// Lost makes the job also where the answer is an error: it was taken, and nobody
	// is told. A state makes it in any case, an error else not.
	Lost bool
	// NoID leaves the id out of the answer.
	NoID bool
	// Unsent finds no connection: nothing reaches the provider.
	Unsent bool
}

// Send gives a jobpoll.Submission its Send: the provider takes the job as the
// order says. Send panics where ParseScript has an error.
func (p *Provider) Send(clientKey string, o Order) func(context.Context) (jobpoll.Sent, error) {
	made, err := ParseScript(cmp.Or(o.Script, "queued"))
	if err != nil {
		panic(err.Error())
	}
	said, err := ParseScript(cmp.Or(o.Answer, "queued"))
	if err != nil {
		panic(err.Error())
	}
	return func(ctx context.Context) (jobpoll.Sent, error) {
		p.mu.Lock()
		now := p.clock.Now()
		if p.sends == nil {
			p.sends, p.byKey = map[string][]time.Time{}, map[string]taken{}
		}
		p.sends[clientKey] = append(p.sends[clientKey], now)
		st, _ := said.Play().look(0)
		isState := !isError(st.what)
		if (isState || o.Lost) && !o.Unsent {
			p.add(o.ID, now, made)
			p.byKey[clientKey] = taken{o.ID, now}
		}
		p.mu.Unlock()
		if o.Unsent {
			return jobpoll.Sent{}, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}
		if st.slow > 0 {
			if err := p.sleep(ctx, st.slow); err != nil {
				return jobpoll.Sent{}, err
			}
		}
		r, err := st.answer(ctx, now)
		if err != nil || o.NoID {
			return jobpoll.Sent{}, err
		}
		return jobpoll.Sent{ID: o.ID, Report: r}, nil
	}
}

// isError reports whether an entry of a script is no state.
func isError(what string) bool {
	switch what {
	case "error", "reset", "broken", "panic", "hang":
		return true
	}
	return isStatus(what)
}

// taken is a job that was made by a submission.
type taken struct {
	id string
	at time.Time
}

// Sends returns when Send was called for a ClientKey: more than once is a job that
// was bought twice.
func (p *Provider) Sends(clientKey string) []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]time.Time(nil), p.sends[clientKey]...)
}

// Finder returns a Reconciler that finds by their ClientKey the jobs that Send has
// made, once they are as old as lag: until then they seem to be absent, as in a
// list that lags behind.
func (p *Provider) Finder(lag time.Duration) jobpoll.Reconciler { return finder{p, lag} }

type finder struct {
	p   *Provider
	lag time.Duration
}

func (f finder) Lookup(_ context.Context, lost jobpoll.Lost) (jobpoll.Finding, error) {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	key := lost.Job.ClientKey
	f.p.lookups = append(f.p.lookups, lost)
	t, ok := f.p.byKey[key]
	if !ok || f.p.clock.Now().Sub(t.at) < f.lag {
		return jobpoll.Finding{State: jobpoll.FindingAbsent}, nil
	}
	return jobpoll.Finding{State: jobpoll.FindingPresent, ID: t.id}, nil
}

// Lookups returns the questions that a Finder was asked, in order.
func (p *Provider) Lookups() []jobpoll.Lost {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]jobpoll.Lost(nil), p.lookups...)
}

// Submitting is a Submit under way.
type Submitting struct {
	h    *Harness
	key  string
	done chan struct{}
	job  jobpoll.Job
	err  error
}

// BeginSubmit calls Submit on a goroutine of its own, which Clock.Advance knows of,
// and returns when it has returned or waits on the clock.
func (h *Harness) BeginSubmit(ctx context.Context, s jobpoll.Submission) *Submitting {
	h.t.Helper()
	b := &Submitting{h: h, key: s.Job.ClientKey, done: make(chan struct{})}
	name := func() string { return "Submit of " + s.Job.ClientKey }
	started := h.Clock.Busy(name)
	go func() {
		ctx, idle := h.Clock.BusyContext(ctx, name)
		started()
		defer idle()
		defer close(b.done)
		b.job, b.err = h.Submit(ctx, s)
	}()
	h.Clock.Settle()
	return b
}

// Returned reports whether Submit has returned.
func (b *Submitting) Returned() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// Result returns what Submit returned. It fails the test if that has not returned.
func (b *Submitting) Result() (jobpoll.Job, error) {
	b.h.t.Helper()
	if !b.Returned() {
		b.h.t.Fatalf("polltest: Submit of %q has not returned", b.key)
	}
	return b.job, b.err
}
