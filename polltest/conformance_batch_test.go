package polltest

import (
	"context"
	"encoding/json"
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
	ask := url.Values{}
	for _, j := range jobs {
		ask.Add("id", j.ID)
	}
	req, err := l.to(ctx, http.MethodGet, l.base+"/jobs?"+ask.Encode())
	if err != nil {
		return nil, err
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

func TestAdaptersWithAListAreTried(t *testing.T) {
	type results = map[string]jobpoll.Result
	for name, tt := range map[string]struct {
		most   int
		change func(all results, err error, jobs []jobpoll.Job) (results, error)
		found  []string
	}{
		"as it should be": {most: 50},
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
			p := confProvider()
			p.New = func(target Target) jobpoll.Checker {
				return &confList{confAdapter: newConfAdapter(target), most: tt.most, change: tt.change}
			}
			p.Batch = func(parts []string) Answer { return Answer{Body: `{"items":[` + strings.Join(parts, ",") + `]}`} }
			err := TestChecker(p)
			if tt.found == nil {
				require.NoError(t, err)
				return
			}
			require.Equal(t, tt.found, confChecks(t, err), "%v", err)
		})
	}
}
