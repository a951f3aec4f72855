package polltest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// requestChecks look at what the adapter asks.
var requestChecks = []check{{
	name: "method",
	why:  "a look costs nothing and changes nothing; one that submits, for whatever reason, buys a second job",
	see:  "go doc jobpoll.Checker; README, Callbacks, outcomes, reasons",
	run: func(s *stage) {
		allowed := []string{http.MethodGet, http.MethodHead, s.kit.Method}
		for _, a := range s.everyAnswer() {
			before := len(s.provider.requests())
			s.look(a.answer)
			for _, q := range s.provider.requests()[before:] {
				if !slices.Contains(allowed, q.method) {
					s.fault(a.tried, "sent "+q.String(), "only "+cmp.Or(s.kit.Method, http.MethodGet)+" (Adapter.Method)")
				}
			}
		}
	},
}, {
	name: "one-request",
	why:  "retries are the Poller's: those inside a look come too early, are not counted, and use up a budget that all jobs share",
	see:  "go doc jobpoll.Checker; README, Budget and lanes",
	run: func(s *stage) {
		for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInternalServerError} {
			before := len(s.provider.requests())
			s.look(refusal(status))
			if n := len(s.provider.requests()) - before; n != 1 {
				s.fault(fmt.Sprintf("one look, with HTTP %d", status), fmt.Sprintf("sent %d requests", n), "one")
			}
		}
	},
}, {
	name: "job-id",
	why:  "the id is the provider's; the ClientKey is yours, and the provider does not know it",
	see:  "go doc jobpoll.Job",
	run: func(s *stage) {
		const clientKey = "conformance-client-key"
		job := s.job(1)
		job.ClientKey = clientKey
		s.answers(s.kit.Pending)
		got := s.lookAt(job)
		all := s.provider.requests()
		if len(all) == 0 {
			s.fault(fmt.Sprintf("a look at the job %q", job.ID), "sent no request to Target.URL, and "+got.String(), "a request for that job")
			return
		}
		for _, q := range all {
			if q.names(clientKey) {
				s.fault(fmt.Sprintf("a job with the ID %q and the ClientKey %q", job.ID, clientKey), "sent "+q.String(), "no ClientKey in the request")
				return
			}
		}
		if about, ok := s.asksFor(all[0]); !ok || about.ID != s.job(1).ID {
			s.fault(fmt.Sprintf("a look at the job %q", job.ID), "sent "+all[0].String(), "a request with the job's ID, or its Ref, in path, query or body")
		}
	},
}, {
	name: "id-escaped",
	why:  "ids are the provider's and may hold anything: one that is pasted into a URL asks for something else",
	see:  "go doc net/url.PathEscape; go doc net/url.Values",
	lacks: func(a *Adapter) string {
		if a.Job == nil {
			return ""
		}
		if job := a.Job("http://127.0.0.1:1", 0); strings.Contains(job.Ref, job.ID) {
			return "the id is a part of the Ref"
		}
		return ""
	},
	run: func(s *stage) {
		// What has a space does not get far in a URL that it is pasted into.
		for _, end := range []string{"?a=1&b#c d%41", `?a=1&b#c+"d"%41`} {
			job := s.job(0)
			job.ID += end
			s.answers(s.kit.Pending)
			s.provider.forget()
			got := s.lookAt(job)
			all := s.provider.requests()
			if got.broken() || len(all) == 0 && got.err == nil || slices.ContainsFunc(all, func(q *asked) bool {
				return !q.says(job.ID) && (job.Ref == "" || !q.names(strings.TrimPrefix(job.Ref, s.target.URL)))
			}) {
				s.fault(fmt.Sprintf("a job with the ID %q", job.ID), fmt.Sprintf("sent %v and %s", all, got.String()), "the whole ID, escaped (or an error without a request)")
				return
			}
		}
	},
}}

// tried is an answer and its name.
type tried struct {
	tried  string
	answer Answer
}

// everyAnswer is one of each sort.
func (s *stage) everyAnswer() []tried {
	all := []tried{{"the answer Pending", s.kit.Pending}, {"the answer Succeeded", s.kit.Succeeded}, {"the answer Failed", s.kit.Failed}, {"a body that is no JSON", Answer{Body: "x"}}}
	for _, status := range []int{401, 404, 410, 429, 500} {
		all = append(all, tried{fmt.Sprintf("HTTP %d", status), refusal(status)})
	}
	return all
}

// trustChecks are about the credential and other hosts.
var trustChecks = []check{{
	name: "redirect",
	why:  "a redirect is the provider's word, or that of somebody in between; net/http takes Authorization off it, but no header of a name of your own, and no query, which goes along as Referer",
	see:  "go doc net/http.Client.CheckRedirect",
	run: func(s *stage) {
		s.elsewhere.setReply(s.reply(s.kit.Pending))
		for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
			s.look(Answer{Status: status, Header: http.Header{"Location": {"http://" + elsewhereHost + "/jobs/{id}"}}})
			s.keptFromElsewhere(fmt.Sprintf("HTTP %d to another host", status))
		}
	},
}, {
	name:  "foreign-url",
	needs: needPending,
	why:   "a status URL comes from an answer or from a store: followed to any host, it carries the credential there",
	see:   "go doc jobpoll.Job",
	lacks: func(a *Adapter) string {
		if !strings.Contains(a.Pending.Body, "{base}") && (a.Job == nil || !strings.Contains(a.Job("http://"+elsewhereHost, 0).Ref, elsewhereHost)) {
			return "neither Adapter.Pending.Body nor the Ref of Adapter.Job has a URL of the provider"
		}
		return ""
	},
	run: func(s *stage) {
		foreign := "http://" + elsewhereHost
		s.elsewhere.setReply(s.reply(s.kit.Pending))
		a := s.kit.Pending
		a.Body = strings.ReplaceAll(a.Body, "{base}", foreign)
		got := s.look(a)
		s.keptFromElsewhere("an answer with a URL on another host")

		job := s.job(0)
		if job.Ref = got.report.Ref; job.Ref != "" {
			s.lookAt(job)
			s.keptFromElsewhere("a look with the Ref of that answer")
		}
		s.lookAt(s.kit.job(foreign, 0))
		s.keptFromElsewhere("a job whose Ref is on another host")
	},
}}

// keptFromElsewhere tells a credential that came to the other host.
func (s *stage) keptFromElsewhere(tried string) {
	for _, q := range s.elsewhere.requests() {
		if q.holds(credential) {
			s.fault(tried, "sent the credential there, with "+q.String(), "no request to it, or one without the credential")
			break
		}
	}
	s.elsewhere.forget()
}

// loadChecks are about many looks, and about looks that take long.
var loadChecks = []check{{
	name: "context",
	why:  "the context of a look is what ends it, at Route.CheckTimeout and at shutdown; a look that goes on holds a worker",
	see:  "go doc jobpoll.Checker; go doc net/http.NewRequestWithContext",
	run: func(s *stage) {
		begun := make(chan struct{}, 1)
		for _, h := range []struct {
			tried string
			reply reply
		}{
			{"a provider that does not answer, and a context that is cancelled", func(_ http.ResponseWriter, q *asked) {
				tell(begun)
				s.hang(q)
			}},
			{"a provider that stops in the middle of its answer, and a context that is cancelled", func(w http.ResponseWriter, q *asked) {
				w.Header().Set("Content-Length", "1000000")
				_, _ = w.Write([]byte("{"))
				_ = http.NewResponseController(w).Flush()
				tell(begun)
				s.hang(q)
			}},
		} {
			s.answersWith(h.reply)
			ctx, cancel := context.WithCancel(context.Background())
			c, _ := s.start(ctx, func(ctx context.Context) (jobpoll.Report, error) { return s.checker.Check(ctx, s.job(0)) })
			select {
			case <-begun:
			case <-c.ended: // it did not ask
			}
			cancel()
			got := s.await(c)
			if got.broken() || got.err == nil || permanent(got.err) || got.kind() != jobpoll.ErrorTransient {
				s.fault(h.tried, got.String(), "an error that may pass, at once")
				return
			}
		}
	},
}, {
	name: "body-closed",
	why:  "a body that is not closed keeps its connection, and the process runs out of them",
	see:  "go doc net/http.Response",
	run: func(s *stage) {
		for _, a := range s.everyAnswer() {
			if got := s.look(a.answer); got.hung {
				return // told by others
			}
			if s.meter.open.Load() > 0 {
				s.fault(a.tried, "did not close the body", "resp.Body.Close(), whatever the answer")
				return
			}
		}
	},
}, {
	name:  "connections",
	needs: needPending,
	why:   "a connection for each look costs more than the look, and ports",
	see:   "go doc net/http.Client",
	run: func(s *stage) {
		const looks = 8
		for range looks {
			s.look(s.kit.Pending)
		}
		if n := s.provider.connections(); n > looks/2 {
			s.fault(fmt.Sprintf("%d looks one after the other", looks), fmt.Sprintf("made %d connections", n), "one client for all looks, bodies read to their end and closed")
		}
	},
}, {
	name:  "goroutines",
	needs: needPending,
	why:   "a million looks would leave a million of them",
	see:   "go doc jobpoll.Checker",
	run: func(s *stage) {
		for range 4 {
			s.look(s.kit.Pending)
			s.look(refusal(http.StatusServiceUnavailable))
		}
		if left := s.goroutinesLeft(); len(left) > 0 {
			s.fault("8 looks", fmt.Sprintf("left %d goroutines, one of them in %s", len(left), top(left[0])), "none once Check has returned")
		}
	},
}, {
	name:  "many-at-once",
	needs: needPending,
	why:   "one Checker serves all jobs, many of them at once: the answer of one must not be told of another",
	see:   "go doc jobpoll.Checker",
	run:   checkManyAtOnce,
}}

// tell sends where there is room.
func tell(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// hang waits until the client has gone or the stage closes.
func (s *stage) hang(q *asked) {
	select {
	case <-q.request.Context().Done():
	case <-s.closing.Done():
	}
	panic(http.ErrAbortHandler)
}

// goroutinesLeft are the goroutines that the calls of this stage have begun and
// that are there when their connections are closed. They are given a while to
// end.
func (s *stage) goroutinesLeft() []goroutine {
	s.meter.base.CloseIdleConnections()
	s.provider.close()
	ctx, cancel := context.WithTimeout(context.Background(), s.kit.patience/2)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		var left []goroutine
		for _, g := range sortedGoroutines() {
			if slices.Contains(s.looks, g.parent) && !slices.Contains(s.looks, g.id) {
				left = append(left, g)
			}
		}
		if len(left) == 0 || ctx.Err() != nil {
			return left
		}
		over, end := context.WithTimeout(ctx, pause)
		<-over.Done()
		end()
	}
}

func top(g goroutine) string {
	if len(g.frames) == 0 {
		return "an unknown function"
	}
	return g.frames[0]
}

// checkManyAtOnce looks at each of many jobs alone, and then at all together,
// where no answer comes before all have asked.
func checkManyAtOnce(s *stage) {
	kinds := []Answer{s.kit.Pending}
	if s.kit.misread&needSucceeded == 0 {
		kinds = append(kinds, s.kit.Succeeded)
	}
	if s.kit.misread&needFailed == 0 {
		kinds = append(kinds, s.kit.Failed)
	}
	replies := make(map[string]reply, crowd)
	for n := range crowd {
		a := kinds[n%len(kinds)]
		replies[s.job(n).ID] = s.reply(a.with("Retry-After", fmt.Sprint(100+n)))
	}
	answer := func(w http.ResponseWriter, q *asked) {
		job, _ := s.asksFor(q)
		replies[job.ID](w, q)
	}

	s.answersWith(answer)
	alone := make([]string, crowd)
	for n := range crowd {
		got := s.lookAt(s.job(n))
		alone[n] = outcomeOf(got)
	}

	all, open := context.WithTimeout(context.Background(), s.kit.patience/10) // those who ask one after the other
	defer open()
	waiting := make(chan struct{}, crowd)
	s.answersWith(func(w http.ResponseWriter, q *asked) {
		tell(waiting)
		if len(waiting) == crowd {
			open()
		}
		<-all.Done()
		answer(w, q)
	})
	calls := make([]calling, crowd)
	for n := range crowd {
		job := s.job(n)
		calls[n], _ = s.start(context.Background(), func(ctx context.Context) (jobpoll.Report, error) { return s.checker.Check(ctx, job) })
	}
	mixed, example := 0, ""
	for n, c := range calls {
		got := s.await(c)
		if together := outcomeOf(got); together != alone[n] {
			mixed++
			example = fmt.Sprintf("of the job %q it said %s, and alone %s", s.job(n).ID, clip(together), clip(alone[n]))
		}
	}
	if mixed > 0 {
		s.fault(fmt.Sprintf("%d looks at once, each at a job of its own", crowd), fmt.Sprintf("told something else of %d jobs; %s", mixed, example), "what it told of each job alone")
	}
}

func outcomeOf(g seen) string {
	if g.broken() || g.err != nil {
		return g.String()
	}
	return written(g.report)
}
