package loopback

import (
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/jobpoll/jobpoll/polltest"
)

// list answers OpList.
func (x *exchange) list() (outcome, bool) {
	r := Reply{Call: x.call, View: View{Base: x.base()}}
	if x.call.Only != nil {
		return x.tell(x.lookAtEach(&r), r)
	}
	x.page(&r)
	return outcome{Answer: x.cfg.Wire.Write(r)}, true
}

// lookAtEach plays a look at each of the jobs that are asked for. An answer has one
// status for all: met is the first thing that is amiss with one of them, but for a
// 404, which leaves the job out, as slow as the slowest.
func (x *exchange) lookAtEach(r *Reply) (met polltest.Entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	ids := slices.Clone(x.call.Only)
	slices.Sort(ids)
	var found []View
	for _, id := range slices.Compact(ids) {
		j := x.jobs[id]
		if x.call.ByOwnID {
			j = x.own[id]
		}
		if j == nil {
			continue
		}
		if x.elapsed() < j.visible {
			j.misses++
			x.records.stats.NotVisible++
			continue
		}
		e, v, known := x.look(j)
		if !known || e.Status == http.StatusNotFound {
			continue
		}
		slow := max(met.Slow, e.Slow)
		switch {
		case met.Fails():
		case e.Fails():
			met = e
		default:
			met.RetryAfter = max(met.RetryAfter, e.RetryAfter)
		}
		met.Slow = slow
		found = append(found, v)
	}
	slices.SortStableFunc(found, func(a, b View) int { return b.SubmittedAt.Compare(a.SubmittedAt) })
	r.Total = len(found)
	from := min(x.newer(len(found)), len(found))
	r.Page = found[from:min(from+x.limit(), len(found))]
	return met
}

// limit is how many jobs a page has at most.
func (x *exchange) limit() int {
	if x.call.Limit > 0 {
		return x.call.Limit
	}
	return x.cfg.PageSize
}

// newer is how many of so many jobs are newer than the first of the page that is
// asked for. A cursor is how many jobs are not newer than that one; below zero, how
// many are.
func (x *exchange) newer(all int) int {
	n, err := strconv.Atoi(x.call.Cursor)
	switch {
	case err != nil:
		return 0
	case n < 0:
		return -max(n, -all)
	}
	return max(all-n, 0)
}

// page gives r a page of all jobs, newest first.
func (x *exchange) page(r *Reply) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	now := x.elapsed()
	r.Total = len(x.order)
	from := r.Total - x.newer(r.Total)
	if x.call.After != "" {
		from = max(slices.IndexFunc(x.order, func(j *job) bool { return j.id == x.call.After }), 0)
	}
	to := max(from-x.limit(), 0)
	for _, j := range slices.Backward(x.order[to:from]) {
		r.Page = append(r.Page, x.view(j, j.state(now, x.ahead(j)), x.base()))
	}
	if to > 0 {
		r.Next = strconv.Itoa(to)
	}
}

// numberedPage reads the query of a list whose pages have numbers, from 1 on, and
// a size of at most most; usual is that of a page without one.
func numberedPage(q url.Values, call *Call, usual, most int) {
	size := number(q.Get("page_size"))
	if size < 1 {
		size = usual
	}
	call.Limit = min(size, most)
	if n := number(q.Get("page_num")); n > 1 {
		call.Cursor = strconv.Itoa(-min(n-1, math.MaxInt32/call.Limit) * call.Limit)
	}
}

// number is that of a text, the nearest one that there is; 0 of another text.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return n
}
