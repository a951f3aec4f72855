package polltest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/jobpoll/jobpoll"
	"github.com/stretchr/testify/require"
)

// confList is confAdapter with a list.
type confList struct {
	*confAdapter
	most   int
	asking func(jobs []jobpoll.Job) (confSent, error) // nil: their IDs in the query
	change func(all map[string]jobpoll.Result, err error, jobs []jobpoll.Job) (map[string]jobpoll.Result, error)
}

func (l *confList) MaxBatch() int { return l.most }

func (l *confList) CheckBatch(ctx context.Context, jobs []jobpoll.Job) (map[string]jobpoll.Result, error) {
	all, err := l.list(ctx, jobs)
	if l.change != nil {
		return l.change(all, err, jobs)
	}
	return all, err
}

func (l *confList) list(ctx context.Context, jobs []jobpoll.Job) (map[string]jobpoll.Result, error) {
	asking := l.asking
	if asking == nil {
		asking = func(jobs []jobpoll.Job) (confSent, error) {
			return confSent{query: url.Values{"id": confIDs(jobs)}.Encode()}, nil
		}
	}
	sent, err := asking(jobs)
	if err != nil {
		return nil, err
	}
	req, err := l.to(ctx, http.MethodGet, l.base+"/jobs"+sent.path+"?"+sent.query) // pasted: what is escaped is the test's
	if err != nil {
		return nil, err
	}
	if sent.kind != "" {
		req.Method, req.Body, req.ContentLength = http.MethodPost, io.NopCloser(strings.NewReader(sent.body)), int64(len(sent.body))
		req.Header.Set("Content-Type", sent.kind)
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer l.close(resp)
	if _, err := l.answered(resp); err != nil {
		return nil, err
	}
	body, err := l.body(resp)
	if err != nil {
		return nil, err
	}
	var list struct {
		Items *[]json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	if list.Items == nil {
		return nil, &jobpoll.CheckError{Kind: jobpoll.ErrorTransient}
	}
	all := map[string]jobpoll.Result{}
	for _, raw := range *list.Items {
		var of struct {
			ID string `json:"id"`
		}
		a, err := confDecode(raw)
		if err != nil || json.Unmarshal(raw, &of) != nil {
			continue
		}
		all[of.ID] = jobpoll.Result{Report: l.report(a)}
	}
	return all, nil
}

func confIDs(jobs []jobpoll.Job) (ids []string) {
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

// confListing is the provider with an adapter that has a list.
func confListing(change func(l *confList)) Adapter {
	p := confProvider()
	p.New = func(t Target) jobpoll.Checker {
		l := &confList{confAdapter: newConfAdapter(t), most: 50}
		change(l)
		return l
	}
	p.Batch = func(parts []string) Answer { return Answer{Body: `{"items":[` + strings.Join(parts, ",") + `]}`} }
	return p
}

func TestAdaptersWithAListAreTried(t *testing.T) {
	type results = map[string]jobpoll.Result
	for name, tt := range map[string]struct {
		most   int
		change func(all results, err error, jobs []jobpoll.Job) (results, error)
		found  []string
	}{
		"as it should be": {most: 50},
		"three at most":   {most: 3},
		"two at most":     {most: 2},
		"no size":         {found: []string{"batch"}},
		"in order, whatever the ids are": {most: 50, found: []string{"batch"}, change: func(all results, err error, jobs []jobpoll.Job) (results, error) {
			if len(all) > 1 {
				all[jobs[0].ID], all[jobs[1].ID] = all[jobs[1].ID], all[jobs[0].ID]
			}
			return all, err
		}},
		"a job that is left out has failed": {most: 50, found: []string{"batch"}, change: func(all results, err error, jobs []jobpoll.Job) (results, error) {
			for _, j := range jobs {
				if _, ok := all[j.ID]; !ok && err == nil {
					all[j.ID] = jobpoll.Result{Report: jobpoll.Report{State: jobpoll.StateFailed}}
				}
			}
			return all, err
		}},
		"a call that failed is a list of nothing": {most: 50, found: []string{"batch"}, change: func(all results, _ error, _ []jobpoll.Job) (results, error) {
			return all, nil
		}},
		"panics over a short list": {most: 50, found: []string{"batch"}, change: func(all results, err error, jobs []jobpoll.Job) (results, error) {
			if err == nil && len(all) < len(jobs) {
				panic("index out of range")
			}
			return all, err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := confListing(func(l *confList) { l.most, l.change = tt.most, tt.change })
			err := TestChecker(p)
			if tt.found == nil {
				require.NoError(t, err)
				return
			}
			require.Equal(t, tt.found, confChecks(t, err), "%v", err)
		})
	}
}

// confTelling changes each report of a list.
func confTelling(change func(r *jobpoll.Report)) func(l *confList) {
	return func(l *confList) {
		l.change = func(all map[string]jobpoll.Result, err error, _ []jobpoll.Job) (map[string]jobpoll.Result, error) {
			for id, res := range all {
				change(&res.Report)
				all[id] = res
			}
			return all, err
		}
	}
}

func TestAListThatTellsLessThanALookIsFound(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(r *jobpoll.Report)
		told   string
	}{
		"the state and nothing else": {func(r *jobpoll.Report) { *r = jobpoll.Report{State: r.State} }, `the Output ""`},
		"no word":                    {func(r *jobpoll.Report) { r.RawStatus = "" }, `the RawStatus ""`},
		"no progress":                {func(r *jobpoll.Report) { r.Progress = 0 }, `the Progress "0"`},
		"progress in per cent":       {func(r *jobpoll.Report) { r.Progress *= 100 }, `the Progress "40"`},
		"no place in the queue":      {func(r *jobpoll.Report) { r.QueuePosition = 0 }, `the QueuePosition "0"`},
		"no failure":                 {func(r *jobpoll.Report) { r.Failure = nil }, `the Failure ""`},
		"another kind of failure": {func(r *jobpoll.Report) {
			if r.Failure != nil {
				r.Failure = &jobpoll.Failure{Code: r.Failure.Code, Message: r.Failure.Message}
			}
		}, `the Failure "unknown E_GPU: the renderer crashed"`},
		"no output":      {func(r *jobpoll.Report) { r.Output = nil }, `the Output ""`},
		"another output": {func(r *jobpoll.Report) { r.Output = json.RawMessage(`{}`) }, `the Output "{}"`},
		"no reference":   {func(r *jobpoll.Report) { r.Ref = "" }, `the Ref ""`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := TestChecker(confListing(confTelling(tt.change)))
			require.Equal(t, []string{"batch"}, confChecks(t, err), "%v", err)
			require.ErrorContains(t, err, tt.told)
			require.ErrorContains(t, err, "Adapter.Listed")
		})
	}
}

func TestAnOutputInAnotherOrderIsTheSame(t *testing.T) {
	require.NoError(t, TestChecker(confListing(confTelling(func(r *jobpoll.Report) {
		if r.Output != nil {
			r.Output = append([]byte(" "), r.Output...)
		}
	}))))
}

func TestAListMayTellWhatItIsSaidToTell(t *testing.T) {
	bare := func(r jobpoll.Report) jobpoll.Report { r.Progress, r.Ref = 0, ""; return r }
	p := confListing(confTelling(func(r *jobpoll.Report) { *r = bare(*r) }))
	p.Listed = bare
	require.NoError(t, TestChecker(p))

	p = confListing(func(*confList) {})
	p.Listed = bare
	require.Equal(t, []string{"batch"}, confChecks(t, TestChecker(p)), "it tells more")
}

// confListOnly is a list without the other abilities.
type confListOnly struct {
	jobpoll.Checker
	jobpoll.BatchChecker
}

func TestASuccessInAListHasItsOutputOrAWayToIt(t *testing.T) {
	without := func(r jobpoll.Report) jobpoll.Report { r.Output = nil; return r }
	unknown := func(r jobpoll.Report) jobpoll.Report {
		if r.State == jobpoll.StateSucceeded {
			r.State, r.Output = jobpoll.StateUnknown, nil
		}
		return r
	}
	for name, tt := range map[string]struct {
		listed func(r jobpoll.Report) jobpoll.Report
		alone  bool
		found  []string
	}{
		"it is fetched":               {listed: without},
		"nobody fetches it":           {listed: without, alone: true, found: []string{"batch"}},
		"the end is left to the look": {listed: unknown, alone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := confListing(confTelling(func(r *jobpoll.Report) { *r = tt.listed(*r) }))
			p.Listed = tt.listed
			if both := p.New; tt.alone {
				p.New = func(target Target) jobpoll.Checker {
					c := both(target)
					return &confListOnly{c, c.(jobpoll.BatchChecker)}
				}
			}
			require.Equal(t, tt.found, confChecks(t, TestChecker(p)))
		})
	}
}
