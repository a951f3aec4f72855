package polltest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// batchCheck tries a BatchChecker.
var batchCheck = check{
	name:  "batch",
	needs: needAll,
	why:   "one call tells of many jobs: what it says of one must not end another, what a look would tell must not be lost, and a call that failed says nothing of any",
	see:   "go doc jobpoll.BatchChecker; go doc polltest.Adapter",
	run:   checkBatch,
}

// batchAsked is how many jobs are asked for: about the first three there is an
// answer each, about the fourth none, and about the fifth, which nobody asks for,
// there is one.
const batchAsked = 4

// lister is a BatchChecker on a stage, and the jobs that it is asked about.
type lister struct {
	*stage
	list    jobpoll.BatchChecker
	jobs    []jobpoll.Job
	changed bool // it did something to the slice of jobs
}

func checkBatch(s *stage) {
	b, ok := ability[jobpoll.BatchChecker](s.checker)
	if !ok {
		s.untried("the adapter is no jobpoll.BatchChecker")
		return
	}
	most := b.MaxBatch()
	if most < 2 {
		s.fault("MaxBatch", fmt.Sprintf("returned %d", most), "2 or more: else there are no batches")
		return
	}
	l := &lister{stage: s, list: b}
	for n := range min(most, batchAsked) {
		job := s.job(n)
		job.ClientKey = fmt.Sprintf("conformance-client-key-%d", n)
		l.jobs = append(l.jobs, job)
	}
	if l.asksForEach() {
		l.asksForOddOnes()
	}
	if s.kit.Batch == nil {
		s.kit.Logf("polltest: batch: only tried with answers that are refused (no fault): there is no Adapter.Batch")
	} else {
		before := len(s.kit.faults)
		if l.tryList("a list of three jobs, one of them left out, one besides", 0, 1, 2, batchAsked); len(s.kit.faults) == before { // else it is the same again
			l.tryList("the same list, the other way round", batchAsked, 2, 1, 0)
		}
		if all, got := l.ask(l.says(s.kit.Batch(nil))); got.broken() || got.err != nil || len(all) > 0 {
			s.fault("CheckBatch, with a list of nothing", got.String(), "no result, and no error")
		}
	}
	for _, status := range []int{http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusInternalServerError} {
		if all, got := l.ask(l.says(refusal(status))); got.broken() || got.err == nil {
			s.fault(fmt.Sprintf("CheckBatch, with HTTP %d", status), fmt.Sprintf("%s, for %d jobs", got.String(), len(all)), "an error of the call")
		}
	}
	for _, v := range s.undecodable() {
		if all, got := l.ask(v.reply); got.broken() || got.err == nil && !onlyErrors(all) {
			s.fault("CheckBatch, with "+v.what, got.String(), "an error of the call")
		}
	}
	if l.changed {
		s.fault("CheckBatch", "changed the slice of jobs that it was given", "the slice as it was: it is the caller's")
	}
}

// tryList lets the provider answer with the parts of some jobs, in that order.
func (l *lister) tryList(what string, order ...int) {
	answers := [...]Answer{l.kit.Pending, l.kit.Succeeded, l.kit.Failed, {}, l.kit.Failed}
	var parts []string
	for _, n := range order {
		parts = append(parts, l.filled(answers[n].Body, l.job(n)))
	}
	wants := make([]jobpoll.Report, min(len(l.jobs), batchAsked-1))
	for n := range wants {
		l.answers(answers[n])
		wants[n] = l.lookAt(l.jobs[n]).report // Check was tried before
	}
	before := len(l.provider.requests())
	all, got := l.ask(l.says(l.kit.Batch(parts)))
	if got.broken() || got.err != nil {
		l.fault("CheckBatch, with "+what, got.String(), "no error")
		return
	}
	if n := len(l.provider.requests()) - before; n != 1 {
		l.fault("CheckBatch, with "+what, fmt.Sprintf("sent %d requests", n), "one: a batch is charged as one call")
	}
	for n, want := range wants {
		l.compare(fmt.Sprintf("CheckBatch, with %s: job %d", what, n+1), all, l.jobs[n].ID, want)
	}
	if len(l.jobs) < batchAsked {
		return
	}
	if res, ok := all[l.jobs[batchAsked-1].ID]; ok {
		if got := told(res); got.kind() != jobpoll.ErrorNoSuchJob {
			l.fault("CheckBatch, with "+what+": the job that is not in it", got.String(), "no result, or an error of kind ErrorNoSuchJob")
		}
	}
}

// compare tells where a result is not what Check makes of the same part.
func (l *lister) compare(tried string, all map[string]jobpoll.Result, id string, looked jobpoll.Report) {
	res, ok := all[id]
	switch {
	case !ok:
		l.fault(tried, "left it out", fmt.Sprintf("the state %q, under the job's ID", looked.State))
		return
	case res.Err != nil:
		got := told(res)
		l.fault(tried, got.String(), fmt.Sprintf("the state %q, as Check tells it", looked.State))
		return
	}
	want := looked
	if l.kit.Listed != nil {
		want = l.kit.Listed(looked)
	}
	if did, wanted := differences(res.Report, want); did != "" {
		l.fault(tried, "reported "+did, wanted+", as Check tells of the same part (or say by Adapter.Listed what the list does not tell)")
		return
	}
	_, fetches := ability[jobpoll.Fetcher](l.checker)
	if res.Report.State == jobpoll.StateSucceeded && len(res.Report.Output) == 0 && len(looked.Output) > 0 && !fetches {
		l.fault(tried, "reported success without the Output, which Check has, and is no jobpoll.Fetcher",
			"the Output; where the list has none, StateUnknown, or a failure of kind FailureNoOutput: then Check is asked")
	}
}

// differences names what two reports tell differently, with what each tells.
func differences(got, want jobpoll.Report) (did, wanted string) {
	const rounding = 1e-6
	output := bytes.Equal(got.Output, want.Output) || sameJSON(got.Output, want.Output)
	progress := math.Abs(got.Progress-want.Progress) <= rounding
	var dids, wants []string
	for _, f := range []struct {
		name      string
		same      bool
		got, want string
	}{
		{"the state", got.State == want.State, got.State.String(), want.State.String()},
		{"the RawStatus", got.RawStatus == want.RawStatus, got.RawStatus, want.RawStatus},
		{"the Progress", progress, fmt.Sprint(got.Progress), fmt.Sprint(want.Progress)},
		{"the QueuePosition", got.QueuePosition == want.QueuePosition, fmt.Sprint(got.QueuePosition), fmt.Sprint(want.QueuePosition)},
		{"the Failure", reflect.DeepEqual(got.Failure, want.Failure), failureText(got.Failure), failureText(want.Failure)},
		{"the Output", output, string(got.Output), string(want.Output)},
		{"the Ref", got.Ref == want.Ref, got.Ref, want.Ref},
	} {
		if !f.same {
			dids = append(dids, fmt.Sprintf("%s %q", f.name, clip(f.got)))
			wants = append(wants, fmt.Sprintf("%s %q", f.name, clip(f.want)))
		}
	}
	return strings.Join(dids, ", "), strings.Join(wants, ", ")
}

func failureText(f *jobpoll.Failure) string {
	if f == nil {
		return ""
	}
	return f.String()
}

// told is a result as if it had come of a look.
func told(res jobpoll.Result) seen {
	return seen{report: res.Report, err: res.Err, text: fmt.Sprint(res.Err)}
}

// says answers with a, whatever is asked for.
func (l *lister) says(a Answer) reply {
	return func(w http.ResponseWriter, _ *asked) { l.write(w, a, l.job(0)) }
}

// ask is one CheckBatch about the jobs, while the provider answers by h.
func (l *lister) ask(h reply) (map[string]jobpoll.Result, seen) {
	return l.askFor(l.jobs, h)
}

func (l *lister) askFor(jobs []jobpoll.Job, h reply) (map[string]jobpoll.Result, seen) {
	type came struct {
		all     map[string]jobpoll.Result
		changed bool
	}
	l.answersWith(h)
	results := make(chan came, 1)
	got := l.call(context.Background(), func(ctx context.Context) (jobpoll.Report, error) {
		given := slices.Clone(jobs)
		all, err := l.list.CheckBatch(ctx, given)
		results <- came{all, !reflect.DeepEqual(given, jobs)}
		clear(given) // who keeps it has nothing
		return jobpoll.Report{}, err
	})
	select {
	case one := <-results:
		l.changed = l.changed || one.changed
		return one.all, got
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
