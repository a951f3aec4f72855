package polltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

// confChecks are the names of the checks that failed, each once.
func confChecks(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var faults Findings
	require.ErrorAs(t, err, &faults)
	var names []string
	for _, f := range faults {
		names = append(names, f.Check)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestARightAdapterHasNoFaults(t *testing.T) {
	a := confBroken(func(*confAdapter) {})
	var untried []string
	a.Logf = func(format string, args ...any) { untried = append(untried, fmt.Sprintf(format, args...)) }
	require.NoError(t, TestChecker(a))
	require.Equal(t, []string{
		"polltest: no-output: not tried (no fault): there is no Adapter.NoOutput",
		"polltest: errors: not tried (no fault): there are no Adapter.Errors",
		"polltest: batch: not tried (no fault): the adapter is no jobpoll.BatchChecker",
	}, untried)
}

// An answer without a word may be a fault that passes, and ends no job.
func TestAnAnswerWithoutAWordMayBeNone(t *testing.T) {
	for err, want := range map[error][]string{
		errors.New("no word"): nil,
		&jobpoll.CheckError{Kind: jobpoll.ErrorInvalid, Err: errors.New("no word")}: {"unknown-word"},
	} {
		a := confBroken(confLooking(func(r jobpoll.Report, e error) (jobpoll.Report, error) {
			if e == nil && r.RawStatus == "" && r.QueuePosition > 0 {
				return jobpoll.Report{}, err
			}
			return r, e
		}))
		require.Equal(t, want, confChecks(t, TestChecker(a)), "%v", err)
	}
}

// The finding says what to write where the provider tells no more.
func TestAFailureOfNoKindIsSaidByTheAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		told jobpoll.Failure
		say  string
	}{
		"no kind":    {jobpoll.Failure{Message: "the renderer crashed"}, `Want: jobpoll.Report{Failure: &jobpoll.Failure{Message: "the renderer crashed"}}`},
		"no message": {jobpoll.Failure{Kind: jobpoll.FailureFault}, `Want: jobpoll.Report{Failure: &jobpoll.Failure{Kind: …}}, with the kind "fault"`},
	} {
		a := confBroken(confReporting(func(r *jobpoll.Report) {
			if r.Failure != nil && r.Failure.Kind != jobpoll.FailureFiltered {
				r.Failure = &tt.told
			}
		}))
		a.Failed.Want.Failure = nil
		err := TestChecker(a)
		require.Equal(t, []string{"failure"}, confChecks(t, err), name)
		require.ErrorContains(t, err, tt.say, name)

		a.Failed.Want.Failure = &tt.told
		require.NoError(t, TestChecker(a), name)
	}
}

func TestAnAdapterThatIsWrapped(t *testing.T) {
	a := confProvider()
	a.New = func(t Target) jobpoll.Checker {
		inner := newConfAdapter(t)
		inner.canceled = func(*http.Response) error { panic("no cancel") }
		return confWrapper{inner}
	}
	require.Equal(t, []string{"cancel"}, confChecks(t, TestChecker(a)))
}

type confWrapper struct{ jobpoll.Checker }

func (w confWrapper) Unwrap() jobpoll.Checker { return w.Checker }

func TestAnAdapterThatPrintsItsKey(t *testing.T) {
	a := confProvider()
	a.New = func(t Target) jobpoll.Checker { return &confOpen{newConfAdapter(t).Check, t.Credential} }
	require.Equal(t, []string{"secret-not-printed"}, confChecks(t, TestChecker(a)))
}

type confOpen struct {
	jobpoll.CheckerFunc
	key string
}

func TestAnAdapterThatAlwaysPanics(t *testing.T) {
	a := confProvider()
	a.New = func(Target) jobpoll.Checker {
		return jobpoll.CheckerFunc(func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			panic("no bounds, key " + credential)
		})
	}
	err := TestChecker(a)
	require.Equal(t, []string{"failed", "pending", "succeeded"}, confChecks(t, err))
	require.ErrorContains(t, err, "panicked: no bounds")
	require.NotContains(t, err.Error(), credential)
}

func TestAnAdapterThatHangsIsLeftBehind(t *testing.T) {
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	a := confProvider()
	a.New = func(Target) jobpoll.Checker {
		return jobpoll.CheckerFunc(func(context.Context, jobpoll.Job) (jobpoll.Report, error) {
			<-over
			return jobpoll.Report{}, nil
		})
	}
	untried := 0
	a.Logf = func(string, ...any) { untried++ }
	err := testChecker(a, 100*time.Millisecond)
	require.Equal(t, []string{"pending"}, confChecks(t, err))
	require.ErrorContains(t, err, "did not return")
	require.Equal(t, len(Checks())-1, untried)
}

func TestAConstructorThatFails(t *testing.T) {
	for name, make := range map[string]func(Target) jobpoll.Checker{
		"returned nil": func(Target) jobpoll.Checker { return nil },
		"panicked: no": func(Target) jobpoll.Checker { panic("no") },
	} {
		a := confProvider()
		a.New = make
		err := TestChecker(a)
		require.ErrorContains(t, err, name)
		require.Len(t, err.(Findings), 1)
	}
}

func TestAnErrorWhoseTextPanics(t *testing.T) {
	a := confBroken(confLooking(func(r jobpoll.Report, err error) (jobpoll.Report, error) {
		if err != nil {
			return r, confPanics{}
		}
		return r, nil
	}))
	require.Contains(t, confChecks(t, TestChecker(a)), "status-404")
}

type confPanics struct{}

func (confPanics) Error() string { panic("no text") }

func TestWhatAProviderMeansByItsErrorsGoesFirst(t *testing.T) {
	a := confBroken(func(*confAdapter) {})
	a.Errors = []Answer{
		{Status: http.StatusTooManyRequests, Body: `{"code":"no_credit"}`, WantKind: jobpoll.ErrorQuota},
		{Status: http.StatusNotFound, WantKind: jobpoll.ErrorNoSuchJob},
	}
	err := TestChecker(a)
	require.Equal(t, []string{"errors"}, confChecks(t, err), "it reads the status only")
	require.Len(t, err.(Findings), 1)

	var fault *Finding
	require.ErrorAs(t, err, &fault)
	require.Contains(t, fault.Tried, "Errors[0] (HTTP 429)")
	require.Contains(t, fault.Did, `kind "rate limited"`)
	require.Contains(t, fault.Want, `"quota"`)
	require.NotEmpty(t, fault.Why)
	require.NotEmpty(t, fault.See)

	a.Skip = []string{"errors"}
	require.NoError(t, TestChecker(a))
}

func TestAnAdapterThatGetsItsOutputByASecondCallOfItsOwn(t *testing.T) {
	a := confProvider()
	a.Succeeded = Answer{Body: `{"status":"done"}`, Want: jobpoll.Report{Output: json.RawMessage(`{"url":"https://cdn.example/{id}.mp4"}`)}}
	a.New = func(t Target) jobpoll.Checker {
		inner := newConfAdapter(t)
		inner.check = func(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
			r, err := inner.look(ctx, job)
			if err == nil && r.State == jobpoll.StateSucceeded {
				out, err := inner.Fetch(ctx, job, r)
				r.Output = out.Output
				return r, err
			}
			return r, err
		}
		return inner
	}
	require.NoError(t, TestChecker(a))
}

// Ids of a certain form, and the word in the HTTP status alone.
func TestAnAdapterWithoutWordsAndWithReferences(t *testing.T) {
	a := Adapter{
		Job: func(base string, n int) jobpoll.Job {
			return jobpoll.Job{Route: "r", ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", n), Ref: fmt.Sprintf("%s/op/%d?v=1", base, n), SubmittedAt: time.Now()}
		},
		Pending:   Answer{Status: http.StatusAccepted, Body: `{}`},
		Succeeded: Answer{Body: `{"video":"{base}/videos/{id}"}`},
		Failed:    Answer{Body: `{"error":{"message":"no luck"}}`, Want: jobpoll.Report{Failure: &jobpoll.Failure{Message: "luck"}}},
		New: func(t Target) jobpoll.Checker {
			inner := newConfAdapter(t)
			inner.check = func(ctx context.Context, job jobpoll.Job) (jobpoll.Report, error) {
				return confByStatus(ctx, inner, job)
			}
			return inner
		},
	}
	require.NoError(t, TestChecker(a))
}

func confByStatus(ctx context.Context, a *confAdapter, job jobpoll.Job) (jobpoll.Report, error) {
	req, err := a.get(ctx, job)
	if err != nil {
		return jobpoll.Report{}, err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return jobpoll.Report{}, err
	}
	defer a.close(resp)
	hint, err := a.answered(resp)
	if err != nil {
		return jobpoll.Report{}, err
	}
	body, err := a.body(resp)
	if err != nil {
		return jobpoll.Report{}, err
	}
	if resp.StatusCode == http.StatusAccepted {
		return jobpoll.Report{State: jobpoll.StateRunning, Hint: hint}, nil
	}
	var got *struct {
		Video string `json:"video"`
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	switch err := json.Unmarshal(body, &got); {
	case err != nil:
		return jobpoll.Report{}, err
	case got != nil && got.Error != nil:
		return jobpoll.Report{State: jobpoll.StateFailed, Failure: &jobpoll.Failure{Message: got.Error.Message}}, nil
	case got != nil && got.Video != "":
		return jobpoll.Report{State: jobpoll.StateSucceeded, Output: body}, nil
	}
	return jobpoll.Report{}, errors.New("neither a video nor an error")
}

func TestAnAdapterToBeTriedNeedsItsAnswers(t *testing.T) {
	err := TestChecker(Adapter{
		Pending: Answer{Body: "{}", Want: jobpoll.Report{State: jobpoll.StateFailed}},
		Errors:  []Answer{{Status: 404}},
		Skip:    []string{"everything"},
		Job:     func(string, int) jobpoll.Job { return jobpoll.Job{ID: "same"} },
	})
	for _, part := range []string{"Adapter.New is missing", "Adapter.Succeeded is missing", "Adapter.Failed is missing",
		"Pending.Want.State is failed", "Errors[0].WantKind is none", `Skip has "everything"`, "an ID of its own"} {
		require.ErrorContains(t, err, part)
	}
	var faults Findings
	require.NotErrorAs(t, err, &faults)
}

func TestTheDocNamesEveryCheck(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	ofAdapters, ofStores, found := strings.Cut(string(doc), "# A store of your own")
	require.True(t, found)
	for text, checks := range map[string][]string{ofAdapters: Checks(), ofStores: StoreChecks()} {
		var listed []string
		for _, m := range regexp.MustCompile(`(?m)^//\t([a-z][a-z0-9-]+)(?: \*)?(?:  +\S.*)?$`).FindAllStringSubmatch(text, -1) {
			listed = append(listed, m[1])
		}
		require.Equal(t, checks, listed)
	}
}

func TestAStatusCallThatIsAPost(t *testing.T) {
	a := confBroken(func(a *confAdapter) {
		a.request = func(ctx context.Context, job jobpoll.Job) (*http.Request, error) {
			return a.to(ctx, http.MethodPost, a.url(job))
		}
	})
	require.Equal(t, []string{"method"}, confChecks(t, TestChecker(a)))
	a.Method = http.MethodPost
	require.NoError(t, TestChecker(a))
}

// What is expected must not lead to the next fault.
func TestAFindingSaysWhatItMostLikelyIs(t *testing.T) {
	for _, tt := range []struct {
		name, check string
		breakIt     func(a *confAdapter)
		told        []string
	}{
		{"an overflow", "absurd-values", func(a *confAdapter) {
			right := a.report
			a.report = func(answer *confAnswer) jobpoll.Report {
				r := right(answer)
				if answer.Seconds == 1e308 {
					r.Remaining = math.MinInt64 // as amd64 converts it
				}
				return r
			}
		}, []string{"Remaining -2562047h47m16.854775808s", "overflowed as a time.Duration"}},
		{"a failure of no kind", "failure", confReporting(func(r *jobpoll.Report) {
			if r.Failure != nil && r.Failure.Kind == jobpoll.FailureFault {
				r.Failure = &jobpoll.Failure{Message: r.Failure.Message}
			}
		}), []string{"a kind that is known", "no FailureFault on a guess", "safe"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := confBroken(tt.breakIt)
			a.Failed.Want.Failure = nil
			err := TestChecker(a)
			require.Equal(t, []string{tt.check}, confChecks(t, err))
			for _, part := range tt.told {
				require.ErrorContains(t, err, part)
			}
		})
	}
}

func TestAWordIsReplacedWhereItIsAValue(t *testing.T) {
	for _, tt := range []struct{ body, want string }{
		{`{"status":"done"}`, `{"status":"new \"word\""}`},
		{`{"done" : 1, "status": "done" }`, `{"done" : 1, "status": "new \"word\"" }`},
		{`{"status":"done","states":["done","undone"]}`, `{"status":"new \"word\"","states":["new \"word\"","undone"]}`},
		{`{"done":true}`, `{"done":true}`},
		{``, ``},
	} {
		a := Answer{Body: tt.body, Want: jobpoll.Report{RawStatus: "done"}}
		require.Equal(t, tt.want, a.withWord(`new "word"`), tt.body)
		require.Equal(t, tt.body != tt.want, a.word() == "done", tt.body)
	}
}

func TestAbsurdValuesStandWhereNumbersAndTheWordWere(t *testing.T) {
	a := Answer{Body: `{"a":[{"n":1}],"s":"done","t":"text"}`, Want: jobpoll.Report{RawStatus: "done"}}
	var bodies []string
	for _, v := range a.absurd() {
		require.True(t, json.Valid([]byte(v.body)), v.body)
		bodies = append(bodies, v.body)
	}
	require.Contains(t, bodies, `{"a":[{"n":-1}],"s":"done","t":"text"}`)
	require.Contains(t, bodies, `{"a":[{"n":1}],"s":null,"t":"text"}`)
	require.Len(t, bodies, len(absurdNumbers)+5)
	require.Empty(t, Answer{Body: "<html>"}.absurd())
}

func FuzzAnswerVariations(f *testing.F) {
	f.Add(`{"status":"done","n":1}`, "done", "new")
	f.Add(`{"done":{"done":"done"}}`, "done", "")
	f.Add(`[1,[2,{"a":3}]]`, "", "\xff")
	f.Add("\"\ufffd\"", "\xff", "\"")
	f.Fuzz(func(t *testing.T, body, word, other string) {
		a := Answer{Body: body, Want: jobpoll.Report{RawStatus: word}}
		require.Equal(t, body, a.withWord(word), "the word in its own place")
		for _, v := range a.absurd() {
			require.True(t, json.Valid([]byte(v.body)), v.body)
		}
		if json.Valid([]byte(body)) && json.Valid([]byte(`"`+word+`"`)) && word != "" && !strings.ContainsAny(word, ",:") {
			require.True(t, json.Valid([]byte(a.withWord(other))))
		}
	})
}

func TestAReportOfFaultsHasEachReasonOnce(t *testing.T) {
	err := Findings{
		{Check: "a", Tried: "this", Did: "that", Want: "these", Why: "so", See: "there"},
		{Check: "a", Tried: "this2", Did: "that2", Want: "these2", Why: "so", See: "there"},
		{Check: "b", Tried: "t", Did: "d", Want: "w", Why: "y", See: "s"},
	}
	require.EqualError(t, err, `polltest: TestChecker found 3 fault(s) in the adapter
a: this
	the adapter: that
	expected: these
a: this2
	the adapter: that2
	expected: these2
	why: so
	see: there
b: t
	the adapter: d
	expected: w
	why: y
	see: s`)
	require.Len(t, err.Unwrap(), 3)
	require.ErrorIs(t, err, err[1])
}

func TestTheChecksHaveNamesOfTheirOwnAndReasons(t *testing.T) {
	names := Checks()
	slices.Sort(names)
	require.Equal(t, slices.Compact(slices.Clone(names)), names)
	for _, c := range allChecks() {
		require.NotEmpty(t, c.name)
		require.NotEmpty(t, c.why, c.name)
		require.NotEmpty(t, c.see, c.name)
		require.False(t, strings.ContainsAny(c.name, " ,"), c.name)
	}
}
