package polltest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/jobpoll/jobpoll"
)

const seeErrors = "go doc jobpoll.FromResponse; go doc jobpoll.CheckError; README, What the provider says"

// refusal is an answer of the kit's own with an HTTP status. It repeats the
// credential, as some providers do.
func refusal(status int) Answer {
	return Answer{Status: status, Body: fmt.Sprintf(
		`{"error":{"message":"conformance: %s. You sent the API key %s.","request":"Authorization: Bearer %s"}}`, http.StatusText(status), credential, credential)}
}

// statusChecks are one for each HTTP status that means something of its own.
var statusChecks = append(slices.Clip([]check{
	statusCheck("status-400", "the same request will be refused again: asking on is of no use", []int{400, 422}, jobpoll.ErrorInvalid),
	statusCheck("status-401", "credentials are refreshed, or waited for; the job goes on meanwhile", []int{401}, jobpoll.ErrorAuth),
	statusCheck("status-402", "an empty account does not fill up by asking", []int{402}, jobpoll.ErrorQuota),
	statusCheck("status-403", "what is not allowed for the account will not be allowed a minute later", []int{403}, jobpoll.ErrorPolicy, jobpoll.ErrorAuth),
	statusCheck("status-404", "young jobs are not visible yet: there is a grace before a job counts as lost, and nobody may call it failed", []int{404}, jobpoll.ErrorNoSuchJob),
	statusCheck("status-410", "it was there and has been removed: no grace, and no second submission", []int{410}, jobpoll.ErrorGone),
	statusCheck("status-429", "the whole route has to cool down, and a job must not use up its error budget for it", []int{429}, jobpoll.ErrorRateLimited),
	statusCheck("status-500", "the provider's trouble passes, the job goes on meanwhile", []int{500, 502, 503, 504, 408}, jobpoll.ErrorTransient),
}), check{
	name: "errors",
	why:  "what the provider means decides what happens: waiting, renewing, looking it up, or stopping",
	see:  seeErrors,
	lacks: func(a *Adapter) string {
		if len(a.Errors) == 0 {
			return "there are no Adapter.Errors"
		}
		return ""
	},
	run: func(s *stage) {
		for i, a := range s.kit.Errors {
			s.mustRefuse(fmt.Sprintf("the answer Errors[%d] (HTTP %d)", i, max(a.Status, http.StatusOK)), a, a.WantKind)
		}
	},
})

func statusCheck(name, why string, statuses []int, kinds ...jobpoll.ErrorKind) check {
	return check{
		name: name,
		why:  why,
		see:  seeErrors,
		run: func(s *stage) {
			for _, status := range statuses {
				if slices.ContainsFunc(s.kit.Errors, func(a Answer) bool { return a.Status == status }) {
					continue // the provider's own says more
				}
				s.mustRefuse(fmt.Sprintf("HTTP %d with a body of JSON", status), refusal(status), kinds...)
				if status >= http.StatusInternalServerError {
					page := htmlPage
					page.Status = status
					s.mustRefuse(fmt.Sprintf("HTTP %d with an HTML page", status), page, kinds...)
				}
			}
		},
	}
}

// mustRefuse looks at an answer that is an error of one of the kinds.
func (s *stage) mustRefuse(tried string, a Answer, kinds ...jobpoll.ErrorKind) {
	got := s.look(a)
	if got.broken() || got.err == nil || !slices.Contains(kinds, got.kind()) || permanent(got.err) && !stops(kinds[0]) {
		s.fault(tried, got.String(), fmt.Sprintf("an error of kind %q", kinds[0]))
	}
}

// stops reports whether an error of that kind ends the watch anyway.
func stops(k jobpoll.ErrorKind) bool {
	return slices.Contains([]jobpoll.ErrorKind{jobpoll.ErrorQuota, jobpoll.ErrorInvalid, jobpoll.ErrorPolicy, jobpoll.ErrorGone}, k)
}

func permanent(err error) bool {
	var p *backoff.PermanentError
	return errors.As(err, &p)
}

// hintChecks are about the provider's word on when to come back.
var hintChecks = []check{{
	name: "rate-limit-wait",
	why:  "whoever comes back before the provider's wait is over is refused for longer, with all other jobs of the account",
	see:  "go doc jobpoll.Hint; " + seeErrors,
	lacks: func(a *Adapter) string {
		if slices.ContainsFunc(a.Errors, func(e Answer) bool {
			return e.Status == http.StatusTooManyRequests && e.WantKind != jobpoll.ErrorRateLimited
		}) {
			return "a 429 means something else: Adapter.Errors"
		}
		return ""
	},
	run: func(s *stage) {
		for _, w := range waits(http.StatusTooManyRequests) {
			s.mustWait(w)
		}
	},
}, {
	name: "unavailable-wait",
	why:  "a provider in trouble that asks for a wait is kept in trouble by those who do not wait",
	see:  "go doc jobpoll.Hint; " + seeErrors,
	run: func(s *stage) {
		for _, w := range waits(http.StatusServiceUnavailable) {
			s.mustWait(w)
		}
	},
}, {
	name:  "pending-wait",
	needs: needPending,
	why:   "with Retry-After on a pending answer the provider says when it is worth to look again",
	see:   "go doc jobpoll.Hint; go doc jobpoll.FromResponse",
	run: func(s *stage) {
		got := s.look(s.kit.Pending.with("Retry-After", "47"))
		if got.broken() || got.err != nil || got.report.Hint.RetryAfter < 47*time.Second {
			s.fault("the answer Pending with Retry-After: 47", fmt.Sprintf("%s, with a wait of %v", got.String(), got.report.Hint.RetryAfter), "no error, and 47s in Report.Hint.RetryAfter")
		}
	},
}}

// wait is a refusal, and what it asks for.
type wait struct {
	tried       string
	answer      Answer
	least, most time.Duration
}

// waits are the forms in which a wait is told, B01, and some that say nothing.
func waits(status int) []wait {
	const slack = time.Minute
	var all []wait
	add := func(date, after string, least, most time.Duration) {
		w := wait{fmt.Sprintf("HTTP %d with Retry-After: %s", status, after), refusal(status).with("Retry-After", after), least, most}
		if date != "" {
			w.tried += " and Date: " + date
			w.answer = w.answer.with("Date", date)
		}
		all = append(all, w)
	}
	add("", "37", 37*time.Second, 37*time.Second+slack)
	add("", "99999999999999999999", 24*time.Hour, jobpoll.NoLimit) // bounded, and no overflow
	add("", "soon", 0, slack)
	add("", "-5", 0, slack)

	// Dates count from the Date of the answer, whatever the time of this machine.
	past, future := time.Date(2024, 3, 7, 9, 5, 0, 0, time.UTC), time.Date(2044, 3, 7, 9, 5, 0, 0, time.UTC)
	const wanted = 90 * time.Second
	for _, layout := range []string{http.TimeFormat, "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC} {
		add(past.Format(http.TimeFormat), past.Add(wanted).Format(layout), wanted, wanted+slack)
	}
	add(future.Format(http.TimeFormat), future.Add(wanted).Format(http.TimeFormat), wanted, wanted+slack)
	return all
}

func (s *stage) mustWait(w wait) {
	got := s.look(w.answer)
	if got.broken() {
		s.fault(w.tried, got.String(), "an error")
		return
	}
	hint := got.hint()
	switch {
	case hint.RetryAfter < w.least || hint.RetryAfter > w.most:
		s.fault(w.tried, fmt.Sprintf("gave a wait of %v", hint.RetryAfter), w.wanted())
	case hint.Scope == jobpoll.ScopeJob:
		s.fault(w.tried, "gave the wait for this job only (ScopeJob)", "ScopeBudget, ScopeAccount or ScopeDefault: the other jobs have to wait too")
	}
}

func (w wait) wanted() string {
	if w.least == 0 {
		return "no wait: what cannot be read is ignored"
	}
	return fmt.Sprintf("a *jobpoll.CheckError whose Hint.RetryAfter is %v, or a little more", w.least)
}

// htmlPage is what a proxy answers.
var htmlPage = Answer{
	Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}},
	Body:   "<!DOCTYPE html><html><head><title>succeeded</title></head><body>completed</body></html>",
}

const whyBody = "what cannot be read says nothing of the job: it goes on, and the next look will tell; believed, it ends a job that was paid for"

// bodyChecks are about bodies that are no answer.
var bodyChecks = []check{{
	name: "undecodable",
	why:  whyBody,
	see:  seeErrors,
	run: func(s *stage) {
		for _, v := range s.undecodable() {
			s.answersWith(v.reply)
			got := s.lookAt(s.job(0))
			if got.broken() || got.kind() != jobpoll.ErrorTransient || permanent(got.err) {
				s.fault(v.what, got.String(), "an error that may pass (a plain one, or ErrorTransient)")
			}
		}
	},
}, {
	name: "not-a-job",
	why:  whyBody,
	see:  seeErrors,
	run: func(s *stage) {
		for _, body := range []string{"null", "[]", "[null]", `"succeeded"`, "42", "true"} {
			got := s.look(Answer{Status: s.kit.Succeeded.Status, Body: body})
			reported := got.err == nil && got.report.State == jobpoll.StateUnknown
			if got.broken() || !reported && (got.kind() != jobpoll.ErrorTransient || permanent(got.err)) {
				s.fault("the body "+body, got.String(), "an error that may pass, or the state unknown")
			}
		}
		for _, body := range []string{"{}", `{"error":{"code":"InternalServerError","message":"try again"}}`, "{\"\x00\":\"\xff\"}"} {
			if got := s.look(Answer{Status: s.kit.Succeeded.Status, Body: body}); got.broken() || got.err == nil && got.report.State == jobpoll.StateSucceeded { // B35(c)
				s.fault(fmt.Sprintf("the body %q", body), got.String(), "anything but a success")
			}
		}
	},
}, {
	name: "bounded",
	why:  "a body without an end, or a small one that unpacks to a large one, must not take the memory of the process",
	see:  "go doc io.LimitReader; go doc jobpoll.MaxOutput",
	run:  checkBounded,
}}

// faultyReply is a way to answer that is no answer.
type faultyReply struct {
	what  string
	reply reply
}

func (s *stage) undecodable() []faultyReply {
	done := s.kit.Succeeded
	whole := s.filled(done.Body, s.job(0))
	as := func(body string, header http.Header) reply {
		return s.reply(Answer{Status: done.Status, Header: header, Body: body})
	}
	cut := func(body string) reply {
		a := done
		a.Body = body
		return s.reply(a.with("Content-Length", fmt.Sprint(len(whole)+1)))
	}
	all := []faultyReply{
		{"HTTP 204 without a body", s.reply(Answer{Status: http.StatusNoContent})},
		{"an empty body", as("", nil)},
		{"an HTML page under a status of success", as(htmlPage.Body, htmlPage.Header)},
		{"an HTML page that says it is JSON", as(htmlPage.Body, nil)},
		{"plain text that says it is plain text", as("succeeded", http.Header{"Content-Type": {"text/plain"}})},
		{"bytes that are no gzip under Content-Encoding: gzip", as("\x1f\x8b"+whole, http.Header{"Content-Encoding": {"gzip"}})},
		{"JSON that is 100,000 levels deep", as(strings.Repeat(`{"a":`, 100_000), nil)},
		{"arrays that are 100,000 levels deep", as(strings.Repeat("[", 100_000), nil)},
	}
	if trimmed := strings.TrimSpace(whole); strings.HasPrefix(trimmed, "{") && strings.HasSuffix(trimmed, "}") {
		short := strings.TrimSuffix(trimmed, "}")
		all = append(all,
			faultyReply{"the answer Succeeded without its last brace", as(short, nil)},
			faultyReply{"the answer Succeeded, of which the connection lost the last brace", cut(short)},
			faultyReply{"the answer Succeeded, of which the connection lost the second half", cut(short[:len(short)/2])})
	}
	return all
}

func checkBounded(s *stage) {
	const (
		most  = 64 << 20
		slack = 16 << 20 // in the buffers between the server and the adapter
	)
	piece := []byte(strings.Repeat("a", 64<<10))
	for _, status := range []int{http.StatusOK, http.StatusInternalServerError} {
		var written atomic.Int64
		over := make(chan struct{}, 1)
		s.answersWith(func(w http.ResponseWriter, _ *asked) {
			defer tell(over)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, err := w.Write([]byte(`{"pad":"`))
			for written.Load() < most+slack && err == nil {
				_, err = w.Write(piece)
				written.Add(int64(len(piece)))
			}
			panic(http.ErrAbortHandler)
		})
		tried := fmt.Sprintf("HTTP %d with a body of JSON that does not end", status)
		before := len(s.provider.requests())
		got := s.lookAt(s.job(0))
		if got.broken() {
			s.fault(tried, got.String(), "an error")
			return
		}
		if len(s.provider.requests()) == before {
			return // it did not ask; other checks tell
		}
		ctx, cancel := context.WithTimeout(context.Background(), s.kit.patience/2)
		select {
		case <-over:
		case <-ctx.Done(): // a body that is neither read nor closed
		}
		cancel()
		if got.late || written.Load() >= most+slack {
			s.fault(tried, "read on and on", "a bound of its own on the bytes that it reads, and an error beyond it")
		} else if got.err == nil {
			s.fault(tried, got.String(), "an error")
		}
	}

	before := s.meter.read.Load()
	got := s.look(Answer{Header: http.Header{"Content-Encoding": {"gzip"}}, Body: string(gzipped((most + slack) >> 20))})
	if got.late || s.meter.read.Load()-before > most || got.broken() || got.err == nil {
		s.fault(fmt.Sprintf("a small gzip body that unpacks to %d MiB of white space", (most+slack)>>20),
			fmt.Sprintf("took %d MiB of it and %s", (s.meter.read.Load()-before)>>20, got.String()), "a bound on what is unpacked, and an error beyond it")
	}
}
