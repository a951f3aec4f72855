package polltest

import (
	"context"
	"fmt"
	"net/http"

	"github.com/jobpoll/jobpoll"
)

// batchCheck tries a BatchChecker.
var batchCheck = check{
	name:  "batch",
	needs: needAll,
	why:   "one call tells of many jobs: what it says of one must not end another, and a call that failed says nothing of any",
	see:   "go doc jobpoll.BatchChecker",
	run:   checkBatch,
}

// batchAsked is how many jobs are asked for: about the first three there is an
// answer each, about the fourth none, and about the fifth, which nobody asks for,
// there is one.
const batchAsked = 4

func checkBatch(s *stage) {
	b, ok := ability[jobpoll.BatchChecker](s.checker)
	if !ok {
		s.kit.Logf("polltest: batch: not tried: the adapter is no jobpoll.BatchChecker")
		return
	}
	if n := b.MaxBatch(); n < 2 {
		s.fault("MaxBatch", fmt.Sprintf("returned %d", n), "2 or more: else there are no batches")
		return
	}
	if s.kit.Batch == nil {
		s.kit.Logf("polltest: batch: only tried with answers that are refused: there is no Adapter.Batch")
	} else {
		s.tryList(b, "a list of three jobs, one of them left out, one besides", 0, 1, 2, batchAsked)
		s.tryList(b, "the same list, the other way round", batchAsked, 2, 1, 0)
		if all, got := s.batch(b, s.kit.Batch(nil)); got.broken() || got.err != nil || len(all) > 0 {
			s.fault("CheckBatch, with a list of nothing", got.String(), "no result, and no error")
		}
	}
	for _, status := range []int{http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusInternalServerError} {
		if all, got := s.batch(b, refusal(status)); got.broken() || got.err == nil {
			s.fault(fmt.Sprintf("CheckBatch, with HTTP %d", status), fmt.Sprintf("%s, for %d jobs", got.String(), len(all)), "an error of the call")
		}
	}
	for _, v := range s.undecodable() {
		s.answersWith(v.reply)
		if all, got := s.ask(b); got.broken() || got.err == nil && !onlyErrors(all) {
			s.fault("CheckBatch, with "+v.what, got.String(), "an error of the call")
		}
	}
}

// tryList lets the provider answer with the parts of some jobs, in that order.
func (s *stage) tryList(b jobpoll.BatchChecker, what string, order ...int) {
	answers := [...]Answer{s.kit.Pending, s.kit.Succeeded, s.kit.Failed, {}, s.kit.Failed}
	var parts []string
	for _, n := range order {
		parts = append(parts, s.filled(answers[n].Body, s.job(n)))
	}
	wants := [...]jobpoll.State{s.look(s.kit.Pending).report.State, jobpoll.StateSucceeded, jobpoll.StateFailed} // Check was tried before
	before := len(s.provider.requests())
	all, got := s.batch(b, s.kit.Batch(parts))
	if got.broken() || got.err != nil {
		s.fault("CheckBatch, with "+what, got.String(), "no error")
		return
	}
	if n := len(s.provider.requests()) - before; n != 1 {
		s.fault("CheckBatch, with "+what, fmt.Sprintf("sent %d requests", n), "one: a batch is charged as one call")
	}
	for n, want := range wants {
		res, ok := all[s.job(n).ID]
		if !ok || res.Err != nil || res.Report.State != want {
			did := "left it out"
			if ok {
				got := seen{report: res.Report, err: res.Err, text: fmt.Sprint(res.Err)}
				did = got.String()
			}
			s.fault(fmt.Sprintf("CheckBatch, with %s: job %d", what, n+1), did, fmt.Sprintf("the state %q, under the job's ID", want))
		}
	}
	if res, ok := all[s.job(batchAsked-1).ID]; ok {
		got := seen{report: res.Report, err: res.Err, text: fmt.Sprint(res.Err)}
		if got.kind() != jobpoll.ErrorNoSuchJob {
			s.fault("CheckBatch, with "+what+": the job that is not in it", got.String(), "no result, or an error of kind ErrorNoSuchJob")
		}
	}
}

// batch is one CheckBatch while the provider answers a.
func (s *stage) batch(b jobpoll.BatchChecker, a Answer) (map[string]jobpoll.Result, seen) {
	s.answersWith(func(w http.ResponseWriter, _ *asked) { s.write(w, a, s.job(0)) })
	return s.ask(b)
}

func (s *stage) ask(b jobpoll.BatchChecker) (map[string]jobpoll.Result, seen) {
	results := make(chan map[string]jobpoll.Result, 1)
	got := s.call(context.Background(), func(ctx context.Context) (jobpoll.Report, error) {
		all, err := b.CheckBatch(ctx, append([]jobpoll.Job(nil), s.jobs[:batchAsked]...))
		results <- all
		return jobpoll.Report{}, err
	})
	select {
	case all := <-results:
		return all, got
	default:
		return nil, got
	}
}

// onlyErrors reports whether a list says nothing but errors.
func onlyErrors(all map[string]jobpoll.Result) bool {
	for _, res := range all {
		if res.Err == nil {
			return false
		}
	}
	return len(all) > 0
}
