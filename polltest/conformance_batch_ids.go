package polltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/jobpoll/jobpoll"
)

// What a list is asked for: the request of a CheckBatch, whatever its method.

// asksForEach reports whether each job is asked for, by its ID or its Ref, and none
// by its ClientKey.
func (l *lister) asksForEach() bool {
	l.provider.forget()
	_, got := l.ask(l.tellingOf(l.jobs))
	all := l.provider.requests()
	tried := fmt.Sprintf("CheckBatch of %d jobs", len(l.jobs))
	var missing []string
	for _, job := range l.jobs {
		if slices.ContainsFunc(all, func(q *asked) bool { return q.names(job.ClientKey) }) {
			l.fault(fmt.Sprintf("%s, one with the ID %q and the ClientKey %q", tried, job.ID, job.ClientKey), fmt.Sprintf("sent %v", all),
				"no ClientKey in the request: the provider does not know it")
			return false
		}
		if !l.asked(all, job) {
			missing = append(missing, job.ID)
		}
	}
	if missing != nil {
		l.fault(tried, fmt.Sprintf("sent %v, without %q, and %s", all, missing, got.String()),
			"each job's ID, or its Ref, in path, query or body: one that is not asked for may be left out, which says that there is no such job")
		return false
	}
	return true
}

// oddEnds are ends of ids with characters that mean something in URLs, in JSON and
// in lists. What has a space does not get far in a URL that it is pasted into, so
// those without one are asked for alone.
var oddEnds = [][]string{
	{"", `?a=1&b#c+"d"%41`, "/e;f=ü", ",g"},
	{"", "?a=1&b#c d%41", " /ü", ", g"},
}

// asksForOddOnes tries ids with such ends: they come as they are, or are left out
// of the request and of the results, or there is an error without a request.
func (l *lister) asksForOddOnes() {
	if strings.Contains(l.jobs[0].Ref, l.jobs[0].ID) {
		return // the Ref is asked for, not the ID
	}
	for _, ends := range oddEnds {
		jobs := slices.Clone(l.jobs)
		for n := range jobs {
			jobs[n].ID += ends[n]
		}
		l.provider.forget()
		results, got := l.askFor(jobs, l.tellingOf(jobs))
		all := l.provider.requests()
		if len(all) == 0 && got.err != nil && !got.broken() {
			continue
		}
		for n, job := range jobs {
			_, found := results[job.ID]
			named := slices.ContainsFunc(all, func(q *asked) bool { return q.names(l.jobs[n].ID) })
			whole := l.asked(all, job)
			did, want := "", "the whole ID, escaped, or nothing of this job, in the request and in the results"
			switch {
			case got.broken():
				did = got.String()
			case whole && slices.ContainsFunc(all, func(q *asked) bool { return q.amidCommas(job.ID) }):
				did, want = fmt.Sprintf("sent %v", all), "no ID with a comma between commas: it reads as two"
			case !whole && (named || ends[n] == ""):
				did = fmt.Sprintf("sent %v and %s", all, got.String())
			case !whole && found:
				did = fmt.Sprintf("told of it and sent %v", all)
			}
			if did != "" {
				l.fault(fmt.Sprintf("CheckBatch of %d jobs, one with the ID %q", len(jobs), job.ID), did, want)
				return
			}
		}
	}
}

// asked reports whether a job is asked for in one of the requests.
func (l *lister) asked(all []*asked, job jobpoll.Job) bool {
	ref := strings.TrimPrefix(job.Ref, l.target.URL)
	return slices.ContainsFunc(all, func(q *asked) bool { return q.says(job.ID) || ref != "" && q.names(ref) })
}

// amidCommas reports whether an ID with a comma stands beside another comma, all
// of them written alike.
func (q *asked) amidCommas(id string) bool {
	if !strings.Contains(id, ",") || strings.Contains(q.url, ",") && strings.Contains(strings.ToUpper(q.url), "%2C") {
		return false
	}
	return q.says(id+",") || q.says(","+id)
}

// tellingOf answers with the parts of the jobs that are asked for; refuses where
// nobody knows what a list looks like.
func (l *lister) tellingOf(jobs []jobpoll.Job) reply {
	return func(w http.ResponseWriter, q *asked) {
		if l.kit.Batch == nil {
			l.write(w, refusal(http.StatusInternalServerError), l.job(0))
			return
		}
		var parts []string
		for _, job := range jobs {
			if l.asked([]*asked{q}, job) {
				id, _ := json.Marshal(job.ID)
				job.ID = string(id[1 : len(id)-1]) // as it stands in JSON
				parts = append(parts, l.filled(l.kit.Pending.Body, job))
			}
		}
		l.write(w, l.kit.Batch(parts), l.job(0))
	}
}
