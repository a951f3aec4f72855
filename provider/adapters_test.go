package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

// family is an adapter on the common frame of adapter.go, and what the tests
// have to know of it.
type family struct {
	make   func(Config) (adapter, error)
	words  jobpoll.Words // nil: the provider has none
	ref    string        // Job.Ref, where one is needed
	reply  func() reply  // the struct of a look
	plain  func() any    // the same without methods, where they are dear; nil: reply
	body   string        // a success, for benchmarks
	notice noticeParser  // nil: it does not call back
	input  any           // of an order, where it has to be of a type
	stated polltest.Adapter
	kinds  []jobpoll.FailureKind // that it can tell
}

// bare is a struct to read a body into and no more.
func (f *family) bare() any {
	if f.plain != nil {
		return f.plain()
	}
	return f.reply()
}

// made makes an adapter of its type one of the interface, nil for an error.
func made[T adapter](a T, err error) (adapter, error) {
	if err != nil {
		return nil, err
	}
	return a, nil
}

// families are the adapters on the common frame.
var families = map[string]family{}

func familyNames() []string { return slices.Sorted(maps.Keys(families)) }

// everyAdapter are the names of all adapters.
func everyAdapter() []string { return append(slices.Clone(adapterNames), familyNames()...) }

// alikeAdapters are the names of those that are tried with what is no answer at
// all: each kind of look of the common frame is among them.
func alikeAdapters() []string { return append(slices.Clone(adapterNames), "runway", "minimax", "xai") }

// answers is an answer of a provider, and what is made of it.
func answers(status int, body string, want jobpoll.Report) polltest.Answer {
	return polltest.Answer{Status: status, Body: body, Want: want}
}

func TestEveryFamilyConforms(t *testing.T) {
	for _, name := range familyNames() {
		f := families[name]
		t.Run(name, func(t *testing.T) {
			a := f.stated
			a.New = func(target polltest.Target) jobpoll.Checker {
				return newAdapterFor(t, name, Config{BaseURL: target.URL, HTTP: target.Client, Credentials: Secret(target.Credential), MaxBody: 1 << 20})
			}
			a.Logf = t.Logf
			require.NoError(t, polltest.TestChecker(a))
		})
	}
}

// Whatever of a fixture's answer is changed, nothing panics, no success is without
// an output (or a fetch to come), and no failure has one.
func FuzzFamilies(f *testing.F) {
	for i, name := range familyNames() {
		for _, file := range fixtureFiles(f, name) {
			for _, x := range readFixture(f, file, "https://api.example").exchanges {
				f.Add(i, x.status, x.header.Get("Content-Type"), []byte(x.body))
			}
		}
		f.Add(i, 200, "application/json", []byte(`{"id":"`+kitKey+`","status":"`+kitKey+`","progress":1e400}`))
		f.Add(i, 200, "a", []byte(`{"status":"`+kitKey[:4]+"\x8b\x8b"+kitKey[4:]+`"}`))
	}
	names := familyNames()
	f.Fuzz(func(t *testing.T, i, status int, contentType string, body []byte) {
		name := names[((i%len(names))+len(names))%len(names)]
		tryFamily(t, name, &canned{status, http.Header{"Content-Type": {contentType}}, body})
	})
}

func tryFamily(t *testing.T, name string, c *canned) {
	a := cannedAdapter(t, name, c)
	ctx := context.Background()
	job := jobpoll.Job{Route: "r", ID: "x", Ref: families[name].ref}
	rep, err := a.Check(ctx, job)
	sane(t, rep, err)
	fetcher, fetches := a.(jobpoll.Fetcher)
	if err == nil && rep.State == jobpoll.StateSucceeded && rep.Output == nil {
		require.True(t, fetches && rep.Ref != "", "%s: a success of nothing: %s", name, c.body)
	}
	if rep.State.Terminal() && rep.State != jobpoll.StateSucceeded {
		require.Nil(t, rep.Output, "%s: %s", name, c.body)
	}
	order := Order{Model: "own/app", Path: "/v1/jobs", Input: families[name].input}
	if order.Input != nil {
		order.Path = "" // there is one
	}
	sent, rep, err := a.Submit(ctx, order)
	sane(t, rep, err)
	require.Equal(t, err == nil, sent.ID != "")
	if fetches {
		rep, err := fetcher.Fetch(ctx, job, jobpoll.Report{State: jobpoll.StateSucceeded, Ref: "f"})
		sane(t, rep, err)
		require.Equal(t, err == nil && (rep.State == jobpoll.StateSucceeded || rep.State == jobpoll.StateUnknown), rep.Output != nil)
	}
	if canceler, ok := a.(jobpoll.Canceler); ok {
		if err := canceler.Cancel(ctx, job); err != nil {
			sane(t, jobpoll.Report{}, err)
		}
	}
	if list, ok := a.(jobpoll.BatchChecker); ok {
		all, err := list.CheckBatch(ctx, []jobpoll.Job{job, {Route: "r", ID: "y"}})
		sane(t, jobpoll.Report{}, err)
		for id, got := range all {
			require.Contains(t, []string{"x", "y"}, id)
			sane(t, got.Report, got.Err)
			require.Equal(t, got.Err == nil && got.Report.State == jobpoll.StateSucceeded, got.Report.Output != nil, "%s: %s", name, c.body)
		}
	}
	if reconciler, ok := a.(jobpoll.Reconciler); ok {
		found, err := reconciler.Lookup(ctx, jobpoll.Lost{Job: job})
		sane(t, found.Report, err)
		require.NotEqual(t, jobpoll.FindingAbsent, found.State)
	}
}

// Values of other kinds are put in place of each value of each answer, in turn.
func TestAChangedAnswerIsNeverASuccessOfNothing(t *testing.T) {
	instead := []string{`null`, `true`, `7`, `-1`, `1e400`, `""`, `"x"`, `[]`, `{}`, `[null]`, `[{}]`}
	turn := 0
	for _, name := range familyNames() {
		for _, file := range fixtureFiles(t, name) {
			for _, x := range readFixture(t, file, "https://api.example").exchanges {
				if x.status > 299 {
					continue
				}
				var v any
				if json.Unmarshal([]byte(x.body), &v) != nil {
					continue
				}
				mutate(v, func(any) {}, func() []string {
					const each = 3
					turn += each
					return []string{instead[turn%len(instead)], instead[(turn+1)%len(instead)], instead[(turn+2)%len(instead)]}
				}, func() {
					body, err := json.Marshal(v)
					require.NoError(t, err)
					body = bytes.ReplaceAll(body, []byte(`"1e400"`), []byte(`1e400`))
					tryFamily(t, name, &canned{x.status, x.header, body})
				})
			}
		}
	}
}

// mutate puts values of instead in place of each value below v, and calls f.
func mutate(v any, set func(any), instead func() []string, f func()) {
	for _, raw := range instead() {
		var other any = "1e400"
		if raw != "1e400" {
			_ = json.Unmarshal([]byte(raw), &other)
		}
		set(other)
		f()
	}
	set(v)
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			mutate(v[k], func(x any) { v[k] = x }, instead, f)
		}
	case []any:
		for i := range v {
			mutate(v[i], func(x any) { v[i] = x }, instead, f)
		}
	}
}

// Each adapter refuses what it cannot send, before anything is sent.
func TestAnOrderThatCannotBeSentIsRefused(t *testing.T) {
	for _, name := range familyNames() {
		a := cannedAdapter(t, name, &canned{status: 500})
		_, _, err := a.Submit(t.Context(), Order{})
		var ce *jobpoll.CheckError
		require.ErrorAs(t, err, &ce, name)
		require.Equal(t, jobpoll.ErrorInvalid, ce.Kind, name)
		require.False(t, errors.Is(err, ErrAmbiguous), name)
	}
}

// BenchmarkFamilies is BenchmarkDecode for the adapters on the common frame. Compare
// the medians of one run: go test ./provider -run ^$ -bench 'Decode|Families' -count 5
func BenchmarkFamilies(b *testing.B) {
	header := http.Header{"Content-Type": {"application/json; charset=utf-8"}}
	for _, name := range familyNames() {
		f := families[name]
		if f.reply == nil {
			continue
		}
		b.Run(name+"/report", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ans, v := Answer{Status: 200, Header: header, Body: []byte(f.body)}, f.reply()
				if err := decodeInto(header, ans.Body, v); err != nil {
					b.Fatal(err)
				}
				if _, err := v.report(&ans); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/bare", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := json.Unmarshal([]byte(f.body), f.bare()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
