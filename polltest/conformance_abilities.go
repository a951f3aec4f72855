package polltest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// abilityChecks try the optional abilities of a Checker.
var abilityChecks = []check{{
	name: "cancel",
	why:  "a job is often over when somebody cancels it, and a cancel that failed must not be taken for one that was taken",
	see:  "go doc jobpoll.Canceler",
	run:  checkCancel,
}, {
	name:  "fetch",
	needs: needSucceeded,
	why:   "the output is what was paid for: a second call that failed is tried again, without another look",
	see:   "go doc jobpoll.Fetcher",
	run:   checkFetch,
}, batchCheck}

// ability finds an optional interface on a Checker or on what it wraps.
func ability[T any](c jobpoll.Checker) (T, bool) {
	for depth := 0; c != nil && depth < 32; depth++ {
		if v, ok := c.(T); ok {
			return v, true
		}
		u, ok := c.(interface{ Unwrap() jobpoll.Checker })
		if !ok {
			break
		}
		c = u.Unwrap()
	}
	var none T
	return none, false
}

func checkCancel(s *stage) {
	canceler, ok := ability[jobpoll.Canceler](s.checker)
	if !ok {
		s.untried("the adapter is no jobpoll.Canceler")
		return
	}
	// An adapter may look first, to leave alone what has ended.
	s.look(s.kit.Pending)
	looks := map[string]bool{}
	for _, q := range s.provider.requests() {
		looks[q.method+" "+q.url] = true
	}
	cancel := func(a Answer) seen {
		pending, taken := s.reply(s.kit.Pending), s.reply(a)
		s.answersWith(func(w http.ResponseWriter, q *asked) {
			if looks[q.method+" "+q.url] {
				pending(w, q)
				return
			}
			taken(w, q)
		})
		return s.call(context.Background(), func(ctx context.Context) (jobpoll.Report, error) {
			return jobpoll.Report{}, canceler.Cancel(ctx, s.job(0))
		})
	}
	if s.kit.Cancel != nil {
		if got := cancel(*s.kit.Cancel); got.broken() || got.err != nil {
			s.fault("Cancel, with the answer Cancel", got.String(), "no error")
		}
	}
	for _, a := range s.everyAnswer() {
		if got := cancel(a.answer); got.broken() {
			s.fault("Cancel, with "+a.tried, got.String(), "nil or an error")
		}
	}
	for _, status := range []int{http.StatusConflict, http.StatusNoContent} {
		if got := cancel(Answer{Status: status}); got.broken() {
			s.fault(fmt.Sprintf("Cancel, with HTTP %d", status), got.String(), "nil or an error")
		}
	}
	for _, status := range []int{http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusInternalServerError} {
		if got := cancel(refusal(status)); got.err == nil && !got.broken() {
			s.fault(fmt.Sprintf("Cancel, with HTTP %d", status), "returned no error", "an error: the job was not cancelled")
		}
	}
	for _, q := range s.provider.requests() {
		if about, ok := s.asksFor(q); !ok || about.ID != s.job(0).ID {
			s.fault("Cancel", "sent "+q.String(), "the job's ID, or its Ref, in path, query or body")
			return
		}
	}
}

func checkFetch(s *stage) {
	fetcher, ok := ability[jobpoll.Fetcher](s.checker)
	if !ok {
		s.untried("the adapter is no jobpoll.Fetcher")
		return
	}
	done := s.look(s.kit.Succeeded).report
	fetch := func(h reply) seen {
		s.answersWith(h)
		return s.call(context.Background(), func(ctx context.Context) (jobpoll.Report, error) { return fetcher.Fetch(ctx, s.job(0), done) })
	}
	if out := s.kit.Output; out != nil {
		got := fetch(s.reply(*out))
		want := s.filled(string(out.Want.Output), s.job(0))
		switch {
		case got.broken() || got.err != nil || len(got.report.Output) == 0:
			s.fault("Fetch, with the answer Output", got.String(), "no error, and an Output")
		case strings.HasPrefix(written(got.report), "encoding/json"):
			s.fault("Fetch, with the answer Output", "returned what "+written(got.report), "an Output that is JSON")
		case want != "" && json.Valid([]byte(want)) && !sameJSON(got.report.Output, []byte(want)):
			s.fault("Fetch, with the answer Output", fmt.Sprintf("returned the output %q", clip(string(got.report.Output))), want)
		}
	}
	for _, status := range []int{http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusInternalServerError} {
		got := fetch(s.reply(refusal(status)))
		if got.broken() || got.err == nil || permanent(got.err) {
			s.fault(fmt.Sprintf("Fetch, with HTTP %d", status), got.String(), "an error that may pass")
		}
	}
	for _, v := range s.undecodable() {
		if got := fetch(v.reply); got.broken() || got.err == nil && len(got.report.Output) > 0 && !json.Valid(got.report.Output) {
			s.fault("Fetch, with "+v.what, got.String(), "an error that may pass")
		}
	}
}
