package polltest

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

// confEscaped joins the ids, each escaped.
func confEscaped(jobs []jobpoll.Job, escape func(string) string, between string) string {
	var ids []string
	for _, id := range confIDs(jobs) {
		ids = append(ids, escape(id))
	}
	return strings.Join(ids, between)
}

func confRaw(id string) string { return id }

func confNoComma(jobs []jobpoll.Job) []jobpoll.Job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j jobpoll.Job) bool { return strings.Contains(j.ID, ",") })
}

func TestAListMayBeAskedForInAnyWay(t *testing.T) {
	for name, ask := range map[string]func(jobs []jobpoll.Job) (confSent, error){
		"in the path": func(jobs []jobpoll.Job) (confSent, error) {
			return confSent{path: "/" + confEscaped(jobs, url.PathEscape, ",")}, nil
		},
		"in the query, each escaped, with commas between": func(jobs []jobpoll.Job) (confSent, error) {
			return confSent{query: "ids=" + confEscaped(jobs, url.QueryEscape, ",")}, nil
		},
		"with commas, without what has one": func(jobs []jobpoll.Job) (confSent, error) {
			return confSent{query: url.Values{"ids": {strings.Join(confIDs(confNoComma(jobs)), ",")}}.Encode()}, nil
		},
		"by POST, in JSON": func(jobs []jobpoll.Job) (confSent, error) {
			raw, err := json.Marshal(map[string]any{"ids": confIDs(jobs)})
			return confSent{kind: "application/json", body: string(raw)}, err
		},
		"by POST, in a form": func(jobs []jobpoll.Job) (confSent, error) {
			return confSent{kind: "application/x-www-form-urlencoded", body: url.Values{"id": confIDs(jobs)}.Encode()}, nil
		},
		"only where all ids are plain": func(jobs []jobpoll.Job) (confSent, error) {
			if strings.ContainsFunc(strings.Join(confIDs(jobs), ""), func(r rune) bool { return strings.ContainsRune("&#%/+, ", r) }) {
				return confSent{}, errors.New("an id is odd")
			}
			return confSent{query: url.Values{"id": confIDs(jobs)}.Encode()}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, TestChecker(confListing(func(l *confList) { l.asking = ask })))
		})
	}
}

func TestAListThatIsAskedForSomethingElseIsFound(t *testing.T) {
	for name, tt := range map[string]struct {
		ask  func(jobs []jobpoll.Job) confSent
		told string
	}{
		"the first job": {func(jobs []jobpoll.Job) confSent {
			return confSent{query: url.Values{"id": confIDs(jobs[:1])}.Encode()}
		}, `without ["job-0001" "job-0002" "job-0003"]`},
		"no job": {func([]jobpoll.Job) confSent {
			return confSent{}
		}, `without ["job-0000" "job-0001" "job-0002" "job-0003"]`},
		"the ClientKeys": {func(jobs []jobpoll.Job) confSent {
			var keys []string
			for _, j := range jobs {
				keys = append(keys, j.ClientKey)
			}
			return confSent{query: url.Values{"id": keys}.Encode()}
		}, "no ClientKey in the request"},
		"the ClientKeys too": {func(jobs []jobpoll.Job) confSent {
			return confSent{query: url.Values{"id": append(confIDs(jobs), jobs[1].ClientKey)}.Encode()}
		}, "no ClientKey in the request"},
		"ids pasted into the query": {func(jobs []jobpoll.Job) confSent {
			return confSent{query: "id=" + confEscaped(jobs, confRaw, "&id=")}
		}, "the whole ID"},
		"ids escaped for a path, in the query": {func(jobs []jobpoll.Job) confSent {
			return confSent{query: "id=" + confEscaped(jobs, url.PathEscape, "&id=")}
		}, "the whole ID"},
		"ids escaped twice": {func(jobs []jobpoll.Job) confSent {
			return confSent{query: url.Values{"ids": {confEscaped(jobs, url.QueryEscape, ",")}}.Encode()}
		}, "the whole ID"},
		"ids pasted into JSON": {func(jobs []jobpoll.Job) confSent {
			return confSent{kind: "application/json", body: `{"ids":["` + confEscaped(jobs, confRaw, `","`) + `"]}`}
		}, "the whole ID"},
		"ids pasted into a form": {func(jobs []jobpoll.Job) confSent {
			return confSent{kind: "application/x-www-form-urlencoded", body: "id=" + confEscaped(jobs, confRaw, "&id=")}
		}, "the whole ID"},
		"ids with commas between commas": {func(jobs []jobpoll.Job) confSent {
			return confSent{query: url.Values{"ids": {strings.Join(confIDs(jobs), ",")}}.Encode()}
		}, "it reads as two"},
		"ids with commas between commas, in JSON": {func(jobs []jobpoll.Job) confSent {
			raw, _ := json.Marshal(map[string]any{"ids": strings.Join(confIDs(jobs), ",")})
			return confSent{kind: "application/json", body: string(raw)}
		}, "it reads as two"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := confListing(func(l *confList) {
				l.asking = func(jobs []jobpoll.Job) (confSent, error) { return tt.ask(jobs), nil }
			})
			err := TestChecker(p)
			require.Equal(t, []string{"batch"}, confChecks(t, err), "%v", err)
			require.ErrorContains(t, err, tt.told)

			p.Batch = nil
			require.ErrorContains(t, TestChecker(p), tt.told, "also where no list is known")
		})
	}
}

func TestAJobThatIsNotAskedForAndToldOfIsFound(t *testing.T) {
	err := TestChecker(confListing(func(l *confList) {
		l.asking = func(jobs []jobpoll.Job) (confSent, error) {
			return confSent{query: url.Values{"id": confIDs(confNoComma(jobs))}.Encode()}, nil
		}
		l.change = func(all map[string]jobpoll.Result, err error, jobs []jobpoll.Job) (map[string]jobpoll.Result, error) {
			for _, j := range jobs {
				if strings.Contains(j.ID, ",") && err == nil {
					all[j.ID] = jobpoll.Result{Report: jobpoll.Report{State: jobpoll.StateFailed}}
				}
			}
			return all, err
		}
	}))
	require.Equal(t, []string{"batch"}, confChecks(t, err), "%v", err)
	require.ErrorContains(t, err, "told of it")
}

func TestAListThatChangesTheJobsItIsGivenIsFound(t *testing.T) {
	err := TestChecker(confListing(func(l *confList) {
		l.asking = func(jobs []jobpoll.Job) (confSent, error) {
			ids := confIDs(jobs)
			slices.Reverse(jobs)
			return confSent{query: url.Values{"id": ids}.Encode()}, nil
		}
	}))
	require.Equal(t, []string{"batch"}, confChecks(t, err), "%v", err)
	require.ErrorContains(t, err, "changed the slice")
}

// What an adapter keeps of the jobs is gone when CheckBatch has returned.
func TestAListThatKeepsTheJobsItIsGivenIsFound(t *testing.T) {
	err := TestChecker(confListing(func(l *confList) {
		var kept []jobpoll.Job
		l.asking = func(jobs []jobpoll.Job) (confSent, error) {
			if len(kept) != len(jobs) {
				kept = jobs
			}
			return confSent{query: url.Values{"id": confIDs(kept)}.Encode()}, nil
		}
	}))
	require.Equal(t, []string{"batch"}, confChecks(t, err), "%v", err)
}
